//! Where a password may come from, and where it may not go.

use super::{SecuredServer, Way, allow, port, refusal, way};
use hapax_services::postgres::{Server, Settings};

#[tokio::test]
async fn a_wrong_password_is_told_with_where_it_came_from_and_never_itself() {
    let secured = SecuredServer::shared();
    secured.role("wrong", "with_password", "PASSWORD 'right'").await;
    let passfile = secured.write("wrong.pgpass", "*:*:*:wrong:mistaken\n");
    let origins = [
        (secured.address("wrong:mistaken", "sslmode=require"), "of its address".to_owned()),
        (
            secured.address("wrong", &format!("passfile={}", passfile.display())),
            format!("in {}", passfile.display()),
        ),
        (
            secured.address("wrong", "hapax_password_command=echo%20mistaken"),
            "that hapax_password_command prints".to_owned(),
        ),
    ];
    for (address, origin) in origins {
        let told = refusal(&address).await;
        assert!(told.contains(&format!("does not take the password {origin}")), "{told}");
        assert!(!told.contains("mistaken"), "{told}");
    }
    let told = refusal(&secured.address("wrong", "sslmode=require")).await;
    assert!(told.contains("wants a password, and there is none: write it to ~/.pgpass"), "{told}");
}

#[tokio::test]
async fn a_password_file_is_read_as_libpq_reads_it() {
    let secured = SecuredServer::shared();
    secured.role("filed", "with_password", r"PASSWORD 'a:b\c'").await;
    let port = secured.port();
    let lines = format!(
        "# localhost:{port}:postgres:filed:commented\n\
         too:few:fields\n\
         otherhost:*:*:*:elsewhere\n\
         localhost:1:*:filed:another port\n\
         localhost:{port}:postgres:filed:a\\:b\\\\c\n\
         *:*:*:*:too late\n"
    );
    let path = secured.write("filed.pgpass", &lines);
    let address = secured.address("filed", &format!("passfile={}", path.display()));
    assert_eq!(way(&address).await.unwrap(), Way::Encrypted);
    allow(&path, 0o640);
    let told = refusal(&address).await;
    assert!(told.contains(&format!("run `chmod 600 {}`", path.display())), "{told}");
}

#[tokio::test]
async fn a_service_says_what_the_address_does_not() {
    let secured = SecuredServer::shared();
    secured.role("served", "with_password", "PASSWORD 'of the service'").await;
    let (port, root) = (secured.port(), secured.path("authority.crt"));
    let text = format!(
        "# ours\n[other]\nhost=nowhere.invalid\n\n[shop]\nhost=localhost\nport={port}\nuser=served\n\
         password=of the service\ndbname=postgres\nsslmode=verify-full\nsslrootcert={}\n[after]\nport=1\n",
        root.display()
    );
    let file = secured.write("service.conf", &text);
    let named =
        |name: &str, more: &str| format!("servicefile={} service={name} {more}", file.display());
    assert_eq!(way(&named("shop", "")).await.unwrap(), Way::Encrypted);
    let told = refusal(&named("shop", "password=mine")).await;
    assert!(told.contains("does not take the password of its address"), "{told}");
    let told = refusal(&named("missing", "")).await;
    assert!(told.contains("there is no service `missing`"), "{told}");
}

#[tokio::test]
async fn a_command_prints_the_password_in_time_or_is_ended() {
    let secured = SecuredServer::shared();
    secured.role("printed", "with_password", "PASSWORD 'from a command'").await;
    let address = |command: &str| {
        let command = command.replace(' ', "%20");
        secured.address("printed", &format!("hapax_password_command={command}"))
    };
    assert_eq!(way(&address("echo from a command")).await.unwrap(), Way::Encrypted);
    let failures = [
        ("exit 3", "failed"),
        ("true", "printed nothing"),
        ("yes hidden", "printed more than a password"),
    ];
    for (command, why) in failures {
        let told = refusal(&address(command)).await;
        assert!(told.contains(&format!("hapax_password_command {why}; run it by hand")), "{told}");
        assert!(!told.contains("hidden"), "{told}");
    }
    let told = refusal(&secured.address("printed:p", "hapax_password_command=true")).await;
    assert!(told.contains("write one of them"), "{told}");
}

/// An address of this machine that is not known for one.
const NOT_KNOWN_TO_BE_LOCAL: &str = "0.0.0.0";

#[tokio::test]
async fn a_password_leaves_the_machine_encrypted_or_by_order() {
    let secured = SecuredServer::shared();
    let plain = Server::start(Settings::default()).unwrap();
    secured.role("remote", "with_password", "PASSWORD 'p'").await;
    let passfile = secured.write("remote.pgpass", "*:*:*:*:p\n");
    let address = |who: &str, port: u16, parameters: &str| {
        format!("postgres://{who}@{NOT_KNOWN_TO_BE_LOCAL}:{port}/postgres?{parameters}")
    };
    // Nobody asked for encryption: it is there for the password's sake.
    assert_eq!(way(&address("remote:p", secured.port(), "")).await.unwrap(), Way::Encrypted);
    let told = refusal(&address("postgres:p", port(&plain), "")).await;
    assert!(told.contains("the password would be sent to it unencrypted"), "{told}");
    assert!(told.contains("sslmode=disable and hapax_plaintext_password=allow"), "{told}");
    // Without a password there is nothing to protect.
    assert_eq!(way(&address("postgres", port(&plain), "")).await.unwrap(), Way::Plain);
    let by_file = format!("sslmode=disable&passfile={}", passfile.display());
    for (who, parameters) in [("postgres:p", "sslmode=disable"), ("postgres", &by_file)] {
        let told = refusal(&address(who, port(&plain), parameters)).await;
        assert!(told.contains("add hapax_plaintext_password=allow if nobody can listen"), "{told}");
    }
    let allowed = "sslmode=disable&hapax_plaintext_password=allow";
    assert_eq!(way(&address("postgres:p", port(&plain), allowed)).await.unwrap(), Way::Plain);
    let told =
        refusal(&address("postgres:p", port(&plain), "hapax_plaintext_password=allow")).await;
    assert!(told.contains("write both, or neither"), "{told}");
}
