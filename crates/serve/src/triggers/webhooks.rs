//! `POST /hooks/NAME`: begins a turn for whoever signs with the hook's secret. The signature takes the place of
//! the token: what is not signed learns nothing, not even which hooks there are.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use attache_http::{BearerToken, Requester, TokenScope, read_body, refusal};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode};
use axum::response::Response;
use axum::routing::any;
use ring::hmac;
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::hook_places::HookPlaces;
use super::runner::BegunRun;
use super::{PromptTemplate, Trigger, TriggerRunner};
use crate::acp::AcpConnections;
use crate::admission::{RemoteCaller, too_many};
use crate::limits::{HOOK_BODY_BYTES, HOOK_BODY_TIME, HOOK_RETRY, HOOK_RUNS, HOOK_SECRET_BYTES, SIGNATURES};
use crate::metrics::PromptWay;

const TIMESTAMP: HeaderName = HeaderName::from_static("x-attache-timestamp");
const SIGNATURE: HeaderName = HeaderName::from_static("x-attache-signature");

const SIGNATURE_PREFIX: &str = "sha256=";

/// A secret of one hook and of whoever calls it. Never printed by accident.
#[derive(Clone)]
pub struct HookKey(hmac::Key);

impl HookKey {
    /// `None`: too short to keep anybody out.
    pub fn new(secret: &str) -> Option<Self> {
        let secret = secret.trim_ascii().as_bytes();
        (secret.len() >= HOOK_SECRET_BYTES).then(|| Self(hmac::Key::new(hmac::HMAC_SHA256, secret)))
    }

    /// Of nobody.
    fn random() -> io::Result<Self> {
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, BearerToken::generate()?.as_str().as_bytes())))
    }
}

impl fmt::Debug for HookKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HookKey")
    }
}

/// A turn that begins with each request that is signed.
#[derive(Clone, Debug)]
pub struct Webhook {
    pub trigger: Trigger,
    pub key: HookKey,
    pub template: PromptTemplate,
    /// How far the time of a signature may be from ours.
    pub window: Duration,
}

#[derive(Debug)]
struct ServedWebhook {
    hook: Webhook,
    /// Turns at the same time.
    runs: Arc<Semaphore>,
}

/// A copy is the same.
#[derive(Clone, Debug)]
pub(crate) struct Webhooks(Arc<WebhookTable>);

#[derive(Debug)]
struct WebhookTable {
    hooks: HashMap<String, ServedWebhook>,
    /// In the place of a hook that there is not: it takes as long as one that there is.
    nobody: HookKey,
    runner: TriggerRunner,
    connections: AcpConnections,
    /// Bodies that are read at the same time: nobody has shown a signature before.
    bodies: HookPlaces,
    /// The same of hooks that there are not: they take no place of those that there are.
    bodies_for_nobody: HookPlaces,
    /// In seconds since 1970. Signatures of before could have been used before.
    began: i64,
    /// Signatures that were used, until when they would be good. Why a lock: requests come side by side.
    used: Mutex<HashMap<Vec<u8>, i64>>,
}

/// What a request says of itself before anything is believed.
struct Signed {
    timestamp: i64,
    /// As it was written, which is what was signed.
    timestamp_text: String,
    signature: Vec<u8>,
}

pub(crate) fn webhook_router(webhooks: Webhooks) -> Router {
    // Every method: which ones there are is no business of who can't sign.
    Router::new().route("/hooks/{name}", any(receive)).with_state(webhooks)
}

async fn receive(State(webhooks): State<Webhooks>, Path(name): Path<String>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let requester = Requester { name: format!("hooks/{name}").into(), scope: TokenScope::Talk };
    match webhooks.admit(&name, &head, body).await {
        Err(refused) => *refused,
        Ok((signature, body)) => {
            let answer = webhooks.begin(&name, &head, &requester, signature, &body).await;
            let mut response = answer.unwrap_or_else(|refused| *refused);
            response.extensions_mut().insert(requester);
            response
        }
    }
}

fn refuse(status: StatusCode, reason: &str) -> Box<Response> {
    Box::new(refusal(status, reason))
}

impl Webhooks {
    pub(crate) fn new(
        hooks: Vec<Webhook>,
        runner: TriggerRunner,
        connections: AcpConnections,
    ) -> io::Result<Self> {
        let served = |hook: Webhook| {
            (hook.trigger.name.clone(), ServedWebhook { hook, runs: Arc::new(Semaphore::new(HOOK_RUNS)) })
        };
        let began = runner.agent.clock.now_ms() / 1_000;
        Ok(Self(Arc::new(WebhookTable {
            hooks: hooks.into_iter().map(served).collect(),
            nobody: HookKey::random()?,
            runner,
            connections,
            bodies: HookPlaces::default(),
            bodies_for_nobody: HookPlaces::default(),
            began,
            used: Mutex::default(),
        })))
    }

