//! Durations, sizes and rates, as people write them.

use std::{num::NonZeroU32, time::Duration};

use hapax_core::limits::RETENTION_MAX;

/// Most operations in a second that a rate may allow.
pub(crate) const RATE_MAX: u32 = 1_000_000;
/// Longest duration a configuration may name.
const DURATION_MAX: Duration = RETENTION_MAX;

const DURATION_UNITS: &[(&str, u64)] =
    &[("ms", 1), ("s", 1000), ("m", 60 * 1000), ("h", 60 * 60 * 1000), ("d", 24 * 60 * 60 * 1000)];
const SIZE_UNITS: &[(&str, u64)] =
    &[("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];

/// `250ms`, `10s`, `5m`, `24h`, `7d`; longer than nothing.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let duration = duration_or_zero(text)?;
    if duration.is_zero() {
        return Err(format!("must be longer than nothing, not \"{text}\"; {DURATION_ADVICE}"));
    }
    Ok(duration)
}

/// Like [`duration`], with `0s` for nothing.
pub(crate) fn duration_or_zero(text: &str) -> Result<Duration, String> {
    if text.trim_start().starts_with('-') {
        return Err(format!("cannot be negative, as \"{text}\" is; {DURATION_ADVICE}"));
    }
    let millis = measure(text, DURATION_UNITS)
        .ok_or_else(|| format!("cannot be \"{text}\"; {DURATION_ADVICE}"))?;
    let duration = Duration::from_millis(millis);
    if duration > DURATION_MAX {
        let days = DURATION_MAX.as_secs() / (24 * 60 * 60);
        return Err(format!("cannot be \"{text}\"; write at most \"{days}d\" instead"));
    }
    Ok(duration)
}

const DURATION_ADVICE: &str =
    "write a whole number and a unit, such as \"250ms\", \"10s\", \"24h\" or \"7d\", instead";

/// `512B`, `64KiB`, `1MiB`, `1GiB`.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    measure(text, SIZE_UNITS).ok_or_else(|| {
        let advice = "write a whole number and a unit, such as \"64KiB\" or \"1MiB\", instead";
        format!("cannot be \"{text}\"; {advice}")
    })
}

/// `50/s`: how many in a second.
pub(crate) fn rate(text: &str) -> Result<NonZeroU32, String> {
    let count = text.split_once('/').filter(|(_, unit)| unit.trim() == "s");
    let count = count.and_then(|(count, _)| number(count.trim()));
    let count = count.filter(|count| *count <= u64::from(RATE_MAX));
    let count = count.and_then(|count| NonZeroU32::new(u32::try_from(count).ok()?));
    let advice = "write how many operations may begin in a second, such as \"50/s\", instead";
    count.ok_or_else(|| format!("cannot be {text:?}; {advice}"))
}

/// The shortest way to write a duration.
pub(crate) fn spelled(duration: Duration) -> String {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    spell(millis, DURATION_UNITS, "0s")
}

/// The shortest way to write a size.
pub(crate) fn spelled_size(bytes: usize) -> String {
    spell(u64::try_from(bytes).unwrap_or(u64::MAX), SIZE_UNITS, "0B")
}

fn spell(value: u64, units: &[(&str, u64)], nothing: &str) -> String {
    let fits = units.iter().rev().find(|(_, unit)| value > 0 && value.is_multiple_of(*unit));
    fits.map_or_else(|| nothing.to_owned(), |(name, unit)| format!("{}{name}", value / unit))
}

fn measure(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit())?;
    let (count, unit) = text.split_at(end);
    let (_, unit) = units.iter().find(|(name, _)| *name == unit.trim_start())?;
    number(count)?.checked_mul(*unit)
}

fn number(digits: &str) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_whole_numbers_with_a_unit() {
        for (text, millis) in [
            ("250ms", 250),
            ("10s", 10_000),
            ("5m", 300_000),
            ("24h", 86_400_000),
            ("7 d", 604_800_000),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in
            ["", "10", "s", "1.5s", "-1s", "0s", "10 seconds", "401d", "99999999999999999999d"]
        {
            assert!(duration(text).is_err(), "{text}");
        }
        assert_eq!(duration_or_zero("0s"), Ok(Duration::ZERO));
    }

    #[test]
    fn what_is_spelled_is_read_as_the_same() {
        for text in ["250ms", "90s", "5m", "24h", "7d"] {
            let read = duration(text).unwrap();
            assert_eq!(duration(&spelled(read)), Ok(read));
        }
        for text in ["1B", "64KiB", "1MiB", "3GiB"] {
            let read = usize::try_from(size(text).unwrap()).unwrap();
            assert_eq!(spelled_size(read), text);
        }
    }

    #[test]
    fn sizes_and_rates_need_their_unit() {
        for text in ["", "64", "64KB", "KiB", "1.5MiB", "-1B", "99999999999999999999GiB"] {
            assert!(size(text).is_err(), "{text}");
        }
        assert_eq!(rate("50/s").map(NonZeroU32::get), Ok(50));
        for text in ["", "50", "0/s", "50/m", "/s", "-1/s", "1.5/s", "9999999999/s"] {
            assert!(rate(text).is_err(), "{text}");
        }
    }
}
