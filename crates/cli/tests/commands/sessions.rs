//! `attache sessions`: list, show, export, archive and delete.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use attache_testkit::binary::Home;
use serde_json::Value;

use crate::{SCRIPT, answer, failure, home_with_a_session, no_terminal_codes, run};

#[tokio::test]
async fn sessions_are_listed_and_shown() {
    let (home, session) = home_with_a_session().await;
    let list = answer(&home, &["sessions", "list"]).await;
    assert_eq!(list.lines().count(), 1, "{list}");
    assert!(list.contains(&session) && list.contains("Say hello"), "{list}");
    assert!(list.contains(home.workspace().to_str().unwrap()), "{list}");
    let show = answer(&home, &["sessions", "show", &session]).await;
    for expected in [
        "Say hello",
        "and write",
        "let me see",
        "Hello, \"world\";",
        "Made it.",
        "made.txt",
        "script/default",
        "idle",
        "allow",
    ] {
        assert!(show.contains(expected), "{expected} is missing in\n{show}");
    }
    let made = home.workspace().join("made.txt");
    let rule = format!("rule       allow edit {} (session)", made.display());
    assert!(show.lines().any(|line| line == rule), "{rule} is missing in\n{show}");
    let why = "    allow: the user's answer (asked because: it changes a file)";
    assert!(show.lines().any(|line| line == why), "{why} is missing in\n{show}");
    no_terminal_codes(&list);
    no_terminal_codes(&show);
}

#[tokio::test]
async fn a_slash_command_is_shown_as_it_was_typed() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), "on *\n  text \"ok\"\n");
    let agent = home.start();
    let session = agent.open_session(&home).await;
    agent.prompt(&session, "/mode plan").await.unwrap();
    agent.finish(&home).await;
    let show = answer(&home, &["sessions", "show", &session]).await;
    assert!(show.lines().any(|line| line.trim() == "/mode plan"), "{show}");
    assert!(!show.contains("[command]"), "{show}");
}

#[tokio::test]
async fn what_a_session_cost_is_shown_with_it_and_with_each_answer() {
    let script =
        "model priced price_input=3 price_output=15\non *\n  text \"ok\"\n  usage input=1000 output=200\n";
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), script);
    let home = home.with_variable("ATTACHE_MODEL", "script/priced");
    let agent = home.start();
    let session = agent.open_session(&home).await;
    for _ in 0..2 {
        agent.prompt(&session, "Say").await.unwrap();
    }
    agent.finish(&home).await;
    let show = answer(&home, &["sessions", "show", &session]).await;
    assert!(show.lines().any(|line| line == "cost       $0.012"), "{show}");
    assert_eq!(
        show.lines().filter(|line| line.ends_with("1000 in, 200 out  $0.006000")).count(),
        2,
        "{show}"
    );
}

#[tokio::test]
async fn a_rejected_call_is_shown_with_who_decided_and_why_it_was_asked_for() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    let agent = home.start();
    let session = agent.open_session(&home).await;
    agent.client.always_choose("reject_once");
    agent.prompt(&session, "Say hello").await.unwrap();
    agent.finish(&home).await;
    let show = answer(&home, &["sessions", "show", &session]).await;
    let why = "    deny: the user rejected this call (asked because: it changes a file)";
    assert!(show.lines().any(|line| line == why), "{why} is missing in\n{show}");
}

#[tokio::test]
async fn a_session_is_found_by_the_beginning_of_its_id() {
    let (home, session) = home_with_a_session().await;
    let whole = answer(&home, &["sessions", "show", &session]).await;
    for beginning in [&session[..12], &session[4..16], "ses_", "s"] {
        assert_eq!(answer(&home, &["sessions", "show", beginning]).await, whole, "the only one");
    }
    let agent = home.start();
    let other = agent.open_session(&home).await;
    agent.prompt(&other, "Say hello").await.unwrap();
    agent.finish(&home).await;
    for beginning in [&session[..6], "ses_", "se"] {
        let told = failure(&home, &["sessions", "show", beginning]).await;
        assert!(told.contains(&format!("several sessions begin with {beginning}:")), "{told}");
        assert!(told.contains(&session) && told.contains(&other), "{told}");
    }
    let told = failure(&home, &["sessions", "show", "ses_zz"]).await;
    assert!(told.contains("no session has an id that begins with ses_zz; `attache sessions list`"), "{told}");
    let told = failure(&home, &["sessions", "show", ""]).await;
    assert!(told.contains("the session id is empty"), "{told}");
}

