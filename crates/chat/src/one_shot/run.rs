//! The course of one run: opens a session, prompts, prints, answers questions with no, and says how it ended.

use std::collections::{HashMap, HashSet};

use agent_client_protocol_schema::v1::{ContentBlock, PromptResponse, SessionInfo, StopReason, ToolCallId};
use tokio_util::sync::CancellationToken;

use super::choose::{Unchosen, choose};
use super::collected::Collected;
use super::denials;
use super::end::{RunEnd, RunReport, Stopped, of_turn};
use super::json_answer::json_in;
use super::material::TakenBlocks;
use super::printed::{PrintedAnswer, Streaming};
use super::take::CallUnderWay;
use super::{AnswerSchema, OneShot, RunConsole, SessionChoice};
use crate::limits::{CANCEL_TIME, QUIET_HELLO, SCHEMA_RETRIES, TOLD_MISTAKES};
use attache_acp_client::limits::HELLO_TIME;
use attache_acp_client::{
    AgentAbility, AgentClient, AgentDoor, AgentEvents, ClientEvent, ClientFailure, Connected, Introduction,
    OpenedSession, SessionMatch, SessionStart,
};
use attache_rpc::code;

pub(super) struct OneRun<'a> {
    pub(super) task: OneShot,
    pub(super) console: &'a mut dyn RunConsole,
    interrupted: CancellationToken,
    pub(super) collected: Collected,
    pub(super) printed: PrintedAnswer,
    pub(super) stage: Stage,
    /// Calls under way.
    pub(super) calls: HashMap<ToolCallId, CallUnderWay>,
    /// Those of them that we were asked about.
    pub(super) asked: HashSet<ToolCallId>,
    /// Notices of failures, which the end of the run may tell in other words.
    pub(super) failures: Vec<String>,
}

/// Which updates are of this run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The session's history is being replayed.
    Opening,
    /// What comes is new, and the prompt is not sent yet.
    Opened,
    Prompted,
}

impl<'a> OneRun<'a> {
    pub(super) fn new(
        task: OneShot,
        console: &'a mut dyn RunConsole,
        interrupted: CancellationToken,
    ) -> Self {
        let streaming = match task.schema {
            Some(_) => Streaming::Withheld,
            None => Streaming::Live,
        };
        let printed = PrintedAnswer::new(task.output, streaming);
        let collected = Collected::default();
        let (calls, asked) = (HashMap::new(), HashSet::new());
        Self {
            task,
            console,
            interrupted,
            collected,
            printed,
            stage: Stage::Opening,
            calls,
            asked,
            failures: Vec::new(),
        }
    }

    pub(super) async fn until_its_end(
        mut self,
        door: &dyn AgentDoor,
        introduction: Introduction,
    ) -> RunReport {
        let connected = self.connected(door, introduction).await;
        let report = match connected {
            Ok(Connected { client, mut events }) => {
                let went = self.converse(&client, &mut events).await;
                let report = match went {
                    Ok(report) => report,
                    Err(stopped) => {
                        self.stop(&stopped, &client, &mut events).await;
                        stopped.report_of(&client)
                    }
                };
                client.leave().await;
                report
            }
            Err(stopped) => stopped.report(),
        };
        self.finish(report)
    }

    /// Who waits in silence is thought to hang.
    async fn connected(
        &mut self,
        door: &dyn AgentDoor,
        introduction: Introduction,
    ) -> Result<Connected, Stopped> {
        let interrupted = self.interrupted.clone();
        let mut opening = door.open(introduction);
        tokio::select! {
            biased;
            () = interrupted.cancelled() => return Err(Stopped::Interrupted),
            connected = &mut opening => return connected.map_err(Stopped::from),
            () = tokio::time::sleep(QUIET_HELLO) => {}
        }
        let most = HELLO_TIME.as_secs();
        self.console.remark(&format!("the agent has not said hello yet; waiting {most} s at most"));
        tokio::select! {
            biased;
            () = interrupted.cancelled() => Err(Stopped::Interrupted),
            connected = opening => connected.map_err(Stopped::from),
        }
    }

    /// Writes what ends the answer.
    fn finish(mut self, report: RunReport) -> RunReport {
        let failed = report.error.as_deref().unwrap_or_default();
        for failure in self.failures.iter().filter(|failure| !failure.ends_with(failed) || failed.is_empty())
        {
            self.console.remark(failure);
        }
        let told = self.printed.finish(&self.collected, report.error.as_deref(), self.console);
        if self.collected.unshown > 0 {
            let count = self.collected.unshown;
            self.console
                .progress(&format!("{count} pieces of the answer are no text: `--output jsonl` has them"));
        }
        if self.task.max_cost.is_some() && self.collected.cost().is_none() && report.end == RunEnd::Done {
            self.console.remark("the agent told no cost, so `--max-cost` could not hold it");
        }
        match told {
            Ok(()) | Err(Stopped::ReaderGone) => report,
            Err(stopped) if report.error.is_none() => stopped.report(),
            Err(_) => report,
        }
    }

