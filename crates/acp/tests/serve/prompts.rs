//! Prompts and their answers: order, endings, cancellation, own messages.

use serde_json::{Value, json};

use crate::world::*;

#[tokio::test(start_paused = true)]
async fn every_update_comes_before_the_answer() {
    let world = World::new("on *\n reasoning \"hm\"\n stream 500 \"token \"\n usage input=7 output=3");
    let (line, session) = world.process().session().await;
    let result = line.client.expect("session/prompt", prompt_with_id(&session, "go", "mine.1")).await;
    assert_eq!(result, json!({ "stopReason": "end_turn", "_meta": { "attache/messageId": "mine.1" } }));
    // What has arrived by now arrived before the answer.
    assert_eq!(line.client.agent_text(&session), "token ".repeat(500));
    assert_eq!(line.kinds(&session), ["agent_thought_chunk", "agent_message_chunk", "usage_update"]);
    line.client.finish();
}

#[tokio::test(start_paused = true)]
async fn fifty_prompts_at_once_are_answered_in_order() {
    let world = World::new("on *\n stream 3 \"x\" every 1ms");
    let (line, session) = world.process().session().await;
    let pending: Vec<_> = (0..50)
        .map(|number| {
            line.client.start("session/prompt", prompt_with_id(&session, "go", &format!("m{number}")))
        })
        .collect();
    for answer in pending {
        assert_eq!(answer.answer().await.unwrap()["stopReason"], "end_turn");
    }
    let answered: Vec<Value> = line
        .client
        .received()
        .iter()
        .filter_map(|message| message.pointer("/result/_meta/attache~1messageId").cloned())
        .collect();
    let expected: Vec<Value> = (0..50).map(|number| json!(format!("m{number}"))).collect();
    assert_eq!(answered, expected);
    line.client.finish();
}

#[tokio::test(start_paused = true)]
async fn each_end_has_its_reason() {
    let script = "on \"length\"\n text \"a\"\n finish length\non \"filter\"\n text \"a\"\n finish content-filter\n\
        on \"refused\"\n error refused \"no\"\non \"auth\"\n error auth \"no key\"\non \"broken\"\n error permanent \"400\"\n\
        on \"steps\"\n call look {\"path\":\"a\"}\n ---\n call look {\"path\":\"b\"}\n ---\n call look {\"path\":\"c\"}\n ---\n \
        call look {\"path\":\"d\"}\n ---\n call look {\"path\":\"e\"}\n ---\n call look {\"path\":\"f\"}\n";
    let world = World::new(script);
    let (line, session) = world.process().session().await;
    for (text, reason) in [
        ("length", "max_tokens"),
        ("filter", "refusal"),
        ("refused", "refusal"),
        ("steps", "max_turn_requests"),
    ] {
        assert_eq!(line.say(&session, text).await, reason, "{text}");
    }
    for (text, code, word) in [("auth", -32000, "no key"), ("broken", -32603, "400")] {
        let error = line.client.request("session/prompt", prompt(&session, text)).await.unwrap_err();
        assert_eq!((error.code, error.message.contains(word)), (code, true), "{}", error.message);
    }
    line.client.finish();
}

#[tokio::test(start_paused = true)]
async fn cancel_ends_the_turn_and_not_the_next_one() {
    let world = World::new("on \"long\"\n stream 1000 \"x\" every 10ms\non *\n text \"done\"");
    let (line, session) = world.process().session().await;
    line.client.notify("session/cancel", json!({ "sessionId": session }));
    let long = line.client.start("session/prompt", prompt(&session, "long"));
    line.client.wait_for_update(&session, "agent_message_chunk").await;
    line.client.notify("session/cancel", json!({ "sessionId": session }));
    line.client.notify("session/cancel", json!({ "sessionId": session }));
    let next = line.client.start("session/prompt", prompt(&session, "short"));
    assert_eq!(long.answer().await.unwrap()["stopReason"], "cancelled");
    assert_eq!(next.answer().await.unwrap()["stopReason"], "end_turn");
    line.client.finish();
}

#[tokio::test(start_paused = true)]
async fn a_cancel_right_behind_its_prompt_finds_it() {
    let world = World::new("on *\n stream 1000 \"x\" every 10ms");
    let (line, session) = world.process().session().await;
    let prompt = line.client.start("session/prompt", prompt(&session, "long"));
    line.client.notify("session/cancel", json!({ "sessionId": session }));
    assert_eq!(prompt.answer().await.unwrap()["stopReason"], "cancelled");
    line.client.finish();
}

#[tokio::test(start_paused = true)]
async fn cancelling_the_request_ends_its_own_prompt_only() {
    let world = World::new("on *\n stream 20 \"x\" every 10ms");
    let (line, session) = world.process().session().await;
    let first = line.client.start("session/prompt", prompt(&session, "one"));
    let second = line.client.start("session/prompt", prompt(&session, "two"));
    let third = line.client.start("session/prompt", prompt(&session, "three"));
    line.client.wait_for_update(&session, "agent_message_chunk").await;
    line.client.notify("$/cancel_request", json!({ "requestId": second.id }));
    assert_eq!(second.answer().await.unwrap()["stopReason"], "cancelled");
    line.client.notify("$/cancel_request", json!({ "requestId": first.id }));
    assert_eq!(first.answer().await.unwrap()["stopReason"], "cancelled");
    assert_eq!(third.answer().await.unwrap()["stopReason"], "end_turn");
    line.client.finish();
}

