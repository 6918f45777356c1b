//! The queue against a model of it: whatever is sent, steered, cancelled, edited and aborted in whatever order,
//! sent again under its id, with processes that end or are killed in between, what fires is what the model
//! says, in its order, and each prompt is answered once.

use std::time::Duration;

use attache_core::hub::{HubError, SessionHandle, Ticket};
use attache_core::ids::MessageId;
use attache_core::part::{Part, Role};
use attache_core::prompt::{Arrival, Prompt};
use attache_core::turn::TurnEnd;
use proptest::prelude::*;

use crate::world::*;

/// Two steps: what steers takes the place of the second.
const SCRIPT: &str = "on *\n delay 20ms\n call look {\"path\":\"a\"}\n ---\n delay 20ms\n text \"fine\"";

#[derive(Clone, Copy, Debug)]
enum Step {
    Send(Arrival),
    /// Of the prompts sent so far, the n-th.
    CancelQueued(usize),
    /// With so many blocks of text, and perhaps a file among them.
    Edit(usize, usize, Attached),
    Abort,
    Wait(u64),
    /// A client that got no answer sends the n-th once more.
    Again(usize),
    /// Something else under the id of the n-th.
    OtherUnderItsId(usize),
    /// The process is killed and another opens the session.
    Kill,
    /// The same with a process that ends in order.
    End,
}

#[derive(Clone, Copy, Debug)]
enum Attached {
    Nothing,
    File,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Send(Arrival::Waits)),
        2 => Just(Step::Send(Arrival::Steers)),
        2 => (0usize..12).prop_map(Step::CancelQueued),
        2 => (0usize..12, 1usize..4, prop_oneof![Just(Attached::Nothing), Just(Attached::File)])
            .prop_map(|(number, blocks, attached)| Step::Edit(number, blocks, attached)),
        1 => Just(Step::Abort),
        4 => (0u64..40).prop_map(Step::Wait),
        2 => (0usize..12).prop_map(Step::Again),
        1 => (0usize..12).prop_map(Step::OtherUnderItsId),
        1 => Just(Step::Kill),
        1 => Just(Step::End),
    ]
}

/// What the model knows of a prompt.
struct Known {
    /// `None`: its process was killed.
    ticket: Option<Ticket>,
    text: String,
    arrival: Arrival,
    edited: bool,
    cancelled: bool,
}

/// The queue as it has to be: numbers of prompts, those that steer apart.
#[derive(Clone, Debug, Default, PartialEq)]
struct Reference {
    steering: Vec<usize>,
    waiting: Vec<usize>,
    fired: Vec<usize>,
}

impl Reference {
    fn order(&self) -> impl Iterator<Item = usize> {
        self.steering.iter().chain(&self.waiting).copied()
    }

    fn take(&mut self, number: usize) {
        self.steering.retain(|other| *other != number);
        self.waiting.retain(|other| *other != number);
    }

    /// The same after this many have fired.
    fn after(&self, fired: usize) -> Self {
        let mut after = self.clone();
        for number in self.order().take(fired) {
            after.take(number);
            after.fired.push(number);
        }
        after
    }

    fn changed(mut self, change: Change) -> Option<Self> {
        match change {
            Change::Nothing => {}
            Change::Sent(number, Arrival::Steers) => self.steering.push(number),
            Change::Sent(number, Arrival::Waits) => self.waiting.push(number),
            Change::Cancelled(number) => {
                self.order().find(|waiting| *waiting == number)?;
                self.take(number);
            }
            // No turn runs any more that could be steered.
            Change::Restarted => {
                self.waiting.append(&mut self.steering);
                self.waiting.sort_unstable();
            }
        }
        Some(self)
    }

    /// Turns may end before and after a change: what is seen is what some such order leaves.
    fn agreeing<'a>(&'a self, change: Change, seen: &'a [usize]) -> impl Iterator<Item = Self> + 'a {
        (0..=self.order().count()).filter_map(move |before| {
            let changed = self.after(before).changed(change)?;
            let fired = changed.order().count().checked_sub(seen.len())?;
            Some(changed.after(fired)).filter(|after| after.order().eq(seen.iter().copied()))
        })
    }
}

#[derive(Clone, Copy, Debug)]
enum Change {
    Nothing,
    Sent(usize, Arrival),
    Cancelled(usize),
    Restarted,
}

fn id(number: usize) -> MessageId {
    MessageId::new(format!("msg_{number}"))
}

fn file(number: usize) -> Part {
    Part::File {
        media_type: "text/plain".into(),
        url: "data:text/plain;base64,aGk=".into(),
        filename: Some(format!("e{number}.txt")),
        provider_metadata: None,
    }
}

/// Its texts, and its files by their names.
fn content_of(parts: &[Part]) -> String {
    let one = |part: &Part| match part {
        Part::File { filename, .. } => format!("<{}>", filename.as_deref().unwrap_or_default()),
        part => text_of(std::slice::from_ref(part)),
    };
    parts.iter().map(one).collect()
}

