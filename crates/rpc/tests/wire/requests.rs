//! One answer per request, in both directions: cancellation, dead-lines, dropped and doubled answers.

use serde_json::json;

use crate::client::start;
use attache_rpc::{ErrorObject, Options, RequestError};
use std::time::Duration;

#[tokio::test]
async fn a_cancelled_request_learns_of_it_and_still_gives_its_own_answer() {
    let (mut client, mut server) = start(Options::default());
    for (id, named) in [("1", "1"), ("\"é\"", r#""\u00e9""#), ("null", "null")] {
        client.send(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"slow\"}}\n")).await;
        let request = server.requests.recv().await.unwrap();
        let token = request.responder.cancelled();
        assert!(!token.is_cancelled());
        let cancel = format!(
            "{{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel_request\",\"params\":{{\"requestId\":{named}}}}}\n"
        );
        client.send(cancel).await;
        token.cancelled().await;
        request.responder.error(ErrorObject::request_cancelled());
        let answer = client.line().await;
        assert_eq!(
            answer,
            format!(
                r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32800,"message":"request cancelled"}}}}"#
            )
        );
    }
}

#[tokio::test]
async fn a_request_may_be_left_unanswered_where_its_protocol_wants_that() {
    let (mut client, mut server) = start(Options::default());
    for _ in 0..2 {
        client.send("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"slow\"}\n").await;
        server.requests.recv().await.unwrap().responder.leave_unanswered();
    }
    // Its id is free, and nothing was sent before what comes now.
    client.assert_alive().await;
}

#[tokio::test]
async fn odd_cancellations_are_ignored() {
    let (mut client, mut server) = start(Options::default());
    client.send("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"slow\"}\n").await;
    let request = server.requests.recv().await.unwrap();
    for params in
        ["", ",\"params\":null", ",\"params\":{}", ",\"params\":{\"requestId\":{}}", ",\"params\":[1]"]
    {
        client.send(format!("{{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel_request\"{params}}}\n")).await;
    }
    for id in ["2", "\"1\"", "1.0"] {
        client
            .send(format!(
                "{{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel_request\",\"params\":{{\"requestId\":{id}}}}}\n"
            ))
            .await;
    }
    client.assert_alive().await;
    assert!(!request.responder.cancelled().is_cancelled());
    assert!(server.notifications.is_empty(), "cancellations are not for the handler");
}

#[tokio::test]
async fn a_dropped_request_is_answered_also_by_a_panicking_task() {
    let (mut client, mut server) = start(Options::default());
    for how in ["drop", "panic"] {
        client.send("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"slow\"}\n").await;
        let request = server.requests.recv().await.unwrap();
        let outcome = tokio::spawn(async move {
            let _request = request;
            assert_ne!(how, "panic");
        });
        assert_eq!(outcome.await.is_err(), how == "panic");
        assert_eq!(
            client.json().await["error"],
            json!({
                "code": -32603,
                "message": "internal error: request was dropped",
                "data": {"details": "internal error: request was dropped"},
            })
        );
    }
    client.assert_alive().await;
}

#[tokio::test]
async fn a_result_that_cannot_be_encoded_is_an_internal_error() {
    let (mut client, mut server) = start(Options::default());
    client.send("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"slow\"}\n").await;
    let request = server.requests.recv().await.unwrap();
    request.responder.ok(&std::collections::BTreeMap::from([((1, 2), 3)]));
    assert_eq!(client.json().await["error"]["code"], -32603);
    client.assert_alive().await;
}

#[tokio::test(start_paused = true)]
async fn a_deadline_cancels_and_forgets() {
    let (mut client, server) = start(Options::default());
    let asked = server.peer.request("ask", &[1], Some(Duration::from_secs(10))).await;
    assert!(matches!(asked, Err(RequestError::Deadline)), "{asked:?}");
    assert_eq!(client.line().await, r#"{"jsonrpc":"2.0","id":1,"method":"ask","params":[1]}"#);
    assert_eq!(
        client.line().await,
        r#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}"#
    );
    client.send("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"late\"}\n").await;
    client.assert_alive().await;
}

#[tokio::test]
async fn a_dropped_future_cancels_and_an_answered_one_does_not() {
    let (mut client, server) = start(Options::default());
    let peer = server.peer.clone();
    let asking = tokio::spawn(async move { peer.request("ask", &(), None).await });
    assert_eq!(client.line().await, r#"{"jsonrpc":"2.0","id":1,"method":"ask"}"#);
    asking.abort();
    assert_eq!(
        client.line().await,
        r#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}"#
    );

    let peer = server.peer.clone();
    let asking = tokio::spawn(async move { peer.request("ask", &(), None).await });
    client.line().await;
    client.send("{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"a\": 1}}\n").await;
    assert_eq!(asking.await.unwrap().unwrap().get(), "{\"a\": 1}");
    client.assert_alive().await;
}

#[tokio::test]
async fn a_request_that_never_left_is_not_cancelled() {
    let (mut client, server) = start(Options { queue_bytes: 10, ..Options::default() });
    // Fills pipe and queue, so that the request has to wait in front of them.
    let filler = "f".repeat(200_000) + "\n";
    server.peer.send_lines(filler.clone().into_bytes()).await.unwrap();
    let asked = server.peer.request("ask", &(), Some(Duration::from_millis(30))).await;
    assert!(matches!(asked, Err(RequestError::Deadline)));
    assert_eq!(client.line().await + "\n", filler);
    client.assert_alive().await;
}

#[tokio::test]
async fn second_unknown_and_contradictory_answers_are_ignored() {
    let (mut client, server) = start(Options::default());
    let peer = server.peer.clone();
    let asking = tokio::spawn(async move { peer.request("ask", &(), None).await });
    client.line().await;
    for line in [
        r#"{"jsonrpc":"2.0","id":99,"result":1}"#,
        r#"{"jsonrpc":"2.0","id":"1","result":1}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1,"message":"?"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-7,"message":"no","data":{"a":1}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":"second"}"#,
    ] {
        client.send(format!("{line}\n")).await;
    }
    match asking.await.unwrap() {
        Err(RequestError::Remote(error)) => {
            assert_eq!((error.code, error.message.as_str()), (-7, "no"));
            assert_eq!(error.data, Some(serde_json::json!({"a": 1})));
        }
        other => panic!("{other:?}"),
    }
    client.assert_alive().await;
}

#[tokio::test]
async fn a_closed_connection_ends_every_request_of_ours() {
    let (mut client, server) = start(Options::default());
    let peer = server.peer.clone();
    let asking = tokio::spawn(async move { peer.request("ask", &(), None).await });
    client.line().await;
    drop(client);
    assert!(matches!(asking.await.unwrap(), Err(RequestError::Closed)));
    assert!(matches!(server.peer.request("ask", &(), None).await, Err(RequestError::Closed)));
    assert!(server.peer.is_closed());
}
