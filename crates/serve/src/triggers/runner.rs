//! One turn that no client began: a session of its own, with what the trigger says, and an end at its cost
//! limit.

use std::pin::pin;
use std::sync::Arc;

use attache_acp::AgentServices;
use attache_core::hub::{HubError, NewSession, SessionHandle, SessionPlace};
use attache_core::ids::SessionId;
use attache_core::part::Part;
use attache_core::ports::client::{Answer, AnsweringClient};
use attache_core::ports::store::Store;
use attache_core::prompt::{Prompt, PromptSource};
use attache_core::turn::TurnEnd;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use super::{Trigger, TriggerHost};
use crate::limits::CHILD_DEPTH;
use crate::metrics::{ModelSpending, PromptWay, ServerMetrics};

/// A copy is the same.
#[derive(Clone, Debug)]
pub(crate) struct TriggerRunner {
    pub(crate) agent: AgentServices,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) usual_workspace: std::path::PathBuf,
    pub(crate) metrics: ServerMetrics,
    pub(crate) host: Arc<dyn TriggerHost>,
}

/// A session that waits for its prompt.
#[derive(Debug)]
pub(crate) struct BegunRun {
    handle: SessionHandle,
    spending: Option<SpendingLimit>,
}

#[derive(Debug)]
struct SpendingLimit {
    most: f64,
    calls: broadcast::Receiver<ModelSpending>,
}

/// Why a turn was ended before it was done.
#[derive(Clone, Debug, PartialEq)]
enum SpendingStop {
    Reached {
        spent: f64,
        most: f64,
    },
    NoPrice,
    /// Calls came faster than they could be added up.
    Unknown,
}

impl BegunRun {
    pub(crate) fn id(&self) -> &SessionId {
        self.handle.id()
    }
}

impl TriggerRunner {
    /// The error is for whoever runs the server.
    pub(crate) async fn begin(&self, trigger: &Trigger) -> Result<BegunRun, String> {
        let root = trigger.workspace.as_ref().unwrap_or(&self.usual_workspace).clone();
        let host = &self.agent.host;
        host.check_directory(&root).await.map_err(|reason| format!("workspace: {reason}"))?;
        let spending = trigger.max_cost.map(|most| SpendingLimit { most, calls: self.metrics.spending() });
        let new = NewSession { root: root.clone(), place: SessionPlace::default() };
        let handle = self.agent.hub.create(new).await.map_err(|error| error.to_string())?;
        let prepared = async {
            host.check_places(handle.id(), vec![root])
                .await
                .map_err(|reason| format!("workspace: {reason}"))?;
            if let Some(agent) = &trigger.agent {
                let chosen = handle.set_mode(agent.clone()).await;
                chosen.map_err(|error| format!("agent: {error}"))?;
            }
            if let Some(approval) = trigger.approval {
                let chosen = handle.set_approval(approval).await;
                chosen.map_err(|error| format!("approval: {error}"))?;
            }
            Ok(())
        };
        match prepared.await {
            Ok(()) => Ok(BegunRun { handle, spending }),
            Err(reason) => {
                // Nothing was said in it.
                if let Err(error) = self.agent.hub.delete(handle.id()).await {
                    tracing::warn!(%error, "an empty session stays");
                }
                Err(reason)
            }
        }
    }

    /// To the end of the turn, which is told.
    pub(crate) async fn run(&self, what: &str, run: BegunRun, prompt: String, way: PromptWay) {
        self.metrics.prompted(way);
        let source = match way {
            // Its own user wrote it.
            PromptWay::Schedule => PromptSource::Person,
            PromptWay::Webhook | PromptWay::Acp | PromptWay::Chat => PromptSource::OtherAgent,
        };
        let parts = vec![Part::Text { text: prompt, state: None, provider_metadata: None }];
        let prompt = Prompt { parts, source, ..Prompt::default() };
        let BegunRun { handle, spending } = run;
        let nobody = AnsweringClient::new(|_| Answer::Nobody);
        let mut turn = pin!(handle.run(nobody, prompt, |_| {}));
        let mut stop = None;
        let outcome = match spending {
            None => turn.await,
            Some(limit) => tokio::select! {
                outcome = &mut turn => outcome,
                why = self.spent(handle.id(), limit) => {
                    handle.cancel();
                    stop = Some(why);
                    turn.await
                }
            },
        };
        let id = handle.id();
        if let Some(stop) = &stop {
            handle.notice("warning", "The turn was ended by its cost limit".to_owned(), Some(stop.words()));
        }
        let end = match (&stop, outcome) {
            (Some(stop), _) => format!("ended: {}", stop.words()),
            (None, Ok(outcome)) => in_words(&outcome.end),
            (None, Err(HubError::Closed(_))) => "was cut off by the end of the server".to_owned(),
            (None, Err(error)) => format!("failed: {error}"),
        };
        self.host.tell(&format!("{what}: session {id} {end}"));
        handle.close_unattended();
    }

    /// Resolves once this session and those that work for it have cost too much.
    async fn spent(&self, id: &SessionId, mut limit: SpendingLimit) -> SpendingStop {
        let mut spent = 0.0;
        loop {
            match limit.calls.recv().await {
                Ok(call) if self.works_for(&call.session, id).await => match call.dollars {
                    None => return SpendingStop::NoPrice,
                    Some(dollars) => {
                        spent += dollars;
                        if spent >= limit.most {
                            return SpendingStop::Reached { spent, most: limit.most };
                        }
                    }
                },
                Ok(_) => {}
                Err(RecvError::Lagged(_)) => return SpendingStop::Unknown,
                Err(RecvError::Closed) => std::future::pending().await,
            }
        }
    }

    /// Whether it is that session or a child of it, at any depth.
    async fn works_for(&self, session: &SessionId, id: &SessionId) -> bool {
        let mut session = session.clone();
        for _ in 0..CHILD_DEPTH {
            if session == *id {
                return true;
            }
            let Ok(Some(record)) = self.store.session(&session).await else { return false };
            match record.row.parent_id {
                Some(parent) if record.row.metadata.child_of().is_some() => session = parent,
                Some(_) | None => return false,
            }
        }
        false
    }
}

impl SpendingStop {
    fn words(&self) -> String {
        match self {
            Self::Reached { spent, most } => format!("it has cost ${spent:.4}, and max_cost is ${most}"),
            Self::NoPrice => {
                "max_cost can't hold a model of which no price is known; write one into its `price`"
                    .to_owned()
            }
            Self::Unknown => "its calls could not be added up".to_owned(),
        }
    }
}

fn in_words(end: &TurnEnd) -> String {
    match end {
        TurnEnd::Finished(_) => "is done".to_owned(),
        TurnEnd::StepLimit => "has made all steps that it may (limits.max_steps)".to_owned(),
        TurnEnd::Aborted => "was cancelled".to_owned(),
        TurnEnd::Failed { message, .. } => format!("failed: {message}"),
    }
}
