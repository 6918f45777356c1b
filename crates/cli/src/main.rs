//! The binary `attache`: reads arguments, environment and configuration once, connects the crates, runs one
//! command.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;

use crate::args::{AcpArgs, Args, ChatArgs, CliCommand, StartedAt};
use crate::config::{Config, ProcessEnvironment};
use crate::dirs::Dirs;
use crate::first_start::FirstStart;
use crate::paint::Paint;
use crate::setup::Sources;

mod accounts;
mod acp;
mod agents;
mod answer;
mod args;
mod auth;
mod catalogue;
mod chat;
mod completions;
mod config;
mod connect;
mod consents;
mod credentials;
mod daemon;
mod damage;
mod demo;
mod dirs;
mod doctor;
#[cfg(test)]
mod documents;
mod first_start;
mod foreign;
mod foreign_agents;
mod guarded;
mod init;
mod installation;
mod jsonc;
mod limits;
mod logging;
mod manual;
mod mcp;
mod models;
mod paint;
mod platform;
mod print_config;
mod project_files;
mod projects;
mod providers;
mod sandbox;
mod serve;
mod sessions;
mod setup;
mod telemetry;
mod token;
mod troubles;
mod trust;
mod unfinished_imports;
mod usage;
mod usage_error;
mod web_search;
mod when;

fn main() -> ExitCode {
    // Before anything else: the helper of a sandbox must not read or start anything of ours.
    if let Some(code) = attache_sandbox::run_if_asked() {
        return code;
    }
    platform::give_back_large_blocks();
    let started_at =
        if answer::is_typed() && answer::is_seen() { StartedAt::Terminal } else { StartedAt::Elsewhere };
    let mut args = match Args::from_command_line(started_at) {
        Ok(args) => args,
        Err(usage) => return refuse_usage(&usage),
    };
    if let Err(error) = args.settle_paths() {
        answer::note(&format!("attache: {error:#}"));
        return usage_error::exit_code(&error);
    }
    if args.runs_an_agent() {
        // It runs commands of others: before the first of them, and before a key is read.
        platform::keep_others_out();
    }
    match run(&args) {
        Ok(code) => code,
        Err(error) => {
            // One line that says what went wrong and what caused it.
            answer::note(&format!("attache: {error:#}"));
            if args.serves_an_editor() {
                acp::refuse_from_the_start(&format!("{error:#}"));
            }
            usage_error::exit_code(&error)
        }
    }
}

