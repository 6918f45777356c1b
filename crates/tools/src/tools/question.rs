//! The `question` tool: gives its questions to the core, which asks the user. The tool itself runs only if no
//! user can answer.

use std::sync::LazyLock;

use attache_core::legible::visible;
use attache_core::ports::client::{Choice, Question as Asked, Selection};
use attache_core::ports::tool::{Effect, Presentation, Site, ToolKind};
use attache_core::ports::{BoxFuture, Tool, ToolOutcome, ToolPlan, ToolRuntime, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::arguments::{self, Visibility};
use crate::limits::{QUESTION_OPTIONS, QUESTIONS};
use crate::outcome::{RunningCall, refused};

/// Asks the user and waits for the answers. Only for what you can neither find out nor decide yourself; put all
/// questions in one call. Without options any text is an answer.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    questions: Vec<AskedQuestion>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AskedQuestion {
    question: String,
    /// One or two words.
    header: Option<String>,
    options: Option<Vec<Offered>>,
    /// Several options may be chosen.
    multi_select: Option<bool>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Offered {
    label: String,
    description: Option<String>,
}

const EXAMPLE: &str =
    r#"{"questions":[{"question":"Which database?","options":[{"label":"SQLite"},{"label":"PostgreSQL"}]}]}"#;

/// The answer if there is no user, because only then the tool itself runs.
const REFUSAL: &str =
    "question: no connected person can answer. Use your judgement, say what you assumed, and go on.";

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| {
    arguments::spec::<Input>("question", ToolKind::Other, Effect::ReadOnly, Visibility::Shown)
});

#[derive(Debug)]
pub(crate) struct QuestionTool;

impl Tool for QuestionTool {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn without_person(&self) -> Option<&'static str> {
        Some(REFUSAL)
    }

    fn plan(&self, input: &Value, _site: &Site) -> BoxFuture<'_, Result<ToolPlan, String>> {
        let asked = parse(input);
        Box::pin(async move {
            let asked = asked?;
            let presentation = presentation(&asked);
            Ok(ToolPlan::asking(asked, presentation))
        })
    }

    fn run(&self, input: Value, _runtime: ToolRuntime) -> BoxFuture<'_, ToolOutcome> {
        Box::pin(async move {
            match parse(&input) {
                Ok(asked) => RunningCall::started(presentation(&asked)).failed(REFUSAL),
                Err(text) => refused(text),
            }
        })
    }
}

fn parse(input: &Value) -> Result<Vec<Asked>, String> {
    let input: Input = arguments::parse(&SPEC, EXAMPLE, input)?;
    let count = input.questions.len();
    if !(1..=QUESTIONS).contains(&count) {
        let problem = format!("field `questions` must hold 1 to {QUESTIONS} questions, not {count}");
        return Err(arguments::rejected(&SPEC, EXAMPLE, &problem));
    }
    let items = input.questions.into_iter().enumerate();
    items
        .map(|(index, item)| asked(item).map_err(|problem| format!("field `questions[{index}].{problem}")))
        .collect::<Result<_, _>>()
        .map_err(|problem| arguments::rejected(&SPEC, EXAMPLE, &problem))
}

/// Makes everything that clients show legible here; the answer repeats it to the model in the same form.
fn asked(item: AskedQuestion) -> Result<Asked, String> {
    if item.question.trim().is_empty() {
        return Err("question` must not be empty".to_owned());
    }
    let options = item.options.unwrap_or_default();
    if options.len() > QUESTION_OPTIONS {
        return Err(format!("options` may hold {QUESTION_OPTIONS} options, not {}", options.len()));
    }
    for (index, option) in options.iter().enumerate() {
        if option.label.trim().is_empty() {
            return Err(format!("options[{index}].label` must not be empty"));
        }
        if options[..index].iter().any(|other| other.label == option.label) {
            return Err(format!("options[{index}].label` must differ from the others"));
        }
    }
    let choices = options.into_iter().map(|option| Choice {
        label: visible(&option.label),
        description: option.description.as_deref().map(visible),
    });
    Ok(Asked {
        text: visible(&item.question),
        header: item.header.filter(|header| !header.trim().is_empty()).as_deref().map(visible),
        choices: choices.collect(),
        selection: if item.multi_select == Some(true) { Selection::Several } else { Selection::One },
    })
}

fn presentation(asked: &[Asked]) -> Presentation {
    let title = match asked {
        [one] => one.text.clone(),
        several => format!("{} questions", several.len()),
    };
    Presentation { title, kind: Some(ToolKind::Other), ..Presentation::default() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_model_reads_is_short() {
        let schema = serde_json::to_string(&SPEC.parameters).unwrap();
        assert!(SPEC.description.len() + schema.len() <= 900, "{} {schema}", SPEC.description);
    }

    #[test]
    fn where_nobody_can_answer_its_answer_is_known_before_its_arguments() {
        let tool = crate::argument_notes::with_argument_notes(QuestionTool);
        assert!(tool.needs_person());
        assert_eq!(tool.without_person(), Some(REFUSAL));
    }

    #[test]
    fn wrong_questions_are_named_by_their_field() {
        let option = |label: &str| json!({ "label": label });
        let many: Vec<_> = (0..21).map(|number| option(&number.to_string())).collect();
        for (input, field) in [
            (json!({ "questions": [] }), "`questions`"),
            (json!({ "questions": [{ "question": " " }] }), "`questions[0].question`"),
            (
                json!({ "questions": [{ "question": "a?", "options": [option("")] }] }),
                "`questions[0].options[0].label`",
            ),
            (
                json!({ "questions": [{ "question": "a?" }, { "question": "b?", "options": [option("x"), option("x")] }] }),
                "`questions[1].options[1].label`",
            ),
            (json!({ "questions": [{ "question": "a?", "options": many }] }), "`questions[0].options`"),
        ] {
            let problem = parse(&input).unwrap_err();
            assert!(problem.contains(field) && problem.contains("for example"), "{problem}");
        }
    }

    #[test]
    fn options_and_questions_may_be_plain_texts() {
        let input = json!({ "questions": [{ "question": "a?", "options": ["x", "y"] }, "b?"] });
        let asked = parse(&input).unwrap();
        assert_eq!(asked[0].choices.iter().map(|choice| &*choice.label).collect::<Vec<_>>(), ["x", "y"]);
        assert_eq!(asked[1].text, "b?");
    }

    #[test]
    fn a_question_keeps_its_options_and_its_way_of_choosing() {
        let input = json!({ "questions": [
            { "question": "a?", "header": "A", "options": [{ "label": "x", "description": "the x" }], "multi_select": true },
            { "question": "b?" },
        ] });
        let [one, two] = &parse(&input).unwrap()[..] else { panic!("two questions") };
        let choice = Choice { label: "x".into(), description: Some("the x".into()) };
        assert_eq!((one.choices.as_slice(), one.selection), (&[choice][..], Selection::Several));
        assert_eq!((two.choices.len(), two.selection, &two.header), (0, Selection::One, &None));
    }
}
