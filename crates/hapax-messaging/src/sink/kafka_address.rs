//! Where a cluster of Kafka is, and how its brokers are told who asks.

use std::{collections::BTreeMap, fmt, str::FromStr};

use percent_encoding::percent_decode_str;

/// A cluster of Kafka, as people write it: `kafka://host:port,host:port`, or over TLS
/// `kafka+ssl://user:password@host:port?sasl=SCRAM-SHA-512&ca=/etc/kafka/ca.pem`.
///
/// A user and a password need `sasl`, which says how they are shown: `PLAIN`, `SCRAM-SHA-256` or
/// `SCRAM-SHA-512`. Over TLS, `ca` is the file of certificates to trust instead of the system's, `cert` and
/// `key` are files with a certificate of one's own. What an address cannot hold in a name or a
/// password is written `%40`.
///
/// ```
/// use hapax_messaging::sink::KafkaAddress;
///
/// let address: KafkaAddress = "kafka+ssl://ada:s%40cret@b:9093?sasl=PLAIN".parse()?;
/// assert_eq!(address.to_string(), "kafka+ssl://b:9093");
/// assert_eq!(address.brokers(), "b:9093");
/// assert_eq!(address.settings()["security.protocol"], "sasl_ssl");
/// assert_eq!(address.settings()["sasl.password"], "s@cret");
/// # Ok::<(), hapax_messaging::sink::InvalidKafkaAddress>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct KafkaAddress {
    brokers: String,
    settings: BTreeMap<String, String>,
}

impl KafkaAddress {
    /// `host:port`, more of them after commas.
    pub fn brokers(&self) -> &str {
        &self.brokers
    }

    /// What librdkafka is told about TLS and about who asks, in its own words; nothing where neither
    /// is said.
    pub fn settings(&self) -> &BTreeMap<String, String> {
        &self.settings
    }
}

impl FromStr for KafkaAddress {
    type Err = InvalidKafkaAddress;

    fn from_str(text: &str) -> Result<Self, InvalidKafkaAddress> {
        let (is_secure, rest) = match text.split_once("://") {
            Some(("kafka", rest)) => (false, rest),
            Some(("kafka+ssl", rest)) => (true, rest),
            Some(_) | None => return Err(InvalidKafkaAddress::NoScheme),
        };
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (user, brokers) = match place.rsplit_once('@') {
            Some((user, brokers)) => (Some(user), brokers),
            None => (None, place),
        };
        let brokers = brokers.trim_end_matches('/');
        if !brokers.split(',').all(has_port) {
            return Err(InvalidKafkaAddress::NoBroker);
        }
        let mut settings = asked(query, is_secure)?;
        match (user, settings.contains_key(MECHANISM)) {
            (Some(user), true) => sign_in(&mut settings, user)?,
            (Some(_), false) => return Err(InvalidKafkaAddress::NoMechanism),
            (None, true) => return Err(InvalidKafkaAddress::NoUser),
            (None, false) => {}
        }
        let protocol = match (is_secure, user.is_some()) {
            (false, false) => None,
            (false, true) => Some("sasl_plaintext"),
            (true, false) => Some("ssl"),
            (true, true) => Some("sasl_ssl"),
        };
        settings.extend(protocol.map(|protocol| (PROTOCOL.to_owned(), protocol.to_owned())));
        if is_secure {
            // A library that is linked in does not know where this system keeps its certificates.
            settings.entry(AUTHORITIES.to_owned()).or_insert_with(|| "probe".to_owned());
        }
        Ok(Self { brokers: brokers.to_owned(), settings })
    }
}

const PROTOCOL: &str = "security.protocol";
const MECHANISM: &str = "sasl.mechanism";
const MECHANISMS: [&str; 3] = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"];
const AUTHORITIES: &str = "ssl.ca.location";
/// Files that mean something over TLS alone.
const FILES: [(&str, &str); 3] =
    [("ca", AUTHORITIES), ("cert", "ssl.certificate.location"), ("key", "ssl.key.location")];

