//! Converts the parameters of every method to core values. Checks shapes, never whether a session, file or
//! model exists.
//!
//! A refusal names the field by its path. We ignore unknown keys, and use a field's fallback where the protocol
//! has one.

use std::path::{Path, PathBuf};

use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v1::ClientCapabilities;
use attache_core::export::Format;
use attache_core::hub::{ForkPoint, SessionPlace};
use attache_core::ids::{MessageId, SessionId};
use attache_core::ports::mcp::ServerEntry;
use attache_core::ports::store::ListedSessions;
use attache_core::prompt::Prompt;
use attache_rpc::{ErrorObject, code};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::limits::ID_BYTES;
pub(crate) use fields::quoted;
use fields::{Field, Object};
pub(crate) use methods::CANCEL;
use methods::NOTIFICATIONS;

mod arguments;
mod cursor;
mod fields;
pub mod methods;
mod prompt;
mod said;
mod servers;

pub use arguments::{EditedArguments, arguments};
pub use cursor::cursor;
pub use fields::Invalid;
pub use prompt::MESSAGE_ID_KEY;
pub use said::{Picked, choice, consent, filled, form, permitted};

/// Everything a client may request.
#[derive(Debug, PartialEq)]
#[allow(missing_docs, reason = "each is the method of the protocol that it is named after")]
pub enum ClientRequest {
    Initialize(Box<Initialize>),
    Authenticate { method_id: String },
    Logout,
    NewSession(Workplace),
    LoadSession { session_id: SessionId, workplace: Workplace },
    ResumeSession { session_id: SessionId, workplace: Workplace },
    ForkSession { session_id: SessionId, point: ForkPoint, workplace: Workplace },
    ListSessions(ListSessions),
    DeleteSession { session_id: SessionId },
    CloseSession { session_id: SessionId },
    Prompt { session_id: SessionId, prompt: Prompt },
    SetMode { session_id: SessionId, mode_id: String },
    SetConfigOption { session_id: SessionId, config_id: String, value: ConfigValue },
    Status { session_id: SessionId },
    Export { session_id: SessionId, format: Format },
    Compact { session_id: SessionId, keep: String },
    Rewind { session_id: SessionId, message_id: MessageId },
    Unrewind { session_id: SessionId },
    CompleteCommand { session_id: SessionId, text: String },
    QueueList { session_id: SessionId },
    QueueCancel { session_id: SessionId, message_id: MessageId },
    QueueEdit { session_id: SessionId, message_id: MessageId, prompt: Prompt },
}

/// The content of `initialize`.
#[derive(Debug, PartialEq)]
pub struct Initialize {
    /// The version that both sides speak.
    pub version: ProtocolVersion,
    /// What the client can do.
    pub capabilities: ClientCapabilities,
}

/// Where a session works.
#[derive(Clone, Debug, PartialEq)]
pub struct Workplace {
    /// Absolute; the host checks whether it exists.
    pub cwd: PathBuf,
    /// Further directories.
    pub additional_directories: Vec<PathBuf>,
    /// The MCP servers that the client wants to start or reach for this session.
    pub mcp_servers: Vec<ServerEntry>,
    /// Which place applies if the session already exists.
    pub place: PlaceChoice,
}

/// Which directories and servers a reopened session has from then on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlaceChoice {
    /// Those in the request.
    #[default]
    Requested,
    /// The session's current ones: the client only joins in.
    Kept,
}

impl From<Workplace> for SessionPlace {
    fn from(workplace: Workplace) -> Self {
        Self { additional: workplace.additional_directories, servers: workplace.mcp_servers }
    }
}

/// The parameters of `session/list`.
#[derive(Debug, PartialEq)]
pub struct ListSessions {
    /// Only sessions of this directory.
    pub cwd: Option<PathBuf>,
    /// The page starts after this position.
    pub after: Option<(i64, SessionId)>,
    /// Which kind of sessions.
    pub listed: ListedSessions,
}

/// The new value of an option.
#[derive(Debug, PartialEq, Eq)]
pub enum ConfigValue {
    /// One of its values, by its id.
    Id(String),
    /// On or off.
    Boolean(bool),
}

type ReadParams = fn(Object) -> Result<ClientRequest, Invalid>;

/// Reads one request. An unknown method and a bad field give different errors; neither has changed anything.
pub fn request(method: &str, params: Option<Box<RawValue>>) -> Result<ClientRequest, ErrorObject> {
    let Some(read) = reader(method) else {
        return Err(match NOTIFICATIONS.iter().any(|known| known.name == method) {
            true => ErrorObject::new(
                code::METHOD_NOT_FOUND,
                format!("{method} is a notification: send it without an id"),
            ),
            false => ErrorObject::method_not_found(method),
        });
    };
    Ok(Object::params(params).and_then(read)?)
}

/// Whether we answer this method.
pub(crate) fn is_request(method: &str) -> bool {
    reader(method).is_some()
}

