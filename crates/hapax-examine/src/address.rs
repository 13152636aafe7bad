//! Where an API is.

use std::fmt;

use thiserror::Error;

/// Where requests go: `https://api.example.com:8443`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpAddress {
    /// Whether it speaks TLS.
    pub tls: bool,
    /// A name, or an address without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// Why something is no address of an API.
#[derive(Debug, Error)]
pub enum HttpAddressError {
    /// It cannot be read as a URL.
    #[error("`{0}` is no URL")]
    NoUrl(String),
    /// It does not begin with `http://` or `https://`.
    #[error("`{0}` is neither http:// nor https://")]
    Scheme(String),
    /// It holds a name, and perhaps a password, before the host. They are not repeated.
    #[error("a URL must not hold a name or a password: give them as a header that says who asks")]
    Credentials,
}

impl HttpAddress {
    /// Reads a URL: where it leads, and its path with its query.
    pub fn parse(url: &str) -> Result<(Self, String), HttpAddressError> {
        let read: http::Uri = url.parse().map_err(|_| HttpAddressError::NoUrl(url.to_owned()))?;
        let (tls, port) = match read.scheme_str() {
            Some("http") => (false, 80),
            Some("https") => (true, 443),
            Some(_) | None => return Err(HttpAddressError::Scheme(url.to_owned())),
        };
        let authority = read.authority().ok_or_else(|| HttpAddressError::NoUrl(url.to_owned()))?;
        if authority.as_str().contains('@') {
            return Err(HttpAddressError::Credentials);
        }
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        let address = Self { tls, host, port: authority.port_u16().unwrap_or(port) };
        let path = read.path_and_query().map_or("/", |path| path.as_str());
        Ok((address, path.to_owned()))
    }

    /// As it stands in `Host`.
    pub fn authority(&self) -> String {
        let host =
            if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        match (self.tls, self.port) {
            (false, 80) | (true, 443) => host,
            (_, port) => format!("{host}:{port}"),
        }
    }
}

impl fmt::Display for HttpAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", if self.tls { "https" } else { "http" }, self.authority())
    }
}
