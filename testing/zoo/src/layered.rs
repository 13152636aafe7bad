//! Our own layer around the handler that all species have.

use std::{convert::Infallible, sync::Arc};

use bytes::Bytes;
use hapax::{
    Hapax,
    tower::{Body, ResultPolicy, Tenancy},
};
use http::{Request, Response, header::CONNECTION};
use http_body_util::{BodyExt, Full};
use tower::{Layer, ServiceExt, service_fn};

use crate::{
    enclosure::Enclosure,
    response::PlainResponse,
    submission::{self, Submission},
};

/// The answer of a service that has authentication and validation in front of the layer.
pub(crate) async fn respond(
    hapax: &Hapax,
    enclosure: &Arc<Enclosure>,
    submission: Submission,
) -> PlainResponse {
    let refusal = submission::principal(&submission.headers).err();
    if let Some(refusal) = refusal.or_else(|| submission.order().err()) {
        return refusal;
    }
    let Some(request) = request(&submission) else {
        return PlainResponse::problem(400, "the request cannot be passed on");
    };
    let (enclosure, submission) = (enclosure.clone(), Arc::new(submission));
    let handler = service_fn(move |_: Request<Body>| {
        let (enclosure, submission) = (enclosure.clone(), submission.clone());
        async move { Ok::<_, Infallible>(handle(&enclosure, &submission).await) }
    });
    // What failed after its effect is kept, so that it is not done twice.
    let layer = hapax
        .layer(Tenancy::credential())
        .protect(|protection| protection.results = ResultPolicy::Stripe);
    match layer.layer(handler).oneshot(request).await {
        Ok(response) => read(response).await,
        Err(never) => match never {},
    }
}

async fn handle(enclosure: &Enclosure, submission: &Submission) -> Response<Full<Bytes>> {
    enclosure.pause().await;
    let run = enclosure.effect(submission, None);
    let told = match run.later {
        Some(_) => run.now,
        // It says so where nothing happened.
        None => PlainResponse::problem(503, "nothing happened").with("retry-after", "1"),
    };
    told.written(Full::new)
}

fn request(submission: &Submission) -> Option<Request<Full<Bytes>>> {
    let request = Request::post(&submission.path).version(submission.version);
    let mut request = request.body(Full::new(submission.body.clone())).ok()?;
    *request.headers_mut() = submission.headers.clone();
    Some(request)
}

async fn read(response: Response<Body>) -> PlainResponse {
    let (head, body) = response.into_parts();
    let Ok(body) = body.collect().await else {
        return PlainResponse::problem(502, "the answer broke off");
    };
    let text = String::from_utf8_lossy(&body.to_bytes()).into_owned();
    let mut told = PlainResponse { status: head.status.as_u16(), headers: Vec::new(), text };
    for (name, value) in head.headers.iter().filter(|(name, _)| **name != CONNECTION) {
        told = told.with(name.as_str(), String::from_utf8_lossy(value.as_bytes()));
    }
    told
}
