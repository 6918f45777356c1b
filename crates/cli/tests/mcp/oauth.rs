//! Logging in to MCP servers: the official SDK's authorization server and oauth2-mock-server, pinned in
//! `peers/`, through the binary, with the test as the user's browser.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use attache_testkit::binary::{Agent, Home};
use attache_testkit::client::Reply;
use attache_testkit::desktop::Desktop;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::browser::{ask, browse, get};
use crate::stage::{call, home, open, shown};

/// A server behind a login, with its authorization server. Ends with the test.
struct OAuthPeer {
    _child: Child,
    resource: String,
    issuer: String,
    control: String,
}

impl OAuthPeer {
    async fn start(mode: &str) -> Self {
        let peers = std::env::var_os("TEST_PEERS").expect("TEST_PEERS is not set: run cargo xtask test");
        let script = PathBuf::from(peers).join("mcp-oauth/serve.mjs");
        let mut command = Command::new("node");
        command.arg(script).arg(mode).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).await.unwrap();
        let told: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
        let text = |key: &str| told[key].as_str().unwrap().to_owned();
        Self { _child: child, resource: text("resource"), issuer: text("issuer"), control: text("control") }
    }

    async fn set(&self, knobs: Value) {
        assert_eq!(ask("POST", &self.control, &knobs.to_string()).await.status(), 200);
    }

    async fn counts(&self) -> Value {
        serde_json::from_str(&get(&self.control).await.body).unwrap()
    }

    async fn count(&self, name: &str) -> u64 {
        self.counts().await[name].as_u64().unwrap()
    }

    /// A home whose configuration has the server as `notes`.
    fn home(&self, more: &str) -> Home {
        let script = "on *\n  call notes_note {}\n  ---\n  text \"done\"\n";
        let home = home(script).with_variable("ATTACHE_LOG", "trace");
        home.write_config(&format!("[mcp.notes]\nurl = \"{}\"\n{more}", self.resource));
        home
    }
}

async fn run(home: &Home, words: &[&str]) -> (bool, String, String) {
    let output = home.command().args(words).output().await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.success(), text(output.stdout), text(output.stderr))
}

/// `attache mcp login`, up to the address that it wants opened.
struct Login {
    child: Child,
    said: BufReader<tokio::process::ChildStderr>,
    log: String,
    address: String,
}

impl Login {
    async fn begin(home: &Home, name: &str) -> Self {
        let mut command = home.command();
        command.args(["mcp", "login", "--no-browser", name]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut log = String::new();
        loop {
            let mut line = String::new();
            let count = said.read_line(&mut line).await.unwrap();
            if count == 0 || line.starts_with("http") {
                return Self { child, said, log, address: line.trim().to_owned() };
            }
            log.push_str(&line);
        }
    }

    async fn end(mut self) -> (bool, String, String) {
        let mut out = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut out).await.unwrap();
        self.said.read_to_string(&mut self.log).await.unwrap();
        (self.child.wait().await.unwrap().success(), out, self.log)
    }
}

/// A whole login, with a user who agrees.
async fn log_in(home: &Home, name: &str) -> (bool, String, String) {
    let login = Login::begin(home, name).await;
    if !login.address.is_empty() {
        browse(&login.address).await;
    }
    login.end().await
}

async fn logged_in(home: &Home, name: &str) {
    let (ok, out, err) = log_in(home, name).await;
    assert!(ok && out.contains(&format!("Logged in to {name}")), "{out}{err}");
}

/// A login that must not come to anything, and why.
async fn refused(home: &Home, reason: &str) {
    let (ok, out, err) = log_in(home, "notes").await;
    assert!(!ok && out.is_empty() && err.contains(reason), "{reason}: {out}{err}");
    assert!(!kept(home).contains("canary"), "{reason}: nothing is kept");
}

fn kept(home: &Home) -> String {
    std::fs::read_to_string(home.home().join("credentials.json")).unwrap_or_default()
}

async fn listed(home: &Home) -> String {
    let (ok, out, err) = run(home, &["mcp", "list"]).await;
    assert!(ok, "{err}");
    out
}

