//! What a server wants of the user in the middle of a call: a form to fill, or an address to visit. Both say
//! who asks; no address is opened here, and only web addresses are shown.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use attache_core::ids::CallId;
use attache_core::legible::{legible_line, visible, visible_block};
use attache_core::ports::Delegate;
use attache_core::ports::delegate::{AddressOffer, Form, FormAnswer};
use attache_rpc::{ErrorObject, Responder};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::handler::{Caller, ServerEvents};
use crate::limits::{ADDRESS_BYTES, FORM_FIELDS, OPEN_ADDRESSES, QUESTION_CHARACTERS, SCHEMA_BYTES};
use crate::listing::shortened;

/// The code of an error that says: not before the user has been somewhere.
pub(crate) const ADDRESS_NEEDED: i32 = -32042;

/// A question of a server to the user.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Elicitation {
    mode: Option<String>,
    message: String,
    requested_schema: Value,
    url: String,
    elicitation_id: String,
}

/// What comes of a question of a server to a user, read.
enum ReadElicitation {
    Form(Elicitation),
    Address(Elicitation, Url),
    /// Nothing that anybody can be asked.
    Unusable,
}

impl ReadElicitation {
    /// Or what the server did wrong.
    fn of(params: Option<&RawValue>) -> Result<Self, String> {
        let question = params.and_then(|params| serde_json::from_str::<Elicitation>(params.get()).ok());
        let Some(mut question) = question else { return Ok(Self::Unusable) };
        match question.mode.as_deref() {
            None | Some("form") => Ok(match legible_form(&mut question.requested_schema) {
                Ok(()) => Self::Form(question),
                Err(why) => {
                    tracing::debug!(why, "a form of an MCP server can't be shown");
                    Self::Unusable
                }
            }),
            Some("url") => web_address(&question.url).map(|address| Self::Address(question, address)),
            Some(_) => Err("mode must be form or url".to_owned()),
        }
    }

    fn can_be_asked(&self, caller: &Caller) -> bool {
        let offers = caller.client.as_ref().map(|client| client.offers()).unwrap_or_default();
        match self {
            Self::Form(_) => offers.forms,
            Self::Address(..) => offers.addresses,
            Self::Unusable => false,
        }
    }
}

/// The client that is asked, and until when.
struct AskedUser {
    client: Arc<dyn Delegate>,
    call_id: CallId,
    over: CancellationToken,
}

/// An address that a user agreed to visit and that is not done.
#[derive(Clone, Debug)]
pub(crate) struct OpenAddress {
    /// As its server calls it.
    theirs: String,
    /// As the client knows it.
    ours: String,
    client: Arc<dyn Delegate>,
}

impl ServerEvents {
    /// A question of the server to the user whose call it answers; of several that run, the last.
    pub(crate) fn elicit(self: &Arc<Self>, params: Option<&RawValue>, responder: Responder) {
        let question = match ReadElicitation::of(params) {
            Ok(question) => question,
            Err(problem) => return responder.error(ErrorObject::invalid_params(problem)),
        };
        let Some((caller, over)) = self.last_caller(|caller| question.can_be_asked(caller)) else {
            return responder.ok(&declined());
        };
        let events = self.clone();
        tokio::spawn(async move { responder.ok(&events.put(question, caller, over).await) });
    }

    /// For a server that wants it before it answers a request of ours. `None`: there is no one to ask.
    pub(crate) async fn elicited(
        &self,
        params: Option<&RawValue>,
        caller: Option<&Caller>,
    ) -> Result<Value, String> {
        let question = ReadElicitation::of(params)?;
        match caller.filter(|caller| question.can_be_asked(caller)) {
            Some(caller) => Ok(self.put(question, caller.clone(), CancellationToken::new()).await),
            None => Ok(declined()),
        }
    }

    /// One question of a call after the other, and not without end.
    async fn put(&self, question: ReadElicitation, caller: Caller, over: CancellationToken) -> Value {
        let Caller { call_id, client: Some(client), questions, .. } = caller else { return declined() };
        let _asking = self.asking();
        let turn = tokio::select! {
            biased;
            () = over.cancelled() => return json!({ "action": action(&FormAnswer::Dismissed) }),
            turn = questions.turn() => turn,
        };
        let Some(_turn) = turn else {
            tracing::debug!(server = self.shown_name(), "an MCP server asks too much");
            return declined();
        };
        let asked = AskedUser { client, call_id, over };
        match question {
            ReadElicitation::Form(question) => self.fill(&question, asked).await,
            ReadElicitation::Address(question, address) => {
                json!({ "action": action(&self.offer(&question, &address, asked).await) })
            }
            ReadElicitation::Unusable => declined(),
        }
    }

