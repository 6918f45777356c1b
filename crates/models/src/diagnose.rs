//! Why a configured provider can't be used and what to do about it: the one place with these words, for
//! `session/new`, `attache models` and `attache doctor`. `diagnose_provider` is pure; `find_correction` asks
//! the same server where its models are.

use std::fmt;
use std::time::Duration;

use futures_util::future::join_all;

use crate::dialect::Dialect;
use crate::discover::{DiscoverError, models_of};
use crate::endpoint::{BaseUrl, Endpoint, is_version};
use crate::http::Http;
use crate::limits::ADVICE;
use crate::vendors::{KeyNeed, Vendor};

/// A configured provider that gave no models when we asked for them.
#[derive(Clone, Copy, Debug)]
pub struct ProviderFailure<'a> {
    /// Its name in the configuration.
    pub provider_id: &'a str,
    /// The vendor, where it is a known one.
    pub vendor: Option<&'static Vendor>,
    /// What we tried.
    pub endpoint: &'a Endpoint,
    /// What went wrong.
    pub cause: &'a ListFailure,
    /// What `find_correction` found. `None` if no other address answered, or if we did not look.
    pub correction: Option<&'a Correction>,
}

/// Why no model of a provider is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListFailure {
    /// The provider did not list its models.
    Discover(DiscoverError),
    /// The server gave a list without a model for conversations.
    Empty,
}

/// Settings under which the same server did list models.
#[derive(Clone, Debug)]
pub struct Correction {
    /// The dialect the server seems to speak.
    pub dialect: Dialect,
    /// The address that works.
    pub base_url: BaseUrl,
    changes: Changes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Changes {
    Address,
    Dialect,
    Both,
}

/// For a person: what is wrong, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderDiagnosis {
    /// Names the provider and the address that was tried. Without a full stop.
    pub problem: String,
    /// The same problem, for a line that already names the provider.
    pub said: String,
    /// What we ask the user to do. Without a full stop.
    pub fix: String,
}

impl fmt::Display for ProviderDiagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (problem, fix) = (self.problem.trim_end_matches('.'), self.fix.trim_end_matches('.'));
        write!(f, "{problem}. {}.", as_sentence(fix))
    }
}

/// The text with a capital first letter.
fn as_sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

impl ListFailure {
    /// What the answer to our question for models means; `None` if it lists some.
    pub fn of<T>(answer: &Result<Vec<T>, DiscoverError>) -> Option<Self> {
        match answer {
            Ok(models) if models.is_empty() => Some(Self::Empty),
            Ok(_) => None,
            Err(error) => Some(Self::Discover(error.clone())),
        }
    }
}

/// What is wrong with a provider and what the user can do. Looks only at the failure.
pub fn diagnose_provider(failure: &ProviderFailure<'_>) -> ProviderDiagnosis {
    let said = match failure.cause {
        ListFailure::Empty => format!("{} lists no models", failure.endpoint.base_url.as_str()),
        ListFailure::Discover(error) => error.to_string(),
    };
    let fix = match failure.correction {
        Some(correction) => failure.corrected(correction),
        None => failure.fix(),
    };
    ProviderDiagnosis { problem: format!("{} can't be used: {said}", failure.provider_id), said, fix }
}

