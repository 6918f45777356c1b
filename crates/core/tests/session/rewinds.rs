//! Rewinds: what is hidden comes back until a turn starts, nothing is lost, and everything that reads a
//! conversation sees what is left of it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use attache_core::export::Format;
use attache_core::hub::{ForkPoint, HubError, NewSession};
use attache_core::ids::MessageId;
use attache_core::part::Role;
use attache_core::ports::client::Answer;
use attache_core::ports::snapshots::MoveOutcome;
use attache_core::ports::tool::Site;
use attache_core::ports::{BoxFuture, FileMover};
use attache_core::rewind::{LeftFile, MovedFiles, NotCovered, NotCoveredKind};
use attache_core::snapshot::{FileMove, FileState, SnapshotShelf};

use crate::world::*;

const SCRIPT: &str = "on \"talk\"\n stream 50 \"word \" every 10ms\non \"ask\"\n call touch {\"path\":\"a\"}\n ---\n text \"x\"\n\
                      on *\n usage input=4 output=2\n text \"fine\"";

/// The prompts that are visible, and the ids of all.
fn visible(world: &World, session: &attache_core::ids::SessionId) -> Vec<String> {
    let disk = world.disk.lock().unwrap();
    let rows = disk.conversation(session).into_iter();
    let rows = rows.filter(|row| row.role == Role::User && !row.metadata.is_hidden());
    rows.map(|row| text_of(&parts(&disk, &row.id))).collect()
}

fn ids(world: &World, session: &attache_core::ids::SessionId, role: Role) -> Vec<MessageId> {
    let disk = world.disk.lock().unwrap();
    let rows = disk.conversation(session).into_iter().filter(|row| row.role == role);
    rows.map(|row| row.id.clone()).collect()
}

fn last_request(world: &World) -> String {
    format!("{:?}", world.model.requests().last().unwrap().passages)
}

