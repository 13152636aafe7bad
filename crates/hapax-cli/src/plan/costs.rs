//! What things cost, as it was measured: `costs.json`, with the command for each figure.

use serde::{Deserialize, Serialize};

use super::PlanError;
use crate::args::PlannedStore;

const MEASURED: &str = include_str!("costs.json");

/// Everything that was measured.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MeasuredCosts {
    /// Where it was measured.
    pub(super) machine: String,
    /// The size of answers in what was measured.
    answer_bytes: f64,
    /// Most keys a store was measured with.
    pub(super) keys_measured: MeasuredFigure,
    pub(super) gateway_cpu_us: MeasuredFigure,
    sqlite: StoreCosts,
    postgres: StoreCosts,
}

/// What one store costs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoreCosts {
    disk_bytes: MeasuredFigure,
    /// Where answers lie in pages of this size; `None` where a byte of an answer is a byte on disk.
    page_bytes: Option<MeasuredFigure>,
    /// `None` where nobody measured it.
    log_bytes: Option<MeasuredFigure>,
    /// `None` where there is no server.
    pub(super) server_cpu_us: Option<MeasuredFigure>,
    pub(super) requests_per_second: MeasuredFigure,
    /// Connections of one gateway.
    pub(super) connections: u32,
}

/// A figure, and how to measure it again.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MeasuredFigure {
    pub(super) value: f64,
    pub(super) unit: String,
    pub(super) command: String,
}

impl MeasuredCosts {
    pub(super) fn load() -> Result<Self, PlanError> {
        serde_json::from_str(MEASURED).map_err(PlanError::Costs)
    }

    pub(super) fn of(&self, store: PlannedStore) -> &StoreCosts {
        match store {
            PlannedStore::Sqlite => &self.sqlite,
            PlannedStore::Postgres => &self.postgres,
        }
    }

    /// Bytes on disk for a key with an answer of this size.
    pub(super) fn disk_bytes(&self, store: PlannedStore, answer: f64) -> f64 {
        let StoreCosts { disk_bytes, page_bytes, .. } = self.of(store);
        let share = |answer| match page_bytes {
            Some(page) => in_pages(answer, page.value),
            None => answer,
        };
        disk_bytes.value + share(answer) - share(self.answer_bytes)
    }

    /// Bytes of log for a request; `None` where nobody measured it. What is kept of the request, and of an
    /// answer beyond what was measured, is written once more.
    pub(super) fn log_bytes(&self, store: PlannedStore, answer: f64, request: f64) -> Option<f64> {
        let log = self.of(store).log_bytes.as_ref()?;
        Some(log.value + (answer - self.answer_bytes) + request)
    }

    /// Every figure that counts for these stores.
    pub(super) fn figures(&self, stores: &[PlannedStore]) -> Vec<&MeasuredFigure> {
        let mut figures = Vec::new();
        for store in stores {
            let costs = self.of(*store);
            figures.push(&costs.disk_bytes);
            figures.extend(costs.page_bytes.as_ref());
            figures.extend(costs.log_bytes.as_ref());
            figures.extend(costs.server_cpu_us.as_ref());
            figures.push(&costs.requests_per_second);
        }
        figures.extend([&self.gateway_cpu_us, &self.keys_measured]);
        figures
    }
}

/// What an answer takes where it lies in pages as SQLite lays them out: those that fit share a page, of a
/// larger one a part lies with others and the rest in pages of its own.
fn in_pages(answer: f64, page: f64) -> f64 {
    /// What is kept beside an answer in its row, and what a row needs in its page.
    const ROW: f64 = 40.0;
    const CELL: f64 = 8.0;
    let (row, chain) = (answer + ROW, page - 4.0);
    let together = |bytes: f64| page / ((page - 8.0) / (bytes + CELL)).floor().max(1.0);
    if row <= page - 35.0 {
        return together(row);
    }
    let least = ((page - 12.0) * 32.0 / 255.0).floor() - 23.0;
    let rest = least + (row - least) % chain;
    let beside = if rest <= page - 35.0 { rest } else { least };
    together(beside + 4.0) + ((row - beside) / chain).ceil() * page
}

impl PlannedStore {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_share_a_page_of_sqlite_or_have_their_own() {
        for (answer, bytes) in [(512.0, 4096.0 / 7.0), (1900.0, 2048.0), (2100.0, 4096.0)] {
            assert_eq!(in_pages(answer, 4096.0), bytes, "{answer}");
        }
        let large = in_pages(16_384.0, 4096.0);
        assert!((16_384.0..18_000.0).contains(&large), "{large}");
    }

    #[test]
    fn every_figure_is_above_zero_and_says_how_it_was_measured() {
        let costs = MeasuredCosts::load().unwrap();
        for figure in costs.figures(&[PlannedStore::Sqlite, PlannedStore::Postgres]) {
            assert!(figure.value > 0.0, "{figure:?}");
            assert!(figure.command.starts_with("cargo "), "{figure:?}");
        }
    }
}