impl ProviderFailure<'_> {
    fn fix(&self) -> String {
        let error = match self.cause {
            ListFailure::Empty => return self.load_a_model(),
            ListFailure::Discover(error) => error,
        };
        let id = self.provider_id;
        match error {
            DiscoverError::Unreachable { .. } => self.reach_the_server(),
            DiscoverError::Untrusted { .. } => {
                "set SSL_CERT_FILE to a file with the certificates of the authorities to trust".to_owned()
            }
            DiscoverError::KeyRefused { .. } if self.endpoint.key_hint.is_empty() => {
                format!("run `attache auth login {id}` to store a valid key")
            }
            DiscoverError::KeyRefused { .. } => self.endpoint.key_hint.clone(),
            DiscoverError::NoSuchPath { .. } | DiscoverError::Nonsense { .. } => self.correct_the_path(),
            DiscoverError::Refused { status: 300..=399, .. } => {
                format!("attache follows no redirects: correct {}", self.address_setting())
            }
            DiscoverError::Refused { status: 429, .. } => "try again later".to_owned(),
            DiscoverError::Refused { status: 500..=599, .. } => {
                format!("look into the server's log; {}", self.name_a_model())
            }
            DiscoverError::Refused { .. } => self.correct_the_path(),
            DiscoverError::TooSlow { .. } => {
                format!("try again when the server is less busy; {}", self.name_a_model())
            }
        }
    }

    fn corrected(&self, correction: &Correction) -> String {
        let (id, url) = (self.provider_id, correction.base_url.as_str().trim_end_matches('/'));
        let dialect = correction.dialect.as_str();
        match correction.changes {
            Changes::Address => {
                format!("the server has its models at {url}: set {} to it", self.address_setting())
            }
            Changes::Dialect => {
                format!("the server speaks {dialect}: set dialect of [providers.{id}] to \"{dialect}\"")
            }
            Changes::Both => format!(
                "the server speaks {dialect} at {url}: set dialect of [providers.{id}] to \"{dialect}\" and \
                 base_url to \"{url}\""
            ),
        }
    }

    fn reach_the_server(&self) -> String {
        let setting = self.address_setting();
        match (self.endpoint.base_url.is_loopback(), self.vendor) {
            (true, Some(vendor)) if vendor.key == KeyNeed::Optional => {
                format!("start {} (see {}), or correct {setting}", vendor.name, vendor.key_page)
            }
            (true, _) => format!("start the server, or correct {setting}"),
            (false, _) => format!("check the network, the proxy (HTTPS_PROXY) and {setting}"),
        }
    }

    fn correct_the_path(&self) -> String {
        let usual = match self.endpoint.dialect.base_path() {
            "" => "it usually ends without a version".to_owned(),
            path => format!("it usually ends with {path}"),
        };
        format!(
            "correct {} ({usual}) or dialect of [providers.{id}]; if prompts work all the same, {}",
            self.address_setting(),
            self.name_a_model(),
            id = self.provider_id,
        )
    }

    fn load_a_model(&self) -> String {
        match self.vendor {
            Some(vendor) if vendor.id == "ollama" => format!(
                "pull one that can call tools with `ollama pull NAME` (see {}); {}",
                vendor.key_page,
                self.name_a_model()
            ),
            Some(_) | None => format!("load a model there; {}", self.name_a_model()),
        }
    }

    /// For servers that answer prompts but list no models.
    fn name_a_model(&self) -> String {
        format!("a model that is not listed can be named: `model = \"{}/NAME\"`", self.provider_id)
    }

    fn address_setting(&self) -> String {
        match self.vendor {
            Some(vendor) => {
                format!("base_url of [providers.{}] or {}", self.provider_id, vendor.base_url_variable())
            }
            None => format!("base_url of [providers.{}]", self.provider_id),
        }
    }
}

/// What to set after a server did not know the path of a request. `None` if the models are where the endpoint
/// says, or at no address that we try.
pub(crate) async fn correct_address(http: &Http, provider_id: &str, endpoint: &Endpoint) -> Option<String> {
    let cause = ListFailure::of(&models_of(http, provider_id, endpoint, ADVICE).await)?;
    let found = find_correction(http, provider_id, endpoint, &cause, ADVICE).await?;
    let vendor = Vendor::find(provider_id);
    let failure = ProviderFailure { provider_id, vendor, endpoint, cause: &cause, correction: Some(&found) };
    Some(as_sentence(&failure.corrected(&found)))
}

/// The settings for a server that speaks the dialect people confuse with this one.
pub(crate) fn other_dialect(endpoint: &Endpoint) -> String {
    let other = endpoint.dialect.alternative();
    let path = match root_paths(endpoint.base_url.path()).first() {
        Some(root) if other.base_path() != endpoint.dialect.base_path() => {
            format!("{root}{}", other.base_path())
        }
        Some(_) | None => return format!("`dialect = \"{}\"`", other.as_str()),
    };
    let base_url = endpoint.base_url.with_path(&path);
    format!("`dialect = \"{}\"` and `base_url = \"{}\"`", other.as_str(), base_url.as_str())
}

