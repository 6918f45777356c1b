//! The queue against a model of it: whatever is sent, cancelled, edited and aborted in whatever order, what
//! fires is what the model says, in its order, and each prompt is answered once.

use std::time::Duration;

use attache_core::hub::Ticket;
use attache_core::ids::MessageId;
use attache_core::turn::TurnEnd;
use proptest::prelude::*;

use crate::world::*;

#[derive(Clone, Debug)]
enum Step {
    Send,
    /// Of the prompts sent so far, the n-th.
    CancelQueued(usize),
    Edit(usize),
    Abort,
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Send),
        2 => (0usize..12).prop_map(Step::CancelQueued),
        1 => (0usize..12).prop_map(Step::Edit),
        1 => Just(Step::Abort),
        3 => (0u64..40).prop_map(Step::Wait),
    ]
}

/// What the model knows of a prompt.
struct Known {
    ticket: Ticket,
    text: String,
    cancelled: bool,
}

async fn play(steps: Vec<Step>) {
    let world = World::new("on *\n delay 20ms\n text \"fine\"");
    let (_process, session) = world.session().await;
    let mut known: Vec<Known> = Vec::new();
    for step in steps {
        let id = |number: usize| MessageId::new(format!("msg_{number}"));
        match step {
            Step::Send => {
                let number = known.len();
                let text = format!("p{number}");
                let ticket = session.prompt(prompt_with_id(&text, id(number).as_str()));
                known.push(Known { ticket, text, cancelled: false });
            }
            Step::CancelQueued(number) => {
                if session.cancel_queued(id(number)).await.is_ok() {
                    assert!(!known[number].cancelled, "cancelled twice");
                    known[number].cancelled = true;
                }
            }
            Step::Edit(number) => {
                let text = format!("e{number}");
                if session.edit_queued(id(number), prompt(&text)).await.is_ok() {
                    known[number].text = text;
                }
            }
            Step::Abort => session.cancel(),
            Step::Wait(milliseconds) => tokio::time::sleep(Duration::from_millis(milliseconds)).await,
        }
    }
    let mut expected = Vec::new();
    for prompt in known {
        let end = end_of(prompt.ticket).await;
        if prompt.cancelled {
            assert_eq!(end, TurnEnd::Aborted);
        } else {
            expected.push(prompt.text);
        }
    }
    assert_eq!(world.prompts(session.id()), expected);
    assert!(session.queued().await.unwrap().is_empty());
    world.check_rest(session.id());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    #[test]
    fn what_fires_is_what_was_sent_and_not_taken_back(steps in prop::collection::vec(step(), 1..30)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(play(steps));
    }
}