    async fn fill(&self, question: &Elicitation, asked: AskedUser) -> Value {
        let message = format!(
            "The MCP server {} asks: {}",
            self.shown_name(),
            shortened(&question.message, QUESTION_CHARACTERS)
        );
        let AskedUser { client, call_id, over } = asked;
        let form = Form { call_id, message, schema: question.requested_schema.clone() };
        let answer = tokio::select! {
            biased;
            () = over.cancelled() => FormAnswer::Dismissed,
            answer = client.fill(form) => answer.unwrap_or_else(|error| {
                tracing::debug!(%error, "a question of an MCP server was not answered");
                FormAnswer::Declined
            }),
        };
        match answer {
            FormAnswer::Filled(content) => json!({ "action": "accept", "content": content }),
            FormAnswer::Declined | FormAnswer::Dismissed => json!({ "action": action(&answer) }),
        }
    }

    /// Shows the user an address to visit. What they do there stays between them and that site.
    async fn offer(&self, question: &Elicitation, address: &Url, asked: AskedUser) -> FormAnswer {
        let AskedUser { client, call_id, over } = asked;
        let id = offer_id();
        let message = format!(
            "The MCP server {} asks you to visit {}: {}",
            self.shown_name(),
            legible_line(&address.origin().ascii_serialization()),
            shortened(&question.message, QUESTION_CHARACTERS)
        );
        let url = address.as_str().to_owned();
        let offer = AddressOffer { call_id: Some(call_id), id: id.clone(), message, url };
        let answer = tokio::select! {
            biased;
            () = over.cancelled() => FormAnswer::Dismissed,
            answer = client.offer_address(offer) => answer.unwrap_or_else(|error| {
                tracing::debug!(%error, "an address of an MCP server was not offered");
                FormAnswer::Declined
            }),
        };
        if let FormAnswer::Filled(_) = answer {
            let mut open = self.addresses();
            if open.len() >= OPEN_ADDRESSES {
                open.remove(0);
            }
            open.push(OpenAddress { theirs: question.elicitation_id.clone(), ours: id, client });
        }
        answer
    }

    /// The server says that what an address was for is done.
    pub(crate) fn address_done(&self, params: Option<&RawValue>) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct AddressDone {
            elicitation_id: String,
        }
        let Some(Ok(done)) = params.map(|params| serde_json::from_str::<AddressDone>(params.get())) else {
            return;
        };
        let mut open = self.addresses();
        // It can end only what it began.
        let Some(at) = open.iter().position(|known| known.theirs == done.elicitation_id) else { return };
        let OpenAddress { ours, client, .. } = open.remove(at);
        tokio::spawn(async move { client.address_done(ours).await });
    }

    /// A call that the server does only once its user has been somewhere: they are shown where, and the model
    /// learns what they said.
    pub(crate) async fn lead(&self, error: &ErrorObject, caller: &Caller) -> String {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Needed {
            elicitations: Vec<Elicitation>,
        }
        let data = error.data.as_ref().map(ToString::to_string).unwrap_or_default();
        let needed: Needed = serde_json::from_str(&data).unwrap_or_default();
        let why = shortened(&error.message, QUESTION_CHARACTERS);
        let Some(question) = needed.elicitations.into_iter().next() else { return why };
        let address = match web_address(&question.url) {
            Ok(address) => address,
            Err(problem) => return format!("{why} (it names no address that can be shown: {problem})"),
        };
        let place = legible_line(&address.origin().ascii_serialization());
        let client = caller.client.clone().filter(|client| client.offers().addresses);
        let Some(client) = client else {
            return format!("{why}. The user has to visit {} first", visible_block(address.as_str()));
        };
        let asked = AskedUser { client, call_id: caller.call_id.clone(), over: CancellationToken::new() };
        let _asking = self.asking();
        match self.offer(&question, &address, asked).await {
            FormAnswer::Filled(_) => {
                format!("{why}. The user goes to {place} now; call it again when they say that they are done")
            }
            FormAnswer::Declined | FormAnswer::Dismissed => {
                format!("{why}. The user would not go to {place}")
            }
        }
    }
}

/// The id of an address, as clients know it.
pub(crate) fn offer_id() -> String {
    static LAST: AtomicU64 = AtomicU64::new(0);
    format!("mcp-{}", LAST.fetch_add(1, Ordering::Relaxed) + 1)
}

fn declined() -> Value {
    json!({ "action": action(&FormAnswer::Declined) })
}

fn action(answer: &FormAnswer) -> &'static str {
    match answer {
        FormAnswer::Filled(_) => "accept",
        FormAnswer::Declined => "decline",
        FormAnswer::Dismissed => "cancel",
    }
}

/// What a field of a form can be.
const FIELD_TYPES: [&str; 5] = ["string", "number", "integer", "boolean", "array"];

/// Writes out what can't be seen in the words of a form; why it can't be shown otherwise. Names of fields and
/// values are what is answered, so they can't be written otherwise: there must be nothing in them that can't
/// be seen.
fn legible_form(schema: &mut Value) -> Result<(), &'static str> {
    let fields = schema.get("properties").and_then(Value::as_object);
    let mut fields = fields.into_iter().flatten();
    if fields.clone().count() > FORM_FIELDS || schema.to_string().len() > SCHEMA_BYTES {
        return Err("it is too large");
    }
    let is_flat = |field: &Value| {
        let kind = field.get("type").and_then(Value::as_str);
        kind.is_some_and(|kind| FIELD_TYPES.contains(&kind))
    };
    if !fields.clone().all(|(_, field)| is_flat(field)) {
        return Err("a field of it is no text, number, choice, or yes or no");
    }
    if !fields.all(|(name, field)| visible(name) == *name && has_legible_values(field)) {
        return Err("there is something in its names or choices that can't be seen");
    }
    legible_words(schema);
    Ok(())
}

