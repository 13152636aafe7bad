//! How requests leave: any tower service, and a ready one over reqwest.

mod over_reqwest;
mod tls;

use hapax_tower::HttpService;

pub use self::over_reqwest::{Exchange, Proxies, Reqwest, ReqwestOptions, TransportError};

/// Any HTTP client that is a tower service; implemented for all that fit.
///
/// Its errors mean that the request may have been carried out, unless a
/// [`NothingSent`](hapax_tower::NothingSent) is among their sources.
pub trait Transport: HttpService + Sync {}

impl<S: HttpService + Sync> Transport for S {}
