//! Points in time as ISO 8601 text in UTC. Reads no clock.

const DAY_MS: i64 = 86_400_000;
/// The last millisecond of the year 9999: later ones have no four-digit year.
const LAST_MS: i64 = 253_402_300_799_999;
/// The first millisecond of the year 0.
const FIRST_MS: i64 = -62_167_219_200_000;

/// `2026-11-15T18:20:00.123Z` from milliseconds since 1970; what lies beyond four-digit years is moved to their end.
pub fn iso_8601(milliseconds: i64) -> String {
    let milliseconds = milliseconds.clamp(FIRST_MS, LAST_MS);
    let (year, month, day) = civil(milliseconds.div_euclid(DAY_MS));
    let of_day = milliseconds.rem_euclid(DAY_MS);
    let (seconds, fraction) = (of_day / 1000, of_day % 1000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction:03}Z")
}

/// Year, month and day of a day counted from 1970-01-01, in the Gregorian calendar extended backwards.
///
/// Counts in years that begin on the first of March: then the leap day is the last of its year and months before it
/// have fixed places.
fn civil(days: i64) -> (i64, i64, i64) {
    const CYCLE_DAYS: i64 = 146_097;
    let since_march_0 = days + 719_468;
    let cycle = since_march_0.div_euclid(CYCLE_DAYS);
    let day_of_cycle = since_march_0.rem_euclid(CYCLE_DAYS);
    let year_of_cycle =
        (day_of_cycle - day_of_cycle / 1460 + day_of_cycle / 36_524 - day_of_cycle / (CYCLE_DAYS - 1)) / 365;
    let day_of_year = day_of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = cycle * 400 + year_of_cycle + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_moments() {
        for (milliseconds, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (1_763_230_800_123, "2025-11-15T18:20:00.123Z"),
            (LAST_MS, "9999-12-31T23:59:59.999Z"),
            (FIRST_MS, "0000-01-01T00:00:00.000Z"),
            (i64::MAX, "9999-12-31T23:59:59.999Z"),
            (i64::MIN, "0000-01-01T00:00:00.000Z"),
        ] {
            assert_eq!(iso_8601(milliseconds), text);
        }
    }

    /// Walks the calendar day by day with nothing but its rules.
    #[test]
    fn every_day_of_five_centuries_follows_the_one_before() {
        let leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let (mut year, mut month, mut day) = (1970, 1, 1);
        for days in 0..182_622 {
            assert_eq!(civil(days), (year, month, day));
            let length = match month {
                2 if leap(year) => 29,
                2 => 28,
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            day += 1;
            if day > length {
                (day, month) = (1, month + 1);
            }
            if month > 12 {
                (month, year) = (1, year + 1);
            }
        }
    }
}
