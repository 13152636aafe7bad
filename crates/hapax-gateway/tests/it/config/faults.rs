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

/// Reads cases: the text of a file after `before`, then a line for each fault, begun with `> `.
fn check(before: &str, cases: &str) {
    for case in cases.split("\n\n") {
        let (told, text): (Vec<_>, Vec<_>) = case.lines().partition(|line| line.starts_with("> "));
        let expected: Vec<_> =
            told.iter().map(|line| line.replacen("> ", "gateway.toml:", 1)).collect();
        let message = message(&format!("{before}{}", text.join("\n")));
        let told: Vec<_> =
            message.lines().filter(|line| line.starts_with("gateway.toml:")).collect();
        assert_eq!(told, expected, "{case}\n{message}");
    }
}

const UPSTREAM: &str = "[upstream]\nurl = \"http://127.0.0.1:3000\"\n";

#[test]
fn what_a_file_says_is_understood_or_refused() {
    check("", include_str!("faults/top.txt"));
    check(UPSTREAM, include_str!("faults/file.txt"));
}

#[test]
fn what_a_route_says_is_understood_and_does_not_contradict_itself() {
    let before = format!("{UPSTREAM}[[route]]\nmatch = \"POST /a\"\n");
    check(&before, include_str!("faults/route.txt"));
}

#[test]
fn a_tenant_that_anybody_could_pretend_to_be_is_refused() {
    check(&format!("{UPSTREAM}[tenant]\n"), include_str!("faults/tenant.txt"));
}

#[test]
fn a_provider_that_could_not_sign_people_in_or_would_let_anybody_in_is_refused() {
    check(&format!("{UPSTREAM}[admin_oidc]\n"), include_str!("faults/admin_oidc.txt"));
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
fn a_secret_is_never_repeated() {
    for text in [
        "[upstream]\nurl = \"http://u:hunter2@a\"",
        "store = \"mysql://u:hunter2@a\"\nupstream.url = \"http://a\"",
        "admin_token = \"hunter2 \"\nupstream.url = \"http://a\"",
        "upstream.url = \"http://a\"\ntenant = { from = \"jwt\", secret = \"hunter2\" }",
    ] {
        let told = message(text);
        assert!(told.starts_with("gateway.toml:") && !told.contains("hunter2"), "{told}");
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
