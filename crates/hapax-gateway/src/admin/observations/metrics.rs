//! The same for Prometheus.

use super::{Observations, locked};
use crate::admin::metrics::Exposition;

/// Every metric of what was seen.
pub(in crate::admin) fn write(page: &mut Exposition, observations: &Observations) {
    let tally = locked(&observations.tally);
    let help = "Requests of routes that are watched alone, by route and what would have been done with them.";
    let requests = page.counter("hapax_observed_total", help);
    for (route, counts) in tally.counts() {
        for (what, count) in counts.words() {
            requests.sample(&[("route", route), ("what", what)], count);
        }
    }
    let help = "What requests of routes that are watched alone asked for once more, in the unit of their route's `amount`.";
    let amounts = page.counter("hapax_observed_amount_total", help);
    for (route, counts) in tally.counts() {
        for (what, sums) in counts.sums() {
            for (currency, amount) in sums.amounts() {
                let labels = [("route", route), ("what", what), ("currency", currency)];
                amounts.sample(&labels, amount);
            }
        }
    }
    let memory = observations.observer.memory();
    let keys = u64::try_from(memory.keys).unwrap_or(u64::MAX);
    page.gauge("hapax_observed_keys", "Keys of watched routes that are remembered.")
        .sample(&[], keys);
    let help = "Keys of watched routes that were forgotten before their retention was over, for want of room.";
    page.counter("hapax_observed_keys_forgotten_total", help).sample(&[], memory.keys_forgotten);
}
