//! `grep`: what is found, how it is told, what is cut and what is passed by.

use std::os::unix::fs::symlink;
use std::sync::Arc;

use attache_core::ports::tool::Access;
use attache_core::watchdog::{Action, Approval, PatternBase, ReadRules, Rule, Rulebook, Rules};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::trial::{Trial, shown_text};

async fn text(trial: &Trial, input: Value) -> String {
    let (data, presentation) = trial.done("grep", input).await;
    let data = data.as_str().unwrap();
    data[..data.len() - presentation.note_bytes].to_owned()
}

async fn note(trial: &Trial, input: Value) -> String {
    let (data, presentation) = trial.done("grep", input).await;
    let data = data.as_str().unwrap();
    data[data.len() - presentation.note_bytes..].to_owned()
}

#[tokio::test]
async fn matches_stand_below_their_file_in_path_order() {
    let trial = Trial::new();
    trial.put("src/b.rs", "fn one() {}\nlet x;\nfn two() {}\n");
    trial.put("src/a/c.rs", "fn three() {}");
    trial.put("fn.md", "fn four\n");
    assert_eq!(
        text(&trial, json!({"pattern": "^fn \\w+"})).await,
        "fn.md\n1:fn four\n\nsrc/a/c.rs\n1:fn three() {}\n\nsrc/b.rs\n1:fn one() {}\n3:fn two() {}\n"
    );
    assert_eq!(
        text(&trial, json!({"pattern": "t.*o", "path": "src/b.rs"})).await,
        "src/b.rs\n3:fn two() {}\n"
    );
    assert_eq!(
        text(&trial, json!({"pattern": "THREE", "ignore_case": true, "path": "src"})).await,
        "src/a/c.rs\n1:fn three() {}\n"
    );
    assert_eq!(text(&trial, json!({"pattern": "four|one", "glob": "*.md"})).await, "fn.md\n1:fn four\n");
    assert_eq!(
        text(&trial, json!({"pattern": "four|one", "glob": "!*.md"})).await,
        "src/b.rs\n1:fn one() {}\n"
    );
}

#[tokio::test]
async fn what_a_rule_keeps_is_counted_and_not_shown() {
    let mut trial = Trial::new();
    trial.put("open.txt", "x\n");
    trial.put("secrets/a.txt", "x\n");
    trial.put("secrets/deep/b.txt", "x\n");
    trial.put("secrets/c.md", "x\n");
    trial.put("secrets/public.txt", "x\n");
    let rule = |pattern, action| Rule::new("read", pattern, action);
    let rules = [rule("secrets/*", Action::Deny), rule("secrets/public.txt", Action::Allow)];
    let ground = PatternBase { root: &trial.root, home: None };
    let rulebook = Arc::new(Rulebook::new(&[], &rules, &Rules::default(), ground));
    trial.closed = ReadRules::of(std::slice::from_ref(&rulebook), Approval::Ask);
    assert_eq!(text(&trial, json!({"pattern": "x"})).await, "open.txt\n1:x\n\nsecrets/public.txt\n1:x\n");
    assert_eq!(
        note(&trial, json!({"pattern": "x", "glob": "*.txt"})).await,
        "[2 files skipped under the user's rules]"
    );
    let (listed, _) = trial.done("glob", json!({"pattern": "*.md"})).await;
    assert_eq!(listed, "[no file matches; 1 file skipped under the user's rules]");
    // Without a rule of the user's it is not the user who keeps them.
    trial.put(".env", "x\n");
    let rulebook =
        Arc::new(Rulebook::new(&[], &[], &Rules::default(), PatternBase { root: &trial.root, home: None }));
    trial.closed = ReadRules::of(std::slice::from_ref(&rulebook), Approval::Ask);
    let note = note(&trial, json!({"pattern": "x", "path": "."})).await;
    assert!(note.starts_with("[1 file skipped as possible secrets"), "{note}");
}

#[tokio::test]
async fn neighbours_are_marked_and_groups_kept_apart() {
    let trial = Trial::with_file("a", "1\n2\nx\n4\n5\n6\n7\nx\nx\n10\n");
    assert_eq!(
        text(&trial, json!({"pattern": "x", "context": 1})).await,
        "a\n2-2\n3:x\n4-4\n--\n7-7\n8:x\n9:x\n10-10\n"
    );
    assert_eq!(text(&trial, json!({"pattern": "x", "context": 1, "limit": 1})).await, "a\n2-2\n3:x\n4-4\n");
}

