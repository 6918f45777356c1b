//! Serves HTTP: bounded connections with time-outs, and no request comes in without the token. Knows no
//! protocol above it.

mod accepted;
mod access;
mod body;
mod events;
pub mod limits;
mod listener;
mod logins;
mod observed;
mod socket;
mod token;
mod tokens;

pub use accepted::{is_accepted, is_json};
pub use access::{AccessCheck, AccessRules, QueryToken, behind, refusal};
pub use body::{BodyError, read_body};
pub use events::event_body;
pub use listener::{HttpListener, ListenerAddress, ListenerLimits, host_names, loopback_names};
pub use logins::{LOGIN_PATH, PageLogins};
pub use observed::{ClientAddress, FinishedRequest, Observation, PeerAddress, RequestObserver, observed};
pub use token::{BearerToken, random_name};
pub use tokens::{NamedToken, OWN_NAME, PAGE_NAME, Requester, TokenDigest, TokenScope, TokenTable};
