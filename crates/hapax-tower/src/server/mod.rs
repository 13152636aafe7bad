//! The server's side of the header.
//!
//! A request goes through these files in order: `service` (routes, own pages), `arrival` (tenant,
//! key, body, fingerprint), the engine, `answer` (what it said, as a response) and `unit` (the
//! execution, detached from the client).

mod answer;
mod arrival;
mod async_status;
mod canonical;
mod capture;
mod drain;
mod headers;
mod key;
mod later;
mod layer;
mod options;
mod pages;
mod prefer;
mod problem;
mod repeatability;
mod route;
mod service;
#[cfg(test)]
mod spans;
mod stored_request;
mod tenancy;
mod unit;
mod wellknown;

pub use self::{
    canonical::{NotCanonical, canonical_json},
    later::Later,
    layer::{IdempotencyLayer, Site},
    options::{BodyForm, Dialect, InFlight, KeyForm, KeyRule, Protection, Scoping, StoreDown},
    problem::Code,
    route::{InvalidRoute, Routes, Treatment},
    service::Idempotency,
    tenancy::Tenancy,
    wellknown::{openapi_fragment, published_policy},
};
