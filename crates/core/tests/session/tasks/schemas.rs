//! The last message of a child whose manifest has a schema for it.

use serde_json::json;

use super::stages::*;
use super::{FINISHED, children};
use crate::world::*;

fn script(answers: &[&str]) -> String {
    let mut script = format!("on \"go\"\n {}\n ---\n text \"done\"\n", task("t", "checked", "count"));
    for (number, answer) in answers.iter().enumerate() {
        let on =
            if number == 0 { "on \"count\"*".to_owned() } else { "on \"Your last message\"*".to_owned() };
        if number < 2 {
            script += &format!("{on}\n text {}\n", json!(answer));
        }
    }
    script
}

#[tokio::test(start_paused = true)]
async fn what_fits_is_given_as_json_also_when_it_is_fenced() {
    for answer in ["{\"count\":3}", "```json\n{\"count\":3}\n```"] {
        let world = stage(&script(&[answer]));
        let (_process, session) = world.session().await;
        assert_eq!(say(&session, "go").await, FINISHED);
        assert_eq!(tools_of(&world.answers(session.id())[0])[0].output, Some(json!({ "count": 3 })));
        assert_eq!(world.prompts(&children(&world, session.id())[0]).len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn what_does_not_fit_goes_back_with_its_mistakes() {
    let world = stage(&script(&["there are three", "{\"count\":3}"]));
    let (_process, session) = world.session().await;
    assert_eq!(say(&session, "go").await, FINISHED);
    assert_eq!(tools_of(&world.answers(session.id())[0])[0].output, Some(json!({ "count": 3 })));
    let prompts = world.prompts(&children(&world, session.id())[0]);
    assert_eq!(prompts.len(), 2);
    assert!(prompts[1].contains("it is not JSON"), "{prompts:?}");
}

#[tokio::test(start_paused = true)]
async fn the_child_sees_its_schema_before_it_begins_and_with_every_mistake() {
    let world = stage(&script(&["there are three", "{\"count\":3}"]));
    let (_process, session) = world.session().await;
    assert_eq!(say(&session, "go").await, FINISHED);
    let prompts = world.prompts(&children(&world, session.id())[0]);
    let schema =
        json!({ "type": "object", "required": ["count"], "properties": { "count": { "type": "integer" } } });
    for prompt in &prompts {
        let (_, told) = prompt.split_once("The schema:\n").unwrap();
        assert_eq!(serde_json::from_str::<serde_json::Value>(told).unwrap(), schema, "{prompt}");
    }
    assert!(prompts[0].starts_with("count\n\n"), "{prompts:?}");
}

#[tokio::test(start_paused = true)]
async fn after_two_tries_the_parent_is_told_what_it_said() {
    let world = stage(&script(&["{\"count\":\"three\"}", "{\"count\":3.5}"]));
    let (_process, session) = world.session().await;
    assert_eq!(say(&session, "go").await, FINISHED);
    let error = tools_of(&world.answers(session.id())[0])[0].error_text.clone().unwrap();
    assert!(
        error.contains("`/count` must be integer") && error.contains("It said:\n{\"count\":3.5}"),
        "{error}"
    );
    let prompts = world.prompts(&children(&world, session.id())[0]);
    assert_eq!(prompts.len(), 3, "sent back at most twice");
}
