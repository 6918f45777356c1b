//! The binary `attache`: reads arguments, environment and configuration once, composes the rooms, runs one command.

use std::process::ExitCode;

use anyhow::Result;

use crate::args::{Args, Command};
use crate::config::{Config, Environment};
use crate::dirs::Dirs;
use crate::setup::Setup;

mod acp;
mod answer;
mod args;
mod completions;
mod config;
mod demo;
mod dirs;
mod logging;
mod memory;
mod print_config;
mod sessions;
mod setup;
mod when;

fn main() -> ExitCode {
    memory::give_back_large_blocks();
    let args = Args::from_command_line();
    match run(&args) {
        Ok(code) => code,
        Err(error) => {
            // One line that says what went wrong, with what caused it.
            eprintln!("attache: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<ExitCode> {
    let environment = Environment::from_process();
    if let Some(Command::Completions { shell }) = &args.command {
        answer::forgive(completions::write(*shell, &mut answer::stream()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let dirs = Dirs::from_environment(&environment)?;
    let config = Config::load(args, &environment, &dirs)?;
    if args.global.print_config {
        answer::write(&print_config::text(&config))?;
        return Ok(ExitCode::SUCCESS);
    }
    let logging = logging::start(logging::Destination::of(args, &dirs), args.global.verbosity, &environment)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(WORKERS).enable_all().build()?;
    let code = match &args.command {
        Some(Command::Sessions(sessions)) => {
            let (store, set_aside) = setup::open_store(&config, &dirs)?;
            tell_set_aside(set_aside.as_deref());
            let done = runtime.block_on(sessions::run(&store, sessions.command.clone()));
            store.shutdown();
            done.map(|()| ExitCode::SUCCESS)
        }
        Some(Command::Demo) => runtime.block_on(demo::run()).map(|()| ExitCode::SUCCESS),
        Some(Command::Acp(acp_args)) => {
            let setup = Setup::open(&config, &dirs, acp_args.agent.as_deref())?;
            tell_set_aside(setup.set_aside.as_deref());
            runtime.block_on(acp::run(setup, &config, acp_args)).map(|()| ExitCode::SUCCESS)
        }
        Some(Command::Completions { .. }) | None => Ok(ExitCode::SUCCESS),
    };
    // A read of stdin that nobody will end must not keep the process.
    runtime.shutdown_background();
    drop(logging);
    code
}

/// One for the turn, one for the connection: the store and the pipes have threads of their own.
const WORKERS: usize = 2;

fn tell_set_aside(path: Option<&std::path::Path>) {
    if let Some(path) = path {
        eprintln!(
            "attache: the session database was damaged; it was moved to {} and a new one was made",
            path.display()
        );
    }
}
