use xtask::tidy::rights;

use crate::check;

#[test]
fn a_function_that_can_be_led_astray_is_found() {
    let path = "crates/hapax-postgres/migrations/0009_next.sql";
    let good = "-- SECURITY DEFINER\nLANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp\n";
    check(rights::check, &[(path, good)], &[]);
    check(
        rights::check,
        &[(path, "LANGUAGE plpgsql SET search_path = pg_catalog\nLANGUAGE sql SECURITY DEFINER\n")],
        &[
            "0009_next.sql:1: this path can be led astray",
            "0009_next.sql:2: SECURITY DEFINER without",
        ],
    );
    check(rights::check, &[("docs/example.sql", "SET search_path = mine\n")], &[]);
}
