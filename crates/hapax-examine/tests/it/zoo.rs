//! The zoo: each broken species fails by the probe that is meant for it, and correct ones fail none.

use std::sync::{Arc, atomic::AtomicBool};

use hapax_examine::{
    ApiUnderTest, BodyTemplate, CountByGet, Credentials, DeclaredConduct, Examination,
    ExaminationBounds, ExaminationRecord, Hooks, HttpAddress, JsonPath, KeyHeader, Probe,
    ProbeVerdict, Wire,
};
use hapax_zoo::{RunningSpecies, Species};

fn bearer(name: &str) -> Vec<(String, String)> {
    vec![("Authorization".to_owned(), format!("Bearer {name}"))]
}

pub(crate) fn examination(running: &RunningSpecies, only: &[&str]) -> Examination {
    let address =
        |at: std::net::SocketAddr| HttpAddress::parse(&format!("http://{at}/")).unwrap().0;
    let wire = Wire::new(&[]).unwrap();
    let addresses = vec![address(running.address), address(running.also)];
    let oracle = CountByGet {
        wire: wire.clone(),
        address: addresses[0].clone(),
        path: "/payments?ref={marker}".to_owned(),
        headers: Vec::new(),
        pointer: JsonPath::new("/items/length"),
    };
    Examination {
        api: ApiUnderTest {
            addresses,
            method: "POST".to_owned(),
            path: "/payments".to_owned(),
            headers: Vec::new(),
            body: BodyTemplate {
                content_type: "application/json".to_owned(),
                text: r#"{"amount":100,"currency":"EUR","ref":"{marker}"}"#.to_owned(),
                changed: None,
                invalid: None,
            },
            key: KeyHeader {
                name: "Idempotency-Key".to_owned(),
                syntax: None,
                uuids: false,
                first_sent: None,
            },
            credentials: Credentials {
                main: bearer("alice"),
                other: Some(bearer("bob")),
                revoked: Some(bearer("revoked")),
            },
            id: Some(JsonPath::new("/id")),
            other_path: Some("/refunds".to_owned()),
            large_path: Some("/reports".to_owned()),
        },
        oracle: Some(Arc::new(oracle)),
        hooks: Hooks::default(),
        declared: DeclaredConduct::default(),
        bounds: ExaminationBounds::default(),
        only: only.iter().map(|name| Probe::named(name).unwrap()).collect(),
        seed: 7,
        wire,
    }
}

pub(crate) async fn examined(name: &str, only: &[&str]) -> ExaminationRecord {
    let running = Species::named(name).unwrap().start().await.unwrap();
    let examination = Arc::new(examination(&running, only));
    examination.run(Vec::new(), Arc::new(AtomicBool::new(false)), |_| {}).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_honest_server_passes() {
    let record = examined("honest", &["V01"]).await;
    assert!(record.learned.is_some(), "{:?}", record.controls);
    assert_eq!(
        record.probes[0].verdict,
        ProbeVerdict::Pass { trials: 1 },
        "{:?}",
        record.probes[0]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_idempotency_is_found() {
    let record = examined("no-idempotency", &["V01"]).await;
    assert!(matches!(record.probes[0].verdict, ProbeVerdict::Fail { .. }), "{record:?}");
}