#[tokio::test(start_paused = true)]
async fn what_one_client_says_the_others_see() {
    let world = World::new("on *\n text \"hello\"");
    let process = world.process();
    let (one, session) = process.session().await;
    let two = process.connect().await;
    two.resume(&session).await;
    assert_eq!(one.say(&session, "hi there").await, "end_turn");
    two.client.wait_for_update(&session, "usage_update").await;
    assert_eq!(one.kinds(&session), ["agent_message_chunk", "usage_update"]);
    assert_eq!(two.kinds(&session), ["user_message_chunk", "agent_message_chunk", "usage_update"]);
    assert_eq!(two.client.updates(&session)[0]["content"]["text"], "hi there");
    one.client.finish();
    two.client.finish();
}

#[tokio::test(start_paused = true)]
async fn the_queue_can_be_seen_changed_and_left() {
    let world = World::new("on \"long\"\n stream 50 \"x\" every 10ms\non *\n text \"done\"");
    let (line, session) = world.process().session().await;
    let long = line.client.start("session/prompt", prompt(&session, "long"));
    let mut params = prompt_with_id(&session, "a", "q1");
    params["prompt"]
        .as_array_mut()
        .unwrap()
        .push(json!({ "type": "resource_link", "name": "b", "uri": "file:///b" }));
    let first = line.client.start("session/prompt", params.clone());
    let second = line.client.start("session/prompt", prompt_with_id(&session, "b", "q2"));
    let edit =
        json!({ "sessionId": session, "messageId": "q2", "prompt": [{ "type": "text", "text": "b2" }] });
    assert_eq!(line.client.expect("_attache/queue/edit", edit).await, json!({}));
    let listed = line.client.expect("_attache/queue/list", json!({ "sessionId": session })).await;
    let queued = listed["queued"].as_array().unwrap();
    assert_eq!((&queued[0]["messageId"], &queued[0]["prompt"]), (&json!("q1"), &params["prompt"]));
    assert_eq!(queued[1]["prompt"], json!([{ "type": "text", "text": "b2" }]));
    assert!(queued[0]["queuedAt"].as_str().unwrap().starts_with("2026-01-01T"));
    let status = line.client.expect("_attache/session/status", json!({ "sessionId": session })).await;
    assert_eq!(status["state"], "busy");
    let cancel = json!({ "sessionId": session, "messageId": "q1" });
    assert_eq!(line.client.expect("_attache/queue/cancel", cancel.clone()).await, json!({}));
    assert_eq!(first.answer().await.unwrap()["stopReason"], "cancelled");
    assert_eq!(line.client.request("_attache/queue/cancel", cancel).await.unwrap_err().code, -32602);
    assert_eq!(long.answer().await.unwrap()["stopReason"], "end_turn");
    assert_eq!(second.answer().await.unwrap()["stopReason"], "end_turn");
    let status = line.client.expect("_attache/session/status", json!({ "sessionId": session })).await;
    assert_eq!(status, json!({ "state": "idle" }));
    line.client.finish();
}

#[tokio::test(start_paused = true)]
async fn a_bad_block_stores_nothing() {
    let world = World::new("on *\n text \"hi\"");
    let (line, session) = world.process().session().await;
    let blocks =
        json!([{ "type": "text", "text": "x" }, { "type": "image", "data": "?", "mimeType": "image/png" }]);
    let error = line
        .client
        .request("session/prompt", json!({ "sessionId": session, "prompt": blocks }))
        .await
        .unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (-32602, "prompt[1].data: invalid base64"));
    assert_eq!(world.messages(), 0);
    assert_eq!(line.say(&session, "hi").await, "end_turn");
    line.client.finish();
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_gets_everything_later() {
    let token = "a long token ".repeat(20);
    let world = World::new(&format!("on *\n stream 5000 \"{token}\""));
    let process = world.process();
    let (slow, session) = process.session().await;
    let fast = process.connect().await;
    fast.resume(&session).await;
    slow.client.stop_reading();
    assert_eq!(fast.say(&session, "go").await, "end_turn");
    assert_eq!(fast.client.agent_text(&session).len(), 5_000 * token.len());
    slow.client.read_again();
    slow.client.wait_for_update(&session, "usage_update").await;
    assert_eq!(slow.client.agent_text(&session), token.repeat(5_000));
    fast.client.finish();
    slow.client.finish();
}

/// In real time on several threads: each client is shown what the others said, not what it said itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn own_words_do_not_come_back_in_any_order_of_threads() {
    let world = World::new("on *\n text \"ok\"");
    let process = world.process();
    let (one, session) = process.session().await;
    let two = process.connect().await;
    two.resume(&session).await;
    for number in 0..40 {
        let first = one.client.start("session/prompt", prompt(&session, &format!("one {number}")));
        let second = two.client.start("session/prompt", prompt(&session, &format!("two {number}")));
        for pending in [first, second] {
            assert_eq!(pending.answer().await.unwrap()["stopReason"], "end_turn");
        }
    }
    for (line, other) in [(&one, "two"), (&two, "one")] {
        let updates = line.client.updates(&session);
        let heard = updates.iter().filter(|update| update["sessionUpdate"] == "user_message_chunk");
        let heard: Vec<_> =
            heard.map(|update| update["content"]["text"].as_str().unwrap().to_owned()).collect();
        let said: Vec<_> = (0..40).map(|number| format!("{other} {number}")).collect();
        assert_eq!(heard, said);
        line.client.finish();
    }
}
