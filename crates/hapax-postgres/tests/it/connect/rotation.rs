//! Passwords that change while a store is open.

use std::fs;

use hapax_core::{OneLine, Store as _};
use hapax_postgres::{Address, Options, Store};

use super::{SecuredServer, allow};
use crate::reference::complete;

/// Ends every session of this role, as a server does that was restarted.
async fn hang_up(secured: &SecuredServer, role: &str) {
    let text =
        "SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity WHERE usename = $1";
    let ended = secured.superuser().await.query_one(text, &[&role]).await.unwrap();
    assert!(ended.get::<_, i64>(0) > 0, "{role} has no session");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_that_was_changed_is_used_by_the_next_connection() {
    let secured = SecuredServer::shared();
    let passfile = secured.write("rotated.pgpass", "*:*:*:rotated_file:first\n");
    let whole = secured.path("rotated.address");
    let printed = secured.write("rotated.token", "first\n");
    let in_address = |password: &str| {
        secured.address(&format!("rotated_address:{password}"), "sslmode=verify-full")
    };
    secured.write("rotated.address", &format!("{}\n", in_address("first")));
    let by_file: Address = secured
        .address("rotated_file", &format!("passfile={}", passfile.display()))
        .parse()
        .unwrap();
    let by_command = format!("hapax_password_command=cat%20{}", printed.display());
    let by_command: Address = secured.address("rotated_command", &by_command).parse().unwrap();
    let cases = [
        ("rotated_file", by_file, &passfile, "*:*:*:rotated_file:second\n".to_owned()),
        ("rotated_command", by_command, &printed, "second\n".to_owned()),
        ("rotated_address", Address::in_file(&whole).unwrap(), &whole, in_address("second")),
    ];
    for (role, address, file, renewed) in cases {
        let more = "SUPERUSER PASSWORD 'first'";
        secured.role(role, "with_password", more).await;
        let store = Store::connect(&address, Options::default()).await.unwrap();
        complete(&store, &format!("{role} 1"), b"done").await;
        let change = format!("ALTER ROLE {role} PASSWORD 'second'");
        secured.superuser().await.batch_execute(&change).await.unwrap();
        complete(&store, &format!("{role} 2"), b"done").await;
        hang_up(&secured, role).await;
        let refused = loop {
            let refused = store.clock().await.expect_err("the old password still opens");
            // A connection that has just ended says that first.
            if OneLine::of(&refused).to_string().contains("does not take the password") {
                break OneLine::of(&refused).to_string();
            }
        };
        assert!(!refused.contains("first"), "{refused}");
        fs::write(file, renewed).unwrap();
        allow(file, 0o600);
        complete(&store, &format!("{role} 3"), b"done").await;
    }
}

#[tokio::test]
async fn a_file_that_names_another_database_needs_a_restart() {
    let secured = SecuredServer::shared();
    let address = secured.address("postgres", "sslmode=require");
    let file = secured.write("moved.address", &address);
    let opened = Address::in_file(&file).unwrap();
    fs::write(&file, address.replace("/postgres?", "/template1?")).unwrap();
    let told = OneLine::of(&opened.connect().await.err().unwrap()).to_string();
    assert!(told.contains("names another database than at the start; restart to use it"), "{told}");
}
