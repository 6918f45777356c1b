//! One prompt, one answer and out: for scripts and pipelines. Nobody is asked anything: what needs a permission
//! is denied, told and counted.

mod choose;
mod collected;
mod denials;
mod end;
mod json_answer;
mod material;
mod printed;
mod questions;
mod run;
mod take;

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use attache_acp_client::{AgentDoor, Introduction, SessionStart};

pub use choose::RunChoices;
pub use denials::{DenialCause, DeniedCall};
pub use end::{RunEnd, RunReport};
pub use material::{AttachedContent, AttachedFile, Material};

/// Everything that one run is asked for.
#[derive(Clone, Debug)]
pub struct OneShot {
    pub material: Material,
    pub session: SessionChoice,
    /// Where a new session works, and where the latest is looked for.
    pub directories: SessionStart,
    pub output: RunOutput,
    pub schema: Option<AnswerSchema>,
    pub max_cost: Option<CostLimit>,
    pub choices: RunChoices,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionChoice {
    New,
    /// The one that was used last in the directory.
    Latest,
    /// By its id, or the beginning of it; it works where it was made, or in this directory.
    ById(String, Option<PathBuf>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunOutput {
    /// The answer as it streams.
    Text,
    /// One object at the end.
    Json,
    /// Each update as it came, then the same object.
    JsonLines,
}

/// The cost limit of a run.
#[derive(Clone)]
pub struct CostLimit {
    pub dollars: f64,
    /// Whether a model has a price, without which the limit holds nothing. `None` for an agent whose models are
    /// not known here.
    pub has_price: Option<Arc<PriceCheck>>,
}

/// Says whether the price of a model is known.
pub type PriceCheck = dyn Fn(&str) -> bool + Send + Sync;

impl std::fmt::Debug for CostLimit {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("CostLimit").field("dollars", &self.dollars).finish_non_exhaustive()
    }
}

/// The schema of the answer. The host knows how schemas are validated.
#[derive(Clone)]
pub struct AnswerSchema {
    /// As it is named to the agent.
    pub text: String,
    pub check: Arc<AnswerCheck>,
}

/// Says what does not fit.
pub type AnswerCheck = dyn Fn(&Value) -> Result<(), Vec<String>> + Send + Sync;

impl std::fmt::Debug for AnswerSchema {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("AnswerSchema").field("text", &self.text).finish_non_exhaustive()
    }
}

/// Where a run writes. A terminal gets control characters written out, since it would obey them.
pub trait RunConsole: Send {
    fn answer(&mut self) -> &mut (dyn Write + Send);
    /// Progress, for a person who watches.
    fn progress(&mut self, line: &str);
    /// Beside the answer, in any case.
    fn remark(&mut self, line: &str);
}

/// Opens the door, asks, and writes the answer. `interrupted` ends the turn; what was said until then is still
/// written.
pub async fn run(
    door: &dyn AgentDoor,
    introduction: Introduction,
    task: OneShot,
    console: &mut dyn RunConsole,
    interrupted: CancellationToken,
) -> RunReport {
    run::OneRun::new(task, console, interrupted).until_its_end(door, introduction).await
}
