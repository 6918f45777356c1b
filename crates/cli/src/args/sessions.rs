//! The command line of `attache sessions`.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};

use super::{DiffArgs, ImportArgs, SearchArgs, ShowArgs};

#[derive(Clone, Debug, clap::Args)]
#[command(arg_required_else_help = true, disable_help_subcommand = true)]
#[command(after_help = "Example:\n  attache sessions list")]
pub(crate) struct SessionsArgs {
    #[command(subcommand)]
    pub(crate) command: SessionsCommand,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// List sessions, the latest first
    #[command(after_help = "Example:\n  attache sessions list --limit 10")]
    List(ListArgs),
    /// Show one session
    #[command(after_help = "Example:\n  attache sessions show latest --full")]
    Show(ShowArgs),
    /// Search all sessions for words
    #[command(after_help = "Example:\n  attache sessions search login \"time out\"")]
    Search(SearchArgs),
    /// Compare two sessions turn by turn
    #[command(after_help = "Example:\n  attache sessions diff ses_019a2b3c4d5e ses_019a2b3c9f01")]
    Diff(DiffArgs),
    /// Export one session
    #[command(
        after_help = "Example:\n  attache sessions export ses_019a2b3c4d5e6fAbCdEfGhIjKl -o session.md"
    )]
    Export(ExportArgs),
    /// Import a session from a JSONL export
    #[command(after_help = "Example:\n  attache sessions import session.jsonl")]
    Import(ImportArgs),
    /// Leave one session out of the list; it stays stored
    #[command(after_help = "Example:\n  attache sessions archive ses_019a2b3c4d5e6fAbCdEfGhIjKl")]
    Archive {
        /// Session id, its beginning, or `latest`
        id: String,
        /// List it again
        #[arg(long)]
        undo: bool,
    },
    /// Delete one session with all its messages and attachments
    #[command(after_help = "Example:\n  attache sessions delete ses_019a2b3c4d5e6fAbCdEfGhIjKl")]
    Delete {
        /// Session id, its beginning, or `latest`
        id: String,
        /// Delete without asking
        #[arg(short, long)]
        yes: bool,
    },
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ExportArgs {
    /// Session id, its beginning, or `latest`
    pub(crate) id: String,
    /// Format; if left out, the ending of FILE decides, and jsonl without a FILE
    #[arg(long, value_enum)]
    pub(crate) format: Option<ExportFormat>,
    /// File to write, readable by you alone; stdout if left out
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Replace FILE if it exists
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
    /// Take out what looks like a secret, names of home directories and attachments
    #[arg(long)]
    pub(crate) redact: bool,
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ListArgs {
    /// List the newest N
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = at_least_one)]
    pub(crate) limit: usize,
    /// List every session
    #[arg(long, conflicts_with = "limit")]
    pub(crate) all: bool,
    /// List archived sessions, too
    #[arg(long)]
    pub(crate) archived: bool,
    /// List the sessions of subagents, too, below those they work for
    #[arg(long)]
    pub(crate) children: bool,
    /// Print a JSON array
    #[arg(long)]
    pub(crate) json: bool,
}

pub(super) fn at_least_one(text: &str) -> Result<usize, String> {
    let number: Option<usize> = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| "give a number from 1, or `--all` for every session".to_owned())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    Jsonl,
    Json,
    Md,
    Csv,
    Html,
}
