//! Whatever the order of events, the queue is in a consistent state.

use std::collections::BTreeSet;

use proptest::prelude::*;
use tokio::sync::oneshot;

use super::*;

fn id(number: usize) -> MessageId {
    MessageId::new(format!("msg_{number}"))
}

fn queued(number: usize, queued_at: i64) -> Queued {
    Queued {
        message_id: id(number),
        queued_at,
        runtime_context: Vec::new(),
        client: None,
        arrival: Arrival::Waits,
    }
}

#[derive(Clone, Debug)]
enum Step {
    Push,
    Call(usize),
    Remove(usize),
    Withdraw(usize),
    WithdrawAwaited,
    TakeNext(bool),
    Gone,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => Just(Step::Push),
        2 => (0_usize..8).prop_map(Step::Call),
        1 => (0_usize..8).prop_map(Step::Remove),
        1 => (0_usize..8).prop_map(Step::Withdraw),
        1 => Just(Step::WithdrawAwaited),
        2 => any::<bool>().prop_map(Step::TakeNext),
        1 => Just(Step::Gone),
    ];
    proptest::collection::vec(step, 0..40)
}

fn failed() -> TurnEnd {
    TurnEnd::failed(crate::turn::FailureKind::Model, "x")
}

proptest! {
    #[test]
    fn what_is_withdrawn_neither_waits_nor_is_waited_for(steps in steps()) {
        let (mut queue, mut pushed, mut waiting) = (PromptQueue::default(), 0, Vec::new());
        let (mut called, mut kept) = (BTreeSet::new(), Vec::new());
        for step in steps {
            match step {
                Step::Push => {
                    queue.push(queued(pushed, queue.time_behind(7)));
                    waiting.push(pushed);
                    pushed += 1;
                }
                Step::Call(number) if waiting.contains(&number) => {
                    let (reply, answer) = oneshot::channel();
                    queue.add_caller(id(number), reply);
                    called.insert(number);
                    kept.push((number, answer));
                }
                Step::Call(_) => {}
                Step::Remove(number) => {
                    prop_assert_eq!(queue.remove(&id(number)).is_some(), waiting.contains(&number));
                    waiting.retain(|other| *other != number);
                }
                Step::Withdraw(number) if number >= pushed => {}
                Step::Withdraw(number) => {
                    queue.withdraw(&id(number), |_| Err(HubError::NoModel(Vec::new())));
                    waiting.retain(|other| *other != number);
                    called.remove(&number);
                }
                Step::WithdrawAwaited => {
                    queue.withdraw_awaited(&HubError::NoModel(Vec::new()));
                    let awaited: Vec<_> = waiting.iter().filter(|number| called.contains(*number)).copied().collect();
                    waiting.retain(|number| !awaited.contains(number));
                    called.retain(|number| !awaited.contains(number));
                }
                Step::TakeNext(after_error) => {
                    let end = if after_error { failed() } else { TurnEnd::Aborted };
                    let next = waiting.iter().position(|number| !after_error || called.contains(number));
                    let expected = next.map(|index| id(waiting.remove(index)));
                    prop_assert_eq!(queue.take_next_after(&end).map(|queued| queued.message_id), expected);
                }
                Step::Gone => queue.withdrawn_are_gone(),
            }
            let ids: Vec<_> = queue.ids().cloned().collect();
            prop_assert_eq!(&ids, &waiting.iter().map(|number| id(*number)).collect::<Vec<_>>());
            prop_assert!(ids.iter().all(|id| !queue.withdrawn().contains(id)), "withdrawn and waiting");
            let times: Vec<_> = queue.waiting.iter().map(|queued| queued.queued_at).collect();
            prop_assert!(times.windows(2).all(|pair| pair[0] < pair[1]), "{:?}", times);
            for (number, answer) in &mut kept {
                let is_open = matches!(answer.try_recv(), Err(oneshot::error::TryRecvError::Empty));
                prop_assert!(!is_open || called.contains(number), "{} was left without an answer", number);
            }
            prop_assert!(called.iter().all(|number| queue.has_caller(&id(*number))));
        }
    }
}
