//! One answer of a Python agent: what it says in order, its questions, its requests, and its end.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use attache_core::chunk::{Chunk, Rest, json as chunk_json};
use attache_core::data_name::DataName;
use attache_core::ids::CallId;
use attache_core::ports::BoxFuture;
use attache_core::ports::mcp::{HiddenText, ServerEntry, ServerTransport};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::PythonSettings;
use super::history::ToldConversation;
use super::message::{self, RunWord, ToDecide};
use super::process::PythonProcess;
use super::request::{self, Request, RequestKind, RequestPlace};
use crate::ForeignError;
use crate::agent::{
    Decided, DecidedRound, ForeignRun, RunAsk, RunAskAbout, RunDecision, RunEvent, RunRequest,
};
use crate::limits::KILL_AFTER;

/// Tells runs of this process apart.
static RUNS: AtomicU64 = AtomicU64::new(1);

/// An answer that is being given.
#[derive(Debug)]
pub(super) struct PythonRun {
    process: Arc<PythonProcess>,
    settings: Arc<PythonSettings>,
    id: String,
    request: RunRequest,
    words: mpsc::Receiver<RunWord>,
    /// What we did for it, to be told in its answer.
    own: mpsc::UnboundedReceiver<Chunk>,
    tell_own: mpsc::UnboundedSender<Chunk>,
    said: VecDeque<RunEvent>,
    /// What the decisions that come next are about.
    waiting: Option<OpenRound>,
    is_over: bool,
}

#[derive(Debug)]
enum OpenRound {
    Approvals(Vec<ToDecide>),
    Request(Request),
}

impl PythonRun {
    /// Begins it, or goes on where an earlier process waited.
    pub(super) fn start(
        process: Arc<PythonProcess>,
        settings: Arc<PythonSettings>,
        request: RunRequest,
        decisions: Vec<Decided>,
    ) -> Self {
        // Another one of the same answer may still be on its way out.
        let id = format!("{}-{}", request.message, RUNS.fetch_add(1, Ordering::Relaxed));
        let words = process.listen(&id);
        let (tell_own, own) = mpsc::unbounded_channel();
        let run = Self {
            process,
            settings,
            id,
            request,
            words,
            own,
            tell_own,
            said: VecDeque::new(),
            waiting: None,
            is_over: false,
        };
        run.process.tell(&run.first_message(&decisions));
        run
    }

    fn first_message(&self, decisions: &[Decided]) -> Value {
        let request = &self.request;
        let conversation = self.conversation();
        let context = request.runtime_context.iter();
        let context: Vec<Value> =
            context.map(|(title, text)| json!({ "title": title, "text": text })).collect();
        let mut said = json!({
            "type": "run",
            "session": request.session.as_str(),
            "run": self.id,
            "answer": request.message.as_str(),
            "previous": conversation.previous(),
            "context": context,
            "directory": request.workspace.root.to_string_lossy(),
            "mcp_servers": request.servers.iter().filter_map(server).collect::<Vec<_>>(),
        });
        match decisions.is_empty() {
            true => said["prompt"] = conversation.prompt_blocks().into(),
            false => said["decisions"] = decisions.iter().map(decision).collect::<Vec<_>>().into(),
        }
        said
    }

