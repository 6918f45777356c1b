//! `attache mcp`: what it shows, and what it does to the user's file.

use attache_testkit::binary::Home;
use serde_json::json;

use crate::stage::{call, home, open, server_path, shown, until_settled};

async fn run(home: &Home, words: &[&str]) -> (bool, String, String) {
    let output = home.command().arg("mcp").args(words).output().await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.success(), text(output.stdout), text(output.stderr))
}

fn config(home: &Home) -> String {
    std::fs::read_to_string(home.home().join("config.toml")).unwrap()
}

#[tokio::test]
async fn a_server_is_added_tested_used_and_removed() {
    let home = home("on *\n  call test_environment {}\n  ---\n  text \"done\"\n")
        .with_variable("MY_TOKEN", "canary");
    home.write_config("# my own words\n");
    let path = server_path();
    let path = path.to_str().unwrap();
    let (ok, out, err) =
        run(&home, &["add", "--env", "TOKEN=${MY_TOKEN}", "test", "python3", path, "good"]).await;
    assert!(ok && out.contains("attache mcp test test"), "{out}{err}");
    let text = config(&home);
    assert!(text.contains("# my own words") && text.contains("TOKEN = \"${MY_TOKEN}\""), "{text}");
    assert!(!text.contains("canary"), "{text}");
    let (ok, out, err) = run(&home, &["test", "test"]).await;
    assert!(
        ok && out.contains("test (stdio, of your configuration): ready")
            && out.contains("test_echo: The tool echo"),
        "{out}{err}"
    );
    let (_, out, _) = run(&home, &["list"]).await;
    assert!(out.contains("test (stdio, of your configuration): ready: 13 tools"), "{out}");
    let agent = home.start();
    agent.initialize().await;
    agent.client.always_choose("allow_once");
    let id = open(&agent, &home, &[]).await;
    until_settled(&agent, &id).await;
    assert!(shown(&call(&agent, &id, "go").await).contains("TOKEN=canary"));
    agent.finish(&home).await;
    let printed = home.command().arg("--print-config").output().await.unwrap();
    let printed = String::from_utf8(printed.stdout).unwrap();
    assert!(printed.contains("[mcp.test]") && !printed.contains("canary"), "{printed}");
    let (ok, _, err) = run(&home, &["add", "test", "x"]).await;
    assert!(!ok && err.contains("has a server `test` already"), "{err}");
    let (ok, _, err) = run(&home, &["remove", "tset"]).await;
    assert!(!ok && err.contains("did you mean `test`?"), "{err}");
    let (ok, ..) = run(&home, &["remove", "test"]).await;
    assert!(
        ok && !config(&home).contains("mcp") && config(&home).contains("# my own words"),
        "{}",
        config(&home)
    );
    let (_, out, _) = run(&home, &["list"]).await;
    assert!(out.contains("There are no MCP servers yet"), "{out}");
}

