//! The paths by which queries find data of messages and sessions that has no column.

pub(crate) const QUEUED_AT: &str = "json_extract(metadata_json, '$.queued_at')";
pub(crate) const QUEUE_CANCELED_AT: &str = "json_extract(metadata_json, '$.queue_canceled_at')";
pub(crate) const HIDDEN_AT: &str = "json_extract(metadata_json, '$.hidden_at')";
pub(crate) const SYSTEM_PROMPT_DIGEST: &str = "json_extract(metadata_json, '$.system_prompt_digest')";
pub(crate) const SNAPSHOT_ID: &str = "json_extract(metadata_json, '$.snapshot_id')";
pub(crate) const USAGE: &str = "json_extract(metadata_json, '$.usage')";
pub(crate) const COST_USD: &str = "json_extract(metadata_json, '$.cost_usd')";
pub(crate) const CHILD_OF: &str = "json_extract(metadata_json, '$.task')";
pub(crate) const NESTED: &str = "json_extract(metadata_json, '$.task.nested')";

#[cfg(test)]
mod tests {
    use attache_core::metadata::{ChildOf, MessageMeta, SessionMeta};

    use super::*;

    #[test]
    fn queries_look_where_the_metadata_have_it() {
        for (sql, key) in [
            (QUEUED_AT, MessageMeta::QUEUED_AT),
            (QUEUE_CANCELED_AT, MessageMeta::QUEUE_CANCELED_AT),
            (HIDDEN_AT, MessageMeta::HIDDEN_AT),
            (SYSTEM_PROMPT_DIGEST, MessageMeta::SYSTEM_PROMPT_DIGEST),
            (SNAPSHOT_ID, MessageMeta::SNAPSHOT_ID),
            (USAGE, MessageMeta::USAGE),
            (COST_USD, MessageMeta::COST_USD),
            (CHILD_OF, SessionMeta::CHILD_OF),
        ] {
            assert_eq!(sql, format!("json_extract(metadata_json, '$.{key}')"));
        }
        let nested =
            format!("json_extract(metadata_json, '$.{}.{}')", SessionMeta::CHILD_OF, ChildOf::NESTED);
        assert_eq!(NESTED, nested);
    }
}
