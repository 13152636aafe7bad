//! All meters of a gateway, and what they come to.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{
            AtomicU64,
            Ordering::{Acquire, Relaxed},
        },
    },
};

use hapax_core::StoreError;
use hapax_engine::{Distribution, Engine, Histogram, LATENCY_MICROS};
use hapax_tower::{Code, Routes, Verdict};

use super::{
    doubts::Doubts,
    meter::{Level, Meter, UpstreamExchange},
    relays::RelayFigures,
    repeated::RepeatedSums,
    verdicts::COLUMNS,
};
use crate::{
    admin::observations::Observations,
    telemetry::{LossCounter, Telemetry},
};

/// Every [`Meter`] of a gateway. Clones share them.
///
/// What a meter has counted is kept when nobody uses it any more, as after a reload: counts never
/// fall.
#[derive(Debug, Clone, Default)]
pub struct Meters(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    meters: Mutex<MeterSet>,
    reloads_applied: AtomicU64,
    reloads_refused: AtomicU64,
    relays: Mutex<Option<RelaySource>>,
    losses: Mutex<[LossCounter; LOSSES.len()]>,
    doubts: Mutex<Option<Doubts>>,
    observations: Observations,
}

/// What can be lost on its way to whoever is told.
const LOSSES: [&str; 2] = ["span", "access_log"];

#[derive(Clone)]
struct RelaySource(Arc<dyn Fn() -> Vec<RelayFigures> + Send + Sync>);

impl fmt::Debug for RelaySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RelaySource").finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct MeterSet {
    in_use: Vec<Arc<Meter>>,
    retired: MeterTotals,
}

impl Meters {
    /// A meter for one worker that serves the routes with these labels, `otherwise` last.
    ///
    /// Routes with other labels, as after a reload, need another meter.
    pub fn meter(&self, labels: &Arc<[String]>) -> Arc<Meter> {
        let meter = Arc::new(Meter::new(Arc::clone(labels)));
        self.with(|kept| kept.in_use.push(Arc::clone(&meter)));
        meter
    }

    /// Shows what `relays` says whenever somebody looks, in place of what was shown before.
    pub fn show_relays(&self, relays: impl Fn() -> Vec<RelayFigures> + Send + Sync + 'static) {
        let source = RelaySource(Arc::new(relays));
        *self.0.relays.lock().unwrap_or_else(PoisonError::into_inner) = Some(source);
    }

    /// Shows what was lost on its way to whoever this tells.
    pub(crate) fn show_losses(&self, telemetry: &Telemetry) {
        let spans = telemetry.tracer.as_ref().map(|tracer| tracer.spans.losses().clone());
        let lines = telemetry.access_log.as_ref().map(|lines| lines.losses().clone());
        *self.0.losses.lock().unwrap_or_else(PoisonError::into_inner) =
            [spans, lines].map(Option::unwrap_or_default);
    }

    pub(super) fn losses(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let losses = self.0.losses.lock().unwrap_or_else(PoisonError::into_inner).clone();
        LOSSES.into_iter().zip(losses.map(|losses| losses.total()))
    }

    pub(in crate::admin) fn relays(&self) -> Vec<RelayFigures> {
        let source = self.0.relays.lock().unwrap_or_else(PoisonError::into_inner).clone();
        source.map_or_else(Vec::new, |source| (source.0)())
    }

    /// Looks in the store for keys in doubt, and shows them by these routes until it looks again.
    pub async fn look_for_doubts(
        &self,
        engine: &Engine,
        routes: &Routes,
    ) -> Result<(), StoreError> {
        let seen = Doubts::look(engine, routes).await?;
        *self.0.doubts.lock().unwrap_or_else(PoisonError::into_inner) = Some(seen);
        Ok(())
    }

