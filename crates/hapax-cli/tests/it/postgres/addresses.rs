//! Addresses by the environment, by files, and by settings of a gateway.

use std::fs;

use super::{Fortress, OWNER, hapax, said};
use crate::text;

#[tokio::test(flavor = "multi_thread")]
async fn the_environment_of_psql_is_heeded() {
    let fortress = Fortress::shared();
    fortress.database("surroundings").await;
    let (port, authority) = (fortress.port(), fortress.authority());
    let (owner, password) = OWNER;
    let home = tempfile::tempdir().unwrap();
    let place = [
        ("PGHOST", "localhost"),
        ("PGPORT", &port),
        ("PGUSER", owner),
        ("PGDATABASE", "surroundings"),
        ("PGSSLMODE", "verify-full"),
        ("PGSSLROOTCERT", &authority),
    ];
    let passfile =
        fortress.write("env.pgpass", &format!("localhost:{port}:*:{owner}:{password}\n"));
    let passfile = passfile.display().to_string();
    let home_path = home.path().display().to_string();
    for (name, value) in [("PGPASSWORD", password), ("PGPASSFILE", &passfile)] {
        let said =
            said(&[&place[..], &[(name, value)]].concat(), &["migrate", "--store", "postgres://"]);
        assert!(said.contains("database surroundings at localhost"), "{name}: {said}");
    }
    fs::copy(&passfile, home.path().join(".pgpass")).unwrap();
    said(&[&place[..], &[("HOME", &home_path)]].concat(), &["migrate", "--store", "postgres://"]);
    let told = text(&hapax(&place, &["migrate", "--store", "postgres://"]).stderr);
    assert!(told.contains("wants a password, and there is none"), "{told}");

    let service = format!(
        "[surroundings]\nhost=localhost\nport={port}\nuser={owner}\npassword={password}\n\
         dbname=surroundings\nsslmode=verify-full\nsslrootcert={authority}\n"
    );
    fs::write(home.path().join(".pg_service.conf"), &service).unwrap();
    let named = [("HOME", home_path.as_str()), ("PGSERVICE", "surroundings")];
    said(&named, &["migrate", "--store", "postgres://"]);
    said(&named[..1], &["migrate", "--store", "service=surroundings"]);
    let elsewhere = home.path().join("services").display().to_string();
    fs::rename(home.path().join(".pg_service.conf"), &elsewhere).unwrap();
    let named = [("PGSERVICEFILE", elsewhere.as_str()), ("PGSERVICE", "surroundings")];
    said(&named, &["migrate", "--store", "postgres://"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_the_machine_trusts_may_vouch_for_the_server() {
    let fortress = Fortress::shared();
    fortress.database("trusted").await;
    let authority = fortress.authority();
    let ours = format!("sslrootcert={authority}");
    let store = fortress.url("trusted").replace(&ours, "sslrootcert=system");
    said(&[("SSL_CERT_FILE", &authority)], &["migrate", "--store", &store]);
    let stranger = hapax_services::certificates::Authority::new("a stranger").unwrap();
    let stranger = fortress.write("stranger.crt", stranger.certificate()).display().to_string();
    let output = hapax(&[("SSL_CERT_FILE", &stranger)], &["migrate", "--store", &store]);
    let told = text(&output.stderr);
    assert!(told.contains("have sslrootcert name the CA that signed it"), "{told}");
    let weaker = store.replace("verify-full", "require");
    let told = text(&hapax(&[], &["migrate", "--store", &weaker]).stderr);
    assert!(told.contains("write sslmode=verify-full with it"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_may_be_in_a_file_for_every_command() {
    let fortress = Fortress::shared();
    fortress.database("in_a_file").await;
    let file = fortress.write("address", &format!("{}\n", fortress.url("in_a_file")));
    let file = file.display().to_string();
    said(&[], &["migrate", "--store-file", &file]);
    said(&[], &["keys", "list", "--store-file", &file]);
    said(&[], &["outbox", "list", "--store-file", &file]);
    said(&[], &["quarantine", "show", "--store-file", &file]);
    said(&[], &["encryption", "show", "--store-file", &file]);
    let told = text(&hapax(&[], &["doctor", "--store-file", &file]).stdout);
    assert!(told.contains("this server takes writes"), "{told}");
    let told = text(
        &hapax(
            &[],
            &["audit", "--store-file", &file, "--destination", "x", "--at", "file:/dev/null"],
        )
        .stderr,
    );
    assert!(told.contains("there is no destination"), "{told}");
    let told = text(&hapax(&[], &["keys", "list", "--store-file", "/no/such/file"]).stderr);
    assert!(told.contains("the address in /no/such/file cannot be read"), "{told}");
    let both = ["keys", "list", "--store-file", &file, "--store", "sqlite:x.db"];
    let told = text(&hapax(&[], &both).stderr);
    assert!(told.contains("cannot be used with"), "{told}");
    let empty = fortress.write("no-address", "nothing\n").display().to_string();
    let told = text(&hapax(&[], &["keys", "list", "--store-file", &empty]).stderr);
    assert!(told.contains("holds no address of a store"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateways_store_is_named_once_in_one_of_three_ways() {
    let fortress = Fortress::shared();
    let url = fortress.url("anything");
    fortress.write("gateway.address", &url);
    let upstream = "[upstream]\nurl = \"http://127.0.0.1:3000\"\n";
    let checked = |settings: &str| {
        let file = fortress.write("gateway.toml", &format!("{settings}\n{upstream}"));
        let file = file.display().to_string();
        let output = hapax(&[("SHOP_STORE", &url), ("EMPTY", "x")], &["check-config", &file]);
        (output.status.success(), text(&output.stdout) + &text(&output.stderr))
    };
    let authority = fortress.authority();
    let shown = [
        (
            format!("store = \"{url}\""),
            format!(
                "/anything?sslmode=verify-full&sslrootcert={authority}&channel_binding=require"
            ),
        ),
        ("store_file = \"gateway.address\"".to_owned(), "gateway.address names".to_owned()),
        ("store_env = \"SHOP_STORE\"".to_owned(), "/anything?sslmode=verify-full".to_owned()),
    ];
    for (settings, shown) in shown {
        let (good, said) = checked(&settings);
        assert!(good && said.contains(&shown), "{settings}: {said}");
        assert!(!said.contains(OWNER.1), "{said}");
    }
    let refused = [
        ("store_env = \"UNSET\"", "names \"UNSET\", which is not set"),
        ("store_env = \"EMPTY\"", "which holds no address of a store"),
        (
            "store_file = \"missing\"",
            "which is not a file; write the path of a file that holds the address",
        ),
        (
            "store = \"memory:\"\nstore_env = \"SHOP_STORE\"",
            "`store` says already where records are kept",
        ),
        (
            "store_file = \"gateway.address\"\nstore_env = \"SHOP_STORE\"",
            "`store_file` says already where records are kept; write one of them",
        ),
    ];
    for (settings, refusal) in refused {
        let (good, said) = checked(settings);
        assert!(!good && said.contains(refusal), "{settings}: {said}");
        assert!(!said.contains(OWNER.1), "{said}");
    }
}
