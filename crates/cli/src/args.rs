//! The command line: what can be typed, with its help. Says nothing about what the commands do.

mod chat;
mod inspection;
mod mcp;
mod serve;
mod session_options;
mod sessions;
mod started_at;

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Context;
use attache_core::legible::legible_path;
use attache_serve::client::ServerAddress;
use clap::{ArgAction, Parser, Subcommand};
use clap_complete::Shell;

use crate::mcp::with_options_first;
use crate::usage_error::OrWrongUsage;

use chat::one_prompt;
pub(crate) use chat::{AllowedAccess, ChatArgs, ChatOutput};
pub(crate) use inspection::{
    DiffArgs, ForeignArgs, ForeignName, ImportArgs, SearchArgs, ShowArgs, UsageArgs, UsageBy,
};
pub(crate) use mcp::{McpAddArgs, McpArgs, McpCommand, McpLoginArgs, McpServeArgs};
pub(crate) use serve::{ListenTarget, ServeArgs};
use sessions::at_least_one;
pub(crate) use sessions::{ExportArgs, ExportFormat, ListArgs, SessionsArgs, SessionsCommand};
pub(crate) use started_at::StartedAt;

/// A coding agent for editors (Agent Client Protocol) and this terminal
#[derive(Clone, Debug, Parser)]
#[command(name = "attache", version = crate::installation::VERSION, arg_required_else_help = true, disable_help_subcommand = true)]
#[command(help_template = MAIN_HELP, after_help = "Example:\n  attache demo")]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Option<CliCommand>,
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
}

#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct GlobalArgs {
    /// Configuration file, instead of the user's config.toml
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) config: Option<PathBuf>,
    /// Session database: a path or sqlite:PATH
    #[arg(long, value_name = "URL", global = true)]
    pub(crate) store: Option<String>,
    /// Show the configuration in force and where each value comes from, then exit
    #[arg(long, global = true)]
    pub(crate) print_config: bool,
    /// Log more to stderr; -vv and -vvv still more
    #[arg(short, long = "verbose", action = ArgAction::Count, global = true)]
    pub(crate) verbosity: u8,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// Run as the agent of an editor: ACP on stdin and stdout
    Acp(AcpArgs),
    /// Talk to the agent in this terminal, or once for a script (-p); what `attache` alone does
    Chat(ChatArgs),
    /// Play one full session in this terminal; needs no key and no network
    #[command(help_template = PLAIN_HELP, override_usage = "attache demo", after_help = "Example:\n  attache demo")]
    Demo,
    /// Show which models you can use now, and why not the others
    Models(ModelsArgs),
    /// Store, show and delete API keys
    Auth(AuthArgs),
    /// Check the setup and say what to fix
    Doctor(DoctorArgs),
    /// Put attache into the settings of an editor
    Init(InitArgs),
    /// Take over the sessions of Claude Code, Codex, goose, opencode and Gemini CLI
    Import(ForeignArgs),
    /// Show, add, test and remove MCP servers, or be one
    Mcp(McpArgs),
    /// Serve the agent to clients elsewhere, over WebSocket and HTTP
    Serve(ServeArgs),
    /// Search, show, export, import, archive and delete stored sessions
    Sessions(SessionsArgs),
    /// Allow a project's own configuration, or take that back
    Trust(TrustArgs),
    /// Sum up tokens and cost by day, model or workspace
    Usage(UsageArgs),
    /// Write completions for a shell to stdout
    #[command(
        hide = true,
        help_template = PLAIN_HELP_OF_A_SHELL, override_usage = "attache completions <SHELL>",
        after_help = "Example:\n  attache completions bash > ~/.local/share/bash-completion/completions/attache"
    )]
    Completions {
        /// Shell to write completions for
        shell: Shell,
    },
    /// Write the manual pages into a directory
    #[command(
        hide = true,
        help_template = PLAIN_HELP_OF_A_SHELL, override_usage = "attache manual <DIR>",
        after_help = "Example:\n  attache manual ~/.local/share/man/man1"
    )]
    Manual {
        /// Target directory; created if missing
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
}

/// All commands and options on one screen.
const MAIN_HELP: &str = "{about}: {usage}\n{subcommands}\nOptions:\n{options}{after-help}\n";

/// Help of a command that the options of all commands mean nothing to.
const PLAIN_HELP: &str = "{about}\n\n{usage-heading} {usage}{after-help}\n";
const PLAIN_HELP_OF_A_SHELL: &str =
    "{about}\n\n{usage-heading} {usage}\n\nArguments:\n{positionals}{after-help}\n";

