//! Asks the hooks of a moment one after the other and combines their replies. After the first hook that
//! objects, no other is asked.

use tokio_util::sync::CancellationToken;

use super::payload::{HookMatter, HookSurroundings};
use super::reply::{HookDecision, HookReply};
use super::{Hook, HookEvent, HookOwner, Hooks};
use crate::limits::HOOK_ABORT;
use crate::ports::hooks::{HookEnd, HookJob, HookRunner};
use crate::ports::tool::Site;

/// A moment that hooks may be for.
#[derive(Debug)]
pub(crate) struct HookMoment<'a> {
    pub(crate) event: HookEvent,
    pub(crate) matter: HookMatter<'a>,
    pub(crate) around: HookSurroundings<'a>,
    pub(crate) site: Site,
}

/// The combined replies of the hooks of a moment.
#[derive(Debug, Default)]
pub(crate) struct HooksSaid {
    /// How many ran.
    pub(crate) asked: usize,
    /// The hook that objects, and its reason.
    pub(crate) block: Option<HookWord>,
    /// The stricter decision if hooks differ.
    pub(crate) decision: Option<(HookDecision, HookWord)>,
    pub(crate) context: Vec<HookWord>,
    pub(crate) stop: Option<HookWord>,
    /// Messages to show to people.
    pub(crate) messages: Vec<HookWord>,
    /// The hooks that failed, by their positions among all hooks.
    pub(crate) failed: Vec<(usize, HookWord)>,
    /// The turn was cancelled while hooks ran.
    pub(crate) cancelled: bool,
}

/// What one hook said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HookWord {
    /// The hook's command, shortened.
    pub(crate) hook: String,
    pub(crate) text: String,
}

/// Whether any hook is for this event; if not, the caller skips the preparation.
pub(crate) fn has_any(hooks: &[Hook], event: HookEvent) -> bool {
    hooks.iter().any(|hook| hook.on.event == event)
}

pub(crate) async fn ask_hooks(
    hooks: &Hooks,
    runner: &dyn HookRunner,
    moment: HookMoment<'_>,
    cancel: &CancellationToken,
) -> HooksSaid {
    let mut said = HooksSaid::default();
    let of_event = hooks.iter().enumerate().filter(|(_, hook)| hook.on.event == moment.event);
    for (place, hook) in of_event.filter(|(_, hook)| moment.matter.concerns(hook, &moment.around)) {
        let input = moment.matter.told(hook, &moment.around);
        let job = HookJob { hook: hook.clone(), input, site: moment.site.clone() };
        said.asked += 1;
        let end = until_cancelled(runner, job, cancel).await;
        if end == HookEnd::Cancelled || cancel.is_cancelled() {
            said.cancelled = true;
            return said;
        }
        let word = |text: String| HookWord { hook: shortened(&hook.command.shown()), text };
        match HookReply::of(moment.event, &end) {
            Ok(reply) => said.add(hook.owner, reply, word),
            Err(why) => {
                tracing::warn!(
                    event = moment.event.as_str(),
                    hook = hook.command.shown(),
                    why,
                    "a hook failed"
                );
                said.failed.push((place, word(why)));
            }
        }
        if said.block.is_some() || said.stop.is_some() {
            break;
        }
    }
    said
}

/// Drops a runner that does not return in time; dropping its future ends the processes that it started.
async fn until_cancelled(runner: &dyn HookRunner, job: HookJob, cancel: &CancellationToken) -> HookEnd {
    let running = runner.run(job, cancel.clone());
    tokio::select! {
        biased;
        end = running => end,
        () = async {
            cancel.cancelled().await;
            tokio::time::sleep(HOOK_ABORT).await;
        } => HookEnd::Cancelled,
    }
}

impl HooksSaid {
    fn add(&mut self, owner: HookOwner, reply: HookReply, word: impl Fn(String) -> HookWord) {
        let HookReply { block, decision, context, stop, message } = reply;
        // A project's hook can't allow anything.
        let decision = decision.filter(|decision| match (decision, owner) {
            (HookDecision::Allow, HookOwner::Project) => false,
            (HookDecision::Allow, HookOwner::User) | (HookDecision::Ask, _) => true,
        });
        if let Some(decision) = decision
            && self.decision.as_ref().is_none_or(|(known, _)| *known < decision)
        {
            self.decision = Some((decision, word(String::new())));
        }
        self.block = block.map(&word);
        self.stop = stop.map(&word);
        self.context.extend(context.map(&word));
        self.messages.extend(message.map(&word));
    }
}

/// The command as notices and decisions show it.
fn shortened(command: &str) -> String {
    const CHARACTERS: usize = 100;
    match command.char_indices().nth(CHARACTERS) {
        None => command.to_owned(),
        Some((end, _)) => format!("{}…", &command[..end]),
    }
}
