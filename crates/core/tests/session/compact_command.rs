//! `/compact`: the user has the conversation summarised. A turn of its own kind, in the order of the prompts:
//! what is to be kept reaches who writes the note, nothing stays verbatim, and cancel ends it.

use attache_core::chunk::{Chunk, FinishReason};
use attache_core::compactor::Compactor;
use attache_core::estimate;
use attache_core::hub::AttachFrom;
use attache_core::part::{Part, Role};
use attache_core::ports::ModelError;
use attache_core::ports::model::ThoughtLevel;
use attache_core::ports::store::ModelRef;
use attache_core::turn::TurnEnd;
use attache_testkit::fakes::store::MemoryStore;
use serde_json::json;

use crate::making_room::{FACT, Worker, is_finished, is_note_request, marks, requests, shown_text, world};
use crate::world::*;

fn last_answer(world: &World, session: &attache_core::hub::SessionHandle) -> String {
    text_of(world.answers(session.id()).last().unwrap())
}

#[tokio::test(start_paused = true)]
async fn the_whole_conversation_becomes_a_note_with_what_the_user_wants_kept() {
    let world = world(Worker::new(100_000, 1, 4_000));
    let (process, session) = world.session().await;
    assert!(is_finished(&say(&session, FACT).await));
    assert!(is_finished(&say(&session, "second").await));
    assert!(is_finished(&say(&session, "/compact the names of </keep> files").await));
    let (notes, sent) = requests(&world);
    assert_eq!(notes.len(), 1);
    // The very conversation that was sent, the same system prompt and tools: the provider has it in its cache.
    let before = sent.last().unwrap();
    assert!(std::sync::Arc::ptr_eq(&notes[0].tools, &before.tools) && notes[0].system == before.system);
    assert_eq!(notes[0].passages[..before.passages.len()], before.passages[..]);
    let asked = text_of(&notes[0].passages.last().unwrap().parts);
    assert!(asked.contains("<keep>\nthe names of <\\/keep> files\n</keep>"), "{asked}");
    assert!(asked.contains("## Facts from the user"), "{asked}");
    let answer = last_answer(&world, &session);
    assert!(
        answer.starts_with("Summarised: about 2") && answer.contains(" tokens of conversation became "),
        "{answer}"
    );
    let mark = marks(&world, &session).pop().unwrap();
    assert_eq!(
        (&mark["status"], &mark["auto"], &mark["tail_start_id"]),
        (&json!("completed"), &json!(false), &json!(null))
    );

    assert!(is_finished(&say(&session, "third").await));
    let (_, sent) = requests(&world);
    let live = &sent[sent.len() - 2].passages;
    assert_eq!(live.len(), 2, "the note and the prompt");
    assert!(text_of(&live[0].parts).contains(FACT) && text_of(&live[1].parts) == "third");
    let id = session.id().clone();
    process.kill();
    let session = world.process().hub.open(&id).await.unwrap();
    assert!(is_finished(&say(&session, "fourth").await));
    let (_, sent) = requests(&world);
    let stored = &sent[sent.len() - 2].passages;
    assert_eq!(stored[..live.len()], live[..], "a restart changes nothing");
    world.check_rest(&id);
}

#[tokio::test(start_paused = true)]
async fn people_are_told_what_the_context_takes_afterwards() {
    let world = world(Worker::new(100_000, 1, 40_000));
    let (_process, session) = world.session().await;
    assert!(is_finished(&say(&session, "one").await));
    assert!(is_finished(&say(&session, "/compact").await));
    let answers = world.answers(session.id());
    let used = |answer: &Vec<Part>| {
        answer.iter().rev().find_map(|part| match part {
            Part::Data { name, data, .. } if name == "usage" => data["context_used"].as_u64(),
            _ => None,
        })
    };
    let [before, after] = [&answers[0], &answers[1]].map(|answer| used(answer).unwrap());
    assert!(after < before / 2, "{after} of {before}");
}

#[tokio::test(start_paused = true)]
async fn a_model_that_calls_tools_instead_of_writing_leaves_a_note_made_without_it() {
    let world = world(Worker { calls_instead: true, ..Worker::new(100_000, 0, 0) });
    let (_process, session) = world.session().await;
    say(&session, "the first prompt of all").await;
    assert!(is_finished(&say(&session, "/compact").await));
    let mark = marks(&world, &session).pop().unwrap();
    let summary = mark["summary"].as_str().unwrap();
    assert!(
        summary.contains("Nobody could summarise") && summary.contains("the first prompt of all"),
        "{mark}"
    );
    world.check_rest(session.id());
}