async fn agent(home: &Home) -> (Agent, String) {
    let agent = home.start();
    agent.initialize().await;
    agent.client.always_choose("allow_once");
    let id = open(&agent, home, &[]).await;
    told(&agent, &id, "ready").await;
    (agent, id)
}

/// What `/mcp` says, once it says this: servers connect in their own time.
async fn told(agent: &Agent, id: &str, words: &str) -> String {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let mark = agent.client.mark();
        agent.prompt(id, "/mcp").await.unwrap_or_else(|error| panic!("{error:?}"));
        let said: String = agent.client.updates_since(mark, id).iter().map(Value::to_string).collect();
        if said.contains(words) {
            return said;
        }
        assert!(Instant::now() < deadline, "{words}: {said}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn note(agent: &Agent, id: &str) -> String {
    shown(&call(agent, id, "go").await)
}

const NEEDS: &str = "run `attache mcp login notes`";

fn parameter(url: &str, name: &str) -> String {
    let query = url.split_once('?').expect("a query").1;
    let found = query.split('&').find_map(|pair| pair.strip_prefix(&format!("{name}=")));
    found.unwrap_or_else(|| panic!("{name} is not in {url}")).to_owned()
}

#[tokio::test]
async fn a_user_logs_in_calls_a_tool_and_logs_out_and_no_token_is_seen() {
    let peer = OAuthPeer::start("sdk").await;
    let home = peer.home("");
    let out = listed(&home).await;
    assert!(
        out.contains(&format!("notes (http, of your configuration): failed: needs a login; {NEEDS}")),
        "{out}"
    );
    let login = Login::begin(&home, "notes").await;
    let address = login.address.clone();
    assert!(address.starts_with(&peer.issuer), "{address}");
    assert_eq!(parameter(&address, "code_challenge_method"), "S256");
    assert_eq!(parameter(&address, "scope"), "notes%3Aread");
    assert!(parameter(&address, "redirect_uri").starts_with("http%3A%2F%2F127.0.0.1%3A"), "{address}");
    let page = browse(&address).await;
    assert!(page.status() == 200 && !page.body.contains("script") && page.body.contains("Logged in"));
    let (ok, login_out, login_err) = login.end().await;
    assert!(ok && login_out.contains("credentials.json, which only you can read"), "{login_out}{login_err}");
    let counts = peer.counts().await;
    assert_eq!(counts["registered"]["application_type"], "native", "{counts}");
    assert_eq!(counts["asked"]["resource"], json!(peer.resource));
    let list = listed(&home).await;
    assert!(list.contains("notes (http, of your configuration): ready: 1 tool"), "{list}");
    let trace = home.workspace().join("trace.jsonl");
    let agent = home.start_with(&["--trace", trace.to_str().unwrap(), "-vvv"]);
    agent.initialize().await;
    agent.client.always_choose("allow_once");
    let id = open(&agent, &home, &[]).await;
    told(&agent, &id, "ready").await;
    assert!(note(&agent, &id).await.contains("buy milk"));
    peer.set(json!({ "forget": true })).await;
    assert!(note(&agent, &id).await.contains("buy milk"), "it is renewed once it is refused");
    assert_eq!(peer.count("refreshes").await, 1);
    // An authorization server that repeats what it was sent.
    peer.set(json!({ "forget": true, "refresh": false })).await;
    let failed = note(&agent, &id).await;
    assert!(failed.contains("invalid_grant: not a good token: [key]") && failed.contains(NEEDS), "{failed}");
    agent.finish(&home).await;
    peer.set(json!({ "refresh": true })).await;
    logged_in(&home, "notes").await;
    assert_eq!(peer.count("registrations").await, 1, "a registration is used again");
    let config = run(&home, &["--print-config"]).await;
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &home.home().join("credentials.json").metadata().unwrap().permissions(),
    );
    assert_eq!(mode & 0o777, 0o600);
    assert!(kept(&home).contains("canary-refresh"), "else this test shows nothing");
    let trace = std::fs::read_to_string(&trace).unwrap();
    for text in [&home.all_logs(), &trace, &login_out, &login_err, &list, &config.1, &config.2, &failed] {
        assert!(!text.contains("canary"), "{text}");
    }
    let (ok, out, err) = run(&home, &["mcp", "logout", "notes"]).await;
    assert!(ok && out.contains("Deleted the login at notes."), "{out}{err}");
    assert!(peer.count("revocations").await == 2 && !kept(&home).contains("canary"));
    assert!(listed(&home).await.contains(NEEDS));
    let (ok, out, _) = run(&home, &["mcp", "logout", "notes"]).await;
    assert!(ok && out.contains("No login at notes"), "{out}");
}

