//! Requests as they are sent.

use hapax_examine::{ExamRequest, VendorProfile};

#[test]
fn a_key_that_is_no_header_stands_in_the_body() {
    let square = VendorProfile::named("square").unwrap().key();
    let request = ExamRequest {
        method: "POST".to_owned(),
        key_header: square.name,
        body: r#"{"idempotency_key":"{key}","ref":"{marker}"}"#.into(),
        ..ExamRequest::get("/v2/payments", Vec::new())
    };
    for (key, written) in [("k-1", "k-1"), ("a\"b", r#"a\"b"#), ("", "")] {
        let body = format!(r#"{{"idempotency_key":"{written}","ref":"{{marker}}"}}"#);
        let request = request.with_key(key);
        assert_eq!(request.sent_body(), body);
        assert_eq!(request.all_headers(), Vec::new());
    }
    let draft = VendorProfile::named("draft-07").unwrap().key();
    let request = ExamRequest { key_header: draft.name, ..request }.with_key("\"k-1\"");
    assert_eq!(request.sent_body(), request.body);
    assert_eq!(request.all_headers(), [("Idempotency-Key".to_owned(), b"\"k-1\"".to_vec())]);
}
