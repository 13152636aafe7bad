//! Files that a configuration names.

use std::{fs, path::Path};

use hapax_gateway::{
    Config,
    config::{ConfigError, ConfigSource},
};
use tempfile::TempDir;

fn load(dir: &Path, text: &str) -> Result<Config, ConfigError> {
    let file = dir.join("gateway.toml");
    fs::write(&file, text).unwrap();
    Config::load(&ConfigSource { file: Some(file), ..ConfigSource::default() })
}

#[test]
fn paths_are_relative_to_the_file_that_names_them() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("cert.pem"), "-----BEGIN CERTIFICATE-----").unwrap();
    fs::write(dir.path().join("key.pem"), "-----BEGIN PRIVATE KEY-----").unwrap();
    fs::write(dir.path().join("token"), "abc\n").unwrap();
    let text = "store = \"sqlite:keys.db\"\nadmin = \"0.0.0.0:9000\"\nadmin_token_file = \"token\"\n\
                [upstream]\nurl = \"https://a\"\nca = \"cert.pem\"\n\
                [tls]\ncertificate = \"cert.pem\"\nkey = \"key.pem\"";
    let config = load(dir.path(), text).unwrap();
    assert_eq!(config.store, format!("sqlite:{}", dir.path().join("keys.db").display()));
    assert_eq!(config.tls.unwrap().identity.certificate, dir.path().join("cert.pem"));
    assert_eq!(config.upstream.ca, Some(dir.path().join("cert.pem")));
    assert_eq!(config.admin_token.as_deref(), Some("abc"));
}

#[test]
fn a_file_that_holds_something_else_is_refused() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("cert.pem"), "-----BEGIN CERTIFICATE-----").unwrap();
    for text in [
        "[upstream]\nurl = \"http://a\"\n[tls]\ncertificate = \"cert.pem\"\nkey = \"cert.pem\"",
        "[upstream]\nurl = \"http://a\"\nca = \".\"",
        "[upstream]\nurl = \"http://a\"\n[tenant]\nfrom = \"jwt\"\npublic_key_file = \"cert.pem\"",
        "[upstream]\nurl = \"http://a\"\n[tenant]\nfrom = \"jwt\"\nsecret_file = \"/dev/zero\"",
    ] {
        let error = load(dir.path(), text).unwrap_err();
        assert!(matches!(error, ConfigError::Refused { .. }), "{error}");
    }
}

#[test]
fn a_private_key_is_not_taken_for_a_public_one() {
    let key = format!("{}/tests/it/config/keys/p256.pem", env!("CARGO_MANIFEST_DIR"));
    let text = "[upstream]\nurl = \"http://a\"\n[tenant]\nfrom = \"jwt\"\npublic_key_file = ";
    let error = load(TempDir::new().unwrap().path(), &format!("{text}{key:?}")).unwrap_err();
    let told = "this is a private key; the gateway needs the public one alone";
    assert!(error.to_string().contains(told), "{error}");
}

#[test]
fn a_configuration_that_cannot_be_read_says_so() {
    let dir = TempDir::new().unwrap();
    let load_file = |name: &str| {
        Config::load(&ConfigSource { file: Some(dir.path().join(name)), ..ConfigSource::default() })
            .unwrap_err()
    };
    assert!(matches!(load_file("missing.toml"), ConfigError::Unreadable { .. }));
    fs::write(dir.path().join("large.toml"), vec![b'#'; (1 << 20) + 1]).unwrap();
    assert!(matches!(load_file("large.toml"), ConfigError::TooLarge { .. }));
    fs::write(dir.path().join("latin.toml"), b"# \xff").unwrap();
    assert!(matches!(load_file("latin.toml"), ConfigError::Unreadable { .. }));
}
