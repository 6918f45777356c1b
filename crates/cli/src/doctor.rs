//! `attache doctor`: tries everything that a user's setup can have wrong, and says what to do next. Leaves
//! nothing behind.
//!
//! Each check is a function that returns findings; a new check is a line in `run`.

use std::fmt::Write as _;
use std::process::ExitCode;

use anyhow::Result;
use attache_core::ports::store::ModelRef;

use crate::answer;
use crate::args::DoctorArgs;
use crate::config::{ConfigError, ConfigErrors};
use crate::installation::{self, VERSION};
use crate::providers::{LiveProviders, Standing};
use crate::setup::Sources;

mod commands;
pub(crate) mod editors;
mod files;
mod model;
mod project;
mod prompt;
mod store;
mod telemetry;
mod web_search;

/// What one check found.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Finding {
    /// What we checked, in one word.
    subject: &'static str,
    level: FindingLevel,
    text: String,
    /// What to do next, one way per line; empty if nothing is wrong.
    next: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FindingLevel {
    Ok,
    Warn,
    Fail,
}

impl Finding {
    fn ok(subject: &'static str, text: impl Into<String>) -> Self {
        Self { subject, level: FindingLevel::Ok, text: text.into(), next: String::new() }
    }

    fn warn(subject: &'static str, text: impl Into<String>, next: impl Into<String>) -> Self {
        Self { subject, level: FindingLevel::Warn, text: text.into(), next: next.into() }
    }

    fn fail(subject: &'static str, text: impl Into<String>, next: impl Into<String>) -> Self {
        Self { subject, level: FindingLevel::Fail, text: text.into(), next: next.into() }
    }
}

/// Asks a model for one word. `Err` says what went wrong, and what to do about it.
pub(crate) async fn try_model(
    sources: &Sources,
    live: &LiveProviders,
    standing: &Standing<'_>,
    model: &ModelRef,
) -> Result<String, String> {
    let Finding { level, text, next, .. } =
        prompt::check(sources, live, standing, model, model::ListedModels::Given).await;
    match level {
        FindingLevel::Ok => Ok(text),
        FindingLevel::Warn | FindingLevel::Fail if next.is_empty() => Err(text),
        FindingLevel::Warn | FindingLevel::Fail => Err(format!("{text}\n{next}")),
    }
}

pub(crate) async fn run(sources: &Sources, args: &DoctorArgs) -> Result<ExitCode> {
    if let Some(editor) = &args.editors {
        answer::write(&editors::settings(editor.as_deref(), answer::columns())?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut findings = vec![installed()];
    findings.push(files::configuration(&sources.config));
    findings.extend(files::modes(&sources.dirs));
    findings.push(files::room(&sources.dirs));
    findings.push(files::keys(&sources.credentials));
    findings.push(store::check(&sources.config));
    findings.extend(commands::shell());
    findings.extend(commands::platform());
    findings.push(commands::check(&sources.config));
    findings.extend(editors::check(&sources.dirs));
    findings.push(web_search::check(sources));
    findings.extend(telemetry::check(sources));
    findings.extend(project::check(sources).await);
    findings.extend(model::check(sources).await);
    tell(&findings)
}

/// Which program this is. Updating it is the installer's task.
fn installed() -> Finding {
    let how = installation::Installation::of_this_process();
    Finding::ok("installed", format!("{VERSION}, {how}; to renew it: {}", how.renewal()))
}

/// If the configuration does not parse, there is nothing else to check.
pub(crate) fn bad_configuration(errors: &ConfigErrors) -> Result<ExitCode> {
    let last = errors.0.len().saturating_sub(1);
    let finding = |(index, error): (usize, &ConfigError)| {
        let next = if index == last { "correct this, then run `attache doctor` again" } else { "" };
        Finding::fail("configuration", error.to_string(), next)
    };
    tell(&errors.0.iter().enumerate().map(finding).collect::<Vec<_>>())
}

/// 0 if nothing failed, else 1.
fn tell(findings: &[Finding]) -> Result<ExitCode> {
    let mut text = String::new();
    for finding in findings {
        let level = match finding.level {
            FindingLevel::Ok => "ok",
            FindingLevel::Warn => "warn",
            FindingLevel::Fail => "FAIL",
        };
        let found = finding.text.lines().map(str::trim).collect::<Vec<_>>().join(" ");
        writeln!(text, "{level:<4}  {:<13}  {found}", finding.subject)?;
        for line in finding.next.lines() {
            writeln!(text, "{:21}→ {line}", "")?;
        }
    }
    let failed = findings.iter().filter(|finding| finding.level == FindingLevel::Fail).count();
    match failed {
        0 => writeln!(text, "\nReady. To put attache into your editor's settings: attache init")?,
        1 => writeln!(text, "\nOne thing is wrong.")?,
        several => writeln!(text, "\n{several} things are wrong.")?,
    }
    answer::write(&text)?;
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
