//! Turns that no client begins: webhooks, whose signature takes the place of the token, and times of a
//! schedule.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use attache_testkit::binary::Home;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::plain_http::{HttpAnswer, request};
use crate::server::Server;

const SECRET: &str = "0123456789abcdef0123456789abcdef";

const SCRIPT: &str = r#"
model paid price_input=1 price_output=1
on "Look at"*
  call bash {"command":"echo ran >> canary"}
  ---
  text "looked"
on "spend"
  usage input=2000000 output=1
  call glob {"pattern":"*.rs"}
  ---
  delay 60000ms
  text "Never said."
on "wait"
  stream 1000000 "tick " every 20ms
on *
  text "ok"
"#;

/// HMAC-SHA256 by its definition.
fn hmac(key: &str, text: &[u8]) -> String {
    let padded = |with: u8| -> Vec<u8> {
        let key = key.as_bytes().iter().copied().chain(std::iter::repeat(0)).take(64);
        key.map(|byte| byte ^ with).collect()
    };
    let inner = Sha256::digest([padded(0x36), text.to_vec()].concat());
    let outer = Sha256::digest([padded(0x5c), inner.to_vec()].concat());
    outer.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn now() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()).unwrap()
}

async fn served(config: &str) -> Server {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT).with_variable("HOOK_SECRET", SECRET);
    home.write_config(config);
    Server::of(home, &["--model", "script/paid"]).await
}

const HOOK: &str = "[webhooks.issues]\nsecret_env = \"HOOK_SECRET\"\nprompt = \"Look at {{issue.title}}\"\n";

async fn post(server: &Server, path: &str, timestamp: &str, signature: &str, body: &[u8]) -> HttpAnswer {
    let headers =
        [("authorization", ""), ("x-attache-timestamp", timestamp), ("x-attache-signature", signature)];
    let body = String::from_utf8(body.to_vec()).unwrap();
    request(&server.address, &server.token, ("POST", path), &headers, &body).await
}

/// As whoever knows the secret.
async fn signed(server: &Server, path: &str, body: &Value) -> HttpAnswer {
    let (timestamp, body) = (now().to_string(), body.to_string());
    let signature = hmac(SECRET, format!("{timestamp}.{body}").as_bytes());
    post(server, path, &timestamp, &format!("sha256={signature}"), body.as_bytes()).await
}

/// What was said in a session, once its turn is over.
async fn export(server: &Server, session: &str) -> String {
    server.wait_until_told(&format!("session {session} is done")).await;
    let agent = server.socket_client().await;
    let params = json!({ "sessionId": session, "format": "md" });
    let export = agent.client.expect("_attache/session/export", params).await;
    export["content"].as_str().unwrap().to_owned()
}

async fn sessions(server: &Server) -> usize {
    let agent = server.socket_client().await;
    agent.client.expect("session/list", json!({})).await["sessions"].as_array().unwrap().len()
}

#[tokio::test]
async fn a_signed_hook_begins_an_ordinary_session_in_which_nobody_is_asked() {
    let server = served(HOOK).await;
    let answer = signed(&server, "/hooks/issues", &json!({ "issue": { "title": "/compact #7" } })).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    let session = answer.json()["sessionId"].as_str().unwrap().to_owned();
    let said = export(&server, &session).await;
    assert!(said.contains("Look at /compact #7") && said.contains("looked"), "{said}");
    assert!(!server.home.workspace().join("canary").exists(), "a command ran unasked");
    server.wait_until_told(" hooks/issues POST /hooks/issues 202 ").await;
    // With an approval of its own it runs.
    let server = {
        server.stop().await;
        served(&format!("{HOOK}approval = \"all\"\n[serve]\naccess_log = \"off\"\n")).await
    };
    let answer = signed(&server, "/hooks/issues", &json!({ "issue": { "title": "it" } })).await;
    export(&server, answer.json()["sessionId"].as_str().unwrap()).await;
    assert_eq!(std::fs::read_to_string(server.home.workspace().join("canary")).unwrap(), "ran\n");
    server.stop().await;
}

