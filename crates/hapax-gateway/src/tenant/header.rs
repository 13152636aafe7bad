//! The tenant is what a trusted proxy wrote into a header.

use std::{
    fmt,
    net::{AddrParseError, IpAddr},
    num::ParseIntError,
    str::FromStr,
};

use hapax_tower::{Tenancy, TenantKind, is_named_by_connection};
use http::HeaderName;

use super::named_by;
use crate::Peer;

/// The tenant that this header names, on connections from one of the `trusted` networks alone:
/// anybody else could write anybody's name into it.
pub fn from_header(header: HeaderName, trusted: Vec<Network>) -> Tenancy {
    Tenancy::from_fn(move |parts| {
        let peer = parts.extensions.get::<Peer>()?.address().ip();
        let is_trusted = trusted.iter().any(|network| network.contains(peer));
        // A header that is taken off on its way would leave the upstream without a tenant.
        let goes_on = !is_named_by_connection(&parts.headers, &header);
        (is_trusted && goes_on).then(|| named_by(&parts.headers, &header)).flatten()
    })
    .of_kind(TenantKind::Header)
}

/// Some addresses: `10.0.0.7`, `10.0.0.0/8`, `fd00::/8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    prefix: u32,
}

impl Network {
    /// Whether the address is one of them. An IPv4 address that came as IPv6 is still itself.
    pub fn contains(&self, address: IpAddr) -> bool {
        let fits = |own: u128, other: u128, width: u32| {
            let shift = width - self.prefix;
            own.checked_shr(shift).unwrap_or(0) == other.checked_shr(shift).unwrap_or(0)
        };
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                fits(own.to_bits().into(), other.to_bits().into(), u32::BITS)
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                fits(own.to_bits(), other.to_bits(), u128::BITS)
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

impl FromStr for Network {
    type Err = InvalidNetwork;

    fn from_str(text: &str) -> Result<Self, InvalidNetwork> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(InvalidNetwork::Address)?;
        let address = address.to_canonical();
        let width = if address.is_ipv4() { u32::BITS } else { u128::BITS };
        let prefix = prefix.map_or(Ok(width), str::parse).map_err(InvalidNetwork::Prefix)?;
        match prefix {
            0 => Err(InvalidNetwork::Everybody),
            _ if prefix > width => Err(InvalidNetwork::TooLong { prefix, width }),
            _ => Ok(Self { address, prefix }),
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

/// Why a text names no network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidNetwork {
    /// What stands before the slash is no address.
    #[error("it is not an address")]
    Address(#[source] AddrParseError),
    /// What follows the slash is no number.
    #[error("what follows the slash is not a number")]
    Prefix(#[source] ParseIntError),
    /// More bits are fixed than there are.
    #[error("it fixes {prefix} bits of an address that has {width}")]
    TooLong {
        /// The bits fixed.
        prefix: u32,
        /// The bits there are.
        width: u32,
    },
    /// Nobody would be left out.
    #[error("it would trust everybody")]
    Everybody,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_holds_its_own_addresses_alone() {
        for (network, address, held) in [
            ("10.0.0.0/8", "10.200.0.1", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("10.0.0.7", "10.0.0.7", true),
            ("10.0.0.7", "10.0.0.8", false),
            ("10.0.0.0/8", "::ffff:10.0.0.1", true),
            ("::ffff:10.0.0.1", "10.0.0.1", true),
            ("fd00::/8", "fd12::1", true),
            ("fd00::/8", "fe80::1", false),
            ("::1", "127.0.0.1", false),
            ("128.0.0.0/1", "255.0.0.1", true),
            ("128.0.0.0/1", "127.0.0.1", false),
        ] {
            let network: Network = network.parse().unwrap();
            assert_eq!(network.contains(address.parse().unwrap()), held, "{network} {address}");
        }
    }

    #[test]
    fn what_names_no_network_is_refused() {
        for text in
            ["", "10.0.0", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/x", "0.0.0.0/0", "::/0", "a/8"]
        {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
    }
}
