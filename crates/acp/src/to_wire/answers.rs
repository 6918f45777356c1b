//! Our results and requests that are not updates: initialize, sessions, status, queue, permissions.

use std::path::PathBuf;

use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v1::{
    AgentAuthCapabilities, AgentCapabilities, AuthMethod, AuthMethodAgent, AuthMethodTerminal,
    Implementation, InitializeResponse, LogoutCapabilities, McpCapabilities, Meta, PermissionOption,
    PermissionOptionKind, PromptCapabilities, SessionAdditionalDirectoriesCapabilities, SessionCapabilities,
    SessionCloseCapabilities, SessionDeleteCapabilities, SessionForkCapabilities, SessionInfo,
    SessionListCapabilities, SessionResumeCapabilities, ToolCallStatus, ToolCallUpdate,
};
use attache_core::calendar::iso_8601;
use attache_core::choices::{Choices, Chosen};
use attache_core::chunk::ToolMarks;
use attache_core::events::{RunState, Runs, SessionStatus};
use attache_core::hub::QueuedMessage;
use attache_core::ids::SessionId;
use attache_core::metadata::OWN_KEY;
use attache_core::ports::client::{Ask, CallArguments, ModeProposal, Permission};
use attache_core::ports::store::SessionRow;
use attache_core::ports::tool::{Presentation, Shown};
use attache_core::slash_commands::CompletedCommand;
use attache_core::watchdog::Containment;
use serde_json::{Map, Value, json};

use crate::accounts::{CommandLine, Login, LoginWay};
use crate::from_wire::{LoginTerminals, TERMINAL_AUTH_KEY};

use super::fit::{self, FieldKind};
use super::legible::{fenced, literal, visible, visible_line};
use super::selection::{config_options, modes};
use super::{content, tool};

/// The logins a client can use, if the host manages credentials.
#[derive(Clone, Copy, Debug)]
pub struct Logins<'a> {
    /// How to log in; `None` if this host has no logins.
    pub ways: Option<&'a [Login]>,
    /// Whether the client can start a login in a terminal.
    pub terminals: LoginTerminals,
}

/// The handshake of an agent that could not start: it offers nothing.
pub fn failed_start_response(
    version: ProtocolVersion,
    agent_version: &str,
) -> Result<Value, serde_json::Error> {
    serde_json::to_value(InitializeResponse::new(version).agent_info(agent_info(agent_version)))
}

fn agent_info(version: &str) -> Implementation {
    Implementation::new("attache", version).title("Attaché".to_owned())
}

/// What this configuration supports, and nothing else.
pub fn initialize_response(
    version: ProtocolVersion,
    choices: &Choices,
    logins: Logins<'_>,
    agent_version: &str,
) -> Result<Value, serde_json::Error> {
    let prompts = PromptCapabilities::new()
        .image(choices.takes(|model| model.images, |agent| agent.images))
        .audio(choices.takes(|model| model.audio, |agent| agent.audio))
        .embedded_context(true);
    let sessions = SessionCapabilities::new()
        .list(SessionListCapabilities::new())
        .delete(SessionDeleteCapabilities::new())
        .resume(SessionResumeCapabilities::new())
        .close(SessionCloseCapabilities::new())
        .additional_directories(SessionAdditionalDirectoriesCapabilities::new())
        .fork(SessionForkCapabilities::new());
    let capabilities = AgentCapabilities::new()
        .load_session(true)
        .prompt_capabilities(prompts)
        .mcp_capabilities(McpCapabilities::new().http(true).sse(true))
        .session_capabilities(sessions)
        .auth(AgentAuthCapabilities::new().logout(logins.ways.map(|_| LogoutCapabilities::new())));
    let response = InitializeResponse::new(version)
        .agent_capabilities(capabilities)
        .auth_methods(logins.methods())
        .agent_info(agent_info(agent_version));
    let mut response = serde_json::to_value(response)?;
    // This is a proposal that the schema's types do not have yet.
    if let Some(sessions) =
        response.pointer_mut("/agentCapabilities/sessionCapabilities").and_then(Value::as_object_mut)
    {
        sessions.insert("runtimeContext".to_owned(), json!({}));
    }
    Ok(response)
}

impl Logins<'_> {
    fn methods(self) -> Vec<AuthMethod> {
        self.ways.unwrap_or_default().iter().map(|login| auth_method(login, self.terminals)).collect()
    }
}

