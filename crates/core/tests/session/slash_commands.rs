//! Slash commands: run by the session in the order of its prompts, stored, shown by a load, and never sent to a
//! model.

use attache_core::chunk::FinishReason;
use attache_core::export::Format;
use attache_core::hub::{AttachFrom, NewSession};
use attache_core::part::{Part, Role};
use attache_core::ports::model::ThoughtLevel;
use attache_core::turn::TurnEnd;

use crate::world::*;

const SCRIPT: &str = "on \"slow\"\n delay 50ms\n text \"slow\"\non *\n text \"fine\"";

fn finished() -> TurnEnd {
    TurnEnd::Finished(FinishReason::Stop)
}

fn last_answer(world: &World, session: &attache_core::hub::SessionHandle) -> String {
    text_of(world.answers(session.id()).last().unwrap())
}

fn sent(world: &World) -> Vec<Vec<String>> {
    let texts = |request: &attache_core::ports::ModelRequest| {
        request.passages.iter().map(|passage| text_of(&passage.parts)).collect()
    };
    world.model.requests().iter().map(texts).collect()
}

#[tokio::test(start_paused = true)]
async fn a_command_acts_and_answers_without_a_model() {
    let world = World::new(SCRIPT);
    let (_process, session) = world.session().await;
    assert_eq!(say(&session, "/mode plan").await, finished());
    assert_eq!(last_answer(&world, &session), "Mode: `plan`.");
    let mut attached = session.attach(None, AttachFrom::Now).await.unwrap();
    assert_eq!(attached.chosen.agent, "plan");
    assert!(attached.commands.first().await.iter().any(|command| &*command.name == "mode"));
    assert_eq!(say(&session, "/mode nonsense").await, finished());
    assert!(last_answer(&world, &session).starts_with("There is no mode `nonsense`; available:"));
    assert!(world.model.requests().is_empty());
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn no_model_is_shown_a_command_or_its_answer_not_even_after_a_restart_or_in_a_fork() {
    let world = World::new(SCRIPT);
    let (process, session) = world.session().await;
    for text in ["/status", "one", "/help", "two"] {
        assert_eq!(say(&session, text).await, finished());
    }
    assert_eq!(sent(&world), [vec!["one"], vec!["one", "fine", "two"]]);
    let id = session.id().clone();
    process.kill();
    let process = world.process();
    let session = process.hub.open(&id).await.unwrap();
    assert_eq!(say(&session, "three").await, finished());
    assert_eq!(sent(&world).pop().unwrap(), ["one", "fine", "two", "fine", "three"]);
    let fork =
        process.hub.fork(&id, NewSession { root: "/w".into(), place: Default::default() }).await.unwrap();
    assert_eq!(say(&fork, "four").await, finished());
    assert_eq!(sent(&world).pop().unwrap(), ["one", "fine", "two", "fine", "three", "fine", "four"]);
    let stored = world.messages(&id, Role::User);
    assert!(matches!(&stored[0][0], Part::Data { name, .. } if name == "command"), "{:?}", stored[0]);
    let exported = process.hub.export(&id, Format::Markdown).await.unwrap();
    assert!(exported.contains("/status\n") && exported.contains("- Mode: `build`"), "{exported}");
    world.check_rest(&id);
}

#[tokio::test(start_paused = true)]
async fn a_command_waits_for_its_turn_and_may_be_edited_or_cancelled_while_it_does() {
    let world = World::new(SCRIPT);
    let (_process, session) = world.session().await;
    let tickets = ["slow", "/mode plan", "/mode nonsense", "later"].map(|text| session.prompt(prompt(text)));
    let queued = session.queued().await.unwrap();
    assert_eq!(queued.len(), 3);
    session.edit_queued(queued[1].message_id.clone(), prompt("/status")).await.unwrap();
    session.edit_queued(queued[2].message_id.clone(), prompt("/help")).await.unwrap();
    for ticket in tickets {
        assert_eq!(end_of(ticket).await, finished());
    }
    assert_eq!(sent(&world), [["slow"]]);
    let answers: Vec<String> = world.answers(session.id()).iter().map(|parts| text_of(parts)).collect();
    assert_eq!(answers[..2], ["slow", "Mode: `plan`."]);
    assert!(answers[2].starts_with("- Mode: `plan`") && answers[3].starts_with("- `/help`"), "{answers:?}");
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn the_same_command_sent_twice_under_one_id_runs_once() {
    let world = World::new(SCRIPT);
    let (_process, session) = world.session().await;
    for _ in 0..2 {
        let outcome = answer(session.prompt(prompt_with_id("/mode plan", "msg_same"))).await.unwrap();
        assert_eq!(outcome.end, finished());
    }
    assert_eq!(world.answers(session.id()).len(), 1);
    let other = answer(session.prompt(prompt_with_id("/mode build", "msg_same"))).await;
    assert!(other.is_err(), "{other:?}");
}

#[tokio::test(start_paused = true)]
async fn models_and_how_much_they_think_can_be_chosen() {
    let world = World::new("model large context=9000 thought=low,high\nmodel small\non *\n text \"fine\"");
    let (_process, session) = world.session().await;
    assert_eq!(say(&session, "/model script/large").await, finished());
    assert_eq!(say(&session, "/thought high").await, finished());
    assert_eq!(last_answer(&world, &session), "Thought level: `high`.");
    assert_eq!(session.attach(None, AttachFrom::Now).await.unwrap().chosen.thought, Some(ThoughtLevel::High));
    assert_eq!(say(&session, "/thought").await, finished());
    assert_eq!(last_answer(&world, &session), "Thought level: `high`. Others: `default`, `low`.");
    assert_eq!(say(&session, "/model script/small").await, finished());
    assert_eq!(last_answer(&world, &session), "Model: `script/small`.");
    assert_eq!(say(&session, "/thought low").await, finished());
    assert_eq!(last_answer(&world, &session), "`script/small` can't be told how much to think.");
    assert_eq!(say(&session, "/model large").await, finished());
    assert_eq!(last_answer(&world, &session), "Model: `script/large`.");
    assert_eq!(say(&session, "/model nope").await, finished());
    assert_eq!(
        last_answer(&world, &session),
        "There is no model `nope` in this configuration; a model is written PROVIDER/NAME, and `/model` lists them."
    );
    for slip in ["/model script/lagre", "/model lagre", "/model scirpt/large"] {
        assert_eq!(say(&session, slip).await, finished());
        assert!(last_answer(&world, &session).contains("(did you mean `script/large`?)"), "{slip}");
    }
    assert_eq!(say(&session, "/thought hihg").await, finished());
    assert_eq!(
        last_answer(&world, &session),
        "There is no thought level `hihg` (did you mean `high`?); known: default, off, low, medium, high, max."
    );
    assert_eq!(say(&session, "/model script/small").await, finished());
    assert_eq!(say(&session, "/model").await, finished());
    assert_eq!(
        last_answer(&world, &session),
        "Model: `script/small`. Others: `script/default`, `script/large`."
    );
}

#[tokio::test(start_paused = true)]
async fn what_a_command_can_not_take_is_refused_and_nothing_is_done() {
    let world = World::new(SCRIPT);
    let (_process, session) = world.session().await;
    let mut with_more = prompt("/mode plan");
    with_more.parts.extend(prompt("and this").parts);
    assert_eq!(end_of(session.prompt(with_more)).await, finished());
    assert_eq!(last_answer(&world, &session), "`/mode` takes no attachments; nothing was done.");
    assert_eq!(say(&session, "/help me").await, finished());
    assert_eq!(last_answer(&world, &session), "`/help` takes no arguments; it did nothing.");
    assert_eq!(session.attach(None, AttachFrom::Now).await.unwrap().chosen.agent, "build");
}

#[tokio::test(start_paused = true)]
async fn a_slip_is_answered_with_what_was_meant_and_a_path_is_text() {
    let world = World::new(SCRIPT);
    let (process, session) = world.session().await;
    assert_eq!(say(&session, "/modle script/default").await, finished());
    assert_eq!(
        last_answer(&world, &session),
        "There is no command `/modle` here. Did you mean `/model`? To send your text to the model, put a word before it."
    );
    assert!(world.model.requests().is_empty(), "no model is asked, and none will be shown it");
    for text in ["/etc is full", "/home", "/status.md says what?", "/xyzzy"] {
        assert_eq!(say(&session, text).await, finished());
        assert_eq!(sent(&world).pop().unwrap().pop().unwrap(), text);
    }
    let id = session.id().clone();
    process.kill();
    let session = world.process().hub.open(&id).await.unwrap();
    assert_eq!(say(&session, "after").await, finished());
    assert!(!sent(&world).pop().unwrap().iter().any(|text| text.contains("modle")));
    world.check_rest(&id);
}
