//! Files of gateways, well and not.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
};

use tempfile::TempDir;

use super::{Visit, lines};
use crate::{hapax, text};

/// A gateway's file beside a store that is there.
fn written(file: &str) -> (TempDir, String) {
    let directory = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", directory.path().join("hapax.db").display());
    assert!(hapax(&["migrate", "--store", &store]).status.success());
    let path = directory.path().join("gateway.toml");
    fs::write(&path, file).unwrap();
    fs::write(directory.path().join("admin.token"), "0123456789abcdef0123456789abcdef\n").unwrap();
    for name in ["gateway.toml", "admin.token"] {
        fs::set_permissions(directory.path().join(name), Permissions::from_mode(0o600)).unwrap();
    }
    let path = path.to_str().unwrap().to_owned();
    (directory, path)
}

const WELL: &str = r#"
store = "sqlite:hapax.db"
admin_token_file = "admin.token"
[upstream]
url = "http://127.0.0.1:3000"
[tenant]
from = "single"
[defaults]
retention = "9d"
"#;

const NOT_WELL: &str = r#"
store = "sqlite:hapax.db"
listen = "0.0.0.0:8080"
admin = "0.0.0.0:8081"
admin_token = "guess"
drain = "5s"
[upstream]
url = "http://127.0.0.1:3000"
[[route]]
match = "POST /pay"
retention = "24h"
store_down = "run-unprotected"
"#;

#[test]
fn a_file_that_somebody_thought_about_is_well_and_its_store_is_looked_at_too() {
    let (_directory, path) = written(WELL);
    let visit = Visit::of(&["--config", &path, "--client-retries-for", "72h"]);
    visit.check_words();
    let of_the_machine = ["file system", "sync", "room"];
    assert!(visit.troubles(&of_the_machine).is_empty(), "{:#}", visit.report);
    assert_eq!(visit.found("tenant"), "one tenant for everybody");
    assert_eq!(visit.found("journal mode"), "wal");
}

#[test]
fn a_file_that_nobody_thought_about_is_told_line_by_line() {
    let (directory, path) = written(NOT_WELL);
    fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    let visit = Visit::of(&["--config", &path, "--client-retries-for", "72h"]);
    visit.check_words();
    for (check, level) in [
        ("listen", "note"),
        ("admin", "warning"),
        ("admin token", "warning"),
        ("tenant", "warning"),
        ("retention of routes", "danger"),
        ("drain", "warning"),
        ("store_down", "warning"),
        ("secrets", "warning"),
    ] {
        assert_eq!(visit.level(check), level, "{check}: {}", visit.found(check));
    }
    assert_eq!(visit.code, 2);
    let off = NOT_WELL.replace("\"0.0.0.0:8081\"", "\"off\"");
    fs::write(&path, off).unwrap();
    let visit = Visit::of(&["--config", &path]);
    assert_eq!((visit.level("admin"), visit.level("recovery")), ("note", "warning"));
    drop(directory);
}

#[test]
fn a_file_that_cannot_be_used_is_told_with_its_place() {
    let (_directory, path) =
        written("retension = \"24h\"\n[upstream]\nurl = \"http://127.0.0.1:3000\"\n");
    let output = lines(&["--config", &path]);
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("gateway.toml:1:1"), "{}", text(&output.stderr));
}
