//! The methods that clients can call, each with a sentence. `from_wire` reads them; the generated reference
//! lists them.

/// One method of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MethodEntry {
    /// The method's name.
    pub name: &'static str,
    /// What it does, for people.
    pub what: &'static str,
}

const fn method(name: &'static str, what: &'static str) -> MethodEntry {
    MethodEntry { name, what }
}

/// Every request that is answered.
pub const REQUESTS: [MethodEntry; 22] = [
    method("initialize", "Agrees on a version; says what both sides can do."),
    method("authenticate", "Logs in to a provider."),
    method("logout", "Deletes the stored keys."),
    method("session/new", "Makes a session in a directory."),
    method("session/load", "Opens a stored session and tells everything that was said in it."),
    method("session/resume", "Opens a stored session without telling it again."),
    method("session/fork", "Copies a session, up to its end or up to a message."),
    method("session/list", "Lists stored sessions."),
    method("session/delete", "Deletes a session with all its messages and attachments."),
    method("session/close", "Ends what runs in a session and closes it; it stays stored."),
    method("session/prompt", "Says something to the agent. Answered when its turn has ended."),
    method("session/set_mode", "Goes on with another agent."),
    method(
        "session/set_config_option",
        "Chooses the model, how much it thinks, or what runs without a question.",
    ),
    method("_attache/session/status", "Says what is going on in a session."),
    method("_attache/session/export", "Gives the conversation as text."),
    method("_attache/session/compact", "Summarises the conversation."),
    method("_attache/session/rewind", "Goes back to before a prompt, with the files that tools changed."),
    method("_attache/session/unrewind", "Takes the last rewind back."),
    method("_attache/commands/complete", "Says how a slash command that is being typed could go on."),
    method("_attache/queue/list", "Lists the prompts that wait."),
    method("_attache/queue/cancel", "Takes back a prompt that waits."),
    method("_attache/queue/edit", "Changes a prompt that waits."),
];

/// Messages without an id, which we never answer.
pub const NOTIFICATIONS: [MethodEntry; 2] = [
    method(CANCEL, "Ends the turn under way; its prompt is answered `cancelled`."),
    method("$/cancel_request", "Gives up a request that was sent before."),
];

pub(crate) const CANCEL: &str = "session/cancel";
