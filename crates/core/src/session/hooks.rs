//! Hooks about a prompt: they run before the prompt is stored or queued, so that nothing of a prompt that a
//! hook blocks reaches the conversation.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::{Session, SessionCommand};
use crate::hooks::{
    self, HookEvent, HookMatter, HookMoment, HookSurroundings, HooksSaid, ask_hooks, has_any,
};
use crate::hub::{self, HubError};
use crate::ids::MessageId;
use crate::part::Part;
use crate::ports::store::SessionRecord;
use crate::ports::tool::Site;
use crate::prompt;
use crate::slash_commands;
use crate::watchdog::PatternBase;

impl Session {
    /// The parts of a prompt plus what hooks add for the model; `None`: the user cancelled, or the session
    /// ends. Hooks do not see a command that no model gets.
    pub(super) async fn ask_prompt_hooks(
        &mut self,
        mut parts: Vec<Part>,
        message_id: Option<&MessageId>,
    ) -> Result<Option<Vec<Part>>, HubError> {
        let hooks = self.hooks();
        let Some(runner) = self.hub.ports.hooks.clone() else { return Ok(Some(parts)) };
        if !has_any(&hooks, HookEvent::Prompt) || slash_commands::invocation(&parts).is_some() {
            return Ok(Some(parts));
        }
        let (text, workspace) = (prompt::text_of(&parts), Arc::new(self.workspace()));
        let (agent, approval) = (self.current_agent()?.id, self.approval());
        // Cancelled when the caller no longer waits for the answer.
        let cancel = CancellationToken::new();
        let dropped_with_us = cancel.clone().drop_guard();
        let asking = async {
            let around = HookSurroundings {
                session_id: &workspace.session_id,
                ground: PatternBase { root: &workspace.root, home: workspace.guarded.home() },
                agent: &agent,
                approval,
            };
            let (event, matter) = (HookEvent::Prompt, HookMatter::Prompt(&text));
            let moment = HookMoment { event, matter, around, site: Site::of_roots(workspace.clone()) };
            ask_hooks(&hooks, &*runner, moment, &cancel).await
        };
        let Some(said) = self.meanwhile(asking, message_id).await else { return Ok(None) };
        dropped_with_us.disarm();
        self.tell_of_hooks(&said);
        if let Some(word) = said.block.or(said.stop) {
            return Err(HubError::Invalid(format!("a hook refused this prompt: {}", word.text)));
        }
        let words = said.context.iter();
        parts.extend(words.map(|word| hooks::word_part(HookEvent::Prompt, &word.hook, &word.text)));
        Ok(Some(parts))
    }

    fn tell_of_hooks(&self, said: &HooksSaid) {
        let failed = said.failed.iter().map(|(_, word)| ("warning", "A hook failed (prompt)", word));
        let told = said.messages.iter().map(|word| ("info", "A hook says", word));
        for (severity, title, word) in failed.chain(told) {
            let description = Some(format!("`{}`: {}", word.hook, word.text));
            self.tell_ourselves(SessionCommand::Notice { severity, title: title.to_owned(), description });
        }
    }
}

/// Refuses to change a waiting prompt in a session that is not open if there are prompt hooks, because they
/// could not check it.
pub(super) async fn demand_none(hub: &hub::Shared, record: &SessionRecord) -> Result<(), HubError> {
    if hub.ports.hooks.is_none() {
        return Ok(());
    }
    let of_project = match &hub.ports.projects {
        Some(projects) => projects.settings(&record.row.workspace_root).await.hooks,
        None => hooks::Hooks::default(),
    };
    if [&hub.ports.settings.hooks, &of_project].iter().any(|hooks| has_any(hooks, HookEvent::Prompt)) {
        let text = "prompt hooks have to see what a prompt says: load the session before you edit it";
        return Err(HubError::Invalid(text.to_owned()));
    }
    Ok(())
}
