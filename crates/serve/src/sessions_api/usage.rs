//! What answers used, by day, model and workspace.

use std::time::Duration;

use attache_core::ports::figures::UsageQuery;
use axum::extract::State;
use axum::http::Uri;
use serde_json::{Value, json};

use super::parameters::Parameters;
use super::{ApiError, ApiReply, SessionsApi, json_answer};
use crate::limits::USAGE_DAYS;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const USUAL_DAYS: usize = 30;

pub(super) async fn usage(State(api): State<SessionsApi>, uri: Uri) -> ApiReply {
    let mut parameters = Parameters::of(&uri)?;
    let days = parameters.number("days", 1..=USAGE_DAYS, USUAL_DAYS)?;
    parameters.end()?;
    let clock = &api.agent.clock;
    let failed = |error: &dyn std::fmt::Display| ApiError::Failed(error.to_string());
    // Half a day less than whole days before this morning is that morning, whatever clocks did meanwhile.
    let back = DAY * u32::try_from(days - 1).unwrap_or(u32::MAX);
    let today = clock.now().start_of_day().map_err(|error| failed(&error))?;
    let first = today.checked_sub(back).and_then(|day| day.checked_add(DAY / 2));
    let first = first.and_then(|day| day.start_of_day()).map_err(|error| failed(&error))?;
    let since = first.timestamp().as_millisecond();
    let sums = api.figures.usage(UsageQuery { since: Some(since), zone: clock.zone() }).await?;
    let admitted = api.admitted(sums.keys().map(|key| key.workspace_root.clone()).collect()).await;
    let rows: Vec<Value> = sums
        .iter()
        .zip(admitted)
        .filter(|(_, is_admitted)| *is_admitted)
        .map(|((key, sum), _)| {
            let totals = &sum.totals;
            json!({
                "day": key.day,
                "model": (!key.model.is_empty()).then_some(&key.model),
                "workspace_root": key.workspace_root.to_string_lossy(),
                "answers": sum.answers,
                "prompt_tokens": totals.prompt_tokens,
                "completion_tokens": totals.completion_tokens,
                "reasoning_tokens": totals.reasoning_tokens,
                "cache_read": totals.cache_read,
                "cache_write": totals.cache_write,
                "cost_usd": totals.known_cost_usd(),
            })
        })
        .collect();
    let (first, last) = (first.date().to_string(), today.date().to_string());
    json_answer(&json!({ "first_day": first, "last_day": last, "rows": rows }))
}
