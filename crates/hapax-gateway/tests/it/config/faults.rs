//! What cannot be meant is refused, with the place and what to write instead.

use hapax_gateway::{
    Config,
    config::{ConfigError, Overrides},
};

use super::read;

/// The message for a file of this text.
fn message(text: &str) -> String {
    match read(text) {
        Ok(_) => panic!("this was taken:\n{text}"),
        Err(error) => error.to_string(),
    }
}

/// The faults of an otherwise good file that ends with this text, which starts in line 3.
pub(crate) fn check(text: &str, expected: &[&str]) {
    let message = message(&format!("[upstream]\nurl = \"http://127.0.0.1:3000\"\n{text}"));
    let told: Vec<_> =
        message.lines().filter_map(|line| line.strip_prefix("gateway.toml:")).collect();
    assert_eq!(told, expected, "{text}\n{message}");
}

/// The same for a route; its settings start in line 5.
pub(crate) fn check_route(settings: &str, expected: &[&str]) {
    check(&format!("[[route]]\nmatch = \"POST /a\"\n{settings}"), expected);
}

/// The same for `[tenant]`; its settings start in line 4.
pub(crate) fn check_tenant(settings: &str, expected: &[&str]) {
    check(&format!("[tenant]\n{settings}"), expected);
}

#[test]
fn a_fault_shows_its_line_and_the_part_that_is_meant() {
    let text = "[upstream]\nurl = \"http://a\"\n[[route]]\nmatch = \"POST /a\"\nretension = \"1d\"";
    let expected = "\
gateway.toml:5:1: there is no setting \"retension\" here; write `retention` instead
  |
5 | retension = \"1d\"
  | ^^^^^^^^^";
    assert_eq!(message(text), expected);
}

#[test]
fn all_faults_of_a_file_are_told_at_once_in_its_order() {
    let told = message(
        "listen = 8080\nworkers = 0\n[upstream]\nurl = \"localhost:3000\"\nidle = \"-1s\"\n\
         [[route]]\nmatch = \"GET /a\"\nlease = \"soon\"",
    );
    let places = told.lines().filter_map(|line| line.split(": ").next());
    let places: Vec<_> = places.filter(|place| place.starts_with("gateway")).collect();
    let lines = ["1:10", "2:11", "4:7", "5:8", "7:9", "8:9"];
    assert_eq!(places, lines.map(|line| format!("gateway.toml:{line}")), "{told}");
}

#[test]
fn a_fault_of_a_flag_names_the_flag() {
    let refuse = |overrides: Overrides| {
        let refused = Config::parse("gateway.toml".as_ref(), "", &overrides);
        refused.unwrap_err().to_string()
    };
    let upstream = || Some("http://127.0.0.1:3000".to_owned());
    let listen =
        Overrides { listen: Some("8080".to_owned()), upstream: upstream(), ..Overrides::default() };
    let advice =
        "write an address and a port, such as \"127.0.0.1:8080\" or \"0.0.0.0:80\", instead";
    assert_eq!(refuse(listen), format!("--listen: it cannot be \"8080\"; {advice}"));
    let open = Overrides {
        admin: Some("0.0.0.0:1".to_owned()),
        upstream: upstream(),
        ..Overrides::default()
    };
    let told = refuse(open);
    assert!(
        told.starts_with("--admin: anybody who reaches this address could change keys"),
        "{told}"
    );
    let store = Overrides {
        store: Some("mysql://u:secret@h".to_owned()),
        upstream: upstream(),
        ..Overrides::default()
    };
    assert!(!refuse(store).contains("secret"), "a password is not repeated");
    let itself =
        Overrides { upstream: Some("http://localhost:8080".to_owned()), ..Overrides::default() };
    let told = "--upstream: the gateway would ask itself: this is where it listens; write another port instead";
    assert_eq!(refuse(itself), told);
}

#[test]
fn the_top_of_the_file_is_checked() {
    for (text, expected) in [
        (
            "",
            "1:1: there is nothing to protect; write `[upstream]` and `url = \"http://127.0.0.1:3000\"`",
        ),
        (
            "[upstream]\nidle = \"1s\"",
            "1:1: there is nothing to protect; write `[upstream]` and `url = \"http://127.0.0.1:3000\"`",
        ),
        (
            "[upstream]\nurl = \"ftp://a\"",
            "2:7: `url` cannot be \"ftp://a\", which is neither http nor https; write \"http://127.0.0.1:3000\" or \"https://…\" instead",
        ),
        (
            "[upstream]\nurl = \"http://u:p@a\"",
            "2:7: `url` cannot be \"http://u:p@a\", which holds a password; write \"http://127.0.0.1:3000\" or \"https://…\" instead",
        ),
        (
            "[upstream]\nurl = \"http://a?b\"",
            "2:7: `url` cannot hold a query, as \"http://a?b\" does; leave out what follows `?`",
        ),
        (
            "admin = \"0.0.0.0:9\"\nupstream.url = \"http://a\"",
            "1:9: anybody who reaches this address could change keys; write `admin_token_file` too, or an address of 127.0.0.1, instead",
        ),
        (
            "admin = \"127.0.0.1:8080\"\nupstream.url = \"http://a\"",
            "1:9: `admin` and `listen` cannot share an address; write another port instead",
        ),
        (
            "store = \"mysql://a\"\nupstream.url = \"http://a\"",
            "1:9: `store` is no address of a store; write \"sqlite:PATH\", \"postgres://…\" or \"memory:\" instead",
        ),
        (
            "hosts = [\"a b\"]\nupstream.url = \"http://a\"",
            "1:10: `hosts` cannot be \"a b\"; write the name of a host, such as \"api.example.com\", instead",
        ),
        (
            "otherwise = \"drop\"\nupstream.url = \"http://a\"",
            "1:13: `otherwise` cannot be \"drop\"; write \"protect\" or \"pass\" instead",
        ),
    ] {
        let told = message(text);
        assert_eq!(told.lines().next().unwrap(), format!("gateway.toml:{expected}"), "{text}");
    }
}

