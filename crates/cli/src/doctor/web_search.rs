//! Whether the model can search the web, and if not, how to enable it. Sends no search, which may cost money.

use super::Finding;
use crate::setup::Sources;
use crate::web_search::{SearchSetup, search_setup};

const SUBJECT: &str = "web search";

pub(super) fn check(sources: &Sources) -> Finding {
    match search_setup(sources) {
        Ok(SearchSetup::NotConfigured) => Finding::ok(
            SUBJECT,
            format!(
                "none; for one, write web_search.provider = \"brave\" (or tavily, exa, searxng) at the top of {}",
                sources.config.file.display()
            ),
        ),
        Ok(SearchSetup::NoKey(service, variable)) => Finding::warn(
            SUBJECT,
            format!("{} has no key, so the model can't search", service.provider.value.as_str()),
            format!("set {variable}"),
        ),
        Ok(SearchSetup::Ready(service, _)) => {
            let key = match &service.key_variable {
                Some(variable) => format!(", key from {}", variable.value),
                None => String::new(),
            };
            let provider = service.provider.value.as_str();
            Finding::ok(SUBJECT, format!("{provider} at {}{key}", service.base_url.value.as_str()))
        }
        Err(error) => Finding::fail(SUBJECT, error.to_string(), "correct [web_search] in the configuration"),
    }
}