/// A path that was typed and leads nowhere is a slip; that nothing is stored yet is none.
#[tokio::test]
async fn a_store_that_is_not_there_is_named() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    let lines: [&[&str]; 3] =
        [&["sessions", "list"], &["sessions", "show", "ses_0"], &["sessions", "export", "ses_0"]];
    for arguments in lines {
        let told = failure(&home, &[arguments, &["--store", "/nowhere/no.db"]].concat()).await;
        assert!(told.contains("there is no database /nowhere/no.db") && told.contains("--store"), "{told}");
    }
}

#[tokio::test]
async fn a_list_has_a_limit_and_programs_get_json() {
    let (home, first) = home_with_a_session().await;
    let agent = home.start();
    let second = agent.open_session(&home).await;
    agent.prompt(&second, "Say hello").await.unwrap();
    agent.finish(&home).await;
    let output = run(&home, &["sessions", "list", "--limit", "1"]).await;
    let (list, told) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(list.contains(&second) && !list.contains(&first), "{list}");
    assert!(told.contains("--all"), "{told}");
    let output = run(&home, &["sessions", "list", "--limit", "0"]).await;
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("give a number from 1"), "{told}");
    let json: Value = serde_json::from_str(&answer(&home, &["sessions", "list", "--json"]).await).unwrap();
    let ids: Vec<&str> = json.as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap()).collect();
    assert_eq!(ids, [second.as_str(), first.as_str()]);
    assert!(json[0]["updated_at"].as_i64().unwrap() > 1_700_000_000_000, "{json}");
    let shown: Value =
        serde_json::from_str(&answer(&home, &["sessions", "show", &first, "--json"]).await).unwrap();
    assert!(shown.to_string().contains("Made it."), "{shown}");
    let empty = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    assert_eq!(run(&empty, &["sessions", "list", "--json"]).await.stdout, b"[]\n");
}

#[tokio::test]
async fn the_arguments_and_outputs_of_calls_are_shown_when_asked_for() {
    let (home, session) = home_with_a_session().await;
    let outline = answer(&home, &["sessions", "show", &session]).await;
    let full = answer(&home, &["sessions", "show", &session, "--full"]).await;
    let input = r#"    > {"path":"made.txt","content":"x\n"}"#;
    assert!(full.lines().any(|line| line == input) && !outline.contains(input), "{full}");
    assert!(full.lines().any(|line| line.starts_with("    | ")), "{full}");
    no_terminal_codes(&full);
}

/// `session/delete` is an erasure: nothing that was said, read or made can be found below the home afterwards.
#[tokio::test]
async fn a_deleted_session_leaves_nothing_behind() {
    const SECRET: &str = "the launch code is 0000";
    let script = format!(
        "on *\n  text \"{SECRET}\"\n  call bash {{\"command\":\"echo '{SECRET}' > $TMPDIR/kept\"}}\n  ---\n  text \"Done.\"\n"
    );
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), &script);
    let agent = home.start();
    agent.client.always_choose("allow_once");
    let session = agent.open_session(&home).await;
    agent.prompt(&session, SECRET).await.unwrap();
    agent.prompt(&session, "once more").await.unwrap();
    let data = home.database().parent().unwrap().to_owned();
    let found = |text: &str| files_with(&data, text.as_bytes());
    assert!(!found(SECRET).is_empty());
    let deleted = serde_json::json!({"sessionId": session});
    agent.client.expect("session/delete", deleted).await;
    let script_itself =
        |path: &std::path::PathBuf| path.extension().is_some_and(|end| end == "txt" || end == "script");
    let left: Vec<_> = found(SECRET).into_iter().filter(|path| !script_itself(path)).collect();
    assert_eq!(left, Vec::<std::path::PathBuf>::new());
    let named: Vec<_> = found(&session).into_iter().filter(|path| !path.ends_with("attache.log")).collect();
    assert_eq!(named, Vec::<std::path::PathBuf>::new());
    agent.finish(&home).await;
}

