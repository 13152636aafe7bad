//! Spans and sizes in words.

use std::time::Duration;

/// `3 d`, `5 h`, `90 s`: a span with the unit it is best read in.
pub(crate) fn span(span: Duration) -> String {
    const UNITS: [(&str, u64); 3] = [("d", 86_400), ("h", 3600), ("min", 60)];
    let secs = span.as_secs();
    let fits = UNITS.iter().find(|(_, unit)| secs >= 2 * unit);
    match fits {
        Some((name, unit)) => format!("{} {name}", secs / unit),
        None if secs >= 1 => format!("{secs} s"),
        None if span.as_micros() >= 1000 => format!("{} ms", span.as_millis()),
        None => format!("{} us", span.as_micros()),
    }
}

/// `512 B`, `1.5 MiB`: a size with the unit it is best read in.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [(&str, u64); 4] =
        [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match UNITS.iter().find(|(_, unit)| bytes >= *unit) {
        Some((name, unit)) => {
            let tenths = u128::from(bytes) * 10 / u128::from(*unit);
            format!("{}.{} {name}", tenths / 10, tenths % 10)
        }
        None => format!("{bytes} B"),
    }
}

/// `6.4 GB`: a size in thousands, as disks are sold.
pub(crate) fn decimal_size(bytes: f64) -> String {
    const UNITS: [(&str, f64); 4] = [("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)];
    match UNITS.iter().find(|(_, unit)| bytes >= *unit) {
        Some((name, unit)) => format!("{:.1} {name}", bytes / unit),
        None => format!("{bytes:.0} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_and_sizes_have_the_unit_they_are_best_read_in() {
        for (millis, words) in
            [(0, "0 us"), (7, "7 ms"), (90_000, "90 s"), (7_200_000, "2 h"), (259_200_000, "3 d")]
        {
            assert_eq!(span(Duration::from_millis(millis)), words);
        }
        assert_eq!(decimal_size(6.39e9), "6.4 GB");
        for (bytes, words) in [(12, "12 B"), (1536, "1.5 KiB"), (3 << 30, "3.0 GiB")] {
            assert_eq!(size(bytes), words);
        }
    }
}
