//! Chats as sessions: which one a chat is, where it works, and what happens to a message that is known already.

use std::path::PathBuf;
use std::sync::Arc;

use attache_acp::AgentServices;
use attache_core::hub::{AttachFrom, HubError, NewSession, SessionHandle, SessionPlace};
use attache_core::ids::{MessageId, SessionId};
use attache_core::ports::Store;
use attache_core::ports::store::StoreError;
use attache_core::prompt::{Prompt, digest};

use super::asked::ChatClient;
use super::events::{Beginning, ChatStream};
use super::request::{PostedApprovals, SaidAgain};

/// How often one message may be sent anew.
const TIMES_SENT: usize = 200;

/// Clones share the chats.
#[derive(Clone, Debug)]
pub(crate) struct Chats {
    agent: AgentServices,
    store: Arc<dyn Store>,
    /// Where chats work whose client names no directory.
    usual: PathBuf,
}

/// Why a chat can't go on.
#[derive(Debug)]
pub(super) enum ChatError {
    Unknown,
    Refused(String),
    Conflict(String),
    Failed(String),
}

impl From<HubError> for ChatError {
    fn from(error: HubError) -> Self {
        match error {
            HubError::UnknownSession { .. } | HubError::Closed(_) => Self::Unknown,
            HubError::Invalid(reason) => Self::Refused(reason),
            HubError::RunningElsewhere(_) | HubError::Busy(_) => Self::Conflict(error.to_string()),
            HubError::NoModel(_)
            | HubError::UnusableModel { .. }
            | HubError::Store(_)
            | HubError::Internal(_) => Self::Failed(error.to_string()),
        }
    }
}

impl From<StoreError> for ChatError {
    fn from(error: StoreError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl Chats {
    pub(crate) fn new(agent: AgentServices, store: Arc<dyn Store>, usual: PathBuf) -> Self {
        Self { agent, store, usual }
    }

    /// Hands in a prompt; its answer streams.
    pub(super) async fn ask(
        &self,
        chat: &str,
        directory: Option<PathBuf>,
        message: String,
        prompt: Box<Prompt>,
        again: SaidAgain,
    ) -> Result<ChatStream, ChatError> {
        let handle = match self.known(chat).await? {
            Some(id) => self.open(&id).await?,
            None => self.create(chat, directory).await?,
        };
        let message_id = self.message_id(&handle, chat, &message, again).await?;
        let client = ChatClient::with(PostedApprovals::default());
        let attachment = handle.attach(Some(client.clone()), AttachFrom::Now).await?;
        attachment.participant.ready();
        let prompt = Prompt { message_id: Some(message_id.clone()), ..*prompt };
        let ticket = handle.prompt_of(Some(client.clone()), prompt);
        let beginning = Beginning::Message { message_id, outcome: ticket.outcome };
        Ok(ChatStream::new(self.agent.hub.clone(), attachment, client, beginning))
    }

    /// Says to calls what a person said; what comes of it streams.
    pub(super) async fn answer(
        &self,
        chat: &str,
        message: String,
        posted: PostedApprovals,
    ) -> Result<ChatStream, ChatError> {
        let id = self.known(chat).await?.ok_or(ChatError::Unknown)?;
        let handle = self.open(&id).await?;
        let client = ChatClient::with(posted);
        let attachment = handle.attach(Some(client.clone()), AttachFrom::Now).await?;
        // Only now is it sure that the end of what runs will be seen.
        if !handle.status().await?.is_active() {
            return Err(ChatError::Conflict("no call of this chat waits for an answer".to_owned()));
        }
        attachment.participant.ready();
        let stream =
            ChatStream::new(self.agent.hub.clone(), attachment, client, Beginning::Continued { message });
        Ok(stream)
    }

    /// The run in flight from its beginning; `None` if there is none.
    pub(super) async fn resume(&self, chat: &str) -> Result<Option<ChatStream>, ChatError> {
        let Some(id) = self.known(chat).await? else { return Ok(None) };
        if !self.agent.hub.find(&id).await?.status().await?.is_active() {
            return Ok(None);
        }
        let handle = self.open(&id).await?;
        let client = ChatClient::with(PostedApprovals::default());
        let attachment = handle.attach(Some(client.clone()), AttachFrom::LiveRun).await?;
        // As above: a run that has ended meanwhile would never be seen to end.
        if !handle.status().await?.is_active() {
            return Ok(None);
        }
        attachment.participant.ready();
        let stream = ChatStream::new(self.agent.hub.clone(), attachment, client, Beginning::Run);
        Ok(Some(stream))
    }

    pub(super) async fn stop(&self, chat: &str) -> Result<(), ChatError> {
        let id = self.known(chat).await?.ok_or(ChatError::Unknown)?;
        self.open(&id).await?.cancel();
        Ok(())
    }

    /// The session of a chat: by its own id, or one that was made for it.
    async fn known(&self, chat: &str) -> Result<Option<SessionId>, ChatError> {
        for id in [SessionId::new(chat), session_of(chat)] {
            if self.store.session(&id).await?.is_some() {
                return Ok(Some(id));
            }
        }
        Ok(None)
    }

    /// A session that works elsewhere than this server may is as good as none.
    async fn open(&self, id: &SessionId) -> Result<SessionHandle, ChatError> {
        let root = self.agent.hub.root(id).await?;
        let host = &self.agent.host;
        if let Some(admitted) = host.admitted(vec![root.clone()])
            && admitted.await != [true]
        {
            return Err(ChatError::Unknown);
        }
        host.check_places(id, vec![root]).await.map_err(ChatError::Refused)?;
        Ok(self.agent.hub.open(id).await?)
    }

    async fn create(&self, chat: &str, directory: Option<PathBuf>) -> Result<SessionHandle, ChatError> {
        let root = directory.unwrap_or_else(|| self.usual.clone());
        if !root.is_absolute() {
            return Err(ChatError::Refused("cwd: must be an absolute path".to_owned()));
        }
        let host = &self.agent.host;
        let named = |reason| ChatError::Refused(format!("cwd: {reason}"));
        host.check_directory(&root).await.map_err(named)?;
        let new = NewSession { root: root.clone(), place: SessionPlace::default() };
        let handle = self.agent.hub.create_as(session_of(chat), new).await?;
        host.check_places(handle.id(), vec![root]).await.map_err(named)?;
        Ok(handle)
    }

    /// The id that a message is stored under: ids of clients are theirs alone, and a message that was rewound
    /// keeps its own. Rewinds to the message where it is said again.
    async fn message_id(
        &self,
        handle: &SessionHandle,
        chat: &str,
        message: &str,
        again: SaidAgain,
    ) -> Result<MessageId, ChatError> {
        for time in 0..TIMES_SENT {
            let id = MessageId::new(format!(
                "msg_{}",
                &digest(format!("{chat}\n{message}\n{time}").as_bytes())[..26]
            ));
            let Some((row, _)) = self.store.message(&id).await? else { return Ok(id) };
            if row.metadata.is_hidden() {
                continue;
            }
            match again {
                SaidAgain::IsTheSame => return Ok(id),
                SaidAgain::Replaces => {
                    handle.rewind(None, id).await?;
                }
            }
        }
        Err(ChatError::Refused(format!("this message was sent anew {TIMES_SENT} times; send another")))
    }
}

/// In the form that ids of sessions have, and the same for the same chat.
fn session_of(chat: &str) -> SessionId {
    SessionId::new(format!("ses_{}", &digest(chat.as_bytes())[..26]))
}
