//! Each checker is shown to fail on a fault put in on purpose: a checker that can't fail checks nothing.

use attache_core::chunk::Chunk;
use attache_core::chunk::json::encode_into;
use attache_core::ports::store::LiveRun;

use crate::check;
use crate::observed::{Answered, Observed};
use crate::simulate;

/// A clean run in which something happened: calls ran, readers read, several prompts were answered.
fn rich() -> Observed {
    (0..2_000)
        .map(simulate)
        .find(|observed| {
            let answered = observed.prompts.iter().filter(|prompt| prompt.outcomes().count() == 1).count();
            let read = observed.readers.iter().any(|reader| reader.whole && reader.seen.len() > 20);
            let touched = observed.runs.keys().any(|call| observed.allowed.contains(call));
            answered > 3 && read && touched && check::everything(observed).is_ok()
        })
        .expect("some seed has it all")
}

#[test]
fn a_lost_chunk_is_seen() {
    let mut observed = rich();
    let reader = observed.readers.iter_mut().find(|reader| reader.seen.len() > 20).unwrap();
    reader.seen.remove(10);
    assert!(check::readers_missed_nothing(&observed).is_err());

    let mut observed = rich();
    let reader = observed.readers.iter_mut().find(|reader| reader.whole && reader.seen.len() > 20).unwrap();
    let (session, opening) = (reader.session.clone(), reader.opening);
    reader.seen.clear();
    let answered = |prompt: &&mut crate::observed::PromptLog| {
        prompt.session == session && prompt.opening == opening && prompt.outcomes().count() == 1
    };
    let start = reader.start;
    if let Some(Answered::Outcome(outcome)) =
        observed.prompts.iter_mut().find(answered).and_then(|prompt| prompt.answers.first_mut())
    {
        outcome.after_index = start + 1;
        assert!(check::readers_missed_nothing(&observed).is_err());
    }
}

#[test]
fn an_entry_that_was_shown_and_not_stored_is_seen() {
    let mut observed = rich();
    let reader = observed.readers.iter_mut().find(|reader| reader.seen.len() > 20).unwrap();
    reader.seen[5].chunk.push(' ');
    assert!(check::readers_saw_what_was_stored(&observed).is_err());
}

#[test]
fn a_hole_in_the_archive_is_seen() {
    let mut observed = rich();
    let segments = observed.disk.archive.values_mut().find(|segments| segments.len() > 4).unwrap();
    segments.remove(2);
    assert!(check::archive_is_dense(&observed).is_err());
}

#[test]
fn an_update_after_the_answer_is_seen() {
    let mut observed = rich();
    let prompt = observed.prompts.iter_mut().find(|prompt| {
        prompt.outcomes().any(|outcome| observed.disk.messages[&outcome.message_id].seq.is_some())
    });
    let Some(Answered::Outcome(outcome)) = prompt.and_then(|prompt| prompt.answers.first_mut()) else {
        panic!("no outcome")
    };
    outcome.after_index -= 1;
    assert!(check::nothing_came_after_the_answer(&observed).is_err());
}

#[test]
fn doubled_missing_and_disordered_answers_are_seen() {
    let mut observed = rich();
    let answer = observed.prompts[0].answers[0].clone();
    observed.prompts[0].answers.push(answer);
    assert!(check::every_prompt_was_answered_once(&observed).is_err());
    let mut observed = rich();
    let prompt = observed.prompts.iter_mut().find(|prompt| !prompt.killed).unwrap();
    prompt.answers.clear();
    assert!(check::every_prompt_was_answered_once(&observed).is_err());
    let mut observed = rich();
    let first = observed.prompts.iter().find(|prompt| {
        prompt.outcomes().any(|outcome| observed.disk.messages[&outcome.message_id].seq.is_some())
    });
    let again = first.unwrap().clone();
    observed.prompts.push(again);
    assert!(check::answers_came_in_order(&observed).is_err());
}

