//! What turns use and cost: per step, per message, per session, whatever becomes of the turn.

use attache_core::chunk::Chunk;
use attache_core::hub::{NewSession, SessionHandle};
use attache_core::ids::SessionId;
use attache_core::part::{Part, Role};
use attache_core::ports::store::ModelRef;
use attache_core::turn::TurnEnd;
use serde_json::{Map, Value};

use crate::world::*;

const PRICES: &str = "model cheap price_input=1 price_output=2 price_cache_read=0.1 price_cache_write=1.25\n\
     model dear price_input=3 price_output=15\n";

async fn choose(session: &SessionHandle, name: &str) {
    session.set_model(ModelRef::new("script", name)).await.unwrap();
}

/// The `data-usage` of the answers, in order.
fn told(world: &World, session: &SessionId) -> Vec<Value> {
    let parts = world.answers(session).into_iter().flatten();
    parts
        .filter_map(|part| {
            if let Part::Data { name, data, .. } = part { (name == "usage").then_some(data) } else { None }
        })
        .collect()
}

fn metadata(world: &World, session: &SessionId) -> Vec<Map<String, Value>> {
    let disk = world.disk.lock().unwrap();
    let rows = disk.conversation(session).into_iter().filter(|row| row.role == Role::Assistant);
    rows.map(|row| row.metadata.as_map().clone()).collect()
}

fn cost(world: &World, session: &SessionId) -> f64 {
    world.disk.lock().unwrap().sessions[session].totals.cost_usd
}

#[tokio::test(start_paused = true)]
async fn cost_is_summed_over_steps_turns_and_models() {
    let script = "on *\n usage input=1000 output=100 reasoning=100 cache_read=10000 cache_write=1000\n \
                  call look {\"path\":\"a\"}\n ---\n usage input=2000 output=500\n text \"x\"";
    let world = World::new(&format!("{PRICES}{script}"));
    let (_process, session) = world.session().await;
    choose(&session, "cheap").await;
    say(&session, "one").await;
    choose(&session, "dear").await;
    say(&session, "two").await;
    let told = told(&world, session.id());
    // 0.001 + 0.0002 + 0.0002 + 0.001 + 0.00125, then 0.002 + 0.001; the dear one: 0.003 + 0.0015 + 0.0015 +
    // 0.033, then 0.006 + 0.0075.
    let costs: Vec<_> = told.iter().map(|data| data["cost_usd"].as_f64().unwrap()).collect();
    assert_eq!(costs, [0.00365, 0.00665, 0.04565, 0.05915]);
    let messages = metadata(&world, session.id());
    assert_eq!(messages[0]["cost_usd"], 0.00665);
    assert_eq!(messages[1]["cost_usd"], 0.0525);
    assert_eq!(
        (&messages[0]["model"], &messages[1]["model"]),
        (&"script/cheap".into(), &"script/dear".into())
    );
    assert!((cost(&world, session.id()) - 0.05915).abs() < 1e-9);
}

#[tokio::test(start_paused = true)]
async fn a_model_without_a_price_adds_nothing_and_hides_nothing() {
    let world = World::new(&format!("{PRICES}on *\n usage input=1000 output=1000\n text \"x\""));
    let (_process, session) = world.session().await;
    say(&session, "one").await;
    choose(&session, "dear").await;
    say(&session, "two").await;
    choose(&session, "default").await;
    say(&session, "three").await;
    let costs: Vec<_> = told(&world, session.id()).iter().map(|data| data.get("cost_usd").cloned()).collect();
    assert_eq!(costs, [None, Some(0.018.into()), Some(0.018.into())]);
    let messages = metadata(&world, session.id());
    let costs: Vec<_> = messages.iter().map(|message| message.get("cost_usd").cloned()).collect();
    assert_eq!(costs, [None, Some(0.018.into()), None]);
}

