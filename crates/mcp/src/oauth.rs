//! Logging in to servers by OAuth 2.1: finds out where, sends the user there, keeps and renews what came of it.
//! Knows no keyring and no browser; opens nothing by itself.

mod access;
mod challenge;
mod client;
mod discovery;
mod error;
mod login;
mod record;
mod redirect;
mod secrets;
mod store;
mod tokens;
mod web;

pub use error::OAuthError;
pub use login::{FinishedLogin, LoginPlan, Logout, PendingLogin, Revocation};
pub use store::LoginStore;

pub(crate) use access::{AccessProblem, Bearer, LoginNeed, ServerAccess};
pub(crate) use challenge::BearerChallenge;
