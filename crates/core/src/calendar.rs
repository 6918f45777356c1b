//! Points in time as people read them: dates, minutes, time stamps. Reads no clock; the zone is a value.

use jiff::Timestamp;
pub use jiff::Zoned;
pub use jiff::tz::TimeZone;

/// The first millisecond of the year 0: earlier ones have no four-digit year.
const FIRST_MS: i64 = -62_167_219_200_000;

/// A moment in a zone, from milliseconds since 1970.
pub fn local(at_ms: i64, zone: TimeZone) -> Zoned {
    timestamp(at_ms).to_zoned(zone)
}

/// `2026-11-15`.
pub fn date(at: &Zoned) -> String {
    at.date().to_string()
}

/// `2026-11-15 18:50`.
pub fn minutes(at: &Zoned) -> String {
    at.strftime("%Y-%m-%d %H:%M").to_string()
}

/// `Europe/Berlin`; the offset from UTC (`UTC+01`) where the zone has no name.
pub(crate) fn zone_name(at: &Zoned) -> String {
    match at.time_zone().iana_name() {
        Some(name) => name.to_owned(),
        None => format!("UTC{}", at.offset()),
    }
}

/// `2026-11-15T18:20:00.123Z` from milliseconds since 1970.
pub fn iso_8601(at_ms: i64) -> String {
    format!("{:.3}", timestamp(at_ms))
}

/// Clamps times beyond the years 0 to 9999 to that range.
fn timestamp(at_ms: i64) -> Timestamp {
    Timestamp::from_millisecond(at_ms.max(FIRST_MS)).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::tz::Offset;

    #[test]
    fn known_moments() {
        for (milliseconds, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (1_763_230_800_123, "2025-11-15T18:20:00.123Z"),
            (FIRST_MS, "0000-01-01T00:00:00.000Z"),
            (i64::MIN, "0000-01-01T00:00:00.000Z"),
            (i64::MAX, "9999-12-30T22:00:00.999Z"),
        ] {
            assert_eq!(iso_8601(milliseconds), text);
        }
    }

    #[test]
    fn a_date_is_that_of_its_zone() {
        let at_ms = 1_763_247_600_000;
        let utc = local(at_ms, TimeZone::UTC);
        assert_eq!((date(&utc), minutes(&utc)), ("2025-11-15".into(), "2025-11-15 23:00".into()));
        assert_eq!(zone_name(&utc), "UTC");
        let berlin = local(at_ms, TimeZone::fixed(Offset::constant(1)));
        assert_eq!((date(&berlin), minutes(&berlin)), ("2025-11-16".into(), "2025-11-16 00:00".into()));
        assert_eq!(zone_name(&berlin), "UTC+01");
    }

    /// A zone whose clocks change twice a year, as POSIX writes it.
    #[test]
    fn summer_time_is_followed() {
        let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        assert_eq!(minutes(&local(1_774_745_999_000, zone.clone())), "2026-03-29 01:59");
        assert_eq!(minutes(&local(1_774_746_000_000, zone)), "2026-03-29 03:00");
    }
}
