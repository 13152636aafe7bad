//! How requests leave: any tower service, and a ready one over reqwest.

mod reqwest_transport;
mod tls;

use hapax_tower::HttpService;

pub use self::reqwest_transport::{
    Proxies, Reqwest, ReqwestExchange, ReqwestOptions, TransportError,
};

/// Any HTTP client that is a tower service; implemented for all that fit.
///
/// Its errors mean that the request may have been carried out, unless a
/// [`NothingSent`](hapax_tower::NothingSent) is among their sources.
///
/// ```
/// use hapax_client::{BuildError, Client, Transport};
///
/// fn client<T: Transport>(transport: T) -> Result<Client<T>, BuildError> {
///     Client::builder().build_on(transport)
/// }
///
/// // A service in the same process, which answers 404.
/// let client = client(axum::Router::new())?;
/// # drop(client);
/// # Ok::<(), BuildError>(())
/// ```
pub trait Transport: HttpService + Sync {}

impl<S: HttpService + Sync> Transport for S {}