/// Providers refuse a request whose answer would not fit beside it.
#[tokio::test(start_paused = true)]
async fn a_request_for_a_note_leaves_its_answer_room_in_the_window() {
    for (context, bytes) in [(8_000, 12_000), (8_000, 22_000), (32_000, 88_000), (100_000, 290_000)] {
        let world = world(Worker { max_output: context / 4, ..Worker::new(context, 1, bytes) });
        let (_process, session) = world.session().await;
        say(&session, "one").await;
        say(&session, "/compact").await;
        let (notes, _) = requests(&world);
        assert!(!notes.is_empty());
        for note in notes {
            let taken = estimate::request_tokens(&note);
            assert!(
                taken + note.info.max_output <= context,
                "{taken} and {} of {context}",
                note.info.max_output
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn without_anything_said_no_model_is_asked() {
    let world = world(Worker::new(100_000, 0, 0));
    let (_process, session) = world.session().await;
    assert!(is_finished(&say(&session, "/compact").await));
    assert_eq!(last_answer(&world, &session), "There is nothing to summarise yet.");
    say(&session, "one").await;
    say(&session, "/compact").await;
    say(&session, "/compact").await;
    assert_eq!(last_answer(&world, &session), "There is nothing to summarise yet.");
    assert_eq!(requests(&world).0.len(), 1);
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn a_host_without_compaction_says_so() {
    let world = World::new("on *\n text \"fine\"");
    let (_process, session) = world.session().await;
    say(&session, "one").await;
    assert!(is_finished(&say(&session, "/compact").await));
    assert_eq!(last_answer(&world, &session), "Conversations can't be summarised here.");
}

#[tokio::test(start_paused = true)]
async fn a_note_that_fails_is_an_error_and_leaves_the_conversation_as_it_was() {
    let refusal = ModelError::Permanent("no notes today".into());
    let world = world(Worker { fails_with: Some(refusal), ..Worker::new(100_000, 0, 0) });
    let (_process, session) = world.session().await;
    say(&session, "one").await;
    let end = say(&session, "/compact").await;
    assert!(matches!(&end, TurnEnd::Failed { message, .. } if message == "no notes today"), "{end:?}");
    let mark = marks(&world, &session).pop().unwrap();
    assert_eq!((&mark["status"], &mark["error"]), (&json!("failed"), &json!("no notes today")));
    say(&session, "two").await;
    let (_, sent) = requests(&world);
    assert_eq!(sent.last().unwrap().passages.len(), 3);
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn it_waits_for_the_turn_before_it_tells_its_progress_and_is_cancelled() {
    let world = world(Worker { is_slow: true, ..Worker::new(100_000, 1, 10) });
    let (process, session) = world.session().await;
    let attached = session.attach(None, AttachFrom::Now).await.unwrap();
    let (shown, _reading) = read(attached);
    let (first, compact, last) =
        (session.prompt(prompt("one")), session.prompt(prompt("/compact")), session.prompt(prompt("two")));
    assert_eq!(end_of(first).await, TurnEnd::Finished(FinishReason::Stop));
    let is_told = |told: &str| {
        let shown = shown.lock().unwrap();
        shown.iter().any(|(_, _, chunk)| match chunk {
            Chunk::Data { name, data, transient: Some(true), .. } if name == "compaction" => {
                data["text"] == told && data["status"] == "in_progress"
            }
            _ => false,
        })
    };
    until_stored(&world, |_| is_told("the beginning")).await;
    session.cancel();
    assert_eq!(end_of(compact).await, TurnEnd::Aborted);
    assert!(is_finished(&end_of(last).await), "what waits goes on");
    let mark = marks(&world, &session).pop().unwrap();
    assert_eq!(mark["status"], "cancelled");
    world.check_rest(session.id());

    // A process that dies in the middle leaves no boundary, and nothing that looks as if it went on.
    let killed = session.prompt(prompt("/compact"));
    while marks(&world, &session).last().unwrap()["status"] != "in_progress" {
        pause(1).await;
    }
    process.kill();
    drop(killed);
    let session = world.process().hub.open(session.id()).await.unwrap();
    assert!(is_finished(&say(&session, "three").await));
    assert_eq!(marks(&world, &session).pop().unwrap()["status"], "cancelled");
    let (_, sent) = requests(&world);
    assert!(shown_text(sent.last().unwrap()).starts_with("one\n"));
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn a_small_model_with_room_writes_the_note_and_sees_stubs() {
    for (window, by_small) in [(30_000, true), (9_000, false)] {
        let world = world(Worker { small: Some(window), ..Worker::new(100_000, 10, 4_000) });
        let (_process, session) = world.session().await;
        say(&session, FACT).await;
        say(&session, "more").await;
        assert!(is_finished(&say(&session, "/compact").await));
        let (notes, _) = requests(&world);
        assert_eq!(notes.len(), 1);
        assert!(is_note_request(&notes[0]));
        assert_eq!(notes[0].model().model_id == "small", by_small, "a window of {window}");
        let writer = if by_small { "script/small" } else { "script/default" };
        let last = world.disk.lock().unwrap().conversation(session.id()).last().unwrap().metadata.clone();
        assert_eq!(last.model(), Some(writer), "who looks at the usage sees whose it is");
        let text = shown_text(&notes[0]);
        assert_eq!(text.contains("(removed to make room: the result of look file_1.rs"), by_small, "{text}");
        say(&session, "third").await;
        let (_, sent) = requests(&world);
        assert!(shown_text(sent.last().unwrap()).contains(FACT));
    }
}

/// As with every agent: its file says which model writes and how much that thinks.
#[tokio::test(start_paused = true)]
async fn the_model_and_the_effort_of_the_compaction_agent_are_those_of_its_file() {
    for (front, model, thought) in [
        ("effort: low\n", "small", Some(ThoughtLevel::Low)),
        ("effort: max\n", "small", Some(ThoughtLevel::Off)),
        ("model: script/default\n", "default", None),
        ("model: script/default\neffort: low\n", "default", Some(ThoughtLevel::Low)),
        // One that can't be asked is none.
        ("model: nobody/x\n", "small", Some(ThoughtLevel::Off)),
    ] {
        let manifest = format!("---\nid: compaction\n{front}---\n");
        let levels = vec![ThoughtLevel::Off, ThoughtLevel::Low];
        let worker = Worker { small: Some(30_000), levels, ..Worker::new(100_000, 10, 4_000) };
        let world = world(worker).with_agents(&[("compaction", &manifest)]);
        let (_process, session) = world.session().await;
        say(&session, FACT).await;
        say(&session, "more").await;
        assert!(is_finished(&say(&session, "/compact").await));
        let (notes, _) = requests(&world);
        assert_eq!(notes.len(), 1, "{front}");
        assert_eq!((&*notes[0].model().model_id, notes[0].thought), (model, thought), "{front}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_rewind_past_a_summary_brings_the_whole_history_back() {
    let world = world(Worker::new(100_000, 1, 4_000));
    let (_process, session) = world.session().await;
    say(&session, FACT).await;
    say(&session, "second").await;
    let (_, sent) = requests(&world);
    let before = sent.last().unwrap().passages.clone();
    assert!(is_finished(&say(&session, "/compact").await));
    say(&session, "third").await;
    let prompts: Vec<_> = {
        let disk = world.disk.lock().unwrap();
        let rows = disk.conversation(session.id()).into_iter();
        rows.filter(|row| row.role == Role::User).map(|row| row.id.clone()).collect()
    };
    // To a prompt behind it: the summary holds.
    session.rewind(None, prompts[3].clone()).await.unwrap();
    say(&session, "another third").await;
    let first_request = |text: &str| {
        let (_, sent) = requests(&world);
        let asked = |request: &&attache_core::ports::ModelRequest| {
            request.passages.last().is_some_and(|last| text_of(&last.parts) == text)
        };
        sent.iter().find(asked).unwrap().passages.clone()
    };
    assert_eq!(first_request("another third").len(), 2, "the note and the prompt");
    // To the command itself: everything is there again, to the byte.
    session.rewind(None, prompts[2].clone()).await.unwrap();
    say(&session, "fourth").await;
    let passages = first_request("fourth");
    assert_eq!(passages[..before.len()], before[..]);
    assert!(!passages.iter().any(|passage| text_of(&passage.parts).contains("conversation_summary")));
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn a_note_is_tried_again_while_the_provider_is_busy() {
    let script = "on \"Stop the work here\"*\n error transient \"busy\" times=2\n text \"## Goal\\nwork\"\n\
                  on *\n text \"fine\"";
    let world = World::new(script);
    let blobs = std::sync::Arc::new(MemoryStore::open(world.disk.clone(), 1_000, 1_000));
    let compactor = Compactor { model: world.model.clone(), blobs, small_model: None };
    let world = world.with_compaction(std::sync::Arc::new(compactor));
    let (_process, session) = world.session().await;
    say(&session, "one").await;
    assert!(is_finished(&say(&session, "/compact").await));
    assert!(last_answer(&world, &session).starts_with("Summarised: "), "{}", last_answer(&world, &session));
    assert_eq!(requests(&world).0.len(), 3, "two of them failed");
}

/// Far more than the model that goes on can read at once, and far more than all pieces of it hold.
#[tokio::test(start_paused = true)]
async fn what_no_request_holds_is_summarised_piece_by_piece_and_the_middle_goes_last() {
    for (turns, drops_the_middle) in [(8, false), (60, true)] {
        let worker = Worker { answer_bytes: 20_000, small: Some(8_192), ..Worker::new(2_000_000, 0, 0) };
        let world = world(worker);
        let (_process, session) = world.session().await;
        say(&session, FACT).await;
        for turn in 0..turns {
            say(&session, &format!("prompt {turn}")).await;
        }
        session.set_model(ModelRef::new("script", "small")).await.unwrap();
        assert!(is_finished(&say(&session, "go on").await), "{turns}");
        let (notes, sent) = requests(&world);
        assert!((2..=16).contains(&notes.len()), "{} pieces", notes.len());
        assert!(shown_text(&notes[1]).contains("<note_so_far>"));
        let dropped = notes.iter().any(|note| shown_text(note).contains("are left out here"));
        assert_eq!(dropped, drops_the_middle, "{turns}");
        let last = shown_text(sent.last().unwrap());
        assert!(last.contains(FACT) && last.contains("go on"), "{last}");
        world.check_rest(session.id());
    }
}
