//! What the program makes of a database, on whichever version of PostgreSQL the tests are run.

use super::Visit;
use crate::world::Database;

/// What is compared with the catalogue, and what has to be found in it.
const OF_THE_CATALOGUE: &[&str] = &[
    "connection",
    "version",
    "schema",
    "tables",
    "indexes",
    "functions",
    "triggers",
    "storage parameters",
    "key index",
];

#[tokio::test]
async fn what_was_migrated_is_as_it_was_shipped() {
    let database = Database::migrated().await;
    let visit = Visit::of(&["--store", &database.url]);
    visit.check_words();
    for check in OF_THE_CATALOGUE {
        assert_eq!(visit.level(check), "ok", "{check}: {}", visit.found(check));
    }
}
