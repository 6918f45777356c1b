//! `--schema`: the answer is JSON that fits, or the run failed.

use super::*;

const SCHEMA: &str = r#"{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}"#;

fn with_schema(script: &str) -> Home {
    let home = home(script);
    std::fs::write(home.workspace().join("schema.json"), SCHEMA).unwrap();
    home
}

#[tokio::test]
async fn an_answer_that_fits_is_the_value_alone() {
    let home = with_schema("on \"count\"*\n  text \"Let me count.\\n```json\\n{\\\"n\\\": 3}\\n```\\n\"\n");
    let ran = chat(&home, &["-p", "count", "--schema", "schema.json"]).await;
    assert_eq!((ran.code, ran.said.as_str(), ran.told.as_str()), (Some(0), "{\"n\":3}\n", ""));
    let ran = chat(&home, &["-p", "count", "--schema", "schema.json", "--output", "json"]).await;
    assert_eq!((ran.code, &ran.object()["value"]), (Some(0), &json!({ "n": 3 })), "{ran:?}");
}

#[tokio::test]
async fn a_model_that_errs_is_told_and_may_answer_again() {
    let script = r#"
on "count"*
  text "{\"n\": \"three\"}"
on "Your last message could not be used"*
  text "{\"n\": 3}"
"#;
    let home = with_schema(script);
    let ran = chat(&home, &["-p", "count", "--schema", "schema.json", "--output", "json"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.object()["value"], json!({ "n": 3 }));
    let stored = export(&home, ran.object()["sessionId"].as_str().unwrap()).await;
    assert_eq!(stored.matches("Your last message could not be used").count(), 1, "{stored}");
    assert!(stored.contains("`/n` must be integer"), "{stored}");
}

#[tokio::test]
async fn after_three_answers_that_do_not_fit_the_run_failed() {
    let home = with_schema("on *\n  text \"I counted three of them.\"\n");
    let ran = chat(&home, &["-p", "count", "--schema", "schema.json", "--output", "json"]).await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let object = ran.object();
    assert!(object["error"].as_str().unwrap().contains("does not fit the schema"), "{object}");
    assert!(object.get("value").is_none(), "{object}");
    let stored = export(&home, object["sessionId"].as_str().unwrap()).await;
    assert_eq!(stored.matches("Your last message could not be used").count(), 2, "{stored}");
    let ran = chat(&home, &["-p", "count", "--schema", "schema.json"]).await;
    assert_eq!((ran.code, ran.said.as_str()), (Some(1), ""), "what does not fit is no answer: {ran:?}");
}

#[tokio::test]
async fn a_schema_that_can_not_be_checked_is_refused() {
    let home = home("on *\n  text \"x\"\n");
    for text in ["{", "{\"type\":\"thing\"}", "{\"$ref\":\"#/x\"}"] {
        std::fs::write(home.workspace().join("schema.json"), text).unwrap();
        let ran = chat(&home, &["-p", "count", "--schema", "schema.json"]).await;
        assert_eq!((ran.code, ran.said.as_str()), (Some(2), ""), "{text}: {ran:?}");
        assert!(ran.told.contains("--schema schema.json"), "{text}: {ran:?}");
    }
}
