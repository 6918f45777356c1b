//! Two sessions turn by turn, so many turns at a time.

use attache_core::compared::{ComparedTurns, changed};
use axum::extract::State;
use axum::http::Uri;
use serde_json::{Value, json};

use super::parameters::{Parameters, invalid};
use super::{ApiReply, SessionsApi, json_answer};
use crate::limits::{COMPARED_LINES, COMPARED_TURNS};

/// Where both go on: the number of the turn, and its place in each; `None`: that one is over.
struct DiffPlace {
    number: usize,
    first: Option<i64>,
    second: Option<i64>,
}

pub(super) async fn diff(State(api): State<SessionsApi>, uri: Uri) -> ApiReply {
    let mut parameters = Parameters::of(&uri)?;
    let mut named = |name: &str| parameters.text(name).ok_or_else(|| invalid(name, "must name a session"));
    let (first, second) = (named("a")?, named("b")?);
    let place = parameters.cursor("cursor", place)?;
    let most = parameters.number("turns", 1..=COMPARED_TURNS, COMPARED_TURNS)?;
    parameters.end()?;
    let (first, second) = (api.record(&first).await?, api.record(&second).await?);
    let begin = DiffPlace { number: 0, first: Some(i64::MIN), second: Some(i64::MIN) };
    let place = place.unwrap_or(begin);
    let from = |seq: Option<i64>| Some(seq.unwrap_or(i64::MAX));
    let mut ours = ComparedTurns::open(&*api.store, &first, from(place.first)).await?;
    let mut theirs = ComparedTurns::open(&*api.store, &second, from(place.second)).await?;
    let mut turns: Vec<Value> = Vec::new();
    let mut number = place.number;
    let (mut old, mut new) = (ours.next().await?, theirs.next().await?);
    while (old.is_some() || new.is_some()) && turns.len() < most {
        number += 1;
        let sides = json!([old.is_some(), new.is_some()]);
        let (before, after) = (old.unwrap_or_default().lines, new.unwrap_or_default().lines);
        turns.push(match before == after {
            true => json!({ "number": number, "same": true, "sides": sides, "says": before.get(1) }),
            false => {
                let mut lines = changed(&before, &after);
                let more = lines.len().saturating_sub(COMPARED_LINES);
                lines.truncate(COMPARED_LINES);
                json!({ "number": number, "same": false, "sides": sides, "lines": lines, "more": more })
            }
        });
        (old, new) = (ours.next().await?, theirs.next().await?);
    }
    let seq = |turn: Option<attache_core::compared::ComparedTurn>| {
        turn.map(|turn| turn.seq.to_string()).unwrap_or_default()
    };
    let next = (old.is_some() || new.is_some()).then(|| format!("{number}.{}.{}", seq(old), seq(new)));
    json_answer(&json!({ "turns": turns, "next": next }))
}

fn place(text: &str) -> Option<DiffPlace> {
    let mut pieces = text.split('.');
    let number = pieces.next()?.parse().ok()?;
    let mut side = || match pieces.next()? {
        "" => Some(None),
        seq => seq.parse().ok().map(Some),
    };
    let (first, second) = (side()?, side()?);
    pieces.next().is_none().then_some(DiffPlace { number, first, second })
}
