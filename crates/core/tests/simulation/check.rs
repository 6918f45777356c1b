//! The invariants, each a function over what was observed. They look; they never mend.

use std::collections::{BTreeMap, HashMap, HashSet};

use attache_core::chunk::order::OrderChecker;
use attache_core::chunk::reduce::Reducer;
use attache_core::chunk::{Chunk, json};
use attache_core::ids::{CallId, MessageId, SessionId};
use attache_core::part::{Part, Role};
use attache_core::ports::store::MessageRow;
use attache_core::prompt::Arrival;
use attache_core::turn::{FailureKind, TurnEnd};

use crate::observed::{Observed, SessionOpening};

type Checked = Result<(), String>;

pub(crate) fn everything(observed: &Observed) -> Checked {
    archive_is_dense(observed)?;
    readers_saw_what_was_stored(observed)?;
    readers_missed_nothing(observed)?;
    every_prompt_was_answered_once(observed)?;
    answers_came_in_order(observed)?;
    nothing_came_after_the_answer(observed)?;
    every_message_is_in_order(observed)?;
    calls_ran_once_and_only_if_allowed(observed)?;
    every_call_has_its_result(observed)?;
    rows_are_what_the_chunks_add_up_to(observed)?;
    user_messages_stand_once(observed)?;
    everything_is_at_rest(observed)
}

fn demand(kept: bool, broken: impl FnOnce() -> String) -> Checked {
    if kept { Ok(()) } else { Err(broken()) }
}

/// I2.
pub(crate) fn archive_is_dense(observed: &Observed) -> Checked {
    for (session, segments) in &observed.disk.archive {
        let mut next = 0;
        for segment in segments {
            demand(segment.first_index == next, || {
                format!("{session}: {} after {next}", segment.first_index)
            })?;
            next = segment.last_index + 1;
        }
    }
    Ok(())
}

/// I1: every entry a reader got is in the archive at its index.
pub(crate) fn readers_saw_what_was_stored(observed: &Observed) -> Checked {
    for (session, segments) in &observed.disk.archive {
        let mut stored = Vec::new();
        for segment in segments {
            stored.extend(segment.chunks.split('\n').map(|chunk| (&segment.message_id, chunk)));
        }
        for reader in observed.readers.iter().filter(|reader| reader.session == *session) {
            for seen in &reader.seen {
                let same = stored.get(seen.index as usize) == Some(&(&seen.message_id, seen.chunk.as_str()));
                demand(same, || {
                    format!("{session}: entry {} was shown but not stored so: {seen:?}", seen.index)
                })?;
            }
        }
    }
    Ok(())
}

/// Readers get every entry from their start on, once, nothing that their replay had, and in the end all their
/// process answered.
pub(crate) fn readers_missed_nothing(observed: &Observed) -> Checked {
    let mut answered: BTreeMap<(&SessionId, SessionOpening), u64> = BTreeMap::new();
    for prompt in &observed.prompts {
        for outcome in prompt.outcomes() {
            let last = answered.entry((&prompt.session, prompt.opening)).or_default();
            *last = (*last).max(outcome.after_index);
        }
    }
    for reader in &observed.readers {
        let expected = reader.start..reader.start + reader.seen.len() as u64;
        demand(reader.seen.iter().map(|seen| seen.index).eq(expected.clone()), || {
            format!("{}: a reader from {} has a gap or a double", reader.session, reader.start)
        })?;
        let twice = reader
            .seen
            .iter()
            .find(|seen| reader.replayed.contains(&seen.message_id) && !seen.message_id.as_str().is_empty());
        demand(twice.is_none(), || format!("{}: replayed and live: {twice:?}", reader.session))?;
        let end = answered.get(&(&reader.session, reader.opening)).copied().unwrap_or_default();
        demand(!reader.whole || expected.end >= end, || {
            format!("{}: a reader stopped at {} before {end}", reader.session, expected.end)
        })?;
    }
    Ok(())
}