/// Files whose name or content holds these bytes.
fn files_with(directory: &Path, bytes: &[u8]) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let holds = |text: &[u8]| text.windows(bytes.len()).any(|window| window == bytes);
        if path.is_dir() && !path.is_symlink() {
            found.extend(files_with(&path, bytes));
        }
        let name = path.file_name().unwrap().as_encoded_bytes();
        if holds(name) || std::fs::read(&path).is_ok_and(|content| holds(&content)) {
            found.push(path);
        }
    }
    found
}

#[tokio::test]
async fn an_empty_home_says_so_and_succeeds() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    let output = run(&home, &["sessions", "list"]).await;
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stdout.is_empty());
    assert!(String::from_utf8_lossy(&output.stderr).contains("no sessions yet"));
}

#[tokio::test]
async fn every_export_format_holds_the_whole_session() {
    let (home, session) = home_with_a_session().await;
    let export = |format: &'static str| {
        let (home, session) = (&home, session.as_str());
        async move { answer(home, &["sessions", "export", session, "--format", format]).await }
    };
    let jsonl = export("jsonl").await;
    let lines: Vec<Value> =
        jsonl.lines().map(|line| serde_json::from_str(line).expect("one object a line")).collect();
    assert!(lines.len() >= 3, "{jsonl}");
    assert_eq!(answer(&home, &["sessions", "export", &session]).await, jsonl, "it is the default");
    let json: Value = serde_json::from_str(&export("json").await).expect("one JSON value");
    assert!(json.to_string().contains("Made it."));
    let markdown = export("md").await;
    let csv = export("csv").await;
    let rows = csv_rows(&csv);
    assert!(rows.len() > 4, "{csv}");
    assert!(rows.iter().all(|row| row.len() == rows[0].len()), "each row has all columns: {csv}");
    let html = export("html").await;
    assert!(html.starts_with("<!doctype html>") && html.ends_with("</html>\n"), "{html}");
    for text in [&jsonl, &markdown, &csv, &html] {
        assert!(text.contains("Made it.") && text.contains("made.txt"), "{text}");
    }
}

/// As RFC 4180 has it: quotes hold commas, line ends and doubled quotes.
fn csv_rows(text: &str) -> Vec<Vec<String>> {
    let mut rows = vec![vec![String::new()]];
    let mut quoted = false;
    let mut characters = text.trim_end().chars().peekable();
    while let Some(character) = characters.next() {
        let row = rows.last_mut().unwrap();
        match (character, quoted) {
            ('"', true) if characters.peek() == Some(&'"') => {
                characters.next();
                row.last_mut().unwrap().push('"');
            }
            ('"', _) => quoted = !quoted,
            (',', false) => row.push(String::new()),
            ('\r', false) => {}
            ('\n', false) => rows.push(vec![String::new()]),
            (other, _) => row.last_mut().unwrap().push(other),
        }
    }
    rows
}

#[tokio::test]
async fn an_export_goes_to_a_file_and_an_unknown_session_leaves_the_file_alone() {
    let (home, session) = home_with_a_session().await;
    let file = home.workspace().join("out.md");
    let path = file.to_str().unwrap();
    assert_eq!(answer(&home, &["sessions", "export", &session, "--format", "md", "-o", path]).await, "");
    let written = std::fs::read_to_string(&file).unwrap();
    assert_eq!(written, answer(&home, &["sessions", "export", &session, "--format", "md"]).await);
    for (name, format) in
        [("by.md", "md"), ("by.JSON", "json"), ("by.csv", "csv"), ("by.html", "html"), ("by", "jsonl")]
    {
        let file = home.workspace().join(name);
        answer(&home, &["sessions", "export", &session, "-o", file.to_str().unwrap()]).await;
        let expected = answer(&home, &["sessions", "export", &session, "--format", format]).await;
        assert_eq!(std::fs::read_to_string(&file).unwrap(), expected, "the ending of {name} decides");
    }
    let page = home.workspace().join("page.pdf");
    let told = failure(&home, &["sessions", "export", &session, "-o", page.to_str().unwrap()]).await;
    assert!(told.contains(".pdf is no export format; add --format") && !page.exists(), "{told}");
    let told = failure(&home, &["sessions", "export", "ses_nobody", "-o", path]).await;
    assert!(told.contains("ses_nobody"), "{told}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), written, "the file is as it was");
    let told = failure(&home, &["sessions", "export", &session, "-o", "/nonexistent/x.md"]).await;
    assert!(told.contains("there is no directory /nonexistent"), "{told}");
}

#[tokio::test]
async fn an_unknown_session_fails_with_a_hint() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    for arguments in [&["sessions", "show", "ses_nobody"][..], &["sessions", "export", "ses_nobody"][..]] {
        let told = failure(&home, arguments).await;
        assert!(told.contains("ses_nobody") && told.contains("attache sessions list"), "{told}");
        assert_eq!(told.lines().count(), 1, "{told}");
    }
    let (home, session) = home_with_a_session().await;
    // Another last character, whichever it has.
    let last = if session.ends_with('x') { 'y' } else { 'x' };
    let slip = format!("{}{last}", &session[..session.len() - 1]);
    let told = failure(&home, &["sessions", "show", &slip]).await;
    assert!(told.contains(&format!("begins with {slip} (did you mean {session}?)")), "{told}");
}

