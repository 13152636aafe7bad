//! What an address says, name by name, before anybody asks what it means.

use std::{collections::BTreeMap, fmt};

use percent_encoding::percent_decode_str;

use super::error::AddressError;

/// What can be said of a connection, and the variable of the environment that says it otherwise.
pub(super) const KNOWN: &[(&str, Option<&str>)] = &[
    ("application_name", Some("PGAPPNAME")),
    ("channel_binding", Some("PGCHANNELBINDING")),
    ("connect_timeout", Some("PGCONNECT_TIMEOUT")),
    ("dbname", Some("PGDATABASE")),
    ("fallback_application_name", None),
    (PASSWORD_COMMAND, None),
    (PLAINTEXT_PASSWORD, None),
    ("host", Some("PGHOST")),
    ("hostaddr", Some("PGHOSTADDR")),
    ("keepalives", None),
    ("keepalives_idle", None),
    ("keepalives_interval", None),
    ("keepalives_count", None),
    ("load_balance_hosts", Some("PGLOADBALANCEHOSTS")),
    ("options", Some("PGOPTIONS")),
    ("passfile", Some("PGPASSFILE")),
    ("password", Some("PGPASSWORD")),
    ("port", Some("PGPORT")),
    ("service", Some("PGSERVICE")),
    ("servicefile", Some("PGSERVICEFILE")),
    ("sslcert", Some("PGSSLCERT")),
    ("sslkey", Some("PGSSLKEY")),
    ("sslmode", Some("PGSSLMODE")),
    ("sslnegotiation", Some("PGSSLNEGOTIATION")),
    ("sslrootcert", Some("PGSSLROOTCERT")),
    ("target_session_attrs", Some("PGTARGETSESSIONATTRS")),
    ("tcp_user_timeout", None),
    ("user", Some("PGUSER")),
];

/// A command that prints the password; ours alone, as the prefix says.
pub(super) const PASSWORD_COMMAND: &str = "hapax_password_command";
/// Says that a password may go where others can read it; ours alone.
pub(super) const PLAINTEXT_PASSWORD: &str = "hapax_plaintext_password";

/// What libpq knows and this does not: their variables, and the values that ask for nothing.
///
/// Some of them would make a connection safer, so they are refused rather than passed over.
const UNSUPPORTED: &[(&str, Option<&str>, &[&str])] = &[
    ("client_encoding", Some("PGCLIENTENCODING"), &["UTF8", "utf8", "UTF-8", "auto"]),
    ("gssdelegation", Some("PGGSSDELEGATION"), &["0"]),
    ("gssencmode", Some("PGGSSENCMODE"), &["disable", "prefer"]),
    ("gsslib", Some("PGGSSLIB"), &[]),
    ("krbsrvname", Some("PGKRBSRVNAME"), &["postgres"]),
    ("replication", None, &["false", "off", "no", "0"]),
    ("require_auth", Some("PGREQUIREAUTH"), &[]),
    ("requirepeer", Some("PGREQUIREPEER"), &[]),
    ("ssl_max_protocol_version", Some("PGSSLMAXPROTOCOLVERSION"), &["TLSv1.3"]),
    ("ssl_min_protocol_version", Some("PGSSLMINPROTOCOLVERSION"), &["TLSv1", "TLSv1.1", "TLSv1.2"]),
    ("sslcertmode", Some("PGSSLCERTMODE"), &["allow"]),
    ("sslcompression", Some("PGSSLCOMPRESSION"), &["0"]),
    ("sslcrl", Some("PGSSLCRL"), &[]),
    ("sslcrldir", Some("PGSSLCRLDIR"), &[]),
    ("sslpassword", None, &[]),
    ("sslsni", Some("PGSSLSNI"), &["1"]),
];

/// Parameters by name. What is empty is as good as absent.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Parameters(BTreeMap<String, String>);

impl Parameters {
    /// Reads `postgres://user@host:port/database?name=value` or `name=value name='va lue'`.
    pub(super) fn parse(text: &str) -> Result<Self, AddressError> {
        let url =
            ["postgres://", "postgresql://"].iter().find_map(|start| text.strip_prefix(start));
        match url {
            Some(rest) => of_url(rest),
            None => of_words(text),
        }
    }

