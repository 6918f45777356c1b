//! Agents that run as processes of this machine: held in the sandbox, loaded again when they change, and
//! scripts that are ACP agents themselves.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use attache_testkit::binary::Home;
use attache_testkit::client::TestClient;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::peer::*;

/// An agent of pydantic-ai that does as it is told.
const AGENT: &str = r#"
from pydantic_ai import Agent
from pydantic_ai.models.function import FunctionModel

def planted(path):
    try:
        with open(path, "w") as file:
            file.write("planted")
        return "planted"
    except OSError as error:
        return f"refused: {type(error).__name__}"

async def model(messages, info):
    deed, _, rest = messages[-1].parts[-1].content.partition(" ")
    yield planted(rest) if deed == "plant" else f"one {deed}"

agent = Agent(FunctionModel(stream_function=model))
"#;

/// A graph with a fake chat model.
const GRAPH: &str = r#"
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult

class Fake(BaseChatModel):
    @property
    def _llm_type(self):
        return "fake"

    def _generate(self, messages, stop=None, run_manager=None, **named):
        said = AIMessage("one " + messages[-1].text)
        return ChatResult(generations=[ChatGeneration(message=said)])

agent = create_agent(Fake(), [])
"#;

/// A folder with the module `mine`, and the entry that names it.
fn module(text: &str, more: &str) -> (TempDir, String) {
    // Temporary files of others are not seen from within the sandbox.
    let folder = tempfile::tempdir_in(peers()).unwrap();
    std::fs::write(folder.path().join("mine.py"), text).unwrap();
    let entry = format!(
        "backend = \"python\"\nmodule = \"mine:agent\"\ndirectory = {}\npython = \"python3\"\n\
         env = {{ PYTHONPATH = {} }}\n{more}",
        json!(folder.path()),
        json!(packages()),
    );
    (folder, entry)
}

fn packages() -> PathBuf {
    python_agents().join("python")
}

/// Within the workspace it may write, elsewhere not.
async fn is_held(home: &Home, elsewhere: &Path) {
    let (agent, session) = opened(home).await;
    let outside = elsewhere.join("planted");
    let said = told(&agent, &session, &format!("plant {}", outside.display())).await;
    assert!(said.contains("refused: "), "{said}");
    assert!(!outside.exists());
    let inside = home.workspace().join("planted");
    let said = told(&agent, &session, &format!("plant {}", inside.display())).await;
    assert!(said.ends_with("planted"), "{said}");
    assert_eq!(std::fs::read_to_string(&inside).unwrap(), "planted");
    // Neither what attache keeps.
    let kept = home.home().join("planted");
    told(&agent, &session, &format!("plant {}", kept.display())).await;
    assert!(!kept.exists());
    agent.finish(home).await;
    assert_eq!(home.orphans(), []);
}

#[tokio::test]
async fn a_python_agent_in_the_sandbox_writes_nowhere_but_in_the_workspace() {
    let (folder, entry) = module(AGENT, "sandbox = true\n");
    is_held(&home_with(&entry, ""), folder.path()).await;
}

#[tokio::test]
async fn an_acp_agent_in_the_sandbox_writes_nowhere_but_in_the_workspace() {
    let elsewhere = tempfile::tempdir_in(peers()).unwrap();
    is_held(&home_with(&format!("{}sandbox = true\n", sdk_entry()), ""), elsewhere.path()).await;
}

#[tokio::test]
async fn without_the_sandbox_they_write_where_their_user_may() {
    let (folder, entry) = module(AGENT, "");
    for home in [home_with(&entry, ""), home_with(&sdk_entry(), "")] {
        let (agent, session) = opened(&home).await;
        let outside = folder.path().join("planted");
        let said = told(&agent, &session, &format!("plant {}", outside.display())).await;
        assert!(said.ends_with("planted") && outside.exists(), "{said}");
        std::fs::remove_file(&outside).unwrap();
        agent.finish(&home).await;
    }
}