/// What the entry sends is of no use to who wants to be rid of the login.
#[tokio::test]
async fn a_login_is_forgotten_though_a_variable_of_its_entry_is_not_set() {
    let peer = OAuthPeer::start("sdk").await;
    let home = peer.home("");
    logged_in(&home, "notes").await;
    assert!(kept(&home).contains("canary"));
    let unset = "headers = { x = \"${GONE}\" }\noauth = { client_secret = \"${GONE}\" }\n";
    home.write_config(&format!("[mcp.notes]\nurl = \"{}\"\n{unset}", peer.resource));
    let (ok, out, err) = run(&home, &["mcp", "logout", "notes"]).await;
    assert!(ok && out.contains("Deleted the login at notes."), "{out}{err}");
    assert!(err.contains("could not be told") && err.contains("GONE is not set"), "{err}");
    assert!(!kept(&home).contains("canary"));
    home.write_config("[mcp.notes]\nurl = \"${GONE}\"\n");
    let (ok, _, err) = run(&home, &["mcp", "logout", "notes"]).await;
    assert!(!ok && err.contains("GONE is not set") && err.contains("attache mcp logout URL"), "{err}");
}

#[tokio::test]
async fn tokens_are_renewed_before_they_end_and_what_is_new_is_kept() {
    let peer = OAuthPeer::start("sdk").await;
    let home = peer.home("");
    // So short that every process finds it ended.
    peer.set(json!({ "life": 0 })).await;
    logged_in(&home, "notes").await;
    let first = kept(&home);
    peer.set(json!({ "life": 3600 })).await;
    assert!(listed(&home).await.contains("ready: 1 tool"));
    assert_eq!(peer.count("refreshes").await, 1);
    assert_ne!(kept(&home), first, "each refresh token is good for one use");
    peer.set(json!({ "forget": true })).await;
    assert!(listed(&home).await.contains("ready: 1 tool"));
    assert_eq!(peer.count("refreshes").await, 2);
}

#[tokio::test]
async fn of_several_that_are_refused_at_once_one_renews() {
    let peer = OAuthPeer::start("sdk").await;
    let home = peer.home("");
    logged_in(&home, "notes").await;
    let (one, mut other) = (agent(&home).await, agent(&home).await);
    let second = open(&one.0, &home, &[]).await;
    told(&one.0, &second, "ready").await;
    for (agent, id) in [(&one.0, &one.1), (&one.0, &second), (&other.0, &other.1)] {
        assert!(note(agent, id).await.contains("buy milk"));
    }
    peer.set(json!({ "forget": true })).await;
    let notes =
        tokio::join!(one.0.prompt(&one.1, "go"), one.0.prompt(&second, "go"), other.0.prompt(&other.1, "go"));
    for answer in [notes.0, notes.1, notes.2] {
        answer.unwrap_or_else(|error| panic!("{error:?}"));
    }
    assert_eq!(peer.count("calls").await, 6);
    assert_eq!(peer.count("refreshes").await, 1);
    // What is left behind is looked for in the whole home.
    assert!(other.0.end().await.success());
    one.0.finish(&home).await;
}

