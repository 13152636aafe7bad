//! What there is to ask for.

use std::{convert::Infallible, sync::Arc};

use bytes::Bytes;
use http::{
    HeaderName, HeaderValue, Method, Request, Response, StatusCode,
    header::{
        CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY,
        X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
    },
};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;

use super::{
    Context, overview,
    page::{self, RenderedPage},
    purchase::{self, Purchase},
    refusal::ActionRefusal,
    storm::{self, StormRequest},
    supervisor::KilledBy,
    timeline,
};

/// Largest body of a request, in bytes.
const BODY_BYTES_MAX: usize = 4 << 10;

type Answered = Result<Response<Full<Bytes>>, ActionRefusal>;

/// Answers a browser.
pub(super) async fn answer(
    context: &Arc<Context>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let answered = dispatch(context, request).await;
    let mut response = answered.unwrap_or_else(|refusal| {
        document(refusal.status(), &json!({ "error": crate::sentence(&refusal) }))
    });
    let fixed: [(HeaderName, &str); 4] = [
        (CACHE_CONTROL, "no-store"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "no-referrer"),
    ];
    for (name, value) in fixed {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    Ok(response)
}

async fn dispatch(context: &Arc<Context>, request: Request<Incoming>) -> Answered {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path();
    if parts.method == Method::GET {
        context.access.look(&parts.headers)?;
        return match path {
            "/" => front(context),
            "/overview" => Ok(document(StatusCode::OK, &overview::look(context).await)),
            _ => {
                let id = path.strip_prefix("/keys/").ok_or(ActionRefusal::Nowhere)?;
                let id = id.parse().map_err(|_| ActionRefusal::Nowhere)?;
                Ok(document(StatusCode::OK, &timeline::look(context, id).await?))
            }
        };
    }
    if parts.method != Method::POST {
        return Err(ActionRefusal::Nowhere);
    }
    context.access.act(&parts.headers)?;
    match path {
        "/orders" => {
            let purchase: Purchase = read(body).await?;
            Ok(document(StatusCode::OK, &purchase::make(context, purchase).await?))
        }
        "/kill" => {
            let pid = context.supervisor.kill(KilledBy::You)?;
            Ok(document(StatusCode::OK, &json!({ "pid": pid })))
        }
        "/storm" => {
            let wanted: StormRequest = read(body).await?;
            storm::start(context, wanted)?;
            Ok(document(StatusCode::ACCEPTED, &json!({ "started": true })))
        }
        _ => Err(ActionRefusal::Nowhere),
    }
}

fn front(context: &Context) -> Answered {
    let RenderedPage { html, policy } = page::render(context).map_err(ActionRefusal::NoPage)?;
    let mut response = Response::new(Full::from(html));
    let kind = HeaderValue::from_static("text/html; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    Ok(response)
}

async fn read<T: DeserializeOwned>(body: Incoming) -> Result<T, ActionRefusal> {
    let body = Limited::new(body, BODY_BYTES_MAX).collect().await;
    let body = body.map_err(|error| ActionRefusal::Invalid(error.to_string()))?;
    let read = serde_json::from_slice(&body.to_bytes());
    read.map_err(|error| ActionRefusal::Invalid(error.to_string()))
}

fn document(status: StatusCode, value: &impl Serialize) -> Response<Full<Bytes>> {
    // Names, numbers and texts can always be written.
    let text = serde_json::to_string(value).unwrap_or_default();
    let mut response = Response::new(Full::from(text + "\n"));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
