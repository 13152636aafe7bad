//! Where records are kept, as a file or a flag says it.

use std::{env, path::Path};

use hapax_core::store::StoreScheme;

use super::{files, reader::TableReader};

/// The settings of which one names the store.
pub(crate) const STORE_SETTINGS: [&str; 3] = ["store", "store_file", "store_env"];

/// The store that one of the settings `store`, `store_file` and `store_env` names, if there is one; a
/// file's path is relative to `dir`.
pub fn store_of(top: &TableReader<'_>, dir: &Path) -> Option<String> {
    let written = top.parsed("store", address).map(|store| beside(store.get_ref(), dir));
    let in_file = top.parsed("store_file", |path| in_file(path, dir));
    let in_variable = top.parsed("store_env", in_variable);
    let named: Vec<_> = STORE_SETTINGS.into_iter().filter(|name| top.has(name)).collect();
    if let [first, second, ..] = named.as_slice() {
        let what = format!("`{first}` says already where records are kept; write one of them");
        top.fault(top.place(second), what);
    }
    let elsewhere = in_file.or(in_variable).map(|store| store.get_ref().clone());
    written.or(elsewhere)
}

/// The address of a store, as far as it can be told without opening it.
pub(crate) fn address(text: &str) -> Result<String, String> {
    // The refusal does not repeat the text: it may hold a password.
    let advice = "write \"sqlite:PATH\", \"postgres://…\" or \"memory:\" instead";
    let refusal = || format!("is no address of a store; {advice}");
    StoreScheme::of(text).map(|_| text.to_owned()).ok_or_else(refusal)
}

/// An address as people may be shown it: without a password, wherever it may be.
pub(crate) fn shown(store: &str) -> String {
    match StoreScheme::of(store) {
        Some(StoreScheme::InFile { path }) => format!("the store that {path} names"),
        Some(StoreScheme::Postgres) => shown_postgres(store),
        Some(StoreScheme::Memory | StoreScheme::Sqlite { .. }) | None => store.to_owned(),
    }
}

/// Parameters that hold no secret, and that somebody who checks a file wants to see.
const SHOWN: &[&str] = &[
    "application_name",
    "channel_binding",
    "connect_timeout",
    "passfile",
    "service",
    "sslcert",
    "sslmode",
    "sslrootcert",
    "target_session_attrs",
];

fn shown_postgres(store: &str) -> String {
    let Some((scheme, rest)) = store.split_once("://") else {
        return "PostgreSQL, by parameters that are not shown".to_owned();
    };
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    // Somebody has not encoded a password: nobody can tell where it ends.
    if query.contains('@') {
        return format!("{scheme}://…");
    }
    let place =
        place.rsplit_once('@').map_or_else(|| place.to_owned(), |(_, at)| format!("…@{at}"));
    let pairs = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let name = pair.split_once('=').map_or("", |(name, _)| name);
        if SHOWN.contains(&name) { pair } else { "…" }
    });
    let pairs = pairs.collect::<Vec<_>>().join("&");
    let mark = if pairs.is_empty() { "" } else { "?" };
    format!("{scheme}://{place}{mark}{pairs}")
}

/// The same store; a file's path is relative to the file that names it.
fn beside(store: &str, dir: &Path) -> String {
    match StoreScheme::of(store) {
        Some(StoreScheme::Sqlite { path }) if !dir.as_os_str().is_empty() => {
            format!("sqlite:{}", files::resolved(path, dir).display())
        }
        Some(StoreScheme::InFile { path }) if !dir.as_os_str().is_empty() => {
            format!("address-file:{}", files::resolved(path, dir).display())
        }
        Some(
            StoreScheme::Sqlite { .. }
            | StoreScheme::Memory
            | StoreScheme::Postgres
            | StoreScheme::InFile { .. },
        )
        | None => store.to_owned(),
    }
}

fn in_file(path: &str, dir: &Path) -> Result<String, String> {
    let path = files::resolved(path, dir);
    if path.is_file() {
        return Ok(format!("address-file:{}", path.display()));
    }
    let what = format!("names {}, which is not a file", path.display());
    Err(format!("{what}; write the path of a file that holds the address instead"))
}

fn in_variable(name: &str) -> Result<String, String> {
    let advice = "set it to \"sqlite:PATH\" or \"postgres://…\"";
    let value =
        env::var(name).map_err(|_| format!("names {name:?}, which is not set; {advice}"))?;
    let refusal = |_| format!("names {name:?}, which holds no address of a store; {advice}");
    address(value.trim()).map_err(refusal)
}
