//! `hapax plan`.

use std::{path::PathBuf, time::Duration};

use clap::{Args, ValueEnum, value_parser};

use super::duration;

/// Work out what a retention costs: disk, log, CPU, connections and money.
///
/// Every figure is computed from costs that were measured, each with the command that measured it; they
/// are printed below. Your machine is another: measure it with `cargo xtask bench store`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hapax plan --rate 100/s
  hapax plan --rate 100/s --peak 2000/s --retention 7d --answer 2KiB
  hapax plan --rate 100/s --retention 9d --client-retries-for 72h
  hapax plan --rate 3000000/d --growth 5%/month --disk 0.10/GB-month --html plan.html

Exit status: 0 when there is a plan, 1 when what was asked contradicts itself: a retention that is shorter
than clients try, 2 when the arguments mean nothing.")]
pub(crate) struct PlanArgs {
    /// New requests, retries not counted: 100/s, 5000/min, 20000/h or 3000000/d.
    #[arg(long, value_name = "N/UNIT", value_parser = rate)]
    pub(crate) rate: f64,

    /// The same in the busiest minute; as --rate unless said.
    #[arg(long, value_name = "N/UNIT", value_parser = rate)]
    pub(crate) peak: Option<f64>,

    /// How long an answer is kept.
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = duration)]
    pub(crate) retention: Duration,

    /// The size of an answer, with its headers: 512B, 16KiB or 1MiB.
    #[arg(long, value_name = "SIZE", default_value = "512B", value_parser = size)]
    pub(crate) answer: u64,

    /// The size of a request, where it is kept until it is done: recovery `resend` or `probe`, or 202.
    #[arg(long, value_name = "SIZE", default_value = "0B", value_parser = size)]
    pub(crate) request: u64,

    /// One store alone; both unless said.
    #[arg(long, value_name = "STORE")]
    pub(crate) store: Option<PlannedStore>,

    /// How many gateways share the store.
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = value_parser!(u32).range(1..=1000))]
    pub(crate) gateways: u32,

    /// How long clients go on trying. A shorter retention is refused.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) client_retries_for: Option<Duration>,

    /// How fast the rate grows: 5%/month or 40%/year.
    #[arg(long, value_name = "N%/UNIT", default_value = "0%/month", value_parser = growth)]
    pub(crate) growth: f64,

    /// What a disk costs, in any currency: 0.10/GB-month.
    #[arg(long, value_name = "PRICE", value_parser = |raw: &str| price(raw, "/GB-month"))]
    pub(crate) disk: Option<f64>,

    /// What a core costs, in the same currency: 0.04/core-hour.
    #[arg(long, value_name = "PRICE", value_parser = |raw: &str| price(raw, "/core-hour"))]
    pub(crate) cpu: Option<f64>,

    /// Write the tables and a plot into this page.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,

    /// Answer in JSON, for programs.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A store that can be planned for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlannedStore {
    /// One file on one machine.
    Sqlite,
    /// A server that gateways share.
    Postgres,
}

/// Most that is computed with: a hundred times what was ever measured.
const RATE_MAX: f64 = 10_000_000.0;
/// Largest answer or request, in bytes; the gateway takes no larger ones.
const SIZE_MAX: u64 = 16 << 20;

/// In a second.
fn rate(raw: &str) -> Result<f64, String> {
    let advice =
        "write how many come in a second, minute, hour or day: 100/s, 5000/min, 20000/h, 3000000/d";
    let (count, unit) = raw.split_once('/').ok_or(advice)?;
    let secs = match unit.trim() {
        "s" => 1.0,
        "min" | "m" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return Err(advice.to_owned()),
    };
    let rate = number(count).map(|count| count / secs).filter(|rate| *rate > 0.0);
    rate.filter(|rate| *rate <= RATE_MAX).ok_or_else(|| advice.to_owned())
}

fn size(raw: &str) -> Result<u64, String> {
    let advice = "write a whole number and a unit, at most 16MiB: 512B, 16KiB, 1MiB";
    let end = raw.find(|char: char| !char.is_ascii_digit()).ok_or(advice)?;
    let (count, unit) = raw.split_at(end);
    let unit = match unit {
        "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        _ => return Err(advice.to_owned()),
    };
    let bytes = count.parse::<u64>().ok().and_then(|count| count.checked_mul(unit));
    bytes.filter(|bytes| *bytes <= SIZE_MAX).ok_or_else(|| advice.to_owned())
}

/// What the rate is multiplied by in a month, less one.
fn growth(raw: &str) -> Result<f64, String> {
    let advice =
        "write how much more it is after a month or a year, up to 1000%: 5%/month, 40%/year";
    let (percent, unit) = raw.split_once("%/").ok_or(advice)?;
    let share = number(percent).map(|percent| percent / 100.0).filter(|share| *share <= 10.0);
    let share = share.ok_or(advice)?;
    match unit.trim() {
        "month" => Ok(share),
        "year" => Ok((1.0 + share).powf(1.0 / 12.0) - 1.0),
        _ => Err(advice.to_owned()),
    }
}

fn price(raw: &str, unit: &str) -> Result<f64, String> {
    let advice = || format!("write a price, such as 0.10{unit}");
    let price = raw.strip_suffix(unit).and_then(number);
    price.ok_or_else(advice)
}

/// A number that is not negative.
fn number(raw: &str) -> Option<f64> {
    let number: f64 = raw.trim().parse().ok()?;
    (number.is_finite() && number >= 0.0).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_sizes_growth_and_prices_are_read_as_people_write_them() {
        assert_eq!(rate("120/min"), Ok(2.0));
        assert_eq!(rate("864000/d"), Ok(10.0));
        assert_eq!(size("16KiB"), Ok(16_384));
        assert_eq!(growth("5%/month"), Ok(0.05));
        let yearly = growth("100%/year").unwrap();
        assert!(((1.0 + yearly).powi(12) - 2.0).abs() < 1e-9);
        assert_eq!(price("0.10/GB-month", "/GB-month"), Ok(0.10));
    }

    #[test]
    fn what_means_nothing_is_refused() {
        for raw in ["100", "0/s", "-3/s", "x/s", "5/week", "1e99/s", "NaN/s"] {
            assert!(rate(raw).is_err(), "{raw}");
        }
        for raw in ["512", "1GiB", "17MiB", "-1B", "KiB"] {
            assert!(size(raw).is_err(), "{raw}");
        }
        for raw in ["5", "5%", "-5%/month", "2000%/month", "5%/day"] {
            assert!(growth(raw).is_err(), "{raw}");
        }
        assert!(price("0.10", "/GB-month").is_err());
    }
}
