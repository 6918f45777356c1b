//! One answer of an ACP agent: its updates as chunks, its questions as ours, its end. Starts nothing.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use agent_client_protocol_schema::MaybeUndefined;
use agent_client_protocol_schema::v1::{
    ContentBlock, PermissionOptionKind, PromptResponse, SessionUpdate, StopReason, UsageUpdate,
};
use attache_acp_client::{AgentEnd, ClientFailure, PermissionQuestion, PromptTicket};
use attache_core::chunk::{Chunk, FinishReason, Rest};
use attache_core::ids::CallId;
use attache_core::metadata::OWN_KEY;
use attache_core::ports::BoxFuture;
use attache_core::ports::client::CallArguments;
use attache_core::ports::model::Usage;
use tokio::sync::mpsc;

use super::calls::TooManyCalls;
use super::child::ChildNews;
use super::failed;
use super::session::{AgentSession, BegunWith, Ready};
use super::translate::Translator;
use crate::ForeignError;
use crate::agent::{
    Decided, DecidedRound, ForeignRun, ForeignUsage, RunAsk, RunAskAbout, RunDecision, RunEvent,
};
use crate::limits::{AGENT_CANCEL, WAITING_NEWS};

/// A prompt that the agent answers.
#[derive(Debug)]
pub(super) struct AcpRun {
    session: Arc<AgentSession>,
    ready: Ready,
    ticket: PromptTicket,
    news: mpsc::Receiver<ChildNews>,
    translator: Translator,
    /// What is still to be said.
    events: VecDeque<RunEvent>,
    /// What is said behind them.
    failure: Option<ForeignError>,
    /// By the calls that they are about.
    questions: HashMap<CallId, PermissionQuestion>,
    stage: RunStage,
    usage: Option<UsageUpdate>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RunStage {
    Answers,
    /// The prompt is answered, or the agent gone.
    Over,
}

impl AcpRun {
    /// Sends the prompt.
    pub(super) fn begin(session: Arc<AgentSession>, ready: Ready, prompt: Vec<ContentBlock>) -> Self {
        let (turn, news) = mpsc::channel(WAITING_NEWS);
        ready.child.link.set_turn(Some(turn));
        let ticket = ready.child.client.start_prompt(ready.theirs.clone(), prompt);
        let kept = RunEvent::Keep(session.kept_value(&ready));
        Self {
            session,
            ready,
            ticket,
            news,
            translator: Translator::default(),
            events: VecDeque::from([kept]),
            failure: None,
            questions: HashMap::new(),
            stage: RunStage::Answers,
            usage: None,
        }
    }

    fn take(&mut self, news: ChildNews) {
        match news {
            ChildNews::Update(update) => self.update(*update),
            ChildNews::Permission(question) => self.asked(*question),
            ChildNews::PromptEnded { ticket, answer } if ticket == self.ticket => self.answered(answer),
            // Of a turn that was given up.
            ChildNews::PromptEnded { .. } => {}
            ChildNews::Gone(end) => self.gone(end),
        }
    }

    fn update(&mut self, update: SessionUpdate) {
        match update {
            SessionUpdate::SessionInfoUpdate(info) => {
                // Of one that began with a hand-over, it would be the words of the hand-over.
                if self.ready.begun_with == BegunWith::Prompt
                    && let MaybeUndefined::Value(title) = info.title
                    && !title.trim().is_empty()
                {
                    self.events.push_back(RunEvent::Title(super::present::title(&title)));
                }
            }
            SessionUpdate::UsageUpdate(usage) => self.used(usage),
            update => {
                let mut chunks = Vec::new();
                let taken =
                    self.translator.update(update, &self.ready.child.link.services.terminals, &mut chunks);
                self.say(chunks);
                self.check(taken);
            }
        }
    }

    /// Its context and what it cost so far; the same again says nothing.
    fn used(&mut self, usage: UsageUpdate) {
        if usage.used == 0 || self.usage.as_ref() == Some(&usage) {
            return;
        }
        let dollars = |usage: &UsageUpdate| {
            let cost = usage.cost.as_ref().filter(|cost| cost.currency.eq_ignore_ascii_case("usd"))?;
            Some(cost.amount)
        };
        // What it says is the sum of its session: ours adds up what came since it was said last.
        let before = self.session.cost_before(dollars(&usage));
        let told = ForeignUsage {
            tokens: step_tokens(&usage),
            cost_usd: dollars(&usage).zip(before).map(|(now, before)| (now - before).max(0.0)),
            context_used: Some(usage.used),
            context_size: (usage.size > 0).then_some(usage.size),
        };
        self.usage = Some(usage);
        self.events.push_back(RunEvent::Usage(told));
    }