#[tokio::test]
async fn what_is_not_signed_learns_nothing_and_begins_nothing() {
    let server = served(HOOK).await;
    let body = json!({ "issue": { "title": "x" } }).to_string();
    let sign = |timestamp: i64, key: &str, body: &str| {
        format!("sha256={}", hmac(key, format!("{timestamp}.{body}").as_bytes()))
    };
    let good = sign(now(), SECRET, &body);
    let (old, new) = (now() - 400, now() + 400);
    let mut refused = Vec::new();
    for (path, timestamp, signature, body) in [
        ("/hooks/issues", String::new(), String::new(), body.as_str()),
        ("/hooks/issues", now().to_string(), good.replace("sha256=", "sha1="), &body),
        ("/hooks/issues", now().to_string(), good[..70].to_owned(), &body),
        ("/hooks/issues", now().to_string(), sign(now(), "another secret of length", &body), &body),
        ("/hooks/issues", (now() - 1).to_string(), sign(now() + 5, SECRET, &body), &body),
        ("/hooks/issues", now().to_string(), sign(now(), SECRET, &body), "{}"),
        ("/hooks/issues", old.to_string(), sign(old, SECRET, &body), &body),
        ("/hooks/issues", new.to_string(), sign(new, SECRET, &body), &body),
        ("/hooks/issues", "soon".to_owned(), good.clone(), &body),
        ("/hooks/nobody", now().to_string(), good.clone(), &body),
    ] {
        let answer = post(&server, path, &timestamp, &signature, body.as_bytes()).await;
        assert_eq!(answer.status, 401, "{path} {timestamp} {signature}: {answer:?}");
        refused.push(answer.body);
    }
    refused.dedup();
    assert_eq!(refused.len(), 1, "{refused:?}");
    // The token of the server is no signature, and foreign hosts stay outside.
    let token = format!("Bearer {}", server.token);
    for (method, headers, expected) in [
        ("POST", vec![("authorization", token.as_str())], 401),
        ("GET", vec![("authorization", token.as_str())], 401),
        ("GET", vec![("authorization", "")], 401),
        ("POST", vec![("host", "evil.example")], 403),
        ("POST", vec![("origin", "http://evil.example")], 403),
    ] {
        let answer = server.request((method, "/hooks/issues"), &headers, &body).await;
        assert_eq!(answer.status, expected, "{method} {headers:?}: {answer:?}");
    }
    assert_eq!(sessions(&server).await, 0);
    server.stop().await;
}

#[tokio::test]
async fn a_hook_is_received_once_and_says_what_its_body_lacks() {
    let server = served(HOOK).await;
    let (timestamp, body) = (now().to_string(), json!({ "issue": { "title": "x" } }).to_string());
    let signature = format!("sha256={}", hmac(SECRET, format!("{timestamp}.{body}").as_bytes()));
    let send = async || post(&server, "/hooks/issues", &timestamp, &signature, body.as_bytes()).await;
    assert_eq!(send().await.status, 202);
    let again = send().await;
    assert!(again.status == 409 && again.body.contains("received already"), "{again:?}");
    let lacking = signed(&server, "/hooks/issues", &json!({ "issue": {} })).await;
    assert!(lacking.status == 400 && lacking.body.contains("no `issue.title`"), "{lacking:?}");
    let long = signed(&server, "/hooks/issues", &json!({ "x": "x".repeat(1024 * 1024) })).await;
    assert_eq!(long.status, 413, "{long:?}");
    assert_eq!(sessions(&server).await, 1);
    // A signature from before the server began may have been used before it began.
    let before = now() - 100;
    let signature = format!("sha256={}", hmac(SECRET, format!("{before}.{body}").as_bytes()));
    let answer = post(&server, "/hooks/issues", &before.to_string(), &signature, body.as_bytes()).await;
    assert!(answer.status == 401 && answer.body.contains("sign it anew"), "{answer:?}");
    server.stop().await;
}