#[tokio::test]
async fn a_watched_module_is_loaded_again_when_it_changes() {
    let (folder, entry) = module(AGENT, "watch = true\n");
    let home = home_with(&entry, "");
    let (agent, session) = opened(&home).await;
    assert_eq!(told(&agent, &session, "hi").await, "one hi");
    let has = |text: &'static str| move |message: &Value| message.to_string().contains(text);
    let file = folder.path().join("mine.py");
    std::fs::write(&file, AGENT.replace("f\"one", "f\"two")).unwrap();
    agent.client.wait_for("the new module", has("was loaded again")).await;
    assert_eq!(told(&agent, &session, "hi").await, "two hi");
    // One that can't be loaded is told, and its repair is taken.
    std::fs::write(&file, "raise RuntimeError('half written')\n").unwrap();
    let notice = agent.client.wait_for("a notice", has("half written")).await;
    assert!(notice.to_string().contains("Traceback"), "{notice}");
    let error = agent.prompt(&session, "hi").await.unwrap_err();
    assert!(error.message.contains("half written"), "{error:?}");
    std::fs::write(&file, AGENT.replace("f\"one", "f\"three")).unwrap();
    let mut said = String::new();
    for _ in 0..600 {
        if let Ok(answer) = agent.prompt(&session, "hi").await {
            said = agent.client.agent_text(&session);
            assert_eq!(answer["stopReason"], "end_turn");
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(said.ends_with("three hi"), "{said}");
    agent.finish(&home).await;
}

/// Starts a script of a user's as an ACP agent, as an editor would.
async fn serves_itself(text: &str) {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), "");
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("app.py");
    let text = format!("{text}\nfrom attache_agents import run_acp\n\nrun_acp(agent, name=\"mine\")\n");
    std::fs::write(&script, text).unwrap();
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python");
    let path = std::env::join_paths([ours, packages()]).unwrap();
    let mut command = home.program("python3");
    command.arg(&script).env("PYTHONPATH", path).env("ATTACHE_BIN", home.binary());
    command.env("XDG_CACHE_HOME", folder.path().join("cache")).env("PYTHONDONTWRITEBYTECODE", "1");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    let mut process = command.spawn().unwrap();
    let client = TestClient::connect(process.stdout.take().unwrap(), process.stdin.take().unwrap());
    let hello = client.expect("initialize", json!({ "protocolVersion": 1, "clientCapabilities": {} })).await;
    assert_eq!(hello["agentInfo"]["name"], "attache");
    let new = json!({ "cwd": home.workspace(), "mcpServers": [] });
    let session = client.expect("session/new", new).await["sessionId"].as_str().unwrap().to_owned();
    for word in ["first", "second"] {
        let blocks = json!([{ "type": "text", "text": word }]);
        let answer = client.expect("session/prompt", prompt(&session, blocks)).await;
        assert_eq!(answer["stopReason"], "end_turn");
    }
    assert_eq!(client.agent_text(&session), "one firstone second");
    client.end_input();
    assert!(process.wait().await.unwrap().success());
}

#[tokio::test]
async fn a_script_with_an_agent_of_pydantic_ai_is_an_acp_agent() {
    serves_itself(AGENT).await;
}

#[tokio::test]
async fn a_script_with_a_graph_is_an_acp_agent() {
    serves_itself(GRAPH).await;
}

/// Calls itself a Python of long ago.
const OLD_PYTHON: &str = r#"#!/bin/sh
shift 2
code=$1
shift
exec python3 -u -c "import sys; sys.version_info = (3, 8, 0, 'final', 0)
$code" "$@"
"#;

#[tokio::test]
async fn what_keeps_an_agent_from_loading_is_told_with_what_helps_and_without_secrets() {
    use std::os::unix::fs::PermissionsExt;

    let place = tempfile::tempdir().unwrap();
    let old = place.path().join("old-python");
    std::fs::write(&old, OLD_PYTHON).unwrap();
    std::fs::set_permissions(&old, std::fs::Permissions::from_mode(0o755)).unwrap();
    let key = "sk-4f9a1c77d0e85b2ab6f13c0d";
    let broken = format!("def made():\n    raise RuntimeError('no access with {key}')\nmade()\n");
    let python = format!("python = {}\n", json!(old));
    let none = String::new();
    let cases: [(&str, &str, &String, &str, &[&str]); 5] = [
        ("broken", &broken, &none, "", &["`mine` fails when it is imported: RuntimeError: no access"]),
        ("no framework", AGENT, &none, "bare", &["-m pip install 'pydantic-ai-slim>=2'", "or set `python`"]),
        ("another package", "import no_such_package_x", &none, "", &["pip install 'no_such_package_x'"]),
        ("old", AGENT, &python, "", &["is Python 3.8; agents need 3.10 or newer", "Set `python`"]),
        ("no agent", "agent = 7", &none, "", &["`mine:agent` is no agent but a int"]),
    ];
    for (name, text, more, packages, told) in cases {
        let (_folder, mut entry) = module(text, "");
        if !more.is_empty() {
            entry = entry.replace("python = \"python3\"\n", more);
        }
        if packages == "bare" {
            entry = entry
                .lines()
                .filter(|line| !line.starts_with("env"))
                .fold(String::new(), |text, line| text + line + "\n");
        }
        let home = home_with(&entry, "");
        let (agent, session) = opened(&home).await;
        let is_notice = |message: &Value| message["params"]["update"].to_string().contains(told[0]);
        let notice = agent.client.wait_for(name, is_notice).await.to_string();
        let error = agent.prompt(&session, "hi").await.unwrap_err();
        for words in told {
            assert!(notice.contains(words) && error.message.contains(words), "{name}: {notice}\n{error:?}");
        }
        if name == "broken" {
            let details = error.data.as_ref().unwrap()["details"].as_str().unwrap();
            for told in [&notice, details] {
                assert!(told.contains("Traceback") && told.contains("in made"), "{told}");
            }
        }
        let everything = format!("{notice}{error:?}{}", home.all_logs());
        assert!(!everything.contains(key), "{name}: {everything}");
        agent.finish(&home).await;
    }
}
