//! What an address means, with what the environment says where it says nothing.

use std::{
    net::IpAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use tokio_postgres::{
    Config,
    config::{ChannelBinding, Host, LoadBalanceHosts, SslMode, SslNegotiation, TargetSessionAttrs},
};

use super::{
    error::AddressError,
    parameters::{PASSWORD_COMMAND, PLAINTEXT_PASSWORD, Parameters},
    password::{Password, PasswordOrigin, PasswordSettings},
    service,
    tls::{TlsLevel, TlsSettings, TrustAnchors},
};

/// How long a server may take to accept a connection, unless the address says otherwise.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long sent bytes may stay unacknowledged, unless the address says otherwise.
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(15);
const PORT: u16 = 5432;
/// Where the sockets of a server on this machine are.
const SOCKET_DIRS: [&str; 2] = ["/var/run/postgresql", "/tmp"];

/// Everything that is needed to connect, but for the password.
#[derive(Debug, Clone)]
pub(super) struct ConnectSettings {
    /// Without hosts, password and mode of encryption, which each attempt has its own of.
    pub(super) driver: Config,
    pub(super) hosts: Vec<ServerPlace>,
    pub(super) shuffled: bool,
    pub(super) connect_timeout: Duration,
    pub(super) password: PasswordSettings,
    pub(super) tls: TlsSettings,
    pub(super) plaintext_password: bool,
}

/// Where a server may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServerPlace {
    pub(super) host: Host,
    /// Where to connect to instead of asking for the host's address.
    pub(super) address: Option<IpAddr>,
    pub(super) port: u16,
}

impl ServerPlace {
    /// Whether nothing that is sent there leaves this machine.
    pub(super) fn is_local(&self) -> bool {
        match (&self.host, self.address) {
            (Host::Unix(_), _) => true,
            (Host::Tcp(_), Some(address)) => address.is_loopback(),
            (Host::Tcp(host), None) => {
                host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
            }
        }
    }

    /// What is connected to, if that is no socket of this machine.
    pub(super) fn network_host(&self) -> Option<String> {
        match (&self.host, self.address) {
            (Host::Unix(_), _) => None,
            (Host::Tcp(_), Some(address)) => Some(address.to_string()),
            (Host::Tcp(host), None) => Some(host.clone()),
        }
    }

    /// As people are told.
    pub(super) fn shown(&self) -> String {
        match &self.host {
            Host::Unix(dir) => dir.join(format!(".s.PGSQL.{}", self.port)).display().to_string(),
            Host::Tcp(host) if host.contains(':') => format!("[{host}]:{}", self.port),
            Host::Tcp(host) => format!("{host}:{}", self.port),
        }
    }
}

/// The variables of the environment, and the home directory.
pub(super) struct ClientEnvironment<'a>(pub(super) &'a dyn Fn(&str) -> Option<String>);

impl ClientEnvironment<'_> {
    pub(super) fn variable(&self, name: &str) -> Option<String> {
        (self.0)(name).filter(|value| !value.is_empty())
    }

    pub(super) fn in_home(&self, path: &str) -> Option<PathBuf> {
        self.variable("HOME").map(|home| PathBuf::from(home).join(path))
    }
}

impl ConnectSettings {
    /// What the parameters say, then the service they name, then the environment.
    pub(super) fn resolve(
        said: &Parameters,
        environment: &ClientEnvironment<'_>,
    ) -> Result<Self, AddressError> {
        let variables = Parameters::of_environment(&|name| environment.variable(name))?;
        let named = said.get("service").or_else(|| variables.get("service"));
        let service = match named {
            Some(name) => {
                let file = said.get("servicefile").or_else(|| variables.get("servicefile"));
                service::parameters(name, file, environment)?
            }
            None => Parameters::default(),
        };
        let origins = [
            (said, PasswordOrigin::Address),
            (&service, PasswordOrigin::Service),
            (&variables, PasswordOrigin::Environment),
        ];
        let password = password(origins, environment)?;
        let whole = said.clone().or(&service).or(&variables);
        let hosts = hosts(&whole)?;
        let tls = tls(&whole, environment)?;
        let driver = driver(&whole, &tls, hosts.len() > 1)?;
        let settings = Self {
            driver,
            hosts,
            shuffled: one_of(
                &whole,
                "load_balance_hosts",
                &[("disable", false), ("random", true)],
            )?
            .unwrap_or(false),
            connect_timeout: seconds(&whole, "connect_timeout")?.unwrap_or(CONNECT_TIMEOUT),
            password,
            tls,
            plaintext_password: one_of(&whole, PLAINTEXT_PASSWORD, &[("allow", true)])?
                .unwrap_or(false),
        };
        settings.refuse_contradictions()
    }