#[tokio::test]
async fn the_call_is_shown_as_a_search_with_its_lines() {
    let trial = Trial::with_file("a.rs", "x\ny `\x1b[2J`\n");
    let plan = trial.plan("grep", json!({"pattern": "p\u{202e}", "path": "src"})).await.unwrap();
    assert_eq!(plan.accesses, [Access::ReadPath(trial.root.join("src"))]);
    assert_eq!(plan.presentation.title, "grep `\"p\\u{202e}\"` in `src`");
    let (_, presentation) = trial.done("grep", json!({"pattern": "y"})).await;
    assert_eq!(presentation.title, "grep \"y\"");
    assert_eq!(shown_text(&presentation), "```\na.rs\n2:y `␛[2J`\n```");
    assert!(plan.presentation.locations.is_empty() && presentation.locations.is_empty(), "editors open each");
}

#[tokio::test]
async fn nothing_is_an_answer() {
    let trial = Trial::with_file("a", "x\n");
    trial.put("b.png", b"\x89PNG x \0");
    assert_eq!(
        trial.done("grep", json!({"pattern": "x\\d"})).await.0,
        "[no match in 2 files; 1 binary file skipped]"
    );
    assert_eq!(note(&trial, json!({"pattern": "x"})).await, "");
    let (data, _) = trial.done("grep", json!({"pattern": "q", "glob": "*.none"})).await;
    assert_eq!(data, "[no match: there was no file to search (ignored files are skipped)]");
    let (data, _) = trial.done("grep", json!({"pattern": "p\\|q", "path": "a"})).await;
    assert_eq!(data, "[no match in 1 file; `\\|` means a bar here; `a|b` is either of both]");
}

#[tokio::test]
async fn two_hundred_matches_are_told_and_the_rest_is_in_a_file() {
    let trial = Trial::new();
    for file in 0..30 {
        trial.put(&format!("f{file:02}"), "a match\n".repeat(10));
    }
    let (data, presentation) = trial.done("grep", json!({"pattern": "match"})).await;
    let metadata = presentation.metadata.unwrap();
    let kept = std::fs::read_to_string(metadata.output_path.unwrap()).unwrap();
    assert_eq!(kept.matches("a match").count(), 300);
    let data = data.as_str().unwrap();
    assert_eq!(data.matches("a match").count(), 200);
    assert!(metadata.truncated && data.contains("[200 of 300 matches; more of them are in "));
    let head = data.split('[').next().unwrap();
    assert!(kept.starts_with(head) && head.ends_with("10:a match\n"));
}

#[tokio::test]
async fn whoever_asks_for_fewer_gets_fewer_and_no_file() {
    let trial = Trial::with_file("a", "x\n".repeat(5));
    let (data, presentation) = trial.done("grep", json!({"pattern": "x", "limit": 2})).await;
    assert_eq!(data, "a\n1:x\n2:x\n[2 of 5 matches]");
    let metadata = presentation.metadata.unwrap();
    assert!(metadata.truncated && metadata.output_path.is_none());
}

#[tokio::test]
async fn a_long_line_is_shown_around_its_match() {
    let line = format!("{}needle{}", "é".repeat(5_000), "ü".repeat(5_000));
    let trial = Trial::with_file("a.js", line);
    let found = text(&trial, json!({"pattern": "needle"})).await;
    assert!(found.starts_with("a.js\n1:…éé") && found.ends_with("üü…\n"), "{found}");
    assert!(found.contains("éneedleü") && !found.contains('\u{fffd}'));
    assert!(found.len() < 330, "{}", found.len());
}

#[tokio::test]
async fn what_is_told_is_bounded_in_bytes() {
    let trial = Trial::with_file("a", format!("{}\n", "x".repeat(299)).repeat(250));
    let (data, presentation) = trial.done("grep", json!({"pattern": "x", "context": 20})).await;
    let data = data.as_str().unwrap();
    assert!((15_000..16_400).contains(&data.len()), "{}", data.len());
    assert!(presentation.metadata.unwrap().output_path.is_some());
}