    fn conversation(&self) -> ToldConversation<'_> {
        let RunRequest { passages, message, open_parts, .. } = &self.request;
        ToldConversation { passages, answer: message, open_parts }
    }

    fn place(&self) -> RequestPlace {
        RequestPlace {
            settings: self.settings.clone(),
            workspace: self.request.workspace.clone(),
            client: self.request.client.clone(),
        }
    }

    async fn step(&mut self) -> Option<Result<RunEvent, ForeignError>> {
        loop {
            if let Some(said) = self.said.pop_front() {
                return Some(Ok(said));
            }
            if self.is_over {
                return None;
            }
            tokio::select! {
                biased;
                Some(own) = self.own.recv() => return Some(Ok(RunEvent::Chunk(own))),
                word = self.words.recv() => match word {
                    Some(word) => {
                        if let Err(error) = self.take(word) {
                            self.is_over = true;
                            return Some(Err(error));
                        }
                    }
                    None => {
                        self.is_over = true;
                        return Some(Err(self.process.end()));
                    }
                },
            }
        }
    }

    fn take(&mut self, word: RunWord) -> Result<(), ForeignError> {
        match word {
            RunWord::Chunk(text) => {
                let chunk = chunk_json::decode(&text).map_err(|error| {
                    ForeignError::new(format!("the agent sent what is no chunk: {error}"))
                })?;
                self.said.push_back(titled(chunk.without_own_marks()));
            }
            RunWord::Usage(usage) => self.said.push_back(RunEvent::Usage(usage)),
            RunWord::Ask(asked) => {
                self.said.extend(asked.iter().map(|one| RunEvent::Ask(Box::new(ask(one)))));
                self.said.push_back(RunEvent::Waits);
                self.waiting = Some(OpenRound::Approvals(asked));
            }
            RunWord::WantsHistory => {
                let messages = self.conversation().messages();
                self.process.tell(&json!({ "type": "history", "run": self.id, "messages": messages }));
            }
            RunWord::Request { id, method, params } => self.serve(id, &method, params),
            RunWord::Ended(reason) => {
                self.is_over = true;
                self.said.push_back(RunEvent::End(reason));
            }
            RunWord::Failed(error) => return Err(error),
            RunWord::Cancelled => return Err(ForeignError::new("the agent cancelled its own run")),
        }
        Ok(())
    }

    fn serve(&mut self, id: String, method: &str, params: Value) {
        let Some(kind) = RequestKind::of(method) else {
            return self.process.tell(&message::answer(&id, Err(request::unknown(method))));
        };
        let request = Request { id, kind, params };
        if request.is_silent(&self.place()) {
            return self.do_it(request, RunDecision::Approve, ToldInAnswer::No);
        }
        self.said.push_back(RunEvent::Chunk(request.call()));
        self.said.push_back(RunEvent::Ask(Box::new(request.ask())));
        self.said.push_back(RunEvent::Waits);
        self.waiting = Some(OpenRound::Request(request));
    }

    /// In a task of its own: what the agent says meanwhile is heard.
    fn do_it(&self, request: Request, decision: RunDecision, told: ToldInAnswer) {
        let (process, place, tell_own) = (self.process.clone(), self.place(), self.tell_own.clone());
        tokio::spawn(async move {
            // A denied call was settled when it was denied.
            let is_denied = matches!(decision, RunDecision::Reject(_));
            let result = tokio::select! {
                result = request.done(&place, decision) => result,
                () = tell_own.closed() => return,
            };
            if told == ToldInAnswer::Yes && !is_denied {
                // The run may be over.
                drop(tell_own.send(request::outcome(request.call_id(), &result)));
            }
            process.tell(&message::answer(&request.id, result));
        });
    }

    fn tell_decisions(&mut self, round: DecidedRound) {
        self.request.client = round.client.or(self.request.client.take());
        match self.waiting.take() {
            Some(OpenRound::Approvals(asked)) => {
                let decisions: Vec<Value> = asked
                    .iter()
                    .map(|one| {
                        let decided =
                            round.decisions.iter().find(|decided| decided.call_id.as_str() == one.call);
                        decided.map_or_else(
                            || json!({ "approval": one.approval, "call": one.call, "type": "reject" }),
                            decision,
                        )
                    })
                    .collect();
                let said = json!({ "type": "decide", "run": self.id, "decisions": decisions });
                self.process.tell(&said);
            }
            Some(OpenRound::Request(request)) => {
                let call_id = request.call_id();
                let decided = round.decisions.into_iter().find(|decided| decided.call_id == call_id);
                let decided = decided.map(|decided| decided.decision);
                self.do_it(request, decided.unwrap_or(RunDecision::Unanswered), ToldInAnswer::Yes);
            }
            None => {}
        }
    }

    /// With a word first; the process ends if that changes nothing.
    fn stop(&self) {
        self.process.tell(&json!({ "type": "cancel", "run": self.id }));
        let (process, id) = (self.process.clone(), self.id.clone());
        tokio::spawn(async move {
            tokio::time::sleep(KILL_AFTER).await;
            if process.is_running(&id) {
                tracing::warn!(run = %id, "a cancelled run did not end; its process is ended");
                process.kill();
            }
        });
    }

    async fn cancelled(&mut self) {
        if self.is_over {
            return;
        }
        self.stop();
        while let Some(word) = self.words.recv().await {
            if matches!(word, RunWord::Ended(_) | RunWord::Failed(_) | RunWord::Cancelled) {
                break;
            }
        }
        self.is_over = true;
    }
}