    /// What a driver's own configuration says. It was made in code: the environment is not asked.
    pub(super) fn of_driver(config: &Config, environment: &ClientEnvironment<'_>) -> Self {
        let hosts = driver_hosts(config);
        let encryption = if config.get_ssl_mode() == SslMode::Disable {
            TlsLevel::Disable
        } else if config.get_ssl_mode() == SslMode::Require {
            TlsLevel::Require
        } else {
            TlsLevel::Prefer
        };
        let direct = config.get_ssl_negotiation() == SslNegotiation::Direct;
        let mut tls = TlsSettings { encryption, direct, ..TlsSettings::default() };
        tls.add_usual_files(environment);
        let given = config.get_password();
        let given = given.map(|password| (Password::from(password), PasswordOrigin::Address));
        Self {
            driver: copied(config),
            hosts,
            shuffled: config.get_load_balance_hosts() == LoadBalanceHosts::Random,
            connect_timeout: config.get_connect_timeout().copied().unwrap_or(CONNECT_TIMEOUT),
            password: PasswordSettings { given, ..PasswordSettings::default() },
            tls,
            plaintext_password: false,
        }
    }

    fn refuse_contradictions(self) -> Result<Self, AddressError> {
        let contradiction = |what, instead| Err(AddressError::Contradiction { what, instead });
        let encryption = self.tls.encryption;
        if self.driver.get_channel_binding() == ChannelBinding::Require
            && encryption == TlsLevel::Disable
        {
            return contradiction(
                "channel_binding=require needs an encrypted connection",
                "write sslmode=verify-full or sslmode=require with it",
            );
        }
        if self.plaintext_password && encryption != TlsLevel::Disable {
            return contradiction(
                "hapax_plaintext_password=allow means something with sslmode=disable alone",
                "write both, or neither",
            );
        }
        if self.tls.direct && encryption < TlsLevel::Require {
            return contradiction(
                "sslnegotiation=direct needs a connection that is encrypted in any case",
                "write sslmode=require, verify-ca or verify-full with it",
            );
        }
        if let Some(place) = self.hosts.iter().find(|place| !place.is_local())
            && encryption == TlsLevel::Disable
            && self.password.given.is_some()
            && !self.plaintext_password
        {
            return Err(AddressError::PlaintextPassword { host: place.shown() });
        }
        Ok(self)
    }
}

fn password(
    origins: [(&Parameters, PasswordOrigin); 3],
    environment: &ClientEnvironment<'_>,
) -> Result<PasswordSettings, AddressError> {
    let said = |name: &str| origins.iter().find_map(|(said, _)| said.get(name));
    let command = said(PASSWORD_COMMAND).map(str::to_owned);
    let passfile = said("passfile").map(PathBuf::from);
    // One in the environment is for whoever says nothing else.
    let written =
        [&origins[0], &origins[1]].into_iter().any(|(said, _)| said.get("password").is_some());
    if command.is_some() && written {
        return Err(AddressError::Contradiction {
            what: "there is a password and a hapax_password_command that prints one",
            instead: "write one of them",
        });
    }
    let given = origins.into_iter().find_map(|(said, origin)| {
        said.get("password").map(|password| (Password::from(password.as_bytes()), origin))
    });
    Ok(PasswordSettings {
        given: given.filter(|_| command.is_none()),
        command,
        passfile: passfile.or_else(|| environment.in_home(".pgpass")),
        login: environment.variable("USER").or_else(|| environment.variable("LOGNAME")),
    })
}

