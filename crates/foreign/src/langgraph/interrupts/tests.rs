//! Which call each request of an interrupt is about, and that it gets the decision about that one.

use super::*;

fn decided(call: &str, decision: RunDecision) -> Decided {
    Decided { call_id: CallId::new(call), approval_id: "a".into(), tool: "t".into(), decision }
}

fn told(value: Value) -> Interrupts {
    let mut interrupts = Interrupts::default();
    interrupts.add(&value);
    interrupts
}

fn refund(amount: u64) -> Value {
    json!({ "name": "refund", "args": { "amount": amount }, "description": "Why\nnot" })
}

fn call(id: &str, name: &str, input: Value) -> GraphCall {
    GraphCall { id: CallId::new(id), name: name.into(), input }
}

fn refunded(id: &str, amount: u64) -> GraphCall {
    call(id, "refund", json!({ "amount": amount }))
}

fn asked_about(asks: &Asks) -> Vec<&str> {
    asks.asks.iter().map(|ask| ask.call_id.as_str()).collect()
}

fn orders<T: Clone>(items: &[T]) -> Vec<Vec<T>> {
    let Some((last, before)) = items.split_last() else { return vec![Vec::new()] };
    let mut all = Vec::new();
    for order in orders(before) {
        for place in 0..=order.len() {
            let mut longer = order.clone();
            longer.insert(place, last.clone());
            all.push(longer);
        }
    }
    all
}

#[test]
fn each_request_gets_the_decision_of_its_own_call_in_whatever_order_they_come() {
    for count in [2, 3] {
        let amounts: Vec<u64> = (1..=count).collect();
        let requests: Vec<Value> = amounts.iter().map(|amount| refund(*amount)).collect();
        let mut open = told(json!([{ "id": "i", "value": { "action_requests": requests } }]));
        let calls: Vec<GraphCall> =
            amounts.iter().map(|amount| refunded(&format!("c{amount}"), *amount)).collect();
        assert_eq!(asked_about(&open.asks(&calls)), &["c1", "c2", "c3"][..calls.len()]);
        let decisions = [
            decided("c1", RunDecision::Approve),
            decided("c2", RunDecision::Reject("no".into())),
            decided("c3", RunDecision::Edit(json!({ "amount": 9 }))),
        ];
        let answers = [
            json!({ "type": "approve" }),
            json!({ "type": "reject", "message": "no" }),
            json!({ "type": "edit", "edited_action": { "name": "refund", "args": { "amount": 9 } } }),
        ];
        for order in orders(&decisions[..calls.len()]) {
            assert_eq!(open.resume(&order), json!({ "decisions": answers[..calls.len()] }), "{order:?}");
        }
    }
}

#[test]
fn decisions_of_several_interrupts_find_their_own() {
    let mut open = told(json!([
        { "id": "a", "value": { "action_requests": [refund(1)] } },
        { "id": "b", "value": "Which colour?" },
        { "id": "c", "value": { "action_requests": [refund(2)] } },
    ]));
    let asks = open.asks(&[refunded("c2", 2), refunded("c1", 1)]);
    assert_eq!(asked_about(&asks), ["c1", "interrupt-b", "c2"]);
    let decisions = [
        decided("c1", RunDecision::Reject("no".into())),
        decided("interrupt-b", RunDecision::Answer(vec![Said::Text("red".into())])),
        decided("c2", RunDecision::Approve),
    ];
    let expected = json!({
        "a": { "decisions": [{ "type": "reject", "message": "no" }] },
        "b": "red",
        "c": { "decisions": [{ "type": "approve" }] },
    });
    for order in orders(&decisions) {
        assert_eq!(open.resume(&order), expected, "{order:?}");
    }
}

#[test]
fn what_nobody_decided_is_rejected() {
    let mut open = told(json!([{ "id": "i", "value": { "action_requests": [refund(1), refund(2)] } }]));
    let reject = json!({ "type": "reject", "message": UNDECIDED });
    // Nor is anything allowed that was never asked.
    let unasked = open.resume(&[decided("c2", RunDecision::Approve)]);
    assert_eq!(unasked, json!({ "decisions": [reject, reject] }));
    open.asks(&[refunded("c1", 1), refunded("c2", 2)]);
    let answer = open.resume(&[decided("c2", RunDecision::Approve)]);
    assert_eq!(answer, json!({ "decisions": [reject, { "type": "approve" }] }));
    let mut question = told(json!([{ "id": "q", "value": "Which colour?" }]));
    question.asks(&[]);
    assert_eq!(question.resume(&[]), Value::Null);
}

