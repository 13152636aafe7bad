use std::time::Duration;

use hapax_core::retry::Deadline;

use super::ms;

#[test]
fn what_is_left_of_a_deadline_shrinks_to_nothing_and_stays_there() {
    let deadline = Deadline::after(ms(100), ms(50));
    assert_eq!(deadline.left(ms(100)), ms(50));
    assert_eq!(deadline.left(ms(149)), ms(1));
    assert_eq!(deadline.left(ms(150)), Duration::ZERO);
    assert_eq!(deadline.left(Duration::MAX), Duration::ZERO);
}

#[test]
fn an_inner_deadline_is_never_later_than_the_outer_one() {
    let outer = Deadline::after(ms(0), ms(100));
    assert_eq!(outer.within(ms(20), ms(30)).left(ms(20)), ms(30));
    assert_eq!(outer.within(ms(20), ms(300)), outer);
    assert_eq!(outer.within(ms(20), Duration::MAX), outer);
}