fn hosts(said: &Parameters) -> Result<Vec<ServerPlace>, AddressError> {
    let list = |name| {
        let values = said.get(name).into_iter().flat_map(|values: &str| values.split(','));
        values.map(str::trim).collect::<Vec<_>>()
    };
    let (names, addresses, ports) = (list("host"), list("hostaddr"), list("port"));
    let count = names.len().max(addresses.len()).max(1);
    let uneven = |count_of: usize| count_of != 0 && count_of != count;
    if uneven(names.len()) || uneven(addresses.len()) || (ports.len() > 1 && uneven(ports.len())) {
        return Err(AddressError::Contradiction {
            what: "there are not as many hosts as ports or addresses",
            instead: "write one for each host, or one port for all",
        });
    }
    let place = |at: usize| {
        let port = match ports.get(at).or_else(|| ports.first()) {
            None | Some(&"") => PORT,
            Some(port) => number(port)
                .filter(|port| *port != 0)
                .ok_or(AddressError::Value { name: "port", instead: "a number from 1 to 65535" })?,
        };
        let address = match addresses.get(at) {
            None | Some(&"") => None,
            Some(address) => {
                let instead = "an IP address";
                let parsed = address.parse::<IpAddr>();
                Some(parsed.map_err(|_| AddressError::Value { name: "hostaddr", instead })?)
            }
        };
        let host = match (names.get(at).copied().unwrap_or_default(), address) {
            ("", Some(address)) => Host::Tcp(address.to_string()),
            ("", None) => usual_host(port),
            (path, _) if path.starts_with('/') => Host::Unix(path.into()),
            (name, _) => Host::Tcp(name.to_owned()),
        };
        Ok(ServerPlace { host, address, port })
    };
    (0..count).map(place).collect()
}

/// The socket of a server on this machine, as clients of PostgreSQL find it; else its port.
fn usual_host(port: u16) -> Host {
    let has_socket = |dir: &&str| Path::new(dir).join(format!(".s.PGSQL.{port}")).exists();
    let dir = SOCKET_DIRS.into_iter().find(has_socket);
    dir.map_or_else(|| Host::Tcp("localhost".to_owned()), |dir| Host::Unix(dir.into()))
}

fn tls(
    said: &Parameters,
    environment: &ClientEnvironment<'_>,
) -> Result<TlsSettings, AddressError> {
    let modes = [
        ("disable", TlsLevel::Disable),
        ("prefer", TlsLevel::Prefer),
        ("require", TlsLevel::Require),
        ("verify-ca", TlsLevel::VerifyCa),
        ("verify-full", TlsLevel::VerifyFull),
    ];
    let mode = one_of(said, "sslmode", &modes)?;
    let roots = said.get("sslrootcert").map(|path| match path {
        "system" => TrustAnchors::System,
        path => TrustAnchors::File(path.into()),
    });
    let encryption = match (mode, &roots) {
        (None, Some(TrustAnchors::System)) => TlsLevel::VerifyFull,
        (Some(weaker), Some(TrustAnchors::System)) if weaker != TlsLevel::VerifyFull => {
            return Err(AddressError::Contradiction {
                what: "sslrootcert=system trusts everybody who has a certificate for some name",
                instead: "write sslmode=verify-full with it",
            });
        }
        (mode, _) => mode.unwrap_or(TlsLevel::Prefer),
    };
    let negotiation = [("postgres", false), ("direct", true)];
    let path = |name| said.get(name).map(PathBuf::from);
    let mut tls = TlsSettings {
        encryption,
        direct: one_of(said, "sslnegotiation", &negotiation)?.unwrap_or(false),
        roots,
        certificate: path("sslcert"),
        key: path("sslkey"),
    };
    if tls.key.is_some() && tls.certificate.is_none() {
        return Err(AddressError::Contradiction {
            what: "there is an sslkey without its certificate",
            instead: "write sslcert=FILE too",
        });
    }
    tls.add_usual_files(environment);
    Ok(tls)
}

fn driver(said: &Parameters, tls: &TlsSettings, several: bool) -> Result<Config, AddressError> {
    let mut config = Config::new();
    if let Some(user) = said.get("user") {
        config.user(user);
    }
    if let Some(dbname) = said.get("dbname") {
        config.dbname(dbname);
    }
    if let Some(options) = said.get("options") {
        config.options(options);
    }
    if let Some(name) =
        said.get("application_name").or_else(|| said.get("fallback_application_name"))
    {
        config.application_name(name);
    }
    if let Some(kept) = one_of(said, "keepalives", &[("0", false), ("1", true)])? {
        config.keepalives(kept);
    }
    if let Some(idle) = seconds(said, "keepalives_idle")? {
        config.keepalives_idle(idle);
    }
    if let Some(interval) = seconds(said, "keepalives_interval")? {
        config.keepalives_interval(interval);
    }
    if let Some(count) = whole_number(said, "keepalives_count")? {
        config.keepalives_retries(count);
    }
    let unacknowledged = whole_number(said, "tcp_user_timeout")?.filter(|millis| *millis > 0);
    let unacknowledged = unacknowledged.map(|millis: u32| Duration::from_millis(millis.into()));
    config.tcp_user_timeout(unacknowledged.unwrap_or(UNACKNOWLEDGED_MAX));
    let bindings = [
        ("disable", ChannelBinding::Disable),
        ("prefer", ChannelBinding::Prefer),
        ("require", ChannelBinding::Require),
    ];
    config.channel_binding(
        one_of(said, "channel_binding", &bindings)?.unwrap_or(ChannelBinding::Prefer),
    );
    // Whoever names several hosts has one that takes writes, and nothing else is of use here.
    let usual = if several { TargetSessionAttrs::ReadWrite } else { TargetSessionAttrs::Any };
    let wanted = [
        ("any", TargetSessionAttrs::Any),
        ("read-write", TargetSessionAttrs::ReadWrite),
        ("primary", TargetSessionAttrs::ReadWrite),
    ];
    config.target_session_attrs(one_of(said, "target_session_attrs", &wanted)?.unwrap_or(usual));
    if tls.direct {
        config.ssl_negotiation(SslNegotiation::Direct);
    }
    Ok(config)
}

