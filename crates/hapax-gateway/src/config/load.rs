//! From a file and flags to a [`Config`], or to everything that is wrong with them.

use std::{
    cell::OnceCell,
    fs::File,
    io::Read,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use hapax_core::limits::CLOCK_STAYS;
use http::{Uri, uri::Authority};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    Config, Limits, Tls, Upstream,
    admin::AdminSettings,
    cors, encryption,
    fault::{ConfigError, ConfigFaults, FaultLocation},
    foreign_tables::{Beside, ForeignTable, Surroundings},
    mode::RouteMode,
    names::{self, Home, TOP, TOP_OF_FILE, UPSTREAM},
    reader::TableReader,
    routes::{RouteReading, RoutesRead},
    store,
    tenants::{self, Tenants},
    upstream::{count, origin},
};

/// Largest configuration file, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Most threads.
const WORKERS_MAX: u32 = 1024;
/// Most bytes of finished operations that may be kept in memory.
const CACHE_BYTES_MAX: u64 = 1 << 40;

/// Where a configuration comes from. What a flag says counts for more than what the file says.
#[derive(Debug, Clone, Default)]
pub struct ConfigSource {
    /// The TOML file, if there is one; without one the upstream must be given.
    pub file: Option<PathBuf>,
    /// What flags and the environment say.
    pub overrides: Overrides,
}

/// What flags and the environment say, as it was written.
#[derive(Clone, Default)]
pub struct Overrides {
    /// `--listen`: where clients connect.
    pub listen: Option<String>,
    /// `--admin`: where health, metrics and the admin API are, or `off`.
    pub admin: Option<String>,
    /// `--upstream`: what is protected.
    pub upstream: Option<String>,
    /// `--store`: where records are kept.
    pub store: Option<String>,
    /// `--tenant`: who callers are.
    pub tenant: Option<String>,
    /// `--admin-token`: the token the admin API asks for.
    pub admin_token: Option<String>,
    /// `--observe` or `--enforce`: whether every route is watched alone, or none.
    pub mode: Option<RouteMode>,
}

impl std::fmt::Debug for Overrides {
    /// Leaves out what may hold a password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut overrides = f.debug_struct("Overrides");
        overrides.field("listen", &self.listen).field("admin", &self.admin);
        overrides.field("upstream", &self.upstream).finish_non_exhaustive()
    }
}

impl Config {
    /// Reads what a gateway is told. Nothing is contacted; the files it names are read.
    pub fn load(source: &ConfigSource) -> Result<Self, ConfigError> {
        Self::read(source, None)
    }

    /// The same, where the file may hold tables that are not the gateway's own.
    pub fn load_beside(source: &ConfigSource, beside: Beside<'_>) -> Result<Self, ConfigError> {
        Self::read(source, Some(beside))
    }

    /// Reads the text of the file at `path`; paths in it are relative to where it is.
    pub fn parse(path: &Path, text: &str, overrides: &Overrides) -> Result<Self, ConfigError> {
        Self::parse_beside(path, text, overrides, None)
    }

    fn read(source: &ConfigSource, beside: Option<Beside<'_>>) -> Result<Self, ConfigError> {
        match &source.file {
            Some(path) => Self::parse_beside(path, &read(path)?, &source.overrides, beside),
            None if source.overrides.upstream.is_none() => Err(ConfigError::NoUpstream),
            None => Self::parse_beside(Path::new(""), "", &source.overrides, beside),
        }
    }

    fn parse_beside(
        path: &Path,
        text: &str,
        overrides: &Overrides,
        beside: Option<Beside<'_>>,
    ) -> Result<Self, ConfigError> {
        let (mut known, mut homes) = (TOP.to_vec(), names::homes());
        if let Some(Beside { tables, .. }) = &beside {
            known.extend(tables.iter().map(|table| table.name));
            homes.extend(tables.iter().map(|table| table.home()));
        }
        parse_file(path, text, &known, homes, |top, dir| {
            Sources { text, dir, top: *top, overrides }.config(beside)
        })
    }
}

/// Reads a file of other settings with the same care, or an empty one if there is none: `known` at its top, and below
/// it these tables.
///
/// `read_top` is given the top of the file, and the directory that paths in it are relative to.
pub fn load_file<T>(
    path: Option<&Path>,
    known: &'static [&'static str],
    tables: &[ForeignTable],
    read_top: impl FnOnce(&TableReader<'_>, &Path) -> Option<T>,
) -> Result<T, ConfigError> {
    let mut homes = vec![(TOP_OF_FILE.to_owned(), known)];
    homes.extend(tables.iter().map(|table| table.home()));
    let text = path.map_or_else(|| Ok(String::new()), read)?;
    parse_file(path.unwrap_or_else(|| Path::new("")), &text, known, homes, read_top)
}

