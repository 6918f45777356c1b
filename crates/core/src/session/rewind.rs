//! Rewinds to a prompt and undoes that: hides and shows rows, then moves files. Deletes nothing.
//!
//! Rows go first, in one commit that also records that files are to follow. If the process dies in between, the
//! process that takes the lease next moves the rest: moving a file twice changes nothing.

use std::sync::Arc;

use super::choose::aside;
use super::{ClientSide, Session};
use crate::conversation::Conversation;
use crate::fork::near_prompt;
use crate::hooks;
use crate::hub::HubError;
use crate::ids::MessageId;
use crate::journal::replay::parts_of;
use crate::limits::{PROMPTS_LOOKED_AT, REWINDS_KEPT};
use crate::metadata::SessionMeta;
use crate::notice;
use crate::part::{Part, Role};
use crate::ports::store::{Change, MessageRow, PartRow, SpanMessages};
use crate::ports::tool::Site;
use crate::prompt::{media, shelf};
use crate::rewind::{MovedFiles, MovingFiles, NOTHING_PUT_BACK, RewindLayer, Rewound, Unrewound};
use crate::snapshot::{self, CallSnapshot, MoveDirection};
use crate::{environment, slash_commands};

/// ACP has no update that removes messages from a client's screen.
const LOAD_AGAIN: &str = "Load the session again to see it as it is.";

/// A prompt to which the session can go back.
#[derive(Debug)]
pub(super) struct PromptPlace {
    pub(super) message_id: MessageId,
    pub(super) seq: i64,
    pub(super) parts: Vec<Part>,
}

impl Session {
    /// Hides a prompt and everything after it; refused while a turn runs.
    pub(super) async fn rewind(
        &mut self,
        message_id: &MessageId,
        client: ClientSide,
    ) -> Result<Rewound, HubError> {
        self.demand_rest().await?;
        let rewound = async {
            let place = self.prompt_place(message_id).await?;
            let mut rewound = self.rewind_to(place, client).await?;
            let hidden = format!("{} messages are hidden. {LOAD_AGAIN}", rewound.hidden);
            rewound.after_index = self.tell_rewound("The conversation was rewound", &hidden).await?;
            Ok(rewound)
        };
        let rewound = rewound.await;
        self.go_on().await;
        rewound
    }

    /// Shows again what the last rewind hid.
    pub(super) async fn unrewind(&mut self, client: ClientSide) -> Result<Unrewound, HubError> {
        self.demand_rest().await?;
        let unrewound = async {
            let mut unrewound = self.take_rewind_back(client).await?;
            let restored = format!("{} messages are visible again. {LOAD_AGAIN}", unrewound.restored);
            unrewound.after_index = self.tell_rewound("A rewind was taken back", &restored).await?;
            Ok(unrewound)
        };
        let unrewound = unrewound.await;
        self.go_on().await;
        unrewound
    }

    async fn demand_rest(&mut self) -> Result<(), HubError> {
        if self.activity.is_ours() {
            return Err(HubError::Busy(self.id.clone()));
        }
        self.take_lease().await?;
        // What a dead owner left may be an open question.
        match self.activity.is_ours() {
            true => Err(HubError::Busy(self.id.clone())),
            false => Ok(()),
        }
    }

    /// Tells clients in words, because the protocol has no update for removed messages.
    async fn tell_rewound(&self, title: &str, description: &str) -> Result<u64, HubError> {
        let told = notice::passing("info", title, Some(description));
        self.journal.record_with(&aside(), vec![told], Vec::new())?;
        Ok(self.journal.settle().await?)
    }

    /// Hides a prompt and everything after it, up to the command that asks for it. Called under the lease.
    pub(super) async fn rewind_to(
        &mut self,
        place: PromptPlace,
        client: ClientSide,
    ) -> Result<Rewound, HubError> {
        self.finish_moving(client.clone()).await?;
        let (from_seq, before_seq) = (place.seq, self.end_of_the_past());
        let mut layers = self.row.metadata.rewinds();
        let now = self.hub.ports.clock.now_ms();
        let keeps_files = self.hub.ports.files.is_some();
        let files = if keeps_files { String::new() } else { NOTHING_PUT_BACK.to_owned() };
        let hidden_at = layers.last().map_or(now, |last| now.max(last.hidden_at + 1));
        let layer = RewindLayer { hidden_at, from_seq, before_seq, files };
        let (store, span) = (self.hub.ports.store.clone(), layer.span());
        let content = store.span(&self.id, span, SpanMessages::Visible, snapshot::PART_KIND).await?;
        self.cancel_tasks_since(from_seq).await?;
        layers.push(layer.clone());
        layers.drain(..layers.len().saturating_sub(REWINDS_KEPT));
        let hide = Change::HideMessages { span, hidden_at, updated_at: now };
        let moving = MovingFiles { layer, direction: MoveDirection::Back };
        let files = self.commit_and_move(hide, &layers, &moving, &content.snapshots, client).await?;
        let PromptPlace { message_id, parts, .. } = place;
        let parts = parts
            .into_iter()
            .filter(|part| !environment::is_news(part) && !hooks::is_word(part))
            .map(media::as_sent);
        let parts = shelf::parts_brought_back(parts.collect(), &*self.hub.ports.blobs).await?;
        let after_index = self.journal.durable();
        Ok(Rewound { message_id, parts, hidden: content.messages, files, after_index })
    }

