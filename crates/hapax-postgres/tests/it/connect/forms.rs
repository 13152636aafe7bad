//! How addresses are written.

use hapax_core::OneLine;
use hapax_postgres::Address;

fn shown(text: &str) -> String {
    match text.parse::<Address>() {
        Ok(address) => address.to_string(),
        Err(error) => format!("refused: {}", OneLine::of(&error)),
    }
}

#[test]
fn an_address_is_read_in_every_form_that_libpq_knows() {
    let forms = [
        ("postgres://app@db/shop", "database shop at db:5432"),
        ("postgresql://app:p%40ss@db:1234/sh%20op", "database sh op at db:1234"),
        ("postgres://app@[::1]:99/shop", "database shop at [::1]:99"),
        (
            "postgres://app@db1:1,db2,[2001:db8::1]:3/shop",
            "at db1:1 or db2:5432 or [2001:db8::1]:3",
        ),
        ("postgres://%2Frun%2Fpg/shop?port=77", "database shop at /run/pg/.s.PGSQL.77"),
        ("postgres:///shop?host=db&port=6000", "database shop at db:6000"),
        ("postgres://app@/shop?hostaddr=192.0.2.7", "database shop at 192.0.2.7:5432"),
        ("host=db dbname=shop", "database shop at db:5432"),
        (r"  host = db  dbname='two \'words' port= 9", "database two 'words at db:9"),
        ("host=db1,db2 port=7 dbname=shop", "database shop at db1:7 or db2:7"),
        ("host=db dbname=shop gssencmode=disable sslsni=1", "database shop at db:5432"),
    ];
    for (text, expected) in forms {
        let shown = shown(text);
        assert!(shown.ends_with(expected), "{text}: {shown}");
    }
}

#[test]
fn the_hosts_of_an_address_are_those_that_are_connected_to() {
    for (text, hosts) in [
        ("postgres://app@db1:1,db2,[2001:db8::1]:3/shop", &["db1", "db2", "2001:db8::1"][..]),
        ("host=localhost hostaddr=192.0.2.7 dbname=shop", &["192.0.2.7"]),
        ("postgres:///shop?host=db&port=6000", &["db"]),
        ("postgres://%2Frun%2Fpg/shop", &[]),
    ] {
        assert_eq!(text.parse::<Address>().unwrap().hosts().unwrap(), hosts, "{text}");
    }
}

#[test]
fn what_is_no_address_is_refused_with_what_to_write_and_without_its_password() {
    let refusals = [
        ("postgres://app:hidden@db/shop?sslmode", "it is no PostgreSQL address"),
        ("postgres://app:%ff@db/shop", "it is no PostgreSQL address"),
        ("host=db password='hidden", "it is no PostgreSQL address"),
        (
            "host=db password=hidden sslmode=allow",
            "disable, prefer, require, verify-ca or verify-full",
        ),
        (
            "postgres://app:hidden@db/shop?target_session_attrs=standby",
            "any, read-write or primary",
        ),
        (
            "postgres://app:hidden@db/shop?require_auth=scram-sha-256",
            "`require_auth` is not supported",
        ),
        ("postgres://app:hidden@db/shop?pgbouncer=true", "`pgbouncer` is no parameter"),
        ("postgres://app:hidden@db1,db2/shop?port=1,2,3", "there are not as many hosts as ports"),
        ("postgres://app:hidden@db/shop?port=0", "a number from 1 to 65535"),
        (
            "postgres://app:hidden@db/shop?hostaddr=db",
            "`hostaddr` cannot be that; write an IP address",
        ),
        ("postgres://app:hidden@db/shop?connect_timeout=soon", "write a whole number"),
        ("postgres://app:hidden@db/shop?sslkey=key.pem", "write sslcert=FILE too"),
        ("postgres://app:hidden@db/shop?sslnegotiation=direct", "sslnegotiation=direct needs"),
        (
            "postgres://app:hidden@db/shop?sslmode=require&sslrootcert=system",
            "write sslmode=verify-full",
        ),
    ];
    for (text, expected) in refusals {
        let shown = shown(text);
        assert!(shown.starts_with("refused: ") && shown.contains(expected), "{text}: {shown}");
        assert!(!shown.contains("hidden"), "{shown}");
    }
}