    pub(in crate::admin) fn doubts(&self) -> Option<Doubts> {
        self.0.doubts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What would have been done with requests of routes that are watched alone.
    pub(crate) fn observations(&self) -> &Observations {
        &self.0.observations
    }

    /// Counts a new configuration that was put in force.
    pub fn record_reload(&self) {
        self.0.reloads_applied.fetch_add(1, Relaxed);
    }

    /// Counts a new configuration that was refused, so that the old one stayed.
    pub fn record_refused_reload(&self) {
        self.0.reloads_refused.fetch_add(1, Relaxed);
    }

    /// How many reloads were applied, and how many refused.
    pub(in crate::admin) fn reloads(&self) -> [u64; 2] {
        [self.0.reloads_applied.load(Relaxed), self.0.reloads_refused.load(Relaxed)]
    }

    /// What all meters have counted together.
    pub(in crate::admin) fn totals(&self) -> MeterTotals {
        self.with(|kept| {
            for meter in std::mem::take(&mut kept.in_use) {
                match Arc::try_unwrap(meter) {
                    Ok(unused) => kept.retired.add(&unused),
                    Err(meter) => kept.in_use.push(meter),
                }
            }
            let mut totals = kept.retired.clone();
            kept.in_use.iter().for_each(|meter| totals.add(meter));
            totals
        })
    }

    fn with<T>(&self, work: impl FnOnce(&mut MeterSet) -> T) -> T {
        work(&mut self.0.meters.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Sums over meters.
#[derive(Debug, Clone)]
pub(in crate::admin) struct MeterTotals {
    /// By label and verdict.
    pub(in crate::admin) requests: BTreeMap<String, [u64; COLUMNS]>,
    /// By label.
    pub(in crate::admin) repeated: BTreeMap<String, RepeatedSums>,
    pub(in crate::admin) durations: [Distribution; COLUMNS],
    pub(super) refusals: Vec<u64>,
    pub(super) unanswered: [u64; Verdict::UNANSWERED.len()],
    pub(super) exchanges: [u64; UpstreamExchange::WORDS.len()],
    pub(in crate::admin) exchange_durations: Distribution,
    pub(in crate::admin) connections: Flow,
    pub(super) connections_refused: u64,
    pub(in crate::admin) in_flight: Flow,
    pub(super) upgraded: Flow,
}

/// What came and what went.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::admin) struct Flow {
    pub(super) came: u64,
    went: u64,
}

impl Flow {
    /// What is there.
    pub(in crate::admin) fn here(self) -> u64 {
        self.came.saturating_sub(self.went)
    }

    fn add(&mut self, level: &Level) {
        // In this order nothing is seen to go that is not seen to have come.
        self.went += level.went.load(Acquire);
        self.came += level.came.load(Relaxed);
    }
}

impl MeterTotals {
    fn add(&mut self, meter: &Meter) {
        for (label, row) in meter.labels.iter().zip(&meter.requests) {
            let sums = self.requests.entry(label.clone()).or_default();
            add(sums, &row.0);
        }
        for (label, sums) in meter.labels.iter().zip(&meter.repeated) {
            let sums = sums.lock().unwrap_or_else(PoisonError::into_inner);
            if !sums.is_empty() {
                self.repeated.entry(label.clone()).or_default().add(&sums);
            }
        }
        for (sum, spread) in self.durations.iter_mut().zip(&meter.durations) {
            sum.add(&spread.snapshot());
        }
        add(&mut self.refusals, &meter.refusals);
        add(&mut self.unanswered, &meter.unanswered);
        add(&mut self.exchanges, &meter.exchanges);
        self.exchange_durations.add(&meter.exchange_durations.snapshot());
        self.connections.add(&meter.connections);
        self.connections_refused += meter.connections_refused.load(Relaxed);
        self.in_flight.add(&meter.in_flight);
        self.upgraded.add(&meter.upgraded);
    }
}

impl Default for MeterTotals {
    fn default() -> Self {
        let nothing = Histogram::new(LATENCY_MICROS).snapshot();
        Self {
            requests: BTreeMap::new(),
            repeated: BTreeMap::new(),
            durations: std::array::from_fn(|_| nothing.clone()),
            refusals: vec![0; Code::ALL.len()],
            unanswered: Default::default(),
            exchanges: Default::default(),
            exchange_durations: nothing,
            connections: Flow::default(),
            connections_refused: 0,
            in_flight: Flow::default(),
            upgraded: Flow::default(),
        }
    }
}

fn add(sums: &mut [u64], counts: &[AtomicU64]) {
    for (sum, count) in sums.iter_mut().zip(counts) {
        *sum += count.load(Relaxed);
    }
}
