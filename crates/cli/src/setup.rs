//! Composes the rooms from the settings: store, models, tools, hub. Decides nothing beyond what the configuration says.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;
use attache_core::agents::{Agents, DEFAULT_AGENT};
use attache_core::hub::{Hub, Parts, Settings};
use attache_core::ids::Ids;
use attache_core::ports::Clock;
use attache_core::watchdog::{Approval, Containment};
use attache_store::{FileBlobs, Location, SqliteStore};

use crate::config::{Config, Durability};
use crate::dirs::Dirs;

/// The rooms, wired. Dropping it ends the store's threads.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) hub: Hub,
    pub(crate) store: SqliteStore,
    pub(crate) clock: Arc<dyn Clock>,
    /// A damaged database was moved here; the user has to be told.
    pub(crate) set_aside: Option<PathBuf>,
}

#[derive(Debug)]
struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> i64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_millis() as i64)
    }
}

impl Setup {
    pub(crate) fn open(config: &Config, dirs: &Dirs, agent: Option<&str>) -> Result<Self> {
        let agents = Agents::builtin();
        let agent = agent.unwrap_or(DEFAULT_AGENT);
        if agents.get(agent).is_none() {
            let known: Vec<_> = agents.ids().collect();
            anyhow::bail!("there is no agent `{agent}`; available: {}", known.join(", "));
        }
        let providers = config.open_providers()?;
        dirs.create()?;
        let (store, set_aside) = open_store(config, dirs)?;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        // The standard library seeds its hashers from the operating system; enough for digits that keep processes apart.
        let seed = RandomState::new().build_hasher().finish();
        let hub = Hub::new(Parts {
            leases: Arc::new(store.clone()),
            blobs: Arc::new(FileBlobs::new(dirs.blobs.clone())),
            model: Arc::new(providers),
            compaction: None,
            tools: attache_tools::builtin().into(),
            agents,
            ids: Arc::new(Ids::new(clock.clone(), seed)),
            clock: clock.clone(),
            settings: Settings {
                model: config.model.as_ref().map(|model| model.value.clone()),
                agent: agent.to_owned(),
                max_steps: config.limits.max_steps.value,
                scratch: dirs.scratch.clone(),
                approval: Approval::Ask,
                containment: Containment::None,
                platform: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            },
            store: Arc::new(store.clone()),
        });
        Ok(Self { hub, store, clock, set_aside })
    }
}

/// Opens the session database of this configuration.
pub(crate) fn open_store(config: &Config, dirs: &Dirs) -> Result<(SqliteStore, Option<PathBuf>)> {
    let database = config.store.value.clone();
    let beside = database.parent().map(PathBuf::from).unwrap_or_default();
    let location = Location { database, locks: beside.join("locks"), blobs: dirs.blobs.clone() };
    let durability = match config.durability.value {
        Durability::Normal => attache_store::Durability::Normal,
        Durability::Full => attache_store::Durability::Full,
    };
    let opened = SqliteStore::open(&location, durability)?;
    Ok((opened.store, opened.set_aside))
}
