//! Each way in turn, each on a fresh database and with threads of its own.

use indicatif::ProgressBar;
use tokio_postgres::Config;

use crate::bench::{
    error::BenchError,
    sample::{self, DATABASE},
    server::Server,
    turns::{Figures, Named, Turns},
};

/// Where rounds are run, and who is told.
#[derive(Clone, Copy)]
pub(super) struct Rounds<'a> {
    pub(super) server: &'a Server,
    pub(super) progress: &'a ProgressBar,
    pub(super) count: u32,
}

impl Rounds<'_> {
    pub(super) fn take<W: Named, S: Figures, const N: usize>(
        self,
        what: &str,
        ways: [W; N],
        measure: impl AsyncFn(W, Config) -> Result<S, BenchError>,
    ) -> Result<Turns<W, S, N>, BenchError> {
        Turns::take(self.count, ways, |way| {
            self.progress.set_message(format!("{what}, {}", way.label()));
            let runtime = sample::workers()?;
            let measured = runtime.block_on(async {
                let config = self.server.create(DATABASE).await?;
                measure(way, config).await
            });
            runtime.block_on(self.server.remove(DATABASE))?;
            self.progress.inc(1);
            measured
        })
    }
}
