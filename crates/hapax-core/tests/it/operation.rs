//! How operations are shown.

use crate::given::operation;

#[test]
fn an_operation_is_shown_by_its_three_names() {
    assert_eq!(format!("{:?}", operation("k")), "\"acme\"/\"POST /payments\"/\"k\"");
    assert_eq!(format!("{:?}", operation("k").tenant()), "\"acme\"");
    assert_eq!(format!("{:?}", operation("k").scope()), "\"POST /payments\"");
    assert_eq!(format!("{:?}", operation("k").key()), "\"k\"");
}

#[test]
fn an_id_is_shown_in_hexadecimal() {
    let id = operation("k-1").id();
    assert_eq!(format!("{id}"), "1a0fb49b3048c68ad311324a449becfe");
    assert_eq!(format!("{id:?}"), "1a0fb49b3048c68ad311324a449becfe");
}
