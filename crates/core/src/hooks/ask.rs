//! Asks the hooks of a moment, one after the other, and puts together what they say. The first that is against
//! it is the last that is asked.

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

/// What the hooks of a moment said together.
#[derive(Debug, Default)]
pub(crate) struct HooksSaid {
    /// How many were run.
    pub(crate) asked: usize,
    /// Who is against it, and why.
    pub(crate) block: Option<HookWord>,
    /// The stricter one where they differ.
    pub(crate) decision: Option<(HookDecision, HookWord)>,
    pub(crate) context: Vec<HookWord>,
    pub(crate) stop: Option<HookWord>,
    /// For people.
    pub(crate) messages: Vec<HookWord>,
    /// Those that did not work, by their places among all.
    pub(crate) failed: Vec<(usize, HookWord)>,
    /// Nobody waits for it any more.
    pub(crate) cancelled: bool,
}

/// What one hook said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HookWord {
    /// Its command, shortened.
    pub(crate) hook: String,
    pub(crate) text: String,
}

/// Whether any hook could be for this event: nothing is made ready where none is.
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

/// A runner that does not come back in time is left alone: what it started dies with its future.
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
        // What a project says makes nothing looser.
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

/// What notices and decisions show of a command.
fn shortened(command: &str) -> String {
    const CHARACTERS: usize = 100;
    match command.char_indices().nth(CHARACTERS) {
        None => command.to_owned(),
        Some((end, _)) => format!("{}…", &command[..end]),
    }
}
