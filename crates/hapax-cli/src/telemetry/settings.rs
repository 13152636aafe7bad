//! What is told to whom: `[telemetry]`, `[access_log]`, and the variables that OpenTelemetry has names for.

use std::{
    env,
    path::{Path, PathBuf},
    time::Duration,
};

use hapax_gateway::config::{
    ForeignTable, origin,
    reader::{At, FaultLocation, TableReader},
};
#[cfg(feature = "otlp")]
use hapax_gateway::telemetry::Sampler;
use http::{HeaderName, HeaderValue, Uri};
use percent_encoding::percent_decode_str;

/// The table about traces and metrics.
pub(crate) const TELEMETRY: ForeignTable = ForeignTable {
    name: "telemetry",
    settings: &[
        "endpoint",
        "protocol",
        "headers",
        "headers_file",
        "ca",
        "sample",
        "service",
        "timeout",
        "metrics_every",
    ],
    is_repeated: false,
};

/// The table about the access log.
pub(crate) const ACCESS_LOG: ForeignTable =
    ForeignTable { name: "access_log", settings: &["to"], is_repeated: false };

/// What is told to whom; by default nothing.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct TelemetrySettings {
    pub(crate) otlp: Option<OtlpSettings>,
    pub(crate) access_log: Option<AccessLogTarget>,
}

/// Where an access log is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AccessLogTarget {
    Stderr,
    File(PathBuf),
}

/// How a collector is reached, and what it is told.
#[derive(Clone, PartialEq)]
pub(crate) struct OtlpSettings {
    pub(crate) endpoint: Uri,
    pub(crate) protocol: OtlpProtocol,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) ca: Option<PathBuf>,
    pub(crate) sampling: Sampling,
    /// What is known of this process, its service's name among it.
    pub(crate) resource: Vec<(String, String)>,
    pub(crate) timeout: Duration,
    pub(crate) metrics_every: Duration,
}

/// How OTLP is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OtlpProtocol {
    Grpc,
    Http,
}

/// Which traces are recorded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sampling {
    ratio: f64,
    follows_callers: bool,
}

impl std::fmt::Debug for OtlpSettings {
    /// Leaves out what may be secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OtlpSettings").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

#[cfg(feature = "otlp")]
impl Sampling {
    pub(crate) fn sampler(self) -> Sampler {
        match self.follows_callers {
            true => Sampler::following_callers(self.ratio),
            false => Sampler::of_all(self.ratio),
        }
    }
}

impl TelemetrySettings {
    /// Reads both tables from the top of a file, and the environment, which counts for more. What is wrong is
    /// noted with the reader.
    pub(crate) fn read(top: &TableReader<'_>, dir: &Path) -> Self {
        Self { otlp: OtlpSettings::read(top, dir), access_log: access_log(top, dir) }
    }

