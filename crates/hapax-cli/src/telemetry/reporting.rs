//! Starts, reopens and ends those who are told.

use std::{io, path::PathBuf, thread, time::Duration};

use hapax_gateway::{
    admin::MetricFamily,
    telemetry::{AccessRecord, Outlet, Telemetry},
};
use tokio::{
    runtime,
    sync::{mpsc, oneshot, watch},
    time::timeout,
};

#[cfg(feature = "otlp")]
use super::otlp::{Exporter, SPANS_MAX};
use super::{
    access_log::{AccessLogFile, LINES_MAX},
    settings::{AccessLogTarget, TelemetrySettings},
};

/// How long the access log may take for its last lines.
const LAST_LINES: Duration = Duration::from_secs(2);

/// Everybody who is told what the process does.
pub(crate) struct Reporting {
    stop: watch::Sender<bool>,
    access_log: Option<AccessLogFile>,
    /// What ends once everything is told, and how long that may take.
    under_way: Vec<(oneshot::Receiver<()>, Duration)>,
    #[cfg(feature = "otlp")]
    exporter: Option<Exporter>,
}

impl Reporting {
    /// Makes ready whoever is to be told, and says how the gateway tells them.
    pub(crate) fn open(settings: &TelemetrySettings) -> Result<(Self, Telemetry), ReportingError> {
        let (stop, _) = watch::channel(false);
        let (mut reporting, mut telemetry) = (
            Self {
                stop,
                access_log: None,
                under_way: Vec::new(),
                #[cfg(feature = "otlp")]
                exporter: None,
            },
            Telemetry::default(),
        );
        if let Some(target) = &settings.access_log {
            let (outlet, records) = Outlet::bounded(LINES_MAX);
            reporting.write_access_log(target, &outlet, records)?;
            telemetry.access_log = Some(outlet);
        }
        #[cfg(feature = "otlp")]
        if let Some(otlp) = &settings.otlp {
            let (spans, finished) = Outlet::bounded(SPANS_MAX);
            let losses = spans.losses().clone();
            let exporter = Exporter::new(otlp.clone(), finished, losses)?;
            reporting.exporter = Some(exporter);
            telemetry.tracer =
                Some(hapax_gateway::telemetry::Tracer { sampler: otlp.sampling.sampler(), spans });
        }
        Ok((reporting, telemetry))
    }

    fn write_access_log(
        &mut self,
        target: &AccessLogTarget,
        outlet: &Outlet<AccessRecord>,
        records: mpsc::Receiver<AccessRecord>,
    ) -> Result<(), ReportingError> {
        let unusable = |cause| match target {
            AccessLogTarget::Stderr => ReportingError::System(cause),
            AccessLogTarget::File(path) => ReportingError::AccessLog { path: path.clone(), cause },
        };
        let log = AccessLogFile::open(target.clone()).map_err(unusable)?;
        self.access_log = Some(log.clone());
        let writing = log.write(records, outlet.losses().clone(), self.stop.subscribe());
        self.run("hapax-access-log", LAST_LINES, writing)
    }

    /// Begins to push what was and will be told, and these metrics.
    pub(crate) fn start(
        &mut self,
        metrics: impl Fn() -> Vec<MetricFamily> + Send + 'static,
    ) -> Result<(), ReportingError> {
        #[cfg(feature = "otlp")]
        if let Some(exporter) = self.exporter.take() {
            let within = exporter.last_words();
            let pushing = exporter.run(metrics, self.stop.subscribe());
            self.run("hapax-telemetry", within, pushing)?;
        }
        #[cfg(not(feature = "otlp"))]
        drop(metrics);
        Ok(())
    }

    /// Opens the access log anew, as after somebody moved it away.
    pub(crate) fn reopen(&self) -> Result<(), ReportingError> {
        let Some(log) = &self.access_log else { return Ok(()) };
        log.reopen().map_err(|cause| ReportingError::AccessLog { path: log.path(), cause })
    }

    /// Has the rest told, and waits for that no longer than is bearable.
    pub(crate) async fn finish(self) {
        self.stop.send_replace(true);
        for (ended, within) in self.under_way {
            if timeout(within, ended).await.is_err() {
                tracing::warn!("not all that was to be told could be told in time");
            }
        }
    }

    /// Does this on a thread of its own.
    fn run(
        &mut self,
        name: &str,
        within: Duration,
        work: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), ReportingError> {
        let (ended, ending) = oneshot::channel();
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(ReportingError::System)?;
        let thread = thread::Builder::new().name(name.to_owned()).spawn(move || {
            runtime.block_on(work);
            let _ = ended.send(());
        });
        thread.map_err(ReportingError::System)?;
        self.under_way.push((ending, within));
        Ok(())
    }
}

/// Why nobody can be told.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReportingError {
    #[error("the access log {} cannot be opened; name another by `to` in `[access_log]`", path.display())]
    AccessLog {
        path: PathBuf,
        #[source]
        cause: io::Error,
    },
    #[cfg(feature = "otlp")]
    #[error("`endpoint` of `[telemetry]` cannot be used")]
    Endpoint(#[from] hapax_gateway::client::UpstreamClientError),
    #[error("the operating system refused what telemetry needs")]
    System(#[source] io::Error),
}
