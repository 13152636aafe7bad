//! The `Idempotency-Key` header for any tower service: one execution per key, replays, and honest
//! refusals.
//!
//! Put [`IdempotencyLayer`] around a service that changes something. The first request with a key
//! runs; every later one with the same key is answered with what the first one said. What cannot
//! be known is said as it is: in flight, in doubt, gone.
//!
//! ```
//! use hapax_core::{Salt, Timestamp, memory};
//! use hapax_engine::{Engine, Options};
//! use hapax_tower::{IdempotencyLayer, Protection, Routes, Tenancy, Treatment};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), hapax_tower::InvalidRoute> {
//! let store = memory::Store::new(Salt::from_bytes([7; 32]), || Timestamp::ZERO);
//! let engine = Engine::start(store, Options::default());
//! let routes = Routes::new(Treatment::Protect(Protection::default()))?;
//! let layer = IdempotencyLayer::new(engine, Tenancy::credential(), routes)?;
//!
//! let app: axum::Router = axum::Router::new()
//!     .route("/payments", axum::routing::post(|| async { "paid" }))
//!     .layer(layer);
//! # drop(app);
//! # Ok(())
//! # }
//! ```
//!
//! - [`Routes`] and [`Protection`] say how each route is treated, [`ResultPolicy`] what its answers
//!   mean; [`Tenancy`] whose keys they are;
//! - its [`Mode`] says where a request runs: [`Leased`], or in the [`SameTransaction`] as its handler's
//!   own writes, which takes it as [`Tx`], and fails in with [`TxError`];
//! - [`Observer`] watches what is not protected yet, and tells as [`Observation`]s what would have been done;
//! - [`Later`] runs requests that were accepted to be run later, also after a restart;
//! - [`Code`] lists every refusal, each with a page that explains it; [`Handled`] tells metrics
//!   what was done with a request;
//! - [`Revalidator`] is asked whether a caller may still hear what is stored, and [`is_secret_header`]
//!   says which headers are not stored unless a route wants it;
//! - [`HttpService`] is what both sides of the wire are put around; [`NothingSent`] is how a service says that a request never left; [`Prober`] is asked whether an
//!   operation happened that nobody answered for;
//! - [`parse_key`], [`canonical_json`], [`capture`] and [`stored_request`] read what the layer reads,
//!   in the same way;
//! - [`published_policy`] and [`openapi_fragment`] tell clients what is in force, and [`path_fits`]
//!   which of its routes they take;
//! - [`is_call`] knows calls of gRPC, and [`in_words_of_calls`] refuses them so that their clients understand;
//! - [`TransferCoding`] tells a body in chunks from one that is coded in a way nobody here undoes;
//! - [`plain_path`], [`leaves_its_folder`], [`is_for_everybody`], [`is_named_by_connection`] and
//!   [`HOP_BY_HOP`] tell proxies how the layer spells a path, which paths it cannot trust, and which
//!   headers a client may have removed or mean for one connection;
//! - [`client`] is the other side of the wire: a layer that makes keys and retries;
//! - [`Room`] is how much of requests may be in memory at one time, [`Share`] how much of it one
//!   connection may take, and [`TooSlow`] what a body fails with whose client holds it back;
//! - [`signal`] is what callers say hop by hop: how much time is left, and who retries; [`AnswerBy`]
//!   tells the service until when its caller waits.
//!
//! The layer runs the protected service in a task of its own: a client that hangs up neither stops
//! it nor loses its answer.

mod body;
mod capped_body;
pub mod client;
mod header_names;
mod http_service;
mod nothing_sent;
mod refusal_header;
mod secret_header;
mod server;
pub mod signal;
mod too_slow;
mod transfer_coding;

pub use self::{
    body::{Body, BoxError},
    header_names::{HOP_BY_HOP, IDEMPOTENCY_KEY},
    http_service::HttpService,
    nothing_sent::NothingSent,
    secret_header::is_secret_header,
    server::{
        AnswerBy, BodyForm, Caller, Captured, Code, ComparedHeaders, ConnectError, Cors,
        CredentialPlace, Currency, DerivedKey, Dialect, Handled, HandledOperation, Hosts,
        Idempotency, IdempotencyLayer, Identified, InFlight, InvalidDerivedKey, InvalidKeyPart,
        InvalidPointer, InvalidResolution, InvalidRoute, JsonPointer, KeptBody, KeptCredentials,
        KeyForm, KeyPart, KeyRule, KeySpelling, Later, Leased, Mode, Money, NotCanonical,
        Observation, ObservedMemory, ObservedVerdict, Observer, PathReading, ProbeAnswer,
        ProbeRequest, Prober, Protection, RateLimit, Readers, RepeatedWorth, ResultPolicy,
        Revalidated, Revalidator, Room, RoomGuard, Routes, SAFE_METHODS, SameTransaction, Scoping,
        Share, Site, StoreDown, Tenancy, TenantKind, Treatment, Tx, TxError, Verdict, WantsTenant,
        WorthCurrency, WorthRule, canonical_json, capture, in_words_of_calls, is_call,
        is_for_everybody, is_named_by_connection, leaves_its_folder, openapi_fragment, parse_key,
        path_fits, plain_path, published_policy, resolved_as_completed, resolved_as_failed,
        stored_request,
    },
    too_slow::TooSlow,
    transfer_coding::TransferCoding,
};
