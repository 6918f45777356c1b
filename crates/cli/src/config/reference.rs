//! All keys, for the reference in docs/. For tests only.

use super::agent_table::AGENT_KEYS;
use super::file::TABLES;
use super::hook_table::HOOK_KEYS;
use super::keys::KEYS;
use super::mcp_table::SERVER_KEYS;
use super::oauth_table::OAUTH_KEYS;
use super::permission_table::RULE_KEYS;
use super::provider_table::{MODEL_KEYS, PRICE_KEYS, PROVIDER_KEYS};
use super::token_table::TOKEN_KEYS;
use super::trigger_table::{SCHEDULE_KEYS, WEBHOOK_KEYS};

/// A key that holds one value.
pub(crate) struct KeyReference {
    pub(crate) path: &'static str,
    pub(crate) expected: &'static str,
    pub(crate) variable: String,
}

pub(crate) fn keys() -> Vec<KeyReference> {
    let reference = |key: &super::SettingKey| KeyReference {
        path: key.path,
        expected: key.expected,
        variable: key.variable(),
    };
    KEYS.iter().map(reference).collect()
}

/// Tables that hold named or repeated entries, with the keys of an entry.
pub(crate) fn tables() -> Vec<(&'static str, &'static [&'static str])> {
    let tables: Vec<(&str, &[&str])> = vec![
        ("[[permissions]]", &RULE_KEYS),
        ("[[hooks]]", &HOOK_KEYS),
        ("[agents.NAME]", &AGENT_KEYS),
        ("[mcp.NAME]", &SERVER_KEYS),
        ("[mcp.NAME.oauth]", &OAUTH_KEYS),
        ("[[schedule]]", &SCHEDULE_KEYS),
        ("[webhooks.NAME]", &WEBHOOK_KEYS),
        ("[serve.tokens.NAME]", &TOKEN_KEYS),
        ("[providers.NAME]", &PROVIDER_KEYS),
        ("[providers.NAME.models.\"MODEL\"]", &MODEL_KEYS),
        ("[providers.NAME.models.\"MODEL\".price]", &PRICE_KEYS),
    ];
    for known in TABLES {
        assert!(tables.iter().any(|(table, _)| table.contains(known)), "[{known}] is missing here");
    }
    tables
}
