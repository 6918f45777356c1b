//! Times for people: UTC, to the minute.

use attache_core::system_prompt::date;

/// `2026-11-15 18:50`.
pub(crate) fn minutes(at_ms: i64) -> String {
    let of_day = at_ms.rem_euclid(86_400_000) / 60_000;
    format!("{} {:02}:{:02}", date(at_ms), of_day / 60, of_day % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_told_to_the_minute() {
        assert_eq!(minutes(0), "1970-01-01 00:00");
        assert_eq!(minutes(86_399_999), "1970-01-01 23:59");
    }
}
