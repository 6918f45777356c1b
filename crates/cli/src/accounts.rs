//! Login and logout as editors do them: looks for keys again, or forgets the stored ones. Never sees a key.

use attache_acp::{Accounts, CommandLine, Login, LoginWay};
use attache_core::hub::HubError;
use attache_core::ports::{BoxFuture, Model};

use crate::credentials::Credentials;
use crate::providers::LiveProviders;

/// `authenticate` with this method looks for keys again: the user may have stored one in another terminal.
const LOOK_AGAIN: &str = "stored-key";

/// The option, after the usual arguments, that makes us ask for a key.
const LOGIN: &str = "--login";

/// The editor runs us in a terminal, where a person types the key.
const TERMINAL: &str = "terminal-login";

#[derive(Debug)]
pub(crate) struct StoredKeys {
    credentials: Credentials,
    providers: LiveProviders,
    /// The command line that lets a person type the key.
    login: CommandLine,
}

impl StoredKeys {
    pub(crate) fn new(credentials: Credentials, providers: LiveProviders, login: CommandLine) -> Self {
        Self { credentials, providers, login }
    }
}

/// This program with its own arguments and the variables that set it up, because the editor may have started it
/// with variables that its terminals lack. Leaves out keys.
pub(crate) fn own_login() -> CommandLine {
    let is_setting = |name: &str| {
        let places = ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "HOME"];
        name.starts_with("ATTACHE_") || places.contains(&name)
    };
    // The wire cannot carry a value that is not Unicode.
    let environment = std::env::vars_os().filter_map(|(name, value)| {
        Some((name.into_string().ok().filter(|name| is_setting(name))?, value.into_string().ok()?))
    });
    let own = std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned());
    // If we do not know our path, the terminal looks for the name.
    let program = std::env::current_exe().unwrap_or_else(|_| "attache".into());
    CommandLine {
        program: program.to_string_lossy().into_owned(),
        arguments: own.chain([LOGIN.to_owned()]).collect(),
        environment: environment.collect(),
    }
}

impl Accounts for StoredKeys {
    fn logins(&self) -> Vec<Login> {
        vec![
            Login {
                id: TERMINAL.to_owned(),
                name: "Enter an API key".to_owned(),
                description: "Asks in a terminal for the provider and its key, checks the key and keeps it.".to_owned(),
                way: LoginWay::Terminal { arguments: vec![LOGIN.to_owned()], command: self.login.clone() },
            },
            Login {
                id: LOOK_AGAIN.to_owned(),
                name: "Use a stored key or a local server".to_owned(),
                description: "Run `attache auth login PROVIDER` in a terminal first, or start ollama, llama.cpp, LM Studio or \
                              vLLM. A key in the environment (ANTHROPIC_API_KEY, …) is found at start."
                    .to_owned(),
                way: LoginWay::Agent,
            },
        ]
    }

    fn authenticate(&self, _id: &str) -> BoxFuture<'static, Result<(), String>> {
        let (providers, credentials) = (self.providers.clone(), self.credentials.clone());
        Box::pin(async move {
            providers.look_again().await;
            match (providers.available().is_empty(), credentials.read().trouble()) {
                (false, _) => Ok(()),
                (true, Some(trouble)) => Err(trouble.to_string()),
                (true, None) => Err(HubError::NoModel(providers.provider_problems()).to_string()),
            }
        })
    }

    fn logout(&self) -> BoxFuture<'static, Result<(), String>> {
        let credentials = self.credentials.clone();
        Box::pin(async move {
            // Reads files, and perhaps a slow keyring.
            let forgetting = tokio::task::spawn_blocking(move || credentials.forget_all());
            forgetting.await.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
        })
    }
}
