//! What a server is asked beside its tools: prompts, resources, what could be typed. Every answer has a
//! dead-line.

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{CallFailure, ServerClient, said};
use crate::handler::Caller;
use crate::limits::{LIST_PAGES, LISTED_RESOURCES};
use crate::prompts::{self, ListedPrompt};
use crate::resources::{self, ResourceWish};
use crate::subscriptions::ReadResources;
use attache_core::ports::mcp::{BegunArgument, WrittenPrompt};
use attache_rpc::RequestError;

impl ServerClient {
    /// All pages of a list, for as long as `take` gives a cursor.
    pub(super) async fn pages(
        &self,
        method: &str,
        mut take: impl FnMut(&RawValue) -> Result<Option<String>, String>,
    ) -> Result<(), RequestFailure> {
        let mut cursor = None;
        for _ in 0..LIST_PAGES {
            let params = match &cursor {
                Some(cursor) => json!({ "cursor": cursor }),
                None => json!({}),
            };
            let page = self.ask(method, &params, Some(self.deadlines.list)).await;
            let page = page.map_err(RequestFailure::Request)?;
            let next: Option<String> = take(&page).map_err(RequestFailure::Strange)?;
            if next.is_none() || next == cursor {
                return Ok(());
            }
            cursor = next;
        }
        Ok(())
    }

    /// None where it has none, or where it can't say: its tools are there all the same.
    pub(crate) async fn list_prompts(&self) -> Vec<ListedPrompt> {
        let mut listed = Vec::new();
        if self.has.prompts {
            let method = "prompts/list";
            if let Err(failure) = self.pages(method, |page| prompts::add(&mut listed, page)).await {
                let why = failure.said(method, self);
                tracing::warn!(
                    server = self.events.shown_name(),
                    why,
                    "the prompts of an MCP server are not known"
                );
            }
        }
        listed
    }

    /// A prompt with its arguments put in.
    pub(crate) async fn write_out(
        &self,
        name: &str,
        arguments: Vec<(String, String)>,
    ) -> Result<WrittenPrompt, String> {
        let arguments: Value =
            arguments.into_iter().map(|(name, value)| (name, Value::from(value))).collect();
        let (method, params) = ("prompts/get", json!({ "name": name, "arguments": arguments }));
        // No call of a session: questions for a user are declined.
        match self.ask_to_the_end(method, params, self.deadlines.call, None).await {
            Ok(answer) => prompts::written(&answer),
            Err(CallFailure::Refused(why)) => Err(why),
            Err(CallFailure::Lost) => Err(format!("it ended before it answered {method}")),
        }
    }

    /// Completions for an argument of a prompt.
    pub(crate) async fn suggestions(
        &self,
        prompt: &str,
        given: Vec<(String, String)>,
        argument: BegunArgument<'_>,
    ) -> Vec<String> {
        let given: Value = given.into_iter().map(|(name, value)| (name, Value::from(value))).collect();
        let params = json!({
            "ref": { "type": "ref/prompt", "name": prompt },
            "argument": { "name": argument.name, "value": argument.typed },
            "context": { "arguments": given },
        });
        self.completed(&params).await.unwrap_or_default()
    }

    async fn completed(&self, params: &Value) -> Result<Vec<String>, CallFailure> {
        if !self.has.completions {
            return Ok(Vec::new());
        }
        let method = "completion/complete";
        let answer = self.ask(method, params, Some(self.deadlines.list)).await;
        let answer = answer.map_err(|error| self.failure(&error, method))?;
        Ok(resources::suggested(&answer))
    }

    /// What its resources are, what one of them holds, or which ones a template means, as the result of a
    /// call.
    pub(crate) async fn resources(
        &self,
        wish: ResourceWish<'_>,
        read: &ReadResources,
        caller: &Caller,
    ) -> Result<Box<RawValue>, CallFailure> {
        match wish {
            ResourceWish::List => {
                let text = self.listed_resources().await?;
                resources::as_text(&text).ok_or(CallFailure::Lost)
            }
            ResourceWish::Complete { template, argument, value } => {
                let params = json!({
                    "ref": { "type": "ref/resource", "uri": template },
                    "argument": { "name": argument, "value": value },
                });
                let values = self.completed(&params).await?;
                resources::as_text(&resources::choices(argument, &values)).ok_or(CallFailure::Lost)
            }
            ResourceWish::Read(uri) => {
                read.reading(uri, self.events.subscriptions());
                self.watch(uri);
                let (method, params) = ("resources/read", json!({ "uri": uri }));
                let answer = self.ask_to_the_end(method, params, self.deadlines.call, Some(caller)).await?;
                resources::as_result(&answer).map_err(CallFailure::Refused)
            }
        }
    }

    async fn listed_resources(&self) -> Result<String, CallFailure> {
        let mut text = String::new();
        for method in ["resources/list", "resources/templates/list"] {
            let mut count = 0;
            let listing = self.pages(method, |page| {
                let (lines, next) = resources::listed(page, LISTED_RESOURCES - count);
                count += lines.len();
                text.extend(lines);
                if next.is_some() && count >= LISTED_RESOURCES {
                    text.push_str(resources::MORE);
                    return Ok(None);
                }
                Ok(next)
            });
            match listing.await {
                Ok(()) => {}
                Err(RequestFailure::Request(error)) if method == "resources/list" => {
                    return Err(self.failure(&error, method));
                }
                // A server with resources need not have templates.
                Err(_) => {}
            }
        }
        Ok(text)
    }

    /// Subscribes to changes, if the server offers that. Returns at once.
    fn watch(&self, uri: &str) {
        if !self.has.subscriptions || !self.events.subscriptions().begin(uri) {
            return;
        }
        if self.meta.is_some() {
            self.events.watched_others.notify_one();
        } else {
            let (client, uri) = (self.clone(), uri.to_owned());
            tokio::spawn(async move { client.subscribe(&uri).await });
        }
    }

    async fn subscribe(&self, uri: &str) {
        let params = json!({ "uri": uri });
        let asked = self.peer.request("resources/subscribe", &params, Some(self.deadlines.list)).await;
        if let Err(error) = asked {
            tracing::debug!(%error, "an MCP server does not tell of changes");
            self.events.subscriptions().forget(uri);
        }
    }

    /// A new conversation knows nothing of what an earlier one asked for.
    pub(crate) fn watch_again(&self) {
        if self.has.subscriptions && self.meta.is_none() {
            let client = self.clone();
            tokio::spawn(async move {
                for uri in client.events.subscriptions().all() {
                    client.subscribe(&uri).await;
                }
            });
        }
    }

    /// It may ask for them again.
    pub(crate) async fn roots_changed(&self) {
        if self.meta.is_some() {
            // It asks for them when it needs them.
            return;
        }
        if let Err(error) = self.peer.notify("notifications/roots/list_changed", &json!({})).await {
            tracing::debug!(%error, "an MCP server was not told of other roots");
        }
    }

    fn failure(&self, error: &RequestError, method: &str) -> CallFailure {
        match error {
            RequestError::Closed => CallFailure::Lost,
            error => CallFailure::Refused(said(error, method, self.deadlines.list)),
        }
    }
}

/// Why a list is not known.
#[derive(Debug)]
pub(super) enum RequestFailure {
    Request(RequestError),
    Strange(String),
}

impl RequestFailure {
    pub(super) fn said(&self, method: &str, client: &ServerClient) -> String {
        match self {
            Self::Request(error) => said(error, method, client.deadlines.list),
            Self::Strange(why) => why.clone(),
        }
    }
}
