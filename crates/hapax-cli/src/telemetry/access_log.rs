//! A line of JSON for each request, on a thread of its own.

use std::{
    fs::File,
    io::{self, Write},
    net::IpAddr,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use hapax_core::Timestamp;
use hapax_gateway::telemetry::{AccessRecord, LossCounter};
use serde::Serialize;
use tokio::sync::{mpsc, watch};

use super::settings::AccessLogTarget;

/// Most requests whose lines wait to be written.
pub(super) const LINES_MAX: usize = 16 << 10;
/// Most lines that are written together.
const BATCH_LINES_MAX: usize = 512;

/// Where lines go, which can be opened anew while they do.
#[derive(Clone)]
pub(super) struct AccessLogFile {
    target: AccessLogTarget,
    /// The file, once it has been opened anew and until the next line is written.
    fresh: Arc<Mutex<Option<File>>>,
}

impl AccessLogFile {
    /// Opens it, so that whoever starts the program hears if that cannot be.
    pub(super) fn open(target: AccessLogTarget) -> io::Result<Self> {
        let log = Self { target, fresh: Arc::default() };
        log.reopen()?;
        Ok(log)
    }

    /// Opens the file anew, as after somebody moved it away; on an error the old one stays.
    pub(super) fn reopen(&self) -> io::Result<()> {
        if let AccessLogTarget::File(path) = &self.target {
            let fresh = appended(path)?;
            *self.fresh.lock().unwrap_or_else(PoisonError::into_inner) = Some(fresh);
        }
        Ok(())
    }

    /// Where it is.
    pub(super) fn path(&self) -> PathBuf {
        match &self.target {
            AccessLogTarget::Stderr => PathBuf::from("stderr"),
            AccessLogTarget::File(path) => path.clone(),
        }
    }

    /// Writes lines as records come, until told to stop and all that came are written.
    pub(super) async fn write(
        self,
        mut records: mpsc::Receiver<AccessRecord>,
        losses: LossCounter,
        mut stop: watch::Receiver<bool>,
    ) {
        let (mut file, mut batch, mut is_failing) = (None, Vec::new(), false);
        loop {
            let came = tokio::select! {
                biased;
                count = records.recv_many(&mut batch, BATCH_LINES_MAX) => Some(count),
                _ = stop.wait_for(|stop| *stop) => None,
            };
            let count = match came {
                Some(count) => count,
                None => {
                    records.close();
                    records.recv_many(&mut batch, BATCH_LINES_MAX).await
                }
            };
            if count == 0 {
                return;
            }
            let mut lines = Vec::with_capacity(batch.len() * LINE_BYTES);
            batch.iter().for_each(|record| put_line(&mut lines, record));
            match self.append(&mut file, &lines) {
                Ok(()) => is_failing = false,
                Err(error) => {
                    losses.add(u64::try_from(batch.len()).unwrap_or(u64::MAX));
                    if !is_failing {
                        tracing::warn!(%error, "the access log cannot be written");
                    }
                    is_failing = true;
                }
            }
            batch.clear();
        }
    }

    fn append(&self, file: &mut Option<File>, lines: &[u8]) -> io::Result<()> {
        if let Some(fresh) = self.fresh.lock().unwrap_or_else(PoisonError::into_inner).take() {
            *file = Some(fresh);
        }
        match (file, &self.target) {
            (Some(file), _) => file.write_all(lines),
            (None, AccessLogTarget::Stderr) => io::stderr().write_all(lines),
            (None, AccessLogTarget::File(path)) => {
                Err(io::Error::other(path.display().to_string()))
            }
        }
    }
}

/// About what a line takes.
const LINE_BYTES: usize = 384;

fn appended(path: &Path) -> io::Result<File> {
    File::options().create(true).append(true).open(path)
}

/// A request as a line of the log says it; what is not known of it is left out.
#[derive(Serialize)]
struct AccessLine<'a> {
    time: String,
    method: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    route: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    verdict: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    duration_seconds: f64,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    operation: Option<String>,
    client: IpAddr,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_id: Option<String>,
}

fn put_line(lines: &mut Vec<u8>, record: &AccessRecord) {
    let line = AccessLine {
        time: Timestamp::from(record.at).to_string(),
        method: record.method.as_str(),
        route: record.route(),
        status: record.status.map(|status| status.as_u16()),
        verdict: record.verdict,
        code: record.code,
        duration_seconds: record.duration.as_secs_f64(),
        bytes: record.bytes,
        tenant: record.tenant.map(|tenant| tenant.to_string()),
        operation: record.operation.map(|operation| operation.to_string()),
        client: record.client,
        trace_id: record.trace_id.map(|trace_id| trace_id.to_string()),
    };
    // Writing to memory cannot fail.
    let _ = serde_json::to_writer(&mut *lines, &line);
    lines.push(b'\n');
}
