//! What makes two requests the same, as the route says.

use bytes::Bytes;
use hapax_core::{Fingerprint, RequestParts, TenantKey};
use http::{
    header::{CONTENT_ENCODING, CONTENT_TYPE},
    request::Parts,
};

use super::{
    canonical::canonical_json,
    code::Code,
    multipart::{self, Multipart},
    options::{BodyForm, Protection},
    problem::Problem,
};

/// The fingerprint of a request, or why it has none.
pub(crate) fn fingerprint(
    tenant_key: &TenantKey,
    protection: &Protection,
    parts: &Parts,
    body: &Bytes,
) -> Result<Fingerprint, Problem> {
    let Spelled { content_type, body: spelled } = spelled(protection, parts, body)?;
    let headers = protection.compared_headers.iter().flat_map(|name| {
        let spelled = content_type.as_deref().filter(|_| *name == CONTENT_TYPE);
        let lines = parts.headers.get_all(name).iter();
        lines.map(move |line| (name.as_str(), spelled.unwrap_or(line.as_bytes())))
    });
    Ok(tenant_key.fingerprint(&RequestParts {
        method: parts.method.as_str().as_bytes(),
        path: parts.uri.path().as_bytes(),
        query: parts.uri.query().unwrap_or_default().as_bytes(),
        headers: &headers.collect::<Vec<_>>(),
        body: spelled.as_deref().unwrap_or(body),
    }))
}

/// What is compared instead of what came, if anything.
#[derive(Default)]
struct Spelled {
    content_type: Option<Vec<u8>>,
    body: Option<Vec<u8>>,
}

fn spelled(protection: &Protection, parts: &Parts, body: &Bytes) -> Result<Spelled, Problem> {
    let not_canonical = |detail: String| Problem::new(Code::BodyNotCanonical, detail);
    match &protection.body {
        BodyForm::Raw => Ok(Spelled::default()),
        BodyForm::Json { .. } | BodyForm::Multipart if body.is_empty() => Ok(Spelled::default()),
        BodyForm::Json { .. } | BodyForm::Multipart
            if parts.headers.contains_key(CONTENT_ENCODING) =>
        {
            Err(Problem::new(Code::BodyEncoded, "Send the body as it is."))
        }
        BodyForm::Json { ignored } => {
            let body = canonical_json(body, ignored).map_err(|e| not_canonical(e.to_string()))?;
            Ok(Spelled { content_type: None, body: Some(body) })
        }
        BodyForm::Multipart => {
            let Multipart { content_type, body } = multipart::canonical(&parts.headers, body)
                .map_err(|e| not_canonical(e.to_string()))?;
            Ok(Spelled { content_type: Some(content_type), body: Some(body) })
        }
    }
}
