//! Who only asks changes nothing: status, queue and close of a session that is not open here, with a dead owner
//! behind it.

use attache_core::chunk::FinishReason;
use attache_core::events::RunState;
use attache_core::hub::HubError;
use attache_core::ids::{MessageId, SessionId};
use attache_core::ports::client::Answer;
use attache_core::turn::TurnEnd;
use attache_testkit::fakes::disk::Disk;

use crate::world::*;

const SCRIPT: &str = "on \"hang\"\n call id=h hang {\"path\":\"a\"}\non \"ask\"\n call id=t touch {\"path\":\"a\"}\n \
                      ---\n text \"done\"\non *\n text \"fine\"";

/// A session whose owner was killed in the turn of `prompted`, with two messages behind it.
async fn abandoned(world: &World, prompted: &str) -> SessionId {
    let (process, session) = world.session().await;
    let _running = session.prompt(prompt(prompted));
    pause(50).await;
    let _first = session.prompt(prompt_with_id("one", "msg_1"));
    let _second = session.prompt(prompt_with_id("two", "msg_2"));
    until_stored(world, |disk| disk.messages.len() == 4).await;
    process.kill();
    session.id().clone()
}

/// Everything that recovery, a drain or a start would change.
fn state(disk: &Disk, id: &SessionId) -> String {
    let run = disk.leases.get(id).map(|lease| lease.run.clone());
    let fired: Vec<_> = disk.conversation(id).into_iter().map(|row| row.id.clone()).collect();
    format!("{run:?} {fired:?} {}", disk.archive[id].len())
}

#[tokio::test(start_paused = true)]
async fn status_queue_and_close_leave_a_dead_owners_session_as_it_is() {
    for (prompted, expected) in [("hang", RunState::Idle), ("ask", RunState::WaitingOnApproval)] {
        let world = World::new(SCRIPT);
        let id = abandoned_with_question(&world, prompted).await;
        let before = state(&world.disk.lock().unwrap(), &id);
        let requests = world.model.requests().len();
        let process = world.process();
        let found = process.hub.find(&id).await.unwrap();
        assert_eq!(found.status().await.unwrap().state, expected);
        let queued = found.queued().await.unwrap();
        assert_eq!(
            queued.iter().map(|queued| queued.message_id.as_str()).collect::<Vec<_>>(),
            ["msg_1", "msg_2"]
        );
        found.close().await.unwrap();
        found.edit_queued(MessageId::new("msg_1"), prompt("changed")).await.unwrap();
        found.cancel_queued(MessageId::new("msg_2")).await.unwrap();
        assert!(matches!(found.cancel_queued(MessageId::new("msg_2")).await, Err(HubError::Invalid(_))));
        let queued = found.queued().await.unwrap();
        assert_eq!(queued.len(), 1);
        assert_eq!(queued[0].parts, prompt("changed").parts);
        pause(5_000).await;
        assert_eq!(state(&world.disk.lock().unwrap(), &id), before);
        assert_eq!(world.model.requests().len(), requests);
        // Whoever opens it goes on as if no one had asked.
        let session = process.hub.open(&id).await.unwrap();
        let _participant = join(&session, answering(&[Answer::AllowOnce])).await;
        until(&session, |state| *state == RunState::Idle).await;
        until_stored(&world, |disk| disk.conversation(&id).len() == 4).await;
        assert_eq!(world.prompts(&id), [prompted, "changed"]);
        until(&session, |state| *state == RunState::Idle).await;
        world.check_rest(&id);
    }
}

async fn abandoned_with_question(world: &World, prompted: &str) -> SessionId {
    match prompted {
        // A new prompt answers an open question, so the queue has to be there before it.
        "ask" => {
            let (process, session) = world.session().await;
            let _running = session.prompt(prompt("ask"));
            let _first = session.prompt(prompt_with_id("one", "msg_1"));
            let _second = session.prompt(prompt_with_id("two", "msg_2"));
            until(&session, |state| *state == RunState::WaitingOnApproval).await;
            process.kill();
            session.id().clone()
        }
        _ => abandoned(world, prompted).await,
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_that_another_process_runs_is_told_of_and_left_alone() {
    let world = World::new(SCRIPT);
    let (_process, session) = world.session().await;
    let running = session.prompt(prompt("hang"));
    pause(50).await;
    let waiting = session.prompt(prompt_with_id("one", "msg_1"));
    until_stored(&world, |disk| disk.messages.len() == 3).await;
    let found = world.process().hub.find(session.id()).await.unwrap();
    assert_eq!(found.status().await.unwrap().state, RunState::Busy);
    assert_eq!(found.queued().await.unwrap().len(), 1);
    let cancelled = found.cancel_queued(MessageId::new("msg_1")).await;
    assert!(matches!(cancelled, Err(HubError::RunningElsewhere(_))), "{cancelled:?}");
    found.close().await.unwrap();
    session.cancel();
    assert_eq!(end_of(running).await, TurnEnd::Aborted);
    end_of(waiting).await;
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn an_unknown_session_is_not_found() {
    let world = World::new(SCRIPT);
    let found = world.process().hub.find(&SessionId::new("ses_none")).await;
    assert!(matches!(found, Err(HubError::UnknownSession { .. })));
}

/// What a tool keeps running for a session ends with it, however that ends, and with no other.
#[tokio::test(start_paused = true)]
async fn tools_are_told_when_a_session_is_closed_deleted_or_left_by_the_host() {
    let world = World::new("on *\n call look {\"path\":\"a\"}\n ---\n text \"on\"");
    let (process, kept) = world.session().await;
    let (closed, deleted) = (process.create().await, process.create().await);
    for session in [&kept, &closed, &deleted] {
        assert_eq!(say(session, "go").await, TurnEnd::Finished(FinishReason::Stop));
    }
    assert_eq!(world.runs.ended(), []);
    closed.close().await.unwrap();
    assert_eq!(world.runs.ended(), [closed.id().clone()]);
    process.hub.delete(deleted.id()).await.unwrap();
    assert_eq!(world.runs.ended(), [closed.id().clone(), deleted.id().clone()]);
    process.hub.shutdown().await;
    assert_eq!(world.runs.ended(), [closed.id().clone(), deleted.id().clone(), kept.id().clone()]);
}