#[tokio::test(start_paused = true)]
async fn context_used_is_that_of_the_last_step_only() {
    let script = "on *\n usage input=100 output=20 cache_read=7\n call look {\"path\":\"a\"}\n ---\n \
                  usage input=5 output=1\n text \"x\"";
    let world = World::new(script);
    let (_process, session) = world.session().await;
    say(&session, "one").await;
    let told = told(&world, session.id());
    let used: Vec<_> = told.iter().map(|data| data["context_used"].as_u64().unwrap()).collect();
    assert_eq!(used, [127, 6]);
    assert!(told.iter().all(|data| data["context_size"] == 200_000 && data.get("estimated").is_none()));
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_fails_keeps_what_its_steps_used() {
    let first = "usage input=1000 output=1000\n call look {\"path\":\"a\"}\n ---\n";
    for second in ["text \"half\"\n cut", "panic", "error permanent \"no\"", "error refused \"no\""] {
        let world = World::new(&format!("{PRICES}on *\n {first} {second}"));
        let (_process, session) = world.session().await;
        choose(&session, "dear").await;
        say(&session, "go").await;
        let message = metadata(&world, session.id()).remove(0);
        assert_eq!(message["usage"]["input"], 1000, "{second}");
        assert_eq!(message["cost_usd"], 0.018, "{second}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_turn_keeps_what_its_steps_used() {
    let world = World::new(&format!(
        "{PRICES}on *\n usage input=7 output=1\n call look {{\"path\":\"a\"}}\n ---\n text \"half\"\n delay 10s"
    ));
    let (_process, session) = world.session().await;
    choose(&session, "dear").await;
    let ticket = session.prompt(prompt("go"));
    until_stored(&world, |disk| {
        disk.archive.values().flatten().any(|segment| segment.chunks.contains("half"))
    })
    .await;
    session.cancel();
    assert_eq!(end_of(ticket).await, TurnEnd::Aborted);
    assert_eq!(metadata(&world, session.id())[0]["usage"]["input"], 7);
}

#[tokio::test(start_paused = true)]
async fn an_answer_without_a_finished_step_says_that_nothing_is_known() {
    let world = World::new("on *\n error permanent \"no\"");
    let (_process, session) = world.session().await;
    say(&session, "go").await;
    let message = metadata(&world, session.id()).remove(0);
    assert_eq!(message["usage"]["input"], 0);
    assert!(message.get("cost_usd").is_none());
}

#[tokio::test(start_paused = true)]
async fn the_sum_goes_on_after_a_restart_and_after_a_crash() {
    let world = World::new(&format!(
        "{PRICES}on \"boom\"\n usage input=1000\n call look {{\"path\":\"a\"}}\n ---\n panic\n\
         on *\n usage input=1000\n text \"x\""
    ));
    let (process, session) = world.session().await;
    choose(&session, "dear").await;
    say(&session, "one").await;
    say(&session, "boom").await;
    say(&session, "two").await;
    let id = session.id().clone();
    process.kill();
    let process = world.process();
    let session = process.hub.open(&id).await.unwrap();
    say(&session, "three").await;
    let costs: Vec<_> = told(&world, &id).iter().map(|data| data["cost_usd"].as_f64().unwrap()).collect();
    assert_eq!(costs, [0.003, 0.006, 0.009, 0.012]);
    assert!((cost(&world, &id) - 0.012).abs() < 1e-9);
}

#[tokio::test(start_paused = true)]
async fn a_question_across_a_restart_does_not_lose_what_was_used_before() {
    let world = World::new(&format!(
        "{PRICES}on *\n usage input=1000\n call touch {{\"path\":\"a\"}}\n ---\n usage input=1000\n text \"x\""
    ));
    let (process, session) = world.session().await;
    choose(&session, "dear").await;
    let ticket = session.prompt(prompt("go"));
    until(&session, |state| matches!(state, attache_core::events::RunState::WaitingOnApproval)).await;
    let id = session.id().clone();
    process.kill();
    drop(ticket);
    let process = world.process();
    let session = process.hub.open(&id).await.unwrap();
    let _participant = join(&session, answering(&[attache_core::ports::client::Answer::AllowOnce])).await;
    until(&session, |state| matches!(state, attache_core::events::RunState::Idle)).await;
    let message = metadata(&world, &id).remove(0);
    assert_eq!(message["usage"]["input"], 2000);
    assert_eq!(message["cost_usd"], 0.006);
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_does_not_count_gets_an_estimate_of_the_context_and_no_bill() {
    let long = "word ".repeat(2_000);
    let world = World::new(&format!("{PRICES}on *\n usage\n text {}", Value::from(long.clone())));
    let (_process, session) = world.session().await;
    choose(&session, "dear").await;
    say(&session, "one").await;
    say(&session, "two").await;
    let told = told(&world, session.id());
    assert!(told.iter().all(|data| data["estimated"] == true && data.get("cost_usd").is_none()), "{told:?}");
    let used: Vec<_> = told.iter().map(|data| data["context_used"].as_u64().unwrap()).collect();
    let answer = long.len() as u64 / 4;
    assert!(used[0] > answer && used[0] < answer * 2, "{used:?}");
    assert!(used[1] > used[0] + answer, "{used:?}");
    let disk = world.disk.lock().unwrap();
    assert_eq!(disk.sessions[session.id()].totals, attache_core::ports::store::UsageTotals::default());
}

#[tokio::test(start_paused = true)]
async fn a_copy_has_the_cost_of_what_it_copied() {
    let world = World::new(&format!("{PRICES}on *\n usage input=1000 output=10\n text \"x\""));
    let (process, session) = world.session().await;
    choose(&session, "dear").await;
    say(&session, "one").await;
    let copy = process
        .hub
        .fork(session.id(), NewSession { root: "/w".into(), place: Default::default() })
        .await
        .unwrap();
    assert_eq!(cost(&world, copy.id()), cost(&world, session.id()));
    say(&copy, "two").await;
    assert!((cost(&world, copy.id()) - 2.0 * cost(&world, session.id())).abs() < 1e-9);
    let last = world.chunks_of(copy.id(), &last_answer(&world, copy.id()));
    let cost = last
        .iter()
        .find_map(|chunk| if let Chunk::Data { data, .. } = chunk { data.get("cost_usd") } else { None });
    assert_eq!(cost, Some(&0.0063.into()));
}

fn last_answer(world: &World, session: &SessionId) -> attache_core::ids::MessageId {
    let disk = world.disk.lock().unwrap();
    disk.conversation(session).last().unwrap().id.clone()
}
