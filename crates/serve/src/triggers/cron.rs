//! Times as cron writes them: `minute hour day month weekday`. Pure; where a day begins is the zone's business.

use attache_core::calendar::{TimeZone, local};
use jiff::civil::Date;
use jiff::tz::AmbiguousOffset;
use jiff::{Span, Timestamp};
use thiserror::Error;

/// The 29th of February is at most eight years away, and every weekday falls on it within forty.
const DAYS_AHEAD: u32 = 41 * 366;

const EVERY_HOUR: u64 = (1 << 24) - 1;

#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct CronError(String);

/// When something is to happen, again and again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cron {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    day_rule: DayRule,
}

/// What counts where both the day of the month and the weekday are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DayRule {
    /// One of the two is `*`.
    Both,
    /// As cron has always had it.
    Either,
}

/// One of the five.
struct CronField {
    name: &'static str,
    first: u32,
    last: u32,
    /// Of the values from `first` on.
    words: &'static [&'static str],
}

const FIELDS: [CronField; 5] = [
    CronField { name: "minute", first: 0, last: 59, words: &[] },
    CronField { name: "hour", first: 0, last: 23, words: &[] },
    CronField { name: "day of the month", first: 1, last: 31, words: &[] },
    CronField {
        name: "month",
        first: 1,
        last: 12,
        words: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
    },
    // 7 is Sunday as well.
    CronField {
        name: "weekday",
        first: 0,
        last: 7,
        words: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
    },
];

