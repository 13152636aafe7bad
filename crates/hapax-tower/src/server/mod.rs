//! The server's side of the header.
//!
//! A request goes through these files in order: `dispatch` (routes, own pages), `service`, `arrival` (tenant,
//! key, body, fingerprint), `ask` (the engine), `answer` (what it said, as a response) and `unit` (the
//! execution, detached from the client; `recover` if nobody answers it).

mod answer;
mod arrival;
mod ask;
mod async_status;
mod canonical;
mod capture;
mod code;
mod compared;
mod compared_headers;
mod cors;
mod dispatch;
mod drain;
mod failed;
mod form;
mod front;
mod gzip;
mod handled;
mod headers;
mod inner_words;
mod key;
mod key_format;
mod later;
mod layer;
mod media_type;
mod member_order;
mod multipart;
mod openapi;
mod options;
mod pages;
mod percent;
mod prefer;
mod probe;
mod problem;
mod produce;
mod rate_limit;
mod receive;
mod recover;
mod repeatability;
mod revalidate;
mod room;
mod route;
mod said;
mod service;
mod span;
#[cfg(test)]
mod spans;
pub mod stored_request;
mod target;
mod tenancy;
mod transactional;
mod unit;
mod usual_time;
mod wellknown;

pub use self::{
    canonical::{NotCanonical, canonical_json},
    code::Code,
    compared_headers::ComparedHeaders,
    cors::{Cors, Readers},
    handled::{Handled, Verdict},
    headers::{is_for_everybody, is_named_by_connection},
    key::parse_key,
    later::Later,
    layer::{IdempotencyLayer, Site},
    openapi::openapi_fragment,
    options::{
        BodyForm, Credentials, Dialect, Hosts, InFlight, KeyForm, KeyRule, KeySpelling, Protection,
        Scoping, StoreDown,
    },
    probe::{Asked, Probed, Prober},
    rate_limit::RateLimit,
    revalidate::{Revalidated, Revalidator},
    room::{Room, Share, Taken},
    route::{InvalidRoute, Routes, SAFE_METHODS, Treatment, path_fits},
    said::AnswerBy,
    service::Idempotency,
    target::{PathReading, leaves_its_folder, plain_path},
    tenancy::{Caller, Identified, Tenancy, TenantKind},
    transactional::{ConnectError, TransactionalLayer, TransactionalService, Tx, TxError},
    wellknown::published_policy,
};