/// Prints help and version as answers, and everything else on stderr. If an editor started its agent with a
/// wrong option, we also tell it over the protocol.
fn refuse_usage(usage: &clap::Error) -> ExitCode {
    let for_an_editor = std::env::args_os().nth(1).is_some_and(|command| command == "acp");
    if usage.use_stderr() && for_an_editor && !answer::is_typed() {
        answer::note(&usage.render().to_string());
        acp::refuse_from_the_start(usage.render().to_string().trim());
        return ExitCode::from(2);
    }
    if usage.use_stderr() {
        usage.exit();
    }
    // If the help could not be printed, the command has failed.
    let help = usage.render();
    let help = match Paint::for_answers() {
        Paint::Coloured => help.ansi().to_string(),
        Paint::Plain => help.to_string(),
    };
    match answer::write_painted(&help) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            answer::note(&format!("attache: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<ExitCode> {
    let environment = ProcessEnvironment::from_process();
    if let Some(CliCommand::Completions { shell }) = &args.command {
        answer::forgive(completions::write(*shell, &mut answer::stream()))?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(CliCommand::Manual { directory }) = &args.command {
        manual::write(directory)?;
        return Ok(ExitCode::SUCCESS);
    }
    let dirs = Dirs::from_environment(&environment)?;
    let config = match (Config::load(args, &environment, &dirs), &args.command) {
        (Ok(config), _) => config,
        (Err(errors), Some(CliCommand::Doctor(_))) => return doctor::bad_configuration(&errors),
        (Err(errors), _) => return Err(errors.into()),
    };
    if let (Some(CliCommand::Init(init)), false) = (&args.command, args.global.print_config) {
        return init::run(&dirs, init);
    }
    if let (Some(CliCommand::Trust(trust)), false) = (&args.command, args.global.print_config) {
        trust::run(&Arc::new(config), &dirs, trust)?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.global.print_config {
        let directory = std::env::current_dir().unwrap_or_default();
        answer::write(&print_config::text(&Sources::new(config, dirs, &environment), &directory))?;
        return Ok(ExitCode::SUCCESS);
    }
    let destination = logging::Destination::of(args, &dirs);
    let logging = logging::start(destination, args.global.verbosity, &environment)?;
    let sources = Sources::new(config, dirs, &environment);
    // If we cannot create our directories either, the command itself reports that; once is enough.
    if let Some(warning) = logging.warning()
        && sources.dirs.create().is_ok()
    {
        sources.troubles.report("There is no log file", warning.to_owned());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(WORKERS).enable_all().build()?;
    let code = runtime.block_on(command(args, &sources));
    if args.acp().is_none() {
        tell_troubles(args, &sources);
    }
    // A read of stdin that never ends must not keep the process alive.
    runtime.shutdown_background();
    drop(logging);
    code
}

/// Reports what works less well than requested, in a sentence each. An editor gets it with its next session.
fn tell_troubles(args: &Args, sources: &Sources) {
    // The doctor reports the same, with what to do.
    if matches!(args.command, Some(CliCommand::Doctor(_))) {
        return;
    }
    for trouble in sources.troubles.take() {
        answer::note(&format!("attache: {}: {}", trouble.title, trouble.description));
    }
}

async fn command(args: &Args, sources: &Sources) -> Result<ExitCode> {
    match &args.command {
        Some(CliCommand::Sessions(sessions)) => sessions::run(sources, sessions.command.clone()).await?,
        Some(CliCommand::Usage(usage)) => usage::run(sources, usage).await?,
        Some(CliCommand::Demo) => demo::run().await?,
        Some(CliCommand::Models(models)) => models::run(sources, models).await?,
        Some(CliCommand::Auth(auth)) => auth::AuthCommands::new(sources).run(&auth.command).await?,
        Some(CliCommand::Doctor(doctor)) => return doctor::run(sources, doctor).await,
        Some(CliCommand::Mcp(mcp)) => return mcp::run(sources, mcp).await,
        Some(CliCommand::Serve(serve)) => return serve::run(sources, serve).await,
        Some(CliCommand::Acp(AcpArgs { login: Some(provider), .. })) => {
            auth::AuthCommands::new(sources).login_to_any(provider.as_deref()).await?;
        }
        Some(CliCommand::Acp(AcpArgs { connect: Some(address), .. })) => {
            return connect::run(sources, address).await;
        }
        Some(CliCommand::Acp(acp_args)) if acp_args.shared => return daemon::run(sources, acp_args).await,
        Some(CliCommand::Acp(acp_args)) => {
            if answer::is_typed() {
                answer::note(ACP_ON_A_TERMINAL);
            }
            return acp::run(sources, acp_args).await;
        }
        Some(CliCommand::Chat(chat_args)) => {
            return match first_start::lead(args, chat_args, sources).await? {
                FirstStart::NotNeeded => chat::run(sources, &shared(sources, chat_args).await?).await,
                FirstStart::Configured(sources) => {
                    chat::run(&sources, &shared(&sources, chat_args).await?).await
                }
                FirstStart::Left(code) => Ok(code),
            };
        }
        Some(CliCommand::Import(import)) => return foreign::run(sources, import).await,
        Some(
            CliCommand::Init(_)
            | CliCommand::Trust(_)
            | CliCommand::Completions { .. }
            | CliCommand::Manual { .. },
        )
        | None => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// Sets the address of the shared server for a chat that wants one.
async fn shared(sources: &Sources, args: &ChatArgs) -> Result<ChatArgs> {
    let connect = match args.shared {
        true => daemon::address(sources).await?,
        false => args.connect.clone(),
    };
    Ok(ChatArgs { connect, ..args.clone() })
}

/// A user who types this command by hand most likely wanted another one.
const ACP_ON_A_TERMINAL: &str = "\
attache acp is what an editor starts: it waits for ACP messages, one JSON object per line, on standard input.
  attache                     talk to the agent here
  attache init                put attache into your editor's settings
  attache demo                see a whole session in this terminal
Ctrl-D ends it.";

/// One for the turn, one for the connection: the store and the pipes have their own threads.
const WORKERS: usize = 2;
