//! A model behind HTTP: implements the `Model` port over dialect × endpoint. Moves bytes; the dialect knows
//! what they mean.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use attache_core::ports::model::ModelInfo;
use attache_core::ports::store::ModelRef;
use attache_core::ports::{BoxStream, Model, ModelError, ModelRequest, StepEvent};
use futures_util::{Stream, StreamExt, stream};
use reqwest::Response;
use reqwest::header::{CONTENT_TYPE, HeaderMap, LOCATION, RETRY_AFTER};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::diagnose::correct_address;
use crate::dialect::{Decoder, StreamActivity};
use crate::endpoint::Endpoint;
use crate::failure::{HttpRefusal, ProviderError, shortened};
use crate::http::Http;
use crate::limits::{CONNECT, ERROR_BODY_BYTES};
use crate::sse::SseParser;
use crate::transport_error::{TransportError, TransportErrorKind};

/// One model of a provider.
#[derive(Clone, Debug)]
pub struct HttpModel {
    provider_id: String,
    endpoint: Arc<Endpoint>,
    http: Http,
    models: Arc<[ModelInfo]>,
    idle: Duration,
}

impl HttpModel {
    /// `idle` is how long the stream may stay silent; keep-alives count as silence.
    pub fn new(
        provider_id: impl Into<String>,
        endpoint: Endpoint,
        models: Vec<ModelInfo>,
        http: Http,
        idle: Duration,
    ) -> Self {
        Self {
            provider_id: provider_id.into(),
            endpoint: Arc::new(endpoint),
            http,
            models: models.into(),
            idle,
        }
    }

    async fn open(self, request: ModelRequest) -> Result<AnswerStream, ModelError> {
        let body = self.endpoint.dialect.body_of(&request, &self.endpoint.compatibility).await?;
        let decoder = self.endpoint.dialect.decoder(&request);
        let url = self.endpoint.base_url.join(&self.endpoint.dialect.path(&request.model().model_id));
        let sent = self
            .http
            .client(&self.endpoint.base_url)?
            .post(url)
            .headers(self.endpoint.headers())
            .header(CONTENT_TYPE, "application/json")
            .body(body)
            .send();
        let response = match tokio::time::timeout(self.idle, sent).await {
            Ok(sent) => sent.map_err(|error| self.unreachable(&error))?,
            Err(_) => return Err(self.silent()),
        };
        if !response.status().is_success() {
            return Err(self.refusal(response).await);
        }
        Ok(AnswerStream::new(self, response, decoder))
    }

    async fn refusal(&self, mut response: Response) -> ModelError {
        let (status, retry_after) = (response.status().as_u16(), retry_after(response.headers()));
        if let Some(location) =
            response.headers().get(LOCATION).filter(|_| response.status().is_redirection())
        {
            let location = self.endpoint.words(&String::from_utf8_lossy(location.as_bytes()));
            let (provider, url) = (&self.provider_id, response.url());
            return ModelError::Permanent(format!(
                "{provider} redirects {url} to {location}; attache follows no redirects: correct `base_url` of {provider}"
            ));
        }
        let mut body = Vec::new();
        while body.len() < ERROR_BODY_BYTES {
            match tokio::time::timeout(CONNECT, response.chunk()).await {
                Ok(Ok(Some(bytes))) => body.extend_from_slice(&bytes),
                Ok(Ok(None) | Err(_)) | Err(_) => break,
            }
        }
        body.truncate(ERROR_BODY_BYTES);
        let refusal = HttpRefusal { status, retry_after, body: &body };
        let correction = match refusal.may_lack_the_path() {
            true => correct_address(&self.http, &self.provider_id, &self.endpoint).await,
            false => None,
        };
        refusal.error(&self.endpoint, &self.provider_id, correction)
    }

    fn unreachable(&self, error: &reqwest::Error) -> ModelError {
        let TransportError { kind, reason } = TransportError::of(error);
        let (provider, url) = (&self.provider_id, self.endpoint.base_url.as_str());
        let about = format!("{provider} can't be reached at {url}: {}", self.endpoint.words(&reason));
        match kind {
            TransportErrorKind::Passing => ModelError::Transient {
                message: format!("{about}; `attache doctor` says what to do"),
                retry_after: None,
            },
            TransportErrorKind::Lasting | TransportErrorKind::Certificate => ModelError::Permanent(about),
        }
    }

    fn silent(&self) -> ModelError {
        ModelError::Transient {
            message: format!("{} was silent for {} s", self.provider_id, self.idle.as_secs_f32()),
            retry_after: None,
        }
    }
}

impl Model for HttpModel {
    fn available(&self) -> Arc<[ModelInfo]> {
        self.models.clone()
    }

    /// Accepts any name, so that users can use a model that no catalogue knows.
    fn describe(&self, model: &ModelRef) -> Option<ModelInfo> {
        if model.provider_id != self.provider_id {
            return None;
        }
        let listed = self.models.iter().find(|info| info.model.model_id == model.model_id).cloned();
        Some(listed.unwrap_or_else(|| ModelInfo::undescribed(model.without_variant())))
    }

    fn takes(&self, info: &ModelInfo, mime: &str) -> bool {
        info.takes(mime) && self.endpoint.dialect.takes(mime)
    }

