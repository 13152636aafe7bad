//! What the layer and the client cost by themselves: calls of a service that answers at once.

use std::{
    convert::Infallible,
    future::{Ready, ready},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll},
};

use bytes::Bytes;
use hapax::{
    client::{Client, RetryOptions},
    tower::{
        Body,
        client::{Retry, RetryLayer},
    },
};
use http::{Request, Response, header::CONTENT_TYPE};
use http_body_util::{BodyExt, Full};
use serde_json::{Map, Value, json};
use tokio::runtime::Builder;
use tower_layer::Layer;
use tower_service::Service;

use super::{
    calls::{JSON, post},
    error::CallBenchError,
    plan::ClientPlan,
    stopwatch::Stopwatch,
};
use crate::{
    BenchError,
    figures::{BoundedFigure, Columns, FigureTarget, MeasuredSpread, SampleColumn, header, row},
    progress::BenchProgress,
    report::ReportSection,
    request,
};

pub(super) const STEPS: u64 = 1;

const URL: &str = "http://127.0.0.1:8080/payments";
const WAYS: [&str; 3] = ["the service alone", "RetryLayer", "hapax::Client"];

/// Measures in turn, round after round.
pub(super) fn run(
    plan: &ClientPlan,
    progress: &BenchProgress,
) -> Result<ReportSection, BenchError> {
    progress.begin("the layer alone")?;
    let runtime =
        Builder::new_current_thread().enable_all().build().map_err(BenchError::Runtime)?;
    let (mut nanos, mut invalid) = (<[Vec<f64>; WAYS.len()]>::default(), Vec::new());
    // The first round is for the caches.
    for round in 0..=plan.rounds {
        let taken = runtime.block_on(in_turn(plan.repetitions))?;
        for ((samples, (took, answered)), way) in nanos.iter_mut().zip(taken).zip(WAYS) {
            if round > 0 {
                samples.push(took);
            }
            if answered != plan.repetitions {
                let calls = plan.repetitions;
                invalid.push(format!("{way}: {calls} calls reached the service {answered} times"));
            }
        }
    }
    progress.inc(1);
    let data = WAYS.iter().zip(&nanos).map(|(way, nanos)| ((*way).to_owned(), json!(nanos)));
    Ok(ReportSection {
        title: "Calls of a service that answers at once, 1 caller".to_owned(),
        header: header(COLUMNS),
        rows: WAYS.iter().zip(&nanos).map(|(way, nanos)| row(way, nanos, COLUMNS)).collect(),
        claims: claims(&nanos),
        invalid,
        plots: Vec::new(),
        data: json!({ "nanoseconds": data.collect::<Map<String, Value>>() }),
    })
}

fn claims([alone, layer, client]: &[Vec<f64>; WAYS.len()]) -> Vec<BoundedFigure> {
    let more = |what: &str, with: &[f64], target| {
        let measured =
            MeasuredSpread::of(with.iter().zip(alone).map(|(with, alone)| with - alone))?;
        let what = format!("{what}: more CPU per call than the service alone");
        Some(BoundedFigure { what, measured, unit: " ns", target })
    };
    let layer = more("RetryLayer", layer, Some(FigureTarget::AtMost(2000.0)));
    layer.into_iter().chain(more("hapax::Client", client, None)).collect()
}

/// Nanoseconds per call and calls that were answered, for each way.
async fn in_turn(calls: u64) -> Result<[(f64, u64); WAYS.len()], CallBenchError> {
    let service = AtOnce::new();
    let mut alone = service.clone();
    let watch = Stopwatch::start()?;
    for number in 0..calls {
        let response = Service::call(&mut alone, post(URL, request::body(number))?).await;
        let Ok(response) = response;
        drop(response.into_body().collect().await);
    }
    let alone = (watch.nanos_for_each(calls)?, service.answered());

    let service = AtOnce::new();
    let mut layer: Retry<AtOnce> = RetryLayer::new(RetryOptions::default())?.layer(service.clone());
    let watch = Stopwatch::start()?;
    for number in 0..calls {
        let response = layer.call(post(URL, request::body(number))?).await;
        let response = response.map_err(|error| CallBenchError::Layer(Box::new(error)))?;
        drop(response.into_body().collect().await);
    }
    let layer = (watch.nanos_for_each(calls)?, service.answered());

    let service = AtOnce::new();
    let client = Client::builder().build_on(service.clone())?;
    let watch = Stopwatch::start()?;
    for number in 0..calls {
        let call = client.post(URL).header(CONTENT_TYPE, JSON).body(request::body(number));
        let answer = call.send().await;
        drop(answer.map_err(|error| CallBenchError::Call(Box::new(error)))?);
    }
    Ok([alone, layer, (watch.nanos_for_each(calls)?, service.answered())])
}

/// Answers at once, and counts.
#[derive(Debug, Clone)]
struct AtOnce {
    answered: Arc<AtomicU64>,
    answer: Bytes,
}

impl AtOnce {
    fn new() -> Self {
        Self { answered: Arc::default(), answer: request::answer().into() }
    }

    fn answered(&self) -> u64 {
        self.answered.load(Relaxed)
    }
}

impl Service<Request<Body>> for AtOnce {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        self.answered.fetch_add(1, Relaxed);
        ready(Ok(Response::new(Full::new(self.answer.clone()))))
    }
}

const COLUMNS: &Columns<f64> = &[
    ("CPU ns", SampleColumn::Median(|nanos| Some(*nanos))),
    ("range", SampleColumn::Range(|nanos| Some(*nanos))),
];
