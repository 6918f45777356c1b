//! `attache acp`: the agent on stdin and stdout, until its editor leaves or a signal ends it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use attache_acp::{Agent, Host, connect, to_wire};
use attache_core::ports::BoxFuture;
use attache_rpc::{Options, Trace};
use tokio::signal::unix::{SignalKind, signal};

use crate::args::AcpArgs;
use crate::config::{Config, Thoughts};
use crate::setup::Setup;

/// How long the last answers may take to leave; with the hub's own time the process is gone within 3 s.
const LAST_WORDS: Duration = Duration::from_millis(250);

pub(crate) async fn run(setup: Setup, config: &Config, args: &AcpArgs) -> Result<()> {
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
    let agent = Agent {
        hub: setup.hub.clone(),
        clock: setup.clock.clone(),
        host: Arc::new(Machine),
        accounts: None,
        version: env!("CARGO_PKG_VERSION"),
        thoughts: match config.thoughts.value {
            Thoughts::Show => to_wire::Thoughts::Show,
            Thoughts::Drop => to_wire::Thoughts::Drop,
        },
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

/// What the adapter asks of this machine.
#[derive(Debug)]
struct Machine;

impl Host for Machine {
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
