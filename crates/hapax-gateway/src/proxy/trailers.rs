//! Headers that come after a body: who may send them, and which are passed on.

use bytes::Bytes;
use hapax_tower::{HOP_BY_HOP, is_for_everybody};
use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{SET_COOKIE, TE, TRAILER},
};
use http_body::Frame;

use super::forward::SHADOWED;

/// What a head says of headers after its body.
#[derive(Debug, Default)]
pub(super) struct TrailerSupport {
    /// Whether its sender reads them: `TE: trailers`.
    reads: bool,
    /// Those it sends itself, as it names them.
    announced: Vec<HeaderValue>,
}

impl TrailerSupport {
    /// What this head says, before it is made one of our own.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let reads = headers.get_all(TE).iter().any(|line| {
            let words = line.to_str().unwrap_or_default().split(',');
            words.into_iter().any(|word| word.trim().eq_ignore_ascii_case("trailers"))
        });
        Self { reads, announced: headers.get_all(TRAILER).iter().cloned().collect() }
    }

    /// Reads them, and sends none.
    pub(super) fn reading() -> Self {
        Self { reads: true, announced: Vec::new() }
    }

    /// Says the same in a head of our own, which passes them on.
    pub(super) fn say(self, headers: &mut HeaderMap) {
        if self.reads {
            headers.insert(TE, HeaderValue::from_static("trailers"));
        }
        for line in self.announced {
            headers.append(TRAILER, line);
        }
    }
}

/// A piece of a body with the trailers that are passed on.
pub(super) fn of_frame(frame: Frame<Bytes>) -> Frame<Bytes> {
    match frame.into_trailers() {
        Ok(trailers) => Frame::trailers(passed_on(trailers)),
        Err(data) => data,
    }
}

/// Those of a message's trailers that are passed on: not what frames a message, says whom it is for
/// or from, or is ours. Some readers take a trailer for a header, and would believe it.
fn passed_on(mut trailers: HeaderMap) -> HeaderMap {
    let refused: Vec<_> = trailers.keys().filter(|name| is_refused(name)).cloned().collect();
    for name in refused {
        trailers.remove(name);
    }
    trailers
}

fn is_refused(name: &HeaderName) -> bool {
    let read = name.as_str().replace('_', "-");
    is_for_everybody(&read)
        || SHADOWED.contains(&&*read)
        || *name == SET_COOKIE
        || HOP_BY_HOP.iter().any(|hop| *hop == *read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_counts_in_a_head_is_not_passed_on_after_a_body() {
        let mut trailers = HeaderMap::new();
        for name in [
            "x-checksum",
            "grpc-status",
            "content-length",
            "content_length",
            "transfer-encoding",
            "host",
            "authorization",
            "cookie",
            "set-cookie",
            "idempotency-key",
            "idempotency_key",
            "hapax-fence",
            "x-forwarded-for",
            "connection",
        ] {
            trailers.insert(name, HeaderValue::from_static("1"));
        }
        let passed = passed_on(trailers);
        let mut names: Vec<_> = passed.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["grpc-status", "x-checksum"]);
    }

    #[test]
    fn who_reads_trailers_and_who_sends_some_is_said_again() {
        let mut head = HeaderMap::new();
        head.insert("te", HeaderValue::from_static("gzip, Trailers"));
        head.append("trailer", HeaderValue::from_static("x-a"));
        head.append("trailer", HeaderValue::from_static("x-b, x-c"));
        let mut ours = HeaderMap::new();
        TrailerSupport::of(&head).say(&mut ours);
        assert_eq!(ours["te"], "trailers");
        assert_eq!(ours.get_all("trailer").iter().collect::<Vec<_>>(), ["x-a", "x-b, x-c"]);
        let mut silent = HeaderMap::new();
        TrailerSupport::of(&silent.clone()).say(&mut silent);
        assert!(silent.is_empty());
    }
}