fn has_port(broker: &str) -> bool {
    broker.rsplit_once(':').is_some_and(|(host, port)| {
        !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0)
    })
}

/// What follows the question mark.
fn asked(query: &str, is_secure: bool) -> Result<BTreeMap<String, String>, InvalidKafkaAddress> {
    let mut settings = BTreeMap::new();
    for part in query.split('&').filter(|part| !part.is_empty()) {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let value = decoded(value)?;
        let file = FILES.iter().find(|(known, _)| *known == name).map(|(_, setting)| *setting);
        let setting = match (name, file) {
            ("sasl", _) if MECHANISMS.contains(&value.as_str()) => MECHANISM,
            ("sasl", _) => return Err(InvalidKafkaAddress::UnknownMechanism),
            (_, Some(file)) if is_secure => file,
            (_, Some(_)) => return Err(InvalidKafkaAddress::NotSecure { name: name.to_owned() }),
            (_, None) => return Err(InvalidKafkaAddress::Unknown { name: name.to_owned() }),
        };
        if settings.insert(setting.to_owned(), value).is_some() {
            return Err(InvalidKafkaAddress::Twice { name: name.to_owned() });
        }
    }
    Ok(settings)
}

fn sign_in(settings: &mut BTreeMap<String, String>, user: &str) -> Result<(), InvalidKafkaAddress> {
    let (name, password) = user.split_once(':').ok_or(InvalidKafkaAddress::NoPassword)?;
    if name.is_empty() || password.is_empty() {
        return Err(InvalidKafkaAddress::NoPassword);
    }
    settings.insert("sasl.username".to_owned(), decoded(name)?);
    settings.insert("sasl.password".to_owned(), decoded(password)?);
    Ok(())
}

fn decoded(text: &str) -> Result<String, InvalidKafkaAddress> {
    let text = percent_decode_str(text).decode_utf8();
    text.map(Into::into).map_err(|_| InvalidKafkaAddress::NoText)
}

impl fmt::Display for KafkaAddress {
    /// Never shows a user, nor what follows a question mark.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_secure = self.settings.contains_key(AUTHORITIES);
        write!(f, "{}://{}", if is_secure { "kafka+ssl" } else { "kafka" }, self.brokers)
    }
}

impl fmt::Debug for KafkaAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Why a text is no address of Kafka, as what to write instead. Never repeats a value: it may be a
/// password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidKafkaAddress {
    /// It begins with none that is Kafka's.
    #[error("begins with neither \"kafka://\" nor \"kafka+ssl://\"")]
    NoScheme,
    /// A broker has no port.
    #[error("needs a host and a port for each broker; write \"kafka://a:9092,b:9092\"")]
    NoBroker,
    /// There is a user, and nothing says how it is shown.
    #[error(
        "names a user, and not how it signs in; write \"?sasl=SCRAM-SHA-512\" behind the brokers, or PLAIN"
    )]
    NoMechanism,
    /// There is a way to sign in, and nobody who does.
    #[error("says how to sign in, and not who; write \"user:password@\" before the brokers")]
    NoUser,
    /// A user without a password.
    #[error("needs a user and a password; write \"user:password@\" before the brokers")]
    NoPassword,
    /// A way to sign in that is not known.
    #[error("says `sasl` as nobody knows it; write PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512")]
    UnknownMechanism,
    /// A file that only TLS needs.
    #[error("has `{name}`, which means something over TLS alone; write \"kafka+ssl://…\"")]
    NotSecure {
        /// Which one.
        name: String,
    },
    /// Something else that is not known.
    #[error("has `{name}`, which is not known; write `sasl`, `ca`, `cert` or `key`")]
    Unknown {
        /// Which one.
        name: String,
    },
    /// The same twice.
    #[error("has `{name}` twice; leave one of them out")]
    Twice {
        /// Which one.
        name: String,
    },
    /// What is written with percent signs is no text.
    #[error("has percent signs that make no text; write `%25` for a percent sign")]
    NoText,
}
