//! Sums up what answers used, by day, model and workspace. Never writes.

use std::collections::BTreeMap;

use attache_core::calendar;
use attache_core::metadata::MessageMeta;
use attache_core::ports::figures::{UsageKey, UsageQuery, UsageSum};
use attache_core::ports::store::UsageTotals;
use rusqlite::Connection;

use crate::failure::Failure;
use crate::rows;

/// Counts every answer once, also a rewound one, because it was paid for. A copy keeps the time of the
/// original, which is before the copy was made, and does not count again.
pub(crate) fn usage(
    connection: &Connection,
    query: &UsageQuery,
) -> Result<BTreeMap<UsageKey, UsageSum>, Failure> {
    let mut answers = connection.prepare_cached(
        "SELECT m.created_at, m.metadata_json, s.workspace_root FROM chat_messages m \
         JOIN chat_sessions s ON s.id = m.session_id WHERE m.role = 'assistant' AND m.created_at >= ?1 \
         AND (s.parent_id IS NULL OR m.created_at >= s.created_at)",
    )?;
    let mut found = answers.query([query.since.unwrap_or(i64::MIN)])?;
    let mut sums: BTreeMap<UsageKey, UsageSum> = BTreeMap::new();
    while let Some(row) = found.next()? {
        let metadata: MessageMeta = rows::json(rows::text(row, 1)?)?;
        let Some(used) = metadata.usage() else { continue };
        let key = UsageKey {
            day: calendar::date(&calendar::local(row.get(0)?, query.zone.clone())),
            model: metadata.model().unwrap_or_default().to_owned(),
            workspace_root: rows::path(row, 2)?,
        };
        let sum = sums.entry(key).or_default();
        sum.answers += 1;
        let count = |tokens: u64| i64::try_from(tokens).unwrap_or(i64::MAX);
        sum.totals.add(&UsageTotals {
            prompt_tokens: count(used.input),
            completion_tokens: count(used.output),
            reasoning_tokens: count(used.reasoning),
            cache_read: count(used.cache_read),
            cache_write: count(used.cache_write),
            cost_usd: metadata.cost_usd().unwrap_or_default(),
        });
    }
    Ok(sums)
}