#[tokio::test]
async fn the_first_in_path_order_are_kept_however_much_there_is() {
    let trial = Trial::new();
    let content = format!("{}\n", "y".repeat(250)).repeat(2_000);
    for file in 0..24 {
        trial.put(&format!("f{file:02}"), &content);
    }
    let (data, presentation) = trial.done("grep", json!({"pattern": "y+"})).await;
    let kept = std::fs::read_to_string(presentation.metadata.unwrap().output_path.unwrap()).unwrap();
    assert!(kept.len() < 5 * 1024 * 1024, "{}", kept.len());
    let files: Vec<_> = kept.lines().filter(|line| line.starts_with('f')).collect();
    let expected: Vec<_> = (0..files.len()).map(|file| format!("f{file:02}")).collect();
    assert!(files.len() > 5 && files == expected, "{files:?}");
    assert!(data.as_str().unwrap().contains(" of at least "));
}

#[tokio::test]
async fn ignored_hidden_linked_and_secret_files() {
    let trial = Trial::new();
    std::fs::write(trial.base.join("secret"), "x").unwrap();
    symlink("../secret", trial.root.join("link")).unwrap();
    symlink("a", trial.root.join("inner")).unwrap();
    for name in [".git/HEAD", ".env.example", "target/out", "id_rsa", "a"] {
        trial.put(name, "x\n");
    }
    trial.put(".gitignore", "target\n");
    assert_eq!(text(&trial, json!({"pattern": "^x"})).await, ".env.example\n1:x\n\na\n1:x\n");
    for (path, expected) in
        [("id_rsa", "not shown to agents"), ("link", "lies outside"), ("b", "does not exist")]
    {
        let error = trial.failed("grep", json!({"pattern": "x", "path": path})).await;
        assert!(error.contains(expected), "{error}");
    }
    assert_eq!(text(&trial, json!({"pattern": "x", "path": "inner"})).await, "inner\n1:x\n");
    assert_eq!(text(&trial, json!({"pattern": "x", "path": "target"})).await, "target/out\n1:x\n");
}

#[tokio::test]
async fn lines_that_end_as_on_windows_and_wide_texts_are_searched() {
    let trial = Trial::with_file("crlf", "one;\r\ntwo\r\n");
    let wide: Vec<u8> = "\u{feff}héllo\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    trial.put("wide", wide);
    assert_eq!(text(&trial, json!({"pattern": ";$"})).await, "crlf\n1:one;\n");
    assert_eq!(text(&trial, json!({"pattern": "^h.llo$"})).await, "wide\n1:héllo\n");
}

#[tokio::test]
async fn a_wrong_pattern_shows_where() {
    let trial = Trial::new();
    let error = trial.plan("grep", json!({"pattern": "foo(bar"})).await.unwrap_err();
    assert!(error.contains("foo(bar\n       ^") && error.contains("unclosed group"), "{error}");
    for (input, expected) in [
        (json!({"pattern": "a\\nb"}), "a match never spans lines"),
        (json!({"pattern": "(x{1000}){1000}"}), "size limit"),
        (json!({"pattern": ""}), "`pattern` must not be empty"),
        (json!({"pattern": "x", "glob": "{a"}), "field `glob` is not a valid glob pattern"),
        (json!({"pattern": "x", "limit": 0}), "field `limit` must be an integer from 1 to 200"),
        (json!({"pattern": "x", "context": -1}), "field `context` must be an integer from 0 to 20"),
    ] {
        let error = trial.failed("grep", input).await;
        assert!(error.starts_with("grep: ") && error.contains(expected), "{error}");
    }
}

#[tokio::test]
async fn a_cancelled_call_ends() {
    let trial = Trial::with_file("a", "");
    trial.cancel.cancel();
    assert_eq!(trial.failed("grep", json!({"pattern": "x"})).await, "grep: cancelled");
}

/// One element of a pattern and whether it may repeat: small enough to be matched by hand.
type Element = (char, bool);