    /// Shows again what the last rewind hid. Called under the lease.
    pub(super) async fn take_rewind_back(&mut self, client: ClientSide) -> Result<Unrewound, HubError> {
        self.finish_moving(client.clone()).await?;
        let mut layers = self.row.metadata.rewinds();
        let Some(layer) = layers.pop() else {
            return Err(HubError::Invalid(
                "there is nothing left to restore: nothing was rewound, or a turn has started since".into(),
            ));
        };
        let (store, span, hidden_at) = (self.hub.ports.store.clone(), layer.span(), layer.hidden_at);
        let hidden = SpanMessages::HiddenAt(hidden_at);
        let content = store.span(&self.id, span, hidden, snapshot::PART_KIND).await?;
        let show = Change::ShowMessages { span, hidden_at, updated_at: self.hub.ports.clock.now_ms() };
        let moving = MovingFiles { layer, direction: MoveDirection::Forward };
        let files = self.commit_and_move(show, &layers, &moving, &content.snapshots, client).await?;
        let after_index = self.journal.durable();
        Ok(Unrewound { restored: content.messages, files, after_index })
    }

    /// Commits the row changes and the note that files are to follow, then moves the files.
    async fn commit_and_move(
        &mut self,
        rows: Change,
        layers: &[RewindLayer],
        moving: &MovingFiles,
        snapshots: &[PartRow],
        client: ClientSide,
    ) -> Result<Option<MovedFiles>, HubError> {
        let calls = self.calls_of(snapshots).await?;
        let moves = self.hub.ports.files.is_some() && !calls.is_empty();
        let mut patch = self.empty_patch();
        patch.metadata.set_rewinds(layers);
        patch.metadata.set_moving_files(moves.then_some(moving));
        // Messages that told the surroundings may be hidden or visible again now.
        self.tell_environment_again(&mut patch.metadata);
        let changed = patch.metadata.clone();
        self.journal.change(vec![rows, Change::PatchSession(patch)])?;
        self.journal.settle().await?;
        self.row.metadata.merge(&changed);
        self.conversation_changed();
        match moves {
            true => self.move_files(moving.direction, &calls, client).await,
            false => Ok(self.hub.ports.files.as_ref().map(|_| MovedFiles::default())),
        }
    }

    fn conversation_changed(&mut self) {
        self.hub.histories.forget(&self.id);
        // A running command holds the conversation from before.
        self.conversation.rows_changed();
    }

    /// Files are moved with the session's own rights; grants for a single call have ended.
    fn site_of_files(&self, client: ClientSide) -> Site {
        Site {
            workspace: Arc::new(self.workspace()),
            granted: self.authority.get().granted.into(),
            judged: None,
            writes: Arc::default(),
            closed: None,
            client,
            seen: Arc::default(),
        }
    }

    /// Moves the files of some calls and records that this is done.
    async fn move_files(
        &mut self,
        direction: MoveDirection,
        calls: &[CallSnapshot],
        client: ClientSide,
    ) -> Result<Option<MovedFiles>, HubError> {
        let plan = snapshot::plan(calls, direction);
        let moved = match (self.hub.ports.files.clone(), self.snapshots.clone()) {
            (Some(mover), Some(shelf)) => {
                let moves = plan.moves.clone();
                let outcomes = mover.move_files(self.site_of_files(client), shelf, moves).await;
                Some(plan.moved(outcomes))
            }
            // Snapshots were turned off in the meantime.
            (None, _) | (_, None) => None,
        };
        let mut patch = self.empty_patch();
        patch.metadata.set_moving_files(None);
        let mut layers = self.row.metadata.rewinds();
        if let (MoveDirection::Back, Some(layer)) = (direction, layers.last_mut()) {
            let told = moved.as_ref().map(|moved| moved.in_words(&self.row.workspace_root));
            layer.files = told.unwrap_or_else(|| NOTHING_PUT_BACK.to_owned());
            patch.metadata.set_rewinds(&layers);
        }
        let changed = patch.metadata.clone();
        self.journal.change(vec![Change::PatchSession(patch)])?;
        self.journal.settle().await?;
        self.row.metadata.merge(&changed);
        Ok(moved)
    }

