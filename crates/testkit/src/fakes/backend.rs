//! A backend that is no loop: it says what the last word of the prompt tells it to. What a foreign agent needs
//! of a session is what this one uses.
//!
//! `stream`: two steps of text. `wait`: says something, then waits for the cancel. `fail`: ends with an error.
//! `ask`: asks a person about a call. `overstep`: records the end of the turn itself, which is refused.

use std::sync::Arc;

use attache_core::chunk::{Chunk, FinishReason, Rest, ToolMarks};
use attache_core::ids::CallId;
use attache_core::part::{Part, Passage};
use attache_core::ports::BoxFuture;
use attache_core::ports::backend::{
    Answered, Backend, BackendTurn, Decision, InterruptedTurn, TurnContext, TurnLeftovers, TurnResult,
    TurnStart,
};
use attache_core::ports::client::{About, Ask, Permission, WhenAsked};
use attache_core::ports::store::StoreResult;
use attache_core::ports::tool::Presentation;
use attache_core::turn::{FailureKind, TurnEnd};
use serde_json::json;

/// Runs turns without a model or a tool.
#[derive(Debug, Default)]
pub struct ForeignBackend {
    /// Whether a turn that an earlier process left can go on.
    pub can_resume: bool,
}

#[derive(Debug)]
struct ForeignTurn(TurnContext);

impl Backend for ForeignBackend {
    fn turn(&self, context: TurnContext) -> Box<dyn BackendTurn> {
        Box::new(ForeignTurn(context))
    }

    fn turn_again(
        &self,
        context: TurnContext,
        interrupted: InterruptedTurn,
    ) -> BoxFuture<'static, Option<(Box<dyn BackendTurn>, Arc<Ask>)>> {
        let turn = ForeignTurn(context);
        let ask = turn.ask(interrupted.open_call.call_id);
        let again = self.can_resume.then(|| (Box::new(turn) as Box<dyn BackendTurn>, ask));
        Box::pin(std::future::ready(again))
    }
}

impl BackendTurn for ForeignTurn {
    fn run(&mut self, start: TurnStart) -> BoxFuture<'_, TurnResult> {
        Box::pin(async move {
            let ran = match start {
                TurnStart::Beginning => self.begin().await,
                TurnStart::Answered(answered) => self.go_on(*answered).await,
            };
            ran.unwrap_or_else(|error| failed(error.to_string()))
        })
    }

    fn leftovers(self: Box<Self>) -> TurnLeftovers {
        TurnLeftovers::reread(self.0.conversation)
    }
}

impl ForeignTurn {
    async fn begin(&self) -> StoreResult<TurnResult> {
        match self.told().as_str() {
            "stream" => {
                self.step("1", &["one", " two"]).await?;
                self.step("2", &["three"]).await?;
                Ok(finished())
            }
            "wait" => {
                self.record(Chunk::StartStep { rest: Rest::none() }).await?;
                self.record(Chunk::TextStart { id: "w".into(), rest: Rest::none() }).await?;
                self.record(Chunk::text_delta(&"w".into(), "working")).await?;
                // What is open is left open: the session closes it.
                self.0.cancel.cancelled().await;
                Ok(TurnResult::Ended(TurnEnd::Aborted))
            }
            "ask" => {
                let (call_id, rest) = (CallId::new("c1"), Rest::none());
                self.record(Chunk::StartStep { rest: Rest::none() }).await?;
                self.record(Chunk::ToolInputAvailable {
                    call_id: call_id.clone(),
                    tool_name: "deploy".into(),
                    input: json!({ "to": "staging" }),
                    marks: ToolMarks { provider_executed: Some(true), ..ToolMarks::default() },
                    rest: Rest::none(),
                })
                .await?;
                let ask = self.ask(call_id.clone());
                let approval_id = ask.approval_id.clone();
                self.record(Chunk::ToolApprovalRequest { approval_id, call_id, rest }).await?;
                self.0.journal.settle().await?;
                Ok(TurnResult::Suspended(ask))
            }
            "overstep" => {
                let end = Chunk::Abort { reason: None, rest: Rest::none() };
                self.record(end).await.map(|()| finished())
            }
            other => Ok(failed(format!("the agent does not know `{other}`"))),
        }
    }

    async fn go_on(&self, answered: Answered) -> StoreResult<TurnResult> {
        let call_id = answered.ask.call_id.clone();
        match answered.decision {
            Decision::Allow | Decision::Said(_) | Decision::Unsaid | Decision::Unasked => {
                let (marks, rest) = (ToolMarks::default(), Rest::none());
                let output = json!("deployed");
                self.record(Chunk::ToolOutputAvailable { call_id, output, preliminary: None, marks, rest })
                    .await?;
            }
            Decision::Reject | Decision::RejectBecause(_) | Decision::AllowEdited(_) | Decision::Nobody => {
                self.record(Chunk::ToolOutputDenied { call_id, rest: Rest::none() }).await?;
            }
            Decision::End(_) => return Ok(TurnResult::Ended(TurnEnd::Aborted)),
        }
        self.record(Chunk::FinishStep { rest: Rest::none() }).await?;
        self.step("2", &["done"]).await?;
        Ok(finished())
    }

    async fn step(&self, id: &str, words: &[&str]) -> StoreResult<()> {
        self.record(Chunk::StartStep { rest: Rest::none() }).await?;
        self.record(Chunk::TextStart { id: id.into(), rest: Rest::none() }).await?;
        for word in words {
            self.record(Chunk::text_delta(&id.into(), *word)).await?;
        }
        self.record(Chunk::TextEnd { id: id.into(), rest: Rest::none() }).await?;
        self.record(Chunk::FinishStep { rest: Rest::none() }).await
    }

    async fn record(&self, chunk: Chunk) -> StoreResult<()> {
        self.0.journal.record(chunk).await
    }

    fn ask(&self, call_id: CallId) -> Arc<Ask> {
        let why = "the agent wants to deploy".to_owned();
        Arc::new(Ask {
            session_id: self.0.setup.workspace.session_id.clone(),
            message_id: self.0.journal.message_id().clone(),
            call_id,
            approval_id: "a1".into(),
            tool_name: "deploy".into(),
            input: json!({ "to": "staging" }),
            presentation: Presentation { title: "deploy".into(), ..Presentation::default() },
            about: About::Permission(Permission { why, ..Permission::default() }),
            when: WhenAsked::CallAsked,
            expected: Arc::default(),
        })
    }

    /// The last word of the prompt.
    fn told(&self) -> String {
        let text = |passage: &Arc<Passage>| {
            passage.parts.iter().find_map(|part| match part {
                Part::Text { text, .. } => Some(text.clone()),
                _ => None,
            })
        };
        let prompt = self.0.conversation.last().and_then(text).unwrap_or_default();
        prompt.split(' ').next_back().unwrap_or_default().to_owned()
    }
}

fn finished() -> TurnResult {
    TurnResult::Ended(TurnEnd::Finished(FinishReason::Stop))
}

fn failed(message: String) -> TurnResult {
    TurnResult::Ended(TurnEnd::failed(FailureKind::Model, message))
}
