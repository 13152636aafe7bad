//! Which metrics there are. `docs/metrics.md` lists them for people.

use hapax_engine::Engine;
use hapax_tower::{Code, Verdict};

use super::{
    doubts,
    exposition::Exposition,
    family::MetricFamily,
    meter::UpstreamExchange,
    meters::{MeterTotals, Meters},
    relays,
    verdicts::WORDS,
};
use crate::admin::observations;

const MICROS_PER_SECOND: f64 = 1e6;

/// All of them.
pub(super) fn families(engine: &Engine, meters: &Meters) -> Vec<MetricFamily> {
    let mut page = Exposition::default();
    gateway(&mut page, meters);
    clients(&mut page, &meters.totals());
    operations(&mut page, engine);
    doubts::write(&mut page, meters.doubts().as_ref());
    observations::write(&mut page, meters.observations());
    relays::write(&mut page, &meters.relays());
    page.into_families()
}

pub(super) fn build_info(page: &mut Exposition) {
    page.gauge("hapax_build_info", "Always 1; the label says which version runs.")
        .sample(&[("version", env!("CARGO_PKG_VERSION"))], 1_u64);
}

fn gateway(page: &mut Exposition, meters: &Meters) {
    build_info(page);
    let reloads =
        page.counter("hapax_reloads_total", "Configurations read again, by what became of them.");
    for (result, count) in ["applied", "refused"].into_iter().zip(meters.reloads()) {
        reloads.sample(&[("result", result)], count);
    }
    let help =
        "Things that were to be told and for which there was no room, or nobody who took them.";
    let lost = page.counter("hapax_telemetry_lost_total", help);
    for (kind, count) in meters.losses() {
        lost.sample(&[("kind", kind)], count);
    }
}

fn clients(page: &mut Exposition, totals: &MeterTotals) {
    let requests = page
        .counter("hapax_requests_total", "Requests answered, by route and what became of them.");
    for (route, counts) in &totals.requests {
        for (verdict, count) in WORDS.iter().zip(counts) {
            requests.sample(&[("route", route), ("verdict", verdict)], *count);
        }
    }
    let durations = page.histogram(
        "hapax_request_duration_seconds",
        "Time from a request's complete head to the head of its answer.",
    );
    for (verdict, spread) in WORDS.iter().zip(&totals.durations) {
        durations.spread(&[("verdict", verdict)], spread, MICROS_PER_SECOND);
    }
    repeated(page, totals);
    let refusals =
        page.counter("hapax_refusals_total", "Requests refused before anything ran, by code.");
    for (code, count) in Code::ALL.iter().zip(&totals.refusals) {
        refusals.sample(&[("code", code.code())], *count);
    }
    let help = "Requests that were to be run and came to no answer, by code.";
    let unanswered = page.counter("hapax_unanswered_total", help);
    for (code, count) in Verdict::UNANSWERED.iter().zip(totals.unanswered) {
        unanswered.sample(&[("code", code.code())], count);
    }
    page.gauge("hapax_requests_in_flight", "Requests being worked on.")
        .sample(&[], totals.in_flight.here());
    page.gauge("hapax_connections_open", "Connections of clients that are open.")
        .sample(&[], totals.connections.here());
    page.counter("hapax_connections_total", "Connections of clients that were opened.")
        .sample(&[], totals.connections.came);
    page.counter(
        "hapax_connections_refused_total",
        "Connections closed at once, because there were as many as allowed.",
    )
    .sample(&[], totals.connections_refused);
    let help = "Connections that went on in another protocol, such as WebSocket, and are open.";
    page.gauge("hapax_upgraded_connections_open", help).sample(&[], totals.upgraded.here());
    let help = "Connections that went on in another protocol, such as WebSocket.";
    page.counter("hapax_upgraded_connections_total", help).sample(&[], totals.upgraded.came);
    let exchanges =
        page.counter("hapax_upstream_requests_total", "Requests to the upstream, by result.");
    for (result, count) in UpstreamExchange::WORDS.iter().zip(totals.exchanges) {
        exchanges.sample(&[("result", result)], count);
    }
    page.histogram(
        "hapax_upstream_duration_seconds",
        "Time from sending a request to the upstream to the head of its answer, or to its failure.",
    )
    .spread(&[], &totals.exchange_durations, MICROS_PER_SECOND);
}

/// What was asked for once more, of routes that say what requests are worth.
fn repeated(page: &mut Exposition, totals: &MeterTotals) {
    let help = "What requests that were answered from the store asked for once more, in the unit of their route's `amount`.";
    let amounts = page.counter("hapax_repeated_amount_total", help);
    for (route, sums) in &totals.repeated {
        for (currency, amount) in sums.amounts() {
            amounts.sample(&[("route", route), ("currency", currency)], amount);
        }
    }
    let help = "Requests that were answered from the store and do not say what they are worth, though their route names an `amount`.";
    let untold = page.counter("hapax_repeated_without_amount_total", help);
    for (route, sums) in &totals.repeated {
        untold.sample(&[("route", route)], sums.untold());
    }
}

fn operations(page: &mut Exposition, engine: &Engine) {
    for stat in engine.stats().named() {
        let name = format!("hapax_{}_total", stat.name);
        page.counter(&name, stat.help).sample(&[], stat.count);
    }
    page.gauge(
        "hapax_store_quarantined",
        "1 while keys that are not in the store are not run, because it may have forgotten them.",
    )
    .sample(&[], u64::from(engine.quarantine().is_some()));
    let spreads = engine.spreads();
    page.histogram("hapax_batch_writes", "Writes in each batch handed to the store.").spread(
        &[],
        &spreads.batch_writes,
        1.0,
    );
    page.histogram("hapax_commit_duration_seconds", "Time the store took to commit each batch.")
        .spread(&[], &spreads.commit_micros, MICROS_PER_SECOND);
}