#[tokio::test]
async fn a_login_that_was_revoked_ends_in_words_and_a_new_one_in_the_midst_of_a_session_goes_on() {
    let peer = OAuthPeer::start("sdk").await;
    let home = peer.home("");
    logged_in(&home, "notes").await;
    let (agent, id) = agent(&home).await;
    assert!(note(&agent, &id).await.contains("buy milk"));
    peer.set(json!({ "forget": true, "refresh": false })).await;
    for _ in 0..3 {
        let failed = note(&agent, &id).await;
        assert!(failed.contains("needs a login") && failed.contains(NEEDS), "{failed}");
    }
    assert_eq!(peer.count("refreshes").await, 1, "nothing is asked again and again");
    told(&agent, &id, NEEDS).await;
    peer.set(json!({ "refresh": true })).await;
    logged_in(&home, "notes").await;
    told(&agent, &id, "ready").await;
    assert!(note(&agent, &id).await.contains("buy milk"));
    agent.finish(&home).await;
}

#[tokio::test]
async fn a_token_for_another_server_is_refused_and_not_renewed_for_ever() {
    let peer = OAuthPeer::start("sdk").await;
    let home = peer.home("");
    peer.set(json!({ "audience": "https://other.test/mcp" })).await;
    logged_in(&home, "notes").await;
    let out = listed(&home).await;
    assert!(out.contains("needs a login (it does not take the token of the last one)"), "{out}");
    assert_eq!(peer.count("refreshes").await, 1);
}

#[tokio::test]
async fn answers_of_strangers_are_refused_and_the_right_one_still_counts() {
    let peer = OAuthPeer::start("sdk").await;
    let home = peer.home("");
    let login = Login::begin(&home, "notes").await;
    let state = parameter(&login.address, "state");
    let right = get(&login.address).await.location().expect("the way back");
    let page = get(&right.replace(&state, "wrong")).await;
    assert!(page.status() == 400 && page.body.contains("not the answer to a login"), "{}", page.body);
    assert_eq!(get(&right).await.status(), 200);
    let (ok, out, err) = login.end().await;
    assert!(ok, "{out}{err}");
}

#[tokio::test]
async fn an_answer_of_another_issuer_is_refused() {
    let peer = OAuthPeer::start("sdk").await;
    let home = peer.home("");
    peer.set(json!({ "redirect": { "iss": "https://evil.test" } })).await;
    refused(&home, "not from the authorization server that was asked (https://evil.test)").await;
    peer.set(
        json!({ "redirect": {}, "metadata": { "authorization_response_iss_parameter_supported": true } }),
    )
    .await;
    refused(&home, "it does not say whose it is").await;
    peer.set(json!({ "redirect": { "code": null, "error": "access_denied" } })).await;
    peer.set(json!({ "metadata": {} })).await;
    refused(&home, "the authorization server refused: access_denied").await;
    peer.set(json!({ "redirect": { "iss": peer.issuer } })).await;
    logged_in(&home, "notes").await;
}

#[tokio::test]
async fn servers_that_speak_for_others_or_lead_astray_are_refused() {
    let peer = OAuthPeer::start("sdk").await;
    let home = peer.home("");
    for (knobs, reason) in [
        (json!({ "metadata": { "code_challenge_methods_supported": null } }), "PKCE with S256"),
        (json!({ "metadata": { "code_challenge_methods_supported": ["plain"] } }), "PKCE with S256"),
        (json!({ "metadata": { "issuer": "https://other.test" } }), "says that it is another authorization"),
        (json!({ "metadata": { "token_endpoint": "http://169.254.169.254/token" } }), "link-local"),
        (json!({ "metadata": { "authorization_endpoint": "javascript:alert(1)" } }), "only http and https"),
        (json!({ "metadata": { "registration_endpoint": "http://93.184.216.34/r" } }), "must be https"),
        (json!({ "metadata": { "registration_endpoint": null } }), "write client_id into [mcp.NAME.oauth]"),
        (json!({ "resource": { "resource": "https://other.test/mcp" } }), "says that it is another one"),
        (
            json!({ "resource": { "authorization_servers": ["http://169.254.169.254/"] } }),
            "not of the public internet",
        ),
        (json!({ "resource": { "authorization_servers": [] } }), "does not say where to log in"),
    ] {
        peer.set(json!({ "metadata": {}, "resource": {} })).await;
        peer.set(knobs).await;
        refused(&home, reason).await;
    }
    assert_eq!(peer.count("registrations").await, 0);
    // And without a word about where to look, it is looked for.
    peer.set(json!({ "metadata": {}, "resource": {}, "challenge": false })).await;
    logged_in(&home, "notes").await;
}