/// What `read_top` makes of a file, or everything that is wrong with it.
fn parse_file<T>(
    path: &Path,
    text: &str,
    known: &[&'static str],
    homes: Vec<Home>,
    read_top: impl FnOnce(&TableReader<'_>, &Path) -> Option<T>,
) -> Result<T, ConfigError> {
    let (name, faults) = (path.display().to_string(), ConfigFaults::new(homes));
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        faults.add(error.span().unwrap_or(0..0), error.message());
    }
    if !faults.is_empty() {
        return Err(faults.into_error(&name, text));
    }
    let table = Spanned::new(table.span(), DeValue::Table(table.into_inner()));
    let made = {
        let top = TableReader::new(&table, known, &faults);
        read_top(&top, path.parent().unwrap_or(path))
    };
    match made {
        Some(made) if faults.is_empty() => Ok(made),
        Some(_) | None => Err(faults.into_error(&name, text)),
    }
}

fn read(path: &Path) -> Result<String, ConfigError> {
    let unreadable = |cause| ConfigError::Unreadable { path: path.to_owned(), cause };
    let (file, mut bytes) = (File::open(path).map_err(unreadable)?, Vec::new());
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > FILE_BYTES_MAX {
        return Err(ConfigError::TooLarge { path: path.to_owned(), bytes_max: FILE_BYTES_MAX });
    }
    let not_text = |error| unreadable(std::io::Error::new(std::io::ErrorKind::InvalidData, error));
    String::from_utf8(bytes).map_err(not_text)
}

/// What was written, in the file and by flags.
pub(super) struct Sources<'t> {
    text: &'t str,
    pub(super) dir: &'t Path,
    pub(super) top: TableReader<'t>,
    pub(super) overrides: &'t Overrides,
}

