//! `todo`: a plan for clients, a count for the model.

use serde_json::json;

use crate::trial::Trial;

#[tokio::test]
async fn the_list_becomes_a_plan_and_the_call_stays_hidden() {
    let trial = Trial::new();
    let input = json!({"todos": [
        {"content": "a", "status": "completed"},
        {"content": "b", "status": "in_progress", "priority": "high"},
    ]});
    assert!(trial.tool("todo").spec().hidden);
    let plan = trial.plan("todo", input.clone()).await.unwrap();
    assert!(plan.accesses.is_empty() && plan.presentation.hidden);
    let (data, presentation) = trial.done("todo", input).await;
    assert_eq!(data, "2 tasks: 1 completed, 1 in progress, 0 pending");
    assert!(presentation.hidden && presentation.content.is_empty());
    let expected = json!({"entries": [
        {"content": "a", "priority": "medium", "status": "completed"},
        {"content": "b", "priority": "high", "status": "in_progress"},
    ]});
    assert_eq!(*trial.progress.data.lock().unwrap(), [("plan".to_owned(), expected)]);
}

#[tokio::test]
async fn a_wrong_status_is_told_and_shows_nothing() {
    let trial = Trial::new();
    let error = trial.failed("todo", json!({"todos": [{"content": "a", "status": "cancelled"}]})).await;
    assert!(
        error.contains(r#"field `todos[0].status` must be one of "pending", "in_progress", "completed""#),
        "{error}"
    );
    let error = trial.failed("todo", json!({"todos": [{"content": " ", "status": "pending"}]})).await;
    assert!(error.contains("`todos[0].content` must not be empty"), "{error}");
    assert!(trial.progress.data.lock().unwrap().is_empty());
}