#[tokio::test]
async fn a_call_that_wants_more_rights_says_so_and_the_next_login_asks_for_them() {
    let peer = OAuthPeer::start("sdk").await;
    let home = peer.home("");
    logged_in(&home, "notes").await;
    let (agent, id) = agent(&home).await;
    assert!(note(&agent, &id).await.contains("buy milk"));
    peer.set(json!({ "more": "notes:write" })).await;
    let failed = note(&agent, &id).await;
    assert!(
        failed.contains("wants a login with more rights (notes:write)") && failed.contains(NEEDS),
        "{failed}"
    );
    peer.set(json!({ "metadata": { "scopes_supported": ["notes:read", "notes:write"] } })).await;
    logged_in(&home, "notes").await;
    assert_eq!(peer.counts().await["asked"]["scopes"], json!(["notes:read", "notes:write"]));
    assert!(note(&agent, &id).await.contains("buy milk"), "the session takes the new login");
    agent.finish(&home).await;
}

#[tokio::test]
async fn a_server_of_an_editor_is_logged_in_to_by_its_address() {
    let peer = OAuthPeer::start("sdk").await;
    let home = peer.home("");
    home.write_config("");
    let agent = home.start();
    agent.initialize().await;
    agent.client.always_choose("allow_once");
    let server = json!({ "type": "http", "name": "notes", "url": peer.resource, "headers": [] });
    let id = open(&agent, &home, &[server]).await;
    told(&agent, &id, &format!("attache mcp login {}", peer.resource)).await;
    logged_in(&home, &peer.resource).await;
    told(&agent, &id, "ready").await;
    agent.finish(&home).await;
}

/// The address of a login, as a client is told it.
async fn told_address(agent: &Agent) -> String {
    const BEFORE: &str = "Open this address in a browser to log in to notes: ";
    let text = |message: &Value| {
        message["params"]["update"]["content"]["text"].as_str().unwrap_or_default().to_owned()
    };
    let told = agent.client.wait_for("an address", |message| text(message).contains(BEFORE)).await;
    text(&told).split_once(BEFORE).unwrap().1.trim().to_owned()
}

#[tokio::test]
async fn a_login_is_begun_in_a_session() {
    let peer = OAuthPeer::start("sdk").await;
    let home = peer.home("");
    let agent = home.start();
    agent.initialize().await;
    agent.client.always_choose("allow_once");
    let id = open(&agent, &home, &[]).await;
    told(&agent, &id, NEEDS).await;
    for (typed, why) in [
        ("/mcp login nots", "here is no MCP server `nots` here; there are: notes"),
        ("/mcp login", "needs the name of a server"),
        ("/mcp logon notes", "takes nothing, or `login NAME`, not `logon`"),
    ] {
        let mark = agent.client.mark();
        agent.prompt(&id, typed).await.unwrap();
        let said: String = agent.client.updates_since(mark, &id).iter().map(Value::to_string).collect();
        assert!(said.contains(why), "{typed}: {said}");
    }
    agent.prompt(&id, "/mcp login notes").await.unwrap();
    let address = told_address(&agent).await;
    assert!(address.starts_with(&peer.issuer), "{address}");
    assert_eq!(browse(&address).await.status(), 200);
    told(&agent, &id, "ready").await;
    assert!(note(&agent, &id).await.contains("buy milk"));
    agent.finish(&home).await;
    assert!(!home.all_logs().contains("canary"), "{}", home.all_logs());
}

