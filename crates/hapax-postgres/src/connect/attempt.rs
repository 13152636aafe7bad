//! One server of those that an address names, tried once.

use std::{error::Error, io, time::Duration};

use rustls::CertificateError;
use tokio::time::timeout;
use tokio_postgres::{
    Client, Config, Connection, Socket,
    config::{Host, SslMode},
    error::SqlState,
};

use super::{
    error::{AddressError, ConnectFailure, PasswordAdvice},
    password::{FoundPassword, Password},
    settings::{ConnectSettings, ServerPlace},
    tls::{EncryptedStream, PostgresTls, TlsLevel},
};

/// What `pg_stat_activity` shows, unless the address names something.
const APPLICATION_NAME: &str = "hapax";
/// How often the time to accept a connection may pass until we are let in: a host may have several
/// addresses, and encryption and passwords take their own.
const ROUNDS_MAX: u32 = 3;

/// A session, and what moves its bytes.
pub(crate) type Connected = (Client, Connection<Socket, EncryptedStream<Socket>>);

/// A server and how to get into it.
pub(crate) struct HostAttempt {
    shown: String,
    config: Config,
    tls: PostgresTls,
    password: FoundPassword,
    /// Whether a server that encrypts badly is tried without.
    falls_back: bool,
    /// Whether the connection is encrypted for the password's sake alone.
    protects_password: bool,
    limit: Duration,
}

impl HostAttempt {
    pub(super) fn new(
        settings: &ConnectSettings,
        place: &ServerPlace,
        printed: Option<&Password>,
    ) -> Result<Self, ConnectFailure> {
        let mut config = settings.driver.clone();
        let (user, dbname) = (settings.driver.get_user(), settings.driver.get_dbname());
        let password = settings.password.find(printed, place, user, dbname)?;
        let encryption = encryption(settings, place, &password)?;
        let protects_password =
            encryption != settings.tls.encryption && encryption == TlsLevel::Require;
        config.ssl_mode(ssl_mode(encryption)).connect_timeout(settings.connect_timeout);
        match &place.host {
            Host::Tcp(host) => config.host(host.as_str()),
            Host::Unix(dir) => config.host_path(dir),
        };
        if let Some(address) = place.address {
            config.hostaddr(address);
        }
        config.port(place.port);
        if let Some((password, _)) = &password.password {
            config.password(password.bytes());
        }
        if config.get_application_name().is_none() {
            config.application_name(APPLICATION_NAME);
        }
        Ok(Self {
            shown: place.shown(),
            config,
            tls: PostgresTls::new(settings.tls.clone()),
            password,
            falls_back: encryption == TlsLevel::Prefer,
            protects_password,
            limit: settings.connect_timeout.saturating_mul(ROUNDS_MAX),
        })
    }

    pub(crate) async fn connect(&self) -> Result<Connected, ConnectFailure> {
        let connecting = async {
            match self.config.connect(self.tls.clone()).await {
                Err(error) if self.falls_back && may_do_without_tls(&error) => {
                    let mut config = self.config.clone();
                    config.ssl_mode(SslMode::Disable);
                    config.connect(self.tls.clone()).await
                }
                connected => connected,
            }
        };
        let connected = timeout(self.limit, connecting).await.map_err(|_| self.too_slow())?;
        connected.map_err(|error| self.explained(error))
    }

    pub(super) fn into_config(self) -> Config {
        self.config
    }

    /// What the driver is told, for those who do without it.
    #[cfg(feature = "tail")]
    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    #[cfg(feature = "tail")]
    pub(crate) fn tls(&self) -> &PostgresTls {
        &self.tls
    }

    /// The name of its sessions, if it is another than the usual one.
    #[cfg(feature = "tail")]
    pub(crate) fn application_name(&self) -> Option<&str> {
        self.config.get_application_name().filter(|name| *name != APPLICATION_NAME)
    }

    fn too_slow(&self) -> ConnectFailure {
        ConnectFailure::TooSlow { host: self.shown.clone(), seconds: self.limit.as_secs() }
    }