impl Sources<'_> {
    /// The configuration; what is wrong with it is noted with the reader.
    fn config(&self, beside: Option<Beside<'_>>) -> Option<Config> {
        let top = &self.top;
        let duration = |name| top.duration(name).map(Spanned::into_inner);
        let limits = Limits::read(top);
        let tls = Tls::read(top, self.dir);
        let listen = self.either("--listen", &self.overrides.listen, "listen", top, socket);
        let listen = listen.map_or(LISTEN, |(listen, _)| listen);
        let upstream = self.upstream(listen);
        let admin = self.admin(listen);
        let certificates = tls.as_ref().is_some_and(|tls| tls.clients.is_some());
        let tenants = self.tenants(certificates);
        let store = self.store();
        let surroundings = Surroundings { dir: self.dir, store: &store };
        let beside = beside.map_or_else(Vec::new, |beside| (beside.read)(top, &surroundings));
        let read = RouteReading {
            text: self.text,
            dir: self.dir,
            upstream: &upstream,
            tenants: &tenants,
            store: &store,
            mode: self.overrides.mode,
            certificates,
            buffered_bytes_max: limits.buffered_bytes_max,
            client: OnceCell::new(),
        };
        let mut read = read.read(top);
        if !top.has("route") && !top.has("defaults") && read.observed.is_empty() {
            let what = "a request without a key passes as before; with one it is protected";
            read.notes.insert(0, format!("no route is configured: {what}"));
        }
        self.note_people(&mut read, &admin);
        let cache = top.size("cache", 0, CACHE_BYTES_MAX).map(Spanned::into_inner);
        let hosts = top.list("hosts", host).map(Spanned::into_inner);
        let workers = count(top, "workers", WORKERS_MAX);
        let (drain, sweep) = (duration("drain"), duration("sweep"));
        let drain_delay = top.duration_or_zero("drain_delay").map(Spanned::into_inner);
        let clock_stays = duration("clock_stays").unwrap_or(CLOCK_STAYS);
        Some(Config {
            listen,
            admin: admin.address,
            admin_token: admin.token,
            admin_read_token: admin.read_token,
            admin_hosts: admin.hosts,
            admin_oidc: admin.oidc,
            store,
            tls,
            encryption: encryption::read(top, self.dir),
            cors: cors::read(top),
            limits,
            tenancy: tenants.tenancy.clone(),
            routes: read.routes?,
            hosts: hosts.unwrap_or_default(),
            workers,
            drain: drain.unwrap_or(Duration::from_secs(30)),
            drain_delay: drain_delay.unwrap_or_default(),
            cache_bytes_max: cache.and_then(|cache| u64::try_from(cache).ok()).unwrap_or(64 << 20),
            sweep_every: sweep.unwrap_or(Duration::from_secs(10)),
            clock_stays,
            upstream,
            beside,
            callers: self.callers(&tenants),
            tenant: tenants.described,
            summary: read.summary,
            notes: read.notes,
        })
    }

    /// Says what is unsaid about who calls and who may ask, where that matters.
    fn note_people(&self, read: &mut RoutesRead, admin: &AdminSettings) {
        let is_unsaid = !self.top.has("tenant") && self.overrides.tenant.is_none();
        if is_unsaid && read.trusts_the_usual_tenant {
            let what = "a caller is its `Authorization` header: a revoked one still hears what was \
                        stored under it, a renewed one is somebody else";
            let advice = "write `[tenant]`, or `revalidate` where replays must not outlive a right";
            read.notes.push(format!("no tenant is configured: {what}; {advice}"));
        }
        if !read.observed.is_empty() && admin.is_mute() {
            let what = "nobody may ask what is watched, and a restart forgets it";
            let advice = "start with HAPAX_ADMIN_TOKEN set, which `hapax report` reads, too";
            read.notes.push(format!("no admin token is configured: {what}; {advice}"));
        }
    }

    /// What a flag says, or else the file, and where that is.
    pub(super) fn either<T>(
        &self,
        flag: &'static str,
        given: &Option<String>,
        name: &str,
        table: &TableReader<'_>,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Option<(T, FaultLocation)> {
        let written = table.parsed(name, &parse);
        if let Some(text) = given {
            let refuse =
                |refusal| self.top.fault(FaultLocation::Flag(flag), format!("it {refusal}"));
            return Some((parse(text).map_err(refuse).ok()?, FaultLocation::Flag(flag)));
        }
        written
            .map(|value| (value.span().into(), value.into_inner()))
            .map(|(at, value)| (value, at))
    }

    fn upstream(&self, listen: SocketAddr) -> Upstream {
        let table = self.top.table("upstream", UPSTREAM);
        let url = self.either("--upstream", &self.overrides.upstream, "url", &table, origin);
        if url.is_none() && self.overrides.upstream.is_none() && !table.has("url") {
            let what = "there is nothing to protect";
            let advice = "write `[upstream]` and `url = \"http://127.0.0.1:3000\"`";
            self.top.fault(table.span(), format!("{what}; {advice}"));
        }
        if let Some((url, place)) = &url
            && is_at(url, listen)
        {
            let what = "the gateway would ask itself: this is where it listens";
            self.top.fault(place.clone(), format!("{what}; write another port instead"));
        }
        let url = url.map_or_else(|| Uri::from_static("http://127.0.0.1"), |(url, _)| url);
        Upstream::read(&table, url, self.dir)
    }

    /// Whose keys they are, where a route does not say otherwise.
    fn tenants(&self, certificates: bool) -> Tenants {
        let written = tenants::read(&self.top, self.dir, certificates).unwrap_or_default();
        let Some(flag) = &self.overrides.tenant else { return written };
        tenants::flag(flag).unwrap_or_else(|refusal| {
            self.top.fault(FaultLocation::Flag("--tenant"), format!("it {refusal}"));
            written
        })
    }

    /// Who callers are taken for, by which setting, and how that is changed: for whoever starts it.
    fn callers(&self, tenants: &Tenants) -> String {
        let said_by = match (&self.overrides.tenant, self.top.has("tenant")) {
            (Some(_), _) => "as --tenant says",
            (None, true) => "as [tenant] says",
            (None, false) => "as nothing else is said",
        };
        if tenants.tenancy.is_shared() {
            let change = "--tenant header:NAME or cookie:NAME, or [tenant]";
            return format!(
                "callers are one tenant, {said_by}, and share all keys. To tell them apart: {change}"
            );
        }
        let who = match tenants.described.as_str() {
            "credential" => "their Authorization header",
            other => other,
        };
        let refused = "without it a request with a key hears 401 credential-missing";
        let change = "--tenant NAME for one tenant, header:NAME or cookie:NAME, or [tenant]";
        format!("callers are told apart by {who}, {said_by}; {refused}. To change that: {change}")
    }

    fn store(&self) -> String {
        let written = store::store_of(&self.top, self.dir);
        let Some(flag) = &self.overrides.store else {
            return written.unwrap_or_else(|| STORE.to_owned());
        };
        store::address(flag).unwrap_or_else(|refusal| {
            self.top.fault(FaultLocation::Flag("--store"), format!("it {refusal}"));
            STORE.to_owned()
        })
    }
}

const LISTEN: SocketAddr =
    SocketAddr::V4(std::net::SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, 8080));
const STORE: &str = "sqlite:hapax.db";

/// An address and a port. The refusal goes on after the name of a setting.
pub fn socket(text: &str) -> Result<SocketAddr, String> {
    let advice =
        "write an address and a port, such as \"127.0.0.1:8080\" or \"0.0.0.0:80\", instead";
    text.parse().map_err(|_| format!("cannot be {text:?}; {advice}"))
}

/// The name of a host, in small letters.
pub(super) fn host(text: &str) -> Result<String, String> {
    let advice = "write the name of a host, such as \"api.example.com\", instead";
    let is_host =
        Authority::try_from(text).is_ok_and(|authority| !authority.as_str().contains('@'));
    is_host
        .then(|| text.to_ascii_lowercase())
        .ok_or_else(|| format!("cannot be {text:?}; {advice}"))
}

fn is_at(url: &Uri, address: SocketAddr) -> bool {
    let usual = if url.scheme_str() == Some("https") { 443 } else { 80 };
    let port = url.port_u16().unwrap_or(usual);
    let host = url.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    let same_host =
        host.parse() == Ok(address.ip()) || host == "localhost" && address.ip().is_loopback();
    same_host && port == address.port() && port != 0
}
