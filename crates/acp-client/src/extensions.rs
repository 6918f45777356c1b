//! The extension methods of attache: what a session does, its queue, rewinds, compaction and exports. For
//! agents that call themselves so.

use agent_client_protocol_schema::v1::{ContentBlock, PromptResponse, SessionId};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use crate::failure::ClientFailure;
use crate::{AgentAbility, AgentClient};

/// The state of a session.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionState {
    #[serde(rename = "state")]
    pub activity: SessionActivity,
    /// Which try it is, while it is retrying.
    #[serde(default)]
    pub attempt: Option<u32>,
    /// Why it is retrying, or what went wrong.
    #[serde(default)]
    pub message: Option<String>,
    #[serde(default)]
    pub started_at: Option<String>,
    #[serde(default)]
    pub message_id: Option<String>,
    /// What holds commands on the agent's machine: full, reduced, none, off.
    #[serde(default)]
    pub sandbox: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionActivity {
    Idle,
    Busy,
    Retrying,
    WaitingOnApproval,
    WaitingOnUserInput,
    Error,
    /// A state of a newer agent.
    #[serde(other)]
    Unknown,
}

/// A prompt that waits for its turn.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueuedPrompt {
    pub message_id: String,
    #[serde(default)]
    pub queued_at: Option<String>,
    pub prompt: Vec<ContentBlock>,
}

/// The prompt that a rewind gave back.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RewoundPrompt {
    /// The prompt as it was sent, to be changed and sent again.
    pub prompt: Vec<ContentBlock>,
    /// Messages that are hidden now.
    pub hidden: u64,
    /// What became of files; `None` where the agent keeps no snapshots.
    #[serde(default)]
    pub files: Option<Value>,
}

/// One way to go on with a command.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct CommandCompletion {
    /// What its last argument would be.
    pub value: String,
    /// The whole command with it.
    pub text: String,
}

impl AgentClient {
    pub async fn session_state(&self, session_id: &SessionId) -> Result<SessionState, ClientFailure> {
        self.extension("_attache/session/status", json!({ "sessionId": session_id })).await
    }

    /// How a slash command that is being typed could go on.
    pub async fn complete_command(
        &self,
        session_id: &SessionId,
        text: &str,
    ) -> Result<Vec<CommandCompletion>, ClientFailure> {
        #[derive(Deserialize)]
        struct Completions {
            completions: Vec<CommandCompletion>,
        }
        let params = json!({ "sessionId": session_id, "text": text });
        let completed: Completions = self.extension("_attache/commands/complete", params).await?;
        Ok(completed.completions)
    }

    pub async fn queued_prompts(&self, session_id: &SessionId) -> Result<Vec<QueuedPrompt>, ClientFailure> {
        #[derive(Deserialize)]
        struct Queue {
            queued: Vec<QueuedPrompt>,
        }
        let queue: Queue = self.extension("_attache/queue/list", json!({ "sessionId": session_id })).await?;
        Ok(queue.queued)
    }

    /// Takes a waiting prompt back; it is answered as cancelled.
    pub async fn cancel_queued(&self, session_id: &SessionId, message_id: &str) -> Result<(), ClientFailure> {
        let params = json!({ "sessionId": session_id, "messageId": message_id });
        self.extension::<IgnoredAny>("_attache/queue/cancel", params).await.map(drop)
    }

    pub async fn edit_queued(
        &self,
        session_id: &SessionId,
        message_id: &str,
        prompt: &[ContentBlock],
    ) -> Result<(), ClientFailure> {
        let params = json!({ "sessionId": session_id, "messageId": message_id, "prompt": prompt });
        self.extension::<IgnoredAny>("_attache/queue/edit", params).await.map(drop)
    }

    /// Hides a prompt and everything after it.
    pub async fn rewind(
        &self,
        session_id: &SessionId,
        message_id: &str,
    ) -> Result<RewoundPrompt, ClientFailure> {
        let params = json!({ "sessionId": session_id, "messageId": message_id });
        self.extension("_attache/session/rewind", params).await
    }

    /// Takes the last rewind back; gives how many messages are shown again.
    pub async fn unrewind(&self, session_id: &SessionId) -> Result<u64, ClientFailure> {
        #[derive(Deserialize)]
        struct RestoredCount {
            restored: u64,
        }
        let params = json!({ "sessionId": session_id });
        let unrewound: RestoredCount = self.extension("_attache/session/unrewind", params).await?;
        Ok(unrewound.restored)
    }

    /// Makes room in the context, as a turn of its own; `keep` says what matters, and may be empty.
    pub async fn compact(&self, session_id: &SessionId, keep: &str) -> Result<PromptResponse, ClientFailure> {
        self.need(AgentAbility::Extensions, "compact a session")?;
        let params = json!({ "sessionId": session_id, "keep": keep });
        self.request("_attache/session/compact", &params, None).await
    }

    /// The whole session as text: jsonl, json, md, csv or html.
    pub async fn export(&self, session_id: &SessionId, format: &str) -> Result<String, ClientFailure> {
        #[derive(Deserialize)]
        struct Exported {
            content: String,
        }
        let params = json!({ "sessionId": session_id, "format": format });
        let exported: Exported = self.extension("_attache/session/export", params).await?;
        Ok(exported.content)
    }

    async fn extension<R: serde::de::DeserializeOwned>(
        &self,
        method: &'static str,
        params: Value,
    ) -> Result<R, ClientFailure> {
        self.need(AgentAbility::Extensions, "do that: it is an extension of attache")?;
        self.quick(method, &params).await
    }
}