    /// Completes the move of files that a process did not finish before it died. Called under the lease.
    pub(super) async fn finish_moving(&mut self, client: ClientSide) -> Result<(), HubError> {
        let Some(MovingFiles { layer, direction }) = self.row.metadata.moving_files() else { return Ok(()) };
        let messages = match direction {
            MoveDirection::Back => SpanMessages::HiddenAt(layer.hidden_at),
            MoveDirection::Forward => SpanMessages::Visible,
        };
        let store = self.hub.ports.store.clone();
        let content = store.span(&self.id, layer.span(), messages, snapshot::PART_KIND).await?;
        let calls = self.calls_of(&content.snapshots).await?;
        let moved = self.move_files(direction, &calls, client).await?;
        let told = moved.map(|moved| moved.in_words(&self.row.workspace_root)).unwrap_or_default();
        let description = Some(told).filter(|told| !told.is_empty());
        let title = "A rewind that was interrupted is complete now";
        let told = notice::passing("info", title, description.as_deref());
        Ok(self.journal.record_with(&aside(), vec![told], Vec::new())?)
    }

    /// A turn of a model begins, so earlier rewinds become final. A conversation that starts again gets a new
    /// title.
    pub(super) fn settle_rewinds(&mut self, conversation: &Conversation) {
        if self.row.metadata.rewinds().is_empty() {
            return;
        }
        let mut patch = SessionMeta::default();
        patch.set_rewinds(&[]);
        if conversation.is_empty() {
            patch.forget_title();
        }
        self.row.metadata.merge(&patch);
        // Sets instead of merging: a null has to reach the row.
        self.news.unstored_mut().set_all(&patch);
    }

    /// The seq behind everything that a rewind can hide: the command that asks for the rewind stays visible.
    pub(super) fn end_of_the_past(&self) -> i64 {
        self.activity.live_run().map_or(self.conversation.next_seq(), |live| live.first_seq)
    }

    /// The prompt with this id.
    pub(super) async fn prompt_place(&self, message_id: &MessageId) -> Result<PromptPlace, HubError> {
        let stored = self.hub.ports.store.message(message_id).await?;
        let Some((row, rows)) = stored.filter(|(row, _)| row.session_id == self.id) else {
            let (store, end) = (&*self.hub.ports.store, self.end_of_the_past());
            let near = near_prompt(store, &self.id, end, message_id).await?;
            return Err(HubError::Invalid(format!("there is no message {message_id} in this session{near}")));
        };
        let seq = match row {
            MessageRow { metadata, .. } if metadata.is_cancelled_in_queue() => {
                return Err(HubError::Invalid(format!("message {message_id} was cancelled before its turn")));
            }
            MessageRow { seq: None, .. } => {
                return Err(HubError::Invalid(format!(
                    "message {message_id} still waits for its turn; cancel it instead"
                )));
            }
            MessageRow { metadata, .. } if metadata.is_hidden() => {
                return Err(HubError::Invalid(format!("message {message_id} was rewound already")));
            }
            MessageRow { role: Role::Assistant | Role::System, seq: Some(seq), .. } => {
                let nearest = self.prompt_before(seq).await?;
                return Err(HubError::Invalid(format!("message {message_id} is not a prompt{nearest}")));
            }
            MessageRow { role: Role::User, seq: Some(seq), .. } => seq,
        };
        Ok(PromptPlace { message_id: message_id.clone(), seq, parts: parts_of(&rows)? })
    }

    /// Names, for an error, the prompt before an answer.
    async fn prompt_before(&self, seq: i64) -> Result<String, HubError> {
        let prompts = self.hub.ports.store.last_prompts(&self.id, seq, 1).await?;
        let named = prompts.first().map(|(row, _)| format!("; the last prompt before it is {}", row.id));
        Ok(named.unwrap_or_default())
    }

    /// The last prompts to a model, the newest first.
    pub(super) async fn last_prompts(&self, limit: usize) -> Result<Vec<PromptPlace>, HubError> {
        let store = &self.hub.ports.store;
        let mut found = Vec::new();
        for (row, rows) in store.last_prompts(&self.id, self.end_of_the_past(), PROMPTS_LOOKED_AT).await? {
            let parts = parts_of(&rows)?;
            if slash_commands::invocation(&parts).is_none()
                && let Some(seq) = row.seq
            {
                found.push(PromptPlace { message_id: row.id, seq, parts });
            }
            if found.len() == limit {
                break;
            }
        }
        Ok(found)
    }
}
