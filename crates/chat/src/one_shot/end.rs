//! How a run ended, and which exit code says so.

use agent_client_protocol_schema::v1::StopReason;

use attache_acp_client::{AgentAbility, AgentClient, ClientFailure};

/// The exit code, which scripts branch on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnd {
    Done,
    Failed,
    /// The request can't be right, whatever is tried.
    Usage,
    /// The model refused, or something it needed was denied.
    Refused,
    /// Steps, tokens or cost.
    Limit,
    Interrupted,
}

impl RunEnd {
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Refused => 3,
            Self::Limit => 4,
            Self::Interrupted => 130,
        }
    }
}

/// How it went. The answer itself is written by then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunReport {
    pub end: RunEnd,
    /// The message for a person; `None` when all went well.
    pub error: Option<String>,
}

/// Why a run stops before the agent ends the turn by itself.
#[derive(Debug)]
pub(super) enum Stopped {
    Interrupted,
    Failed(ClientFailure),
    /// What was asked for can't be had from this agent.
    Unfit(String),
    /// What was asked for can't be right.
    Wrong(String),
    /// The run has cost as much as it may, in dollars.
    Cost(f64),
    /// The reader of the answer closed its end.
    ReaderGone,
    /// It can't be written.
    Output(String),
}

impl From<ClientFailure> for Stopped {
    fn from(failure: ClientFailure) -> Self {
        Self::Failed(failure)
    }
}

impl Stopped {
    pub(super) fn report(&self) -> RunReport {
        let (end, error) = match self {
            Self::Interrupted => (RunEnd::Interrupted, "interrupted".to_owned()),
            Self::Failed(ClientFailure::Command(wrong)) => (RunEnd::Usage, wrong.to_string()),
            Self::Failed(ClientFailure::Misused(reason)) | Self::Wrong(reason) => {
                (RunEnd::Usage, reason.clone())
            }
            Self::Failed(failure) => (RunEnd::Failed, failure.to_string()),
            Self::Unfit(reason) => (RunEnd::Failed, reason.clone()),
            Self::Cost(limit) => (RunEnd::Limit, format!("the run has cost ${limit}, which is its limit")),
            // It has what it wanted.
            Self::ReaderGone => return RunReport { end: RunEnd::Done, error: None },
            Self::Output(reason) => (RunEnd::Failed, format!("the answer can't be written: {reason}")),
        };
        RunReport { end, error: Some(error) }
    }

    /// Like that, with what the agent's user can do about it; attache says so itself.
    pub(super) fn report_of(&self, client: &AgentClient) -> RunReport {
        let mut report = self.report();
        if let (Self::Failed(failure), Some(error)) = (self, &mut report.error)
            && failure.wants_login()
            && !client.can(AgentAbility::Extensions)
        {
            error.push_str(&format!(" (log in to {} first)", client.agent_name()));
        }
        report
    }
}

/// How a turn that ended by itself counts.
pub(super) fn of_turn(reason: StopReason) -> RunReport {
    let report = |end, error: &str| RunReport { end, error: Some(error.to_owned()) };
    match reason {
        StopReason::EndTurn => RunReport { end: RunEnd::Done, error: None },
        StopReason::MaxTokens => {
            report(RunEnd::Limit, "the answer is cut: the model's limit of tokens was reached")
        }
        StopReason::MaxTurnRequests => report(RunEnd::Limit, "the limit of steps was reached"),
        StopReason::Refusal => report(RunEnd::Refused, "the model refused to answer"),
        StopReason::Cancelled => report(RunEnd::Failed, "the turn was cancelled by somebody else"),
        // The schema may learn more.
        _ => report(RunEnd::Failed, "the turn ended for a reason that is not known here"),
    }
}