#[test]
fn a_request_is_about_the_call_with_its_arguments_wherever_that_stands() {
    let mut open = told(json!([{ "id": "i", "value": { "action_requests": [refund(2), refund(1)] } }]));
    let asks = open.asks(&[refunded("c1", 1), call("c2", "look", json!({ "amount": 2 })), refunded("c3", 2)]);
    assert_eq!(asked_about(&asks), ["c3", "c1"]);
    assert!(asks.made.is_empty());
    let RunAskAbout::Permission { description, arguments } = &asks.asks[0].about else {
        panic!("no request")
    };
    assert_eq!((description.as_deref(), *arguments), (Some("Why"), CallArguments::Fixed));
}

#[test]
fn a_request_with_the_arguments_of_no_call_is_a_call_of_its_own_that_shows_them() {
    let mut open = told(json!([{ "id": "i", "value": { "action_requests": [refund(1), refund(500)] } }]));
    let asks = open.asks(&[refunded("c1", 1), refunded("c2", 5)]);
    assert_eq!(asked_about(&asks), ["c1", "interrupt-i-1"]);
    let [made] = asks.made.as_slice() else { panic!("{:?}", asks.made) };
    assert_eq!((made.id.as_str(), made.name.as_str()), ("interrupt-i-1", "refund"));
    assert_eq!(made.input, json!({ "amount": 500 }));
    assert!(open.made(&made.id) && !open.made(&CallId::new("c2")));
    // The call that looks alike decides nothing about it.
    let decisions =
        [decided("c2", RunDecision::Approve), decided("interrupt-i-1", RunDecision::Reject("no".into()))];
    let expected = json!({ "decisions": [
        { "type": "reject", "message": UNDECIDED },
        { "type": "reject", "message": "no" },
    ] });
    assert_eq!(open.resume(&decisions), expected);
}

#[test]
fn equal_requests_take_different_calls() {
    let requests = [refund(1), refund(1), refund(1)];
    let mut open = told(json!([{ "id": "i", "value": { "action_requests": requests } }]));
    let asks = open.asks(&[refunded("c1", 1), refunded("c2", 1)]);
    assert_eq!(asked_about(&asks), ["c1", "c2", "interrupt-i-2"]);
    let decisions = [decided("c2", RunDecision::Approve), decided("c1", RunDecision::Reject("no".into()))];
    let answers = open.resume(&decisions);
    let answers = answers["decisions"].as_array().unwrap();
    let kinds: Vec<&str> = answers.iter().map(|one| one["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["reject", "approve", "reject"]);
}

#[test]
fn taken_up_by_another_process_each_request_keeps_its_call_whatever_its_arguments_became() {
    let state = json!({ "tasks": [{ "interrupts": [
        { "id": "a", "value": { "action_requests": [refund(1), refund(2)] } },
        { "id": "b", "value": "Which colour?" },
    ] }] });
    let mut before = Interrupts::of_state(&state);
    before.asks(&[refunded("c1", 1), refunded("c2", 2)]);
    let mut again = Interrupts::of_state(&state);
    again.asked_before(&before.asked());
    let decisions = [
        decided("interrupt-b", RunDecision::Answer(vec![Said::Text("red".into())])),
        decided("c2", RunDecision::Edit(json!({ "amount": 1 }))),
        decided("c1", RunDecision::Reject("no".into())),
    ];
    let expected = json!({
        "a": { "decisions": [
            { "type": "reject", "message": "no" },
            { "type": "edit", "edited_action": { "name": "refund", "args": { "amount": 1 } } },
        ] },
        "b": "red",
    });
    assert_eq!(again.resume(&decisions), expected);
    assert_eq!(before.resume(&decisions), expected);
}

#[test]
fn a_question_of_a_graph_is_answered_in_words_and_several_by_their_ids() {
    let mut open = told(json!([
        { "id": "a", "value": "Which colour?" },
        { "id": "b", "value": { "question": "Size?", "options": ["S", "L"] } },
    ]));
    let asks = open.asks(&[]);
    let inputs: Vec<&Value> = asks.made.iter().map(|call| &call.input).collect();
    assert_eq!(inputs[0], &json!({ "question": "Which colour?" }));
    assert_eq!(inputs[1], &json!({ "question": "Size?", "options": ["S", "L"] }));
    let RunAskAbout::Questions(questions) = &asks.asks[1].about else { panic!("no question") };
    assert_eq!((questions[0].text.as_str(), questions[0].choices.len()), ("Size?", 2));
    let answer = |call: &str, text: &str| decided(call, RunDecision::Answer(vec![Said::Text(text.into())]));
    let answers = open.resume(&[answer("interrupt-b", "L"), answer("interrupt-a", "red")]);
    assert_eq!(answers, json!({ "a": "red", "b": "L" }));
}