    fn stream(
        &self,
        request: ModelRequest,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<StepEvent, ModelError>> {
        let opening = self.clone().open(request);
        let events = stream::once(opening).flat_map(|opened| match opened {
            Ok(answer) => stream::unfold(Box::new(answer), AnswerStream::next).left_stream(),
            Err(error) => stream::iter([Err(error)]).right_stream(),
        });
        Box::pin(events.take_until(cancel.cancelled_owned()))
    }
}

/// An answer that is still arriving.
struct AnswerStream {
    model: HttpModel,
    body: Pin<Box<dyn Stream<Item = Result<bytes::Bytes, reqwest::Error>> + Send>>,
    parser: SseParser,
    decoder: Box<dyn Decoder>,
    /// Filled by the decoder; `next` hands these out one by one.
    decoded: Vec<StepEvent>,
    ready: VecDeque<StepEvent>,
    silent_at: Instant,
    /// The first bytes, until the first event: we quote a server that sends no events.
    unheard: Vec<u8>,
    heard: bool,
    state: AnswerStreamState,
}

enum AnswerStreamState {
    Reading,
    Failed(ModelError),
    Over,
}

impl AnswerStream {
    fn new(model: HttpModel, response: Response, decoder: Box<dyn Decoder>) -> Self {
        let silent_at = Instant::now() + model.idle;
        Self {
            model,
            body: Box::pin(response.bytes_stream()),
            parser: SseParser::default(),
            decoder,
            decoded: Vec::new(),
            ready: VecDeque::new(),
            silent_at,
            unheard: Vec::new(),
            heard: false,
            state: AnswerStreamState::Reading,
        }
    }

    /// Boxed, because the stream moves it with every event.
    async fn next(mut self: Box<Self>) -> Option<(Result<StepEvent, ModelError>, Box<Self>)> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                if matches!(event, StepEvent::End { .. }) {
                    self.state = AnswerStreamState::Over;
                }
                return Some((Ok(event), self));
            }
            match std::mem::replace(&mut self.state, AnswerStreamState::Over) {
                AnswerStreamState::Reading => self.state = self.read().await,
                AnswerStreamState::Failed(error) => return Some((Err(error), self)),
                AnswerStreamState::Over => return None,
            }
        }
    }

    async fn read(&mut self) -> AnswerStreamState {
        let piece = match tokio::time::timeout_at(self.silent_at, self.body.next()).await {
            Ok(piece) => piece,
            Err(_) => return AnswerStreamState::Failed(self.model.silent()),
        };
        let state = match piece {
            Some(Ok(bytes)) => self.decode(&bytes),
            Some(Err(error)) => AnswerStreamState::Failed(self.cut(&error)),
            None => {
                self.decoder.body_ended(&mut self.decoded);
                self.garbage().map_or(AnswerStreamState::Over, AnswerStreamState::Failed)
            }
        };
        self.ready.extend(self.decoded.drain(..));
        state
    }

    fn decode(&mut self, bytes: &[u8]) -> AnswerStreamState {
        let room = ERROR_BODY_BYTES - self.unheard.len();
        if !self.heard {
            self.unheard.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
        if let Err(error) = self.parser.feed(bytes) {
            return AnswerStreamState::Failed(ModelError::Permanent(error.to_string()));
        }
        let silent_at = Instant::now() + self.model.idle;
        while let Some(event) = self.parser.next() {
            match self.decoder.event(&event, &mut self.decoded) {
                Ok(StreamActivity::Progress) => (self.silent_at, self.heard) = (silent_at, true),
                Ok(StreamActivity::KeepAlive) => {}
                Err(error) => return AnswerStreamState::Failed(self.model.endpoint.without_key(error)),
            }
        }
        AnswerStreamState::Reading
    }

    /// A body without any event is no answer of a model. Its own words tell what it is.
    fn garbage(&self) -> Option<ModelError> {
        if self.heard || self.unheard.trim_ascii().is_empty() {
            return None;
        }
        let said = ProviderError::in_body(&self.unheard);
        let words = self.model.endpoint.words(&said.message);
        Some(said.error(format!("{} did not answer with a stream: {words}", self.model.provider_id)))
    }

    fn cut(&self, error: &reqwest::Error) -> ModelError {
        ModelError::Transient {
            message: format!(
                "the stream of {} broke: {}",
                self.model.provider_id,
                shortened(&error.to_string())
            ),
            retry_after: None,
        }
    }
}

/// Seconds or a date, as HTTP has it; milliseconds where a vendor says them.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let milliseconds = text("retry-after-ms").and_then(|text| text.parse::<f64>().ok());
    if let Some(milliseconds) = milliseconds.filter(|number| number.is_finite() && *number >= 0.0) {
        return Some(Duration::from_secs_f64((milliseconds / 1000.0).min(86_400.0)));
    }
    let after = text(RETRY_AFTER.as_str())?;
    match after.parse::<f64>() {
        Ok(seconds) if seconds.is_finite() && seconds >= 0.0 => {
            Some(Duration::from_secs_f64(seconds.min(86_400.0)))
        }
        Ok(_) => None,
        Err(_) => httpdate::parse_http_date(after).ok()?.duration_since(SystemTime::now()).ok(),
    }
}
