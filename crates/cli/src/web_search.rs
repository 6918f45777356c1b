//! Whether the model can search the web: which service is configured, and whether there is a key. Sends
//! nothing.

use attache_tools::{SearchEndpoint, SearchEndpointError, SearchKey};

use crate::config::SearchService;
use crate::credentials::Credentials;
use crate::setup::Sources;

pub(crate) enum SearchSetup {
    NotConfigured,
    /// This variable is not set.
    NoKey(SearchService, String),
    Ready(SearchService, SearchEndpoint),
}

pub(crate) fn search_setup(sources: &Sources) -> Result<SearchSetup, SearchEndpointError> {
    let Some(service) = sources.config.web_search.service() else { return Ok(SearchSetup::NotConfigured) };
    let key = key(&sources.credentials, &service);
    match (&key, &service.key_variable) {
        (None, Some(variable)) => {
            let variable = variable.value.clone();
            Ok(SearchSetup::NoKey(service, variable))
        }
        (Some(_), _) | (None, None) => {
            let endpoint = SearchEndpoint::new(service.provider.value, service.base_url.value.as_str(), key)?;
            Ok(SearchSetup::Ready(service, endpoint))
        }
    }
}

/// The search service of this process.
pub(crate) fn endpoint(sources: &Sources) -> Result<Option<SearchEndpoint>, SearchEndpointError> {
    match search_setup(sources)? {
        SearchSetup::NotConfigured => Ok(None),
        SearchSetup::NoKey(_, variable) => {
            let why = format!("{variable} is not set in the environment of attache");
            sources.troubles.report("There is no web_search", why);
            Ok(None)
        }
        SearchSetup::Ready(_, endpoint) => Ok(Some(endpoint)),
    }
}

fn key(credentials: &Credentials, service: &SearchService) -> Option<SearchKey> {
    let secret = credentials.variable(&service.key_variable.as_ref()?.value)?;
    SearchKey::new(secret.expose())
}
