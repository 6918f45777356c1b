//! Counts what a server does, and tells it as Prometheus reads it. The names of no session, no path and no
//! caller are in it, so that it is as long after a year as on the first day.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use attache_core::events::{EventKind, FinishedBy, HubEvent};
use attache_core::ids::SessionId;
use attache_core::ports::model::Usage;
use attache_http::{FinishedRequest, RequestObserver};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use crate::limits::SPENDING_BEHIND;

/// What Prometheus wants to read the text as.
pub(crate) const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Statuses of HTTP are below that.
const STATUSES: usize = 600;

/// A dollar in what costs are counted in: whole numbers add up without loss.
const NANO: f64 = 1_000_000_000.0;

/// How a prompt came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PromptWay {
    Acp,
    Chat,
    Schedule,
    Webhook,
}

impl PromptWay {
    const EACH: [Self; 4] = [Self::Acp, Self::Chat, Self::Schedule, Self::Webhook];

    fn as_str(self) -> &'static str {
        match self {
            Self::Acp => "acp",
            Self::Chat => "chat",
            Self::Schedule => "schedule",
            Self::Webhook => "webhook",
        }
    }
}

/// What a call of a model cost; `None`: nobody knows.
#[derive(Clone, Debug)]
pub(crate) struct ModelSpending {
    pub(crate) session: SessionId,
    pub(crate) dollars: Option<f64>,
}

/// A copy is the same.
#[derive(Clone, Debug)]
pub struct ServerMetrics(Arc<Counters>);

#[derive(Debug)]
struct Counters {
    /// Of each call, for who watches what something costs.
    spending: broadcast::Sender<ModelSpending>,
    responses: Vec<AtomicU64>,
    open_requests: AtomicU64,
    response_bytes: AtomicU64,
    received_bytes: AtomicU64,
    socket_sent_bytes: AtomicU64,
    connections: AtomicU64,
    prompts: [AtomicU64; PromptWay::EACH.len()],
    turns_started: AtomicU64,
    turns_finished: AtomicU64,
    turns_aborted: AtomicU64,
    turns_failed: AtomicU64,
    approvals: AtomicU64,
    events_missed: AtomicU64,
    model_calls: AtomicU64,
    model_failures: AtomicU64,
    tokens: [AtomicU64; TOKEN_KINDS.len()],
    nano_dollars: AtomicU64,
}

const TOKEN_KINDS: [&str; 5] = ["input", "output", "reasoning", "cache_read", "cache_write"];

/// What is counted elsewhere.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gauges {
    pub(crate) connections: usize,
    pub(crate) open_sessions: usize,
}

impl Default for ServerMetrics {
    fn default() -> Self {
        let (spending, _) = broadcast::channel(SPENDING_BEHIND);
        Self(Arc::new(Counters {
            spending,
            responses: (0..STATUSES).map(|_| AtomicU64::new(0)).collect(),
            open_requests: AtomicU64::default(),
            response_bytes: AtomicU64::default(),
            received_bytes: AtomicU64::default(),
            socket_sent_bytes: AtomicU64::default(),
            connections: AtomicU64::default(),
            prompts: Default::default(),
            turns_started: AtomicU64::default(),
            turns_finished: AtomicU64::default(),
            turns_aborted: AtomicU64::default(),
            turns_failed: AtomicU64::default(),
            approvals: AtomicU64::default(),
            events_missed: AtomicU64::default(),
            model_calls: AtomicU64::default(),
            model_failures: AtomicU64::default(),
            tokens: Default::default(),
            nano_dollars: AtomicU64::default(),
        }))
    }
}

impl ServerMetrics {
    pub(crate) fn received(&self, bytes: usize) {
        self.0.received_bytes.fetch_add(bytes as u64, Relaxed);
    }

    pub(crate) fn sent_over_socket(&self, bytes: usize) {
        self.0.socket_sent_bytes.fetch_add(bytes as u64, Relaxed);
    }

    pub(crate) fn connected(&self) {
        self.0.connections.fetch_add(1, Relaxed);
    }

    pub(crate) fn prompted(&self, way: PromptWay) {
        self.0.prompts[way as usize].fetch_add(1, Relaxed);
    }

    /// A call of a model has ended; of one without a price the cost is not known.
    pub fn model_called(&self, session: &SessionId, usage: &Usage, dollars: Option<f64>) {
        // Mostly, nobody watches.
        drop(self.0.spending.send(ModelSpending { session: session.clone(), dollars }));
        self.0.model_calls.fetch_add(1, Relaxed);
        let used = [usage.input, usage.output, usage.reasoning, usage.cache_read, usage.cache_write];
        for (counter, tokens) in self.0.tokens.iter().zip(used) {
            counter.fetch_add(tokens, Relaxed);
        }
        if let Some(dollars) = dollars.filter(|dollars| dollars.is_finite() && *dollars > 0.0) {
            self.0.nano_dollars.fetch_add((dollars * NANO).round() as u64, Relaxed);
        }
    }

    /// What each call costs from now on.
    pub(crate) fn spending(&self) -> broadcast::Receiver<ModelSpending> {
        self.0.spending.subscribe()
    }

    pub fn model_failed(&self) {
        self.0.model_failures.fetch_add(1, Relaxed);
    }

    /// For as long as there is a hub.
    pub(crate) async fn count(self, mut events: broadcast::Receiver<HubEvent>) {
        loop {
            match events.recv().await {
                Ok(event) => self.happened(&event.kind),
                Err(RecvError::Lagged(missed)) => {
                    self.0.events_missed.fetch_add(missed, Relaxed);
                }
                Err(RecvError::Closed) => return,
            }
        }
    }

