//! A stored request, which somebody will run.
#![no_main]
#![expect(clippy::unwrap_used, reason = "what is not expected is what is looked for")]

use bytes::Bytes;
use hapax_tower::{
    Protection,
    stored_request::{KeptFor, is_accepted, read, write},
};
use http::HeaderMap;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let data = Bytes::copy_from_slice(data);
    let kept_as = if is_accepted(&data) { KeptFor::Accepted } else { KeptFor::WaitedFor };
    let Some(request) = read(data) else { return };
    let (parts, body) = request.into_parts();
    let keep = |parts| write(parts, &body, kept_as, &Protection::default(), &HeaderMap::new());
    let stored = keep(&parts);
    let (again, same_body) = read(stored.clone()).unwrap().into_parts();
    assert_eq!((&again.method, &again.uri, &same_body), (&parts.method, &parts.uri, &body));
    for (name, value) in &again.headers {
        assert!(parts.headers.get_all(name).iter().any(|known| known == value), "{name} is new");
    }
    assert!(!again.headers.contains_key(http::header::AUTHORIZATION));
    assert_eq!(keep(&again), stored, "what is kept is kept again");
    let cut = stored.slice(..stored.len() - 1);
    assert!(read(cut).is_none(), "a request without its end is not run");
});