    /// What is in force, in words, a line for each.
    pub(crate) fn describe(&self) -> Vec<String> {
        let otlp = self.otlp.as_ref().map(|otlp| {
            let protocol = match otlp.protocol {
                OtlpProtocol::Grpc => "gRPC",
                OtlpProtocol::Http => "HTTP",
            };
            let percent = otlp.sampling.ratio * 100.0;
            let callers = if otlp.sampling.follows_callers { ", and what callers record" } else { "" };
            let (endpoint, every) = (&otlp.endpoint, otlp.metrics_every);
            format!(
                "tells {endpoint} by OTLP over {protocol}: {percent} % of traces{callers}, metrics every {every:?}"
            )
        });
        let access_log = self.access_log.as_ref().map(|target| match target {
            AccessLogTarget::Stderr => "access log on standard error".to_owned(),
            AccessLogTarget::File(path) => format!("access log in {}", path.display()),
        });
        otlp.into_iter().chain(access_log).collect()
    }
}

fn access_log(top: &TableReader<'_>, dir: &Path) -> Option<AccessLogTarget> {
    if !top.has(ACCESS_LOG.name) {
        return None;
    }
    let table = top.table(ACCESS_LOG.name, ACCESS_LOG.settings);
    if !table.has("to") {
        let what = "`[access_log]` says nowhere to write to";
        let advice = "write `to = \"access.log\"`, or `to = \"stderr\"`, too";
        table.fault(top.place(ACCESS_LOG.name), format!("{what}; {advice}"));
    }
    match table.text("to")?.into_inner() {
        "stderr" => Some(AccessLogTarget::Stderr),
        "" => {
            let what = "`to` names no file; write the path of one, or \"stderr\", instead";
            table.fault(table.place("to"), what);
            None
        }
        path => Some(AccessLogTarget::File(dir.join(path))),
    }
}

impl OtlpSettings {
    fn read(top: &TableReader<'_>, dir: &Path) -> Option<Self> {
        let table = top.table(TELEMETRY.name, TELEMETRY.settings);
        let source = OtlpSource { table: &table, dir };
        let endpoint = source.said("OTEL_EXPORTER_OTLP_ENDPOINT", "endpoint", origin);
        let is_off = variable("OTEL_SDK_DISABLED").is_some_and(|said| said == "true");
        let is_wanted =
            top.has(TELEMETRY.name) || variable("OTEL_EXPORTER_OTLP_ENDPOINT").is_some();
        if is_off || !is_wanted {
            return None;
        }
        if cfg!(not(feature = "otlp")) {
            let what = "this program was built without OTLP";
            let advice = "build it with `--features otlp`, or leave this out";
            top.fault(top.place(TELEMETRY.name), format!("{what}; {advice}"));
        }
        let protocol = source.protocol();
        let usual = match protocol {
            OtlpProtocol::Grpc => Uri::from_static("http://127.0.0.1:4317"),
            OtlpProtocol::Http => Uri::from_static("http://127.0.0.1:4318"),
        };
        let millis = |variable, name, usual| source.millis(variable, name).unwrap_or(usual);
        Some(Self {
            endpoint: endpoint.unwrap_or(usual),
            protocol,
            headers: source.headers(),
            ca: source.ca(),
            sampling: source.sampling(),
            resource: source.resource(),
            timeout: millis("OTEL_EXPORTER_OTLP_TIMEOUT", "timeout", Duration::from_secs(10)),
            metrics_every: millis(
                "OTEL_METRIC_EXPORT_INTERVAL",
                "metrics_every",
                Duration::from_secs(60),
            ),
        })
    }
}

/// What was written, in the file and in the environment.
struct OtlpSource<'t> {
    table: &'t TableReader<'t>,
    dir: &'t Path,
}