fn has_legible_values(value: &Value) -> bool {
    let is_legible = |value: &Value| value.as_str().is_none_or(|text| visible(text) == text);
    match value {
        Value::Object(fields) => fields.iter().all(|(name, field)| match (name.as_str(), field) {
            ("enum" | "default", Value::Array(values)) => values.iter().all(is_legible),
            ("const" | "default", value) => is_legible(value),
            (_, field) => has_legible_values(field),
        }),
        Value::Array(items) => items.iter().all(has_legible_values),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

fn legible_words(value: &mut Value) {
    let legible = |text: &mut String| *text = shortened(text, QUESTION_CHARACTERS);
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                match (name.as_str(), field) {
                    ("title" | "description", Value::String(text)) => legible(text),
                    ("enumNames", Value::Array(names)) => {
                        for name in names {
                            if let Value::String(text) = name {
                                legible(text);
                            }
                        }
                    }
                    (_, field) => legible_words(field),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(legible_words),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Only what a browser shows as a place of the web. A name before the host makes it look like another place.
fn web_address(url: &str) -> Result<Url, String> {
    if url.len() > ADDRESS_BYTES {
        return Err(format!("its url has more than {ADDRESS_BYTES} bytes"));
    }
    let parsed = Url::parse(url).map_err(|error| format!("its url is not one: {error}"))?;
    if !matches!(parsed.scheme(), "http" | "https") || !parsed.has_host() {
        return Err(format!("its url must be http or https, not {}", legible_line(parsed.scheme())));
    }
    if !parsed.username().is_empty() || parsed.password().is_some() {
        return Err("its url names a user".to_owned());
    }
    Ok(parsed)
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;

    #[test]
    fn words_of_a_form_are_legible_and_its_names_stay() {
        let mut schema = json!({ "type": "object", "title": "a\u{202e}b", "properties": {
            "name": { "type": "string", "title": "t\u{1b}[2J", "description": "d\nd" },
            "title": { "type": "string", "enum": ["a"], "enumNames": ["n\u{200b}"] },
        } });
        assert_eq!(legible_form(&mut schema), Ok(()));
        assert_eq!(
            schema,
            json!({ "type": "object", "title": r"a\u{202e}b", "properties": {
            "name": { "type": "string", "title": "t␛[2J", "description": "d d" },
            "title": { "type": "string", "enum": ["a"], "enumNames": [r"n\u{200b}"] },
        } })
        );
    }

    #[test]
    fn a_form_that_nobody_could_read_is_not_shown() {
        let form = |field: Value| legible_form(&mut json!({ "properties": { "a": field } }));
        assert_eq!(
            form(json!({ "type": "array", "items": { "anyOf": [{ "const": "x", "title": "X" }] } })),
            Ok(())
        );
        for (bad, why) in [
            (json!({ "type": "string", "enum": ["x", "y\u{1b}[2J"] }), "can't be seen"),
            (json!({ "type": "string", "default": "\u{202e}" }), "can't be seen"),
            (json!({ "type": "string", "oneOf": [{ "const": "\u{200b}", "title": "X" }] }), "can't be seen"),
            (json!({ "type": "object", "properties": {} }), "no text, number"),
            (json!({}), "no text, number"),
            (json!({ "type": "string", "description": "x".repeat(SCHEMA_BYTES) }), "too large"),
        ] {
            let problem = form(bad.clone()).unwrap_err();
            assert!(problem.contains(why), "{bad}: {problem}");
        }
        let named = legible_form(&mut json!({ "properties": { "a\u{1b}": { "type": "string" } } }));
        assert!(named.unwrap_err().contains("names"));
        let field = |number: usize| (format!("f{number}"), json!({ "type": "string" }));
        let fields: Map<String, Value> = (0..=FORM_FIELDS).map(field).collect();
        assert_eq!(legible_form(&mut json!({ "properties": fields })), Err("it is too large"));
    }

    #[test]
    fn only_addresses_of_the_web_are_shown() {
        for url in ["https://example.org/a?b=c", "http://127.0.0.1:8080/"] {
            assert_eq!(web_address(url).unwrap().as_str(), url);
        }
        for (url, why) in [
            ("file:///etc/passwd", "must be http or https, not file"),
            ("javascript:alert(1)", "must be http or https, not javascript"),
            ("https://example.org@evil.test/", "names a user"),
            ("example.org", "is not one"),
            ("", "is not one"),
        ] {
            let problem = web_address(url).unwrap_err();
            assert!(problem.contains(why), "{url}: {problem}");
        }
        assert!(web_address(&format!("https://x/{}", "y".repeat(ADDRESS_BYTES))).is_err());
        assert_eq!(web_address("https://exämple.org/").unwrap().host_str(), Some("xn--exmple-cua.org"));
    }
}
