//! Servers with exactly one fault each, and correct ones, for proving what examines servers.
//!
//! A tester of retries is believed once it has found, by the probe meant for it, each fault that was
//! planted, and none where there is none. [`SPECIES`] are the servers. All have the same
//! [contract](#contract), and the same correct conduct (`conduct.rs`), of which a broken one replaces
//! the part that is its fault: a file of at most 40 lines in `species/`.
//!
//! ```no_run
//! # async fn shown() -> std::io::Result<()> {
//! for species in hapax_zoo::SPECIES {
//!     let running = species.start().await?;
//!     println!("{} at http://{}", species.name, running.address);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Contract
//!
//! HTTP/1.1, and HTTP/2 with prior knowledge, on one port.
//!
//! - `POST /payments`, `/refunds`, `/reports` with `{"amount":100,"currency":"EUR","ref":"M"}`, the
//!   key in `Idempotency-Key` (bare, or a quoted string: the same key) and `Authorization: Bearer
//!   alice` or `bob`: 201 with `id`, `ref` and `amount`. A report is 1 MiB. Each path has keys and
//!   effects of its own.
//! - 400 for a key that is missing, malformed or longer than 255 bytes, or a body that is not as above;
//!   401 for anybody else (`revoked` is a token of alice's that was); 422 where a key comes with
//!   another body; 409 with `Retry-After` while the first is running. Replays are the same bytes with
//!   `Idempotent-Replayed: true` and without `Set-Cookie`.
//! - `GET /payments?ref=M`: `{"items":[…]}`, the effects there are; `GET /payments/ID`: one. Anybody
//!   may ask.
//! - `POST /_hooks/fail?effect=before|after|none`: the next run of the handler answers 500, before or
//!   after its effect; ours answer 503 before it. `POST /_hooks/slow?ms=N`: how long it takes from its claim to its effect, 20 ms
//!   otherwise.

mod conduct;
mod connections;
mod effects;
mod enclosure;
mod file;
mod gate;
mod keyring;
#[cfg(feature = "ours")]
mod layered;
mod pipeline;
mod response;
mod routes;
mod running;
mod species;
mod submission;

use self::{
    conduct::Conduct,
    enclosure::{Enclosure, HandlerRun},
    keyring::{KeyFound, KnownKey},
    response::PlainResponse,
    submission::Submission,
};
pub use self::{
    enclosure::InducedFailure,
    running::{Options, RunningSpecies},
    species::{PlantedFault, SPECIES, Species},
};
