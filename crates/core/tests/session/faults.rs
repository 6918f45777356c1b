//! A store that fails: whichever commit it is, everybody is answered, nothing unstored is shown, later prompts
//! work.

use attache_core::chunk::FinishReason;
use attache_core::hub::{AttachFrom, SessionHandle};
use attache_core::ids::MessageId;
use attache_core::ports::client::Answer;
use attache_core::turn::TurnEnd;

use crate::world::*;

const SCRIPT: &str = "on \"tools\"\n text \"a\"\n call touch {\"path\":\"a\"}\n call look {\"path\":\"b\",\"ms\":5}\n ---\n \
                      text \"b\"\non *\n delay 10ms\n text \"fine\"";

/// Runs the story once per n with the n-th commit failing, until a run has fewer commits than n.
async fn with_every_commit_failing<F>(story: F)
where
    F: AsyncFn(&World, &SessionHandle) -> Vec<Result<TurnEnd, attache_core::hub::HubError>>,
{
    for nth in 0.. {
        let world = World::new(SCRIPT);
        let (process, session) = world.session().await;
        let attachment =
            session.attach(Some(answering(&vec![Answer::AllowOnce; 4])), AttachFrom::Now).await.unwrap();
        attachment.participant.ready();
        let (shown, _reader) = read(attachment);
        process.store.fail_commit(nth);
        let ends = story(&world, &session).await;
        let clean = ends.iter().all(|end| *end == Ok(TurnEnd::Finished(FinishReason::Stop)));
        // A store that works again: so does the session, and it comes to rest by itself.
        process.store.fail_commit(u64::MAX);
        let end = say(&session, "after").await;
        assert_eq!(end, TurnEnd::Finished(FinishReason::Stop), "commit {nth}");
        pause(1_000).await;
        check_shown(&world, &session, &shown, nth);
        assert!(world.runs.all().values().all(|runs| *runs == 1), "commit {nth}");
        world.check_rest(session.id());
        if clean {
            assert!(nth > 3, "the story hardly commits");
            return;
        }
    }
}

fn check_shown(world: &World, session: &SessionHandle, shown: &Shown, nth: u64) {
    let disk = world.disk.lock().unwrap();
    let mut archived = Vec::new();
    for segment in &disk.archive[session.id()] {
        for (chunk, index) in decode(&segment.chunks).into_iter().zip(segment.first_index..) {
            archived.push((index, segment.message_id.clone(), chunk));
        }
    }
    let shown = shown.lock().unwrap();
    assert_eq!(*shown, archived, "commit {nth}");
}

