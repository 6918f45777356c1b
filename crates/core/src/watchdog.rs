//! The watchdog: rules and verdicts. Pure; does not know which client is asked or how calls run.
//!
//! Rules come from three scopes (the agent's manifest, the configuration, the session). The most specific
//! matching rule decides; without one, the session's approval level and the host's containment decide. Every
//! verdict has a reason.

mod always;
mod approval;
mod closed;
mod judge;
mod loopback;
mod offer;
mod only_reads;
mod pattern;
mod project_secrets;
mod readings;
mod rule;
mod rulebook;
mod verdict;
mod within;

pub use always::Always;
pub use approval::{Approval, Containment, HostContainment};
pub use closed::{ReadRuleOrigin, ReadRules};
pub(crate) use judge::READING_COMMANDS_RUN;
pub use judge::{Commands, Judge, Judged, Matter};
pub(crate) use pattern::escaped;
pub use pattern::{Pattern, PatternBase};
pub(crate) use readings::readings;
pub use rule::{Action, Firmness, ManifestRule, Rule, Rules, Scope, meant_permission};
pub(crate) use rule::{EDIT, READ};
pub use rulebook::Rulebook;
pub use verdict::{Reason, Verdict};