    /// What a failure of the driver means.
    fn explained(&self, source: tokio_postgres::Error) -> ConnectFailure {
        let host = self.shown.clone();
        if let Some(code) = source.code() {
            return match (code, &self.password.password) {
                (code, Some((_, origin))) if *code == SqlState::INVALID_PASSWORD => {
                    ConnectFailure::WrongPassword { host, origin: origin.clone(), source }
                }
                (code, _) if *code == SqlState::INVALID_CATALOG_NAME => {
                    ConnectFailure::NoDatabase { host, source }
                }
                (_, _) => ConnectFailure::Refused { host, source },
            };
        }
        let cause = source.source();
        let said = cause.map(ToString::to_string).unwrap_or_default();
        if said == PASSWORD_MISSING {
            let passed_over = self.password.passed_over.clone();
            return ConnectFailure::NoPassword { host, advice: PasswordAdvice { passed_over } };
        }
        if said == NO_TLS {
            return if self.protects_password {
                ConnectFailure::PlaintextPassword { host }
            } else {
                ConnectFailure::NoTls { host }
            };
        }
        if takes_no_writes(cause) {
            return ConnectFailure::ReadOnly { host };
        }
        match source.to_string().as_str() {
            CONNECTING => ConnectFailure::Unreachable { host, source },
            HANDSHAKING => match distrust(cause) {
                Some(advice) => ConnectFailure::Certificate { host, advice, source },
                None => ConnectFailure::Tls { host, source },
            },
            _ => ConnectFailure::Refused { host, source },
        }
    }
}

// What the driver says of failures that it has no type for.
const PASSWORD_MISSING: &str = "password missing";
const NO_TLS: &str = "server does not support TLS";
const CONNECTING: &str = "error connecting to server";
const HANDSHAKING: &str = "error performing TLS handshake";

/// How the connection to this place is encrypted. Sockets of this machine never are, and a password that
/// leaves it always is.
fn encryption(
    settings: &ConnectSettings,
    place: &ServerPlace,
    password: &FoundPassword,
) -> Result<TlsLevel, ConnectFailure> {
    let wanted = settings.tls.encryption;
    if matches!(place.host, Host::Unix(_)) {
        return Ok(TlsLevel::Disable);
    }
    let is_at_risk = password.password.is_some() && !place.is_local();
    match wanted {
        TlsLevel::Disable if is_at_risk && !settings.plaintext_password => {
            Err(AddressError::PlaintextPassword { host: place.shown() }.into())
        }
        TlsLevel::Prefer if is_at_risk => Ok(TlsLevel::Require),
        TlsLevel::Disable
        | TlsLevel::Prefer
        | TlsLevel::Require
        | TlsLevel::VerifyCa
        | TlsLevel::VerifyFull => Ok(wanted),
    }
}

/// As the driver knows it: who is believed to be the server is up to the certificates.
fn ssl_mode(encryption: TlsLevel) -> SslMode {
    match encryption {
        TlsLevel::Disable => SslMode::Disable,
        TlsLevel::Prefer => SslMode::Prefer,
        TlsLevel::Require | TlsLevel::VerifyCa | TlsLevel::VerifyFull => SslMode::Require,
    }
}

/// Whether a server may let us in without encryption that turned us away with it.
fn may_do_without_tls(error: &tokio_postgres::Error) -> bool {
    error.to_string() == HANDSHAKING
        || error.code() == Some(&SqlState::INVALID_AUTHORIZATION_SPECIFICATION)
}

/// The driver says so itself; the operating system would give its own number.
fn takes_no_writes(cause: Option<&(dyn Error + 'static)>) -> bool {
    let refused = cause.and_then(|cause| cause.downcast_ref::<io::Error>());
    refused.is_some_and(|error| {
        error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none()
    })
}

/// What to do about a certificate that is not trusted.
fn distrust(cause: Option<&(dyn Error + 'static)>) -> Option<&'static str> {
    let failed = cause?.downcast_ref::<io::Error>()?.get_ref()?;
    let rustls::Error::InvalidCertificate(error) = failed.downcast_ref::<rustls::Error>()? else {
        return None;
    };
    let is_unnamed = matches!(
        error,
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. }
    );
    let has_expired =
        matches!(error, CertificateError::Expired | CertificateError::ExpiredContext { .. });
    Some(if *error == CertificateError::UnknownIssuer {
        "have sslrootcert name the CA that signed it"
    } else if is_unnamed {
        "connect by a name that it is for, or write sslmode=verify-ca if any of that CA will do"
    } else if has_expired {
        "it has expired; have the server's renewed"
    } else {
        "have the server use one that a CA has signed for its name"
    })
}