#[tokio::test]
async fn json_of_other_programs_and_addresses_are_taken() {
    let home = home("on *\n  text \"ok\"\n");
    let two = json!({ "mcpServers": { "a": { "command": "x", "args": ["-y"] }, "b": { "url": "https://b.test/mcp" } } });
    let (ok, out, err) = run(&home, &["add", "--json", &two.to_string()]).await;
    assert!(ok, "{out}{err}");
    let (ok, ..) = run(&home, &["add", "c", "--json", r#"{"command": "y"}"#]).await;
    assert!(ok);
    let (ok, _, err) = run(
        &home,
        &["add", "--transport", "sse", "--header", "Authorization: Bearer abc", "d", "https://d.test/sse"],
    )
    .await;
    assert!(ok && err.contains("${Authorization}") && !err.contains("abc"), "{err}");
    let text = config(&home);
    for part in [
        "[mcp.a]\ncommand = [\"x\", \"-y\"]",
        "[mcp.b]\nurl = \"https://b.test/mcp\"",
        "[mcp.c]\ncommand = [\"y\"]",
        "[mcp.d]\nurl = \"https://d.test/sse\"\ntransport = \"sse\"",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let (ok, _, err) = run(&home, &["add", "--json", "{"]).await;
    assert!(!ok && err.contains("not valid JSON"), "{err}");
}

#[tokio::test]
async fn servers_of_other_agents_are_imported_once() {
    let home = home("on *\n  text \"ok\"\n");
    let file = home.workspace().join("claude.json");
    std::fs::write(
        &file,
        json!({ "mcpServers": { "theirs": { "command": "x", "env": { "K": "canary" } } } }).to_string(),
    )
    .unwrap();
    let file = file.to_str().unwrap();
    let (ok, out, err) = run(&home, &["import", file]).await;
    assert!(
        !ok && out.contains("theirs (runs x")
            && !out.contains("canary")
            && err.contains("nothing was imported"),
        "{out}{err}"
    );
    let (ok, out, said) = run(&home, &["import", file, "--yes"]).await;
    assert!(ok && out.contains("Added 1 server"), "{out}");
    assert!(said.contains("the value of K of theirs is copied") && !said.contains("canary"), "{said}");
    let (ok, out, err) = run(&home, &["import", file, "--yes"]).await;
    assert!(ok && out.contains("nothing new") && err.contains("you have one"), "{out}{err}");
    assert_eq!(config(&home).matches("[mcp.theirs]").count(), 1);
}

#[tokio::test]
async fn a_mistake_in_the_configuration_fails_that_server_only() {
    let home = home("on *\n  text \"ok\"\n");
    home.write_config("[mcp.good]\ncommand = [\"true\"]\nenabled = false\n[mcp.bad]\ncomand = [\"x\"]\n[mcp.odd]\nurl = \"ftp://x\"\n[mcp.kind]\nurl = \"https://x\"\ntransport = \"htpp\"\n");
    let (ok, out, err) = run(&home, &["list"]).await;
    assert!(ok, "{err}");
    assert!(
        out.contains("config.toml:6: unknown key `mcp.bad.comand`, did you mean `mcp.bad.command`?"),
        "{out}"
    );
    assert!(
        out.contains("odd (http, of your configuration): failed: its url must be http or https, not ftp"),
        "{out}"
    );
    assert!(out.contains("did you mean \"http\"?"), "{out}");
    assert!(out.contains("good: switched off"), "{out}");
    let (ok, _, err) = run(&home, &["test", "kin"]).await;
    assert!(!ok && err.contains("did you mean `kind`?"), "{err}");
}

#[tokio::test]
async fn what_can_not_be_meant_is_refused_and_named() {
    let home = home("on *\n  text \"ok\"\n");
    for (words, why) in [
        (&["add", "a", "ftp://x/y"][..], "must begin with http:// or https://, not ftp://"),
        (&["add", "a", "--env", "KEY", "python3"], "--env takes NAME=VALUE, not `KEY`"),
        (&["add", "a", "--header", "KEY", "https://x"], "--header takes NAME:VALUE, not `KEY`"),
        (&["add", "a", "--transport", "sse", "python3"], "`python3` is a program"),
        (&["add", "a", "srv", "--env", "TOKEN=canary"], "attache mcp add --env TOKEN=… a srv …"),
        (&["add", "a", "https://x/mcp", "more"], "an address takes no arguments; remove `more`"),
        (&["add", "a", "https://x/mcp", "--env", "A=b"], "an address takes no variables"),
        (&["serve", "--listen", "7733"], "write 127.0.0.1:7733"),
    ] {
        let (ok, _, err) = run(&home, words).await;
        assert!(!ok && err.contains(why) && !err.contains("canary"), "{words:?}: {err}");
    }
    // As the page on servers has it; and a program's own options, once it is said that they are.
    let header =
        ["add", "docs", "https://example.org/mcp", "--header", "Authorization: Bearer ${DOCS_TOKEN}"];
    let (ok, out, err) = run(&home, &header).await;
    assert!(ok && config(&home).contains("Bearer ${DOCS_TOKEN}"), "{out}{err}");
    let (ok, out, err) = run(&home, &["add", "boxed", "--", "docker", "run", "--env", "A=b", "image"]).await;
    assert!(ok && config(&home).contains("\"--env\", \"A=b\""), "{out}{err}: {}", config(&home));
    for name in ["docs", "boxed"] {
        assert!(run(&home, &["remove", name]).await.0);
    }
    let (ok, out, err) =
        run(&home, &["add", "my server", "python3", server_path().to_str().unwrap(), "rich"]).await;
    assert!(ok && out.contains("attache mcp test 'my server'"), "{out}{err}");
    let (ok, out, err) = run(&home, &["test", "my server"]).await;
    assert!(ok && out.contains("ready: 8 tools, 2 prompts"), "{out}{err}");
    assert!(out.contains("/my_server:greet who [how]: Greets somebody"), "{out}");
    let (_, out, _) = run(&home, &["add", "gone", "python3", "/nowhere.py"]).await;
    assert!(out.contains("attache mcp test gone"), "{out}");
    let (_, out, _) = run(&home, &["list"]).await;
    assert!(
        out.contains("gone (stdio, of your configuration): failed: ") && !out.contains("tried again"),
        "{out}"
    );
}

/// What each program writes of a server called `name`, in its own words and at its usual place.
const OF_OTHERS: [(&str, &str); 10] = [
    (
        ".claude.json",
        r#"{"numStartups": 3, "mcpServers": {"claude": {"type": "stdio", "command": "x", "args": []}}}"#,
    ),
    (".config/Claude/claude_desktop_config.json", r#"{"mcpServers": {"desktop": {"command": "x"}}}"#),
    (".cursor/mcp.json", r#"{"mcpServers": {"cursor": {"url": "https://cursor.test/mcp"}}}"#),
    (
        ".config/Code/User/mcp.json",
        "{\n  // of the editor\n  \"servers\": {\"code\": {\"type\": \"http\", \"url\": \"https://code.test/mcp\"}},\n}",
    ),
    (".codeium/windsurf/mcp_config.json", r#"{"mcpServers": {"windsurf": {"command": "x"}}}"#),
    (
        ".gemini/settings.json",
        r#"{"theme": "x", "mcpServers": {"gemini": {"httpUrl": "https://gemini.test/mcp"}}}"#,
    ),
    (".qwen/settings.json", r#"{"mcpServers": {"qwen": {"command": "x"}}}"#),
    (
        ".config/zed/settings.json",
        "// Zed settings\n{\n  \"theme\": \"One\", // mine\n  \"context_servers\": {\"zed\": {\"source\": \"custom\", \"command\": \"x\", \"args\": [\"y\"]}},\n}",
    ),
    (
        ".config/opencode/opencode.jsonc",
        "{\n  // mine\n  \"mcp\": {\"opencode\": {\"type\": \"local\", \"command\": [\"x\", \"y\"], \"enabled\": true}}\n}",
    ),
    (".codex/config.toml", "model = \"m\"\n[mcp_servers.codex]\ncommand = \"x\"\nargs = [\"y\"]\n"),
];

#[tokio::test]
async fn servers_are_found_where_other_programs_keep_them() {
    let own = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    for (place, text) in OF_OTHERS {
        let file = own.path().join(place);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }
    let home = home("on *\n  text \"ok\"\n").with_variable("HOME", own.path().to_str().unwrap());
    let (ok, out, err) = run(&home, &["import", "--yes"]).await;
    assert!(ok && out.contains("Added 10 servers"), "{out}{err}");
    let (_, listed, _) = run(&home, &["list"]).await;
    let names =
        ["claude", "desktop", "cursor", "code", "windsurf", "gemini", "qwen", "zed", "opencode", "codex"];
    for (name, (place, _)) in names.into_iter().zip(OF_OTHERS) {
        assert!(
            out.lines().any(|line| line.starts_with(&format!("{name} (")) && line.contains(place)),
            "{name}: {out}"
        );
        assert!(listed.contains(&format!("{name} (")), "{name}: {listed}");
    }
    assert!(config(&home).contains("https://gemini.test/mcp"), "{}", config(&home));
}