/// Nobody knows what a model without a price costs: a program must not add up zeros.
#[tokio::test]
async fn a_cost_that_is_not_known_is_null_in_lists_and_exports() {
    let (home, session) = home_with_a_session().await;
    let list: Value = serde_json::from_str(&answer(&home, &["sessions", "list", "--json"]).await).unwrap();
    assert_eq!(list[0]["cost_usd"], Value::Null, "{list}");
    let shown: Value =
        serde_json::from_str(&answer(&home, &["sessions", "show", &session, "--json"]).await).unwrap();
    assert_eq!(shown["session"]["cost_usd"], Value::Null, "{shown}");
    // The same names and values everywhere; a list has the title beside them, and not what only attache uses.
    let (mut listed, mut shown) = (list[0].clone(), shown["session"].clone());
    assert!(listed.as_object_mut().unwrap().remove("title").unwrap().is_string(), "{list}");
    for internal in ["metadata", "permissions"] {
        assert!(shown.as_object_mut().unwrap().remove(internal).is_some(), "{shown}");
    }
    assert_eq!(listed, shown);
    assert!(listed.to_string().len() < 800, "{listed}");
    let latest = answer(&home, &["sessions", "show", "latest", "--json"]).await;
    assert!(latest.contains(&session), "{latest}");
}

