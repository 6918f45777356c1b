//! Who may connect, as the configuration says: names of the server, pages, tokens and their limits.

use std::path::Path;

use anyhow::Result;
use attache_http::{
    AccessCheck, AccessRules, BearerToken, ListenerAddress, NamedToken, PageLogins, QueryToken, Requester,
    TokenDigest, TokenTable, host_names,
};
use attache_serve::{CallerLimits, EVENT_PATHS, HOOKS_PATH, OPEN_PATHS, ServeLimits};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::answer;
use crate::config::{CallerBounds, ServerSettings, Sourced};

pub(super) fn check(
    token: &BearerToken,
    address: &ListenerAddress,
    settings: &ServerSettings,
    logins: PageLogins,
) -> AccessCheck {
    let others = settings.tokens.iter().map(|token| NamedToken {
        requester: Requester { name: token.name.as_str().into(), scope: token.scope },
        digest: token.digest,
    });
    AccessCheck::of(AccessRules {
        tokens: TokenTable::new(token, others),
        names: host_names(address, &settings.hosts.value),
        origins: origins(settings),
        open_paths: OPEN_PATHS,
        signed_paths: &[HOOKS_PATH],
        query_token: QueryToken::OnEventStreams(EVENT_PATHS),
        logins: Some(logins),
    })
}

/// Pages of configured hosts count as our own, with or without a proxy that encrypts.
fn origins(settings: &ServerSettings) -> Vec<String> {
    let own =
        settings.hosts.value.iter().flat_map(|host| [format!("https://{host}"), format!("http://{host}")]);
    settings.origins.value.iter().cloned().chain(own).collect()
}

pub(super) fn limits(settings: &ServerSettings) -> ServeLimits {
    fn value<T: Copy>(bound: &Option<Sourced<T>>) -> Option<T> {
        bound.as_ref().map(|bound| bound.value)
    }
    let limits = |bounds: &CallerBounds| CallerLimits {
        connections: value(&bounds.connections),
        prompts_per_minute: value(&bounds.prompts_per_minute),
        bytes_per_minute: value(&bounds.bytes_per_minute),
    };
    ServeLimits { per_token: limits(&settings.per_token), per_address: limits(&settings.per_address) }
}

/// Prints a new token, alone on stdout, and what to add to the configuration.
pub(super) fn make_token(config_file: &Path) -> Result<()> {
    let token = BearerToken::generate()?;
    answer::write(&format!("{}\n", token.as_str()))?;
    answer::note(&format!(
        "attache: this token is shown once; to accept it, add to {}, under a name of your choice:\n\n\
         [serve.tokens.NAME]\nhash = \"{}\"\nscope = \"talk\"   # or \"read\", or \"all\"",
        config_file.display(),
        TokenDigest::of(&token)
    ));
    Ok(())
}

/// Each client costs a descriptor, and most systems start with a limit of 1,024. If we cannot raise it, it
/// stays.
pub(super) fn raise_open_files() {
    let present = getrlimit(Resource::Nofile);
    if present.current == present.maximum {
        return;
    }
    let wanted = Rlimit { current: present.maximum, maximum: present.maximum };
    if let Err(error) = setrlimit(Resource::Nofile, wanted) {
        tracing::info!(%error, "the limit of open files stays as it is");
    }
}
