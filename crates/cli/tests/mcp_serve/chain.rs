//! attache as the MCP server of another attache, whose own client asks it.

use attache_testkit::binary::Home;
use attache_testkit::client::Reply;
use serde_json::{Value, json};

use crate::stage::{HttpServer, home};

/// A model that asks the other agent.
const ASKS: &str =
    "on \"go\"\n  call other_ask {\"prompt\":\"write it\"}\n  ---\n  text \"done\"\non *\n  text \"ok\"\n";

/// The last that a client was shown of the call.
fn last_of(updates: &[Value]) -> String {
    let of_call = |update: &&Value| update["sessionUpdate"] == "tool_call_update";
    updates.iter().rfind(of_call).map(Value::to_string).unwrap_or_default()
}

/// One prompt of a person who allows everything, to an agent that uses `server`.
async fn go(asking: &Home, server: Value) -> (String, Vec<Value>) {
    let agent = asking.start();
    let params = json!({ "protocolVersion": 1, "clientCapabilities": { "elicitation": { "form": {} } } });
    agent.client.expect("initialize", params).await;
    agent.client.set_policy(|method, params| match method {
        "elicitation/create" => {
            Reply::Result(json!({ "action": "accept", "content": { "decision": "allow_once" } }))
        }
        _ => Reply::choose("allow_once", params),
    });
    let params = json!({ "cwd": asking.workspace(), "mcpServers": [server] });
    let session = agent.client.expect("session/new", params).await["sessionId"].as_str().unwrap().to_owned();
    let mark = agent.client.mark();
    agent.prompt(&session, "go").await.unwrap();
    let updates = agent.client.updates_since(mark, &session);
    agent.finish(asking).await;
    (last_of(&updates), updates)
}

#[tokio::test]
async fn one_agent_asks_another_over_stdio_and_its_person_allows() {
    let (asked, asking) = (home(), Home::new(env!("CARGO_BIN_EXE_attache"), ASKS));
    let server = json!({
        "name": "other",
        "command": asked.binary(),
        "args": ["mcp", "serve", "--config", asked.home().join("config.toml")],
        "env": [{ "name": "ATTACHE_HOME", "value": asked.home() }],
    });
    // Its own home has to be writable for it: it is held like any server otherwise.
    asking.write_config("sandbox = \"off\"");
    let (last, updates) = go(&asking, server).await;
    assert!(last.contains("That was it.") && last.contains("\"completed\""), "{last}");
    // It worked where it was started: in the workspace of the one that asked.
    assert_eq!(std::fs::read_to_string(asking.workspace().join("b.txt")).unwrap(), "first\n");
    let live = updates.iter().filter(|update| update["status"] == "in_progress").map(Value::to_string);
    assert!(live.collect::<String>().contains("b.txt"), "what the other one does is seen");
    assert_eq!(asked.orphans(), []);
}

#[tokio::test]
async fn one_agent_asks_another_over_http() {
    let (asked, asking) = (home(), Home::new(env!("CARGO_BIN_EXE_attache"), ASKS));
    let served = HttpServer::start(&asked).await;
    let server = json!({
        "type": "http",
        "name": "other",
        "url": served.url(),
        "headers": [{ "name": "Authorization", "value": format!("Bearer {}", served.token) }],
    });
    let (last, _) = go(&asking, server).await;
    assert!(last.contains("That was it.") && last.contains("\"completed\""), "{last}");
    assert_eq!(std::fs::read_to_string(asked.workspace().join("b.txt")).unwrap(), "first\n");
    served.stop(&asked).await;
}
