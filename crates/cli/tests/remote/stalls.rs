//! P11 over the network: a client that does not read costs itself only. And HTTP/2, as Node speaks it, with
//! streams that are opened and reset as fast as it can.

use std::time::{Duration, Instant};

use attache_testkit::binary::Home;
use attache_testkit::database::connect;
use attache_testkit::processes::{peak_resident_bytes, resident_bytes};

use crate::server::{PATIENCE, ServedAgent, Server};

const MIB: u64 = 1024 * 1024;
const BLOCKS: usize = 30;
const DELTAS: usize = 100;
const DELTA_BYTES: usize = 10_000;

/// Each block has words of its own, so that a lost, doubled or moved piece shows.
fn delta(block: usize) -> String {
    format!("<{block:04}>").chars().cycle().take(DELTA_BYTES).collect()
}

async fn pour_into(server: Server, agent: ServedAgent) {
    let session = agent.new_session(&server.home.workspace()).await;
    agent.prompt(&session, "hello").await.unwrap();
    let pid = server.child.id().unwrap();
    let (idle, mark) = (resident_bytes(pid).unwrap(), agent.client.mark());
    agent.client.stop_reading();
    let pending = agent.start_prompt(&session, "pour");
    let database = connect(&server.home);
    let runs = || -> i64 {
        let sql = "SELECT count(*) FROM leases WHERE run_message_id IS NOT NULL";
        database.query_row(sql, [], |row| row.get(0)).unwrap()
    };
    for wanted in [1, 0] {
        let end = Instant::now() + PATIENCE;
        while runs() != wanted {
            assert!(Instant::now() < end, "{wanted} runs are waited for");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
    let grown = peak_resident_bytes(pid).unwrap().saturating_sub(idle);
    assert!(grown <= 16 * MIB, "{} MiB above idle", grown / MIB);
    agent.client.read_again();
    assert_eq!(pending.answer_within(PATIENCE).await.unwrap()["stopReason"], "end_turn");
    let mut text = String::new();
    for update in agent.client.updates_since(mark, &session) {
        if update["sessionUpdate"] == "agent_message_chunk" {
            text.push_str(update["content"]["text"].as_str().unwrap());
        }
    }
    assert_eq!(text.len(), BLOCKS * DELTAS * DELTA_BYTES);
    for (block, piece) in text.as_bytes().chunks(DELTAS * DELTA_BYTES).enumerate() {
        assert!(piece == delta(block).repeat(DELTAS).as_bytes(), "block {block} differs");
    }
    let grown = peak_resident_bytes(pid).unwrap().saturating_sub(idle);
    assert!(grown <= 24 * MIB, "{} MiB above idle after it was read", grown / MIB);
    server.stop().await;
}

async fn pouring() -> Server {
    let blocks: String = (0..BLOCKS).map(|block| format!("  stream {DELTAS} {:?}\n", delta(block))).collect();
    let script = format!("on \"pour\"\n{blocks}on *\n  text \"fine\"\n");
    Server::of(Home::new(env!("CARGO_BIN_EXE_attache"), &script), &[]).await
}

#[tokio::test]
async fn a_websocket_that_is_not_read_waits_in_the_log() {
    let server = pouring().await;
    let agent = server.socket_client().await;
    pour_into(server, agent).await;
}

#[tokio::test]
async fn streams_that_are_not_read_wait_in_the_log() {
    let server = pouring().await;
    let agent = server.http_client().await;
    pour_into(server, agent).await;
}

const OVER_HTTP_2: &str = r#"
const http2 = require("node:http2");
const assert = require("node:assert/strict");
const { TEST_ADDRESS: address, TEST_TOKEN: token, TEST_WORKSPACE: cwd } = process.env;
const client = http2.connect(`http://${address}`);
const usual = { authorization: `Bearer ${token}`, "content-type": "application/json" };
function ask(headers, body) {
  return new Promise((resolve, reject) => {
    const stream = client.request({ ":path": "/acp", ...usual, ...headers });
    let head, text = "";
    stream.on("response", (found) => (head = found));
    stream.on("data", (piece) => (text += piece));
    stream.on("end", () => resolve({ head, text }));
    stream.on("error", reject);
    stream.end(body && JSON.stringify(body));
  });
}
const rpc = (id, method, params) => ({ jsonrpc: "2.0", id, method, params });
(async () => {
  const hello = await ask({ ":method": "POST" }, rpc(0, "initialize", { protocolVersion: 1 }));
  assert.equal(hello.head[":status"], 200);
  const here = { "acp-connection-id": hello.head["acp-connection-id"] };
  assert.equal((await ask({ ":method": "POST", authorization: "Bearer x" }, rpc(0, "initialize", {}))).head[":status"], 401);
  assert.equal((await ask({ ":method": "POST", ":authority": "evil.example" }, rpc(0, "initialize", {}))).head[":status"], 403);
  const events = client.request({ ":path": "/acp", ":method": "GET", ...usual, ...here, accept: "text/event-stream" });
  const answered = new Promise((resolve) => {
    let text = "";
    events.on("data", (piece) => {
      text += piece;
      if (text.includes('"id":2')) resolve(text);
    });
  });
  await ask({ ":method": "POST", ...here }, rpc(1, "session/new", { cwd, mcpServers: [] }));
  // Streams that are reset as soon as they are there.
  const other = http2.connect(`http://${address}`);
  other.on("error", () => {});
  for (let count = 0; count < 5000 && !other.destroyed; count += 1) {
    const stream = other.request({ ":path": "/acp", ":method": "POST", ...usual });
    stream.on("error", () => {});
    stream.close(http2.constants.NGHTTP2_CANCEL);
    if (count % 100 === 0) await new Promise((go) => setImmediate(go));
  }
  other.destroy();
  // Heads that no client sends: refused or reset, each with its own connection at most.
  for (const headers of [{ "x-huge": "x".repeat(60_000), "y-huge": "x".repeat(60_000) }, { "x-bad": "x".repeat(200_000) }]) {
    const strange = http2.connect(`http://${address}`, { maxSendHeaderBlockLength: 1_000_000 });
    strange.on("error", () => {});
    const status = await new Promise((resolve) => {
      const stream = strange.request({ ":path": "/acp", ":method": "POST", ...usual, ...headers });
      stream.on("response", (head) => resolve(head[":status"]));
      stream.on("error", () => resolve("reset"));
      stream.on("close", () => resolve("reset"));
      stream.end("{}");
    });
    assert([431, "reset"].includes(status), `${status}`);
    strange.destroy();
  }
  await ask({ ":method": "POST", ...here }, rpc(2, "session/list", {}));
  assert.match(await answered, /"id":1,"result"/);
  console.log("ok");
  process.exit(0);
})().catch((error) => { console.error(error); process.exit(1); });
"#;

#[tokio::test]
async fn http_2_is_spoken_and_resets_disturb_nobody() {
    let server = Server::start().await;
    let output = server
        .home
        .program("node")
        .args(["-e", OVER_HTTP_2])
        .env("TEST_ADDRESS", &server.address)
        .env("TEST_TOKEN", &server.token)
        .env("TEST_WORKSPACE", server.home.workspace())
        .output()
        .await
        .expect("node must be installed");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "ok\n", "{told}");
    server.begin().await;
    server.stop().await;
}