/// The same configuration without what each attempt has its own of.
fn copied(config: &Config) -> Config {
    let mut copy = Config::new();
    if let Some(user) = config.get_user() {
        copy.user(user);
    }
    if let Some(dbname) = config.get_dbname() {
        copy.dbname(dbname);
    }
    if let Some(options) = config.get_options() {
        copy.options(options);
    }
    if let Some(name) = config.get_application_name() {
        copy.application_name(name);
    }
    if let Some(interval) = config.get_keepalives_interval() {
        copy.keepalives_interval(interval);
    }
    if let Some(retries) = config.get_keepalives_retries() {
        copy.keepalives_retries(retries);
    }
    let unacknowledged = config.get_tcp_user_timeout().copied().unwrap_or(UNACKNOWLEDGED_MAX);
    copy.tcp_user_timeout(unacknowledged)
        .keepalives(config.get_keepalives())
        .keepalives_idle(config.get_keepalives_idle())
        .channel_binding(config.get_channel_binding())
        .ssl_negotiation(config.get_ssl_negotiation())
        .target_session_attrs(config.get_target_session_attrs());
    copy
}

fn driver_hosts(config: &Config) -> Vec<ServerPlace> {
    let (hosts, addresses, ports) =
        (config.get_hosts(), config.get_hostaddrs(), config.get_ports());
    let place = |at: usize| {
        let address = addresses.get(at).copied();
        let port = ports.get(at).or_else(|| ports.first()).copied().unwrap_or(PORT);
        let host = hosts.get(at).cloned().or_else(|| Some(Host::Tcp(address?.to_string())));
        ServerPlace { host: host.unwrap_or_else(|| usual_host(port)), address, port }
    };
    (0..hosts.len().max(addresses.len()).max(1)).map(place).collect()
}

/// The value that a word stands for.
fn one_of<T: Copy>(
    said: &Parameters,
    name: &'static str,
    words: &[(&str, T)],
) -> Result<Option<T>, AddressError> {
    let Some(value) = said.get(name) else { return Ok(None) };
    let found = words.iter().find(|(word, _)| *word == value).map(|(_, meaning)| *meaning);
    found.map(Some).ok_or_else(|| AddressError::Value { name, instead: instead_of(name) })
}

fn instead_of(name: &str) -> &'static str {
    match name {
        "sslmode" => "disable, prefer, require, verify-ca or verify-full",
        "sslnegotiation" => "postgres or direct",
        "channel_binding" => "disable, prefer or require",
        "target_session_attrs" => {
            "any, read-write or primary: a server that takes no writes is of no use"
        }
        "load_balance_hosts" => "disable or random",
        "keepalives" => "0 or 1",
        _ => "allow, or leave it out",
    }
}

fn seconds(said: &Parameters, name: &'static str) -> Result<Option<Duration>, AddressError> {
    let seconds = whole_number(said, name)?.filter(|seconds| *seconds > 0);
    Ok(seconds.map(|seconds: u32| Duration::from_secs(seconds.into())))
}

fn whole_number(said: &Parameters, name: &'static str) -> Result<Option<u32>, AddressError> {
    let Some(value) = said.get(name) else { return Ok(None) };
    // Some write -1 for "as usual".
    if value == "-1" {
        return Ok(None);
    }
    number(value).map(Some).ok_or(AddressError::Value { name, instead: "a whole number" })
}

fn number<T: std::str::FromStr>(text: &str) -> Option<T> {
    text.trim().parse().ok()
}