    /// The body of a request that was signed for this hook, and not twice.
    async fn admit(&self, name: &str, head: &Parts, body: Body) -> Result<(Signed, Bytes), Box<Response>> {
        let unsigned = || {
            let reason = "this is not signed as a hook of this server: `X-Attache-Timestamp` with the seconds since 1970, and \
                          `X-Attache-Signature: sha256=HEX` with the HMAC-SHA256 of the timestamp, a dot and the body";
            refuse(StatusCode::UNAUTHORIZED, reason)
        };
        let signed = Signed::of(head).ok_or_else(unsigned)?;
        let hook = self.0.hooks.get(name).map(|served| &served.hook);
        let window = hook.map_or(DEFAULT_WINDOW, |hook| hook.window).as_secs();
        let now = self.0.runner.agent.clock.now_ms() / 1_000;
        if now.abs_diff(signed.timestamp) > window {
            return Err(unsigned());
        }
        let places = if hook.is_some() { &self.0.bodies } else { &self.0.bodies_for_nobody };
        let Some(_reading) = places.take(RemoteCaller::counted_address(&head.extensions)) else {
            return Err(refuse(StatusCode::SERVICE_UNAVAILABLE, "too many hooks come at the moment"));
        };
        let body = read_body(body, HOOK_BODY_BYTES, HOOK_BODY_TIME).await;
        let body = body.map_err(|error| refuse(error.status(), &error.to_string()))?;
        let text = [signed.timestamp_text.as_bytes(), b".", &body].concat();
        let key = hook.map_or(&self.0.nobody, |hook| &hook.key);
        // Constant in time.
        hmac::verify(&key.0, &text, &signed.signature).map_err(|_| unsigned())?;
        if signed.timestamp < self.0.began {
            let reason =
                "this was signed before the server began, and may have been received then: sign it anew";
            return Err(refuse(StatusCode::UNAUTHORIZED, reason));
        }
        Ok((signed, body))
    }

    /// What is refused here may be sent again as it is.
    async fn begin(
        &self,
        name: &str,
        head: &Parts,
        requester: &Requester,
        signed: Signed,
        body: &[u8],
    ) -> Result<Response, Box<Response>> {
        let Some(ServedWebhook { hook, runs }) = self.0.hooks.get(name) else {
            return Err(refuse(StatusCode::NOT_FOUND, "there is no such hook"));
        };
        if head.method != Method::POST {
            return Err(refuse(StatusCode::METHOD_NOT_ALLOWED, "hooks are posted"));
        }
        if self.0.connections.is_ending() {
            return Err(refuse(StatusCode::SERVICE_UNAVAILABLE, "the server is going down; come back later"));
        }
        let prompt = prompt(&hook.template, body)?;
        let caller = RemoteCaller::named(requester.clone(), &head.extensions);
        let admission = self.0.connections.admission();
        admission.spend_bytes(&caller, body.len());
        admission.check_prompt(&caller).map_err(|refused| Box::new(refused.response()))?;
        let Ok(place) = runs.clone().try_acquire_owned() else {
            let reason = format!("{HOOK_RUNS} turns of this hook go on; come back when one has ended");
            return Err(Box::new(too_many(&reason, HOOK_RETRY)));
        };
        let used = self.use_signature(signed, hook.window)?;
        match self.0.runner.begin(&hook.trigger).await {
            Ok(run) => {
                let answer = json!({ "sessionId": run.id() });
                self.run(name, run, prompt, place);
                let mut response = Response::new(Body::from(answer.to_string()));
                *response.status_mut() = StatusCode::ACCEPTED;
                response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
                Ok(response)
            }
            Err(reason) => {
                self.used().remove(&used);
                self.0.runner.host.warn(&format!("hook \"{name}\" could not begin: {reason}"));
                let reason = "the turn could not begin; the server has said why where it was started";
                Err(refuse(StatusCode::INTERNAL_SERVER_ERROR, reason))
            }
        }
    }

    fn run(&self, name: &str, run: BegunRun, prompt: String, place: OwnedSemaphorePermit) {
        let (runner, what) = (self.0.runner.clone(), format!("hook \"{name}\""));
        tokio::spawn(async move {
            runner.host.tell(&format!("{what}: session {} begins", run.id()));
            runner.run(&what, run, prompt, PromptWay::Webhook).await;
            drop(place);
        });
    }

    fn used(&self) -> MutexGuard<'_, HashMap<Vec<u8>, i64>> {
        self.0.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Once, as long as it would be good.
    fn use_signature(&self, signed: Signed, window: Duration) -> Result<Vec<u8>, Box<Response>> {
        let now = self.0.runner.agent.clock.now_ms() / 1_000;
        let mut used = self.used();
        if used.len() >= SIGNATURES {
            used.retain(|_, until| *until >= now);
        }
        if used.len() >= SIGNATURES {
            return Err(Box::new(too_many(
                "too many hooks came within the time that they are good",
                HOOK_RETRY,
            )));
        }
        let until = signed.timestamp.saturating_add_unsigned(window.as_secs());
        match used.insert(signed.signature.clone(), until) {
            None => Ok(signed.signature),
            Some(_) => Err(refuse(StatusCode::CONFLICT, "this was received already; sign each request anew")),
        }
    }
}

/// Of a hook that there is not.
const DEFAULT_WINDOW: Duration = Duration::from_secs(300);

fn prompt(template: &PromptTemplate, body: &[u8]) -> Result<String, Box<Response>> {
    let body = match template.has_fields() {
        false => Value::Null,
        true => serde_json::from_slice(body)
            .map_err(|error| refuse(StatusCode::BAD_REQUEST, &format!("the body is no JSON: {error}")))?,
    };
    template.fill(&body).map_err(|reason| refuse(StatusCode::BAD_REQUEST, &reason))
}

impl Signed {
    fn of(head: &Parts) -> Option<Self> {
        let only = |name: &HeaderName| {
            let mut values = head.headers.get_all(name).iter();
            let value = values.next()?.to_str().ok()?;
            values.next().is_none().then_some(value)
        };
        let timestamp_text = only(&TIMESTAMP)?;
        let timestamp = timestamp_text.parse().ok()?;
        let digits = only(&SIGNATURE)?.strip_prefix(SIGNATURE_PREFIX)?.as_bytes();
        if digits.len() != 64 {
            return None;
        }
        let digit = |digit: u8| char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let signature: Option<Vec<u8>> =
            digits.chunks_exact(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect();
        Some(Self { timestamp, timestamp_text: timestamp_text.to_owned(), signature: signature? })
    }
}