fn auth_method(login: &Login, terminals: LoginTerminals) -> AuthMethod {
    let (id, name) = (login.id.clone(), login.name.clone());
    let description = Some(login.description.clone()).filter(|description| !description.is_empty());
    match &login.way {
        LoginWay::Agent => AuthMethod::Agent(AuthMethodAgent::new(id, name).description(description)),
        LoginWay::Terminal { arguments, command } => {
            let meta = terminals.meta.then(|| terminal_auth(&name, command));
            match terminals.typed {
                true => {
                    let method = AuthMethodTerminal::new(id, name).description(description);
                    AuthMethod::Terminal(method.args(arguments.clone()).meta(meta))
                }
                // A client that does not know types takes it for a method of the agent, and runs what `_meta`
                // says.
                false => {
                    AuthMethod::Agent(AuthMethodAgent::new(id, name).description(description).meta(meta))
                }
            }
        }
    }
}

fn terminal_auth(label: &str, command: &CommandLine) -> Meta {
    let environment: Map<String, Value> =
        command.environment.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    let told = json!({
        "label": label,
        "command": command.program,
        "args": command.arguments,
        "env": environment,
    });
    Meta::from_iter([(TERMINAL_AUTH_KEY.to_owned(), told)])
}

/// A row of `session/list`.
pub fn session_info(row: &SessionRow) -> SessionInfo {
    // Paths of a row may be invalid UTF-8, but paths on the wire must not.
    let directories = row.metadata.additional_directories();
    let child = row.metadata.child_of().and(row.parent_id.as_ref());
    let meta = child.map(|parent| {
        let ours = json!({ "parentId": parent, "agent": row.agent });
        Meta::from_iter([(OWN_KEY.to_owned(), ours)])
    });
    SessionInfo::new(row.id.as_str().to_owned(), row.workspace_root.to_string_lossy().into_owned())
        .meta(meta)
        .additional_directories(directories)
        .title(row.metadata.title().map(str::to_owned))
        .updated_at(iso_8601(row.updated_at))
}

/// The answer to opening a session: the same for new, load, resume and fork, but new and fork include the id.
pub fn session_result(session_id: Option<&SessionId>, choices: &Choices, chosen: &Chosen) -> Value {
    let mut result = json!({ "modes": modes(chosen), "configOptions": config_options(choices, chosen) });
    if let Some(session_id) = session_id {
        result["sessionId"] = json!(session_id);
    }
    result
}

/// The answer to `_attache/session/status`. `containment` says how a host confines commands, if it runs any.
pub fn status_result(status: &SessionStatus, containment: Option<Containment>) -> Value {
    let mut result = match &status.state {
        RunState::Idle => json!({ "state": "idle" }),
        RunState::Busy => json!({ "state": "busy" }),
        RunState::Retrying { attempt, message } => {
            json!({ "state": "retrying", "attempt": attempt, "message": message })
        }
        RunState::WaitingOnApproval => json!({ "state": "waiting_on_approval" }),
        RunState::WaitingOnUserInput => json!({ "state": "waiting_on_user_input" }),
        RunState::Error { message } => json!({ "state": "error", "message": message }),
    };
    if let Some(started_at) = status.started_at {
        result["startedAt"] = json!(iso_8601(started_at));
    }
    if let Some(message_id) = &status.message_id {
        result["messageId"] = json!(message_id);
    }
    match status.runs {
        Runs::Here => {}
        Runs::Elsewhere => result["runsIn"] = json!("another process"),
    }
    if let Some(containment) = containment {
        result["sandbox"] = json!(match containment {
            Containment::Full => "full",
            Containment::Reduced => "reduced",
            Containment::None => "none",
            Containment::ExplicitlyOff => "off",
        });
    }
    result
}

/// How a command that is being typed could go on.
pub fn completed_commands(completed: &[CompletedCommand]) -> Value {
    let entry = |done: &CompletedCommand| json!({ "value": done.value, "text": done.text });
    json!({ "completions": completed.iter().map(entry).collect::<Vec<_>>() })
}

/// A prompt that waits, with the blocks it was sent as.
pub fn queue_entry(queued: &QueuedMessage) -> Value {
    let prompt: Vec<_> = queued.parts.iter().filter_map(content::user_block).collect();
    json!({ "messageId": queued.message_id, "queuedAt": iso_8601(queued.queued_at), "prompt": prompt })
}

