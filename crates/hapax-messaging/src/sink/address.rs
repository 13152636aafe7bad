//! Where events are sent, as people write it: the one place that knows how.

use std::{fmt, str::FromStr};

use http::Uri;

use super::kafka_address::{InvalidKafkaAddress, KafkaAddress};

/// Where events are sent, as people write it.
///
/// ```
/// use hapax_messaging::sink::SinkAddress;
///
/// let address: SinkAddress = "kafka://broker-1:9092,broker-2:9092".parse()?;
/// assert!(matches!(address, SinkAddress::Kafka(_)));
/// assert!("ftp://host/path".parse::<SinkAddress>().is_err());
/// # Ok::<(), hapax_messaging::sink::InvalidSinkAddress>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub enum SinkAddress {
    /// `stdout:`: lines of JSON on standard output.
    Stdout,
    /// `https://host/path` or `http://host/path`.
    Webhook(String),
    /// `kafka://host:port`, several separated by commas, or `kafka+ssl://…`.
    Kafka(KafkaAddress),
    /// `nats://host:port`, several separated by commas, or `tls://…`.
    Nats(String),
    /// `amqp://host/vhost` or `amqps://…`.
    RabbitMq(String),
    /// `sqs+https://sqs.REGION.amazonaws.com/ACCOUNT/NAME.fifo`; here without `sqs+`.
    Sqs(String),
}

impl FromStr for SinkAddress {
    type Err = InvalidSinkAddress;

    fn from_str(text: &str) -> Result<Self, InvalidSinkAddress> {
        if text == "stdout:" {
            return Ok(Self::Stdout);
        }
        let (scheme, rest) = text.split_once("://").ok_or(InvalidSinkAddress::NoScheme)?;
        if rest.is_empty() || rest.starts_with('/') || text.contains(char::is_whitespace) {
            return Err(InvalidSinkAddress::NoHost);
        }
        match scheme {
            "https" | "http" => {
                uri(text)?;
                Ok(Self::Webhook(text.to_owned()))
            }
            "sqs+https" | "sqs+http" => {
                let url = text.trim_start_matches("sqs+");
                uri(url)?;
                Ok(Self::Sqs(url.to_owned()))
            }
            "kafka" | "kafka+ssl" => {
                text.parse().map(Self::Kafka).map_err(InvalidSinkAddress::Kafka)
            }
            "nats" | "tls" => Ok(Self::Nats(text.to_owned())),
            "amqp" | "amqps" => Ok(Self::RabbitMq(text.to_owned())),
            _ => Err(InvalidSinkAddress::UnknownScheme { scheme: scheme.to_owned() }),
        }
    }
}

fn uri(text: &str) -> Result<(), InvalidSinkAddress> {
    let uri: Uri = text.parse().map_err(|_| InvalidSinkAddress::NoHost)?;
    match uri.authority() {
        Some(authority) if authority.as_str().contains('@') => Err(InvalidSinkAddress::HasPassword),
        Some(_) => Ok(()),
        None => Err(InvalidSinkAddress::NoHost),
    }
}

impl SinkAddress {
    /// Whether events are signed on their way there.
    pub fn is_signed(&self) -> bool {
        matches!(self, Self::Webhook(_))
    }

    /// Whether events go through an exchange that can be named.
    pub fn has_exchanges(&self) -> bool {
        matches!(self, Self::RabbitMq(_))
    }

    /// Whether something can be put before their topics.
    pub fn has_prefixes(&self) -> bool {
        matches!(self, Self::Nats(_) | Self::Kafka(_))
    }

    /// Whether two that are different, apart from their passwords, may be shown alike.
    pub fn is_shown_in_part(&self) -> bool {
        match self {
            Self::Webhook(text) | Self::Nats(text) | Self::RabbitMq(text) => {
                text.contains(['?', '#'])
            }
            Self::Stdout | Self::Kafka(_) | Self::Sqs(_) => false,
        }
    }
}

impl fmt::Display for SinkAddress {
    /// Never shows a password, nor what follows a question mark.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Stdout => return f.write_str("stdout:"),
            Self::Kafka(address) => return address.fmt(f),
            Self::Sqs(url) => return write!(f, "sqs+{url}"),
            Self::Webhook(text) | Self::Nats(text) | Self::RabbitMq(text) => text,
        };
        let text = text.split(['?', '#']).next().unwrap_or_default();
        let shown = text.split(',').map(without_password).collect::<Vec<_>>();
        f.write_str(&shown.join(","))
    }
}

fn without_password(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let slashes = if scheme.is_empty() { "" } else { "://" };
    format!("{scheme}{slashes}{host}{path}")
}

impl fmt::Debug for SinkAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Why a text is no such address, as what to write instead. Never repeats it: it may hold a
/// password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidSinkAddress {
    /// It does not begin with one.
    #[error("begins with no scheme; {KNOWN}")]
    NoScheme,
    /// Nobody knows it.
    #[error("begins with {scheme:?}, which is not known; {KNOWN}")]
    UnknownScheme {
        /// What it begins with.
        scheme: String,
    },
    /// It names none, or cannot be read.
    #[error("names no host; write it as \"https://billing.example.com/events\" is written")]
    NoHost,
    /// It is Kafka's, and cannot be meant.
    #[error(transparent)]
    Kafka(InvalidKafkaAddress),
    /// A password stands in it, and would be logged by whatever is on the way.
    #[error("cannot hold a password; leave out what stands before `@`")]
    HasPassword,
}

const KNOWN: &str = "write \"stdout:\", \"https://…\", \"kafka://…\", \"nats://…\", \"amqp://…\" or \"sqs+https://…\"";