#[tokio::test(start_paused = true)]
async fn a_prompt_and_all_behind_it_are_hidden_and_handed_back() {
    let world = World::new(SCRIPT);
    let (process, session) = world.session().await;
    for text in ["one", "two", "three"] {
        say(&session, text).await;
    }
    let before = world.disk.lock().unwrap().sessions[session.id()].totals;
    let prompts = ids(&world, session.id(), Role::User);
    let rewound = session.rewind(None, prompts[1].clone()).await.unwrap();
    assert_eq!((rewound.hidden, text_of(&rewound.parts).as_str()), (4, "two"));
    assert_eq!(rewound.files, None);
    assert_eq!(visible(&world, session.id()), ["one"]);
    assert_eq!(world.prompts(session.id()).len(), 3, "nothing is deleted");
    assert_eq!(world.disk.lock().unwrap().sessions[session.id()].totals, before, "what was spent was spent");
    let exported = process.hub.export(session.id(), Format::Markdown).await.unwrap();
    assert!(exported.contains("one") && !exported.contains("two"), "{exported}");
    let loaded = join(&session, answering(&[])).await;
    drop(loaded);
    say(&session, "another").await;
    let request = last_request(&world);
    assert!(
        request.contains("\"one") && request.contains("another") && !request.contains("\"two"),
        "{request}"
    );
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn rewinds_are_taken_back_one_by_one_until_a_turn_starts() {
    let world = World::new(SCRIPT);
    let (_process, session) = world.session().await;
    for text in ["one", "two", "three"] {
        say(&session, text).await;
    }
    let prompts = ids(&world, session.id(), Role::User);
    session.rewind(None, prompts[2].clone()).await.unwrap();
    session.rewind(None, prompts[0].clone()).await.unwrap();
    assert_eq!(visible(&world, session.id()), Vec::<String>::new());
    assert_eq!(session.unrewind(None).await.unwrap().restored, 4);
    assert_eq!(visible(&world, session.id()), ["one", "two"]);
    assert_eq!(session.unrewind(None).await.unwrap().restored, 2);
    assert_eq!(visible(&world, session.id()), ["one", "two", "three"]);
    let nothing = session.unrewind(None).await.unwrap_err();
    assert!(matches!(&nothing, HubError::Invalid(reason) if reason.contains("nothing left")), "{nothing}");
    session.rewind(None, prompts[1].clone()).await.unwrap();
    say(&session, "four").await;
    assert!(matches!(session.unrewind(None).await, Err(HubError::Invalid(_))));
    assert_eq!(visible(&world, session.id()), ["one", "four"]);
    session.rewind(None, prompts[0].clone()).await.unwrap();
    assert_eq!(session.unrewind(None).await.unwrap().restored, 4, "what an earlier rewind hid stays hidden");
    assert_eq!(visible(&world, session.id()), ["one", "four"]);
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn another_process_knows_what_was_rewound() {
    let world = World::new(SCRIPT);
    let (process, session) = world.session().await;
    say(&session, "one").await;
    say(&session, "two").await;
    let prompts = ids(&world, session.id(), Role::User);
    session.rewind(None, prompts[1].clone()).await.unwrap();
    process.kill();
    let next = world.process();
    let session = next.hub.open(session.id()).await.unwrap();
    assert_eq!(session.unrewind(None).await.unwrap().restored, 2);
    assert_eq!(visible(&world, session.id()), ["one", "two"]);
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn a_turn_under_way_is_not_rewound() {
    let world = World::new(SCRIPT);
    let (_process, session) = world.session().await;
    say(&session, "one").await;
    let first = ids(&world, session.id(), Role::User).remove(0);
    let ticket = session.prompt(prompt("talk"));
    pause(50).await;
    let busy = HubError::Busy(session.id().clone());
    assert_eq!(session.rewind(None, first.clone()).await.unwrap_err(), busy);
    assert_eq!(session.unrewind(None).await.unwrap_err(), busy);
    let other = world.process();
    let elsewhere = other.hub.open(session.id()).await.unwrap();
    let refused = elsewhere.rewind(None, first.clone()).await.unwrap_err();
    assert_eq!(refused, HubError::RunningElsewhere(session.id().clone()));
    answer(ticket).await.unwrap();
    let attachment = join(&session, answering(&[])).await;
    let ticket = session.prompt(prompt("ask"));
    pause(200).await;
    assert_eq!(session.rewind(None, first.clone()).await.unwrap_err(), busy, "a question is open");
    session.cancel();
    answer(ticket).await.unwrap();
    drop(attachment);
    assert_eq!(session.rewind(None, first).await.unwrap().hidden, 6);
}

#[tokio::test(start_paused = true)]
async fn what_is_no_prompt_is_refused_by_name() {
    let world = World::new(SCRIPT);
    let (process, session) = world.session().await;
    say(&session, "one").await;
    say(&session, "two").await;
    let other = process.create().await;
    say(&other, "elsewhere").await;
    let (prompts, answers) =
        (ids(&world, session.id(), Role::User), ids(&world, session.id(), Role::Assistant));
    let foreign = ids(&world, other.id(), Role::User).remove(0);
    for (message, said) in [
        (MessageId::new("msg_none"), format!("its last prompt is {}", prompts[1])),
        (MessageId::new(format!("{}x", prompts[0])), format!("did you mean {}?", prompts[0])),
        (foreign, "there is no message".to_owned()),
        (answers[0].clone(), format!("is not a prompt; the last prompt before it is {}", prompts[0])),
    ] {
        let refused = session.rewind(None, message).await.unwrap_err().to_string();
        assert!(refused.contains(&said), "{refused}");
    }
    // The command that asks is no prompt that anybody means.
    for command in ["/rewind nonsense", "/fork nonsense"] {
        say(&session, command).await;
        let said = text_of(world.answers(session.id()).last().unwrap());
        assert!(said.contains(&format!("its last prompt is {}", prompts[1])), "{said}");
    }
    session.rewind(None, prompts[1].clone()).await.unwrap();
    let refused = session.rewind(None, prompts[1].clone()).await.unwrap_err().to_string();
    assert!(refused.contains("rewound already"), "{refused}");
    let again = attache_core::prompt::Prompt { message_id: Some(prompts[1].clone()), ..prompt("two") };
    let refused = answer(session.prompt(again)).await.unwrap_err().to_string();
    assert!(refused.contains("under another id"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_conversation_that_begins_anew_gets_a_new_title() {
    let world = World::new(SCRIPT);
    let (_process, session) = world.session().await;
    say(&session, "the old thing").await;
    say(&session, "more").await;
    let prompts = ids(&world, session.id(), Role::User);
    let title = || world.disk.lock().unwrap().sessions[session.id()].metadata.title().map(str::to_owned);
    session.rewind(None, prompts[1].clone()).await.unwrap();
    say(&session, "else").await;
    assert_eq!(title().as_deref(), Some("the old thing"));
    session.rewind(None, prompts[0].clone()).await.unwrap();
    assert_eq!(title().as_deref(), Some("the old thing"));
    say(&session, "the new thing").await;
    assert_eq!(title().as_deref(), Some("the new thing"));
}

#[tokio::test(start_paused = true)]
async fn everybody_attached_is_told() {
    let world = World::new(SCRIPT);
    let (_process, session) = world.session().await;
    let (shown, _reader) = read(join(&session, answering(&[])).await);
    say(&session, "one").await;
    let first = ids(&world, session.id(), Role::User).remove(0);
    session.rewind(None, first).await.unwrap();
    session.unrewind(None).await.unwrap();
    pause(50).await;
    let said = notices(&shown).join("; ");
    assert!(said.contains("The conversation was rewound") && said.contains("taken back"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn commands_take_turns_back_and_bring_them_again() {
    let world = World::new(SCRIPT);
    let (_process, session) = world.session().await;
    for text in ["one", "two", "three"] {
        say(&session, text).await;
    }
    let said = |session: &attache_core::ids::SessionId| text_of(world.answers(session).last().unwrap());
    say(&session, "/undo").await;
    assert!(said(session.id()).starts_with("Taken back: `three` (2 messages)"), "{}", said(session.id()));
    say(&session, "/undo").await;
    assert_eq!(visible(&world, session.id()), ["one", "/undo"].map(shown_command));
    say(&session, "/redo").await;
    assert_eq!(said(session.id()), "Brought back: 4 messages.", "two and the command behind it");
    say(&session, "/rewind").await;
    let listed = said(session.id());
    assert!(listed.contains("1. `two`") && listed.contains("2. `one`"), "{listed}");
    say(&session, "/rewind 7").await;
    assert!(said(session.id()).contains("There is no prompt 7"), "{}", said(session.id()));
    say(&session, "/rewind 2").await;
    say(&session, "fresh").await;
    let request = last_request(&world);
    assert!(
        request.contains("fresh") && !request.contains("\"one") && !request.contains("\"two"),
        "{request}"
    );
    say(&session, "/redo").await;
    assert!(said(session.id()).contains("nothing left to restore"));
    world.check_rest(session.id());
}

/// As `text_of` shows a message that is a command: without its words.
fn shown_command(text: &str) -> String {
    if text.starts_with('/') { String::new() } else { text.to_owned() }
}

#[tokio::test(start_paused = true)]
async fn a_copy_ends_with_the_turn_of_any_message() {
    let world = World::new(SCRIPT);
    let (process, session) = world.session().await;
    for text in ["one", "two", "three"] {
        say(&session, text).await;
    }
    let (prompts, answers) =
        (ids(&world, session.id(), Role::User), ids(&world, session.id(), Role::Assistant));
    let new = || NewSession { root: "/w".into(), place: Default::default() };
    for message in [&prompts[1], &answers[1]] {
        let point = ForkPoint::Message(message.clone());
        let copy = process.hub.fork_at(session.id(), &point, new()).await.unwrap();
        assert_eq!(world.prompts(copy.id()), ["one", "two"]);
        let disk = world.disk.lock().unwrap();
        let row = &disk.sessions[copy.id()];
        assert_eq!(row.parent_message_id.as_ref(), Some(&answers[1]));
        assert_eq!(row.totals.prompt_tokens, 8);
    }
    session.rewind(None, prompts[2].clone()).await.unwrap();
    let hidden = ForkPoint::Message(prompts[2].clone());
    let refused = process.hub.fork_at(session.id(), &hidden, new()).await.unwrap_err().to_string();
    assert!(refused.contains("no visible message") && refused.contains(prompts[1].as_str()), "{refused}");
    say(&session, "/fork 2").await;
    let copied = text_of(world.answers(session.id()).last().unwrap());
    let id = copied.split('`').nth(1).unwrap();
    let copy = process.hub.open(&attache_core::ids::SessionId::new(id)).await.unwrap();
    assert_eq!(world.prompts(copy.id()), ["one"]);
    say(&copy, "more").await;
    world.check_rest(copy.id());
}

/// Counts how often it is asked, and never comes back until it is told to.
#[derive(Debug, Default)]
struct SlowMover {
    asked: AtomicUsize,
    may_end: AtomicBool,
}

impl FileMover for SlowMover {
    fn move_files(
        &self,
        _site: Site,
        _shelf: Arc<SnapshotShelf>,
        moves: Vec<FileMove>,
    ) -> BoxFuture<'_, Vec<MoveOutcome>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            while !self.may_end.load(Ordering::SeqCst) {
                pause(10).await;
            }
            moves.iter().map(|_| MoveOutcome::Moved).collect()
        })
    }

    fn look_at(&self, _site: Site, paths: Vec<PathBuf>) -> BoxFuture<'_, Vec<Option<FileState>>> {
        Box::pin(std::future::ready(paths.iter().map(|_| None).collect()))
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_tool_does_not_tell_is_not_covered() {
    let mover = Arc::new(SlowMover::default());
    mover.may_end.store(true, Ordering::SeqCst);
    let world = World::new(SCRIPT).with_files(mover);
    let (_process, session) = world.session().await;
    let attachment = join(&session, answering(&[Answer::AllowOnce])).await;
    say(&session, "ask").await;
    drop(attachment);
    let first = ids(&world, session.id(), Role::User).remove(0);
    let files = session.rewind(None, first).await.unwrap().files.unwrap();
    assert_eq!(files.not_covered.len(), 1, "{files:?}");
    assert!(files.not_covered[0].reason.contains("it is unknown what"), "{files:?}");
}

#[tokio::test(start_paused = true)]
async fn the_model_is_told_once_what_was_taken_back_and_what_is_still_there() {
    let mover = Arc::new(SlowMover::default());
    mover.may_end.store(true, Ordering::SeqCst);
    let world = World::new(SCRIPT).with_files(mover);
    let (_process, session) = world.session().await;
    say(&session, "one").await;
    let attachment = join(&session, answering(&[Answer::AllowOnce])).await;
    say(&session, "ask").await;
    drop(attachment);
    let second = ids(&world, session.id(), Role::User).remove(1);
    session.rewind(None, second.clone()).await.unwrap();
    session.unrewind(None).await.unwrap();
    say(&session, "two").await;
    assert!(!last_request(&world).contains("took back"), "that was taken back itself");
    let prompts = ids(&world, session.id(), Role::User);
    session.rewind(None, prompts[1].clone()).await.unwrap();
    say(&session, "three").await;
    let told = last_request(&world);
    assert!(told.contains("The user took back what came after this point"), "{told}");
    assert!(
        told.contains("may have changed files that were not put back") && told.contains("it is unknown what"),
        "{told}"
    );
    say(&session, "four").await;
    assert_eq!(last_request(&world).matches("took back").count(), 1, "told once");
    world.check_rest(session.id());
}

#[test]
fn files_that_a_command_may_have_changed_are_not_said_to_be_changed_by_others() {
    let left = LeftFile { path: "/w/a".into(), reason: "it was changed".into() };
    let mut moved = MovedFiles { conflicts: vec![left], ..MovedFiles::default() };
    assert!(moved.in_words("/w".as_ref()).contains("Changed by others since"));
    let sed = NotCovered { what: "sed -i".into(), kind: NotCoveredKind::Call, reason: "unknown".into() };
    moved.not_covered.extend([
        sed.clone(),
        sed,
        NotCovered { what: "/w/b".into(), kind: NotCoveredKind::File, reason: "too large".into() },
    ]);
    let told = moved.in_words("/w".as_ref());
    assert!(told.contains("by others or by what is named below"), "{told}");
    assert!(
        told.contains("were not put back; look at those before you rely on them:\n- `sed -i`: unknown\n"),
        "{told}"
    );
    assert!(told.ends_with("before you rely on them:\n- `b`: too large"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn files_that_a_dead_process_was_moving_go_the_rest_of_their_way() {
    let mover = Arc::new(SlowMover::default());
    let world = World::new(SCRIPT).with_files(mover.clone());
    let (process, session) = world.session().await;
    let attachment = join(&session, answering(&[Answer::AllowOnce])).await;
    say(&session, "ask").await;
    drop(attachment);
    let first = ids(&world, session.id(), Role::User).remove(0);
    let rewinding = tokio::spawn(session.rewind(None, first));
    let moving =
        |world: &World| world.disk.lock().unwrap().sessions[session.id()].metadata.moving_files().is_some();
    until_stored(&world, |disk| disk.sessions[session.id()].metadata.moving_files().is_some()).await;
    pause(20).await;
    assert_eq!(mover.asked.load(Ordering::SeqCst), 1);
    process.kill();
    rewinding.abort();
    mover.may_end.store(true, Ordering::SeqCst);
    let next = world.process();
    let again = next.hub.open(session.id()).await.unwrap();
    assert_eq!(mover.asked.load(Ordering::SeqCst), 2);
    assert!(!moving(&world));
    assert_eq!(visible(&world, session.id()), Vec::<String>::new());
    assert_eq!(again.unrewind(None).await.unwrap().restored, 2);
    world.check_rest(session.id());
}