    fn asked(&mut self, question: PermissionQuestion) {
        let mut chunks = Vec::new();
        let call = question.request.tool_call.clone();
        let asked = self.translator.asked(call, &self.ready.child.link.services.terminals, &mut chunks);
        self.say(chunks);
        match asked {
            Ok(Some(call)) => {
                self.questions.insert(call.call_id.clone(), question);
                let description = call.reason.clone();
                let about = match call.is_command() {
                    true => RunAskAbout::Command { description },
                    // What is answered is one of its options: no place for other arguments.
                    false => RunAskAbout::Permission { description, arguments: CallArguments::Fixed },
                };
                self.events.push_back(RunEvent::Ask(Box::new(RunAsk {
                    call_id: call.call_id,
                    approval_id: None,
                    tool: call.tool_name,
                    presentation: Some(call.shown),
                    about,
                    rest: Rest::none(),
                })));
                self.events.push_back(RunEvent::Waits);
            }
            Ok(None) => question.cancel(),
            Err(error) => self.check(Err(error)),
        }
    }

    fn answered(&mut self, answer: Result<Box<PromptResponse>, ClientFailure>) {
        self.stage = RunStage::Over;
        let response = match answer {
            Ok(response) => response,
            Err(failure) => {
                let methods = self.ready.child.client.auth_methods();
                self.failure = Some(failed(self.session.settings(), &failure, methods));
                return;
            }
        };
        let mut chunks = Vec::new();
        self.translator.close(&mut chunks);
        self.say(chunks);
        if let Some(usage) = &response.usage {
            let tokens = Usage {
                input: usage.input_tokens,
                output: usage.output_tokens,
                reasoning: usage.thought_tokens.unwrap_or_default(),
                cache_read: usage.cached_read_tokens.unwrap_or_default(),
                cache_write: usage.cached_write_tokens.unwrap_or_default(),
            };
            let context = self.usage.as_ref();
            self.events.push_back(RunEvent::Usage(ForeignUsage {
                tokens,
                cost_usd: None,
                context_used: context.map(|context| context.used),
                context_size: context.map(|context| context.size).filter(|size| *size > 0),
            }));
        }
        match finish_reason(response.stop_reason) {
            Some(reason) => self.events.push_back(RunEvent::End(reason)),
            None => {
                let name = &self.session.settings().name;
                self.failure = Some(ForeignError::new(format!("the agent `{name}` cancelled its own turn")));
            }
        }
    }

    fn gone(&mut self, end: AgentEnd) {
        if self.stage == RunStage::Answers {
            self.stage = RunStage::Over;
            self.failure = Some(failed(self.session.settings(), &ClientFailure::Ended(end), &[]));
        }
    }

    fn say(&mut self, chunks: Vec<Chunk>) {
        self.events.extend(chunks.into_iter().map(RunEvent::Chunk));
    }

    fn check(&mut self, taken: Result<(), TooManyCalls>) {
        if let Err(error) = taken {
            self.failure = Some(ForeignError::new(error.to_string()));
        }
    }