#[test]
fn a_doubled_run_and_one_without_an_allow_are_seen() {
    let mut observed = rich();
    *observed.runs.values_mut().next().unwrap() += 1;
    assert!(check::calls_ran_once_and_only_if_allowed(&observed).is_err());
    let mut observed = rich();
    observed.allowed.clear();
    observed.always.clear();
    assert!(check::calls_ran_once_and_only_if_allowed(&observed).is_err());
}

/// Takes every line that says so from the archive, keeping the rest as it is.
fn without(observed: &mut Observed, unwanted: impl Fn(&str) -> bool) {
    for segment in observed.disk.archive.values_mut().flatten() {
        let lines: Vec<_> = segment.chunks.split('\n').filter(|line| !unwanted(line)).collect();
        segment.chunks = lines.join("\n");
    }
    for segments in observed.disk.archive.values_mut() {
        segments.retain(|segment| !segment.chunks.is_empty());
    }
}

#[test]
fn an_orphaned_call_is_seen() {
    let mut observed = rich();
    let part = observed.disk.parts.values_mut().find(|part| part.tool_call_id.is_some()).unwrap();
    let mut data: serde_json::Value = serde_json::from_str(&part.data_json).unwrap();
    data["state"] = "input-available".into();
    data.as_object_mut().unwrap().remove("output");
    data.as_object_mut().unwrap().remove("errorText");
    part.data_json = data.to_string();
    assert!(check::every_call_has_its_result(&observed).is_err());
}

#[test]
fn a_message_without_its_end_is_seen() {
    let mut observed = rich();
    without(&mut observed, |line| line.contains("\"finish\"") || line.contains("\"abort\""));
    assert!(check::every_message_is_in_order(&observed).is_err());
}

#[test]
fn a_late_chunk_is_seen() {
    let mut observed = rich();
    let session = observed.disk.messages.values().next().unwrap().session_id.clone();
    let segments = observed.disk.archive.get_mut(&session).unwrap();
    let last = segments.last_mut().unwrap();
    let mut line = String::new();
    encode_into(&Chunk::text_delta(&"late".into(), "x"), &mut line).unwrap();
    last.chunks = format!("{}\n{line}", last.chunks);
    last.last_index += 1;
    let assistant =
        observed.disk.messages.values().find(|row| row.role == attache_core::part::Role::Assistant);
    last.message_id = assistant.unwrap().id.clone();
    assert!(check::every_message_is_in_order(&observed).is_err());
}

#[test]
fn rows_that_lag_behind_are_seen() {
    let mut observed = rich();
    without(&mut observed, |line| line.contains("\"text-delta\""));
    assert!(check::rows_are_what_the_chunks_add_up_to(&observed).is_err());
}

#[test]
fn a_doubled_user_message_is_seen() {
    let mut observed = rich();
    let row = observed.disk.messages.values().find(|row| row.role == attache_core::part::Role::User).unwrap();
    let mut twin = row.clone();
    twin.id = attache_core::ids::MessageId::new("msg_twin");
    twin.seq = Some(1_000);
    let parts = observed.disk.parts_of(&row.id);
    observed.disk.messages.insert(twin.id.clone(), twin.clone());
    for mut part in parts {
        part.id = attache_core::ids::PartId::new(format!("{}_twin", part.id));
        part.message_id = twin.id.clone();
        observed.disk.parts.insert(part.id.clone(), part);
    }
    assert!(check::user_messages_stand_once(&observed).is_err());
}

#[test]
fn a_lease_or_a_run_left_behind_is_seen() {
    let mut observed = rich();
    let living = observed.disk.alive.first().copied();
    observed.disk.leases.values_mut().next().unwrap().owner = living;
    assert!(check::everything_is_at_rest(&observed).is_err());
    let mut observed = rich();
    let id = attache_core::ids::MessageId::new("msg_x");
    let run = LiveRun { user_message_id: id.clone(), message_id: id, first_index: 0, first_seq: 1 };
    observed.disk.leases.values_mut().next().unwrap().run = Some(run);
    assert!(check::everything_is_at_rest(&observed).is_err());
}