/// Asks the same server, all at once, at the addresses and in the dialects that people often mean, and returns
/// the likeliest that lists models. Only for failures that another address or dialect can explain.
pub async fn find_correction(
    http: &Http,
    provider_id: &str,
    endpoint: &Endpoint,
    cause: &ListFailure,
    deadline: Duration,
) -> Option<Correction> {
    let candidates = match cause {
        ListFailure::Discover(
            DiscoverError::NoSuchPath { .. } | DiscoverError::Nonsense { .. } | DiscoverError::Refused { .. },
        ) => candidates(endpoint),
        // The key may be right and be in the wrong header.
        ListFailure::Discover(DiscoverError::KeyRefused { .. }) if endpoint.key.is_some() => {
            let mut candidates = candidates(endpoint);
            candidates.retain(|(_, candidate)| candidate.auth != endpoint.auth);
            candidates
        }
        ListFailure::Discover(
            DiscoverError::KeyRefused { .. }
            | DiscoverError::Unreachable { .. }
            | DiscoverError::Untrusted { .. }
            | DiscoverError::TooSlow { .. },
        )
        | ListFailure::Empty => return None,
    };
    let asked = candidates.into_iter().map(|(changes, candidate)| async move {
        let listed = models_of(http, provider_id, &candidate, deadline).await.ok()?;
        let Endpoint { dialect, base_url, .. } = candidate;
        (!listed.is_empty()).then_some(Correction { dialect, base_url, changes })
    });
    join_all(asked).await.into_iter().flatten().next()
}

/// The likeliest first: the same dialect at other addresses, then other dialects at theirs.
fn candidates(endpoint: &Endpoint) -> Vec<(Changes, Endpoint)> {
    let written = endpoint.base_url.path();
    let roots = root_paths(written);
    let mut found: Vec<(Changes, Endpoint)> = Vec::new();
    for path in paths_near(&roots, endpoint.dialect).into_iter().filter(|path| path != written) {
        let base_url = endpoint.base_url.with_path(&path);
        found.push((Changes::Address, Endpoint { base_url, ..endpoint.clone() }));
    }
    // Dialects with the same list of models look alike here, so we suggest the first of them.
    let mut lists = vec![endpoint.dialect.models().path];
    for dialect in Dialect::MOST_USED_FIRST {
        if lists.contains(&dialect.models().path) {
            continue;
        }
        lists.push(dialect.models().path);
        for root in &roots {
            let path = format!("{root}{}", dialect.base_path());
            let changes = if path == written { Changes::Dialect } else { Changes::Both };
            let base_url = endpoint.base_url.with_path(&path);
            found.push((changes, Endpoint { dialect, base_url, auth: dialect.auth(), ..endpoint.clone() }));
        }
    }
    found
}

/// The path of a base address without what people add to it: the path of a request, a version (also twice),
/// `/api`.
fn root_paths(written: &str) -> Vec<String> {
    let requests = Dialect::MOST_USED_FIRST.map(|dialect| dialect.path(""));
    let mut root = requests.iter().find_map(|request| written.strip_suffix(request)).unwrap_or(written);
    root = root.strip_suffix("/models").unwrap_or(root);
    while let Some((before, _)) = root.rsplit_once('/').filter(|(_, last)| is_version(last)) {
        root = before;
    }
    let mut roots = vec![root.to_owned()];
    roots.extend(root.strip_suffix("/api").map(str::to_owned));
    roots
}

/// Each root with and without a version, and the first one below `/api`.
fn paths_near(roots: &[String], dialect: Dialect) -> Vec<String> {
    let version = dialect.base_path();
    let with_version = roots.iter().map(|root| format!("{root}{version}"));
    let below_api = roots.first().map(|root| format!("{root}/api{version}"));
    let mut paths: Vec<String> = Vec::new();
    for path in with_version.chain(roots.iter().cloned()).chain(below_api) {
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths
}

#[cfg(test)]
mod tests;
