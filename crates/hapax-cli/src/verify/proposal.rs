//! A file to start from, made of what an OpenAPI document says.

use std::{
    fs::{self, OpenOptions},
    io::{self, ErrorKind, Write},
    path::Path,
};

use hapax_examine::{ApiProposal, ProposedRoute};
use toml::Value;

use super::error::VerifyError;
use crate::{
    args::VerifyArgs,
    shell::quoted,
    table::{columns, harmless},
};

/// Shows the routes that change something, and writes them down if a file is named.
pub(super) fn propose(args: &VerifyArgs, document: &Path) -> Result<(), VerifyError> {
    let text = fs::read_to_string(document)
        .map_err(|source| VerifyError::Read { path: document.to_owned(), source })?;
    let mut proposal = ApiProposal::read(&text)
        .map_err(|source| VerifyError::OpenApi { path: document.to_owned(), source })?;
    match args.target.as_slice() {
        [] => {}
        [url] if url.contains("://") => proposal.url = Some(url.trim_end_matches('/').to_owned()),
        other => return Err(VerifyError::Target { given: other.join(" ") }),
    }
    let mut out = io::stdout().lock();
    show(&mut out, &proposal)?;
    let Some(path) = &args.source.write else {
        writeln!(out, "Write them down with --write FILE.")?;
        return Ok(());
    };
    write(path, &file(&proposal))?;
    writeln!(out, "Look through {}, and then:", path.display())?;
    let shown = quoted(&path.display().to_string());
    for route in &proposal.routes {
        let title = quoted(&harmless(&title(route)));
        writeln!(out, "  hapax verify --config {shown} --route {title}")?;
    }
    Ok(())
}

fn show(out: &mut impl Write, proposal: &ApiProposal) -> io::Result<()> {
    let mut rows = vec![["ROUTE", "KEYS IN", "COUNTED BY"].map(str::to_owned)];
    rows.extend(proposal.routes.iter().map(|route| {
        let key = route.key_header.as_deref().unwrap_or("not said");
        let count = route.count.as_deref().unwrap_or("nothing that was found");
        [title(route), key.to_owned(), count.to_owned()].map(|cell| harmless(&cell))
    }));
    columns(out, &rows)
}

fn title(route: &ProposedRoute) -> String {
    format!("{} {}", route.method, route.path)
}

fn write(path: &Path, text: &str) -> Result<(), VerifyError> {
    let made = OpenOptions::new().write(true).create_new(true).open(path);
    made.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|source| {
        let path = path.to_owned();
        if source.kind() == ErrorKind::AlreadyExists {
            VerifyError::Exists { path }
        } else {
            VerifyError::Write { path, source }
        }
    })
}

/// Settings, and comments where somebody has to look.
fn file(proposal: &ApiProposal) -> String {
    let mut text = String::from(
        "# For `hapax verify --config`: every setting is an option of it, with _ for -.\n",
    );
    match &proposal.url {
        Some(url) => text.push_str(&setting("url", url)),
        None => {
            text.push_str("# The document does not say where the API is.\n");
            text.push_str(&setting("url", "http://127.0.0.1:8080"));
        }
    }
    if proposal.bearer {
        text.push_str("# A token of the environment.\n");
        text.push_str("credential = [\"Authorization: Bearer env:TOKEN\"]\n");
    }
    for route in &proposal.routes {
        text.push_str(&route_table(route));
    }
    text
}

fn route_table(route: &ProposedRoute) -> String {
    let mut text = String::from("\n[[route]]\n");
    if matches!(route.method.as_str(), "PUT" | "DELETE") {
        text.push_str("# Idempotent by itself, as a rule: then there is nothing to examine.\n");
    }
    text.push_str(&setting("method", &route.method));
    if route.path.contains('{') {
        text.push_str("# Write the name of something that is there for what stands in braces.\n");
    }
    text.push_str(&setting("path", &route.path));
    match &route.body {
        Some(body) => {
            let body = body.to_string();
            if !body.contains("{marker}") {
                text.push_str(
                    "# Write {marker} where the API keeps what clients call an operation.\n",
                );
            }
            text.push_str(&setting("json", &body));
        }
        None => text.push_str("# It takes no JSON, as far as the document says.\n"),
    }
    if let Some(key_header) = &route.key_header {
        text.push_str(&setting("key_header", key_header));
    }
    match &route.count {
        Some(count) => text.push_str(&setting("count", count)),
        None => {
            text.push_str("# Say how effects are counted, or they stay unproven:\n");
            text.push_str("# count = \"GET /things?ref={marker} /items/length\"\n");
        }
    }
    if let Some(id) = &route.id {
        text.push_str(&setting("id", id));
    }
    text
}

fn setting(name: &str, value: &str) -> String {
    format!("{name} = {}\n", Value::from(value))
}
