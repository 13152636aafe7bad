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