async fn seen(session: &SessionHandle) -> Vec<usize> {
    let queued = session.queued().await.unwrap();
    queued.iter().map(|queued| queued.message_id.as_str()[4..].parse().unwrap()).collect()
}

async fn play(steps: Vec<Step>) {
    let world = World::new(SCRIPT);
    let (mut process, mut session) = world.session().await;
    let mut known: Vec<Known> = Vec::new();
    let mut again: Vec<(usize, Ticket)> = Vec::new();
    // All that are possible so far: what fired between two looks is known only at the end.
    let mut possible = vec![Reference::default()];
    for step in steps {
        let mut change = Change::Nothing;
        match step {
            Step::Send(arrival) => {
                let number = known.len();
                let text = format!("p{number}");
                let sent = Prompt { arrival, ..prompt_with_id(&text, id(number).as_str()) };
                let ticket = Some(session.prompt(sent));
                known.push(Known { ticket, text, arrival, edited: false, cancelled: false });
                change = Change::Sent(number, arrival);
            }
            Step::CancelQueued(number) => {
                if session.cancel_queued(id(number)).await.is_ok() {
                    assert!(!known[number].cancelled, "cancelled twice");
                    known[number].cancelled = true;
                    change = Change::Cancelled(number);
                }
            }
            Step::Edit(number, blocks, attached) => {
                let texts = (0..blocks).flat_map(|block| prompt(&format!("e{number}.{block} ")).parts);
                let mut parts: Vec<Part> = texts.collect();
                if let Attached::File = attached {
                    parts.insert(blocks / 2, file(number));
                }
                let text = content_of(&parts);
                match session.edit_queued(id(number), Prompt { parts, ..Prompt::default() }).await {
                    Ok(()) => {
                        known[number].text = text;
                        known[number].edited = true;
                    }
                    Err(error) => assert!(!error.to_string().contains("prompt["), "{error}"),
                }
            }
            Step::Abort => session.cancel(),
            Step::Wait(milliseconds) => tokio::time::sleep(Duration::from_millis(milliseconds)).await,
            Step::Again(number) => {
                // Who edits knows that it arrived.
                if let Some(sent) = known.get(number).filter(|sent| !sent.edited) {
                    let same = prompt_with_id(&sent.text, id(number).as_str());
                    again.push((number, session.prompt(Prompt { arrival: sent.arrival, ..same })));
                }
            }
            Step::OtherUnderItsId(number) => {
                if number < known.len() {
                    let other = prompt_with_id("something else", id(number).as_str());
                    let refused = answer(session.prompt(other)).await;
                    assert!(matches!(refused, Err(HubError::Invalid(_))), "{refused:?}");
                }
            }
            Step::Kill | Step::End => {
                let session_id = session.id().clone();
                if matches!(step, Step::End) {
                    process.hub.shutdown().await;
                } else {
                    process.kill();
                }
                again.clear();
                known.iter_mut().for_each(|known| known.ticket = None);
                process = world.process();
                session = process.hub.open(&session_id).await.unwrap();
                change = Change::Restarted;
            }
        }
        let seen = seen(&session).await;
        let mut agreeing: Vec<Reference> = Vec::new();
        for found in possible.iter().flat_map(|reference| reference.agreeing(change, &seen)) {
            if !agreeing.contains(&found) {
                agreeing.push(found);
            }
        }
        assert!(!agreeing.is_empty(), "after {step:?}: {seen:?} are waiting, of {possible:?}");
        possible = agreeing;
    }
    while !seen(&session).await.is_empty() {
        pause(50).await;
    }
    let expected: Vec<Vec<String>> = possible
        .iter()
        .map(|reference| reference.after(reference.order().count()).fired)
        .map(|fired| fired.iter().map(|number| known[*number].text.clone()).collect())
        .collect();
    let cancelled: Vec<bool> = known.iter().map(|known| known.cancelled).collect();
    for Known { ticket, cancelled, .. } in known {
        let Some(ticket) = ticket else { continue };
        let end = end_of(ticket).await;
        assert!(!cancelled || end == TurnEnd::Aborted, "{end:?}");
    }
    for (number, ticket) in again {
        let end = end_of(ticket).await;
        assert!(!cancelled[number] || end == TurnEnd::Aborted, "{end:?}");
    }
    until(&session, |state| *state == attache_core::events::RunState::Idle).await;
    let fired: Vec<String> =
        world.messages(session.id(), Role::User).iter().map(|parts| content_of(parts)).collect();
    assert!(expected.contains(&fired), "{fired:?} fired, of {expected:?}");
    world.check_rest(session.id());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(2_500), ..ProptestConfig::default() })]
    #[test]
    fn what_fires_is_what_was_sent_and_not_taken_back(steps in prop::collection::vec(step(), 1..30)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(play(steps));
    }
}
