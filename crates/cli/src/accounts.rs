//! Logging in and out as editors do it: looks for keys again, or forgets the stored ones. Sees no key itself.

use attache_acp::{Accounts, Login, LoginWay};
use attache_core::ports::{BoxFuture, Model};

use crate::credentials::Credentials;
use crate::providers::{LiveProviders, THREE_WAYS};

/// `authenticate` with it looks again; a key may have been stored in another terminal.
const LOOK_AGAIN: &str = "stored-key";

/// The editor runs us in a terminal, where a person types the key.
const TERMINAL: &str = "terminal-login";

#[derive(Debug)]
pub(crate) struct StoredKeys {
    credentials: Credentials,
    providers: LiveProviders,
}

impl StoredKeys {
    pub(crate) fn new(credentials: Credentials, providers: LiveProviders) -> Self {
        Self { credentials, providers }
    }
}

impl Accounts for StoredKeys {
    fn logins(&self) -> Vec<Login> {
        vec![
            Login {
                id: TERMINAL.to_owned(),
                name: "Enter an API key".to_owned(),
                description: "Asks in a terminal for the provider and its key, checks the key and keeps it.".to_owned(),
                way: LoginWay::Terminal { arguments: vec!["--login".to_owned()] },
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
                (true, None) => Err(format!("no model can be used yet. {THREE_WAYS}")),
            }
        })
    }

    fn logout(&self) -> BoxFuture<'static, Result<(), String>> {
        let credentials = self.credentials.clone();
        Box::pin(async move {
            // Files, and perhaps a keyring that takes its time.
            let forgetting = tokio::task::spawn_blocking(move || credentials.forget_all());
            forgetting.await.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
        })
    }
}
