//! attache in another program: a session with a tool of its own, a permission that code answers, and the answer
//! as it streams. Needs no key: the model is a script.
#![allow(clippy::print_stdout, reason = "the stream is what this program is for")]

use std::error::Error;
use std::future::ready;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use attache_core::calendar::TimeZone;
use attache_core::chunk::Chunk;
use attache_core::hub::{Hub, NewSession, Ports, SessionPlace};
use attache_core::ports::client::{Answer, AnsweringClient, Ask};
use attache_core::ports::tool::{Access, Effect, Site, ToolKind};
use attache_core::ports::{BoxFuture, Clock, Tool, ToolOutcome, ToolPlan, ToolRuntime, ToolSpec};
use attache_core::prompt::Prompt;
use attache_models::ScriptModel;
use attache_store::{Durability, FileBlobs, SqliteStore, StoreLocation};
use serde_json::{Value, json};

/// What the model says; any other `Model` will do, such as `HttpModel` of `attache_models`.
const SCRIPT: &str = r#"on *
  call thermometer {"city":"Oslo"}
  ---
  text "It is 21 degrees in Oslo.""#;

#[derive(Debug)]
struct Thermometer(ToolSpec);

impl Tool for Thermometer {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }
    /// What a call would touch: rules judge it, and whoever answers questions, before it runs.
    fn plan(&self, _: &Value, _: &Site) -> BoxFuture<'_, Result<ToolPlan, String>> {
        let accesses = vec![Access::Network { host: "weather.example".into() }];
        Box::pin(ready(Ok(ToolPlan::new(accesses, self.0.presentation()))))
    }
    fn run(&self, input: Value, _: ToolRuntime) -> BoxFuture<'_, ToolOutcome> {
        let data = json!(format!("{}: 21 degrees", input["city"].as_str().unwrap_or("nowhere")));
        Box::pin(ready(ToolOutcome::Output { data, presentation: self.0.presentation() }))
    }
}

#[derive(Debug)]
struct WallClock;

impl Clock for WallClock {
    fn now_ms(&self) -> i64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_millis() as i64)
    }
    fn zone(&self) -> TimeZone {
        TimeZone::UTC
    }
}

fn answer(ask: &Ask) -> Answer {
    println!("asked: {} {}", ask.tool_name, ask.input);
    if ask.tool_name == "thermometer" { Answer::AllowOnce } else { Answer::RejectOnce }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let home = tempfile::tempdir()?;
    let place = |name: &str| home.path().join(name);
    let location = StoreLocation { database: place("db"), locks: place("locks"), blobs: place("blobs") };
    let store = Arc::new(SqliteStore::open(&location, Durability::Normal)?.store);
    let (blobs, model) = (FileBlobs::new(location.blobs), ScriptModel::parse("script", SCRIPT)?);
    let (clock, seed) = (Arc::new(WallClock), std::process::id().into());

    let schema = json!({ "type": "object", "properties": { "city": { "type": "string" } } });
    let spec = ToolSpec::new("thermometer", "How warm it is.", schema, ToolKind::Fetch, Effect::Mutates);
    let tools: Vec<Arc<dyn Tool>> = vec![Arc::new(Thermometer(spec))];
    let ports = Ports::bare(store.clone(), Arc::new(blobs), Arc::new(model), clock, seed, place("scratch"));
    let hub = Hub::new(Ports { tools: tools.into(), ..ports });

    let place = SessionPlace::default();
    let session = hub.create(NewSession { root: home.path().to_owned(), place }).await?;
    let print = |chunk: &Chunk| match chunk {
        Chunk::TextDelta { delta, .. } => println!("text: {delta}"),
        Chunk::ToolOutputAvailable { output, .. } => println!("result: {output}"),
        other => println!("- {}", other.kind()),
    };
    let (client, prompt) = (AnsweringClient::new(answer), Prompt::text("How warm is it in Oslo?"));
    println!("{:?}", session.run(client, prompt, |entry| print(entry.chunk)).await?.end);
    hub.shutdown().await;
    store.shutdown();
    Ok(())
}
