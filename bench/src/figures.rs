//! Takes the middle of repeated measurements and turns it into figures. Measures nothing itself.

use std::time::Duration;

use anyhow::{Context, Result};

/// The middle one; of an even number the upper of the two in the middle.
pub(crate) fn median<T: PartialOrd + Copy>(values: &[T]) -> Result<T> {
    let mut sorted = values.to_vec();
    sorted.sort_by(|one, other| one.partial_cmp(other).unwrap_or(std::cmp::Ordering::Equal));
    sorted.get(sorted.len() / 2).copied().context("nothing was measured")
}

pub(crate) fn median_ms(times: &[Duration]) -> Result<f64> {
    Ok(milliseconds(median(times)?))
}

pub(crate) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

pub(crate) fn microseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

pub(crate) fn megabytes(kilobytes: u64) -> f64 {
    kilobytes as f64 / 1024.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_is_not_moved_by_one_wild_value() {
        assert_eq!(median(&[3, 1, 1_000]).unwrap(), 3);
        assert!(median::<u8>(&[]).is_err());
    }
}
