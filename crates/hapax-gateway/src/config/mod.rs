//! What a gateway is told: typed, checked, and free of contradictions.
//!
//! `load` puts a file and flags together. The tables of the file are read by `upstream`, `tenants`
//! and `routes`; each setting goes through [`reader`], which notes what is wrong in `fault` and goes on. Tables that
//! are not the gateway's own are read by whoever runs it: `beside`.

mod admin;
mod admin_oidc;
mod cors;
mod describe;
mod encryption;
mod fault;
mod files;
mod foreign_tables;
mod key_source;
mod load;
mod mode;
mod names;
mod pattern;
mod probe;
mod protection;
pub mod reader;
mod revalidate;
mod routes;
mod store;
mod tenants;
mod units;
mod upstream;
mod worth;

use std::{fmt, net::SocketAddr, path::PathBuf, time::Duration};

use hapax_encryption::Encryption;
use hapax_tower::{Cors, PathReading, Routes, Tenancy};
use http::Uri;

pub(crate) use self::{admin_oidc::is_private, probe::RESERVED};
pub use self::{
    admin_oidc::{AdminOidc, ClientSecret},
    describe::describe,
    encryption::read as encryption_of,
    fault::{ConfigError, Excerpt, Fault},
    foreign_tables::{Beside, ForeignTable, Surroundings},
    load::{ConfigSource, Overrides, load_file, socket},
    mode::RouteMode,
    names::SETTINGS,
    store::store_of,
    upstream::origin,
};

/// Everything a gateway needs to know.
#[derive(Clone)]
pub struct Config {
    /// Where clients connect.
    pub listen: SocketAddr,
    /// Where health, metrics and the admin API are; nowhere if `None`.
    pub admin: Option<SocketAddr>,
    /// The token the admin API asks for; without one only health and metrics are served.
    pub admin_token: Option<String>,
    /// A token that lets look and change nothing.
    pub admin_read_token: Option<String>,
    /// Names by which browsers may come to the dashboard, beside loopback's and its address.
    pub admin_hosts: Vec<String>,
    /// Who signs people in to the dashboard; nobody but the tokens if `None`.
    pub admin_oidc: Option<AdminOidc>,
    /// Where records are kept: `sqlite:PATH`, `postgres://…`, `memory:` or `address-file:PATH`.
    pub store: String,
    /// What it encrypts what it keeps with; everything is clear if `None`.
    pub encryption: Option<Encryption>,
    /// What is protected.
    pub upstream: Upstream,
    /// The certificate clients see; plain HTTP if `None`.
    pub tls: Option<Tls>,
    /// Which pages of other origins may use protected routes; nothing is said about it if `None`.
    pub cors: Option<Cors>,
    /// What one client, and all of them together, may use.
    pub limits: Limits,
    /// Whose keys they are, where a route does not say otherwise.
    pub tenancy: Tenancy,
    /// Which requests are protected, and how.
    pub routes: Routes,
    /// The hosts this gateway answers for; any if empty.
    pub hosts: Vec<String>,
    /// How many threads serve clients; as many as there are cores if `None`.
    pub workers: Option<usize>,
    /// How long requests may go on after the gateway was told to stop.
    pub drain: Duration,
    /// How long before that it says that it is not ready, and serves on.
    pub drain_delay: Duration,
    /// Most bytes of finished operations kept in memory.
    pub cache_bytes_max: u64,
    /// How often operations whose owner vanished are looked for.
    pub sweep_every: Duration,
    /// How long the store's clock must have gone steadily before anything expires by it.
    pub clock_stays: Duration,
    /// Where the tenant comes from, in words.
    pub tenant: String,
    /// Who callers are taken for, by which setting, and how that is changed, in a sentence.
    pub callers: String,
    /// A line for each route, in order, and one for what no route names.
    pub summary: Vec<String>,
    /// A line for each thing that was read beside it.
    pub beside: Vec<String>,
    /// What whoever starts the gateway should know.
    pub notes: Vec<String>,
}

