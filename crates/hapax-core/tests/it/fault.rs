//! Faults fail where they are told to, and nowhere else.

use hapax_core::{Faults, Injected};

#[test]
fn without_a_test_nothing_fails() {
    let faults = Faults::default();
    assert_eq!(faults.at("anywhere"), Ok(()));
    assert_eq!(format!("{faults:?}"), "Faults(false)");
}

#[test]
fn a_fault_happens_at_the_place_it_was_asked_for() {
    let faults = Faults::new(|place| match place {
        "here" => Err(Injected { place }),
        _ => Ok(()),
    });
    assert_eq!(faults.at("there"), Ok(()));
    let injected = faults.at("here").unwrap_err();
    assert_eq!(injected, Injected { place: "here" });
    assert_eq!(injected.to_string(), "a fault was injected at here");
    assert_eq!(format!("{faults:?}"), "Faults(true)");
}
