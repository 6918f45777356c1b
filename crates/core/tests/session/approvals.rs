//! How much happens without asking: chosen, stored, bounded by the host, followed by a turn under way.

use attache_core::chunk::FinishReason;
use attache_core::hub::{AttachFrom, HubError, SessionHandle};
use attache_core::ports::client::Answer;
use attache_core::turn::TurnEnd;
use attache_core::watchdog::{Approval, Containment};

use crate::world::*;

const TOUCHES: &str = concat!(
    "on \"inside\"\n call id=in touch {\"path\":\"a\"}\n ---\n text \"on\"\n",
    "on \"outside\"\n call id=out touch {\"path\":\"/other/a\"}\n ---\n text \"on\"\n",
    "on \"hooks\"\n call id=hook touch {\"path\":\".git/hooks/x\"}\n ---\n text \"on\"\n",
    "on \"slow\"\n call id=first touch {\"path\":\"a\",\"ms\":50}\n ---\n call id=last touch {\"path\":\"b\"}\n ---\n text \"on\"\n",
);

fn world() -> World {
    World::new(TOUCHES)
}

fn unheld(world: World) -> World {
    world.with_settings(|settings| settings.containment = Containment::ExplicitlyOff.into())
}

async fn done(session: &SessionHandle, prompt: &str) {
    assert_eq!(say(session, prompt).await, TurnEnd::Finished(FinishReason::Stop));
}

#[tokio::test(start_paused = true)]
async fn accepted_edits_pass_within_the_roots_only() {
    let world = world();
    let (_process, session) = world.session().await;
    let client = answering(&[Answer::RejectOnce]);
    let _participant = join(&session, client.clone()).await;
    assert_eq!(session.set_approval(Approval::Edits).await.unwrap().approval, Approval::Edits);
    done(&session, "inside").await;
    done(&session, "hooks").await;
    assert_eq!(client.asked().len(), 0);
    done(&session, "outside").await;
    assert_eq!(client.asked().len(), 1);
    assert_eq!(["in", "hook", "out"].map(|call| world.runs.of(call)), [1, 0, 0]);
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn everything_passes_where_nothing_shall_be_held_except_what_is_protected() {
    let world = unheld(world());
    let (_process, session) = world.session().await;
    assert_eq!(session.set_approval(Approval::All).await.unwrap().approval, Approval::All);
    for prompt in ["inside", "hooks", "outside"] {
        done(&session, prompt).await;
    }
    assert_eq!(["in", "hook", "out"].map(|call| world.runs.of(call)), [1, 0, 1]);
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn everything_is_refused_where_nothing_holds_it() {
    let world = world();
    let (_process, session) = world.session().await;
    let refused = session.set_approval(Approval::All).await.unwrap_err();
    assert!(matches!(&refused, HubError::Invalid(reason) if reason.contains("sandbox")), "{refused}");
    let attachment = session.attach(None, AttachFrom::Now).await.unwrap();
    assert_eq!(attachment.chosen.approval, Approval::Ask);
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn a_choice_is_kept_and_falls_back_on_a_host_that_may_not() {
    let world = unheld(world()).with_settings(|settings| settings.approval = Approval::Edits);
    let (process, session) = world.session().await;
    let id = session.id().clone();
    let chosen =
        async |session: &SessionHandle| session.attach(None, AttachFrom::Now).await.unwrap().chosen.approval;
    assert_eq!(chosen(&session).await, Approval::Edits, "as the host was started");
    session.set_approval(Approval::All).await.unwrap();
    process.kill();
    let process = world.process();
    assert_eq!(chosen(&process.hub.open(&id).await.unwrap()).await, Approval::All);
    process.kill();
    let world = world.with_settings(|settings| settings.containment = Containment::None.into());
    let process = world.process();
    let session = process.hub.open(&id).await.unwrap();
    let client = answering(&[Answer::RejectOnce]);
    let attachment = join(&session, client.clone()).await;
    assert_eq!(attachment.chosen.approval, Approval::Ask);
    let (shown, _reader) = read(attachment);
    done(&session, "inside").await;
    assert_eq!((client.asked().len(), world.runs.of("in")), (1, 0));
    assert_eq!(notices(&shown), ["attache asks before changes and commands here"]);
    // Said to be what it has become: nothing comes back later.
    session.set_approval(Approval::Ask).await.unwrap();
    process.kill();
    let world = unheld(world);
    assert_eq!(chosen(&world.process().hub.open(&id).await.unwrap()).await, Approval::Ask);
    world.check_rest(&id);
}

#[tokio::test(start_paused = true)]
async fn a_turn_under_way_follows_at_its_next_call() {
    for (before, after, asked) in [(Approval::Edits, Approval::Ask, 1), (Approval::Edits, Approval::All, 0)] {
        let world = unheld(world());
        let (_process, session) = world.session().await;
        let client = answering(&[Answer::RejectOnce]);
        let _participant = join(&session, client.clone()).await;
        session.set_approval(before).await.unwrap();
        let ticket = session.prompt(prompt("slow"));
        pause(20).await;
        session.set_approval(after).await.unwrap();
        assert_eq!(end_of(ticket).await, TurnEnd::Finished(FinishReason::Stop));
        assert_eq!((client.asked().len(), world.runs.of("first")), (asked, 1));
        world.check_rest(session.id());
    }
}

#[tokio::test(start_paused = true)]
async fn a_choice_that_could_not_be_stored_lets_nothing_pass() {
    let world = world();
    let (process, session) = world.session().await;
    let client = answering(&[Answer::RejectOnce]);
    let _participant = join(&session, client.clone()).await;
    process.store.fail_commit(0);
    assert!(session.set_approval(Approval::Edits).await.is_err());
    process.store.fail_commit(u64::MAX);
    done(&session, "inside").await;
    assert_eq!((client.asked().len(), world.runs.of("in")), (1, 0));
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn a_copy_starts_with_what_the_host_was_started_with() {
    let world = world();
    let (process, session) = world.session().await;
    session.set_approval(Approval::Edits).await.unwrap();
    let new = attache_core::hub::NewSession { root: "/w".into(), place: Default::default() };
    let copy = process.hub.fork(session.id(), new).await.unwrap();
    let attachment = copy.attach(None, AttachFrom::Now).await.unwrap();
    assert_eq!(attachment.chosen.approval, Approval::Ask);
}