/// The question in the form the client shows to its user. Never cuts the title and hides nothing in it; cuts
/// raw data and diffs that would make the line too long.
pub fn permission_request(ask: &Ask, about: &Permission) -> Result<Value, serde_json::Error> {
    let title = match ask.presentation.title.is_empty() {
        true => &ask.tool_name,
        false => &ask.presentation.title,
    };
    let mut fields =
        tool::fields(&legible(&ask.presentation), &ToolMarks::default(), ToolCallStatus::Pending)
            .title(visible_line(title))
            .name(ask.tool_name.clone())
            .raw_input(tool::object("input", ask.input.clone()));
    let content = fields.content.get_or_insert_default();
    // If the reason names a place, do not mention it again.
    let is_named = |place: &PathBuf| about.why.contains(&place.display().to_string());
    if !about.outside.iter().all(is_named) {
        content.push(lies_outside(&about.outside).into());
    }
    content.push(format!("Asks because: {}", literal(&visible_line(&about.why))).into());
    let ours = json!({ "asks": "permission", "rules": about.rules });
    let call = ToolCallUpdate::new(ask.call_id.as_str().to_owned(), fields).meta(own_meta(ours));
    let mut call = serde_json::to_value(call)?;
    tool::name_new_files(&mut call);
    fit::cut(&mut call, &[FieldKind::Raw, FieldKind::Diff]);
    // Do not offer an answer that would have no effect.
    let always = |id, verb: &str, kind| {
        let name = about.rule_name.as_ref().map(|name| format!("{verb}: {}", visible_line(name)));
        name.map(|name| option(id, name, kind))
    };
    let options: Vec<PermissionOption> = [
        Some(option("allow_once", "Allow once".to_owned(), PermissionOptionKind::AllowOnce)),
        always("allow_always", "Always allow", PermissionOptionKind::AllowAlways),
        Some(option("reject_once", "Reject".to_owned(), PermissionOptionKind::RejectOnce)),
        always("reject_always", "Always reject", PermissionOptionKind::RejectAlways),
        // Last, because a client that distinguishes options only by kind takes the first of a kind.
        about.edits_name.as_ref().map(|name| {
            let name = format!("Always allow: {}", visible_line(name));
            option("allow_edits", name, PermissionOptionKind::AllowAlways)
        }),
        match about.arguments {
            CallArguments::Editable => {
                let name = "Allow with other arguments".to_owned();
                Some(option(EDIT_ARGUMENTS, name, PermissionOptionKind::AllowOnce))
            }
            CallArguments::Fixed => None,
        },
    ]
    .into_iter()
    .flatten()
    .collect();
    Ok(json!({ "sessionId": ask.session_id, "toolCall": call, "options": options }))
}

/// The id of the option that leads to a form with the arguments of the call.
pub const EDIT_ARGUMENTS: &str = "edit_arguments";

/// Whether the session goes on with another agent, with what that agent is to do.
pub fn mode_request(ask: &Ask, proposal: &ModeProposal) -> Result<Value, serde_json::Error> {
    let fields = tool::fields(&legible(&ask.presentation), &ToolMarks::default(), ToolCallStatus::Pending)
        .title(visible_line(&ask.presentation.title))
        .name(ask.tool_name.clone())
        .raw_input(tool::object("input", ask.input.clone()));
    let ours = json!({ "asks": "mode", "mode": proposal.agent });
    let call = ToolCallUpdate::new(ask.call_id.as_str().to_owned(), fields).meta(own_meta(ours));
    let mut call = serde_json::to_value(call)?;
    fit::cut(&mut call, &[FieldKind::Raw]);
    let name = visible_line(&proposal.name);
    let options = [
        option("allow_once", format!("Yes, go on in {name} mode"), PermissionOptionKind::AllowOnce),
        option("reject_once", "No, not yet".to_owned(), PermissionOptionKind::RejectOnce),
    ];
    Ok(json!({ "sessionId": ask.session_id, "toolCall": call, "options": options }))
}

/// What kind of question it is, for a client that answers automatically.
pub(super) fn own_meta(ours: Value) -> Meta {
    Meta::from_iter([(OWN_KEY.to_owned(), ours)])
}

fn option(id: &'static str, name: String, kind: PermissionOptionKind) -> PermissionOption {
    PermissionOption::new(id, name, kind)
}

/// Where a call would leave the workspace.
fn lies_outside(directories: &[PathBuf]) -> String {
    let names = directories.iter().map(|directory| directory.display().to_string());
    format!("Outside of the workspace:\n{}", fenced(&visible(&names.collect::<Vec<_>>().join("\n"))))
}

/// Makes texts visible, but not diffs, which the client compares with the file.
fn legible(presentation: &Presentation) -> Presentation {
    let mut presentation = presentation.clone();
    for shown in &mut presentation.content {
        match shown {
            Shown::Text { text } => *text = visible(text),
            Shown::Diff { .. } | Shown::Terminal { .. } | Shown::Image { .. } | Shown::Link { .. } => {}
        }
    }
    presentation
}
