//! Sessions that the programs themselves have written a moment ago: each runs here without a person, with a
//! scripted model of this machine, does one call and says what came of it.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command};

use super::*;

/// Ends with the test.
struct Model {
    process: Child,
    port: u16,
}

impl Model {
    fn start() -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/foreign/model.py");
        let mut command = Command::new("python3");
        let mut process =
            command.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("python3");
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { process, port: line.trim().parse().unwrap() }
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        self.process.wait().expect("the model ends with its input");
    }
}

fn peer(name: &str) -> PathBuf {
    let peers = std::env::var_os("TEST_PEERS").expect("TEST_PEERS is not set: run cargo xtask test");
    PathBuf::from(peers).join(name).join("node_modules")
}

/// Runs a program in the workspace as the user of this home, and nothing of the machine's own user with it.
fn run(moving: &Moving, program: &Path, arguments: &[&str], variables: &[(&str, &str)]) {
    let own = moving.home.home().join("user");
    let mut command = Command::new(program);
    command.args(arguments).env_clear().current_dir(moving.home.workspace()).stdin(Stdio::null());
    command.env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", &own).env("LANG", "C.UTF-8");
    let output = command.envs(variables.iter().copied()).output().unwrap();
    let told = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success(), "{program:?}: {}", told.concat());
    assert!(told.concat().contains("It said hello."), "{program:?}: {}", told.concat());
}

/// What was said, done and used stands in the session, in the directory that the program worked in.
async fn is_taken_over(moving: &Moving, agent: &str, prompt: &str, call: &str) {
    let listed = moving.import(&[agent, "--json"]).await;
    let listed: Value = serde_json::from_str(&listed.answer).unwrap_or_else(|_| panic!("{}", listed.told));
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
    let said = moving.import(&[agent, "--all"]).await;
    assert_eq!(said.code, Some(0), "{}", said.told);
    let lines = moving.export(agent).await;
    let outline = outline(&lines);
    let expected = [&format!("text {prompt}"), "step-start", call, "step-start", "text It said hello."];
    let is_it = outline.len() == expected.len()
        && outline.iter().zip(expected).all(|(line, expected)| line.starts_with(expected));
    assert!(is_it, "{outline:#?}");
    assert!(outline[2].contains("output-available"), "{outline:#?}");
    let session = &data(&lines, "session")[0];
    assert_eq!(session["workspace_root"], json!(moving.home.workspace().canonicalize().unwrap()));
    assert_eq!((&session["prompt_tokens"], &session["completion_tokens"]), (&json!(20), &json!(10)));
    let went_on = moving.run(&["chat", "-p", "--resume", session["id"].as_str().unwrap(), "and then?"]).await;
    assert_eq!((went_on.code, went_on.answer.trim()), (Some(0), "Goes on."), "{}", went_on.told);
}

#[tokio::test]
async fn codex_itself() {
    let (moving, model) = (Moving::new(), Model::start());
    std::fs::create_dir(moving.place(".codex")).unwrap();
    let program = peer("codex").join("@openai/codex/vendor/x86_64-unknown-linux-musl/bin/codex");
    let provider = format!(
        "model_providers.t={{name=\"t\",base_url=\"http://127.0.0.1:{}/v1\",env_key=\"OPENAI_API_KEY\",wire_api=\"responses\"}}",
        model.port
    );
    let how = ["exec", "--skip-git-repo-check", "--sandbox", "danger-full-access", "-c", "model_provider=t"];
    let arguments = [&how[..], &["-c", &provider, "-m", "m1", "say hello"]].concat();
    run(&moving, &program, &arguments, &[("OPENAI_API_KEY", "k")]);
    is_taken_over(&moving, "codex", "say hello", "call echo hello").await;
}

#[tokio::test]
async fn goose_itself() {
    let (moving, model) = (Moving::new(), Model::start());
    let program = peer("goose").join("@aaif/goose-binary-linux-x64/bin/goose");
    let host = format!("http://127.0.0.1:{}", model.port);
    let variables = [
        ("GOOSE_PROVIDER", "openai"),
        ("GOOSE_MODEL", "m1"),
        ("GOOSE_MODE", "auto"),
        ("GOOSE_DISABLE_KEYRING", "1"),
        ("OPENAI_API_KEY", "k"),
        ("OPENAI_HOST", &host),
    ];
    run(&moving, &program, &["run", "--with-builtin", "developer", "-t", "say hello"], &variables);
    is_taken_over(&moving, "goose", "say hello", "call echo hello").await;
}

#[tokio::test]
async fn opencode_itself() {
    let (moving, model) = (Moving::new(), Model::start());
    let program = peer("opencode").join("opencode-linux-x64/bin/opencode");
    let provider = json!({
        "npm": "@ai-sdk/openai-compatible", "models": { "m1": {} },
        "options": { "baseURL": format!("http://127.0.0.1:{}/v1", model.port), "apiKey": "k" },
    });
    let config =
        json!({ "model": "t/m1", "small_model": "t/m1", "provider": { "t": provider }, "autoupdate": false });
    std::fs::write(moving.home.workspace().join("opencode.json"), config.to_string()).unwrap();
    let variables = [("OPENCODE_DISABLE_MODELS_FETCH", "1"), ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1")];
    run(&moving, &program, &["run", "hello"], &variables);
    is_taken_over(&moving, "opencode", "hello", "call echo hello").await;
}

#[tokio::test]
async fn gemini_itself() {
    let (moving, model) = (Moving::new(), Model::start());
    let settings = json!({ "security": { "auth": { "selectedType": "gemini-api-key" } }, "general": { "disableAutoUpdate": true } });
    moving.put(".gemini/settings.json", &settings.to_string());
    let program = peer("gemini").join("@google/gemini-cli/bundle/gemini.js");
    let address = format!("http://127.0.0.1:{}", model.port);
    let how = ["-m", "gemini-2.5-flash", "--yolo", "--skip-trust", "-p", "say hello"];
    let arguments = [&[program.to_str().unwrap()], &how[..]].concat();
    let variables = [("GEMINI_API_KEY", "k"), ("GOOGLE_GEMINI_BASE_URL", address.as_str())];
    run(&moving, Path::new("node"), &arguments, &variables);
    is_taken_over(&moving, "gemini", "say hello", "call list_directory `.`").await;
}
