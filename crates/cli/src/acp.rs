//! `attache acp`: the agent on stdin and stdout, until its editor leaves or a signal ends it.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use attache_acp::{Agent, Host, SameDirectory, connect, to_wire};
use attache_core::hub::Hub;
use attache_core::ports::{BoxFuture, Model};
use attache_rpc::{Options, Trace};
use tokio::signal::unix::{SignalKind, signal};

use crate::accounts::StoredKeys;
use crate::args::AcpArgs;
use crate::config::{Config, Thoughts};
use crate::setup::{Setup, Sources};

/// How long the last answers may take to leave; with the hub's own time the process is gone within 3 s.
const LAST_WORDS: Duration = Duration::from_millis(250);

/// When scratch directories are looked at that nobody needs any more: after the start is over, and daily.
const FIRST_LOOK_AT_SCRATCH: Duration = Duration::from_secs(60);
const NEXT_LOOK_AT_SCRATCH: Duration = Duration::from_secs(24 * 60 * 60);

pub(crate) async fn run(setup: Setup, sources: &Sources, args: &AcpArgs) -> Result<()> {
    let config = &sources.config;
    let trace = match &args.trace {
        Some(path) => {
            Some(Trace::open(path).with_context(|| format!("can't write the trace {}", path.display()))?)
        }
        None => None,
    };
    let options = Options {
        max_line_bytes: config.limits.max_line_bytes.value,
        trace: trace.clone(),
        ..Options::default()
    };
    look_for_models(&setup, config).await;
    tokio::spawn(keep_scratch_small(setup.hub.clone()));
    let agent = Agent {
        hub: setup.hub.clone(),
        accounts: Some(Arc::new(StoredKeys::new(sources.credentials.clone(), setup.providers.clone()))),
        clock: setup.clock.clone(),
        host: Arc::new(Machine),
        version: env!("CARGO_PKG_VERSION"),
        thoughts: match config.thoughts.value {
            Thoughts::Show => to_wire::Thoughts::Show,
            Thoughts::Drop => to_wire::Thoughts::Drop,
        },
        client_fs: config.client_fs.value,
    };
    let (mut terminated, mut interrupted) =
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let (reader, writer) = attache_rpc::stdio();
    let mut connection = connect(agent, reader, writer, options);
    tokio::select! {
        () = connection.wait_closed() => tracing::info!("the client has left"),
        _ = terminated.recv() => tracing::info!("terminated"),
        _ = interrupted.recv() => tracing::info!("interrupted"),
    }
    setup.hub.shutdown().await;
    connection.drain(LAST_WORDS).await;
    if let Some(trace) = trace {
        trace.flush().await;
    }
    setup.store.shutdown();
    Ok(())
}

/// Whoever has a model starts at once, and servers that are configured say meanwhile what they have. Whoever has none, or
/// has one of which only its server knows more, waits a moment for the server.
async fn look_for_models(setup: &Setup, config: &Config) {
    let unasked = setup.providers.unasked();
    let usual = setup.providers.available().first().map(|info| info.model.provider_id.clone());
    let first = config.model.as_ref().map(|model| model.value.provider_id.clone()).or(usual);
    if first.is_none_or(|provider| unasked.contains(&provider)) {
        setup.hub.refresh_choices().await;
    } else if !unasked.is_empty() {
        let hub = setup.hub.clone();
        tokio::spawn(async move { hub.refresh_choices().await });
    }
}

/// Now and then, and never while an editor waits for its first answers.
async fn keep_scratch_small(hub: Hub) {
    tokio::time::sleep(FIRST_LOOK_AT_SCRATCH).await;
    loop {
        if let Err(error) = hub.remove_old_scratch().await {
            tracing::warn!(%error, "old scratch directories stay");
        }
        tokio::time::sleep(NEXT_LOOK_AT_SCRATCH).await;
    }
}

/// What the adapter asks of this machine.
#[derive(Debug)]
struct Machine;

impl Host for Machine {
    fn compare_directories(&self, one: &Path, other: &Path) -> BoxFuture<'static, SameDirectory> {
        let names = [one.to_owned(), other.to_owned()];
        Box::pin(async move {
            let looked =
                tokio::task::spawn_blocking(move || names.map(|name| std::fs::metadata(name).ok())).await;
            match looked {
                Ok([Some(one), Some(other)])
                    if one.is_dir() && (one.dev(), one.ino()) == (other.dev(), other.ino()) =>
                {
                    SameDirectory::Same
                }
                Ok(_) | Err(_) => SameDirectory::Different,
            }
        })
    }

    fn check_directory(&self, path: &Path) -> BoxFuture<'static, Result<(), String>> {
        let path = path.to_owned();
        Box::pin(async move {
            let looked = tokio::task::spawn_blocking(move || std::fs::metadata(path)).await;
            match looked {
                Ok(Ok(metadata)) if metadata.is_dir() => Ok(()),
                Ok(Ok(_)) => Err("is not a directory".to_owned()),
                Ok(Err(error)) => Err(match error.kind() {
                    std::io::ErrorKind::NotFound => "does not exist".to_owned(),
                    _ => format!("can't be opened: {error}"),
                }),
                Err(_) => Err("could not be looked at".to_owned()),
            }
        })
    }
}