    fn happened(&self, event: &EventKind) {
        let counter = match event {
            EventKind::TurnStarted { .. } => &self.0.turns_started,
            EventKind::TurnFinished { reason: FinishedBy::Finish, .. } => &self.0.turns_finished,
            EventKind::TurnFinished { reason: FinishedBy::Abort, .. } => &self.0.turns_aborted,
            EventKind::TurnFinished { reason: FinishedBy::Error, .. } => &self.0.turns_failed,
            EventKind::ApprovalRequested { .. } => &self.0.approvals,
            EventKind::Status(_) => return,
        };
        counter.fetch_add(1, Relaxed);
    }

    pub(crate) fn text(&self, gauges: Gauges) -> String {
        let counters = &*self.0;
        let mut page = MetricsPage(String::with_capacity(4 * 1024));
        let version = format!("version=\"{}\"", env!("CARGO_PKG_VERSION"));
        page.one("build_info", "gauge", "Always 1.", &[(version, 1)]);
        let statuses = counters.responses.iter().enumerate();
        let statuses = statuses.map(|(status, count)| (format!("code=\"{status}\""), count.load(Relaxed)));
        let statuses: Vec<_> = statuses.filter(|(_, count)| *count > 0).collect();
        page.one("http_responses_total", "counter", "Requests whose answer is over, by status.", &statuses);
        page.plain("http_requests_open", "gauge", "Requests whose answer goes on.", &counters.open_requests);
        let help = "Bytes of bodies that were sent.";
        page.plain("http_sent_bytes_total", "counter", help, &counters.response_bytes);
        let help = "Bytes of messages that were sent over WebSockets.";
        page.plain("websocket_sent_bytes_total", "counter", help, &counters.socket_sent_bytes);
        let help = "Bytes of bodies and messages that clients sent.";
        page.plain("received_bytes_total", "counter", help, &counters.received_bytes);
        page.one(
            "connections_open",
            "gauge",
            "Connections of ACP.",
            &[(String::new(), gauges.connections as u64)],
        );
        page.plain("connections_total", "counter", "Connections of ACP that began.", &counters.connections);
        let open = [(String::new(), gauges.open_sessions as u64)];
        page.one("sessions_open", "gauge", "Sessions that are open.", &open);
        let prompts = PromptWay::EACH.iter().zip(&counters.prompts);
        let prompts: Vec<_> =
            prompts.map(|(way, count)| (format!("way=\"{}\"", way.as_str()), count.load(Relaxed))).collect();
        page.one("prompts_total", "counter", "Prompts that were taken.", &prompts);
        page.plain("turns_started_total", "counter", "Turns that began.", &counters.turns_started);
        let ends = [
            ("end=\"finish\"", &counters.turns_finished),
            ("end=\"abort\"", &counters.turns_aborted),
            ("end=\"error\"", &counters.turns_failed),
        ];
        let ends = ends.map(|(label, count)| (label.to_owned(), count.load(Relaxed)));
        page.one("turns_total", "counter", "Turns that ended, by how.", &ends);
        page.plain("approvals_requested_total", "counter", "Calls that asked a person.", &counters.approvals);
        page.plain(
            "model_calls_total",
            "counter",
            "Calls of models that were answered.",
            &counters.model_calls,
        );
        let help = "Calls of models that failed.";
        page.plain("model_failures_total", "counter", help, &counters.model_failures);
        let tokens = TOKEN_KINDS.iter().zip(&counters.tokens);
        let tokens: Vec<_> =
            tokens.map(|(kind, count)| (format!("kind=\"{kind}\""), count.load(Relaxed))).collect();
        page.one("model_tokens_total", "counter", "Tokens that models counted.", &tokens);
        let dollars = counters.nano_dollars.load(Relaxed) as f64 / NANO;
        page.head("model_cost_dollars_total", "counter", "What models with a known price cost.");
        page.line("model_cost_dollars_total", "", &dollars.to_string());
        let help = "Events of sessions that were not counted because there were too many.";
        page.plain("events_missed_total", "counter", help, &counters.events_missed);
        page.0
    }
}

impl RequestObserver for ServerMetrics {
    fn begun(&self) {
        self.0.open_requests.fetch_add(1, Relaxed);
    }

    fn finished(&self, request: &FinishedRequest) {
        self.0.open_requests.fetch_sub(1, Relaxed);
        self.0.response_bytes.fetch_add(request.bytes, Relaxed);
        if let Some(counter) = self.0.responses.get(usize::from(request.status.as_u16())) {
            counter.fetch_add(1, Relaxed);
        }
    }
}

struct MetricsPage(String);

impl MetricsPage {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        self.0.push_str(&format!("# HELP attache_{name} {help}\n# TYPE attache_{name} {kind}\n"));
    }

    fn line(&mut self, name: &str, label: &str, value: &str) {
        let label = if label.is_empty() { String::new() } else { format!("{{{label}}}") };
        self.0.push_str(&format!("attache_{name}{label} {value}\n"));
    }

    fn one(&mut self, name: &str, kind: &str, help: &str, values: &[(String, u64)]) {
        self.head(name, kind, help);
        for (label, value) in values {
            self.line(name, label, &value.to_string());
        }
    }

    fn plain(&mut self, name: &str, kind: &str, help: &str, value: &AtomicU64) {
        self.one(name, kind, help, &[(String::new(), value.load(Relaxed))]);
    }
}