#[derive(Clone, Debug, Default, clap::Args)]
#[command(after_help = "Example:\n  attache acp --model anthropic/claude-sonnet-5 --trace /tmp/acp.jsonl")]
pub(crate) struct AcpArgs {
    #[command(flatten)]
    pub(crate) sessions: SessionArgs,
    /// Whether to use the editor's files and terminals if it offers them
    #[arg(long, value_name = "WHEN", value_parser = ["auto", "never"])]
    pub(crate) client_fs: Option<String>,
    /// Write the ACP traffic to this file, one JSON object per line
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Bridge to `attache serve` instead: http(s)://HOST:PORT or unix:PATH
    #[arg(long, value_name = "URL", value_parser = ServerAddress::parse, conflicts_with_all = SESSION_OPTIONS)]
    pub(crate) connect: Option<ServerAddress>,
    /// Share one server with this user's other editors and terminals
    #[arg(long, conflicts_with_all = SESSION_OPTIONS, conflicts_with = "connect")]
    pub(crate) shared: bool,
    /// Ask for a key and store it, then exit; how an editor logs in
    #[arg(long, value_name = "PROVIDER", num_args = 0..=1)]
    pub(crate) login: Option<Option<String>>,
}

/// What the agent of a server has decided already.
const SESSION_OPTIONS: [&str; 6] = ["model", "agent", "approval", "sandbox", "client_fs", "trace"];

/// What every command takes that serves sessions.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct SessionArgs {
    /// Model of new sessions
    #[arg(long, value_name = "PROVIDER/MODEL")]
    pub(crate) model: Option<String>,
    /// Agent of new sessions
    #[arg(long, value_name = "ID")]
    pub(crate) agent: Option<String>,
    /// What runs without a question
    #[arg(long, value_name = "LEVEL", value_parser = ["ask", "edits", "all"])]
    pub(crate) approval: Option<String>,
    /// How to confine commands
    #[arg(long, value_name = "LEVEL", value_parser = ["auto", "require", "off"])]
    pub(crate) sandbox: Option<String>,
}

#[derive(Clone, Debug, Default, clap::Args)]
#[command(after_help = "Example:\n  attache init zed")]
pub(crate) struct InitArgs {
    /// The editor; if left out, all are listed
    pub(crate) editor: Option<String>,
    /// Print what to add instead of adding it
    #[arg(long, requires = "editor")]
    pub(crate) print: bool,
    /// Write the change without asking
    #[arg(long, requires = "editor", conflicts_with = "print")]
    pub(crate) yes: bool,
}

#[derive(Clone, Debug, Default, clap::Args)]
#[command(after_help = "Example:\n  attache trust ~/work/project")]
pub(crate) struct TrustArgs {
    /// The project; the current directory if left out
    #[arg(value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// Trust what is shown without asking
    #[arg(long, conflicts_with_all = ["revoke", "list"])]
    pub(crate) yes: bool,
    /// Stop trusting the project
    #[arg(long, conflicts_with = "list")]
    pub(crate) revoke: bool,
    /// Show which projects you trust
    #[arg(long, conflicts_with = "directory")]
    pub(crate) list: bool,
}

#[derive(Clone, Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
#[command(after_help = "Example:\n  attache models anthropic")]
pub(crate) struct ModelsArgs {
    #[command(subcommand)]
    pub(crate) command: Option<ModelsCommand>,
    /// Show all models of this provider
    pub(crate) provider: Option<String>,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum ModelsCommand {
    /// Fetch the newest data on models, their sizes and prices
    #[command(after_help = "Example:\n  attache models refresh")]
    Refresh,
}

#[derive(Clone, Debug, clap::Args)]
#[command(arg_required_else_help = true, disable_help_subcommand = true)]
#[command(after_help = "Example:\n  attache auth login anthropic")]
pub(crate) struct AuthArgs {
    #[command(subcommand)]
    pub(crate) command: AuthCommand,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum AuthCommand {
    /// Ask for a key, check it and store it in the keyring, or in a file that only you can read
    #[command(after_help = "Example:\n  attache auth login anthropic")]
    Login(LoginArgs),
    /// Show where the key of each provider comes from
    #[command(after_help = "Example:\n  attache auth status")]
    Status,
    /// Delete a key
    #[command(after_help = "Example:\n  attache auth logout anthropic")]
    Logout {
        /// Provider
        provider: String,
    },
}

#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct LoginArgs {
    /// Provider: anthropic, openai, gemini, … or one of your configuration; asks if left out
    pub(crate) provider: Option<String>,
    /// Store the key without trying it
    #[arg(long)]
    pub(crate) no_check: bool,
    /// Store it in the file even if there is a keyring
    #[arg(long)]
    pub(crate) file: bool,
}

#[derive(Clone, Debug, Default, clap::Args)]
#[command(after_help = "Example:\n  attache doctor")]
pub(crate) struct DoctorArgs {
    /// Show the settings for your editor instead, or for all of them
    #[arg(long, value_name = "EDITOR", num_args = 0..=1)]
    pub(crate) editors: Option<Option<String>>,
}

impl Args {
    /// Reads the process's arguments. The error is what clap says: help and version among them.
    pub(crate) fn from_command_line(started_at: StartedAt) -> Result<Self, clap::Error> {
        let mut words = with_options_first(with_help_as_option(std::env::args_os()));
        if words.len() == 1 && started_at == StartedAt::Terminal {
            words.push("chat".into());
        }
        Self::try_parse_from(words).map_err(one_prompt)?.with_command(started_at)
    }

