//! What people see when they open the file with an SQLite client.

use hapax_core::{
    Doubt, Store as _,
    store::{Settle, Settlement, Write},
};

use crate::{
    backend::Sqlite,
    calls::{claim, complete, completion},
};

type Shown = (String, String, Option<i64>, Option<String>, Option<String>, Option<String>);

fn shown(sqlite: &Sqlite, key: &str) -> Shown {
    let sql =
        "SELECT state, created_at, status, body, lease_until, doubt FROM hapax_operations_readable
               WHERE tenant = 'acme' AND scope = 'POST /payments' AND key = ?1";
    let read = |row: &rusqlite::Row<'_>| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?))
    };
    sqlite.client().query_row(sql, [key], read).expect("it is shown")
}

#[tokio::test]
async fn operations_are_shown_in_words() {
    let sqlite = Sqlite::new();
    let store = sqlite.store();
    let uuid = "0191e3a4-7c1d-7e2f-8a3b-0123456789ab";
    for key in ["running", "text", "bytes", "doubt", uuid] {
        claim(&store, key).await.expect("written");
    }
    complete(&store, "text", "{\"paid\":\"\u{20ac}5\"}".as_bytes()).await.expect("written");
    complete(&store, "bytes", b"\xff\x00").await.expect("written");
    complete(&store, uuid, b"").await.expect("written");
    let to = Settlement::InDoubt(Doubt::Unanswered);
    let doubt = Settle { to, ..completion("doubt", b"") };
    store.commit(vec![Write::Settle(doubt)]).await;

    let began = || "2027-01-15T08:00:00.000Z".to_owned();
    let word = str::to_owned;
    let lease = Some(word("2027-01-15T08:00:30.000Z"));
    assert_eq!(shown(&sqlite, "running"), (word("running"), began(), None, None, lease, None));
    let body = Some(word("{\"paid\":\"\u{20ac}5\"}"));
    assert_eq!(shown(&sqlite, "text"), (word("completed"), began(), Some(201), body, None, None));
    assert_eq!(shown(&sqlite, "bytes"), (word("completed"), began(), Some(201), None, None, None));
    let empty = Some(String::new());
    assert_eq!(shown(&sqlite, uuid), (word("completed"), began(), Some(201), empty, None, None));
    let why = Some(word("unanswered"));
    assert_eq!(shown(&sqlite, "doubt"), (word("in_doubt"), began(), None, None, None, why));
}