#[tokio::test(start_paused = true)]
async fn at_any_commit_of_a_turn_with_calls() {
    with_every_commit_failing(async |_, session| {
        vec![answer(session.prompt(prompt("tools"))).await.map(|outcome| outcome.end)]
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn at_any_commit_with_prompts_waiting() {
    with_every_commit_failing(async |_, session| {
        let tickets: Vec<_> =
            ["one", "tools", "three", "four"].iter().map(|text| session.prompt(prompt(text))).collect();
        let mut ends = Vec::new();
        for ticket in tickets {
            ends.push(answer(ticket).await.map(|outcome| outcome.end));
        }
        ends
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_was_answered_with_an_error_does_not_run_later() {
    for nth in 0..30 {
        let world = World::new(SCRIPT);
        let (process, session) = world.session().await;
        process.store.fail_commit(nth);
        let tickets: Vec<_> = (0..4).map(|n| session.prompt(prompt(&format!("p{n}")))).collect();
        let mut refused = Vec::new();
        for (number, ticket) in tickets.into_iter().enumerate() {
            if answer(ticket).await.is_err() {
                refused.push(format!("p{number}"));
            }
        }
        process.store.fail_commit(u64::MAX);
        say(&session, "after").await;
        pause(1_000).await;
        let id = session.id().clone();
        session.close().await.unwrap();
        let again = process.hub.open(&id).await.unwrap();
        say(&again, "later").await;
        pause(1_000).await;
        let answered: Vec<String> = world
            .model
            .requests()
            .iter()
            .map(|request| text_of(&request.passages.last().unwrap().parts))
            .collect();
        for prompt in refused {
            assert!(!answered.contains(&prompt), "commit {nth}: {prompt} ran all the same");
        }
        world.check_rest(&id);
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_at_rest_after_a_fault_is_free_for_others() {
    for nth in 0..12 {
        let world = World::new(SCRIPT);
        let (process, session) = world.session().await;
        let _participant = join(&session, answering(&vec![Answer::AllowOnce; 4])).await;
        process.store.fail_commit(nth);
        drop(answer(session.prompt(prompt("tools"))).await);
        process.store.fail_commit(u64::MAX);
        session.cancel();
        pause(60_000).await;
        world.check_rest(session.id());
        let elsewhere = world.process().hub.open(session.id()).await.unwrap();
        assert_eq!(say(&elsewhere, "x").await, TurnEnd::Finished(FinishReason::Stop), "commit {nth}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_fault_while_a_call_runs_does_not_start_a_second_turn_beside_it() {
    let world = World::new("on \"hang\"\n call id=h hang {\"path\":\"a\"}\non *\n text \"fine\"");
    let (process, session) = world.session().await;
    let live = session.prompt(prompt("hang"));
    until_stored(&world, |_| world.runs.of("h") == 1).await;
    pause(20).await;
    process.store.fail_commit(0);
    let refused = answer(session.prompt(prompt("one"))).await;
    assert!(refused.is_err(), "{refused:?}");
    let second = session.prompt(prompt("two"));
    assert!(matches!(end_of(live).await, TurnEnd::Failed { .. } | TurnEnd::Aborted));
    assert_eq!(end_of(second).await, TurnEnd::Finished(FinishReason::Stop));
    assert_eq!(world.prompts(session.id()), ["hang", "two"]);
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn a_fault_while_a_question_is_superseded_leaves_one_turn() {
    for nth in 0..4 {
        let world = World::new("on \"ask\"\n call id=t touch {\"path\":\"a\"}\non *\n text \"fine\"");
        let (process, session) = world.session().await;
        let asked = session.prompt(prompt("ask"));
        until(&session, |state| *state == attache_core::events::RunState::WaitingOnApproval).await;
        process.store.fail_commit(nth);
        drop(answer(session.prompt(prompt_with_id("one", "msg_one"))).await);
        process.store.fail_commit(u64::MAX);
        assert_eq!(say(&session, "two").await, TurnEnd::Finished(FinishReason::Stop), "commit {nth}");
        drop(answer(asked).await);
        pause(60_000).await;
        assert_eq!(world.runs.of("t"), 0);
        world.check_rest(session.id());
        let one = world.disk.lock().unwrap().messages.contains_key(&MessageId::new("msg_one"));
        assert!(world.prompts(session.id()).len() <= if one { 3 } else { 2 });
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_closed_while_its_store_fails_is_free_for_others() {
    for nth in 0..8 {
        let world = World::new("on \"hang\"\n call id=h hang {\"path\":\"a\"}\non *\n text \"fine\"");
        let (process, session) = world.session().await;
        let _live = session.prompt(prompt("hang"));
        let _waiting = session.prompt(prompt("one"));
        until_stored(&world, |_| world.runs.of("h") == 1).await;
        process.store.fail_commit(nth);
        session.close().await.unwrap();
        process.store.fail_commit(u64::MAX);
        world.check_rest(session.id());
        let elsewhere = world.process().hub.open(session.id()).await.unwrap();
        assert_eq!(say(&elsewhere, "x").await, TurnEnd::Finished(FinishReason::Stop), "commit {nth}");
        assert_eq!(world.prompts(session.id()), ["hang", "x"], "commit {nth}");
    }
}
