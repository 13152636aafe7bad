//! How much memory the gateway holds: unused, with idle connections, and under large requests.

use std::{collections::BTreeMap, convert::Infallible, future, path::Path, time::Duration};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use tokio::{io::AsyncWriteExt, net::TcpStream, runtime::Builder, task::JoinSet, time::timeout};

use super::{
    child::{Child, Memory},
    client::{self, KeepAliveClient, WrongAnswer},
    error::HttpError,
    gateway::{self, GatewayProtection, GatewaySetup},
    wire,
};
use crate::{
    BenchError,
    figures::{BoundedFigure, FigureTarget, MeasuredSpread, number},
    load::float,
    progress::BenchProgress,
    report::ReportSection,
};

pub(super) const STEPS: u64 = 3;

const IDLE_CONNECTIONS: u64 = 10_000;
const LARGE_REQUESTS: usize = 1000;
const LARGE_BYTES: usize = 1 << 20;
/// Open files a process needs besides its connections.
const OTHER_FILES: u64 = 200;
/// How long the gateway is given to come to rest before its memory is read.
const REST: Duration = Duration::from_secs(1);
const ANSWER_LIMIT: Duration = Duration::from_secs(120);

const IDLE_MIB_MAX: f64 = 40.0;
const IDLE_CONNECTIONS_MIB_MAX: f64 = 250.0;

/// Measures a fresh gateway on SQLite, then another one.
pub(super) fn run(
    program: &Path,
    directory: &Path,
    progress: &BenchProgress,
) -> Result<ReportSection, BenchError> {
    let runtime =
        Builder::new_current_thread().enable_all().build().map_err(BenchError::Runtime)?;
    runtime.block_on(progress.unless_interrupted(measure(program, directory, progress)))
}

async fn measure(
    program: &Path,
    directory: &Path,
    progress: &BenchProgress,
) -> Result<ReportSection, BenchError> {
    let connections = raise_open_files().saturating_sub(OTHER_FILES).min(IDLE_CONNECTIONS);

    progress.begin("at rest")?;
    let pair = Pair::start(program, directory)?;
    let unused = pair.at_rest().await?;
    progress.inc(1);

    progress.begin(format!("{connections} idle connections"))?;
    let held = hold(pair.gateway.port, connections).await?;
    let idle = pair.at_rest().await?;
    drop(held);
    drop(pair);
    progress.inc(1);

    progress.begin(format!("{LARGE_REQUESTS} large requests"))?;
    let pair = Pair::start(program, directory)?;
    let answers = send_large(pair.gateway.port).await;
    let large = pair.gateway.memory()?;
    let invalid = pair.wrong(&answers).await?;
    progress.inc(1);

    Ok(section(connections, [unused, idle, large], &answers, invalid))
}

/// A gateway, and the upstream behind it.
struct Pair {
    gateway: Child,
    upstream: Child,
    _files: tempfile::TempDir,
}

impl Pair {
    fn start(program: &Path, directory: &Path) -> Result<Self, BenchError> {
        let files = tempfile::tempdir_in(directory).map_err(BenchError::Directory)?;
        let upstream = Child::upstream(files.path())?;
        let gateway = GatewaySetup {
            program,
            upstream: upstream.port,
            store: gateway::sqlite(files.path()),
            protection: GatewayProtection::Protect,
            settings: String::new(),
            directory: files.path(),
        };
        Ok(Self { gateway: gateway.start()?.child, upstream, _files: files })
    }

    async fn at_rest(&self) -> Result<Memory, BenchError> {
        tokio::time::sleep(REST).await;
        self.gateway.memory()
    }

    /// What is wrong with these answers. A refusal is none: what is over a limit is refused.
    async fn wrong(&self, answers: &AnswerCounts) -> Result<Option<String>, BenchError> {
        let mut client =
            KeepAliveClient::connect(self.upstream.port).await.map_err(HttpError::Connect)?;
        let totals = client.totals().await.map_err(HttpError::Ledger)?;
        let successes = answers.successes();
        let (keys, repeated) = (totals.keys, totals.repeated);
        let wrong = repeated > 0 || keys < successes || successes == 0;
        Ok(wrong.then(|| {
            format!(
                "{successes} large requests succeeded, but the upstream executed {keys} keys, \
                 {repeated} of them more than once"
            )
        }))
    }
}

/// Lets this process, and those it starts, open as many files as they may; says how many.
fn raise_open_files() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    // Where it is refused, the limit that is there is used.
    let _ = setrlimit(Resource::Nofile, raised);
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Opens connections that have each been used once, so that the gateway has taken them all.
async fn hold(port: u16, connections: u64) -> Result<Vec<KeepAliveClient>, HttpError> {
    let mut held = Vec::new();
    for _ in 0..connections {
        let mut client = KeepAliveClient::connect(port).await.map_err(HttpError::Connect)?;
        client.get("/").await.map_err(HttpError::Idle)?;
        held.push(client);
    }
    Ok(held)
}

/// How many requests were answered how; those without an answer by the reason.
#[derive(Debug, Default)]
struct AnswerCounts(BTreeMap<String, u64>);