#[tokio::test]
async fn an_export_belongs_to_its_owner_and_replaces_a_file_only_when_told_to() {
    let (home, session) = home_with_a_session().await;
    let file = home.workspace().join("out.md");
    let path = file.to_str().unwrap();
    let mode = || file.metadata().unwrap().permissions().mode() & 0o777;
    answer(&home, &["sessions", "export", &session, "-o", path]).await;
    assert_eq!(mode(), 0o600);
    std::fs::write(&file, "notes of mine\n").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let told = failure(&home, &["sessions", "export", &session, "-o", path]).await;
    assert!(told.contains("out.md exists already; add --force to replace it"), "{told}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "notes of mine\n");
    answer(&home, &["sessions", "export", &session, "-o", path, "--force"]).await;
    assert!(std::fs::read_to_string(&file).unwrap().contains("Made it."));
    assert_eq!(mode(), 0o600, "others could read the old one");
    let link = home.workspace().join("link.md");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    std::fs::write(&file, "notes of mine\n").unwrap();
    answer(&home, &["sessions", "export", &session, "-o", link.to_str().unwrap(), "--force"]).await;
    assert!(link.is_symlink() && std::fs::read_to_string(&file).unwrap().contains("Made it."));
    let shown = answer(&home, &["sessions", "export", &session, "--format", "md", "-o", "/dev/stdout"]).await;
    assert!(shown.contains("Made it."), "a stream is written to as it is");
    let made: Vec<_> =
        std::fs::read_dir(home.workspace()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(made.len(), 3, "nothing half-written stays: {made:?}");
}

#[tokio::test]
async fn an_archived_session_is_not_listed_until_it_is_brought_back() {
    let (home, session) = home_with_a_session().await;
    let told = answer(&home, &["sessions", "archive", &session[..12]]).await;
    assert!(told.starts_with(&format!("archived {session} (Say hello")), "{told}");
    assert_eq!(run(&home, &["sessions", "list"]).await.stdout, b"");
    let list = answer(&home, &["sessions", "list", "--archived"]).await;
    assert!(list.contains(&session) && list.trim_end().ends_with("(archived)"), "{list}");
    let show = answer(&home, &["sessions", "show", &session]).await;
    assert!(show.lines().any(|line| line.starts_with("archived ")), "{show}");
    answer(&home, &["sessions", "archive", &session, "--undo"]).await;
    let list = answer(&home, &["sessions", "list"]).await;
    assert!(list.contains(&session) && !list.contains("archived"), "{list}");
}

#[tokio::test]
async fn a_session_is_deleted_with_everything_in_it_once_its_user_agrees() {
    let (home, session) = home_with_a_session().await;
    let told = failure(&home, &["sessions", "delete", &session]).await;
    assert!(told.contains("add --yes to delete") && told.contains("Say hello"), "{told}");
    assert_eq!(on_a_terminal(&home, &["sessions", "delete", &session], "n").await, Some(1));
    assert!(answer(&home, &["sessions", "list"]).await.contains(&session), "it is still there");
    assert_eq!(on_a_terminal(&home, &["sessions", "delete", &session], "y").await, Some(0));
    assert_eq!(run(&home, &["sessions", "list"]).await.stdout, b"");
    let data = home.database().parent().unwrap().to_owned();
    let is_log = |path: &std::path::PathBuf| path.ends_with("attache.log");
    let named: Vec<_> =
        files_with(&data, session.as_bytes()).into_iter().filter(|path| !is_log(path)).collect();
    assert_eq!(named, Vec::<std::path::PathBuf>::new());
    let told = failure(&home, &["sessions", "delete", &session, "--yes"]).await;
    assert!(told.contains("no session has an id that begins with"), "{told}");
}

#[tokio::test]
async fn a_session_that_runs_is_neither_deleted_nor_archived() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), "on *\n  stream 100000 \"slowly \" every 1ms\n");
    let agent = home.start();
    let session = agent.open_session(&home).await;
    let pending = agent.start_prompt(&session, "go");
    while agent.client.updates(&session).len() < 20 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    for arguments in
        [["sessions", "delete", &session, "--yes"].as_slice(), &["sessions", "archive", &session]]
    {
        let told = failure(&home, arguments).await;
        assert!(told.contains("is running in an editor"), "{told}");
    }
    agent.client.notify("session/cancel", serde_json::json!({"sessionId": session}));
    pending.answer().await.unwrap();
    agent.finish(&home).await;
}

/// The exit code of a command whose user types this line.
async fn on_a_terminal(home: &Home, arguments: &[&str], typed: &str) -> Option<i32> {
    let (mut person, program) = attache_testkit::pseudo_terminal::open();
    let mut child = home.command();
    child.args(arguments).stdin(program.try_clone().unwrap()).stdout(Stdio::null()).stderr(program);
    let mut child = child.spawn().unwrap();
    let line = format!("{typed}\n");
    let typing = tokio::task::spawn_blocking(move || {
        attache_testkit::pseudo_terminal::read_until(&mut person, "[y/N] ");
        person.write_all(line.as_bytes()).unwrap();
        person
    });
    let person = typing.await.unwrap();
    let code = child.wait().await.unwrap().code();
    drop(person);
    code
}

/// What a person sees who has a terminal for stdout.
async fn seen_on_a_terminal(home: &Home, arguments: &[&str]) -> String {
    let (mut person, program) = attache_testkit::pseudo_terminal::open();
    let mut child = home.command();
    child.args(arguments).env_remove("NO_COLOR").stdin(Stdio::null()).stdout(program).stderr(Stdio::null());
    let mut running = child.spawn().unwrap();
    // The command holds the terminal's other end as well.
    drop(child);
    let reading = tokio::task::spawn_blocking(move || {
        let (mut screen, mut bytes) = (Vec::new(), [0; 4096]);
        while let Ok(count) = std::io::Read::read(&mut person, &mut bytes)
            && count > 0
        {
            screen.extend_from_slice(&bytes[..count]);
        }
        String::from_utf8(screen).unwrap()
    });
    running.wait().await.unwrap();
    reading.await.unwrap()
}

