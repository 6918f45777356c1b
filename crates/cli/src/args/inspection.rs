//! The command line of what looks at sessions: search, import, diff, usage.

use std::path::PathBuf;

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
}