/// I3.
pub(crate) fn every_prompt_was_answered_once(observed: &Observed) -> Checked {
    use crate::observed::Answered;
    for prompt in &observed.prompts {
        let count = prompt.answers.len();
        demand(count <= 1, || format!("{} was answered {count} times", prompt.text))?;
        demand(count == 1 || prompt.killed, || format!("{} was never answered", prompt.text))?;
        let ended = prompt.answers.contains(&Answered::Ended);
        let closed = observed.closed.contains(&(prompt.opening.process, prompt.session.clone()));
        demand(!ended || prompt.left || prompt.killed || closed, || format!("{} was dropped", prompt.text))?;
    }
    Ok(())
}

/// Turns of one opening of a session run in the order of their prompts, and are answered in it; those that
/// steer, in theirs.
pub(crate) fn answers_came_in_order(observed: &Observed) -> Checked {
    let mut last: BTreeMap<(&SessionId, SessionOpening, bool), (i64, u64)> = BTreeMap::new();
    for prompt in observed.prompts.iter().filter(|prompt| !prompt.resent) {
        for outcome in prompt.outcomes() {
            let row = observed.disk.messages.get(&outcome.message_id);
            let Some(seq) = row.and_then(|row| row.seq) else { continue };
            let steers = prompt.arrival == Arrival::Steers;
            let (before, index) = last.entry((&prompt.session, prompt.opening, steers)).or_insert((0, 0));
            demand(*before < seq && *index <= outcome.after_index, || {
                format!("{} came out of order: {seq} after {before}", prompt.text)
            })?;
            (*before, *index) = (seq, outcome.after_index);
        }
    }
    Ok(())
}

/// I4. A turn whose store failed is closed in the log later; nothing else may be.
pub(crate) fn nothing_came_after_the_answer(observed: &Observed) -> Checked {
    for prompt in &observed.prompts {
        for outcome in prompt.outcomes() {
            if matches!(outcome.end, TurnEnd::Failed { kind: FailureKind::Store, .. }) {
                continue;
            }
            let row = observed.disk.messages.get(&outcome.message_id);
            let Some(seq) = row.and_then(|row| row.seq) else { continue };
            let turn: HashSet<_> = conversation(observed, &prompt.session)
                .filter(|row| row.seq == Some(seq) || row.seq == Some(seq + 1))
                .map(|row| &row.id)
                .collect();
            let segments = observed.disk.archive.get(&prompt.session).into_iter().flatten();
            let late = segments
                .filter(|segment| turn.contains(&segment.message_id))
                .find(|segment| segment.last_index >= outcome.after_index);
            demand(late.is_none(), || format!("{}: {late:?} after its answer {outcome:?}", prompt.text))?;
        }
    }
    Ok(())
}

/// I5, by the vocabulary's own checker.
pub(crate) fn every_message_is_in_order(observed: &Observed) -> Checked {
    for (session, message) in answers(observed) {
        let mut checker = OrderChecker::default();
        for chunk in chunks(observed, session, &message.id) {
            checker.check(&chunk).map_err(|error| format!("{}: {error}", message.id))?;
        }
        checker.finish().map_err(|error| format!("{}: {error}", message.id))?;
    }
    Ok(())
}

/// I5: a call runs at most once; one that asks only when somebody allowed it.
pub(crate) fn calls_ran_once_and_only_if_allowed(observed: &Observed) -> Checked {
    let mut asking: HashMap<CallId, (SessionId, String)> = HashMap::new();
    for (session, message) in answers(observed) {
        for chunk in chunks(observed, session, &message.id) {
            if let Chunk::ToolInputAvailable { call_id, tool_name, input, .. } = chunk
                && tool_name == "touch"
            {
                let path = input.get("path").and_then(|path| path.as_str()).unwrap_or_default();
                asking.insert(call_id, (session.clone(), path.to_string()));
            }
        }
    }
    for (call, runs) in &observed.runs {
        demand(*runs == 1, || format!("call {call} ran {runs} times"))?;
        let allowed = asking
            .get(call)
            .is_none_or(|granted| observed.allowed.contains(call) || observed.always.contains(granted));
        demand(allowed, || format!("call {call} ran without an allow"))?;
    }
    Ok(())
}

