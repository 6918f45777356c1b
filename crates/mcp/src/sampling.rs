//! A server asks for an answer of a model. It gets one only if its user's configuration lets it ask, within a
//! call, with the user's word for this very question, and as long as the session's budget lasts.

use std::sync::{Arc, Mutex, PoisonError};

use attache_core::legible::visible_block;
use attache_core::part::Role;
use attache_core::ports::delegate::Permit;
use attache_core::ports::mcp::ServerSampling;
use attache_core::ports::side_model::{SideAnswer, SideAnswerEnd, SideQuestion};
use attache_rpc::{ErrorObject, Responder};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::handler::{Caller, ServerEvents};
use crate::limits::{
    SAMPLING_ANSWER_TOKENS, SAMPLING_BYTES, SAMPLING_CALLS, SAMPLING_MESSAGES, SAMPLING_TOKENS,
};

/// The code that the protocol has for a user who would not.
const REFUSED: i32 = -1;

const ONLY_IN_CALLS: &str = "a model can be asked only within a call";

/// Tokens that the servers of one session have used.
#[derive(Debug, Default)]
pub(crate) struct SamplingBudget(
    /// Why a lock: servers ask in tasks of their own. Held for a sum only.
    Mutex<Sampled>,
);

#[derive(Debug, Default)]
struct Sampled {
    calls: usize,
    tokens: u64,
}

impl SamplingBudget {
    /// Counts a question before anybody is bothered with it.
    fn take(&self) -> Result<(), String> {
        let mut sampled = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if sampled.calls >= SAMPLING_CALLS {
            return Err(format!("servers of this session have asked {SAMPLING_CALLS} times already"));
        }
        if sampled.tokens >= SAMPLING_TOKENS {
            return Err(format!("servers of this session have used {SAMPLING_TOKENS} tokens already"));
        }
        sampled.calls += 1;
        Ok(())
    }

    fn used(&self, tokens: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).tokens += tokens;
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireQuestion {
    messages: Vec<WireSaid>,
    #[serde(default)]
    system_prompt: Option<String>,
    #[serde(default)]
    max_tokens: Option<u64>,
    #[serde(default)]
    tools: Vec<Value>,
}

#[derive(Deserialize)]
struct WireSaid {
    role: String,
    content: Value,
}

impl ServerEvents {
    pub(crate) fn sample(self: &Arc<Self>, params: Option<&RawValue>, responder: Responder) {
        if let Err(refusal) = self.lets_ask() {
            return responder.error(refusal);
        }
        let question = match question(params) {
            Ok(question) => question,
            Err(problem) => return responder.error(ErrorObject::invalid_params(problem)),
        };
        let Some((caller, over)) = self.last_caller(|caller| caller.side_model.is_some()) else {
            return responder.error(ErrorObject::new(REFUSED, ONLY_IN_CALLS));
        };
        let events = self.clone();
        tokio::spawn(async move {
            match events.answered(question, caller, over).await {
                Ok(answer) => responder.ok(&wire_answer(&answer)),
                Err(why) => responder.error(ErrorObject::new(REFUSED, why)),
            }
        });
    }

    /// For a server that wants it before it answers a request of ours.
    pub(crate) async fn sampled(
        &self,
        params: Option<&RawValue>,
        caller: Option<&Caller>,
    ) -> Result<Value, String> {
        self.lets_ask().map_err(|refusal| refusal.message)?;
        let question = question(params)?;
        let caller = caller.filter(|caller| caller.side_model.is_some()).ok_or(ONLY_IN_CALLS)?;
        let answer = self.answered(question, caller.clone(), CancellationToken::new()).await?;
        Ok(wire_answer(&answer))
    }

    fn lets_ask(&self) -> Result<(), ErrorObject> {
        match self.sampling() {
            ServerSampling::Asked => Ok(()),
            ServerSampling::Refused => {
                Err(ErrorObject::new(REFUSED, "this client does not let servers ask its model"))
            }
        }
    }

