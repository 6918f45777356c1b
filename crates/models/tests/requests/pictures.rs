//! Pictures that calls gave: shown natively where the dialect has a place for them, right behind the results
//! elsewhere, and described to models that are not shown them.

use std::sync::Arc;

use attache_core::part::{Part, Role};
use attache_core::ports::ModelRequest;
use attache_core::ports::model::ModelInfo;
use attache_core::ports::store::ModelRef;
use attache_models::{BlobBytes, Compatibility, Dialect, Outgoing, Turns};
use attache_testkit::provider_rules;
use serde_json::{Value, json};

use crate::check_snapshot;
use crate::conversation::{answered, call, passage, request, text, user_text};

const DIALECTS: [(Dialect, &str); 4] = [
    (Dialect::Anthropic, "claude-sonnet-4-5"),
    (Dialect::OpenAiChat, "model-1"),
    (Dialect::OpenAiResponses, "gpt-5"),
    (Dialect::Gemini, "gemini-3-pro"),
];

const DATA: &str = "iVBORw0KGgo=";

fn picture() -> Value {
    json!({ "type": "image", "path": "/p/a.png", "mime": "image/png", "size": 8, "url": "attache-blob:00ff" })
}

/// A step with a picture between two texts, and a step behind it.
fn conversation(model_id: &str, picture: Value) -> ModelRequest {
    let steps = [
        passage("msg_1", Role::User, vec![user_text("What is in it?")]),
        passage(
            "msg_2",
            Role::Assistant,
            vec![
                Part::StepStart,
                answered(call("call_1", "read", json!({ "path": "a.rs" }), None), json!("fn a() {}\n")),
                answered(call("call_2", "view_image", json!({ "path": "a.png" }), None), picture),
                answered(call("call_3", "read", json!({ "path": "b.rs" }), None), json!("fn b() {}\n")),
            ],
        ),
        passage("msg_2", Role::Assistant, vec![Part::StepStart, text("A cat.", None)]),
        passage("msg_3", Role::User, vec![user_text("Sure?")]),
    ];
    ModelRequest { runtime_context: [].into(), ..request(&ModelRef::new("acme", model_id), steps.to_vec()) }
}

fn kept(dialect: Dialect, request: &ModelRequest, compatibility: &Compatibility) -> Value {
    let blobs = BlobBytes::from([("00ff".to_owned(), DATA.to_owned())]);
    let body = dialect.body(&Outgoing { request, blobs: &blobs, compatibility });
    let body: Value = serde_json::from_slice(&body).unwrap();
    let violations = provider_rules::violations(dialect.as_str(), &body);
    assert!(violations.is_empty(), "{violations:#?}\n{body:#}");
    body
}

#[test]
fn a_picture_is_shown_as_each_dialect_has_it() {
    for (dialect, model_id) in DIALECTS {
        let body = kept(dialect, &conversation(model_id, picture()), &Compatibility::default());
        assert_eq!(body.to_string().matches(DATA).count(), 1, "{body:#}");
        check_snapshot(dialect, "picture", &body);
    }
}

#[test]
fn where_users_and_assistants_alternate_the_assistant_speaks_between_results_and_picture() {
    let compatibility = Compatibility { turns: Turns::Alternate, ..Compatibility::default() };
    let body = kept(Dialect::OpenAiChat, &conversation("model-1", picture()), &compatibility);
    let roles: Vec<_> =
        body["messages"].as_array().unwrap().iter().map(|said| said["role"].clone()).collect();
    assert_eq!(
        roles,
        ["system", "user", "assistant", "tool", "tool", "tool", "assistant", "user", "assistant", "user"]
    );
}

#[test]
fn a_model_that_takes_no_images_is_told_what_there_is() {
    for (dialect, model_id) in DIALECTS {
        let seeing = conversation(model_id, picture());
        let info = Arc::new(ModelInfo { images: false, ..(*seeing.info).clone() });
        let body = kept(dialect, &ModelRequest { info, ..seeing }, &Compatibility::default()).to_string();
        assert!(!body.contains(DATA), "{body}");
        let told = "[/p/a.png, image/png, 8 bytes] can't be shown: this model takes no images";
        assert!(body.contains(told), "{body}");
        assert!(!body.contains("next message") && !body.contains("attache-blob"), "{body}");
    }
}

#[test]
fn a_rejected_picture_and_one_that_is_gone_are_described() {
    let mut rejected = picture();
    rejected["rejected"] = "too wide".into();
    let mut gone = picture();
    gone["url"] = "attache-blob:01".into();
    for (dialect, model_id) in DIALECTS {
        for (output, why) in
            [(&rejected, "the provider did not take it (too wide)"), (&gone, "it is not kept any more")]
        {
            let request = conversation(model_id, output.clone());
            let body = kept(dialect, &request, &Compatibility::default()).to_string();
            assert!(!body.contains(DATA), "{body}");
            assert!(
                body.contains(&format!("[/p/a.png, image/png, 8 bytes] can't be shown: {why}")),
                "{body}"
            );
        }
    }
}

#[test]
fn a_word_of_warning_stands_beside_the_picture() {
    let mut warned = picture();
    warned["warning"] = "You have made this very call 3 times in a row.".into();
    for (dialect, model_id) in DIALECTS {
        let body =
            kept(dialect, &conversation(model_id, warned.clone()), &Compatibility::default()).to_string();
        assert!(body.contains("8 bytes]\\n\\nYou have made this very call"), "{body}");
        assert!(body.contains(DATA), "{body}");
    }
}