#[test]
fn a_refusal_keeps_each_fault_apart() {
    let ConfigError::Refused { faults } =
        read("a = 1\nb = 2\nupstream.url = \"http://a\"").unwrap_err()
    else {
        panic!("it was refused for another reason");
    };
    let lines: Vec<_> = faults.iter().map(|fault| fault.excerpt.as_ref().unwrap().line).collect();
    assert_eq!(lines, [1, 2]);
}

#[test]
fn what_is_not_toml_is_refused_where_it_stops_being_so() {
    for (text, expected) in [
        ("[limits", &["3:8: unclosed table, expected `]`"][..]),
        ("a b", &["3:3: key with no value, expected `=`"][..]),
        (r#"x = "unclosed"#, &[r#"3:14: invalid basic string, expected `"`"#][..]),
    ] {
        check(text, expected);
    }
}

#[test]
fn names_types_and_ranges_are_checked() {
    for (text, expected) in [
        (
            "[upstreams]",
            &[r#"3:2: there is no setting "upstreams" here; write `upstream` instead"#][..],
        ),
        (
            "[limits]
connection = 5",
            &[r#"4:1: there is no setting "connection" here; write `connections` instead"#][..],
        ),
        (
            r#"[limits]
timeout = "5s""#,
            &[
                r#"4:1: there is no setting "timeout" here; write it in `[tenant]`, in `[defaults]` or in `[[route]]` instead"#,
            ][..],
        ),
        (
            "[limits]
colour = 5",
            &[
                r#"4:1: there is no setting "colour" here; write `connections`, `head`, `headers`, `head_timeout`, `body_timeout`, `idle_timeout`, `streams` or `buffered` instead"#,
            ][..],
        ),
        (
            "[limits]
head = 65536",
            &[
                r#"4:8: `head` cannot be a whole number; write a size in quotes, such as "64KiB", instead"#,
            ][..],
        ),
        (
            r#"[limits]
head = "1KiB""#,
            &["4:8: `head` cannot be 1KiB; write a size from 8KiB to 1MiB instead"][..],
        ),
        (
            r#"[limits]
head = "64KB""#,
            &[
                r#"4:8: `head` cannot be "64KB"; write a whole number and a unit, such as "64KiB" or "1MiB", instead"#,
            ][..],
        ),
        (
            r#"[limits]
headers = "many""#,
            &["4:11: `headers` cannot be text; write a whole number instead"][..],
        ),
        (
            "[limits]
streams = -1",
            &["4:11: `streams` is out of range; write a number from 1 to 10000 instead"][..],
        ),
        (
            r#"[limits]
idle_timeout = "0s""#,
            &[
                r#"4:16: `idle_timeout` must be longer than nothing, not "0s"; write a whole number and a unit, such as "250ms", "10s", "24h" or "7d", instead"#,
            ][..],
        ),
        (
            "limits = 5",
            &[
                r#"3:1: there is no setting "limits" here; write it at the top of the file, above every table, instead"#,
            ][..],
        ),
        (
            "route = 5",
            &[
                r#"3:1: there is no setting "route" here; write it at the top of the file, above every table, instead"#,
            ][..],
        ),
        (
            r#"[defaults]
lease = "2h"
[[route]]
match = "POST /a""#,
            &["4:9: `lease` cannot be 2h; write a duration from 100ms to 1h instead"][..],
        ),
        (
            r#"[limits]
buffered = "1MiB"
[[route]]
match = "POST /a"
request_max = "2MiB""#,
            &[
                "7:1: `request_max` is larger than `buffered` in `[limits]`, so it never fits; write a larger `buffered`",
            ][..],
        ),
        (
            r#"[defaults]
tenant = "single""#,
            &[
                r#"4:1: there is no setting "tenant" here; write it at the top of the file, above every table, or in `[[route]]` instead"#,
            ][..],
        ),
        (
            r#"[defaults]
treatment = "pass""#,
            &[r#"4:1: there is no setting "treatment" here; write it in `[[route]]` instead"#][..],
        ),
    ] {
        check(text, expected);
    }
}