#[tokio::test]
async fn an_editor_that_shows_addresses_is_asked_to_show_that_of_a_login() {
    let peer = OAuthPeer::start("sdk").await;
    let home = peer.home("");
    for (action, word) in [("decline", "Not logged in to notes"), ("accept", "Logged in to notes")] {
        let agent = home.start();
        let params = json!({ "protocolVersion": 1, "clientCapabilities": { "elicitation": { "url": {} } } });
        agent.client.expect("initialize", params).await;
        agent.client.set_policy(move |method, params| match method {
            "elicitation/create" => Reply::Result(json!({ "action": action })),
            _ => Reply::choose("allow_once", params),
        });
        let id = open(&agent, &home, &[]).await;
        told(&agent, &id, NEEDS).await;
        agent.prompt(&id, "/mcp login notes").await.unwrap();
        let asked =
            agent.client.wait_for("the question", |message| message["method"] == "elicitation/create").await;
        let params = &asked["params"];
        assert_eq!(params["mode"], "url");
        assert_eq!(params["toolCallId"], Value::Null);
        let place = params["message"].as_str().unwrap();
        assert!(place.starts_with("Log in to the MCP server notes at http://127.0.0.1:"), "{place}");
        if action == "accept" {
            browse(params["url"].as_str().unwrap()).await;
        }
        agent
            .client
            .wait_for(word, |message| {
                let text = message["params"]["update"]["content"]["text"].as_str().unwrap_or_default();
                text.contains(word)
            })
            .await;
        agent.finish(&home).await;
    }
    assert!(listed(&home).await.contains("ready: 1 tool"));
}

#[tokio::test]
async fn openid_connect_with_a_configured_client_and_signed_tokens() {
    let peer = OAuthPeer::start("mock").await;
    let home = peer.home("");
    refused(&home, "does not let programs register themselves").await;
    let home = peer
        .home("[mcp.notes.oauth]\nclient_id = \"our-${KIND}\"\nscopes = [\"notes:read\", \"more\"]\n")
        .with_variable("KIND", "client");
    peer.set(json!({ "audience": "https://other.test/mcp" })).await;
    refused(&home, "the token is for https://other.test/mcp, not for this server").await;
    peer.set(json!({ "audience": null, "life": 0 })).await;
    let login = Login::begin(&home, "notes").await;
    assert_eq!(parameter(&login.address, "scope"), "notes%3Aread+more");
    assert_eq!(parameter(&login.address, "client_id"), "our-client");
    browse(&login.address).await;
    assert!(login.end().await.0);
    assert_eq!(peer.counts().await["asked"], json!({ "client": "our-client", "resource": peer.resource }));
    peer.set(json!({ "life": 3600 })).await;
    assert!(listed(&home).await.contains("ready: 1 tool"));
    assert_eq!(peer.count("refreshes").await, 1);
    let (ok, out, err) = run(&home, &["mcp", "logout", "notes"]).await;
    assert!(ok && peer.count("revocations").await == 2, "{out}{err}");
}