    /// What the variables of the environment say; `variable` tells their values.
    pub(super) fn of_environment(
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, AddressError> {
        let mut found = Self::default();
        let unsupported = UNSUPPORTED.iter().map(|(name, variable, _)| (*name, *variable));
        for (name, said_by) in KNOWN.iter().copied().chain(unsupported) {
            if let Some(value) = said_by.and_then(variable) {
                found.set(name, value)?;
            }
        }
        Ok(found)
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The same, with what others say where this says nothing.
    pub(super) fn or(mut self, others: &Self) -> Self {
        for (name, value) in &others.0 {
            self.0.entry(name.clone()).or_insert_with(|| value.clone());
        }
        self
    }

    /// Takes a parameter, unless nobody would heed it.
    pub(super) fn set(&mut self, name: &str, value: String) -> Result<(), AddressError> {
        if value.is_empty() {
            return Ok(());
        }
        // As drivers of Java write it.
        let (name, value) = match (name, value.as_str()) {
            ("ssl", "true") => ("sslmode", "require".to_owned()),
            (name, _) => (name, value),
        };
        if KNOWN.iter().any(|(known, _)| *known == name) {
            self.0.insert(name.to_owned(), value);
            return Ok(());
        }
        match UNSUPPORTED.iter().find(|(unsupported, ..)| *unsupported == name) {
            Some((_, _, asking_nothing)) if asking_nothing.contains(&value.as_str()) => Ok(()),
            Some((name, ..)) => Err(AddressError::Unsupported { name }),
            None => Err(AddressError::Unknown { name: name.to_owned() }),
        }
    }
}

impl fmt::Debug for Parameters {
    /// Names alone: a value may be a password, or a command that holds one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

fn of_url(rest: &str) -> Result<Parameters, AddressError> {
    let mut found = Parameters::default();
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (place, dbname) = place.split_once('/').unwrap_or((place, ""));
    let (who, hosts) = place.rsplit_once('@').unwrap_or(("", place));
    let (user, password) = who.split_once(':').unwrap_or((who, ""));
    for (name, value) in [("user", user), ("password", password), ("dbname", dbname)] {
        found.set(name, decoded(value)?)?;
    }
    let (mut names, mut ports) = (Vec::new(), Vec::new());
    for host in hosts.split(',') {
        let (name, port) = host_and_port(host)?;
        names.push(decoded(name)?);
        ports.push(decoded(port)?);
    }
    for (name, values) in [("host", names), ("port", ports)] {
        if values.iter().any(|value| !value.is_empty()) {
            found.set(name, values.join(","))?;
        }
    }
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').ok_or(AddressError::Form)?;
        found.set(&decoded(name)?, decoded(value)?)?;
    }
    Ok(found)
}

/// Tells a port from a host, whose address may have colons of its own, in brackets.
fn host_and_port(text: &str) -> Result<(&str, &str), AddressError> {
    if let Some(inner) = text.strip_prefix('[') {
        let (host, rest) = inner.split_once(']').ok_or(AddressError::Form)?;
        return match rest.strip_prefix(':') {
            Some(port) => Ok((host, port)),
            None if rest.is_empty() => Ok((host, "")),
            None => Err(AddressError::Form),
        };
    }
    Ok(text.rsplit_once(':').unwrap_or((text, "")))
}

fn decoded(text: &str) -> Result<String, AddressError> {
    let decoded = percent_decode_str(text).decode_utf8().map_err(|_| AddressError::Form)?;
    if decoded.contains('\0') { Err(AddressError::Form) } else { Ok(decoded.into_owned()) }
}

fn of_words(text: &str) -> Result<Parameters, AddressError> {
    let mut found = Parameters::default();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (name, after) = rest.split_once('=').ok_or(AddressError::Form)?;
        let (value, after) = word(after.trim_start())?;
        found.set(name.trim_end(), value)?;
        rest = after.trim_start();
    }
    Ok(found)
}

/// A value, quoted or up to the next space, and what follows it.
fn word(text: &str) -> Result<(String, &str), AddressError> {
    let (quoted, text) = text.strip_prefix('\'').map_or((false, text), |rest| (true, rest));
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            '\'' if quoted => return Ok((value, &text[at + 1..])),
            space if space.is_whitespace() && !quoted => return Ok((value, &text[at..])),
            other => value.push(other),
        }
    }
    if quoted { Err(AddressError::Form) } else { Ok((value, "")) }
}
