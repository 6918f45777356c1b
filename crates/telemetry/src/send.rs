//! One batch over HTTP: tried again only where OTLP says so, never longer than the process lives.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use attache_core::ports::telemetry::{ContentPolicy, FinishedSpan};
use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use reqwest::{Client, Response, StatusCode};
use serde_json::Value;

use crate::collector::Collector;
use crate::exporter::ExportState;
use crate::limits::{ANSWER_BYTES, CONNECT, REQUEST, RETRY_BASE, RETRY_MAX, TRIES};

pub(crate) struct BatchSender {
    shared: Arc<ExportState>,
    /// Made when first needed: reading the machine's certificates takes longer than starting the program.
    client: Option<Client>,
}

/// What became of one request.
enum Reception {
    Taken,
    /// It took the rest.
    Partly {
        rejected: u64,
        why: String,
    },
    /// Worth another try, after this time if it says so.
    Later {
        wait: Option<Duration>,
        why: String,
    },
    Refused(String),
}

impl BatchSender {
    pub(crate) fn new(shared: Arc<ExportState>) -> Self {
        Self { shared, client: None }
    }

    /// Sends a batch, or counts it as lost.
    pub(crate) async fn deliver(&mut self, batch: Vec<FinishedSpan>) {
        let spans = batch.len() as u64;
        let Some(body) = self.encoded(batch).await else {
            return self.shared.lose(spans, "they could not be written");
        };
        let mut tries = 0;
        loop {
            tries += 1;
            let (wait, why) = match self.post(body.clone()).await {
                Reception::Taken => return,
                Reception::Partly { rejected, why } => return self.shared.lose(rejected.min(spans), &why),
                Reception::Refused(why) => return self.shared.lose(spans, &why),
                Reception::Later { wait, why } => (wait, why),
            };
            let wait = wait.unwrap_or_else(|| pause(tries));
            if tries >= TRIES || wait > RETRY_MAX || self.shared.ending.is_cancelled() {
                return self.shared.lose(spans, &why);
            }
            tracing::debug!(%why, ?wait, tries, "spans are sent again");
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.shared.ending.cancelled() => return self.shared.lose(spans, &why),
            }
        }
    }

    /// Redacting texts takes a while; turns must not wait for it.
    async fn encoded(&self, batch: Vec<FinishedSpan>) -> Option<Bytes> {
        let shared = self.shared.clone();
        match shared.encoder.content {
            ContentPolicy::Withheld => Some(shared.encoder.body(&batch).into()),
            ContentPolicy::Sent => {
                let written = tokio::task::spawn_blocking(move || shared.encoder.body(&batch)).await;
                written.ok().map(Bytes::from)
            }
        }
    }

    async fn post(&mut self, body: Bytes) -> Reception {
        let client = match self.client().await {
            Ok(client) => client,
            Err(why) => return Reception::Refused(why),
        };
        let Collector { url, headers } = &self.shared.destination;
        let request = client
            .post(url.clone())
            .headers(headers.clone())
            .header(CONTENT_TYPE, "application/json")
            .timeout(REQUEST)
            .body(body);
        match request.send().await {
            Ok(response) => answered(response).await,
            // A collector that hangs up or can't be reached may be starting.
            Err(error) => Reception::Later { wait: None, why: cause(&error) },
        }
    }

    async fn client(&mut self) -> Result<Client, String> {
        if let Some(client) = &self.client {
            return Ok(client.clone());
        }
        let destination = self.shared.destination.clone();
        let made = tokio::task::spawn_blocking(move || client(&destination)).await;
        let made = made.map_err(|error| error.to_string())?.map_err(|error| cause(&error))?;
        self.client = Some(made.clone());
        Ok(made)
    }
}

fn client(destination: &Collector) -> Result<Client, reqwest::Error> {
    // Another room may have chosen one already; then that one is used.
    drop(rustls::crypto::ring::default_provider().install_default());
    let builder = || {
        let builder = Client::builder()
            .user_agent(concat!("attache/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT)
            // Where it is not configured, nothing is sent.
            .redirect(reqwest::redirect::Policy::none());
        if destination.is_loopback() { builder.no_proxy() } else { builder }
    };
    match (destination.is_plain(), destination.is_loopback()) {
        (true, true) => builder().tls_certs_only([]).build(),
        // A proxy may speak TLS itself; a machine without certificates may have none.
        (true, false) => builder().build().or_else(|_| builder().tls_certs_only([]).build()),
        (false, _) => builder().build(),
    }
}

async fn answered(response: Response) -> Reception {
    let status = response.status();
    if status.is_success() {
        return match partly(response).await {
            Some((rejected, why)) => Reception::Partly { rejected, why },
            None => Reception::Taken,
        };
    }
    let why = format!("the collector answered {status}");
    match status {
        StatusCode::TOO_MANY_REQUESTS
        | StatusCode::BAD_GATEWAY
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::GATEWAY_TIMEOUT => Reception::Later { wait: retry_after(response.headers()), why },
        _ => Reception::Refused(why),
    }
}

/// Spans that a collector took no notice of although it took the request.
async fn partly(mut response: Response) -> Option<(u64, String)> {
    let mut body = Vec::new();
    while body.len() < ANSWER_BYTES {
        match response.chunk().await {
            Ok(Some(piece)) => body.extend_from_slice(&piece),
            Ok(None) | Err(_) => break,
        }
    }
    let answer: Value = serde_json::from_slice(&body).ok()?;
    let partial = answer.get("partialSuccess")?;
    let rejected = partial.get("rejectedSpans")?;
    // A 64-bit number: most write it as a text.
    let rejected =
        rejected.as_u64().or_else(|| rejected.as_str()?.parse().ok()).filter(|spans| *spans > 0)?;
    let words = partial.get("errorMessage").and_then(Value::as_str).unwrap_or("it does not say why");
    let words: String = words.chars().take(200).collect();
    Some((rejected, format!("the collector rejected them: {words}")))
}

/// Seconds or a date.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(SystemTime::now()).unwrap_or_default())
}

/// Twice as long each time, and a random part more, so that many processes do not come back together.
fn pause(tries: u32) -> Duration {
    let pause = RETRY_BASE * 2u32.saturating_pow(tries - 1);
    let share = (RandomState::new().build_hasher().finish() % 1_000) as f64 / 1_000.0;
    (pause + (pause / 2).mul_f64(share)).min(RETRY_MAX)
}

/// The innermost reason; the address is reported beside it.
fn cause(error: &reqwest::Error) -> String {
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    if error.is_timeout() { "it took too long".to_owned() } else { innermost.to_string() }
}
