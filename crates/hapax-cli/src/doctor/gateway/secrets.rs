//! Whether secrets can be read by others: those in the file itself, and the files it names.

use std::path::{Path, PathBuf};

use toml::Value;

use super::Diagnosis;

/// A secret as the file has it.
#[derive(Debug, PartialEq, Eq)]
enum SecretSetting {
    /// In a file of its own, under the setting of this name.
    File(String, PathBuf),
    /// In the configuration itself, under the setting of this name.
    Here(String),
}

/// Settings that hold a secret themselves.
const SECRETS: &[&str] = &["admin_token", "admin_read_token", "secret", "password"];
/// Settings that name a file which is no secret.
const PUBLIC_FILES: &[&str] = &["public_key_file"];

pub(super) fn examine(file: &Path, written: &toml::Table) -> Diagnosis {
    let mut secrets = Vec::new();
    collect(written, "", file.parent().unwrap_or(file), &mut secrets);
    let open = secrets.iter().filter_map(|secret| {
        let (name, path) = match secret {
            SecretSetting::File(name, path) => (name, path.as_path()),
            SecretSetting::Here(name) => (name, file),
        };
        is_open(path).then(|| (name.as_str(), path.display().to_string()))
    });
    judge(secrets.len(), &open.collect::<Vec<_>>())
}

fn judge(count: usize, open: &[(&str, String)]) -> Diagnosis {
    const NAME: &str = "secrets";
    let Some((_, path)) = open.first() else {
        return Diagnosis::new(NAME, format!("{count} in files that others cannot read"));
    };
    let words = open.iter().map(|(name, path)| format!("{name} in {path}")).collect::<Vec<_>>();
    Diagnosis::new(NAME, format!("every user of this machine can read {}", words.join(", ")))
        .warning(
            "whoever reads it can act as the gateway or its operators",
            format!("chmod 600 {path}"),
        )
}

/// Every setting that is a secret, or names the file of one, in this table and those in it.
fn collect(table: &toml::Table, path: &str, directory: &Path, found: &mut Vec<SecretSetting>) {
    for (name, value) in table {
        let full = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        match value {
            Value::Table(inner) => collect(inner, &full, directory, found),
            Value::Array(list) => {
                let tables = list.iter().filter_map(Value::as_table);
                tables.for_each(|inner| collect(inner, &full, directory, found));
            }
            Value::String(text) if names_a_secret_file(path, name) => {
                found.push(SecretSetting::File(full, directory.join(text)));
            }
            Value::String(text) if SECRETS.contains(&name.as_str()) || has_password(text) => {
                found.push(SecretSetting::Here(full));
            }
            Value::String(_)
            | Value::Integer(_)
            | Value::Float(_)
            | Value::Boolean(_)
            | Value::Datetime(_) => {}
        }
    }
}

fn names_a_secret_file(table: &str, name: &str) -> bool {
    let is_key = name == "key" && (table == "tls" || table == "upstream");
    is_key || (name.ends_with("_file") && !PUBLIC_FILES.contains(&name))
}

/// Whether an address has a password before its host.
fn has_password(text: &str) -> bool {
    let authority = text.split_once("://").map(|(_, rest)| rest.split(['/', '?']).next());
    let user = authority.flatten().and_then(|authority| authority.rsplit_once('@'));
    user.is_some_and(|(user, _)| user.contains(':'))
}

#[cfg(unix)]
fn is_open(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;

    path.metadata().is_ok_and(|found| found.permissions().mode() & 0o007 != 0)
}

#[cfg(not(unix))]
fn is_open(_: &Path) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_found_wherever_they_stand() {
        let written: toml::Table = r#"
            admin_token_file = "admin.token"
            store = "postgres://shop:hush@db/shop"
            listen = "127.0.0.1:8080"
            [tls]
            certificate = "certificate.pem"
            key = "/etc/key.pem"
            [tenant]
            from = "jwt"
            public_key_file = "issuer.pem"
            [[route]]
            match = "POST /pay"
            tenant = { from = "jwt", secret = "0123456789" }
            [[relay]]
            name = "tape"
            to = "amqp://guest:guest@broker/shop"
        "#
        .parse()
        .unwrap();
        let mut found = Vec::new();
        collect(&written, "", Path::new("/etc/hapax"), &mut found);
        let here = |name: &str| SecretSetting::Here(name.to_owned());
        let file = |name: &str, path: &str| SecretSetting::File(name.to_owned(), path.into());
        for secret in [
            file("admin_token_file", "/etc/hapax/admin.token"),
            file("tls.key", "/etc/key.pem"),
            here("store"),
            here("route.tenant.secret"),
            here("relay.to"),
        ] {
            assert!(found.contains(&secret), "no {secret:?} in {found:?}");
        }
        assert_eq!(found.len(), 5, "{found:?}");
    }
}
