use xtask::tidy::examples;

use crate::check;

const LIB: &str = "crates/hapax/src/lib.rs";
const DOOR: &str = "crates/hapax/src/door.rs";
const EXPORTS: &str =
    "pub use hapax_core::Outcome;\npub use self::{\n    door::{Door, open},\n};\n";

#[test]
fn a_type_of_the_front_door_without_an_example_is_found() {
    for documented in [
        "/// A door.\n#[derive(Debug)]\npub struct Door<'a> {\n",
        "/// A door.\n///\n/// ```text\n/// [ ]\n/// ```\npub enum Door {\n",
        "/// A key.\n///\n/// ```\n/// open();\n/// ```\npub struct Key;\n\n/// A door.\npub trait Door {\n",
    ] {
        let line = documented.lines().count();
        let found = format!("door.rs:{line}: `Door` is exported, and has no example");
        check(examples::check, &[(DOOR, documented), (LIB, EXPORTS)], &[&found]);
    }
}

#[test]
fn an_example_above_the_declaration_is_enough() {
    for documented in [
        "/// A door.\n///\n/// ```\n/// open();\n/// ```\n#[derive(Debug)]\npub struct Door<W> {\n",
        "/// A door.\n///\n/// ```text\n/// [ ]\n/// ```\n///\n/// ```no_run\n/// open();\n/// ```\npub type Door = u8;\n",
    ] {
        check(examples::check, &[(DOOR, documented), (LIB, EXPORTS)], &[]);
    }
}

#[test]
fn a_type_that_is_declared_elsewhere_cannot_get_round_the_rule() {
    let elsewhere = [(DOOR, "pub struct Doorbell;\n"), (LIB, EXPORTS)];
    check(examples::check, &elsewhere, &["lib.rs:1: `Door` is exported, and not declared"]);
}
