//! What begins turns without a client, as the configuration says, with the secrets from this environment; and
//! the file that notes up to when the schedule has run.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, anyhow};
use attache_acp::AgentServices;
use attache_core::legible::legible_line;
use attache_serve::limits::HOOK_SECRET_BYTES;
use attache_serve::{HookKey, ScheduleEntry, TriggerHost, Triggers, Webhook};
use rustix::fs::{FlockOperation, flock};

use crate::answer;
use crate::config::{ConfiguredTrigger, ConfiguredWebhook};
use crate::daemon::DaemonPlace;
use crate::dirs::append_private_file;
use crate::setup::Sources;
use crate::troubles::Troubles;
use crate::usage_error::WrongUsage;

const MISSED: &str = "A turn did not begin";

/// The error names file, line and key.
pub(super) async fn read(
    sources: &Sources,
    services: &AgentServices,
    keeper: &ScheduleKeeper,
) -> Result<Triggers> {
    let config = &sources.config;
    let all = config.schedules.iter().map(|schedule| &schedule.trigger);
    for trigger in all.chain(config.webhooks.iter().map(|webhook| &webhook.trigger)) {
        check_workspace(trigger, services).await?;
    }
    let webhooks = config.webhooks.iter().map(webhook).collect::<Result<_>>()?;
    let schedule = match keeper.is_ours() {
        false => Vec::new(),
        true => config
            .schedules
            .iter()
            .map(|entry| ScheduleEntry {
                trigger: entry.trigger.trigger.clone(),
                cron: entry.cron.value.clone(),
                prompt: entry.prompt.value.clone(),
            })
            .collect(),
    };
    Ok(Triggers { schedule, webhooks })
}

async fn check_workspace(trigger: &ConfiguredTrigger, services: &AgentServices) -> Result<()> {
    let ConfiguredTrigger { trigger, path, workspace_origin: origin, .. } = trigger;
    let Some(workspace) = &trigger.workspace else { return Ok(()) };
    services
        .host
        .check_directory(workspace)
        .await
        .map_err(|reason| WrongUsage::of(origin, format!("{origin}: `{path}.workspace`: {reason}")))
}

fn webhook(webhook: &ConfiguredWebhook) -> Result<Webhook> {
    let ConfiguredWebhook { trigger, secret, template, window, .. } = webhook;
    let (variable, origin, path) = (&secret.value, &secret.origin, &trigger.path);
    let refuse =
        |reason: String| anyhow!(WrongUsage::of(origin, format!("{origin}: `{path}.secret_env`: {reason}")));
    let text = std::env::var(variable).map_err(|_| refuse(format!("{variable} is not set")))?;
    let key = HookKey::new(&text).ok_or_else(|| {
        refuse(format!(
            "what {variable} holds is shorter than {HOOK_SECRET_BYTES} bytes: take `openssl rand -hex 32`"
        ))
    })?;
    Ok(Webhook { trigger: trigger.trigger.clone(), key, template: template.clone(), window: window.value })
}

/// Which server of this home runs the schedule, and up to when it has done so.
#[derive(Debug)]
pub(super) struct ScheduleKeeper {
    file: PathBuf,
    troubles: Troubles,
    /// Held as long as this process runs the schedule.
    lock: Option<File>,
    /// In milliseconds since 1970, by the names of entries. A lock, because each entry has a task.
    seen: Mutex<BTreeMap<String, i64>>,
}

impl ScheduleKeeper {
    /// A shared server runs no schedule: it does not run all the time.
    pub(super) fn open(sources: &Sources, shared: Option<&DaemonPlace>) -> Result<Arc<Self>> {
        let file = sources.dirs.schedule_file.clone();
        let has_schedule = shared.is_none() && !sources.config.schedules.is_empty();
        let lock = match has_schedule {
            false => None,
            true => lock(&file).with_context(|| format!("can't lock {}", file.display()))?,
        };
        if lock.is_none() && has_schedule {
            answer::note("attache: another server of this home keeps the schedule; this one does not");
        }
        let seen = match lock {
            Some(_) => read_seen(&file),
            None => BTreeMap::new(),
        };
        let troubles = sources.troubles.clone();
        Ok(Arc::new(Self { file, troubles, lock, seen: Mutex::new(seen) }))
    }

    fn is_ours(&self) -> bool {
        self.lock.is_some()
    }
}

/// `None` if another process holds it.
fn lock(file: &Path) -> io::Result<Option<File>> {
    let lock = append_private_file(&file.with_extension("lock"))?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(lock)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// If the file does not parse, we assume that no server ever ran, and report nothing as missed.
fn read_seen(file: &Path) -> BTreeMap<String, i64> {
    let read =
        std::fs::read(file).map_err(|error| (error.kind() == io::ErrorKind::NotFound, error.to_string()));
    let read =
        read.and_then(|bytes| serde_json::from_slice(&bytes).map_err(|error| (false, error.to_string())));
    read.unwrap_or_else(|(is_new, error)| {
        if !is_new {
            tracing::warn!(error, "the times of the schedule can't be read; missed runs are not told");
        }
        BTreeMap::new()
    })
}

fn write_seen(file: &Path, seen: &BTreeMap<String, i64>) -> io::Result<()> {
    let directory = file.parent().unwrap_or(Path::new("/"));
    let mut written = tempfile::Builder::new().prefix(".schedule-").tempfile_in(directory)?;
    written.write_all(serde_json::to_string(seen)?.as_bytes())?;
    written.persist(file)?;
    Ok(())
}

impl TriggerHost for ScheduleKeeper {
    fn seen_to(&self, entry: &str) -> Option<i64> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).get(entry).copied()
    }

    fn see_to(&self, entry: &str, at_ms: i64) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.insert(entry.to_owned(), at_ms);
        if let Err(error) = write_seen(&self.file, &seen) {
            tracing::warn!(%error, "the times of the schedule could not be written");
        }
    }

    fn tell(&self, text: &str) {
        answer::note(&format!("attache: {}", legible_line(text)));
    }

    fn warn(&self, text: &str) {
        self.troubles.report(MISSED, legible_line(text));
        self.tell(text);
    }
}
