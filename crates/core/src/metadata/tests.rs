//! Reads rows in today's stored form with every key, and checks that writing gives the same form.

use serde_json::from_str;

use std::path::PathBuf;

use super::*;
use crate::chunk::FinishReason;

const SESSION: &str = r#"{"title":"A walk","mode":"plan","approval":"edits","additional_directories":["/x","/y"],"granted_directories":["/z"],"environment":{"captured":{"lines":[]},"last":{"lines":[]}},"of_another":{"version":[1]}}"#;

const PROMPT: &str = r#"{"schema_version":1,"queued_at":5,"queue_enqueued_at":4,"agent":"plan","turn_end":{"kind":"finished","reason":"stop"},"refused":true}"#;

const ANSWER: &str = r#"{"usage":{"input":1,"output":2,"reasoning":3,"cache_read":4,"cache_write":5},"cost_usd":0.25,"model":"p/m#high","system_prompt_digest":"d1","agent":"plan","results_left_out":["call_1"]}"#;

fn text(meta: &impl Serialize) -> String {
    serde_json::to_string(meta).unwrap()
}

#[test]
fn a_session_of_today_is_read_and_written_unchanged() {
    let meta: SessionMeta = from_str(SESSION).unwrap();
    assert_eq!(
        (meta.title(), meta.mode(), meta.approval()),
        (Some("A walk"), Some("plan"), Some(Approval::Edits))
    );
    assert_eq!(meta.additional_directories(), [PathBuf::from("/x"), "/y".into()]);
    assert_eq!(meta.granted_directories(), [PathBuf::from("/z")]);
    assert_eq!(text(&meta), SESSION);

    let mut same = SessionMeta::default();
    same.set_title("A walk");
    same.set_mode("plan");
    same.set_approval(Approval::Edits);
    same.set_additional_directories(&["/x".into(), "/y".into()]);
    same.set_granted_directories(&["/z".into()]);
    assert!(SESSION.starts_with(text(&same).trim_end_matches('}')), "{}", text(&same));
}

#[test]
fn messages_of_today_are_read_and_written_unchanged() {
    let prompt: MessageMeta = from_str(PROMPT).unwrap();
    assert_eq!((prompt.queued_at(), prompt.is_refused(), prompt.is_hidden()), (Some(5), true, false));
    assert_eq!(prompt.turn_end(), Some(TurnEnd::Finished(FinishReason::Stop)));
    assert_eq!(text(&prompt), PROMPT);
    let mut same = MessageMeta::of_prompt();
    same.set_queued(5, 4);
    same.set_agent("plan");
    same.set_turn_end(&TurnEnd::Finished(FinishReason::Stop));
    same.set_refused();
    assert_eq!(text(&same), PROMPT);

    let answer: MessageMeta = from_str(ANSWER).unwrap();
    let usage = Usage { input: 1, output: 2, reasoning: 3, cache_read: 4, cache_write: 5 };
    assert_eq!((answer.usage(), answer.cost_usd()), (Some(usage), Some(0.25)));
    assert_eq!((answer.model(), answer.results_left_out()), (Some("p/m#high"), vec!["call_1"]));
    assert_eq!(text(&answer), ANSWER);

    let cancelled: MessageMeta = from_str(r#"{"queued_at":1,"queue_canceled_at":2,"hidden_at":2}"#).unwrap();
    assert!(cancelled.is_cancelled_in_queue() && cancelled.is_hidden());
    let taken_back: MessageMeta = from_str(r#"{"queue_canceled_at":null,"hidden_at":null}"#).unwrap();
    assert!(!taken_back.is_cancelled_in_queue() && !taken_back.is_hidden());
}

#[test]
fn what_is_missing_or_of_another_kind_says_nothing() {
    for stored in
        ["{}", r#"{"title":1,"mode":[],"approval":"no such","environment":0,"additional_directories":"x"}"#]
    {
        let meta: SessionMeta = from_str(stored).unwrap();
        assert_eq!((meta.title(), meta.mode(), meta.approval()), (None, None, None));
        assert_eq!(meta.additional_directories(), Vec::<PathBuf>::new());
        assert!(meta.environment().is_none());
    }
    for stored in [
        "{}",
        r#"{"queued_at":"x","turn_end":{},"refused":1,"model":{},"results_left_out":-1,"cost_usd":""}"#,
    ] {
        let meta: MessageMeta = from_str(stored).unwrap();
        assert_eq!((meta.queued_at(), meta.turn_end(), meta.is_refused()), (None, None, false));
        assert_eq!((meta.model(), meta.results_left_out(), meta.cost_usd()), (None, vec![], None));
        assert_eq!(meta.usage(), None);
    }
}

#[test]
fn a_patch_replaces_adds_and_removes_and_leaves_the_rest_in_place() {
    let mut meta: SessionMeta =
        from_str(r#"{"a":1,"title":"old","additional_directories":["/x"],"b":2}"#).unwrap();
    let mut patch = SessionMeta::default();
    patch.set_title("new");
    patch.set_mode("plan");
    patch.set_additional_directories(&[]);
    meta.merge(&patch);
    assert_eq!(text(&meta), r#"{"a":1,"title":"new","b":2,"mode":"plan"}"#);
}
