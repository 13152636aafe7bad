use xtask::tidy::arrows;

use crate::compare;

#[test]
fn the_core_may_not_reach_a_runtime_http_or_a_driver() {
    compare(&arrows::judge("hapax-core", ["hapax-core", "bytes", "sha2"]), &[]);
    compare(
        &arrows::judge("hapax-core", ["bytes", "tokio", "hyper", "rusqlite"]),
        &[
            "crates/hapax-core/Cargo.toml:1: reaches `tokio`",
            "reaches `hyper`",
            "reaches `rusqlite`",
        ],
    );
}

#[test]
fn a_backend_may_not_reach_the_engine_http_or_another_backend() {
    compare(&arrows::judge("hapax-sqlite", ["hapax-core", "rusqlite", "tokio"]), &[]);
    compare(
        &arrows::judge("hapax-sqlite", ["hapax-engine", "hapax-postgres", "http"]),
        &["reaches `hapax-engine`", "reaches `hapax-postgres`", "reaches `http`"],
    );
    compare(
        &arrows::judge("hapax-postgres", ["hapax-sqlite", "tokio-postgres"]),
        &["`hapax-sqlite`"],
    );
}

#[test]
fn what_is_said_to_any_database_names_none() {
    compare(&arrows::judge("hapax-sql", ["hapax-core", "bytes"]), &[]);
    compare(
        &arrows::judge("hapax-sql", ["hapax-postgres", "rusqlite", "tokio"]),
        &["reaches `hapax-postgres`", "reaches `rusqlite`", "reaches `tokio`"],
    );
}

#[test]
fn a_file_knows_nothing_of_what_is_kept_in_it() {
    compare(&arrows::judge("hapax-sqlite-file", ["rusqlite", "tokio"]), &[]);
    compare(
        &arrows::judge("hapax-sqlite-file", ["hapax-core", "hapax-client", "hapax-sqlite"]),
        &["reaches `hapax-core`", "reaches `hapax-client`", "reaches `hapax-sqlite`"],
    );
    compare(&arrows::judge("hapax-client", ["hapax-sqlite-file", "rusqlite"]), &[]);
}

#[test]
fn the_engine_and_the_judge_name_no_backend() {
    compare(&arrows::judge("hapax-engine", ["hapax-sqlite"]), &["reaches `hapax-sqlite`"]);
    compare(&arrows::judge("hapax-verify", ["hapax-postgres"]), &["reaches `hapax-postgres`"]);
}

#[test]
fn who_examines_servers_shares_nothing_with_ours() {
    compare(&arrows::judge("hapax-examine", ["h2", "http", "rustls", "tokio"]), &[]);
    compare(
        &arrows::judge(
            "hapax-examine",
            ["hapax-core", "hapax-tower", "hapax-zoo", "rusqlite", "hyper"],
        ),
        &[
            "reaches `hapax-core`",
            "reaches `hapax-tower`",
            "reaches `hapax-zoo`",
            "reaches `rusqlite`",
            "reaches `hyper`",
        ],
    );
}

#[test]
fn the_gateway_and_messaging_do_not_know_each_other() {
    compare(&arrows::judge("hapax-gateway", ["hapax-messaging"]), &["reaches `hapax-messaging`"]);
    compare(&arrows::judge("hapax-messaging", ["hapax-gateway"]), &["reaches `hapax-gateway`"]);
}

#[test]
fn what_ships_does_not_reach_what_is_for_tests() {
    compare(&arrows::judge("hapax-crash", ["hapax-services", "hapax-sqlite"]), &[]);
    let found = ["crates/hapax-cli/Cargo.toml:1: reaches `hapax-services`"];
    compare(&arrows::judge("hapax-cli", ["hapax-services"]), &found);
    let found = ["testing/verify/Cargo.toml:1: reaches `hapax-sqlite`"];
    compare(&arrows::judge("hapax-verify", ["hapax-sqlite"]), &found);
}

#[test]
fn only_the_facade_and_the_programs_pick_a_backend() {
    compare(&arrows::judge("hapax", ["hapax-sqlite", "hapax-postgres"]), &[]);
    compare(&arrows::judge("hapax-cli", ["hapax-sqlite", "hapax-postgres"]), &[]);
    let generic = "only the facade and the programs";
    compare(&arrows::judge("hapax-another", ["hapax-sqlite"]), &[generic]);
    compare(&arrows::judge("hapax-tower", ["hapax-sqlite"]), &["any tower service on any store"]);
}