const SHORT: [(&str, &str); 6] = [
    ("@hourly", "0 * * * *"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@weekly", "0 0 * * 0"),
    ("@monthly", "0 0 1 * *"),
    ("@yearly", "0 0 1 1 *"),
];

impl Cron {
    pub fn parse(text: &str) -> Result<Self, CronError> {
        let text = text.trim();
        let known = SHORT.iter().find(|(short, _)| text.eq_ignore_ascii_case(short));
        let words: Vec<&str> = known.map_or(text, |(_, long)| long).split_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = words[..] else {
            let short = SHORT.map(|(short, _)| short).join(", ");
            return Err(CronError(format!(
                "has {} fields: give minute, hour, day, month and weekday, such as \"30 6 * * mon-fri\", or one of {short}",
                words.len()
            )));
        };
        let [minute, hour, day, month, weekday] = FIELDS;
        let mut cron = Self {
            minutes: minute.read(minutes)?,
            hours: hour.read(hours)?,
            days: day.read(days)?,
            months: month.read(months)?,
            weekdays: weekday.read(weekdays)?,
            day_rule: match days.starts_with('*') || weekdays.starts_with('*') {
                true => DayRule::Both,
                false => DayRule::Either,
            },
        };
        cron.weekdays |= cron.weekdays >> 7 & 1;
        match cron.next(0, &TimeZone::UTC) {
            Some(_) => Ok(cron),
            None => Err(CronError("never happens: no such month has that day".to_owned())),
        }
    }

    /// The first time behind this one, both in milliseconds since 1970. What a clock change leaves out happens
    /// right behind it; what it repeats happens once, unless every hour counts.
    pub fn next(&self, after: i64, zone: &TimeZone) -> Option<i64> {
        let mut date = local(after, zone.clone()).date();
        for _ in 0..DAYS_AHEAD {
            if self.has_day(date)
                && let Some(first) = self.times_of(date, zone).filter(|time| *time > after).min()
            {
                return Some(first);
            }
            date = date.checked_add(Span::new().days(1)).ok()?;
        }
        None
    }

    fn has_day(&self, date: Date) -> bool {
        let has = |set: u64, value: i8| u32::try_from(value).is_ok_and(|value| set >> value & 1 == 1);
        let day = has(self.days, date.day());
        let weekday = has(self.weekdays, date.weekday().to_sunday_zero_offset());
        let fits = match self.day_rule {
            DayRule::Both => day && weekday,
            DayRule::Either => day || weekday,
        };
        has(self.months, date.month()) && fits
    }

    fn times_of(&self, date: Date, zone: &TimeZone) -> impl Iterator<Item = i64> {
        let hours = (0..24_i8).filter(|hour| self.hours >> hour & 1 == 1);
        let times = hours.flat_map(|hour| {
            (0..60_i8).filter(|minute| self.minutes >> minute & 1 == 1).map(move |minute| (hour, minute))
        });
        times.flat_map(move |(hour, minute)| {
            let time = zone.to_ambiguous_zoned(date.at(hour, minute, 0, 0));
            let is_repeated = matches!(time.offset(), AmbiguousOffset::Fold { .. });
            let again = (is_repeated && self.hours == EVERY_HOUR).then(|| time.clone().later());
            let found = [time.compatible().ok(), again.and_then(Result::ok)];
            found.into_iter().flatten().map(|zoned| Timestamp::as_millisecond(zoned.timestamp()))
        })
    }
}

impl CronField {
    /// `*`, `5`, `1-5`, `*/15`, `mon,wed`, and lists of them.
    fn read(&self, text: &str) -> Result<u64, CronError> {
        let mut set = 0;
        for part in text.split(',') {
            let (range, step) = match part.split_once('/') {
                None => (part, 1),
                Some((range, step)) => {
                    let step = step.parse().ok().filter(|step| (1..=self.last).contains(step));
                    (range, step.ok_or_else(|| self.wrong(part))?)
                }
            };
            let (first, last) = match range.split_once('-') {
                _ if range == "*" => (self.first, self.last),
                Some((first, last)) => (self.value(first, part)?, self.value(last, part)?),
                None if part.contains('/') => (self.value(range, part)?, self.last),
                None => (self.value(range, part)?, self.value(range, part)?),
            };
            if first > last {
                return Err(self.wrong(part));
            }
            let step = usize::try_from(step).unwrap_or(1);
            set |= (first..=last).step_by(step).fold(0, |set, value| set | 1_u64 << value);
        }
        Ok(set)
    }

    fn value(&self, text: &str, part: &str) -> Result<u32, CronError> {
        let word = self.words.iter().position(|word| text.eq_ignore_ascii_case(word));
        let value = match word.and_then(|place| u32::try_from(place).ok()) {
            Some(place) => Some(place + self.first),
            None => text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit())),
        };
        value.filter(|value| (self.first..=self.last).contains(value)).ok_or_else(|| self.wrong(part))
    }

    fn wrong(&self, part: &str) -> CronError {
        let Self { name, first, last, words } = self;
        let words = words.first().map(|word| format!(", or names such as {word}")).unwrap_or_default();
        CronError(format!("\"{part}\" is no {name}: {first} to {last}{words}, `*`, lists, ranges and steps"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The next times, as a clock in that zone shows them.
    fn times(cron: &str, zone: &str, after: &str, count: usize) -> Vec<String> {
        let (cron, zone) = (Cron::parse(cron).unwrap(), TimeZone::get(zone).unwrap());
        let mut at = after.parse::<Timestamp>().unwrap().as_millisecond();
        let next = std::iter::from_fn(|| {
            at = cron.next(at, &zone)?;
            let shown = local(at, zone.clone());
            Some(shown.strftime("%a %Y-%m-%d %H:%M %:z").to_string())
        });
        next.take(count).collect()
    }

    #[test]
    fn fields_are_lists_ranges_steps_and_names() {
        let after = "2026-01-01T00:00:00Z";
        assert_eq!(
            times("*/20 6-7 * * *", "UTC", after, 4),
            [
                "Thu 2026-01-01 06:00 +00:00",
                "Thu 2026-01-01 06:20 +00:00",
                "Thu 2026-01-01 06:40 +00:00",
                "Thu 2026-01-01 07:00 +00:00"
            ]
        );
        assert_eq!(
            times("5 0 * * Fri,sun", "UTC", after, 3),
            ["Fri 2026-01-02 00:05 +00:00", "Sun 2026-01-04 00:05 +00:00", "Fri 2026-01-09 00:05 +00:00"]
        );
        assert_eq!(times("0 0 * * 7", "UTC", after, 1), times("@weekly", "UTC", after, 1));
        assert_eq!(times("0 12 29 feb *", "UTC", after, 1), ["Tue 2028-02-29 12:00 +00:00"]);
        // Both named: either counts.
        assert_eq!(
            times("0 0 13 * fri", "UTC", after, 3),
            ["Fri 2026-01-02 00:00 +00:00", "Fri 2026-01-09 00:00 +00:00", "Tue 2026-01-13 00:00 +00:00"]
        );
        assert_eq!(times("59 23 31 12 *", "UTC", "2026-12-31T23:59:00Z", 1), ["Fri 2027-12-31 23:59 +00:00"]);
    }

    #[test]
    fn a_time_that_a_clock_change_leaves_out_happens_right_behind_it() {
        assert_eq!(
            times("30 2 * * *", "Europe/Berlin", "2026-03-28T00:00:00Z", 3),
            ["Sat 2026-03-28 02:30 +01:00", "Sun 2026-03-29 03:30 +02:00", "Mon 2026-03-30 02:30 +02:00"]
        );
        assert_eq!(
            times("0 * * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", 2),
            ["Sun 2026-03-29 03:00 +02:00", "Sun 2026-03-29 04:00 +02:00"]
        );
    }

    #[test]
    fn a_time_that_a_clock_change_repeats_happens_once_unless_every_hour_counts() {
        assert_eq!(
            times("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 2),
            ["Sun 2026-10-25 02:30 +02:00", "Mon 2026-10-26 02:30 +01:00"]
        );
        assert_eq!(
            times("30 * * * *", "Europe/Berlin", "2026-10-25T00:00:00Z", 3),
            ["Sun 2026-10-25 02:30 +02:00", "Sun 2026-10-25 02:30 +01:00", "Sun 2026-10-25 03:30 +01:00"]
        );
    }

    #[test]
    fn what_is_no_time_says_which_part_and_what_could_stand_there() {
        for (wrong, part) in [
            ("", "has 0 fields"),
            ("* * * *", "has 4 fields"),
            ("* * * * * *", "has 6 fields"),
            ("60 * * * *", "\"60\" is no minute"),
            ("* 24 * * *", "is no hour"),
            ("* * 0 * *", "is no day of the month"),
            ("* * * 13 *", "is no month"),
            ("* * * * mo", "\"mo\" is no weekday"),
            ("*/0 * * * *", "is no minute"),
            ("5-1 * * * *", "\"5-1\""),
            ("+5 * * * *", "\"+5\""),
            ("1,,2 * * * *", "is no minute"),
            ("0 0 31 2 *", "never happens"),
            ("@often", "has 1 fields"),
        ] {
            let error = Cron::parse(wrong).unwrap_err().to_string();
            assert!(error.contains(part), "{wrong}: {error}");
        }
    }

    proptest::proptest! {
        #[test]
        fn every_next_time_is_later_and_fits(after in 0_i64..4_000_000_000_000, minute in 0_u32..60, hour in 0_u32..24) {
            let zone = TimeZone::get("America/New_York").unwrap();
            let cron = Cron::parse(&format!("{minute} {hour} * * *")).unwrap();
            let next = cron.next(after, &zone).unwrap();
            proptest::prop_assert!(next > after && next - after <= 50 * 3_600_000);
            let shown = local(next, zone);
            let is_shifted = shown.hour() != i8::try_from(hour).unwrap();
            proptest::prop_assert!(shown.minute() == i8::try_from(minute).unwrap());
            proptest::prop_assert!(!is_shifted || hour == 2, "{shown}");
        }
    }
}
