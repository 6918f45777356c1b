//! The command line of what looks at sessions: search, import, diff, usage.

use std::path::PathBuf;

use clap::ValueEnum;

use super::at_least_one;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct SearchArgs {
    /// Words that must all occur; "words in quotes" stand together
    #[arg(required = true)]
    pub(crate) words: Vec<String>,
    /// Show the best N
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = at_least_one)]
    pub(crate) limit: usize,
    /// Only sessions of this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// Search archived sessions, too
    #[arg(long)]
    pub(crate) archived: bool,
    /// Print a JSON array
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ImportArgs {
    /// File that `attache sessions export` wrote as JSONL; - reads stdin
    pub(crate) file: PathBuf,
    /// Give it new ids, beside a session that is stored already
    #[arg(long)]
    pub(crate) new_ids: bool,
    /// Keep the permissions in the file: rules, directories, approval
    #[arg(long)]
    pub(crate) with_permissions: bool,
    /// Directory that the session works in, instead of the one that the file names
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
}

#[derive(Clone, Debug, Default, clap::Args)]
#[command(after_help = "Example:\n  attache import claude --all")]
pub(crate) struct ForeignArgs {
    /// Agent whose sessions to import; all found agents if left out
    #[arg(value_enum)]
    pub(crate) agent: Option<ForeignName>,
    /// Take over these: numbers in the list, or beginnings of ids; with --files, names
    #[arg(value_name = "SESSION")]
    pub(crate) sessions: Vec<String>,
    /// Take over all of them
    #[arg(long, conflicts_with = "sessions")]
    pub(crate) all: bool,
    /// Their commands, agents and skills instead, as files of yours
    #[arg(long)]
    pub(crate) files: bool,
    /// With --files: show what would be written, and write nothing
    #[arg(long, requires = "files")]
    pub(crate) dry_run: bool,
    /// Only sessions of this directory
    #[arg(long, value_name = "DIR", conflicts_with = "files")]
    pub(crate) workspace: Option<PathBuf>,
    /// Look for them here, not where the agent keeps them
    #[arg(long, value_name = "PATH", requires = "agent")]
    pub(crate) from: Option<PathBuf>,
    /// Print the list as a JSON array
    #[arg(long, conflicts_with_all = ["sessions", "all"])]
    pub(crate) json: bool,
}

/// An agent whose sessions can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ForeignName {
    Claude,
    Codex,
    Goose,
    Opencode,
    Gemini,
}

#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Example:\n  attache usage --by model --since 2026-03-01")]
pub(crate) struct UsageArgs {
    /// Group by
    #[arg(long, value_enum, default_value_t = UsageBy::Day)]
    pub(crate) by: UsageBy,
    /// Only from this day on, in your time zone
    #[arg(long, value_name = "YYYY-MM-DD")]
    pub(crate) since: Option<String>,
    /// Print a JSON array
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum UsageBy {
    Day,
    Model,
    Workspace,
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ShowArgs {
    /// Session id, its beginning, or `latest`
    pub(crate) id: String,
    /// Also show the arguments and output of each tool call
    #[arg(long)]
    pub(crate) full: bool,
    /// Show each turn with its steps, tokens, cost, calls and rules
    #[arg(long)]
    pub(crate) timeline: bool,
    /// With --timeline: show the text of each system prompt
    #[arg(long, requires = "timeline")]
    pub(crate) system_prompt: bool,
    /// Print everything that is stored, as JSON
    #[arg(long, conflicts_with_all = ["full", "timeline"])]
    pub(crate) json: bool,
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct DiffArgs {
    /// Session id, its beginning, or `latest`
    pub(crate) first: String,
    /// The one to compare it with
    pub(crate) second: String,
}