    /// Moves to the directory of `--cwd`; what is named relative to where the command was typed stays that.
    pub(crate) fn settle_paths(&mut self) -> anyhow::Result<()> {
        let Some(CliCommand::Chat(ChatArgs { cwd: Some(directory), attach, schema, trace, .. })) =
            &mut self.command
        else {
            return Ok(());
        };
        let named = attach.iter_mut().chain(schema).chain(trace).chain(&mut self.global.config);
        for path in named {
            *path = std::path::absolute(&*path)?;
        }
        std::env::set_current_dir(&*directory)
            .with_context(|| format!("--cwd: can't work in {}", legible_path(directory)))
            .or_wrong_usage()
    }

    /// Whether an editor waits for answers to its requests.
    pub(crate) fn serves_an_editor(&self) -> bool {
        let serves = self.acp().is_some_and(|acp| acp.login.is_none());
        serves && !self.global.print_config
    }

    /// The options of `acp`, which `--print-config` takes into account too.
    pub(crate) fn acp(&self) -> Option<&AcpArgs> {
        match &self.command {
            Some(CliCommand::Acp(acp)) => Some(acp),
            Some(
                CliCommand::Chat(_)
                | CliCommand::Demo
                | CliCommand::Models(_)
                | CliCommand::Auth(_)
                | CliCommand::Doctor(_)
                | CliCommand::Init(_)
                | CliCommand::Import(_)
                | CliCommand::Mcp(_)
                | CliCommand::Serve(_)
                | CliCommand::Sessions(_)
                | CliCommand::Trust(_)
                | CliCommand::Usage(_)
                | CliCommand::Completions { .. }
                | CliCommand::Manual { .. },
            )
            | None => None,
        }
    }
}

/// `attache help auth login` is `attache auth login --help`. Not a command of clap's: its line in the help
/// would not fit the screen.
fn with_help_as_option(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = words.collect();
    if words.get(1).is_some_and(|word| word == "help") {
        words.remove(1);
        words.push("--help".into());
    }
    words
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn parse(line: &str) -> Result<Args, clap::Error> {
        Args::try_parse_from(std::iter::once("attache").chain(line.split_whitespace()))
    }

    #[test]
    fn the_definition_is_sound() {
        Args::command().debug_assert();
    }

    #[test]
    fn the_options_of_acp_reach_their_fields() {
        let args =
            parse("acp --model a/b --agent plan --trace t.jsonl --config c.toml --store sqlite:s.db -vv")
                .unwrap();
        let acp = args.acp().unwrap();
        assert_eq!(acp.sessions.model.as_deref(), Some("a/b"));
        assert_eq!(acp.sessions.agent.as_deref(), Some("plan"));
        assert_eq!(acp.trace, Some(PathBuf::from("t.jsonl")));
        assert_eq!(args.global.config, Some(PathBuf::from("c.toml")));
        assert_eq!(args.global.store.as_deref(), Some("sqlite:s.db"));
        assert_eq!(args.global.verbosity, 2);
    }

    #[test]
    fn print_config_stands_alone_or_behind_a_command() {
        assert!(parse("--print-config").unwrap().global.print_config);
        let args = parse("acp --model a/b --print-config").unwrap();
        assert!(args.global.print_config && args.acp().is_some());
    }

    #[test]
    fn models_takes_a_provider_or_refreshes() {
        let models = |line: &str| match parse(line).unwrap().command {
            Some(CliCommand::Models(models)) => (models.provider, models.command.is_some()),
            other => panic!("{other:?}"),
        };
        assert_eq!(models("models"), (None, false));
        assert_eq!(models("models anthropic"), (Some("anthropic".to_owned()), false));
        assert_eq!(models("models refresh"), (None, true));
    }

    #[test]
    fn an_editor_can_have_a_login_behind_its_usual_arguments() {
        let login = |line: &str| parse(line).unwrap().acp().unwrap().login.clone();
        assert_eq!(login("acp --model a/b"), None);
        assert_eq!(login("acp --model a/b --login"), Some(None));
        assert_eq!(login("acp --login groq"), Some(Some("groq".to_owned())));
    }

    #[test]
    fn export_has_a_format_and_an_output() {
        let Some(CliCommand::Sessions(sessions)) =
            parse("sessions export ses_1 --format csv -o x.csv").unwrap().command
        else {
            panic!("not sessions");
        };
        let SessionsCommand::Export(ExportArgs { id, format, output, force, redact }) = sessions.command
        else {
            panic!("not export")
        };
        assert!(!force && !redact);
        assert_eq!(
            (id.as_str(), format, output),
            ("ses_1", Some(ExportFormat::Csv), Some(PathBuf::from("x.csv")))
        );
    }

    #[test]
    fn usage_errors_exit_with_2_and_answers_with_0() {
        for line in [
            "",
            "nonsense",
            "acp --approval never",
            "acp --sandbox on",
            "acp --client-fs always",
            "models refresh anthropic",
            "auth logout",
            "sessions list --limit 0",
            "serve --listen nowhere",
            "serve --listen unix:",
            "acp --connect nowhere",
            "acp --connect http://127.0.0.1:1 --model a/b",
            "chat --connect http://127.0.0.1:1 --agent-command goose",
            "doctor now",
            "sessions",
            "sessions show",
            "completions tcl",
            "acp extra",
            "chat -p --output yaml",
            "chat -p --allow shell:ls",
            "chat -p --max-cost nothing",
            "chat -p --continue --resume ses_1",
            "chat -p --agent-command goose --approval all",
        ] {
            assert_eq!(parse(line).unwrap_err().exit_code(), 2, "{line}");
        }
        for line in ["--help", "--version", "acp --help", "sessions export --help"] {
            assert_eq!(parse(line).unwrap_err().exit_code(), 0, "{line}");
        }
    }

    #[test]
    fn every_help_fits_a_screen_and_ends_with_an_example() {
        let commands = [
            "",
            "acp",
            "chat",
            "demo",
            "models",
            "models refresh",
            "auth",
            "auth login",
            "auth status",
            "auth logout",
            "doctor",
            "mcp",
            "mcp list",
            "mcp add",
            "mcp import",
            "mcp serve",
            "serve",
            "sessions",
            "sessions list",
            "sessions show",
            "sessions search",
            "sessions export",
            "sessions import",
            "sessions diff",
            "usage",
            "import",
            "completions",
        ];
        for command in commands {
            let help = parse(&format!("{command} --help")).unwrap_err().to_string();
            assert!(help.lines().count() <= 24, "{help}");
            assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
            let tail: Vec<&str> = help.trim_end().lines().rev().take(2).collect();
            assert!(tail[1] == "Example:" && tail[0].starts_with("  attache "), "{help}");
        }
    }

    #[test]
    fn the_help_of_chat_names_every_option() {
        let help = parse("chat --help").unwrap_err().to_string();
        let mut command = Args::command();
        let chat = command.find_subcommand_mut("chat").unwrap();
        for option in chat.get_opts().chain(chat.get_arguments().filter(|argument| argument.is_positional()))
        {
            let name = option.get_long().map(|long| format!("--{long} "));
            assert!(help.contains(&name.unwrap_or_else(|| "PROMPT".to_owned())), "{option}");
        }
    }

    #[test]
    fn help_is_a_word_too() {
        let words = |line: &str| with_help_as_option(line.split_whitespace().map(OsString::from));
        assert_eq!(words("attache help"), ["attache", "--help"]);
        assert_eq!(words("attache help auth login"), ["attache", "auth", "login", "--help"]);
        assert_eq!(words("attache sessions list"), ["attache", "sessions", "list"]);
        assert_eq!(words("attache"), ["attache"]);
    }

    #[test]
    fn the_examples_of_the_help_are_valid_commands() {
        fn examples(command: &clap::Command, found: &mut Vec<String>) {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            found.extend(
                help.lines().filter_map(|line| line.trim().strip_prefix("attache ")).map(str::to_owned),
            );
            command.get_subcommands().for_each(|command| examples(command, found));
        }
        let mut found = Vec::new();
        examples(&Args::command(), &mut found);
        assert!(found.len() >= 8, "{found:?}");
        for line in found {
            let typed = line.split(" > ").next().unwrap();
            parse(typed).unwrap_or_else(|error| panic!("{line}: {error}"));
        }
    }
}
