//! Effects that are counted where they arrive.

use std::net::SocketAddr;

use super::{
    Verifier,
    counting::server,
    process::{KillableServer, ServedProcess, ask},
};
use crate::world::free_address;

/// Tells somebody else of each payment, under the key of its client if it is honest.
async fn telling(to: SocketAddr, is_honest: bool) -> (crate::world::Raw, String) {
    let server = server(is_honest, move |marker, key| {
        let key = Some(key).filter(|_| is_honest);
        ask(to, key, &format!("{{\"ref\":\"{marker}\"}}")).unwrap();
    });
    let server = server.await;
    let url = format!("http://{}/payments/{{marker}}", server.address);
    (server, url)
}

#[tokio::test(flavor = "multi_thread")]
async fn webhooks_are_counted() {
    for (is_honest, exit) in [(true, 0), (false, 1)] {
        let sink = free_address();
        let (_server, url) = telling(sink, is_honest).await;
        let sink = sink.to_string();
        let ended = Verifier::new().run(&["POST", &url, "--only", "V01", "--webhook-sink", &sink]);
        assert_eq!(ended.exit, Some(exit), "{ended:?}");
        assert!(ended.out.contains("(O3)"), "{ended:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wanted_of_the_provider_that_we_play_is_counted() {
    for (is_honest, exit) in [(true, 0), (false, 1)] {
        let double = free_address();
        let (_server, url) = telling(double, is_honest).await;
        let double = double.to_string();
        let upstream = ["--upstream-double", &double, "--upstream-delay", "5ms"];
        let ended =
            Verifier::new().run(&[&["POST", &url, "--only", "V01"], &upstream[..]].concat());
        assert_eq!(ended.exit, Some(exit), "{ended:?}");
        assert!(ended.out.contains("(O3)") && ended.out.contains("takes 5 ms"), "{ended:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_killed_while_its_provider_is_slow_passes_with_its_provider_knowing_the_key()
 {
    let double = free_address();
    let server = KillableServer::start(ServedProcess::Payer { upstream: double });
    let (url, double) = (format!("http://{}/payments", server.address), double.to_string());
    let (kill, start) = (server.kill_command(), server.start_command());
    let args = [
        &["POST", &url, "--json", super::BODY, "--only", "V24", "--kill-cmd", &kill][..],
        &["--start-cmd", &start, "--upstream-double", &double, "--upstream-delay", "400ms"],
    ]
    .concat();
    let ended = Verifier::new().run(&args);
    assert_eq!(ended.exit, Some(0), "{ended:?}");
    assert!(ended.err.contains("V24 kill-after-effect ... pass"), "{ended:?}");
}
