//! Who may ask. The page can kill a process, so other pages in the same browser must not be able to.

use std::net::SocketAddr;

use http::{
    HeaderMap, HeaderName,
    header::{HOST, ORIGIN},
};

use super::refusal::ActionRefusal;

/// Where the page says the token it was served with.
const TOKEN: HeaderName = HeaderName::from_static("demo-token");

/// What the page's own requests have and others have not.
#[derive(Debug)]
pub(super) struct PageAccess {
    /// The names a browser on this machine may know the page by.
    hosts: [String; 2],
    pub(super) token: String,
}

impl PageAccess {
    pub(super) fn new(address: SocketAddr, token: String) -> Self {
        Self { hosts: [address.to_string(), format!("localhost:{}", address.port())], token }
    }

    /// Anybody on this machine may look, but not under a name that somebody else gave this address.
    pub(super) fn look(&self, headers: &HeaderMap) -> Result<(), ActionRefusal> {
        let host = only(headers, &HOST).ok_or(ActionRefusal::Host)?;
        if self.hosts.iter().any(|known| known == host) { Ok(()) } else { Err(ActionRefusal::Host) }
    }

    /// Only the page itself may act: it names its origin, and has read the token.
    pub(super) fn act(&self, headers: &HeaderMap) -> Result<(), ActionRefusal> {
        self.look(headers)?;
        let origin = only(headers, &ORIGIN).and_then(|origin| origin.strip_prefix("http://"));
        if !origin.is_some_and(|origin| self.hosts.iter().any(|known| known == origin)) {
            return Err(ActionRefusal::Origin);
        }
        if only(headers, &TOKEN) == Some(self.token.as_str()) {
            Ok(())
        } else {
            Err(ActionRefusal::Token)
        }
    }
}

/// The value of a header that is there once.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}
