//! What goes over the wire, seen from the other side.

use std::{
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use hapax_examine::{
    CutEnd, Examination, ExaminationBounds, ExchangeEnd, HttpAddress, ProbeRecord, ProbeVerdict,
    Wire, WireCut, WireProtocol,
};
use hapax_zoo::{RunningSpecies, Species};
use tokio::{io::AsyncWriteExt, net::TcpListener};

use crate::{relay::Relay, zoo, zoo_races::make_slow};

async fn start(species: &str) -> RunningSpecies {
    Species::named(species).unwrap().start().await.unwrap()
}

fn plain(address: std::net::SocketAddr) -> HttpAddress {
    HttpAddress { tls: false, host: "127.0.0.1".to_owned(), port: address.port() }
}

fn secure(address: std::net::SocketAddr) -> HttpAddress {
    HttpAddress { tls: true, host: "localhost".to_owned(), port: address.port() }
}

/// Runs probes at this address of a server.
async fn probed(mut examination: Examination, at: HttpAddress) -> Vec<ProbeRecord> {
    examination.api.addresses[0] = at;
    examination.bounds = ExaminationBounds {
        racers: vec![8],
        race_trials: 2,
        recovery: Duration::from_secs(5),
        ..examination.bounds
    };
    let cancelled = Arc::new(AtomicBool::new(false));
    let record = Arc::new(examination).run(Vec::new(), cancelled, |_| {}).await.unwrap();
    assert!(record.learned.is_some(), "{:?}", record.controls);
    record.probes
}

fn is_pass(record: &ProbeRecord) -> bool {
    matches!(record.verdict, ProbeVerdict::Pass { .. })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_request_ends_at_its_byte_and_as_it_was_to() {
    let running = start("honest").await;
    let relay = Relay::to(running.address).await;
    let probes = probed(zoo::examination(&running, &["V13"]), plain(relay.address)).await;
    assert!(is_pass(&probes[0]), "{:?}", probes[0].verdict);
    let mut sent: Vec<_> = probes[0]
        .exchanges
        .iter()
        .filter_map(|exchange| match exchange.cut? {
            WireCut::Request { bytes, end } => {
                Some((exchange.request[..bytes].to_vec(), end == CutEnd::Reset))
            }
            WireCut::Answer { .. } => None,
        })
        .collect();
    assert_eq!(sent.len(), 12, "four offsets, three ends");
    for came in relay.came_in() {
        let came = (came.bytes(), came.is_reset);
        if let Some(found) = sent.iter().position(|one| *one == came) {
            sent.remove(found);
        }
    }
    assert!(sent.is_empty(), "{sent:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_answer_is_read_up_to_its_byte() {
    let running = start("honest").await;
    let probes = probed(zoo::examination(&running, &["V12"]), plain(running.address)).await;
    let mut cuts = 0;
    for exchange in &probes[0].exchanges {
        if let (Some(WireCut::Answer { bytes, .. }), ExchangeEnd::BrokenOff { received }) =
            (exchange.cut, &exchange.end)
        {
            assert_eq!(received.len(), bytes);
            cuts += 1;
        }
    }
    assert_eq!(cuts, 12, "four offsets, three ends: {:?}", probes[0].verdict);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_frames_of_http2_duplicates_leave_in_one_write() {
    let running = start("honest").await;
    let relay = Relay::to(running.address).await;
    let probes = probed(zoo::examination(&running, &["V03"]), plain(relay.address)).await;
    assert!(is_pass(&probes[0]), "{:?}", probes[0].verdict);
    let is_http2 = |label: &str| label.starts_with("duplicate");
    let mut duplicates = probes[0].exchanges.iter().filter(|one| is_http2(&one.label));
    assert!(duplicates.all(|one| one.protocol == WireProtocol::Http2));
    // One byte of data, and the end of its stream.
    let frame = [0, 0, 1, 0, 1];
    let ends = |chunk: &Vec<u8>| chunk.windows(5).filter(|bytes| *bytes == frame).count();
    let races: Vec<_> = relay
        .came_in()
        .iter()
        .filter(|came| came.bytes().starts_with(b"PRI"))
        .map(|came| came.chunks.iter().map(ends).max().unwrap())
        .filter(|ends| *ends > 0)
        .collect();
    assert_eq!(races, [8, 8]);
}

#[tokio::test(flavor = "multi_thread")]
async fn pipelined_requests_leave_in_one_write() {
    let running = start("honest").await;
    let relay = Relay::to(running.address).await;
    let probes = probed(zoo::examination(&running, &["V31"]), plain(relay.address)).await;
    assert!(is_pass(&probes[0]), "{:?}", probes[0].verdict);
    let posts = |chunk: &Vec<u8>| chunk.windows(5).filter(|bytes| bytes == b"POST ").count();
    let most = relay.came_in().iter().flat_map(|came| &came.chunks).map(posts).max();
    assert_eq!(most, Some(3));
}

#[tokio::test(flavor = "multi_thread")]
async fn http2_is_found_where_it_is_spoken_and_nowhere_else() {
    let running = start("honest").await;
    let (both, certificate) = Relay::with_tls(running.address, &["h2", "http/1.1"]).await;
    let (old, old_certificate) = Relay::with_tls(running.address, &["http/1.1"]).await;
    let wire = Wire::new(&[certificate, old_certificate]).unwrap();
    assert!(wire.speaks_http2(&plain(running.address)).await);
    assert!(wire.speaks_http2(&secure(both.address)).await);
    assert!(!wire.speaks_http2(&secure(old.address)).await);

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let mut silent = Vec::new();
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            if silent.is_empty() {
                stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
            }
            silent.push(stream);
        }
    });
    assert!(!wire.speaks_http2(&plain(address)).await, "it refuses");
    assert!(!wire.speaks_http2(&plain(address)).await, "it is silent");
}

const OVER_TLS: &[&str] = &["V02", "V03", "V11", "V12", "V13", "V14", "V15", "V16", "V31", "V32"];

#[tokio::test(flavor = "multi_thread")]
async fn a_correct_server_passes_over_tls() {
    let running = start("honest").await;
    // So that a busy machine is fast enough to come while it works.
    make_slow(running.address, 150);
    let (relay, certificate) = Relay::with_tls(running.address, &["h2", "http/1.1"]).await;
    let wire = Wire::new(&[certificate]).unwrap();
    let examination = Examination { wire, ..zoo::examination(&running, OVER_TLS) };
    let probes = probed(examination, secure(relay.address)).await;
    let doubted: Vec<_> = probes
        .iter()
        .filter(|probe| !is_pass(probe))
        .map(|probe| (probe.probe.id, &probe.verdict, &probe.notes))
        .collect();
    assert!(doubted.is_empty(), "{doubted:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_are_found_over_tls() {
    let planted = [
        ("check-then-act", "V02"),
        ("check-then-act", "V03"),
        ("rolled-back-after-disconnect", "V11"),
        ("freed-when-answer-untaken", "V12"),
        ("pipelines-at-once", "V31"),
    ];
    for (species, probe) in planted {
        let running = start(species).await;
        let (relay, certificate) = Relay::with_tls(running.address, &["h2", "http/1.1"]).await;
        let wire = Wire::new(&[certificate]).unwrap();
        let examination = Examination { wire, ..zoo::examination(&running, &[probe]) };
        let probes = probed(examination, secure(relay.address)).await;
        let is_found = matches!(probes[0].verdict, ProbeVerdict::Fail { .. });
        assert!(is_found, "{species} {probe}: {:?}", probes[0].verdict);
    }
}

/// How close duplicates come depends on the machine, so it is shown and not asserted.
#[tokio::test(flavor = "multi_thread")]
async fn how_close_duplicates_come() {
    const CLOSE: Duration = Duration::from_micros(200);
    let running = start("honest").await;
    for racers in [50, 200] {
        let mut examination = zoo::examination(&running, &["V02"]);
        examination.bounds.racers = vec![racers];
        examination.bounds.race_trials = 10;
        let cancelled = Arc::new(AtomicBool::new(false));
        let record = Arc::new(examination).run(Vec::new(), cancelled, |_| {}).await.unwrap();
        let race = &record.probes[0];
        assert!(is_pass(race), "{:?}", race.verdict);
        let duplicates = race.exchanges.iter().filter(|one| one.label.starts_with("duplicate"));
        let mut sent: Vec<_> = duplicates.filter_map(|one| one.sent).collect();
        sent.sort();
        assert_eq!(sent.len(), racers);
        let middle = sent[racers / 2];
        let close = sent.iter().filter(|sent| sent.abs_diff(middle) <= CLOSE).count();
        let mut spreads = race.spreads.clone();
        spreads.sort();
        println!(
            "{racers} duplicates: {close} of the first race within {CLOSE:?} of their median; \
             first to last in all: {spreads:?}"
        );
    }
}
