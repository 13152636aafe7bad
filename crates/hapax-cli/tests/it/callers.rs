//! Who callers are, as the command line says it.

use crate::{
    hapax, text,
    world::{Behaviour, Setup, Upstream, ask},
};

fn post(line: &str) -> String {
    format!(
        "POST /pay HTTP/1.1\r\nhost: a\r\nidempotency-key: k-1\r\n{line}content-length: 3\r\n\r\nten"
    )
}

#[tokio::test]
async fn the_command_line_says_where_callers_show_who_they_are() {
    for (tenant, line) in
        [("header:X-API-Key", "x-api-key: s\r\n"), ("cookie:sid", "cookie: sid=s\r\n")]
    {
        let upstream = Upstream::start(Behaviour::default()).await;
        let gateway = Setup::new(upstream.address).args(&["--tenant", tenant]).start().await;
        for replayed in [false, true] {
            let answer = ask(gateway.address, post(line)).await.unwrap();
            assert_eq!((answer.status, answer.is_replay()), (201, replayed), "{tenant}");
        }
        let refused = ask(gateway.address, post("authorization: alice\r\n")).await.unwrap();
        assert_eq!((refused.status, refused.code().as_deref()), (401, Some("credential-missing")));
        assert_eq!(upstream.total(), 1);
    }
}

#[test]
fn a_tenant_that_cannot_be_meant_is_refused_before_anything_is_served() {
    let serve = ["serve", "--upstream", "http://127.0.0.1:3000", "--tenant", "jwt"];
    let refused = hapax(&serve);
    let told = text(&refused.stderr);
    assert!(
        !refused.status.success() && told.contains("--tenant: it cannot say all of that"),
        "{told}"
    );
}
