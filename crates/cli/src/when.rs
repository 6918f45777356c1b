//! Times for people: in their time zone, to the minute.

use std::sync::OnceLock;

use attache_core::calendar;
use jiff::tz::TimeZone;

/// The time zone of this machine and user (`TZ`, `/etc/localtime`), or UTC if neither says. Looked up on first
/// use.
pub(crate) fn zone() -> TimeZone {
    static ZONE: OnceLock<TimeZone> = OnceLock::new();
    ZONE.get_or_init(|| TimeZone::try_system().unwrap_or(TimeZone::UTC)).clone()
}

/// `2026-11-15 18:50`.
pub(crate) fn minutes(at_ms: i64) -> String {
    calendar::minutes(&calendar::local(at_ms, zone()))
}
