//! Servers that a project names: nothing of them runs before its user consents, and again when they change (S8,
//! S15).

use attache_testkit::binary::Home;
use serde_json::json;

use crate::stage::{call, home, open, server_path, shown, until_settled};

const SCRIPT: &str = "on \"go\"\n  call proj_echo {\"text\":\"x\"}\n  ---\n  text \"done\"\non \"net\"\n  call proj_connect {\"port\":PORT}\n  ---\n  text \"done\"\non *\n  text \"ok\"\n";

fn entry(mode: &str) -> String {
    json!({ "mcpServers": { "proj": { "command": "python3", "args": [server_path(), mode] } } }).to_string()
}

async fn trust(home: &Home) {
    let mut command = home.command();
    let output = command.args(["trust", "--yes"]).output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// What `/mcp` says in a new session.
async fn state(home: &Home, call_too: bool) -> (String, String) {
    let agent = home.start();
    agent.initialize().await;
    agent.client.always_choose("allow_once");
    let id = open(&agent, home, &[]).await;
    until_settled(&agent, &id).await;
    agent.prompt(&id, "hello").await.unwrap();
    let mark = agent.client.mark();
    agent.prompt(&id, "/mcp").await.unwrap();
    let text: String = agent
        .client
        .updates_since(mark, &id)
        .iter()
        .filter_map(|update| update["content"]["text"].as_str().map(str::to_owned))
        .collect();
    let result = if call_too { shown(&call(&agent, &id, "go").await) } else { String::new() };
    agent.finish(home).await;
    (text, result)
}

#[tokio::test]
async fn a_server_of_a_project_waits_for_consent_and_a_change_asks_again() {
    for file in [".mcp.json", ".cursor/mcp.json", ".vscode/mcp.json", ".attache/config.toml"] {
        let home = home(SCRIPT);
        let path = home.workspace().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let text = |mode: &str| match file {
            ".attache/config.toml" => {
                format!("[mcp.proj]\ncommand = [\"python3\", {}, \"{mode}\"]\n", json!(server_path()))
            }
            ".vscode/mcp.json" => entry(mode).replace("mcpServers", "servers"),
            _ => entry(mode),
        };
        std::fs::write(&path, text("good")).unwrap();
        let (before, _) = state(&home, false).await;
        assert!(
            before.contains(&format!("`proj` (of {file}): waiting for consent: attache trust ")),
            "{before}"
        );
        trust(&home).await;
        let (trusted, result) = state(&home, true).await;
        assert!(trusted.contains(&format!("`proj` (stdio, of {file}): ready")), "{trusted}");
        assert!(result.contains("echo: x"), "{result}");
        std::fs::write(&path, text("good --other")).unwrap();
        let (changed, _) = state(&home, false).await;
        assert!(changed.contains("waiting for consent"), "{changed}");
        let asked = home.command().arg("trust").output().await.unwrap();
        let asked = String::from_utf8(asked.stdout).unwrap();
        let lines: Vec<&str> = asked.lines().filter(|line| line.starts_with("MCP server proj ")).collect();
        assert!(lines.len() == 2 && !lines[0].contains("--other") && lines[1].contains("--other"), "{asked}");
    }
}

#[tokio::test]
async fn a_server_of_a_project_has_no_network_unless_it_says_so() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let home = home(&SCRIPT.replace("PORT", &port));
    for (network, expected) in [(None, "refused"), (Some(true), "connected")] {
        let mut server = json!({ "command": "python3", "args": [server_path(), "good"] });
        if let Some(network) = network {
            server["network"] = json!(network);
        }
        let text = json!({ "mcpServers": { "proj": server } }).to_string();
        std::fs::write(home.workspace().join(".mcp.json"), text).unwrap();
        trust(&home).await;
        let agent = home.start();
        agent.initialize().await;
        agent.client.always_choose("allow_once");
        let id = open(&agent, &home, &[]).await;
        until_settled(&agent, &id).await;
        let result = shown(&call(&agent, &id, "net").await);
        assert!(result.contains(expected), "{network:?}: {result}");
        agent.finish(&home).await;
    }
}

#[tokio::test]
async fn a_mistake_in_a_file_is_named_with_its_line_and_the_others_work() {
    let home = home(SCRIPT);
    let text = format!(
        "{{\"mcpServers\": {{\n\"broken\": {{\"command\": 5}},\n\"missing\": {{\"command\": \"pyhton3\"}},\n\"unset\": {{\"command\": \"x\", \"env\": {{\"A\": \"${{NO_SUCH_VARIABLE}}\"}}}},\n{}}}}}",
        entry("good").trim_start_matches("{\"mcpServers\":{").trim_end_matches("}}")
    );
    std::fs::write(home.workspace().join(".mcp.json"), text).unwrap();
    trust(&home).await;
    let (told, result) = state(&home, true).await;
    assert!(told.contains(".mcp.json:2: `command` must be a string"), "{told}");
    assert!(told.contains("there is no program `pyhton3` in the PATH, did you mean `python3`?"), "{told}");
    assert!(told.contains("NO_SUCH_VARIABLE is not set"), "{told}");
    assert!(result.contains("echo: x"), "{result}");
}

/// Whoever looks or consents hears what of it has mistakes.
#[tokio::test]
async fn mistakes_in_the_files_of_a_project_are_told() {
    let home = home(SCRIPT);
    std::fs::write(home.workspace().join(".mcp.json"), "{ \"mcpServers\": oops }").unwrap();
    std::fs::create_dir(home.workspace().join(".attache")).unwrap();
    std::fs::write(home.workspace().join(".attache/config.toml"), "[providers.x]\ndialect = \"script\"\n")
        .unwrap();
    let output = home.command().args(["mcp", "list"]).output().await.unwrap();
    let (said, told) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(
        told.contains("not used: .mcp.json:1: not valid JSON") && !said.contains("no MCP servers"),
        "{said}{told}"
    );
    let output = home.command().args(["trust", "--yes"]).output().await.unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let last = said.lines().last().unwrap();
    assert!(last.contains("except for what has mistakes: "), "{said}");
    assert!(last.contains("a project can't set `providers`") && last.contains(".mcp.json:1: "), "{said}");
}
