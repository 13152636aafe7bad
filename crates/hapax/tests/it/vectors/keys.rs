//! How a key is read from its header, and how it is written into one.

use hapax::tower::{Code, KeyForm, parse_key};
use serde_json::json;

use super::check;

const LINES: &[&[&str]] = &[
    &["\"order-17\""],
    &["order-17"],
    &["  \"order-17\"\t"],
    &["\"8e03978e-40d5-43e8-bc93-6894a57f9324\""],
    &["8e03978e-40d5-43e8-bc93-6894a57f9324"],
    &["\"with space\""],
    &["with space"],
    &["\"a\\\"b\\\\c\""],
    &["\"a\\bc\""],
    &["\"unfinished"],
    &["unfinished\""],
    &["\"two\" \"strings\""],
    &["\"one\", \"two\""],
    &["\"order\";version=2"],
    &["a,b"],
    &["a;b"],
    &["a\\b"],
    &["a\"b"],
    &[":binary:"],
    &["?1"],
    &["@1659578233"],
    &["(list)"],
    &["42"],
    &["token/with:signs=*"],
    &[""],
    &["\"\""],
    &["   "],
    &["\"   \""],
    &["\"caf\u{e9}\""],
    &["caf\u{e9}"],
    &["\"tab\there\""],
    &["\"one\"", "\"one\""],
    &["\"one\"", "\"two\""],
    &[],
];

#[test]
fn a_key_is_read_alike() {
    let mut cases = Vec::new();
    for lines in LINES {
        cases.push(read(lines));
    }
    for (text, len) in [("k", 1), ("k", 255), ("k", 256), (" ", 255)] {
        let bare = text.repeat(len);
        cases.push(read(&[&bare]));
        cases.push(read(&[&format!("\"{bare}\"")]));
    }
    let escaped = format!("\"{}\"", "\\\"".repeat(255));
    cases.push(read(&[&escaped]));
    check(
        "keys.json",
        "Lines of the header Idempotency-Key: the key, or the code of the refusal.",
        &cases,
    );
}

fn read(lines: &[&str]) -> serde_json::Value {
    let read = match lines {
        [] => Err(Code::KeyMissing),
        [line] => {
            parse_key(line.as_bytes(), KeyForm::QuotedOrBare).map(|key| key.as_str().to_owned())
        }
        _ => Err(Code::KeyRepeated),
    };
    match read {
        Ok(key) => json!({ "lines": lines, "key": key }),
        Err(code) => json!({ "lines": lines, "refused": code.code() }),
    }
}

#[test]
fn a_key_is_written_so_that_it_is_read_as_itself() {
    let keys = ["order-17", "with space", "a\"b", "a\\b", "a,b;c", ":x:", "~!#$%&'()*+"];
    let cases = keys.map(|key| {
        let escaped = key.replace('\\', "\\\\").replace('"', "\\\"");
        let line = format!("\"{escaped}\"");
        assert_eq!(parse_key(line.as_bytes(), KeyForm::Quoted).unwrap().as_str(), key);
        json!({ "key": key, "line": line })
    });
    check("quoting.json", "A key, and the value of the header a client sends it in.", &cases);
}
