//! A body as far as keys are made of it: JSON with a single meaning.

use std::borrow::Cow;

use bytes::Bytes;
use http::{HeaderMap, header::CONTENT_ENCODING};

use super::{nothing_at, pointer::JsonPointer, underivable};
use crate::server::{
    comparison::{canonical::canonical_json, gzip},
    responses::problem::Problem,
};

/// A JSON body in its one spelling. It is read as JSON whatever `Content-Type` says: clients that
/// cannot be changed say many things there.
pub(crate) struct JsonContent(Vec<u8>);

/// A value that a key may be made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum JsonScalar {
    Text(String),
    /// As canonical JSON spells it.
    Number(String),
}

impl JsonContent {
    /// Reads a body, also one within gzip.
    pub(crate) fn read(headers: &HeaderMap, body: &Bytes) -> Result<Self, Problem> {
        let content = decoded(headers, body)?;
        let canonical = canonical_json(&content, &[]).map_err(|error| {
            underivable(format!("The body, of which the key is made, cannot be read: {error}."))
        })?;
        Ok(Self(canonical))
    }

    /// The text or number at this place.
    pub(super) fn value(&self, pointer: &JsonPointer) -> Result<JsonScalar, Problem> {
        let value = pointer.find(&self.0).ok_or_else(|| nothing_at(pointer))?;
        let place = pointer.as_str();
        let other_kind = || {
            let what = "which is neither a text nor a number";
            underivable(format!("The key is made of what the body has at {place}, {what}."))
        };
        match value.first() {
            Some(b'"') => {
                let text: String = serde_json::from_slice(value).map_err(|_| other_kind())?;
                if text.trim().is_empty() {
                    let what = format!("The key is made of what the body has at {place}");
                    return Err(underivable(format!("{what}, which is empty.")));
                }
                Ok(JsonScalar::Text(text))
            }
            Some(b'-' | b'0'..=b'9') => {
                let number = str::from_utf8(value).map_err(|_| other_kind())?;
                Ok(JsonScalar::Number(number.to_owned()))
            }
            Some(_) | None => Err(other_kind()),
        }
    }
}

fn decoded<'b>(headers: &HeaderMap, body: &'b Bytes) -> Result<Cow<'b, [u8]>, Problem> {
    let mut codings = headers.get_all(CONTENT_ENCODING).iter();
    let unreadable = || {
        let detail =
            "The key is made of what is in the body, which is coded in another way than gzip.";
        underivable(detail.to_owned())
    };
    match (codings.next(), codings.next()) {
        (None, _) => Ok(Cow::Borrowed(body)),
        (Some(coding), None) if coding.as_bytes().eq_ignore_ascii_case(b"gzip") => {
            gzip::content(body).map(Cow::Owned).ok_or_else(unreadable)
        }
        (Some(_), _) => Err(unreadable()),
    }
}

/// How many bytes there are to be looked at, at most.
pub(crate) fn content_bytes_max(headers: &HeaderMap, body: &Bytes) -> usize {
    if headers.contains_key(CONTENT_ENCODING) {
        body.len().max(gzip::most(body.len()))
    } else {
        body.len()
    }
}