pub(crate) fn every_call_has_its_result(observed: &Observed) -> Checked {
    for (_, message) in answers(observed) {
        for part in parts(observed, &message.id)? {
            let settled = part.tool().is_none_or(|tool| tool.is_settled());
            demand(settled, || format!("{}: an orphaned call: {part:?}", message.id))?;
        }
    }
    Ok(())
}

/// I7: what is loaded is what was said.
pub(crate) fn rows_are_what_the_chunks_add_up_to(observed: &Observed) -> Checked {
    for (session, message) in answers(observed) {
        let mut reducer = Reducer::default();
        let mut expected = Vec::new();
        for chunk in chunks(observed, session, &message.id) {
            reducer.apply(&chunk).map_err(|error| format!("{}: {error}", message.id))?;
            if matches!(chunk, Chunk::FinishStep { .. }) {
                expected.extend(reducer.drain_finished());
            }
        }
        expected.extend(reducer.drain_finished());
        let stored = parts(observed, &message.id)?;
        demand(stored == expected, || {
            format!("{}: the rows say\n{stored:#?}\nthe chunks\n{expected:#?}", message.id)
        })?;
        let rows = observed.disk.parts_of(&message.id);
        demand(rows.iter().map(|row| row.index).eq(0..rows.len() as i64), || {
            format!("{}: part indexes are not dense", message.id)
        })?;
    }
    Ok(())
}

pub(crate) fn user_messages_stand_once(observed: &Observed) -> Checked {
    let mut seen: HashMap<String, &MessageId> = HashMap::new();
    let mut seqs: HashSet<(&SessionId, i64)> = HashSet::new();
    for row in observed.disk.messages.values() {
        if let Some(seq) = row.seq {
            demand(seqs.insert((&row.session_id, seq)), || format!("{}: seq {seq} twice", row.id))?;
        }
        if row.role == Role::User {
            let text = format!("{:?}", parts(observed, &row.id)?);
            let twin = seen.insert(text, &row.id);
            demand(twin.is_none(), || format!("{} and {twin:?} are one prompt", row.id))?;
        }
    }
    Ok(())
}

/// I6, at the end: a session that is not worked on has no owner.
pub(crate) fn everything_is_at_rest(observed: &Observed) -> Checked {
    for (session, lease) in &observed.disk.leases {
        // A dead process may leave its name on a lease when it left nothing else: anybody can take it.
        let held = lease.owner.is_some_and(|owner| observed.disk.alive.contains(&owner));
        demand(!held, || format!("{session}: the lease is held by {:?}", lease.owner))?;
        demand(lease.run.is_none(), || format!("{session}: still live: {:?}", lease.run))?;
    }
    Ok(())
}

fn conversation<'a>(observed: &'a Observed, session: &'a SessionId) -> impl Iterator<Item = &'a MessageRow> {
    observed.disk.messages.values().filter(move |row| row.session_id == *session && row.seq.is_some())
}

fn answers(observed: &Observed) -> impl Iterator<Item = (&SessionId, &MessageRow)> {
    let rows = observed.disk.messages.values().filter(|row| row.role == Role::Assistant);
    rows.map(|row| (&row.session_id, row))
}

fn chunks(observed: &Observed, session: &SessionId, message: &MessageId) -> Vec<Chunk> {
    let segments = observed.disk.archive.get(session).into_iter().flatten();
    let of_message = segments.filter(|segment| segment.message_id == *message);
    of_message
        .flat_map(|segment| segment.chunks.split('\n'))
        .map(|line| json::decode(line).unwrap())
        .collect()
}

fn parts(observed: &Observed, message: &MessageId) -> Result<Vec<Part>, String> {
    let rows = observed.disk.parts_of(message);
    rows.iter().map(|row| serde_json::from_str(&row.data_json).map_err(|error| error.to_string())).collect()
}