    async fn answered(
        &self,
        question: SideQuestion,
        caller: Caller,
        over: CancellationToken,
    ) -> Result<SideAnswer, String> {
        let Caller { call_id, side_model, budget, .. } = caller;
        let model = side_model.ok_or("there is no model here")?;
        budget.take()?;
        let _asking = self.asking();
        let title = format!("The MCP server {} wants to ask your model", self.shown_name());
        let permit = Permit { call_id, title, text: shown(&question) };
        let answer = tokio::select! {
            answer = model.ask(permit, question) => answer?,
            () = over.cancelled() => return Err("the call is over".to_owned()),
        };
        budget.used(answer.tokens);
        Ok(answer)
    }
}

/// All of it, as a person reads it before it is sent.
fn shown(question: &SideQuestion) -> String {
    let system = Some(&question.system).filter(|text| !text.is_empty()).map(|text| format!("system: {text}"));
    let said = question.messages.iter().map(|(role, text)| format!("{}: {text}", role.as_str()));
    visible_block(&system.into_iter().chain(said).collect::<Vec<_>>().join("\n\n"))
}

fn question(params: Option<&RawValue>) -> Result<SideQuestion, String> {
    let text = params.map(RawValue::get).unwrap_or_default();
    let wire: WireQuestion = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if !wire.tools.is_empty() {
        return Err("the model has no tools here".to_owned());
    }
    if wire.messages.is_empty() || wire.messages.len() > SAMPLING_MESSAGES {
        return Err(format!("there must be 1 to {SAMPLING_MESSAGES} messages"));
    }
    let messages = wire.messages.iter().map(|said| {
        let role = match said.role.as_str() {
            "user" => Role::User,
            "assistant" => Role::Assistant,
            _ => return Err("a role must be user or assistant".to_owned()),
        };
        Ok((role, plain_text(&said.content)?))
    });
    let answer_tokens = wire.max_tokens.unwrap_or(SAMPLING_ANSWER_TOKENS).clamp(1, SAMPLING_ANSWER_TOKENS);
    let system = wire.system_prompt.unwrap_or_default();
    let question = SideQuestion { system, messages: messages.collect::<Result<_, _>>()?, answer_tokens };
    if shown(&question).len() > SAMPLING_BYTES {
        return Err(format!("a question has at most {SAMPLING_BYTES} bytes"));
    }
    Ok(question)
}

/// One piece, or several; a person can't be shown what is no text.
fn plain_text(content: &Value) -> Result<String, String> {
    let one = |piece: &Value| {
        let text = (piece["type"] == "text").then(|| piece["text"].as_str()).flatten();
        text.map(str::to_owned).ok_or_else(|| "only text can be asked".to_owned())
    };
    match content.as_array() {
        Some(pieces) => Ok(pieces.iter().map(one).collect::<Result<Vec<_>, _>>()?.join("\n")),
        None => one(content),
    }
}

fn wire_answer(answer: &SideAnswer) -> Value {
    let reason = match answer.end {
        SideAnswerEnd::Complete => "endTurn",
        SideAnswerEnd::Cut => "maxTokens",
    };
    let content = json!({ "type": "text", "text": answer.text });
    json!({ "role": "assistant", "content": content, "model": answer.model, "stopReason": reason })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(value: &Value) -> Result<SideQuestion, String> {
        question(Some(&RawValue::from_string(value.to_string()).unwrap()))
    }

    #[test]
    fn a_question_is_text_and_shown_whole() {
        let asked = read(&json!({
            "messages": [
                { "role": "user", "content": { "type": "text", "text": "What\u{202e}?" } },
                { "role": "assistant", "content": [{ "type": "text", "text": "Hm" }] },
            ],
            "systemPrompt": "Be brief", "maxTokens": 1_000_000,
        }));
        let asked = asked.unwrap();
        assert_eq!(asked.answer_tokens, SAMPLING_ANSWER_TOKENS);
        assert_eq!(shown(&asked), "system: Be brief\n\nuser: What\\u{202e}?\n\nassistant: Hm");
        let user = |content: Value| json!({ "messages": [{ "role": "user", "content": content }] });
        let text = |text: &str| json!({ "type": "text", "text": text });
        for (bad, why) in [
            (json!({}), "messages"),
            (json!({ "messages": [] }), "1 to 20 messages"),
            (user(json!({ "type": "image", "data": "" })), "only text"),
            (user(text(&"x".repeat(SAMPLING_BYTES))), "at most"),
            (json!({ "messages": [{ "role": "system", "content": text("x") }] }), "a role must be"),
            (json!({ "messages": [{ "role": "user", "content": text("x") }], "tools": [{}] }), "no tools"),
        ] {
            let problem = read(&bad).unwrap_err();
            assert!(problem.contains(why), "{bad}: {problem}");
        }
    }

    #[test]
    fn a_budget_has_an_end() {
        let budget = SamplingBudget::default();
        (0..SAMPLING_CALLS).for_each(|_| budget.take().unwrap());
        assert!(budget.take().unwrap_err().contains("20 times"));
        let budget = SamplingBudget::default();
        budget.used(SAMPLING_TOKENS);
        assert!(budget.take().unwrap_err().contains("tokens"));
    }

    proptest! {
        #[test]
        fn nothing_panics(text in r#"[{}\[\]":,a-z0-9]{0,60}"#) {
            if let Ok(raw) = RawValue::from_string(text) {
                drop(question(Some(&raw)));
            }
        }
    }
}
