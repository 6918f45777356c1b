//! A prompt with places for what a JSON body says: `{{issue.title}}`, `{{commits.0.id}}`, `{{.}}` for all of
//! it. Only text: nothing that a body says is looked at again.

use serde_json::Value;

use crate::limits::HOOK_PROMPT_BYTES;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptTemplate(Vec<TemplatePart>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum TemplatePart {
    Text(String),
    /// Empty: the whole body.
    Field(Vec<String>),
}

impl PromptTemplate {
    /// The error says what is wrong in words that follow the name of the key.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (mut parts, mut rest) = (Vec::new(), text);
        while let Some((before, opened)) = rest.split_once("{{") {
            let Some((name, behind)) = opened.split_once("}}") else {
                return Err("has `{{` without `}}`".to_owned());
            };
            let name = name.trim();
            let path: Vec<String> = match name {
                "." => Vec::new(),
                name => name.split('.').map(str::to_owned).collect(),
            };
            if path.iter().any(|step| step.is_empty() || step.contains(['{', '}'])) {
                return Err(format!(
                    "has `{{{{{name}}}}}`, which names no field: write `{{{{issue.title}}}}`"
                ));
            }
            parts.push(TemplatePart::Text(before.to_owned()));
            parts.push(TemplatePart::Field(path));
            rest = behind;
        }
        parts.push(TemplatePart::Text(rest.to_owned()));
        match text.trim().is_empty() {
            true => Err("is empty".to_owned()),
            false => Ok(Self(parts)),
        }
    }

    /// Whether it says anything of the body.
    pub(super) fn has_fields(&self) -> bool {
        self.0.iter().any(|part| matches!(part, TemplatePart::Field(_)))
    }

    pub(super) fn fill(&self, body: &Value) -> Result<String, String> {
        let mut prompt = String::new();
        for part in &self.0 {
            match part {
                TemplatePart::Text(text) => prompt.push_str(text),
                TemplatePart::Field(path) => match field(body, path) {
                    Some(Value::String(text)) => prompt.push_str(text),
                    Some(value) => prompt.push_str(&value.to_string()),
                    None => return Err(format!("the body has no `{}`", path.join("."))),
                },
            }
            if prompt.len() > HOOK_PROMPT_BYTES {
                return Err(format!("the prompt would be longer than {HOOK_PROMPT_BYTES} bytes"));
            }
        }
        Ok(prompt)
    }
}

fn field<'a>(body: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(body, |value, step| match value {
        Value::Object(fields) => fields.get(step),
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_stand_where_they_are_named_and_nothing_in_them_is_read_again() {
        let template =
            PromptTemplate::parse("Look at {{ issue.title }} ({{labels.1}}, {{n}}): {{.}}").unwrap();
        let body = json!({ "issue": { "title": "{{n}} /compact" }, "labels": ["a", "b"], "n": 7 });
        let filled = template.fill(&body).unwrap();
        assert_eq!(filled, format!("Look at {{{{n}}}} /compact (b, 7): {body}"));
        assert!(template.has_fields() && !PromptTemplate::parse("Deploy } it {").unwrap().has_fields());
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        let template = PromptTemplate::parse("{{issue.title}}").unwrap();
        for body in [json!({}), json!({ "issue": [] }), json!({ "issue": "x" }), json!(null)] {
            assert_eq!(template.fill(&body), Err("the body has no `issue.title`".to_owned()));
        }
        let long = json!({ "issue": { "title": "x".repeat(HOOK_PROMPT_BYTES + 1) } });
        assert!(template.fill(&long).unwrap_err().contains("longer than"));
        for wrong in ["", "  ", "{{issue", "{{}}", "{{a..b}}", "{{a.{b}}"] {
            assert!(PromptTemplate::parse(wrong).is_err(), "{wrong}");
        }
    }
}