fn reader(method: &str) -> Option<ReadParams> {
    let read: ReadParams = match method {
        "initialize" => initialize,
        "authenticate" => {
            |mut params| Ok(ClientRequest::Authenticate { method_id: short(params.required("methodId")?)? })
        }
        "logout" => |_| Ok(ClientRequest::Logout),
        "session/new" => {
            |mut params| Ok(ClientRequest::NewSession(workplace(&mut params, McpServers::Required)?))
        }
        "session/load" => |mut params| {
            let session_id = session_id(&mut params)?;
            Ok(ClientRequest::LoadSession {
                session_id,
                workplace: workplace(&mut params, McpServers::Required)?,
            })
        },
        "session/resume" => |mut params| {
            let session_id = session_id(&mut params)?;
            Ok(ClientRequest::ResumeSession {
                session_id,
                workplace: workplace(&mut params, McpServers::Optional)?,
            })
        },
        "session/fork" => |mut params| {
            let session_id = session_id(&mut params)?;
            let point = prompt::named_message(&mut params)?.map_or(ForkPoint::End, ForkPoint::Message);
            Ok(ClientRequest::ForkSession {
                session_id,
                point,
                workplace: workplace(&mut params, McpServers::Optional)?,
            })
        },
        "session/list" => list_sessions,
        "session/delete" => {
            |mut params| Ok(ClientRequest::DeleteSession { session_id: session_id(&mut params)? })
        }
        "session/close" => {
            |mut params| Ok(ClientRequest::CloseSession { session_id: session_id(&mut params)? })
        }
        "session/prompt" => |mut params| {
            let session_id = session_id(&mut params)?;
            Ok(ClientRequest::Prompt { session_id, prompt: prompt::prompt(&mut params)? })
        },
        "session/set_mode" => |mut params| {
            let session_id = session_id(&mut params)?;
            Ok(ClientRequest::SetMode { session_id, mode_id: short(params.required("modeId")?)? })
        },
        "session/set_config_option" => set_config_option,
        _ => extension(method)?,
    };
    Some(read)
}

/// The methods that only attache has.
fn extension(method: &str) -> Option<ReadParams> {
    Some(match method {
        "_attache/session/status" => {
            |mut params| Ok(ClientRequest::Status { session_id: session_id(&mut params)? })
        }
        "_attache/session/export" => export,
        "_attache/session/compact" => |mut params| {
            let session_id = session_id(&mut params)?;
            let keep = params.optional("keep").map_or_else(|| Ok(String::new()), Field::string)?;
            Ok(ClientRequest::Compact { session_id, keep })
        },
        "_attache/session/rewind" => |mut params| {
            let session_id = session_id(&mut params)?;
            let message_id = prompt::message_id(params.required("messageId")?)?;
            Ok(ClientRequest::Rewind { session_id, message_id })
        },
        "_attache/session/unrewind" => {
            |mut params| Ok(ClientRequest::Unrewind { session_id: session_id(&mut params)? })
        }
        "_attache/commands/complete" => |mut params| {
            let session_id = session_id(&mut params)?;
            let text = params.required("text")?.string()?;
            Ok(ClientRequest::CompleteCommand { session_id, text })
        },
        "_attache/queue/list" => {
            |mut params| Ok(ClientRequest::QueueList { session_id: session_id(&mut params)? })
        }
        "_attache/queue/cancel" => |mut params| {
            let session_id = session_id(&mut params)?;
            Ok(ClientRequest::QueueCancel {
                session_id,
                message_id: prompt::message_id(params.required("messageId")?)?,
            })
        },
        "_attache/queue/edit" => |mut params| {
            let session_id = session_id(&mut params)?;
            let message_id = prompt::message_id(params.required("messageId")?)?;
            Ok(ClientRequest::QueueEdit { session_id, message_id, prompt: prompt::prompt(&mut params)? })
        },
        _ => return None,
    })
}

/// The session that `session/cancel` names.
pub fn cancel(params: Option<Box<RawValue>>) -> Result<SessionId, Invalid> {
    session_id(&mut Object::params(params)?)
}

/// The version to speak with a client that sent this `initialize`.
pub fn protocol_version(params: Option<Box<RawValue>>) -> Result<ProtocolVersion, Invalid> {
    agreed_version(&mut Object::params(params)?)
}

fn agreed_version(params: &mut Object) -> Result<ProtocolVersion, Invalid> {
    let wanted = params.required("protocolVersion")?.unsigned_16()?;
    let ours = ProtocolVersion::V1;
    // There is no protocol below the first version: tell the client what we support.
    Ok(if wanted == 0 { ours } else { ours.min(ProtocolVersion::from(wanted)) })
}

fn initialize(mut params: Object) -> Result<ClientRequest, Invalid> {
    let version = agreed_version(&mut params)?;
    let capabilities = params.optional("clientCapabilities").map(Field::into_value);
    let capabilities = capabilities.and_then(|value| serde_json::from_value(value).ok()).unwrap_or_default();
    Ok(ClientRequest::Initialize(Box::new(Initialize { version, capabilities })))
}

