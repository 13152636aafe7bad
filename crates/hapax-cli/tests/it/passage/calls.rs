//! Calls of gRPC as others make and serve them: HTTP/2 from end to end, with trailers.

use super::packages::{Packages, said_by};
use crate::world::Setup;

#[tokio::test(flavor = "multi_thread")]
async fn calls_of_every_kind_pass_with_their_trailers_and_their_pauses() {
    let Some(packages) = Packages::installed() else { return };
    let server = packages.serve("calls.py").await;
    let config = "[upstream]\nprotocol = \"http2\"\nanswer_timeout = \"1s\"\n\
                  [limits]\nbody_timeout = \"1s\"\n";
    let gateway = Setup::new(server.address).config(config).start().await;
    let said = said_by(packages.python(&["calls.py", "call", &gateway.address.to_string()])).await;
    assert_eq!(
        said,
        "ten for alice 1 {'x-receipt': '7', 'x-seen-bin': b'\\x00\\xff'}\n\
         FAILED_PRECONDITION the purse is empty, ä empty\n\
         UNIMPLEMENTED\n\
         0 1 2 3 4\n42\nwho is there\nONE\nTWO\n[]\n"
    );
}

/// What is run again has another receipt. UNAVAILABLE and its kin free the key, INTERNAL is no answer.
const KEYED: &str = "\
OK 'receipt 1 for ten' 1
  again: OK 'receipt 1 for ten' 1 replayed | effects 1
INVALID_ARGUMENT 'The idempotency key was used for another request' key-reused
INVALID_ARGUMENT 'The request has no idempotency key' key-missing
FAILED_PRECONDITION 'as told' 2
  again: FAILED_PRECONDITION 'as told' 2 replayed | effects 2
PERMISSION_DENIED 'as told' 3
  again: PERMISSION_DENIED 'as told' 4 | effects 4
UNAVAILABLE 'as told' 5
  again: UNAVAILABLE 'as told' 6 | effects 6
RESOURCE_EXHAUSTED 'as told' 7
  again: RESOURCE_EXHAUSTED 'as told' 8 | effects 8
INTERNAL 'as told' 9
  again: FAILED_PRECONDITION 'Nobody knows whether the operation happened' outcome-in-doubt | effects 9
OK 'xxxxxxxxxxxxxxxxxxxxxxxx' 10
  again: ALREADY_EXISTS 'The operation was done and its response was not kept' \
response-not-retained replayed | effects 10
UNAVAILABLE 'A request with this idempotency key is in progress' key-in-flight ask again
OK 'receipt 11 for slowly' 11
OK 'receipt 11 for slowly' 11 replayed
";

#[tokio::test(flavor = "multi_thread")]
async fn a_call_with_a_key_is_run_once_and_its_end_is_told_again_with_its_trailers() {
    let Some(packages) = Packages::installed() else { return };
    let config = "[upstream]\nprotocol = \"http2\"\n\
                  [[route]]\nmatch = \"POST /shop.Shop/Charge\"\n\
                  [[route]]\nmatch = \"POST /shop.Shop/Large\"\n";
    let server = packages.serve("calls.py").await;
    let gateway = Setup::new(server.address).config(config).start().await;
    let said = said_by(packages.python(&["calls.py", "keyed", &gateway.address.to_string()])).await;
    assert_eq!(said, KEYED, "{}", gateway.log());
}
