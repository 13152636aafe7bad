//! What to try while everything is still running.

use std::net::SocketAddr;

use super::{
    error::DemoError,
    gateway::{DemoGateway, this_program},
};
use crate::shell::quoted;

/// Where the page is, and commands to paste, for this gateway.
pub(super) fn text(gateway: &DemoGateway, page: SocketAddr) -> Result<String, DemoError> {
    let DemoGateway { address, admin, file, store, token, .. } = gateway;
    let pay = |amount: u32| {
        format!(
            "curl -i http://{address}/payments -H 'Idempotency-Key: \"try-1\"' \
             -H 'Content-Type: application/json' \
             -d '{{\"account\": \"you\", \"amount\": {amount}, \"reference\": \"try-1\"}}'"
        )
    };
    let (first, dearer) = (pay(2500), pay(9900));
    let program = quoted(&this_program()?.to_string_lossy());
    let store = quoted(store);
    let file = file.display();
    Ok(format!(
        "Everything is still running, until Ctrl-C.\n\
         \n  look at it       http://{page}/\
         \n  gateway          http://{address}\
         \n  dashboard        http://{admin}/   (its token: {token})\
         \n  metrics          http://{admin}/metrics\
         \n  settings         {file}\n\
         \nA payment is made, and answered with 201:\n\n  {first}\n\
         \nThe same again is the first answer, with Idempotent-Replayed: true:\n\n  {first}\n\
         \nAnother amount under the same key is refused with 422:\n\n  {dearer}\n\
         \nWhat the gateway knows:\n\n  {program} keys list --store {store} --limit 10\
         \n  {program} keys explain --store {store} --key try-1\n"
    ))
}
