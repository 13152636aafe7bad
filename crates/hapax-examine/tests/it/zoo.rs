//! The zoo: each broken species fails by the probe that is meant for it, and correct ones fail none.

use std::{
    net::SocketAddr,
    sync::{Arc, atomic::AtomicBool},
    time::{Duration, SystemTime},
};

use futures_util::{StreamExt, stream};
use hapax_examine::{
    ApiCredentials, ApiUnderTest, BodyTemplate, CountByGet, DeclaredConduct, DefectClass,
    Examination, ExaminationBounds, ExaminationMemory, ExaminationRecord, Hook, Hooks, HttpAddress,
    JsonPath, KeyHeader, PROBES, Probe, ProbeRecord, ProbeVerdict, Wire,
};
use hapax_zoo::{RunningSpecies, SPECIES, Species};

/// Probes that are not run here: they need a server that is killed and started again, or are looked at beside this.
const ELSEWHERE: &[&str] = &[
    "V02", "V03", "V04", "V11", "V12", "V13", "V14", "V15", "V16", "V18", "V23", "V24", "V25",
    "V26", "V29", "V31", "V32",
];
/// Servers that are examined at once.
const SIDE_BY_SIDE: usize = 4;

fn bearer(name: &str) -> Vec<(String, String)> {
    vec![("Authorization".to_owned(), format!("Bearer {name}"))]
}

/// All that is known of a species from its contract.
pub(crate) fn examination(running: &RunningSpecies, only: &[&str]) -> Examination {
    examination_at([running.address, running.also], only)
}

pub(crate) fn examination_at(addresses: [SocketAddr; 2], only: &[&str]) -> Examination {
    let address = |at: SocketAddr| HttpAddress::parse(&format!("http://{at}/")).unwrap().0;
    let hook = |path: &str| {
        let url = format!("http://{}/_hooks/{path}", addresses[0]);
        Some(Hook::Request { method: "POST".to_owned(), url })
    };
    let wire = Wire::new(&[]).unwrap();
    let addresses: Vec<_> = addresses.into_iter().map(address).collect();
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
            credentials: ApiCredentials {
                main: bearer("alice"),
                other: Some(bearer("bob")),
                revoked: Some(bearer("revoked")),
            },
            id: Some(JsonPath::new("/id")),
            other_path: Some("/refunds".to_owned()),
            large_path: Some("/reports".to_owned()),
        },
        oracle: Some(Arc::new(oracle)),
        hooks: Hooks {
            fail_before: hook("fail?effect=before"),
            fail_after: hook("fail?effect=after"),
            slow: hook("slow?ms={milliseconds}"),
            fast: hook("slow?ms=20"),
            ..Hooks::default()
        },
        declared: DeclaredConduct {
            refusals_kept: Some(false),
            key_required: Some(true),
            ..DeclaredConduct::default()
        },
        bounds: ExaminationBounds {
            effects_max: 20_000,
            recovery: Duration::from_secs(5),
            ..ExaminationBounds::default()
        },
        only: only.iter().map(|name| Probe::named(name).unwrap()).collect(),
        seed: 7,
        wire,
        earlier: ExaminationMemory::default(),
        now: SystemTime::UNIX_EPOCH,
    }
}

/// What comes of a species when these probes are run; all if none is named.
pub(crate) async fn examined(name: &str, only: &[&str]) -> ExaminationRecord {
    examined_with(name, only, |_| {}).await
}

/// The same where something is known or given otherwise.
pub(crate) async fn examined_with(
    name: &str,
    only: &[&str],
    change: impl FnOnce(&mut Examination),
) -> ExaminationRecord {
    let running = Species::named(name).unwrap().start().await.unwrap();
    let mut examination = examination(&running, only);
    match name {
        "forgets-after-1000-keys" => examination.bounds.keys_between = 1100,
        // Its keys are stuck for ever, however long one waits.
        "marker-without-result" => examination.bounds.recovery = Duration::from_secs(1),
        _ => {}
    }
    change(&mut examination);
    let examination = Arc::new(examination);
    let record = examination.run(Vec::new(), Arc::new(AtomicBool::new(false)), |_| {});
    let record = record.await.unwrap();
    assert!(record.learned.is_some(), "{name}: {:?}", record.controls);
    record
}

fn runs_here(probe: &str) -> bool {
    !ELSEWHERE.contains(&probe)
}

fn is_failed(record: &ProbeRecord) -> bool {
    matches!(record.verdict, ProbeVerdict::Fail { .. })
}

