//! What can be typed behind `attache chat`.

use std::path::PathBuf;

use attache_core::watchdog::{Rule, meant_permission};
use attache_serve::client::ServerAddress;
use clap::{CommandFactory, ValueEnum};

use crate::config::nearest;

#[derive(Clone, Debug, Default, clap::Args)]
#[command(help_template = HELP, override_usage = "attache chat [OPTIONS] [PROMPT]")]
#[command(after_help = "Example:\n  attache chat -p --attach build.log \"Why?\"")]
pub(crate) struct ChatArgs {
    /// What to ask first; with -p from standard input if left out
    pub(crate) prompt: Option<String>,
    /// Print one answer and exit
    #[arg(short, long)]
    pub(crate) print: bool,
    /// Form of the answer
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = ChatOutput::Text, requires = "print")]
    pub(crate) output: ChatOutput,
    /// Go on with the latest session of this directory
    #[arg(short, long = "continue", conflicts_with = "resume")]
    pub(crate) latest: bool,
    /// Go on with this session, or with `latest`; empty if the user is to choose one
    #[arg(short, long, value_name = "ID", num_args = 0..=1, default_missing_value = "")]
    pub(crate) resume: Option<String>,
    /// Add a file to the prompt
    #[arg(long, value_name = "FILE", requires = "print")]
    pub(crate) attach: Vec<PathBuf>,
    /// Require an answer in JSON that matches this schema
    #[arg(long, value_name = "FILE", requires = "print")]
    pub(crate) schema: Option<PathBuf>,
    /// Stop after this many model calls
    #[arg(long, value_name = "N", conflicts_with = "agent_command")]
    pub(crate) max_steps: Option<u32>,
    /// Stop at this cost in dollars
    #[arg(long, value_name = "USD", value_parser = dollars, requires = "print")]
    pub(crate) max_cost: Option<f64>,
    /// What runs without a question
    #[arg(long, value_name = "LEVEL", value_parser = ["ask", "edits", "all"], conflicts_with = "agent_command")]
    pub(crate) approval: Option<String>,
    /// Also allow this in this run
    #[arg(long, value_name = "RULE", value_parser = allowed, conflicts_with = "agent_command")]
    pub(crate) allow: Vec<AllowedAccess>,
    /// Model
    #[arg(long, value_name = "PROVIDER/MODEL")]
    pub(crate) model: Option<String>,
    /// Agent
    #[arg(long, value_name = "ID")]
    pub(crate) agent: Option<String>,
    /// How to confine commands
    #[arg(long, value_name = "LEVEL", value_parser = ["auto", "require", "off"], conflicts_with = "agent_command")]
    pub(crate) sandbox: Option<String>,
    /// Work in this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// Write lines only, each once: for screen readers
    #[arg(long, conflicts_with = "print")]
    pub(crate) plain: bool,
    /// Talk to this agent instead
    #[arg(long, value_name = "COMMAND")]
    pub(crate) agent_command: Option<String>,
    /// Talk to the agent of a server instead
    #[arg(
        long, value_name = "URL", value_parser = ServerAddress::parse,
        conflicts_with_all = ["agent_command", "max_steps", "approval", "allow", "sandbox"]
    )]
    pub(crate) connect: Option<ServerAddress>,
    /// Talk to the server shared by editors (`attache acp --shared`)
    #[arg(long, conflicts_with_all = ["agent_command", "connect", "max_steps", "approval", "allow", "sandbox"])]
    pub(crate) shared: bool,
    /// Write the ACP traffic to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
}

/// All on one screen, which the usual layout with the options of every command does not allow. A test holds it
/// against the options.
const HELP: &str = "\
{about}
{usage-heading} {usage}
  -p, --print            Print one answer; what is piped in is the prompt, or context of PROMPT
      --output FORMAT    With -p: text; json: one object; jsonl: each ACP update, then the object
  -c, --continue         Go on with the latest session of this directory
  -r, --resume [ID]      Go on with a session: the beginning of its id, `latest`, or choose one
      --attach FILE      With -p: add a file to the prompt; may be repeated
      --schema FILE      With -p: require an answer in JSON that matches this JSON Schema
      --max-steps N, --max-cost USD   Stop after so many model calls; with -p: at such a cost
      --approval LEVEL   What runs without a question: ask, edits or all
      --allow RULE       Permit more in this run: 'bash:cargo test *'; may be repeated
      --model P/M        Model, as `attache models` names it
      --agent ID         Agent: build, plan or one of yours
      --sandbox LEVEL    How to confine commands: auto, require or off
      --cwd DIR          Work there
      --plain            Write lines only, each once: for screen readers
      --agent-command C  Talk to this ACP agent instead: 'goose acp'
      --connect URL, --shared   Talk to a server (`attache serve`), or to that of `acp --shared`
      --trace FILE       Write the ACP traffic to this file
      --config FILE, --store URL, -v, --print-config: as for every command (attache --help)
