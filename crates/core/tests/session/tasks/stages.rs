//! The agents of these tests, and what they look at.

use attache_core::ids::SessionId;
use attache_core::part::{Part, Role};
use attache_core::ports::ModelRequest;

use crate::world::World;

const READER: &str = "---\nmode: subagent\ndescription: Looks.\nread_only: true\n---\nYou look.";
const WORKER: &str = "---\nmode: subagent\ndescription: Works.\n---\nYou work.";
/// Reads only, and delegates.
const LEAD: &str = "---\nmode: subagent\ndescription: Leads.\nread_only: true\n---\nYou lead.";
const WAKER: &str = "---\nmode: subagent\ndescription: Wakes.\nread_only: true\nwake: true\n---\nYou wake.";
const OPAQUE: &str =
    "---\nmode: subagent\ndescription: Is opaque.\nread_only: true\ninspectable: false\n---\nYou hide.";
const CHECKED: &str = "---\nmode: subagent\ndescription: Is checked.\nread_only: true\noutput_schema:\n  type: object\n  required: [count]\n  properties:\n    count:\n      type: integer\n---\nYou count.";

pub(crate) fn stage(script: &str) -> World {
    World::new(script).with_agents(&[
        ("reader", READER),
        ("worker", WORKER),
        ("lead", LEAD),
        ("waker", WAKER),
        ("opaque", OPAQUE),
        ("checked", CHECKED),
    ])
}

/// A line of a script that makes the call.
pub(crate) fn task(id: &str, agent: &str, prompt: &str) -> String {
    format!("call id={id} task {{\"subagent_type\":\"{agent}\",\"prompt\":\"{prompt}\"}}")
}

pub(crate) fn in_background(id: &str, agent: &str, prompt: &str) -> String {
    format!("call id={id} task {{\"subagent_type\":\"{agent}\",\"prompt\":\"{prompt}\",\"background\":true}}")
}

/// The children of a session, the first made first.
pub(crate) fn children(world: &World, parent: &SessionId) -> Vec<SessionId> {
    let disk = world.disk.lock().unwrap();
    let mut children: Vec<_> = disk
        .sessions
        .values()
        .filter(|row| row.parent_id.as_ref() == Some(parent) && row.metadata.child_of().is_some())
        .map(|row| row.id.clone())
        .collect();
    children.sort();
    children
}

/// The text of the last prompt in a request.
pub(crate) fn prompt_in(request: &ModelRequest) -> String {
    let user = request.passages.iter().rev().find(|passage| passage.role == Role::User).unwrap();
    user.parts
        .iter()
        .find_map(|part| match part {
            Part::Text { text, .. } => Some(text.clone()),
            _ => None,
        })
        .unwrap_or_default()
}