impl AnswerCounts {
    fn add(&mut self, answer: Result<u16, WrongAnswer>) {
        let name = match answer {
            Ok(status) => status.to_string(),
            Err(wrong) => wrong.to_string(),
        };
        *self.0.entry(name).or_default() += 1;
    }

    fn successes(&self) -> u64 {
        self.0.iter().filter(|(name, _)| name.starts_with('2')).map(|(_, count)| count).sum()
    }

    fn said(&self) -> String {
        let parts: Vec<_> =
            self.0.iter().map(|(name, count)| format!("{count} x {name}")).collect();
        parts.join(", ")
    }
}

/// Sends all large requests at the same time.
async fn send_large(port: u16) -> AnswerCounts {
    let body: std::sync::Arc<[u8]> = vec![b'a'; LARGE_BYTES].into();
    let mut tasks = JoinSet::new();
    for number in 0..LARGE_REQUESTS {
        let body = std::sync::Arc::clone(&body);
        tasks.spawn(async move {
            let answered = timeout(ANSWER_LIMIT, large(port, number, &body)).await;
            answered.unwrap_or(Err(WrongAnswer::Silent))
        });
    }
    let mut answers = AnswerCounts::default();
    while let Some(ended) = tasks.join_next().await {
        answers.add(ended.unwrap_or_else(|error| Err(error.into())));
    }
    answers
}

/// One large request. The answer may come before all of it is sent.
async fn large(port: u16, number: usize, body: &[u8]) -> Result<u16, WrongAnswer> {
    let stream = TcpStream::connect(("127.0.0.1", port)).await?;
    let (mut reader, mut writer) = stream.into_split();
    let head = wire::head(&format!("large-{number}"), body.len());
    let send = async {
        // A refusal closes the connection while we send; what it says is read below.
        if writer.write_all(head.as_bytes()).await.is_ok() {
            let _ = writer.write_all(body).await;
        }
        future::pending::<Infallible>().await
    };
    let mut buffer = Vec::new();
    tokio::select! {
        answer = client::receive(&mut reader, &mut buffer) => Ok(answer?.status),
        never = send => match never {},
    }
}

fn section(
    connections: u64,
    [unused, idle, large]: [Memory; 3],
    answers: &AnswerCounts,
    invalid: Option<String>,
) -> ReportSection {
    let large_name = format!("{LARGE_REQUESTS} requests of 1 MiB at once");
    let idle_name = format!("{connections} idle connections");
    let row = |name: &str, memory: Memory, note: &str| {
        let (resident, peak) = (mib(memory.resident_kib), mib(memory.peak_kib));
        vec![name.to_owned(), number(resident), number(peak), note.to_owned()]
    };
    let too_few = "fewer than 10,000: raise the limit of open files with `ulimit -n`";
    let note = if connections < IDLE_CONNECTIONS { too_few } else { "" };
    let claim = |name: &str, kib: u64, bound: Option<f64>| {
        let measured = MeasuredSpread::of([mib(kib)])?;
        Some(BoundedFigure {
            what: name.to_owned(),
            measured,
            unit: " MiB",
            target: bound.map(FigureTarget::AtMost),
        })
    };
    let idle_bound = Some(IDLE_CONNECTIONS_MIB_MAX).filter(|_| connections == IDLE_CONNECTIONS);
    let claims = [
        claim("resident after the start", unused.resident_kib, Some(IDLE_MIB_MAX)),
        claim(&format!("resident with {idle_name}"), idle.resident_kib, idle_bound),
        claim(&format!("peak under {large_name}"), large.peak_kib, None),
    ];
    let states = [("start", unused), ("idle_connections", idle), ("large_requests", large)];
    let states = states.map(|(name, memory)| {
        let Memory { resident_kib, peak_kib } = memory;
        (name.to_owned(), json!({ "resident_kib": resident_kib, "peak_kib": peak_kib }))
    });
    ReportSection {
        title: "memory of the gateway, on SQLite".to_owned(),
        header: vec!["state", "resident MiB", "peak MiB", "note"],
        rows: vec![
            row("after the start", unused, ""),
            row(&idle_name, idle, note),
            row(&large_name, large, &answers.said()),
        ],
        claims: claims.into_iter().flatten().collect(),
        invalid: invalid.into_iter().collect(),
        plots: Vec::new(),
        data: json!({
            "connections": connections,
            "answers": answers.0,
            "states": serde_json::Map::from_iter(states),
        }),
    }
}

fn mib(kib: u64) -> f64 {
    float(kib) / 1024.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Memory = Memory { resident_kib: 20 << 10, peak_kib: 30 << 10 };

    #[test]
    fn answers_are_counted_by_what_they_say() {
        let mut answers = AnswerCounts::default();
        for answer in [Ok(200), Ok(503), Ok(200), Err(WrongAnswer::HungUp)] {
            answers.add(answer);
        }
        assert_eq!(answers.successes(), 2);
        assert!(answers.said().starts_with("2 x 200, 1 x 503, 1 x a connection was closed"));
    }

    #[test]
    fn a_target_needs_all_the_connections_it_is_about() {
        let of =
            |connections| section(connections, [SMALL; 3], &AnswerCounts::default(), None).claims;
        assert_eq!(of(IDLE_CONNECTIONS)[1].met(), Some(true));
        assert_eq!(of(500)[1].met(), None);
    }
}
