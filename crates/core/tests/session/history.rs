//! The history a model gets: the same whether the session stayed in memory, was read again, or had to spill.

use std::sync::Arc;

use attache_core::part::{Part, Passage};
use attache_core::ports::client::Answer;

use crate::world::*;

const SCRIPT: &str = "on \"one\"\n reasoning \"hm\"\n text \"a\"\n call look {\"path\":\"a\"}\n call touch {\"path\":\"b\"}\n \
    ---\n source \"https://example.org\" \"t\"\n text \"b\"\non \"two\"\n text \"half\"\n call look {\"path\":\"a\"}\n cut\n\
    on \"three\"\n error refused \"no\"\non \"four\"\n call nothing {\"a\":1.5}\n call look not-json\n ---\n text \"d\"\n\
    on \"five\"\n error permanent \"no\"\non *\n text \"fine\"";

async fn last_request(restart: bool) -> Vec<Vec<Part>> {
    let world = World::new(SCRIPT);
    let (mut process, mut session) = world.session().await;
    let id = session.id().clone();
    for text in ["one", "two", "three", "four", "five", "six"] {
        let client = answering(&[Answer::RejectOnce]);
        let attachment = join(&session, client).await;
        answer(session.prompt(prompt(text))).await.unwrap();
        drop(attachment);
        if restart {
            process.kill();
            process = world.process();
            session = process.hub.open(&id).await.unwrap();
        }
    }
    let request = world.model.requests().pop().unwrap();
    request.passages.iter().map(|passage| without_approval_ids(passage)).collect()
}

/// Approval ids are made anew in every world.
fn without_approval_ids(passage: &Passage) -> Vec<Part> {
    let mut parts = passage.parts.clone();
    for tool in parts.iter_mut().filter_map(Part::tool_mut) {
        if let Some(approval) = &mut tool.approval {
            approval.id.clear();
        }
    }
    parts
}

#[tokio::test(start_paused = true)]
async fn read_again_it_is_what_it_was_in_memory() {
    assert_eq!(last_request(true).await, last_request(false).await);
}

/// The very passages, not copies that were read again.
#[tokio::test(start_paused = true)]
async fn a_large_one_is_kept_for_the_next_turn() {
    let piece = "x".repeat(64 * 1024);
    let world = World::new(&format!("on *\n stream 24 \"{piece}\""));
    let (_process, session) = world.session().await;
    for _ in 0..5 {
        say(&session, "go").await;
    }
    let requests = world.model.requests();
    let [.., before, last] = &requests[..] else { panic!() };
    let bytes: usize = before.passages.iter().map(|passage| text_of(&passage.parts).len()).sum();
    assert!(bytes > 4 * 1024 * 1024, "{bytes}");
    assert!(before.passages.iter().zip(last.passages.iter()).all(|(a, b)| Arc::ptr_eq(a, b)));
}

#[tokio::test(start_paused = true)]
async fn a_step_too_large_for_memory_is_whole_in_the_next_request() {
    let piece = "x".repeat(64 * 1024);
    let world = World::new(&format!(
        "on *\n stream 100 \"{piece}\"\n call look {{\"path\":\"a\"}}\n ---\n text \"done\""
    ));
    let (_process, session) = world.session().await;
    say(&session, "go").await;
    let request = world.model.requests().pop().unwrap();
    let step = request.passages.last().unwrap();
    assert_eq!(text_of(&step.parts).len(), 100 * 64 * 1024);
    assert!(step.parts.len() > 20, "a long text is cut into parts");
    assert_eq!(step.parts[0], Part::StepStart);
    assert_eq!(tools_of(&step.parts).len(), 1);
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn a_large_step_before_an_open_question_survives_a_crash() {
    let piece = "x".repeat(64 * 1024);
    let world = World::new(&format!(
        "on *\n stream 100 \"{piece}\"\n call look {{\"path\":\"a\"}}\n ---\n call touch {{\"path\":\"a\"}}\n ---\n text \"end\""
    ));
    let (process, session) = world.session().await;
    let id = session.id().clone();
    let _ticket = session.prompt(prompt("go"));
    until(&session, |state| *state == attache_core::events::RunState::WaitingOnApproval).await;
    process.kill();
    let session = world.process().hub.open(&id).await.unwrap();
    let _participant = join(&session, answering(&[Answer::AllowOnce])).await;
    until(&session, |state| *state == attache_core::events::RunState::Idle).await;
    let request = world.model.requests().pop().unwrap();
    assert_eq!(request.passages.len(), 3);
    assert_eq!(text_of(&request.passages[1].parts).len(), 100 * 64 * 1024);
    world.check_rest(&id);
}
