//! The server's side of the header.
//!
//! A request goes through these in order: `dispatch` (routes, own pages), `service`, `requests` (tenant, key,
//! body) with `comparison` (the fingerprint), `execution` (under a lease or in a transaction, as the
//! `mode` says) and `responses` (what clients are told); where it is only watched, through `observation`. `layer` makes the service; `options` and `protect`
//! say how it treats requests.

mod calls;
mod comparison;
mod dialect;
mod dispatch;
mod execution;
mod layer;
mod mode;
mod observation;
mod options;
mod protect;
mod requests;
mod responses;
mod service;
mod span;
#[cfg(test)]
mod spans;
mod verdict;

pub use self::{
    calls::{in_words_of_calls, is_call},
    comparison::{
        canonical::{NotCanonical, canonical_json},
        compared_headers::ComparedHeaders,
    },
    dialect::Dialect,
    execution::{
        background::Later,
        body_capture::{Captured, capture},
        probe::{ProbeAnswer, ProbeRequest, Prober},
        rate_limit::RateLimit,
        revalidate::{Revalidated, Revalidator},
        status_meaning::{
            InvalidResolution, ResultPolicy, resolved_as_completed, resolved_as_failed,
        },
        transactional::{SameTransaction, Tx, TxError},
    },
    layer::{ConnectError, IdempotencyLayer, Site},
    mode::{Leased, Mode},
    observation::{Observation, ObservedMemory, ObservedVerdict, Observer},
    options::{
        BodyForm, Hosts, InFlight, KeptBody, KeptCredentials, KeyForm, KeyRule, KeySpelling,
        Protection, Scoping, StoreDown,
    },
    requests::{
        caller_signals::AnswerBy,
        cors::{Cors, Readers},
        credential::CredentialPlace,
        derived_key::{
            DerivedKey, InvalidDerivedKey, InvalidKeyPart, InvalidPointer, JsonPointer, KeyPart,
        },
        headers::{is_for_everybody, is_named_by_connection},
        key::parse_key,
        room::{Room, RoomGuard, Share},
        route::{InvalidRoute, Routes, SAFE_METHODS, path_fits},
        stored_request,
        target::{PathReading, leaves_its_folder, plain_path},
        tenancy::{Caller, Identified, Tenancy, TenantKind},
        treatment::Treatment,
        worth::{Currency, Money, RepeatedWorth, WorthCurrency, WorthRule},
    },
    responses::{code::Code, openapi::openapi_fragment, wellknown::published_policy},
    service::Idempotency,
    verdict::{Handled, HandledOperation, Verdict, WantsTenant},
};