    async fn converse(
        &mut self,
        client: &AgentClient,
        events: &mut AgentEvents,
    ) -> Result<RunReport, Stopped> {
        let session = self.open(client, events).await?;
        self.collected.session_id = Some(session.session_id.clone());
        self.stage = Stage::Opened;
        self.collected.learn_model(&session.config_options);
        let chosen = choose(client.clone(), session.clone(), self.task.choices.clone());
        let chosen = self.wait_for(events, async { Ok(chosen.await) }).await?;
        let now = chosen.map_err(|unchosen| match unchosen {
            Unchosen::Failed(failure) => Stopped::Failed(failure),
            Unchosen::Unfit(reason) => Stopped::Unfit(reason),
            Unchosen::Unknown(reason) => Stopped::Wrong(reason),
        })?;
        now.iter().for_each(|options| self.collected.learn_model(options));
        self.demand_price()?;
        let mut prompt = self.task.material.blocks(TakenBlocks::of(client)).map_err(Stopped::Unfit)?;
        let schema = self.task.schema.clone();
        prompt.extend(schema.as_ref().map(asked_for));
        self.stage = Stage::Prompted;
        let mut response = self.prompt(client, events, &session, prompt).await?;
        let mut report = of_turn(response.stop_reason);
        if let Some(schema) = &schema {
            for _ in 0..SCHEMA_RETRIES {
                let Some(mistakes) = self.mistakes(schema, response.stop_reason) else { break };
                self.console.progress("the answer does not fit the schema; the model is told");
                self.collected.forget_words();
                response = self.prompt(client, events, &session, vec![told(&mistakes, schema)]).await?;
            }
            report = of_turn(response.stop_reason);
            if let Some(mistakes) = self.mistakes(schema, response.stop_reason) {
                let error = format!("the answer does not fit the schema: {}", mistakes.join("; "));
                report = RunReport { end: RunEnd::Failed, error: Some(error) };
            }
        }
        Ok(self.with_denials(report))
    }

    /// A run that was denied something is not done, though its turn ended well.
    fn with_denials(&self, report: RunReport) -> RunReport {
        if report.end != RunEnd::Done || self.collected.denied.is_empty() {
            return report;
        }
        RunReport { end: RunEnd::Refused, error: Some(denials::told(&self.collected.denied)) }
    }

    /// A limit that holds nothing is worse than none.
    fn demand_price(&self) -> Result<(), Stopped> {
        let has_price = self.task.max_cost.as_ref().and_then(|limit| limit.has_price.as_ref());
        match (has_price, &self.collected.model) {
            (Some(has_price), Some(model)) if !has_price(model) => Err(Stopped::Wrong(format!(
                "`--max-cost` can't hold {model}: no price of it is known. Write one into its `price` in the \
                 configuration, choose another model, or leave the option out"
            ))),
            (Some(_) | None, Some(_) | None) => Ok(()),
        }
    }

    async fn open(
        &mut self,
        client: &AgentClient,
        events: &mut AgentEvents,
    ) -> Result<OpenedSession, Stopped> {
        let directories = self.task.directories.clone();
        let (session_id, directories) = match self.task.session.clone() {
            SessionChoice::New => return self.wait_for(events, client.new_session(&directories)).await,
            SessionChoice::Latest => {
                let latest = self.wait_for(events, client.latest_session(&directories.directory)).await?;
                let place = directories.directory.display();
                let latest = latest
                    .ok_or_else(|| Stopped::Unfit(format!("there is no session to continue in {place}")))?;
                (latest.session_id, directories)
            }
            SessionChoice::ById(start, elsewhere) => {
                let found = self.wait_for(events, client.find_session(&start)).await?;
                let session = the_one(found, &start)?;
                let mut of_session = SessionStart::new(elsewhere.unwrap_or(session.cwd));
                of_session.additional = session.additional_directories;
                (session.session_id, of_session)
            }
        };
        // A load reports the cost of the session so far.
        match client.can(AgentAbility::Load) {
            true => self.wait_for(events, client.load_session(session_id, &directories)).await,
            false => self.wait_for(events, client.resume_session(session_id, &directories)).await,
        }
    }

    async fn prompt(
        &mut self,
        client: &AgentClient,
        events: &mut AgentEvents,
        session: &OpenedSession,
        blocks: Vec<ContentBlock>,
    ) -> Result<PromptResponse, Stopped> {
        let prompted = self.wait_for(events, client.prompt(session.session_id.clone(), blocks)).await;
        let response = prompted.map_err(|stopped| match stopped {
            // Known only now: an agent may take a model that it does not list.
            Stopped::Failed(ClientFailure::Refused { error, .. })
                if error.code == code::INVALID_PARAMS && self.task.choices.model.is_some() =>
            {
                Stopped::Wrong(error.message)
            }
            stopped => stopped,
        })?;
        self.collected.ended(&response);
        Ok(response)
    }