#[tokio::test]
async fn a_client_metadata_document_says_who_logs_in() {
    const ADDRESS: &str = "https://client.test/attache.json";
    let peer = OAuthPeer::start("sdk").await;
    let home = peer.home(&format!("[mcp.notes.oauth]\nclient_id = \"{ADDRESS}\"\n"));
    refused(&home, "reads no client metadata documents").await;
    // The one that docs/mcp.md tells to publish.
    let document = json!({
        "client_id": ADDRESS, "client_name": "attache", "redirect_uris": ["http://127.0.0.1/callback"],
        "grant_types": ["authorization_code", "refresh_token"], "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    });
    peer.set(json!({
        "metadata": { "client_id_metadata_document_supported": true },
        "documents": { ADDRESS: document },
    }))
    .await;
    logged_in(&home, "notes").await;
    assert_eq!(peer.counts().await["asked"]["client"], json!(ADDRESS));
    assert_eq!(peer.count("registrations").await, 0, "it is known by its document");
    peer.set(json!({ "forget": true })).await;
    assert!(listed(&home).await.contains("ready: 1 tool"), "renewed as the same client");
    assert_eq!(peer.count("refreshes").await, 1);
}

#[tokio::test]
async fn what_is_said_of_a_login_in_a_file_is_checked_and_its_secret_not_shown() {
    let home = home("on *\n  text \"ok\"\n");
    home.write_config(
        "[mcp.good]\nurl = \"https://x.test\"\nenabled = false\n[mcp.good.oauth]\nclient_id = \"i\"\n\
         client_secret = \"${CANARY}\"\nscopes = [\"r\"]\nredirect_port = 99\nallow_private = true\n\
         [mcp.bad]\nurl = \"https://x.test\"\noauth = { clientid = \"i\", redirect_port = 0 }\n\
         [mcp.program]\ncommand = [\"true\"]\noauth = { client_id = \"i\" }\n",
    );
    let out = listed(&home).await;
    for part in [
        "unknown key `mcp.bad.oauth.clientid`, did you mean `mcp.bad.oauth.client_id`?",
        "`mcp.bad.oauth.redirect_port` must be a port from 1 to 65535",
        "`mcp.program.oauth` is of use to a server with a url only",
    ] {
        assert!(out.contains(part), "{part}: {out}");
    }
    let (_, printed, _) = run(&home, &["--print-config"]).await;
    let shown = "oauth = { client_id = \"i\", scopes = [\"r\"], redirect_port = 99, allow_private = true, \
                 client_secret = \"${CANARY}\" }";
    assert!(printed.contains(shown), "{printed}");
    std::fs::create_dir_all(home.workspace().join(".attache")).unwrap();
    let file = home.workspace().join(".attache/config.toml");
    std::fs::write(file, "[mcp.theirs]\nurl = \"https://y.test\"\noauth = { allow_private = true }\n")
        .unwrap();
    let (ok, out, err) = run(&home, &["trust", "--yes"]).await;
    assert!(ok, "{out}{err}");
    let out = listed(&home).await;
    assert!(out.contains("a project can't set `mcp.theirs.oauth.allow_private`"), "{out}");
}

#[tokio::test]
async fn what_has_no_login_says_so() {
    let home = home("on *\n  text \"ok\"\n").with_variable("TOKEN", "t");
    home.write_config(
        "[mcp.program]\ncommand = [\"true\"]\n[mcp.keyed]\nurl = \"http://127.0.0.1:9/mcp\"\n\
         headers = { authorization = \"Bearer ${TOKEN}\" }\n[mcp.plain]\nurl = \"http://93.184.216.34/mcp\"\n\
         [mcp.secret]\nurl = \"https://x.test\"\noauth = { client_secret = \"canary\" }\n",
    );
    for (name, reason) in [
        ("program", "only servers with a url have logins"),
        ("keyed", "has an Authorization header of its own"),
        ("plain", "must be https"),
        ("secret", "a reference to a variable"),
        ("progam", "did you mean `program`?"),
        ("file:///etc/passwd", "there is no MCP server"),
    ] {
        let (ok, out, err) = run(&home, &["mcp", "login", name]).await;
        assert!(!ok && out.is_empty() && err.contains(reason) && !err.contains("canary"), "{name}: {err}");
    }
}

#[tokio::test]
async fn a_login_lives_in_the_keyring_and_is_renewed_there() {
    let (desktop, peer) = (Desktop::start().await, OAuthPeer::start("sdk").await);
    let _keyring = desktop.keyring(&["--unlock"]).await;
    let home = peer.home("").with_variable("DBUS_SESSION_BUS_ADDRESS", desktop.address());
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        // A keyring takes a moment to appear on the bus.
        let (ok, out, err) = log_in(&home, "notes").await;
        assert!(ok && Instant::now() < deadline, "{out}{err}");
        if out.contains("Stored in the keyring.") {
            break;
        }
    }
    let is_in_keyring = || kept(&home).contains("keyring") && !kept(&home).contains("canary");
    assert!(is_in_keyring() && kept(&home).contains(&peer.issuer), "{}", kept(&home));
    assert!(listed(&home).await.contains("ready: 1 tool"));
    for count in 1..=2 {
        peer.set(json!({ "forget": true })).await;
        assert!(listed(&home).await.contains("ready: 1 tool"));
        assert_eq!(peer.count("refreshes").await, count);
        assert!(is_in_keyring(), "{}", kept(&home));
    }
    let (ok, out, err) = run(&home, &["mcp", "logout", "notes"]).await;
    assert!(ok && out.contains("Deleted") && !kept(&home).contains("keyring"), "{out}{err}");
    assert!(listed(&home).await.contains(NEEDS));
}
