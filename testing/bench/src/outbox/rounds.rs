//! Each way in turn, each on a fresh database and with threads of its own.

use tokio_postgres::Config;

use crate::{
    error::BenchError,
    progress::BenchProgress,
    sample::{self, DATABASE},
    server::BenchServer,
    turns::{Measurement, NamedWay, WayTurns},
};

/// Where rounds are run, and who is told.
#[derive(Clone, Copy)]
pub(super) struct Rounds<'a> {
    pub(super) server: &'a BenchServer,
    pub(super) progress: &'a BenchProgress,
    pub(super) count: u32,
}

impl Rounds<'_> {
    pub(super) fn take<W: NamedWay, S: Measurement>(
        self,
        what: &str,
        ways: &[W],
        measure: impl AsyncFn(W, Config) -> Result<S, BenchError>,
    ) -> Result<WayTurns<W, S>, BenchError> {
        WayTurns::take(self.count, ways, |way| {
            self.progress.begin(format!("{what}, {}", way.label()))?;
            let runtime = sample::workers()?;
            let measured = runtime.block_on(async {
                let config = self.server.create(DATABASE).await?;
                self.progress.unless_interrupted(measure(way, config)).await
            });
            runtime.block_on(self.server.remove(DATABASE))?;
            self.progress.inc(1);
            measured
        })
    }
}