Exit code of -p: 0 done, 1 failed, 2 usage, 3 refused or denied, 4 limit, 130 interrupted{after-help}
";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ChatOutput {
    #[default]
    Text,
    Json,
    Jsonl,
}

/// A permission with the pattern that it is given for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AllowedAccess {
    pub(crate) permission: String,
    pub(crate) pattern: String,
}

/// `PERMISSION` or `PERMISSION:PATTERN`; the permission of a tool of a server or an agent
/// has colons of its own.
fn allowed(text: &str) -> Result<AllowedAccess, String> {
    let is_of_other = ["mcp:", "agent:"].iter().any(|kind| text.starts_with(kind));
    let colons = if is_of_other { 2 } else { 0 };
    let (permission, pattern) = match text.match_indices(':').nth(colons) {
        Some((at, _)) => (&text[..at], &text[at + 1..]),
        None => (text, "*"),
    };
    if !Rule::is_known_permission(permission) {
        let known: Vec<&str> = Rule::known_permissions().filter(|name| Rule::is_access(name)).collect();
        let near = meant_permission(permission).or_else(|| nearest(permission, &known));
        let near = near.map(|near| format!(" (did you mean {near:?}?)")).unwrap_or_default();
        return Err(format!(
            "there is no permission {permission:?}{near}; give one of {}, the name of a tool, mcp:SERVER:TOOL or \
             agent:NAME:TOOL, and behind a colon what it is for: 'bash:cargo test *'",
            known.join(", ")
        ));
    }
    Ok(AllowedAccess { permission: permission.to_owned(), pattern: pattern.to_owned() })
}

fn dollars(text: &str) -> Result<f64, String> {
    let amount: Option<f64> = text.trim_start_matches('$').parse().ok();
    amount
        .filter(|amount| amount.is_finite() && *amount > 0.0)
        .ok_or_else(|| "give an amount of dollars above 0, such as 0.50".to_owned())
}

/// Words without quotes are the commonest slip of who asks something.
pub(super) fn one_prompt(error: clap::Error) -> clap::Error {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    let of_chat = std::env::args_os().nth(1).is_some_and(|command| command == "chat");
    let word = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(word)) if !word.starts_with('-') => word.clone(),
        Some(_) | None => return error,
    };
    if !of_chat || error.kind() != ErrorKind::UnknownArgument {
        return error;
    }
    let message = format!(
        "`{}` is a second prompt: put all of it in quotes, as in attache chat -p \"say hi there\"",
        word.escape_debug()
    );
    let mut command = super::Args::command();
    match command.find_subcommand_mut("chat") {
        Some(chat) => chat.error(ErrorKind::UnknownArgument, message),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_a_permission_and_a_pattern() {
        let rule = |text: &str| allowed(text).map(|rule| (rule.permission, rule.pattern));
        for (text, permission, pattern) in [
            ("bash:cargo test *", "bash", "cargo test *"),
            ("edit:src/**", "edit", "src/**"),
            ("bash", "bash", "*"),
            ("network:http://a:80", "network", "http://a:80"),
            ("mcp:github:create_issue", "mcp:github:create_issue", "*"),
            ("agent:child:write", "agent:child:write", "*"),
            ("agent:child:write:src/**", "agent:child:write", "src/**"),
            ("mcp:github:create_issue:x:y", "mcp:github:create_issue", "x:y"),
        ] {
            assert_eq!(rule(text), Ok((permission.to_owned(), pattern.to_owned())), "{text}");
        }
        for text in ["", "shell:ls", ":x", "cargo test *"] {
            assert!(rule(text).is_err(), "{text}");
        }
    }

    #[test]
    fn dollars_are_above_nothing() {
        assert_eq!(dollars("0.5"), Ok(0.5));
        assert_eq!(dollars("$2"), Ok(2.0));
        for text in ["0", "-1", "inf", "nan", "one"] {
            assert!(dollars(text).is_err(), "{text}");
        }
    }
}