/// What a probe said of a species, in a line.
fn line(name: &str, record: &ProbeRecord) -> String {
    let said = match &record.verdict {
        ProbeVerdict::Pass { trials } => format!("pass in {trials}"),
        ProbeVerdict::Fail { defects, .. } => {
            let defects =
                defects.iter().map(|one| format!("{} {}", one.class.name(), one.sentence));
            defects.collect::<Vec<_>>().join("; ")
        }
        ProbeVerdict::Inconclusive { reason } => format!("inconclusive: {reason}"),
    };
    format!("{name} {}: {said} {:?}", record.probe.id, record.notes)
}

/// Runs for each of these species the probes that are given with it, a few species at a time.
async fn the_whole_zoo(
    species: Vec<(&'static Species, Vec<&'static str>)>,
) -> Vec<(&'static Species, ExaminationRecord)> {
    let examinations = stream::iter(species).map(|(species, only)| async move {
        let record = tokio::spawn(async move { examined(species.name, &only).await }).await;
        (species, record.unwrap())
    });
    examinations.buffer_unordered(SIDE_BY_SIDE).collect().await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_planted_fault_is_found_by_the_probe_that_is_meant_for_it() {
    let broken = SPECIES.iter().filter(|species| !species.is_about_restarts);
    let meant = broken.filter_map(|species| {
        let found_by = species.fault.as_ref()?.found_by;
        let only: Vec<_> = found_by.iter().copied().filter(|probe| runs_here(probe)).collect();
        (found_by.first() == only.first()).then_some((species, only))
    });
    let mut missed = Vec::new();
    for (species, record) in the_whole_zoo(meant.collect()).await {
        let first = species.fault.as_ref().unwrap().found_by[0];
        let probe = record.probes.iter().find(|one| one.probe.id == first).unwrap();
        if !is_failed(probe) {
            missed.push(line(species.name, probe));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_found_in_correct_servers() {
    let all: Vec<_> = PROBES.iter().map(|probe| probe.id).filter(|id| runs_here(id)).collect();
    let correct = SPECIES.iter().filter(|species| !species.is_broken());
    let correct = correct.map(|species| (species, all.clone())).collect();
    let mut found = Vec::new();
    for (species, record) in the_whole_zoo(correct).await {
        let wrong =
            record.probes.iter().filter(|one| !matches!(one.verdict, ProbeVerdict::Pass { .. }));
        found.extend(wrong.map(|probe| line(species.name, probe)));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_fault_is_as_bad_as_what_it_does() {
    use DefectClass::{Contract, ContractHigh, Hygiene, Liveness, Safety};
    let expected = [
        ("no-idempotency", "V01", Safety),
        ("reads-keys-from-a-replica", "V01", Safety),
        ("replay-with-new-id", "V01", Safety),
        ("replay-reordered", "V01", Contract),
        ("replay-with-new-date", "V01", Contract),
        ("replay-with-other-status", "V01", Contract),
        ("marker-without-result", "V01", Liveness),
        ("no-mismatch-check", "V05", ContractHigh),
        ("mismatch-by-length", "V05", ContractHigh),
        ("reordered-json-500", "V06", Contract),
        ("route-blind", "V07", ContractHigh),
        ("tenant-blind", "V08", Safety),
        ("replay-before-authentication", "V09", Safety),
        ("revoked-token-replays", "V10", ContractHigh),
        ("invalid-body-burns-key", "V17", Contract),
        ("missing-key-accepted", "V19", Hygiene),
        ("bad-key-500", "V20", Contract),
        ("several-keys-accepted", "V20", Contract),
        ("key-truncated", "V20", Safety),
        ("key-case-folded", "V21", Safety),
        ("key-whitespace-removed", "V21", Safety),
        ("forgets-after-1000-keys", "V22", Safety),
        ("stores-cookie", "V27", Contract),
        ("stores-hop-by-hop", "V27", Contract),
        ("replay-cut-at-64-kib", "V28", Contract),
        ("client-date-in-key", "V30", Safety),
        ("forwarded-for-in-key", "V30", Safety),
    ];
    let all = expected.map(|(name, probe, _)| (Species::named(name).unwrap(), vec![probe]));
    let mut wrong = Vec::new();
    for (species, record) in the_whole_zoo(all.into()).await {
        let class = expected.iter().find(|(name, _, _)| *name == species.name).unwrap().2;
        let ProbeVerdict::Fail { defects, .. } = &record.probes[0].verdict else {
            wrong.push(line(species.name, &record.probes[0]));
            continue;
        };
        let is_shown =
            |number: &u32| record.probes[0].exchanges.iter().any(|one| one.number == *number);
        let is_witnessed = defects.iter().all(|one| one.shown_by.iter().all(is_shown));
        if defects.iter().map(|one| one.class).min() != Some(class) || !is_witnessed {
            wrong.push(line(species.name, &record.probes[0]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What a fault does that other probes see as well: an answer that is none, an effect that nobody counts once.
const ALSO_FOUND: &[(&str, &[&str])] = &[
    ("no-idempotency", &["V05", "V06", "V22", "V28", "V30"]),
    ("reads-keys-from-a-replica", &["V05", "V06", "V22", "V28", "V30"]),
    ("replay-with-new-id", &["V06", "V22", "V28", "V30"]),
    ("replay-reordered", &["V28"]),
    ("replay-with-new-date", &["V28"]),
    ("replay-with-other-status", &["V28"]),
    ("marker-without-result", &["V28"]),
    ("bad-key-500", &["V21"]),
    ("replay-before-authentication", &["V10"]),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_is_found_by_no_probe_that_asks_about_something_else() {
    let all: Vec<_> = PROBES.iter().map(|probe| probe.id).filter(|id| runs_here(id)).collect();
    let broken = SPECIES.iter().filter(|species| species.is_broken());
    let mut found = Vec::new();
    for (species, record) in the_whole_zoo(broken.map(|one| (one, all.clone())).collect()).await {
        let also = ALSO_FOUND.iter().find(|(name, _)| *name == species.name);
        let also = also.map_or(&[][..], |(_, probes)| probes);
        let meant = species.fault.as_ref().unwrap().found_by;
        let is_meant =
            |one: &&ProbeRecord| meant.contains(&one.probe.id) || also.contains(&one.probe.id);
        let failed = record.probes.iter().filter(|one| is_failed(one) && !is_meant(one));
        found.extend(failed.map(|probe| line(species.name, probe)));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Runs one probe where nobody counts effects, and answers name theirs or not.
async fn uncounted(name: &'static str, probe: &'static str, is_named: bool) -> ProbeRecord {
    let uncounted = |examination: &mut Examination| {
        examination.oracle = None;
        examination.api.id = examination.api.id.take().filter(|_| is_named);
    };
    examined_with(name, &[probe], uncounted).await.probes.remove(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nobody_counts_answers_alone_are_judged() {
    let broken = [
        ("no-idempotency", "V01"),
        ("no-mismatch-check", "V05"),
        ("mismatch-by-length", "V05"),
        ("reordered-json-500", "V06"),
        ("route-blind", "V07"),
        ("tenant-blind", "V08"),
        ("replay-before-authentication", "V09"),
        ("revoked-token-replays", "V10"),
        ("missing-key-accepted", "V19"),
        ("key-truncated", "V20"),
        ("key-case-folded", "V21"),
        ("forgets-after-1000-keys", "V22"),
        ("stores-cookie", "V27"),
        ("replay-cut-at-64-kib", "V28"),
        ("client-date-in-key", "V30"),
    ];
    let probes = broken.map(|(_, probe)| ("honest", probe));
    let cases = broken.into_iter().map(|case| (case, true)).chain(probes.map(|case| (case, false)));
    let cases = cases.flat_map(|case| [(case, true), (case, false)]);
    let judged = stream::iter(cases).map(|(((name, probe), is_broken), is_named)| async move {
        (name, is_broken, uncounted(name, probe, is_named).await)
    });
    let judged: Vec<_> = judged.buffer_unordered(SIDE_BY_SIDE).collect().await;
    let wrong = judged.iter().filter(|(_, is_broken, probe)| is_failed(probe) != *is_broken);
    let wrong: Vec<_> = wrong.map(|(name, _, probe)| line(name, probe)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_declared_is_no_defect() {
    let kept =
        |kept| move |examination: &mut Examination| examination.declared.refusals_kept = kept;
    let needed =
        |needed| move |examination: &mut Examination| examination.declared.key_required = needed;
    let records = [
        (true, examined_with("invalid-body-burns-key", &["V17"], kept(None)).await),
        (true, examined_with("invalid-body-burns-key", &["V17"], kept(Some(true))).await),
        (true, examined_with("honest", &["V17"], kept(None)).await),
        (false, examined_with("honest", &["V17"], kept(Some(true))).await),
        (true, examined_with("missing-key-accepted", &["V19"], needed(Some(false))).await),
        (false, examined_with("missing-key-accepted", &["V19"], needed(None)).await),
    ];
    for (passes, record) in records {
        let has_passed = matches!(record.probes[0].verdict, ProbeVerdict::Pass { .. });
        assert_eq!(has_passed, passes, "{}", line("", &record.probes[0]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_whose_keys_are_uuids_is_sent_uuids() {
    let only = ["V01", "V20", "V21", "V22"];
    let record =
        examined_with("honest", &only, |examination| examination.api.key.uuids = true).await;
    for probe in &record.probes {
        let has_passed = matches!(probe.verdict, ProbeVerdict::Pass { .. });
        assert!(has_passed, "{}", line("honest", probe));
    }
}
