//! Ids and fingerprints computed in SQL are those computed in Rust.

use hapax_core::{RequestParts, Salt, Store as _, Tenant};

use super::named;
use crate::backend::Postgres;

const ROUNDS: usize = 1_000;

/// A tenant and what it asks for.
struct Request {
    tenant: String,
    method: String,
    path: String,
    query: String,
    body: Vec<u8>,
}

impl Request {
    fn draw(random: &mut fastrand::Rng) -> Self {
        let text = |random: &mut fastrand::Rng| -> String {
            let len = random.usize(..40) * usize::from(random.u8(..4) != 0);
            let mut letter = || if random.bool() { random.alphanumeric() } else { random.char(..) };
            (0..len)
                .map(|_| letter())
                .map(|letter| if letter == '\0' { ' ' } else { letter })
                .collect()
        };
        let (method, path, query) = (text(random), text(random), text(random));
        let len = random.usize(..300) * usize::from(random.u8(..4) != 0);
        let body = std::iter::repeat_with(|| random.u8(..)).take(len).collect();
        Self { tenant: name(random, 255), method, path, query, body }
    }

    fn fingerprint(&self, salt: Salt) -> Vec<u8> {
        let parts = RequestParts {
            method: self.method.as_bytes(),
            path: self.path.as_bytes(),
            query: self.query.as_bytes(),
            headers: &[],
            body: &self.body,
        };
        let tenant = Tenant::parse(&self.tenant).unwrap();
        salt.tenant_key(&tenant).fingerprint(&parts).as_bytes().to_vec()
    }
}

/// Visible ASCII of up to this many bytes.
fn name(random: &mut fastrand::Rng, longest: usize) -> String {
    let len = random.usize(1..=longest);
    let inner: String = (1..len).map(|_| random.char(' '..='~')).collect();
    inner + "!"
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_are_those_of_rust() {
    let mut random = fastrand::Rng::with_seed(1);
    let database = Postgres::empty().await;
    database.store().await;
    let mut names: Vec<_> = (0..ROUNDS)
        .map(|_| [name(&mut random, 255), name(&mut random, 1024), name(&mut random, 255)])
        .collect();
    names.push(["t".repeat(255), "s".repeat(1024), "k".repeat(255)]);
    let column = |at: usize| names.iter().map(|names| names[at].clone()).collect::<Vec<_>>();
    let ids = "SELECT array_agg(replace(hapax.operation_id(tenant, scope, key)::text, '-', '') ORDER BY n) \
               FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS r(tenant, scope, key, n)";
    let client = database.client().await;
    let row = client.query_one(ids, &[&column(0), &column(1), &column(2)]).await.unwrap();
    for ([tenant, scope, key], id) in names.iter().zip(row.get::<_, Vec<String>>(0)) {
        assert_eq!(id, named(tenant, scope, key).id().to_string());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_of_locks_are_those_of_rust() {
    let database = Postgres::empty().await;
    let salt = database.store().await.salt();
    let number = "SELECT hapax.lock_number(m.salt, $1, $2) FROM hapax.meta AS m";
    let client = database.client().await;
    let id = named("acme", "POST /pay", "key").id();
    for (kind, name) in
        [("event", "orders\nschl\u{fc}ssel"), ("operation", &id.to_string()), ("", "")]
    {
        let row = client.query_one(number, &[&kind, &name]).await.unwrap();
        assert_eq!(row.get::<_, i64>(0), salt.lock_number(kind, name), "{kind} {name}");
    }
    let operation = "SELECT hapax.operation_lock(m.salt, $1::text::uuid) FROM hapax.meta AS m";
    let row = client.query_one(operation, &[&id.to_string()]).await.unwrap();
    assert_eq!(row.get::<_, i64>(0), salt.lock_number("operation", &id.to_string()));
}

#[tokio::test(flavor = "multi_thread")]
async fn fingerprints_are_those_of_rust() {
    let mut random = fastrand::Rng::with_seed(2);
    let mut requests: Vec<_> = (0..ROUNDS).map(|_| Request::draw(&mut random)).collect();
    requests.push(Request { body: vec![0xe9; 1 << 20], ..Request::draw(&mut random) });
    let database = Postgres::empty().await;
    let salt = database.store().await.salt();
    let column = |of: fn(&Request) -> &String| requests.iter().map(of).cloned().collect::<Vec<_>>();
    let bodies: Vec<_> = requests.iter().map(|request| request.body.clone()).collect();
    let fingerprints = database
        .client()
        .await
        .query_one(
            "SELECT array_agg(hapax.fingerprint(tenant, method, path, query, body) ORDER BY n) \
             FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bytea[]) \
                  WITH ORDINALITY AS r(tenant, method, path, query, body, n)",
            &[
                &column(|request| &request.tenant),
                &column(|request| &request.method),
                &column(|request| &request.path),
                &column(|request| &request.query),
                &bodies,
            ],
        )
        .await
        .unwrap();
    for (request, fingerprint) in requests.iter().zip(fingerprints.get::<_, Vec<Vec<u8>>>(0)) {
        assert_eq!(
            fingerprint,
            request.fingerprint(salt),
            "{:?} {:?}",
            request.path,
            request.query
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fingerprint_does_not_depend_on_the_encoding_of_the_session() {
    let database = Postgres::empty().await;
    let salt = database.store().await.salt();
    let [method, query] = ["", "n=\u{e9}"].map(str::to_owned);
    let (tenant, path) = ("acme".to_owned(), "/zahl\u{fc}ng".to_owned());
    let request = Request { tenant, method, path, query, body: Vec::new() };
    let client = database.client().await;
    for encoding in ["UTF8", "LATIN1", "WIN1252"] {
        client.batch_execute(&format!("SET client_encoding = '{encoding}'")).await.unwrap();
        let asked = "SELECT hapax.fingerprint('acme', '', U&'/zahl\\00FCng', U&'n=\\00E9', '')";
        let row = client.query_typed(asked, &[]).await.unwrap().remove(0);
        assert_eq!(row.get::<_, Vec<u8>>(0), request.fingerprint(salt), "{encoding}");
    }
}