fn matches_here(pattern: &[Element], text: &[char]) -> bool {
    match pattern {
        [] => true,
        [(wanted, repeats), rest @ ..] => {
            let fits = |c: &char| *wanted == '.' || wanted == c;
            (*repeats && matches_here(rest, text))
                || text.first().is_some_and(fits)
                    && (matches_here(rest, &text[1..]) || *repeats && matches_here(pattern, &text[1..]))
        }
    }
}

fn matches(pattern: &[Element], line: &str) -> bool {
    let text: Vec<char> = line.chars().collect();
    (0..=text.len()).any(|start| matches_here(pattern, &text[start..]))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn the_result_is_what_a_plain_search_finds(
        files in prop::collection::btree_map("[ab]{1,2}(/[ab]c)?", "([aéx ]{0,6}\n){0,8}[ax]{0,3}", 1..10),
        pattern in prop::collection::vec((prop::sample::select(vec!['a', 'é', 'x', '.']), any::<bool>()), 1..4),
    ) {
        let trial = Trial::new();
        let mut expected = String::new();
        let mut written: Vec<(&String, &String)> = files.iter().filter(|(name, _)| {
            let path = trial.root.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).is_ok() && !path.is_dir()
        }).collect();
        written.sort_by(|left, right| std::path::Path::new(left.0).cmp(std::path::Path::new(right.0)));
        for (name, content) in written {
            if std::fs::write(trial.root.join(name), content).is_err() {
                continue;
            }
            let lines: Vec<String> = content.lines().enumerate()
                .filter(|(_, line)| matches(&pattern, line))
                .map(|(index, line)| format!("{}:{line}\n", index + 1)).collect();
            if !lines.is_empty() {
                let apart = if expected.is_empty() { "" } else { "\n" };
                expected += &format!("{apart}{name}\n{}", lines.concat());
            }
        }
        let written: String = pattern.iter()
            .map(|(c, repeats)| if *repeats { format!("{c}*") } else { c.to_string() }).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let found = runtime.block_on(text(&trial, json!({"pattern": written})));
        prop_assert_eq!(found, expected);
    }
}

#[tokio::test]
async fn what_is_told_stays_within_sixteen_kilobytes() {
    let trial = Trial::with_file("a", format!("{}\n", "match ".repeat(40)).repeat(200));
    let (data, presentation) = trial.done("grep", json!({"pattern": "match"})).await;
    assert!(data.as_str().unwrap().len() <= 16_400, "{}", data.as_str().unwrap().len());
    let kept = std::fs::read_to_string(presentation.metadata.unwrap().output_path.unwrap()).unwrap();
    assert_eq!(kept.lines().count(), 201);
}

#[tokio::test]
async fn a_pattern_over_several_lines_is_told_how_to_search() {
    let trial = Trial::with_file("a", "x\ny\n");
    for pattern in ["x\\ny", "x\ny"] {
        let error = trial.plan("grep", json!({"pattern": pattern})).await.unwrap_err();
        assert!(error.contains("a match never spans lines") && error.contains("`context`"), "{error}");
    }
    assert_eq!(text(&trial, json!({"pattern": "x[^\\n]*"})).await, "a\n1:x\n");
    assert!(note(&trial, json!({"pattern": "(?s)x.y"})).await.contains("a match never spans lines"));
}

#[tokio::test]
async fn a_pattern_of_files_is_taken_as_it_is_meant() {
    let trial = Trial::new();
    trial.put("lib/a.py", "x = 1\n");
    trial.put("lib/b.md", "x\n");
    for glob in [json!("lib/*.py"), json!("*.py *.rs"), json!(["*.py"]), json!("[\"*.py\", \"*.rs\"]")] {
        let (data, _) = trial.done("grep", json!({"pattern": "x", "path": "lib", "glob": glob})).await;
        assert_eq!(data, "lib/a.py\n1:x = 1\n", "{glob}");
        let (data, _) = trial.done("glob", json!({"pattern": glob, "path": "lib"})).await;
        assert_eq!(data, "lib/a.py\n", "{glob}");
    }
    // Another agent's wish for numbers only is none for fewer matches.
    let (data, _) = trial.done("grep", json!({"pattern": "x = ", "count": true})).await;
    assert!(data.as_str().unwrap().starts_with("lib/a.py\n1:x = 1\n"), "{data}");
}
