//! What somebody meets who has just installed attache: no key, a wrong key, a server that is down, a model that
//! is not there. Every answer has to say what to do next, and no answer may show a key.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on must fail loudly")]

mod bare;
mod canary;
mod doctor;
mod first_start;
mod keyring;
mod keys;
mod logins;
mod models;
mod named;
mod nothing;
mod prompts;
mod refresh;
mod stage;