/// The key in the `_meta` of client capabilities and of authentication methods by which clients learned of
/// terminal logins before the protocol had them; Zed still uses it.
pub const TERMINAL_AUTH_KEY: &str = "terminal-auth";

/// How we tell a client what to run for a login in one of its terminals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoginTerminals {
    /// By the type of the method.
    pub typed: bool,
    /// By the method's `_meta`.
    pub meta: bool,
}

impl LoginTerminals {
    /// What this client understands.
    pub fn of(client: &ClientCapabilities) -> Self {
        let announced = client.meta.as_ref().and_then(|meta| meta.get(TERMINAL_AUTH_KEY));
        Self { typed: client.auth.terminal, meta: announced.and_then(Value::as_bool) == Some(true) }
    }

    /// Whether it understands any of them.
    pub fn any(self) -> bool {
        self.typed || self.meta
    }
}

/// Whether a request must list its MCP servers, even if there are none.
#[derive(Clone, Copy)]
enum McpServers {
    Required,
    Optional,
}

fn workplace(params: &mut Object, servers: McpServers) -> Result<Workplace, Invalid> {
    let cwd = absolute(params.required("cwd")?)?;
    let additional_directories = match params.optional("additionalDirectories") {
        Some(directories) => directories.array()?.into_iter().map(absolute).collect::<Result<_, _>>()?,
        None => Vec::new(),
    };
    let servers = match servers {
        McpServers::Required if !params.has("mcpServers") => Some(params.required("mcpServers")?),
        McpServers::Required | McpServers::Optional => params.optional("mcpServers"),
    };
    let mcp_servers = match servers {
        Some(servers) => servers.array()?.into_iter().map(servers::server).collect::<Result<_, _>>()?,
        None => Vec::new(),
    };
    let keeps = params.meta().and_then(|mut meta| meta.optional(KEEP_PLACE_KEY));
    let place = match keeps.map(Field::boolean).transpose()? {
        Some(true) => PlaceChoice::Kept,
        Some(false) | None => PlaceChoice::Requested,
    };
    Ok(Workplace { cwd, additional_directories, mcp_servers, place })
}

/// The key under `_meta` for a client that joins a session and keeps its directories and servers.
const KEEP_PLACE_KEY: &str = "attache/keepPlace";

/// The key under `_meta` that also requests the sessions of subagents.
const CHILDREN_KEY: &str = "attache/children";

fn list_sessions(mut params: Object) -> Result<ClientRequest, Invalid> {
    let cwd = params.optional("cwd").map(absolute).transpose()?;
    let after = match params.optional("cursor") {
        None => None,
        Some(field) => {
            let unknown = field.invalid("is not a cursor of this agent");
            Some(cursor::place(&field.string()?).ok_or(unknown)?)
        }
    };
    let children = params.meta().and_then(|mut meta| meta.optional(CHILDREN_KEY));
    let listed = match children.map(Field::boolean).transpose()? {
        Some(true) => ListedSessions::WithChildren,
        Some(false) | None => ListedSessions::Own,
    };
    Ok(ClientRequest::ListSessions(ListSessions { cwd, after, listed }))
}

fn set_config_option(mut params: Object) -> Result<ClientRequest, Invalid> {
    let session_id = session_id(&mut params)?;
    let config_id = short(params.required("configId")?)?;
    let boolean = params.lenient_string("type").as_deref() == Some("boolean");
    let value = params.required("value")?;
    let value = if boolean { ConfigValue::Boolean(value.boolean()?) } else { ConfigValue::Id(short(value)?) };
    Ok(ClientRequest::SetConfigOption { session_id, config_id, value })
}

fn export(mut params: Object) -> Result<ClientRequest, Invalid> {
    let session_id = session_id(&mut params)?;
    let Some(field) = params.optional("format") else {
        return Ok(ClientRequest::Export { session_id, format: Format::Jsonl });
    };
    let path = field.path().to_owned();
    let name = field.string()?;
    match Format::parse(&name) {
        Some(format) => Ok(ClientRequest::Export { session_id, format }),
        None => {
            Err(Invalid::new(path, format!("must be jsonl, json, md, csv or html, not {}", quoted(&name))))
        }
    }
}

fn session_id(params: &mut Object) -> Result<SessionId, Invalid> {
    Ok(SessionId::new(short(params.required("sessionId")?)?))
}

/// An id, no longer than an error may repeat.
fn short(field: Field) -> Result<String, Invalid> {
    let path = field.path().to_owned();
    let text = field.string()?;
    match text.len() <= ID_BYTES {
        true => Ok(text),
        false => Err(Invalid::new(path, format!("is longer than {ID_BYTES} bytes: {}", quoted(&text)))),
    }
}

fn absolute(field: Field) -> Result<PathBuf, Invalid> {
    let path = field.path().to_owned();
    let text = field.string()?;
    match Path::new(&text).is_absolute() && !text.contains('\0') {
        true => Ok(PathBuf::from(text)),
        false => Err(Invalid::new(path, format!("must be an absolute path, not {}", quoted(&text)))),
    }
}

#[cfg(test)]
mod tests;