impl fmt::Debug for Config {
    /// Leaves out what may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut config = f.debug_struct("Config");
        config.field("listen", &self.listen).field("admin", &self.admin);
        config.field("upstream", &self.upstream).field("summary", &self.summary);
        config.finish_non_exhaustive()
    }
}

/// The API behind the gateway. Addresses come from here and from nowhere else.
#[derive(Debug, Clone)]
pub struct Upstream {
    /// `http://host[:port]` or `https://host[:port]`, with an optional path put before every path.
    pub url: Uri,
    /// Which protocol is spoken to it.
    pub protocol: Protocol,
    /// How long a connection may take to be made.
    pub connect_timeout: Duration,
    /// How long an unused connection is kept. Shorter than the upstream keeps it, so that no
    /// request is sent on a connection that is being closed.
    pub idle: Duration,
    /// Most connections to it, over all workers.
    pub connections_max: usize,
    /// How many of them only protected requests may use.
    pub reserve: usize,
    /// Most connections, beside those, that went on in another protocol; with none, nobody may.
    pub long_lived_max: usize,
    /// How long such a connection, or a stream of events, may be silent.
    pub silence_max: Duration,
    /// How long an answer, or the next piece of one, may take on routes that are not protected.
    pub answer_timeout: Duration,
    /// Largest head of an answer that is read, in bytes. An answer with a larger one is none.
    pub answer_head_bytes_max: usize,
    /// Most headers of an answer that are read. An answer with more is none.
    pub answer_headers_max: usize,
    /// Whether the upstream sees the `Host` the client sent instead of its own.
    pub keep_host: bool,
    /// How it reads the paths it is sent.
    pub paths: PathReading,
    /// Certificates to trust, as a PEM file, instead of those of the system.
    pub ca: Option<PathBuf>,
    /// What the gateway shows of itself, where the upstream asks for it.
    pub identity: Option<CertifiedKey>,
}

/// Which protocol is spoken to the upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1; over TLS HTTP/2 if the upstream offers it.
    Automatic,
    /// HTTP/1.1.
    Http1,
    /// HTTP/2, without TLS by prior knowledge.
    Http2,
}

/// What clients see, and what they have to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    /// What clients see.
    pub identity: CertifiedKey,
    /// What clients have to show; nothing if `None`.
    pub clients: Option<ClientCertificates>,
}

/// A certificate and its key, as PEM files. Read again when the gateway is told to reload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertifiedKey {
    /// The chain, its owner's own certificate first.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// Which certificates of clients are good. Read again when the gateway is told to reload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientCertificates {
    /// Who signs them, as a PEM file.
    pub ca: PathBuf,
    /// Whether a client without one is turned away.
    pub required: bool,
}

/// What one client, and all of them together, may use.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Most connections of clients at one time.
    pub connections_max: usize,
    /// Largest head of a request, in bytes.
    pub head_bytes_max: usize,
    /// Most headers of a request.
    pub headers_max: usize,
    /// How long a head may take.
    pub head_timeout: Duration,
    /// How long a body may come more slowly than `body_bytes_per_second_min`.
    pub body_timeout: Duration,
    /// How many bytes of a body have to come in a second, and of an answer have to be taken.
    pub body_bytes_per_second_min: usize,
    /// How long an answer may be taken more slowly than that.
    pub send_timeout: Duration,
    /// How long a connection may be unused.
    pub idle_timeout: Duration,
    /// Most requests at one time on an HTTP/2 connection.
    pub streams_max: u32,
    /// Most bytes of request bodies in memory at one time, over all clients.
    pub buffered_bytes_max: usize,
    /// Most bytes of answers in memory that clients have not taken, over all of them.
    pub answers_bytes_max: usize,
    /// Most bytes one connection may have of either; one request or answer may be larger.
    pub share_bytes_max: usize,
    /// Most connections of operators at one time.
    pub admin_connections_max: usize,
}
