//! What begins turns without a client: times of a schedule and webhooks. What comes of either is an ordinary
//! session, in which nobody answers questions.

mod cron;
mod hook_places;
mod runner;
mod schedule;
mod template;
mod webhooks;

use std::fmt::Debug;
use std::path::PathBuf;

use attache_core::watchdog::Approval;

pub use cron::{Cron, CronError};
pub(crate) use runner::TriggerRunner;
pub use schedule::ScheduleEntry;
pub(crate) use schedule::keep_schedule;
pub use template::PromptTemplate;
pub use webhooks::{HookKey, Webhook};
pub(crate) use webhooks::{Webhooks, webhook_router};

/// With what a turn works that no client began.
#[derive(Clone, Debug)]
pub struct Trigger {
    /// Of the schedule's entry, or of the webhook.
    pub name: String,
    /// `None`: where chats work whose client names no directory.
    pub workspace: Option<PathBuf>,
    /// `None`: as any new session.
    pub agent: Option<String>,
    /// `None`: as any new session.
    pub approval: Option<Approval>,
    /// In dollars: a turn that has cost so much is ended.
    pub max_cost: Option<f64>,
}

/// Everything that begins turns here.
#[derive(Clone, Debug, Default)]
pub struct Triggers {
    pub schedule: Vec<ScheduleEntry>,
    pub webhooks: Vec<Webhook>,
}

/// What triggers need of whoever runs the server. Called seldom; may write a file.
pub trait TriggerHost: Send + Sync + Debug {
    /// Until when the times of this entry were seen to, in milliseconds since 1970.
    fn seen_to(&self, entry: &str) -> Option<i64>;

    fn see_to(&self, entry: &str, at_ms: i64);

    /// What happened, for who reads along.
    fn tell(&self, text: &str);

    /// What did not happen, for everybody.
    fn warn(&self, text: &str);
}