impl OtlpSource<'_> {
    /// What a variable says, or else the file.
    fn said<T>(
        &self,
        name: &'static str,
        setting: &str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Option<T> {
        let written = self.table.parsed(setting, &parse);
        match variable(name) {
            Some(text) => self.understood(name, parse(&text)),
            None => written.map(At::into_inner),
        }
    }

    fn understood<T>(&self, name: &'static str, read: Result<T, String>) -> Option<T> {
        let refuse = |refusal| self.table.fault(FaultLocation::Flag(name), format!("it {refusal}"));
        read.map_err(refuse).ok()
    }

    fn protocol(&self) -> OtlpProtocol {
        let words = [("grpc", OtlpProtocol::Grpc), ("http", OtlpProtocol::Http)];
        let written = self.table.word("protocol", &words).map(At::into_inner);
        const NAME: &str = "OTEL_EXPORTER_OTLP_PROTOCOL";
        let said = variable(NAME).and_then(|said| {
            self.understood(
                NAME,
                match said.as_str() {
                    "grpc" => Ok(OtlpProtocol::Grpc),
                    "http/protobuf" => Ok(OtlpProtocol::Http),
                    _ => Err(format!(
                        "cannot be {said:?}; write \"grpc\" or \"http/protobuf\" instead"
                    )),
                },
            )
        });
        said.or(written).unwrap_or(OtlpProtocol::Http)
    }

    /// Milliseconds in a variable, or a duration in the file.
    fn millis(&self, name: &'static str, setting: &str) -> Option<Duration> {
        let written = self.table.duration(setting).map(At::into_inner);
        let said = variable(name).and_then(|said| {
            let millis = said.parse().ok().filter(|millis| *millis > 0);
            let refusal =
                || format!("cannot be {said:?}; write milliseconds, such as 10000, instead");
            self.understood(name, millis.map(Duration::from_millis).ok_or_else(refusal))
        });
        said.or(written)
    }

    fn headers(&self) -> Vec<(HeaderName, HeaderValue)> {
        let written = self.table.list("headers", header).map(At::into_inner);
        let from_file = self.table.text("headers_file").and_then(|path| {
            if self.table.has("headers") {
                let what = "`headers_file` says the same as `headers`; leave one of them out";
                self.table.fault(self.table.place("headers_file"), what);
            }
            let text = self.table.file("headers_file", &path, self.dir)?;
            let lines = text.lines().filter(|line| !line.trim().is_empty());
            let refuse = |refusal| {
                let what = format!("`headers_file` names a file with a line that {refusal}");
                self.table.fault(path.span(), what);
            };
            lines.map(header).collect::<Result<Vec<_>, _>>().map_err(refuse).ok()
        });
        const NAME: &str = "OTEL_EXPORTER_OTLP_HEADERS";
        let said = variable(NAME).and_then(|said| {
            let pairs = pairs(&said).map(|pair| header(&pair?));
            self.understood(NAME, pairs.collect::<Result<Vec<_>, _>>())
        });
        said.or(written).or(from_file).unwrap_or_default()
    }

    fn ca(&self) -> Option<PathBuf> {
        let written = self.table.text("ca").and_then(|path| {
            self.table.file("ca", &path, self.dir)?;
            Some(self.dir.join(path.get_ref()))
        });
        variable("OTEL_EXPORTER_OTLP_CERTIFICATE").map(PathBuf::from).or(written)
    }

    fn sampling(&self) -> Sampling {
        const NAME: &str = "OTEL_TRACES_SAMPLER";
        const ARGUMENT: &str = "OTEL_TRACES_SAMPLER_ARG";
        let written = self.table.ratio("sample").map(At::into_inner);
        let Some(said) = variable(NAME) else {
            return Sampling { ratio: written.unwrap_or(1.0), follows_callers: true };
        };
        let argument = variable(ARGUMENT).and_then(|said| {
            let ratio = said.parse().ok().filter(|ratio| (0.0..=1.0).contains(ratio));
            let refusal = || format!("cannot be {said:?}; write a number from 0 to 1 instead");
            self.understood(ARGUMENT, ratio.ok_or_else(refusal))
        });
        let (follows_callers, named) = match said.strip_prefix("parentbased_") {
            Some(named) => (true, named),
            None => (false, said.as_str()),
        };
        let ratio = match named {
            "always_on" => Ok(1.0),
            "always_off" => Ok(0.0),
            "traceidratio" => Ok(argument.unwrap_or(1.0)),
            _ => Err(format!(
                "cannot be {said:?}; write \"always_on\", \"always_off\" or \"traceidratio\", or one of them \
                 after \"parentbased_\", instead"
            )),
        };
        Sampling { ratio: self.understood(NAME, ratio).unwrap_or(1.0), follows_callers }
    }

    fn resource(&self) -> Vec<(String, String)> {
        const NAME: &str = "OTEL_RESOURCE_ATTRIBUTES";
        let written = self.table.text("service").map(|name| name.into_inner().to_owned());
        let said = variable(NAME).and_then(|said| {
            let read = pairs(&said).map(|pair| {
                let pair = pair?;
                let (name, value) = pair.split_once('=').ok_or_else(|| NO_PAIR.to_owned())?;
                Ok((name.trim().to_owned(), value.trim().to_owned()))
            });
            self.understood(NAME, read.collect::<Result<Vec<_>, String>>())
        });
        let mut resource = said.unwrap_or_default();
        let is_named = |(name, _): &(String, String)| name == "service.name";
        let among = resource.iter().position(is_named).map(|at| resource.remove(at).1);
        let service = variable("OTEL_SERVICE_NAME").or(among).or(written);
        resource
            .insert(0, ("service.name".to_owned(), service.unwrap_or_else(|| "hapax".to_owned())));
        resource
    }
}

const NO_PAIR: &str = "is no list of pairs; write \"name=value,name=value\" instead";

/// The pairs of a list that is spelled as baggage is, without what is only spelling.
fn pairs(list: &str) -> impl Iterator<Item = Result<String, String>> {
    let pairs = list.split(',').map(str::trim).filter(|pair| !pair.is_empty());
    pairs.map(|pair| {
        let decoded = percent_decode_str(pair).decode_utf8();
        decoded.map(|pair| pair.into_owned()).map_err(|_| NO_PAIR.to_owned())
    })
}

/// A header as `name=value`. What it holds is not repeated: it may be secret.
fn header(pair: &str) -> Result<(HeaderName, HeaderValue), String> {
    let refusal = || "is no header; write \"name=value\" instead".to_owned();
    let (name, value) = pair.split_once('=').ok_or_else(refusal)?;
    let name = HeaderName::try_from(name.trim()).map_err(|_| refusal())?;
    let mut value = HeaderValue::try_from(value.trim()).map_err(|_| refusal())?;
    value.set_sensitive(true);
    Ok((name, value))
}

/// What the environment says, unless that is nothing.
fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|said| !said.is_empty())
}
