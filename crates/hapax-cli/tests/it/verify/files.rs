//! One file for each API, and what is typed beside it.

use std::fs;

use super::{ALICE, BODY, COUNT, Verifier, started};

fn file(host: &str) -> String {
    format!(
        "url = \"{host}\"\ncredential = [\"{ALICE}\"]\nonly = [\"V19\"]\nmax_effects = 5\n\n\
         [[route]]\nmethod = \"POST\"\npath = \"/payments\"\njson = '{BODY}'\ncount = \"{COUNT}\"\nid = \"/id\"\n\n\
         [[route]]\nmethod = \"POST\"\npath = \"/refunds\"\njson = '{BODY}'\n"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_route_of_a_file_is_examined_and_what_is_typed_counts_for_more() {
    let (running, _) = started("honest").await;
    let verifier = Verifier::new();
    verifier.write("api.toml", &file(&format!("http://{}", running.address)));
    let route = ["--config", "api.toml", "--route", "POST /payments"];
    let ended = verifier.run(&route);
    assert!(ended.refusal().contains("and 5 are allowed"), "{ended:?}");
    let ended = verifier.run(&[&route[..], &["--max-effects", "50", "--only", "V01"]].concat());
    assert_eq!(ended.exit, Some(0), "{ended:?}");
    assert!(ended.err.contains("V01 retry-after-success ... pass"), "{ended:?}");
    assert!(!ended.err.contains("V19"), "{ended:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_a_file_names_are_looked_for_where_it_is() {
    let (running, _) = started("honest").await;
    let verifier = Verifier::new();
    fs::create_dir(verifier.path("apis")).unwrap();
    verifier.write("apis/payment.json", BODY);
    let text = file(&format!("http://{}", running.address));
    let text = text.replace(&format!("'{BODY}'\ncount"), "\"@payment.json\"\ncount");
    verifier.write("apis/api.toml", &format!("html = \"report.html\"\n{text}"));
    let route = ["--config", "apis/api.toml", "--route", "POST /payments", "--max-effects", "50"];
    let ended = verifier.run(&route);
    assert_eq!(ended.exit, Some(0), "{ended:?}");
    assert!(verifier.read("apis/report.html").contains("<html"));
}

#[test]
fn which_route_is_meant_must_be_said() {
    let verifier = Verifier::new();
    verifier.write("api.toml", &file("http://127.0.0.1:1"));
    let ended = verifier.run(&["--config", "api.toml"]);
    assert!(ended.refusal().contains("one of 'POST /payments', 'POST /refunds'"), "{ended:?}");
    let ended = verifier.run(&["--config", "api.toml", "--route", "POST /orders"]);
    assert!(ended.refusal().contains("has no route 'POST /orders'"), "{ended:?}");
}

#[test]
fn what_a_file_must_not_say_is_named_with_its_line() {
    let verifier = Verifier::new();
    for (text, words) in [
        (
            "url = \"http://127.0.0.1:1\"\nretries = 3\n",
            "api.toml, line 2: unknown field `retries`",
        ),
        ("url = 1\n", "api.toml, line 1: invalid type"),
        (
            "\n\n[[route]]\nmethod = \"POST\"\npath = \"/\"\ncuont = \"x\"\n",
            "line 6: unknown field `cuont`",
        ),
        ("yes = true\n", "line 1: unknown field `yes`"),
        ("ttl = \"soon\"\n", "line 1: write a whole number and a unit"),
        ("url = \n", "api.toml, line 1: "),
    ] {
        verifier.write("api.toml", text);
        let ended = verifier.run(&["--config", "api.toml"]);
        assert!(ended.refusal().contains(words), "no {words:?}: {ended:?}");
    }
}