/// Posts whose bodies never come; they are held as long as this lives.
async fn slow_posts(server: &Server, path: &str, count: usize) -> Vec<TcpStream> {
    let mut held = Vec::new();
    for number in 0..count {
        let mut stream = TcpStream::connect(&server.address).await.unwrap();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\
             x-attache-timestamp: {}\r\nx-attache-signature: sha256={}\r\n\r\n{{",
            server.address,
            now(),
            format!("{number:02x}").repeat(32),
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        held.push(stream);
    }
    // Until each has its place: nothing is said of that.
    tokio::time::sleep(Duration::from_millis(500)).await;
    held
}

#[tokio::test]
async fn slow_posts_of_others_keep_no_hook_out_for_long() {
    let server = served(HOOK).await;
    let title = |title: &str| json!({ "issue": { "title": title } });
    // Those of hooks that there are not take no place of those that there are.
    let strangers = slow_posts(&server, "/hooks/nobody", 24).await;
    let began = Instant::now();
    let answer = signed(&server, "/hooks/issues", &title("a")).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    // Nor do they keep anybody from anything else.
    let held = slow_posts(&server, "/hooks/issues", 24).await;
    assert_eq!(sessions(&server).await, 1);
    assert_eq!(server.request(("GET", "/healthz"), &[], "").await.status, 200);
    // All places of this hook are taken, and given back soon: a body has ten seconds.
    let full = signed(&server, "/hooks/issues", &title("b")).await;
    assert_eq!(full.status, 503, "{full:?}");
    let mut answered = None;
    for number in 0..60 {
        let answer = signed(&server, "/hooks/issues", &title(&format!("c{number}"))).await;
        if answer.status == 202 {
            answered = Some(number);
            break;
        }
        assert_eq!(answer.status, 503, "{answer:?}");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    assert!(answered.is_some(), "slow posts hold their places for ever");
    drop((strangers, held));
    server.stop().await;
}

#[tokio::test]
async fn a_turn_ends_at_its_cost_limit() {
    let server =
        served("[webhooks.dear]\nsecret_env = \"HOOK_SECRET\"\nprompt = \"spend\"\nmax_cost = 1.5\n").await;
    let answer = signed(&server, "/hooks/dear", &json!({})).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    server.wait_until_told("ended: it has cost $2.0000, and max_cost is $1.5").await;
    server.stop().await;
}

#[tokio::test]
async fn so_many_turns_of_a_hook_go_on_at_once_and_no_more() {
    let server = served(
        "[serve]\ndrain_seconds = 0\n[webhooks.long]\nsecret_env = \"HOOK_SECRET\"\nprompt = \"wait\"\n",
    )
    .await;
    for number in 0..4 {
        assert_eq!(signed(&server, "/hooks/long", &json!({ "n": number })).await.status, 202);
    }
    let refused = signed(&server, "/hooks/long", &json!({ "n": 4 })).await;
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("30")), "{refused:?}");
    server.stop().await;
}

#[tokio::test]
async fn a_schedule_begins_turns_and_tells_what_it_missed() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    // An hour ago somebody saw to it last.
    let seen = (now() - 3_600) * 1_000;
    std::fs::write(home.home().join("schedule.json"), json!({ "minute": seen }).to_string()).unwrap();
    home.write_config(
        "[[schedule]]\nname = \"minute\"\ncron = \"* * * * *\"\nprompt = \"hello\"\nagent = \"plan\"\n",
    );
    let server = Server::of(home, &[]).await;
    server.wait_until_told("did not take place: no server ran then").await;
    // A second server of the home leaves it to the first.
    let mut second = server.home.command();
    second.args(["serve", "--listen", "127.0.0.1:0"]).stderr(std::process::Stdio::piped());
    let mut second = second.spawn().unwrap();
    let mut lines =
        tokio::io::AsyncBufReadExt::lines(tokio::io::BufReader::new(second.stderr.take().unwrap()));
    while !lines
        .next_line()
        .await
        .unwrap()
        .unwrap()
        .contains("another server of this home keeps the schedule")
    {}
    second.kill().await.unwrap();
    // Within a minute of the clock.
    let told = async {
        loop {
            let told = server.told.lock().unwrap().iter().find_map(|line| {
                let (_, rest) = line.split_once("schedule \"minute\": session ")?;
                rest.strip_suffix(" begins").map(str::to_owned)
            });
            match told {
                Some(session) => return session,
                None => tokio::time::sleep(std::time::Duration::from_millis(50)).await,
            }
        }
    };
    let session = tokio::time::timeout(std::time::Duration::from_secs(150), told).await.expect("no run");
    assert!(export(&server, &session).await.contains("hello"));
    // Who opens a session is told of what was missed.
    let agent = server.socket_client().await;
    agent.new_session(&server.home.workspace()).await;
    let heard = async {
        while !agent
            .client
            .received()
            .iter()
            .any(|message| message.to_string().contains("did not take place"))
        {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(crate::server::PATIENCE, heard).await.expect("nobody is told");
    server.stop().await;
}

#[tokio::test]
async fn mistakes_about_triggers_name_file_line_and_key_and_never_a_secret() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT).with_variable("SHORT", "hunter2");
    let schedule = "[[schedule]]\nname = \"a\"\nprompt = \"x\"\n";
    let hook = "[webhooks.a]\nprompt = \"x\"\n";
    for (config, expected) in [
        (format!("{schedule}cron = \"61 * * * *\"\n"), "`schedule[1].cron` \"61\" is no minute"),
        (schedule.to_owned(), "`schedule[1]` needs cron"),
        (
            format!("{schedule}cron = \"@daily\"\n{schedule}cron = \"@daily\"\n"),
            "`schedule[2].name` \"a\" is there twice",
        ),
        (format!("{schedule}cron = \"@daily\"\nmax_cost = 0\n"), "`schedule[1].max_cost`"),
        (format!("{schedule}cron = \"@daily\"\napproval = \"some\"\n"), "`schedule[1].approval`"),
        (format!("{schedule}cron = \"@daily\"\nworkspace = \"/nowhere\"\n"), "`schedule[1].workspace`"),
        (format!("{schedule}cron = \"@daily\"\nworkspce = \"/\"\n"), "workspce"),
        (format!("{hook}secret_env = \"NOT_SET\"\n"), "`webhooks.a.secret_env`: NOT_SET is not set"),
        (
            format!("{hook}secret_env = \"SHORT\"\n"),
            "`webhooks.a.secret_env`: what SHORT holds is shorter than 16",
        ),
        (format!("{hook}secret_env = \"hunter2-hunter2\"\n"), "`webhooks.a.secret_env`"),
        (hook.to_owned(), "`webhooks.a` needs secret_env"),
        (
            "[webhooks.a]\nsecret_env = \"SHORT\"\nprompt = \"{{x\"\n".to_owned(),
            "`webhooks.a.prompt` has `{{` without",
        ),
        (format!("{hook}secret_env = \"SHORT\"\nwindow_seconds = 0\n"), "`webhooks.a.window_seconds`"),
    ] {
        home.write_config(&config);
        let output = home.command().args(["serve", "--listen", "127.0.0.1:0"]).output().await.unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{config}: {told}");
        assert!(told.contains("config.toml:") && told.contains(expected), "{config}: {told}");
        assert!(!told.contains("hunter2"), "{told}");
    }
}