/// Every command over a session whose every word is hostile, its id included: a terminal obeys none of it, and
/// a pipe gets the words as they are.
#[tokio::test]
async fn a_terminal_obeys_no_word_of_a_session() {
    const HOSTILE: &str = "\u{1b}]0;x\u{7}\u{1b}[2J\u{1b}[35;7m\u{9b}31m\u{202e}\u{200b}\u{e0041}";
    let (home, session) = home_with_a_session().await;
    let id = format!("ses_{HOSTILE}");
    {
        let database = attache_testkit::database::connect(&home);
        database.execute_batch("PRAGMA foreign_keys = OFF").unwrap();
        let columns =
            [("chat_sessions", "id"), ("chat_messages", "session_id"), ("chat_parts", "session_id")];
        for (table, column) in columns {
            let change = format!("UPDATE {table} SET {column} = ?1 WHERE {column} = ?2");
            database.execute(&change, [&id, &session]).unwrap();
        }
        let title =
            "UPDATE chat_sessions SET metadata_json = json_set(metadata_json, '$.title', ?1), agent = ?1";
        database.execute(title, [HOSTILE]).unwrap();
        let words = "UPDATE chat_parts SET data_json = json_set(data_json, '$.text', 'needle ' || ?1) WHERE type = 'text'";
        database.execute(words, [HOSTILE]).unwrap();
    }
    let mut lines: Vec<Vec<&str>> = [
        "list",
        "list --json",
        "show ID",
        "show ID --full",
        "show ID --timeline",
        "show ID --timeline --full --system-prompt",
        "show ID --json",
        "search needle",
        "search needle --json",
        "diff ID ID",
        "export ID",
        "export ID --format json",
        "export ID --format md",
        "export ID --format csv",
        "export ID --format html",
        "archive ID",
        "archive ID --undo",
    ]
    .iter()
    .map(|line| std::iter::once("sessions").chain(line.split(' ')).collect())
    .collect();
    lines.push(vec!["usage"]);
    lines.push(vec!["usage", "--by", "workspace", "--json"]);
    for line in lines {
        let arguments: Vec<&str> =
            line.iter().map(|word| if *word == "ID" { id.as_str() } else { word }).collect();
        let seen = seen_on_a_terminal(&home, &arguments).await;
        // A terminal's own line ends, and our colours: none of them has two numbers.
        let mut rest = seen.replace("\r\n", "\n");
        for colour in ["0", "1", "31", "32", "33", "34", "35", "36", "90"] {
            rest = rest.replace(&format!("\u{1b}[{colour}m"), "");
        }
        let raw = rest.chars().find(|c| {
            (c.is_control() && !matches!(c, '\n' | '\t')) || "\u{202e}\u{200b}\u{e0041}".contains(*c)
        });
        assert_eq!(raw, None, "{line:?}: {rest:?}");
    }
    let exact = answer(&home, &["sessions", "export", &id, "--format", "md"]).await;
    assert!(exact.contains("\u{202e}") && !exact.contains("\\u{202e}"), "{exact:?}");
}

#[tokio::test]
async fn sessions_of_subagents_are_a_tree_on_request() {
    let script = "on \"go\"\n  call task {\"subagent_type\":\"explore\",\"prompt\":\"look around\"}\n  ---\n  text \"done\"\non *\n  text \"seen\"\n";
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), script);
    let agent = home.start();
    let session = agent.open_session(&home).await;
    agent.prompt(&session, "go").await.unwrap();
    agent.finish(&home).await;
    let list = answer(&home, &["sessions", "list"]).await;
    assert_eq!(list.lines().count(), 1, "{list}");
    let tree = answer(&home, &["sessions", "list", "--children"]).await;
    let lines: Vec<&str> = tree.lines().collect();
    assert_eq!(lines.len(), 2, "{tree}");
    assert!(lines[0].starts_with(&session) && lines[1].starts_with("└ ses_"), "{tree}");
    assert!(lines[1].contains("look around"), "{tree}");
    let listed: Value =
        serde_json::from_str(&answer(&home, &["sessions", "list", "--children", "--json"]).await).unwrap();
    assert_eq!(
        (&listed[0]["parent_id"], listed[1]["parent_id"].as_str()),
        (&Value::Null, Some(session.as_str()))
    );
    let child = listed[1]["id"].as_str().unwrap();
    let show = answer(&home, &["sessions", "show", child]).await;
    assert!(show.contains("look around") && show.contains("seen"), "{show}");
    answer(&home, &["sessions", "delete", &session, "--yes"]).await;
    assert!(failure(&home, &["sessions", "show", child]).await.contains("no session"));
}