impl Drop for PythonRun {
    fn drop(&mut self) {
        if self.is_over {
            return self.process.stop_listening(&self.id);
        }
        // Nobody takes what it still says; only its end is of interest.
        if tokio::runtime::Handle::try_current().is_ok() {
            let (_, nobody) = mpsc::channel(1);
            let mut words = std::mem::replace(&mut self.words, nobody);
            tokio::spawn(async move { while words.recv().await.is_some() {} });
            self.stop();
        }
    }
}

/// Whether the answer has a call for what is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ToldInAnswer {
    Yes,
    No,
}

impl ForeignRun for PythonRun {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<RunEvent, ForeignError>>> {
        Box::pin(self.step())
    }

    fn decide(&mut self, round: DecidedRound) -> BoxFuture<'_, Result<(), ForeignError>> {
        self.tell_decisions(round);
        Box::pin(std::future::ready(Ok(())))
    }

    fn cancel(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(self.cancelled())
    }
}

/// A title names the session; everything else is part of the answer.
fn titled(chunk: Chunk) -> RunEvent {
    if let Chunk::Data { name, data, .. } = &chunk
        && *name == DataName::Title
    {
        let title = data.get("title").and_then(Value::as_str).unwrap_or_default();
        return RunEvent::Title(title.to_owned());
    }
    RunEvent::Chunk(chunk)
}

fn ask(one: &ToDecide) -> RunAsk {
    RunAsk {
        call_id: CallId::new(one.call.as_str()),
        approval_id: None,
        tool: one.tool.clone(),
        presentation: None,
        about: RunAskAbout::Permission { description: one.description.clone(), arguments: one.arguments },
        rest: Rest::none(),
    }
}

fn decision(decided: &Decided) -> Value {
    let mut said = json!({ "approval": decided.approval_id, "call": decided.call_id.as_str() });
    match &decided.decision {
        RunDecision::Approve => said["type"] = json!("approve"),
        RunDecision::Edit(input) => {
            said["type"] = json!("edit");
            said["input"] = input.clone();
        }
        RunDecision::Reject(reason) => {
            said["type"] = json!("reject");
            said["message"] = json!(reason);
        }
        RunDecision::Answer(_) | RunDecision::Unanswered => said["type"] = json!("reject"),
    }
    said
}

/// An MCP server as ACP names it; `None` for an entry that makes no sense.
fn server(entry: &ServerEntry) -> Option<Value> {
    let pairs = |pairs: &[(String, HiddenText)]| -> Vec<Value> {
        pairs.iter().map(|(name, value)| json!({ "name": name, "value": value.expose() })).collect()
    };
    let name = &entry.name;
    match &entry.transport {
        ServerTransport::Stdio { command, arguments, environment, directory } => Some(json!({
            "name": name,
            "command": command,
            "args": arguments,
            "env": pairs(environment),
            "directory": directory.as_deref().map(Path::to_string_lossy),
        })),
        ServerTransport::Http { url, headers } => {
            Some(json!({ "type": "http", "name": name, "url": url, "headers": pairs(headers) }))
        }
        ServerTransport::Sse { url, headers } => {
            Some(json!({ "type": "sse", "name": name, "url": url, "headers": pairs(headers) }))
        }
        ServerTransport::Unusable(_) => None,
    }
}
