//! Going out and coming in without losing a request.

mod clients;
mod delay;
mod replacement;
mod sockets;
mod versions;

use crate::world::{Answer, Gateway, ask};

async fn readiness(gateway: &Gateway) -> Option<Answer> {
    ask(gateway.admin, "GET /readyz HTTP/1.1\r\nhost: a\r\n\r\n").await
}
