//! What a server wants of the user in the middle of a call: a form to fill, or an address to visit. Both say
//! who asks; no address is opened here, and only web addresses are shown.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use attache_core::ids::CallId;
use attache_core::legible::{legible_line, visible_block};
use attache_core::ports::Delegate;
use attache_core::ports::delegate::{AddressOffer, Form, FormAnswer, Offers};
use attache_rpc::{ErrorObject, Responder};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::handler::{Caller, ServerEvents};
use crate::limits::{ADDRESS_BYTES, OPEN_ADDRESSES, QUESTION_CHARACTERS};
use crate::listing::shortened;

/// The code of an error that says: not before the user has been somewhere.
pub(crate) const ADDRESS_NEEDED: i32 = -32042;

/// What a server wants to know of a user.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Elicitation {
    #[serde(default)]
    mode: Option<String>,
    #[serde(default)]
    message: String,
    #[serde(default)]
    requested_schema: Value,
    #[serde(default)]
    url: String,
    #[serde(default)]
    elicitation_id: String,
}

/// Who is asked, and until when.
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
        let question: Option<Elicitation> = params.and_then(|params| serde_json::from_str(params.get()).ok());
        let Some(question) = question else { return responder.ok(&json!({ "action": "decline" })) };
        let events = self.clone();
        let asked = |offers: fn(&Offers) -> bool| {
            let (caller, over) = self.last_caller(|caller| {
                caller.client.as_ref().is_some_and(|client| offers(&client.offers()))
            })?;
            Some(AskedUser { client: caller.client?, call_id: caller.call_id, over })
        };
        match question.mode.as_deref() {
            None | Some("form") => match asked(|offers| offers.forms) {
                Some(asked) => drop(tokio::spawn(async move {
                    let answer = events.fill(&question, asked).await;
                    responder.ok(&answer);
                })),
                None => responder.ok(&json!({ "action": "decline" })),
            },
            Some("url") => match (web_address(&question.url), asked(|offers| offers.addresses)) {
                (Err(problem), _) => responder.error(ErrorObject::invalid_params(problem)),
                (Ok(_), None) => responder.ok(&json!({ "action": "decline" })),
                (Ok(address), Some(asked)) => drop(tokio::spawn(async move {
                    let answer = events.offer(&question, &address, asked).await;
                    responder.ok(&json!({ "action": action(&answer) }));
                })),
            },
            Some(_) => responder.error(ErrorObject::invalid_params("mode must be form or url")),
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
        let _asking = self.asking();
        let answer = tokio::select! {
            answer = client.fill(form) => answer.unwrap_or_else(|error| {
                tracing::debug!(%error, "a question of an MCP server was not answered");
                FormAnswer::Declined
            }),
            () = over.cancelled() => FormAnswer::Dismissed,
        };
        match answer {
            FormAnswer::Filled(content) => json!({ "action": "accept", "content": content }),
            FormAnswer::Declined | FormAnswer::Dismissed => json!({ "action": action(&answer) }),
        }
    }

    /// Shows the user where they are wanted. What they do there is between them and that place.
    async fn offer(&self, question: &Elicitation, address: &Url, asked: AskedUser) -> FormAnswer {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let AskedUser { client, call_id, over } = asked;
        let id = format!("mcp-{}", LAST.fetch_add(1, Ordering::Relaxed) + 1);
        let message = format!(
            "The MCP server {} asks you to visit {}: {}",
            self.shown_name(),
            legible_line(&address.origin().ascii_serialization()),
            shortened(&question.message, QUESTION_CHARACTERS)
        );
        let url = address.as_str().to_owned();
        let offer = AddressOffer { call_id, id: id.clone(), message, url };
        let _asking = self.asking();
        let answer = tokio::select! {
            answer = client.offer_address(offer) => answer.unwrap_or_else(|error| {
                tracing::debug!(%error, "an address of an MCP server was not offered");
                FormAnswer::Declined
            }),
            () = over.cancelled() => FormAnswer::Dismissed,
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
        struct Done {
            elicitation_id: String,
        }
        let Some(Ok(done)) = params.map(|params| serde_json::from_str::<Done>(params.get())) else { return };
        let mut open = self.addresses();
        // What it never offered, it can't end.
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

fn action(answer: &FormAnswer) -> &'static str {
    match answer {
        FormAnswer::Filled(_) => "accept",
        FormAnswer::Declined => "decline",
        FormAnswer::Dismissed => "cancel",
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
    use super::*;

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
