//! Which variables a project's entries do not get, even if they name them. Reads names, not values.

use std::ffi::OsString;

use attache_core::ports::mcp::{HiddenText, ServerEntry, ServerTransport};
use attache_models::VENDORS;
use attache_sandbox::environment::for_command;

use super::{AgentBackend, Config, ProcessEnvironment, ProviderWire};

/// Variables of cloud accounts and of secret stores.
const CLOUDS: [&str; 28] = [
    "ALIBABA_CLOUD_",
    "ALICLOUD_",
    "ARM_",
    "AWS_",
    "AZURE_",
    "CF_",
    "CLOUDFLARE_",
    "CLOUDSDK_",
    "CONSUL_",
    "DIGITALOCEAN_",
    "DO_",
    "FLY_",
    "GCLOUD_",
    "GCP_",
    "GOOGLE_",
    "HCLOUD_",
    "HEROKU_",
    "IBMCLOUD_",
    "KUBE",
    "LINODE_",
    "NETLIFY_",
    "NOMAD_",
    "OCI_",
    "OP_",
    "OVH_",
    "SCW_",
    "VAULT_",
    "VERCEL_",
];

/// Words in a variable's name that mean a credential, or a file that contains one.
const SECRET_WORDS: [&str; 9] =
    ["AUTH", "CERT", "CONFIG", "CONNECTION_STRING", "CREDENTIAL", "KEY", "PASS", "SECRET", "TOKEN"];

impl Config {
    /// Names of variables that a project's entries do not get: our keys, the variables that the user's own
    /// entries name, and what attache, telemetry and clouds keep in this environment.
    pub(crate) fn key_variables(&self, environment: &ProcessEnvironment) -> impl Iterator<Item = String> {
        let vendors = VENDORS.iter().flat_map(|vendor| vendor.key_variables).map(|name| (*name).to_owned());
        let known = environment.iter().map(|(name, _)| name).filter(|name| is_private(name));
        let withheld: Vec<String> = vendors.chain(self.named_variables()).chain(known).collect();
        // Every command gets these, also the project's commands.
        let given = environment.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let open: Vec<OsString> = for_command(given).map(|(name, _)| name).collect();
        withheld.into_iter().filter(move |name| !open.iter().any(|open| open.as_os_str() == name.as_str()))
    }

    /// The variables that the configuration names: for keys, for secrets of webhooks, and as `${NAME}` in
    /// headers and in entries of agents and servers.
    pub(super) fn named_variables(&self) -> impl Iterator<Item = String> {
        let own = self.providers.iter().flat_map(|provider| match &provider.wire {
            ProviderWire::Http(wire) => wire.key_variables.value.as_slice(),
            ProviderWire::Script { .. } => &[],
        });
        let mut names: Vec<String> = own.cloned().collect();
        let search = self.web_search.service().and_then(|service| service.key_variable);
        names.extend(search.map(|variable| variable.value));
        names.extend(self.webhooks.iter().map(|webhook| webhook.secret.value.clone()));
        let headers = self.telemetry.headers.iter().flat_map(|headers| &headers.value);
        names.extend(headers.flat_map(|(_, value)| references(value)));
        names.extend(self.servers.iter().flat_map(|server| texts_of(&server.entry)).flat_map(references));
        let agents = self.agents.iter().flat_map(|agent| hidden_of(&agent.backend));
        names.extend(agents.flat_map(|(_, value)| references(value.expose())));
        names.into_iter()
    }
}

fn is_private(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let is_of_cloud = CLOUDS.iter().any(|cloud| name.starts_with(cloud))
        && SECRET_WORDS.iter().any(|word| name.contains(word));
    is_of_cloud || name.starts_with("ATTACHE_") || (name.starts_with("OTEL_") && name.ends_with("HEADERS"))
}

/// All texts of an entry that may name a variable.
fn texts_of(entry: &ServerEntry) -> Vec<&str> {
    let mut texts: Vec<&str> = Vec::new();
    match &entry.transport {
        ServerTransport::Stdio { command, arguments, environment, .. } => {
            texts.extend(std::iter::once(command).chain(arguments).map(String::as_str));
            texts.extend(environment.iter().map(|(_, value)| value.expose()));
        }
        ServerTransport::Http { url, headers } | ServerTransport::Sse { url, headers } => {
            texts.push(url);
            texts.extend(headers.iter().map(|(_, value)| value.expose()));
        }
        ServerTransport::Unusable(_) => {}
    }
    texts.extend(entry.oauth.client_id.as_deref());
    texts.extend(entry.oauth.client_secret.as_ref().map(HiddenText::expose));
    texts
}

fn hidden_of(backend: &AgentBackend) -> &[(String, HiddenText)] {
    match backend {
        AgentBackend::AiSdk { headers, .. } | AgentBackend::LangGraph { headers, .. } => headers,
        AgentBackend::Python { environment, .. } | AgentBackend::Acp { environment, .. } => environment,
    }
}

/// The names in `${NAME}`, `${NAME:-default}` and `${env:NAME}`.
fn references(text: &str) -> Vec<String> {
    let named = text.split("${").skip(1).map(|behind| {
        let behind = behind.strip_prefix("env:").unwrap_or(behind);
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        &behind[..behind.find(|c: char| !is_of_name(c)).unwrap_or(behind.len())]
    });
    named.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_every_way_to_write_them() {
        assert_eq!(references("a ${A} ${env:B} ${C:-${D}} $E ${}"), ["A", "B", "C", "D"]);
        assert_eq!(references("${UNENDED"), ["UNENDED"]);
    }

    #[test]
    fn credentials_are_private_and_other_variables_are_not() {
        for name in [
            "ATTACHE_TOKEN",
            "ATTACHE_HOOK_ISSUES",
            "ATTACHE_TELEMETRY_HEADERS",
            "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_SESSION_TOKEN",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "AZURE_CLIENT_SECRET",
            "KUBECONFIG",
        ] {
            assert!(is_private(name), "{name}");
        }
        for name in ["AWS_REGION", "GITHUB_TOKEN", "OTEL_SERVICE_NAME", "HOME", "DATABASE_URL"] {
            assert!(!is_private(name), "{name}");
        }
    }
}