    /// Waits, and takes meanwhile what the agent says and asks.
    async fn wait_for<T>(
        &mut self,
        events: &mut AgentEvents,
        answer: impl Future<Output = Result<T, ClientFailure>>,
    ) -> Result<T, Stopped> {
        let interrupted = self.interrupted.clone();
        let mut answer = std::pin::pin!(answer);
        let answer = loop {
            tokio::select! {
                biased;
                () = interrupted.cancelled() => return Err(Stopped::Interrupted),
                Some(event) = events.next() => {
                    self.take(event)?;
                    self.take_all(events)?;
                }
                answer = &mut answer => break answer,
            }
        };
        // All that came before the answer is there.
        self.take_all(events)?;
        Ok(answer?)
    }

    fn take_all(&mut self, events: &mut AgentEvents) -> Result<(), Stopped> {
        while let Some(event) = events.try_next() {
            self.take(event)?;
        }
        self.printed.flush(self.console)
    }

    /// The mistakes of the answer; `None` if it fits, or if the turn did not end by itself.
    fn mistakes(&mut self, schema: &AnswerSchema, reason: StopReason) -> Option<Vec<String>> {
        if reason != StopReason::EndTurn {
            return None;
        }
        let Some(value) = json_in(self.collected.last_message()) else {
            return Some(vec!["there is no JSON in it".to_owned()]);
        };
        match (schema.check)(&value) {
            Ok(()) => {
                self.collected.value = Some(value);
                None
            }
            Err(mut mistakes) => {
                mistakes.truncate(TOLD_MISTAKES);
                Some(mistakes)
            }
        }
    }

    /// Ends the turn under way, and takes what still comes of it.
    async fn stop(&mut self, stopped: &Stopped, client: &AgentClient, events: &mut AgentEvents) {
        let Some(session_id) = self.collected.session_id.clone() else { return };
        let has_begun = match stopped {
            Stopped::Failed(_) | Stopped::Unfit(_) | Stopped::Wrong(_) => false,
            Stopped::Interrupted | Stopped::Cost(_) | Stopped::ReaderGone | Stopped::Output(_) => {
                self.stage == Stage::Prompted
            }
        };
        if !has_begun {
            return;
        }
        if let Err(error) = client.cancel(session_id.clone()).await {
            tracing::debug!(%error, "the turn could not be cancelled");
            return;
        }
        self.collected.stop_reason = Some(StopReason::Cancelled);
        // The prompt is not awaited any more; an agent answers this once the turn has ended.
        let rest = async {
            let closed = client.close_session(session_id);
            let mut closed = std::pin::pin!(closed);
            loop {
                tokio::select! {
                    biased;
                    Some(event) = events.next() => self.take_late(event, stopped),
                    _ = &mut closed => break,
                }
            }
        };
        if tokio::time::timeout(CANCEL_TIME, rest).await.is_err() {
            tracing::debug!("the agent did not end the turn in time");
        }
        while let Some(event) = events.try_next() {
            self.take_late(event, stopped);
        }
    }

    /// Text after the decided end still belongs to the answer; it decides nothing more.
    fn take_late(&mut self, event: ClientEvent, stopped: &Stopped) {
        if matches!(stopped, Stopped::ReaderGone | Stopped::Output(_)) {
            return;
        }
        if let Err(late) = self.take(event) {
            tracing::debug!(?late, "after the end");
        }
    }
}

fn the_one(found: SessionMatch, start: &str) -> Result<SessionInfo, Stopped> {
    match found {
        SessionMatch::One(session) => Ok(*session),
        SessionMatch::None => Err(Stopped::Wrong(format!(
            "there is no session {start:?}; `attache sessions list` shows them, and --continue takes the latest of \
             this directory"
        ))),
        SessionMatch::Several => {
            Err(Stopped::Wrong(format!("several sessions begin with {start:?}: give more of the id")))
        }
    }
}

fn asked_for(schema: &AnswerSchema) -> ContentBlock {
    format!(
        "Your last message is read by a program. It has to be JSON and nothing else, and fit this JSON Schema:\n\n{}",
        schema.text
    )
    .into()
}

fn told(mistakes: &[String], schema: &AnswerSchema) -> ContentBlock {
    format!(
        "Your last message could not be used:\n- {}\n\nAnswer again, with JSON and nothing else, that fits this JSON \
         Schema:\n\n{}",
        mistakes.join("\n- "),
        schema.text
    )
    .into()
}
