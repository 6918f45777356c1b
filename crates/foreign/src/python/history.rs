//! The conversation as the Python side gets it when it does not hold it: blocks of the user, parts of answers.

use std::sync::Arc;

use attache_core::ids::MessageId;
use attache_core::part::{Part, Passage, Role};
use serde_json::{Value, json};

use super::block::blocks;
use crate::convert::ui_message::{UnderWay, messages as ui_messages};

/// What a run answers, and what came before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct ToldConversation<'a> {
    pub(super) passages: &'a [Arc<Passage>],
    /// The answer that the run makes.
    pub(super) answer: &'a MessageId,
    /// Of a run that goes on: its step under way.
    pub(super) open_parts: &'a [Part],
}

impl ToldConversation<'_> {
    /// The message that is answered.
    fn prompt(&self) -> Option<&MessageId> {
        let users = self.passages.iter().filter(|passage| passage.role == Role::User);
        users.map(|passage| &passage.message_id).next_back()
    }

    /// Its blocks.
    pub(super) fn prompt_blocks(&self) -> Vec<Value> {
        let prompt = self.prompt();
        let its = self.passages.iter().filter(|passage| Some(&passage.message_id) == prompt);
        its.flat_map(|passage| blocks(&passage.parts)).collect()
    }

    /// What names the conversation before it: the last answer. `None`: there is nothing before it.
    pub(super) fn previous(&self) -> Option<String> {
        let prompt = self.prompt();
        let before = self.passages.iter().take_while(|passage| Some(&passage.message_id) != prompt);
        let before: Vec<_> = before.collect();
        let answered = before.iter().rev().find(|passage| passage.role == Role::Assistant);
        match answered {
            Some(answer) => Some(answer.message_id.as_str().to_owned()),
            // Prompts that nothing came of: no process has them.
            None => (!before.is_empty()).then(|| "unanswered".to_owned()),
        }
    }

    /// Everything before the prompt; with the prompt and what was answered so far where the run goes on.
    pub(super) fn messages(&self) -> Vec<Value> {
        let prompt = self.prompt();
        let goes_on = !self.open_parts.is_empty();
        let mut said: Vec<(&MessageId, &str, Vec<Value>)> = Vec::new();
        for passage in self.passages {
            if !goes_on && Some(&passage.message_id) == prompt {
                break;
            }
            let (role, more) = match passage.role {
                Role::User => (USER, blocks(&passage.parts)),
                Role::Assistant => (ASSISTANT, step(parts_of(std::slice::from_ref(passage), None))),
                Role::System => continue,
            };
            match said.last_mut() {
                Some((id, of, parts)) if **id == passage.message_id && *of == role => parts.extend(more),
                _ => said.push((&passage.message_id, role, more)),
            }
        }
        if goes_on {
            let under_way = UnderWay { message: self.answer, open_parts: self.open_parts };
            let more = step(parts_of(&[], Some(under_way)));
            match said.last_mut() {
                Some((id, ASSISTANT, parts)) if *id == self.answer => parts.extend(more),
                _ => said.push((self.answer, ASSISTANT, more)),
            }
        }
        let written = |(_, role, parts): (&MessageId, &str, Vec<Value>)| match role {
            USER => json!({ "role": USER, "blocks": parts }),
            _ => json!({ "role": ASSISTANT, "parts": parts }),
        };
        said.into_iter().map(written).collect()
    }
}

const USER: &str = "user";
const ASSISTANT: &str = "assistant";

/// Each passage of an answer is a step of it.
fn step(parts: Vec<Value>) -> Vec<Value> {
    std::iter::once(json!({ "type": "step-start" })).chain(parts).collect()
}

fn parts_of(passages: &[Arc<Passage>], under_way: Option<UnderWay<'_>>) -> Vec<Value> {
    let said = ui_messages(passages, None, under_way);
    let parts = said.into_iter().filter_map(|mut message| match message["parts"].take() {
        Value::Array(parts) => Some(parts),
        _ => None,
    });
    parts.flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passage(id: &str, role: Role, text: &str) -> Arc<Passage> {
        let parts = vec![Part::Text { text: text.into(), state: None, provider_metadata: None }];
        Arc::new(Passage::new(MessageId::new(id), role, parts))
    }

    #[test]
    fn the_last_message_is_the_prompt_and_the_answer_before_it_names_the_rest() {
        let passages = [
            passage("u1", Role::User, "a"),
            passage("a1", Role::Assistant, "b"),
            passage("u2", Role::User, "c"),
        ];
        let answer = MessageId::new("a2");
        let conversation = ToldConversation { passages: &passages, answer: &answer, open_parts: &[] };
        assert_eq!(conversation.prompt_blocks(), [json!({ "type": "text", "text": "c" })]);
        assert_eq!(conversation.previous().as_deref(), Some("a1"));
        let expected = [
            json!({ "role": "user", "blocks": [{ "type": "text", "text": "a" }] }),
            json!({ "role": "assistant", "parts": [{ "type": "step-start" }, { "type": "text", "text": "b" }] }),
        ];
        assert_eq!(conversation.messages(), expected);
    }

    #[test]
    fn a_conversation_that_begins_has_nothing_before_it() {
        let answer = MessageId::new("a1");
        let first = [passage("u1", Role::User, "a")];
        let begins = ToldConversation { passages: &first, answer: &answer, open_parts: &[] };
        assert_eq!((begins.previous(), begins.messages()), (None, vec![]));
        let failed = [passage("u1", Role::User, "a"), passage("u2", Role::User, "b")];
        let goes_on = ToldConversation { passages: &failed, answer: &answer, open_parts: &[] };
        assert_eq!(goes_on.previous().as_deref(), Some("unanswered"));
        assert_eq!(goes_on.messages().len(), 1);
    }
}