    fn decided(&mut self, decided: Decided) -> Result<(), ForeignError> {
        let question = self.questions.remove(&decided.call_id);
        let Some(question) = question else { return Ok(()) };
        let option = |kinds: [PermissionOptionKind; 2]| {
            let options = &question.request.options;
            let found = kinds.iter().find_map(|kind| options.iter().find(|option| option.kind == *kind));
            found.map(|option| option.option_id.clone())
        };
        match decided.decision {
            // What "always" means is kept here: the agent asks again, and is answered without the person.
            RunDecision::Approve => {
                match option([PermissionOptionKind::AllowOnce, PermissionOptionKind::AllowAlways]) {
                    Some(option) => question.choose(&option),
                    None => {
                        let text = "the agent asks without an option that allows the call";
                        return Err(ForeignError::new(text));
                    }
                }
                let mut chunks = Vec::new();
                self.translator.allowed(&decided.call_id, &mut chunks);
                self.say(chunks);
            }
            RunDecision::Reject(_) => {
                match option([PermissionOptionKind::RejectOnce, PermissionOptionKind::RejectAlways]) {
                    Some(option) => question.choose(&option),
                    None => question.cancel(),
                }
                self.translator.denied(&decided.call_id);
            }
            RunDecision::Edit(_) => {
                return Err(ForeignError::new("an agent over ACP takes no other arguments for its calls"));
            }
            RunDecision::Answer(_) | RunDecision::Unanswered => question.cancel(),
        }
        Ok(())
    }

    /// Until the prompt is answered, or the agent is gone.
    async fn over(&mut self) {
        while self.stage == RunStage::Answers {
            match self.news.recv().await {
                Some(ChildNews::PromptEnded { ticket, .. }) if ticket == self.ticket => break,
                Some(ChildNews::Gone(_)) | None => break,
                // What it asks now is answered as cancelled.
                Some(ChildNews::PromptEnded { .. } | ChildNews::Update(_) | ChildNews::Permission(_)) => {}
            }
        }
        self.stage = RunStage::Over;
    }
}

/// What the last call of its model used, where it says so beside its context, as attache does.
fn step_tokens(usage: &UsageUpdate) -> Usage {
    let step = usage.meta.as_ref().and_then(|meta| meta.get(OWN_KEY)?.get("stepTokens"));
    let count = |key: &str| step.and_then(|step| step.get(key)?.as_u64()).unwrap_or_default();
    Usage {
        input: count("input"),
        output: count("output"),
        reasoning: count("reasoning"),
        cache_read: count("cacheRead"),
        cache_write: count("cacheWrite"),
    }
}

/// `None`: cancelled, by nobody here.
fn finish_reason(reason: StopReason) -> Option<FinishReason> {
    match reason {
        StopReason::EndTurn => Some(FinishReason::Stop),
        StopReason::MaxTokens => Some(FinishReason::Length),
        StopReason::Refusal => Some(FinishReason::ContentFilter),
        StopReason::Cancelled => None,
        _ => Some(FinishReason::Other),
    }
}

impl ForeignRun for AcpRun {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<RunEvent, ForeignError>>> {
        Box::pin(async move {
            loop {
                if let Some(event) = self.events.pop_front() {
                    return Some(Ok(event));
                }
                if let Some(failure) = self.failure.take() {
                    return Some(Err(failure));
                }
                if self.stage == RunStage::Over {
                    return None;
                }
                match self.news.recv().await {
                    Some(news) => self.take(news),
                    None => self.gone(AgentEnd::default()),
                }
            }
        })
    }

    fn decide(&mut self, round: DecidedRound) -> BoxFuture<'_, Result<(), ForeignError>> {
        self.ready.child.link.services.set_client(round.client);
        let told = round.decisions.into_iter().try_for_each(|decided| self.decided(decided));
        Box::pin(std::future::ready(told))
    }

    fn cancel(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.questions.clear();
            if self.stage == RunStage::Answers {
                let client = self.ready.child.client.clone();
                if let Err(failure) = client.cancel(self.ready.theirs.clone()).await {
                    tracing::debug!(%failure, "a turn could not be cancelled");
                }
                if tokio::time::timeout(AGENT_CANCEL, self.over()).await.is_err() {
                    tracing::info!(agent = self.session.settings().name, "killed: it did not end its turn");
                    self.stage = RunStage::Over;
                    self.ready.child.tree.kill();
                    self.session.lost().await;
                }
            }
            self.ready.child.link.set_turn(None);
            self.ready.child.link.services.terminals.release_all().await;
        })
    }
}

impl Drop for AcpRun {
    fn drop(&mut self) {
        self.ready.child.link.set_turn(None);
        if self.stage == RunStage::Over {
            return;
        }
        // Whoever let go of it did not cancel it: the agent must not go on unseen.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let (client, theirs) = (self.ready.child.client.clone(), self.ready.theirs.clone());
            runtime.spawn(async move { client.cancel(theirs).await });
        }
    }
}
