//! Before anything is graded: what is wrong with the API, or with who counts, is said in a sentence.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, UNIX_EPOCH},
};

use hapax_examine::{
    ApiCredentials, ApiUnderTest, BodyTemplate, CountByGet, DeclaredConduct, Examination,
    ExaminationBounds, ExaminationMemory, ExaminationRecord, Hooks, HttpAddress, JsonPath,
    KeyHeader, KeySyntax, Probe, ProbeVerdict, Wire,
};
use tokio::time::Instant;

use crate::played_api::{PlayedAnswer, PlayedApi, PlayedRequest, json, nobody};

/// Keys with their ids, and effects with the time they happened at.
#[derive(Debug, Default)]
struct PlayedPayments {
    answers: HashMap<String, String>,
    effects: Vec<(String, Instant)>,
}

impl PlayedPayments {
    /// The answer to a payment: as before for a key that is known.
    fn pay(&mut self, name: &str, marker: String) -> PlayedAnswer {
        let id = self.effects.len();
        if let Some(answer) = self.answers.get(name) {
            return json(201, answer.clone());
        }
        self.effects.push((marker, Instant::now()));
        let answer = format!("{{\"id\":\"p-{id}\"}}");
        self.answers.insert(name.to_owned(), answer.clone());
        json(201, answer)
    }

    /// How many there are that are so old.
    fn count(&self, marker: &str, age: Duration) -> PlayedAnswer {
        let of = |effect: &&(String, Instant)| effect.0 == marker && effect.1.elapsed() >= age;
        counted(self.effects.iter().filter(of).count())
    }
}

fn counted(count: usize) -> PlayedAnswer {
    json(200, format!("{{\"count\":{count}}}"))
}

/// A correct API, of which a case replaces what it is asked in a certain way.
fn correct(
    replaced: impl Fn(&PlayedRequest) -> Option<PlayedAnswer> + Send + Sync + 'static,
) -> impl Fn(&PlayedRequest) -> PlayedAnswer + Send + Sync {
    let payments = Mutex::new(PlayedPayments::default());
    move |asked| {
        if let Some(other) = replaced(asked) {
            return other;
        }
        let mut payments = payments.lock().unwrap();
        match asked.line.starts_with("GET") {
            true => payments.count(&asked.marker(), Duration::ZERO),
            false => match asked.header("Idempotency-Key") {
                Some(key) => payments.pay(key, asked.marker()),
                None => json(400, "{}"),
            },
        }
    }
}

fn is_count(asked: &PlayedRequest) -> bool {
    asked.line.starts_with("GET")
}

async fn examined(address: &HttpAddress) -> ExaminationRecord {
    let wire = Wire::new(&[]).unwrap();
    let oracle = CountByGet {
        wire: wire.clone(),
        address: address.clone(),
        path: "/payments?ref={marker}".to_owned(),
        headers: Vec::new(),
        pointer: JsonPath::new("/count"),
    };
    let examination = Examination {
        api: ApiUnderTest {
            addresses: vec![address.clone()],
            method: "POST".to_owned(),
            path: "/payments".to_owned(),
            headers: Vec::new(),
            body: BodyTemplate {
                content_type: "application/json".to_owned(),
                text: r#"{"amount":100,"ref":"{marker}"}"#.to_owned(),
                changed: None,
                invalid: None,
            },
            key: KeyHeader {
                name: "Idempotency-Key".to_owned(),
                syntax: None,
                uuids: false,
                first_sent: None,
            },
            credentials: ApiCredentials::default(),
            id: Some(JsonPath::new("/id")),
            other_path: None,
            large_path: None,
        },
        oracle: Some(Arc::new(oracle)),
        hooks: Hooks::default(),
        declared: DeclaredConduct::default(),
        bounds: ExaminationBounds::default(),
        only: vec![Probe::named("V01").unwrap()],
        seed: 7,
        wire,
        earlier: ExaminationMemory::default(),
        now: UNIX_EPOCH,
    };
    let cancelled = Arc::new(AtomicBool::new(false));
    Arc::new(examination).run(Vec::new(), cancelled, |_| {}).await.unwrap()
}

/// Nothing is graded: this control says why, in words that hold this.
async fn check_refuted(address: &HttpAddress, control: &str, words: &str) {
    let record = examined(address).await;
    let last = record.controls.last().unwrap();
    let why = last.refutation().unwrap_or_else(|| panic!("{:?}", record.controls));
    assert_eq!(last.id, control, "{why}");
    assert!(why.contains(words), "`{why}` does not say `{words}`");
    assert!(record.probes.is_empty() && record.learned.is_none());
}

async fn check_api(
    answer: impl Fn(&PlayedRequest) -> PlayedAnswer + Send + Sync + 'static,
    control: &str,
    words: &str,
) {
    let api = PlayedApi::start(answer).await;
    check_refuted(&api.address, control, words).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_correct_api_is_graded() {
    let api = PlayedApi::start(correct(|_| None)).await;
    let record = examined(&api.address).await;
    assert_eq!(record.probes[0].verdict, ProbeVerdict::Pass { trials: 3 }, "{record:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_that_wants_its_keys_quoted_is_asked_so() {
    let is_bare = |asked: &PlayedRequest| {
        asked.header("Idempotency-Key").is_some_and(|key| !key.starts_with('"'))
    };
    let api = PlayedApi::start(correct(move |asked| is_bare(asked).then(|| json(400, "{}")))).await;
    let record = examined(&api.address).await;
    assert_eq!(record.learned.unwrap().syntax, KeySyntax::Quoted);
    assert_eq!(record.probes[0].verdict, ProbeVerdict::Pass { trials: 3 });
}

#[tokio::test(flavor = "multi_thread")]
async fn effects_that_are_counted_late_are_waited_for() {
    let payments = Mutex::new(PlayedPayments::default());
    let late = move |asked: &PlayedRequest| {
        let mut payments = payments.lock().unwrap();
        match asked.header("Idempotency-Key") {
            Some(key) => payments.pay(key, asked.marker()),
            None if is_count(asked) => payments.count(&asked.marker(), Duration::from_millis(700)),
            None => json(400, "{}"),
        }
    };
    let api = PlayedApi::start(late).await;
    let record = examined(&api.address).await;
    let lag = record.learned.as_ref().unwrap().count_lag;
    assert!(lag >= Duration::from_millis(300), "{lag:?} {:?}", record.controls);
    assert_eq!(record.probes[0].verdict, ProbeVerdict::Pass { trials: 3 }, "{record:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_not_there_is_not_reached() {
    check_refuted(&nobody().await, "C4", "was not reached").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_nobody_trusts_is_named() {
    let api = PlayedApi::start_tls(correct(|_| None)).await;
    check_refuted(&api.address, "C4", "TLS with https://localhost").await;
    check_refuted(&api.address, "C4", "trust its certificate").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_speaks_no_tls_is_told_from_who_is_not_trusted() {
    let api = PlayedApi::start(correct(|_| None)).await;
    let address = HttpAddress { tls: true, ..api.address.clone() };
    check_refuted(&address, "C4", "give http:// if it speaks no TLS").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_speaks_only_tls_is_asked_whether_it_does() {
    let api = PlayedApi::start_tls(correct(|_| None)).await;
    let address = HttpAddress { tls: false, ..api.address.clone() };
    check_refuted(&address, "C4", "is it http").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_closes_without_an_answer_is_no_api() {
    check_api(|_| None, "C4", "does not answer an ordinary request").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirection_says_where_to() {
    let moved = |_: &PlayedRequest| {
        Some((308, "Location: https://api.example/v2\r\n".into(), String::new()))
    };
    check_api(moved, "C4", "it redirects (308) to https://api.example/v2").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_wants_credentials_says_so() {
    check_api(|_| json(401, "{}"), "C4", "give credentials").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nothing_is_nothing_is_graded() {
    check_api(|_| json(404, "{}"), "C4", "look at method and path").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_limits_from_the_first_request_on_is_known_by_it() {
    check_api(|_| json(429, "{}"), "C4", "it limits how often it is asked").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_limits_after_a_few_requests_is_known_by_it_as_well() {
    let asked_so_far = AtomicUsize::new(0);
    let limited = correct(move |asked| {
        let is_over = !is_count(asked) && asked_so_far.fetch_add(1, Ordering::Relaxed) >= 4;
        is_over.then(|| json(429, "{}"))
    });
    check_api(limited, "C3", "it limits how often it is asked").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_never_has_success_shows_what_it_says() {
    check_api(|_| json(500, "out of memory"), "C4", "answered with 500: out of memory").await;
    check_api(|_| json(422, "no amount"), "C4", "look at its body").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_success_at_times_only_tells_nothing() {
    let asked_so_far = AtomicUsize::new(1);
    let flaky = correct(move |asked| {
        let is_third =
            !is_count(asked) && asked_so_far.fetch_add(1, Ordering::Relaxed).is_multiple_of(3);
        is_third.then(|| json(500, "{}"))
    });
    check_api(flaky, "C3", "succeed at times only").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_no_success_twice_in_a_row_is_not_taken_for_idempotent() {
    let asked_so_far = AtomicUsize::new(1);
    // The first, the one of the count, five samples, and the first of two keys have.
    let failing = correct(move |asked| {
        let is_last = !is_count(asked) && asked_so_far.fetch_add(1, Ordering::Relaxed) > 8;
        is_last.then(|| json(500, "{}"))
    });
    check_api(failing, "C0", "succeed at times only").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_that_is_idempotent_by_itself_is_no_subject() {
    let payments = Mutex::new(PlayedPayments::default());
    let put = move |asked: &PlayedRequest| {
        let mut payments = payments.lock().unwrap();
        match is_count(asked) {
            true => payments.count(&asked.marker(), Duration::ZERO),
            false => payments.pay(&asked.marker(), asked.marker()),
        }
    };
    check_api(put, "C0", "idempotent by itself").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_count_that_is_always_the_same_is_not_believed() {
    let none = correct(|asked| is_count(asked).then(|| counted(0)));
    check_api(none, "C3", "no effect was counted").await;
    let one = correct(|asked| is_count(asked).then(|| counted(1)));
    check_api(one, "C2", "that nobody asked for").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_count_of_everything_is_not_believed() {
    let all = AtomicUsize::new(0);
    let counting = correct(move |asked| {
        if is_count(asked) {
            return Some(counted(all.load(Ordering::Relaxed)));
        }
        all.fetch_add(1, Ordering::Relaxed);
        None
    });
    check_api(counting, "C2", "it must count those of {marker} alone").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_count_that_moves_by_itself_is_not_believed() {
    let moved = AtomicUsize::new(0);
    let growing = correct(move |asked| {
        let is_asked = is_count(asked) && !asked.line.ends_with("never");
        is_asked.then(|| counted(moved.fetch_add(1, Ordering::Relaxed) + 1))
    });
    check_api(growing, "C2", "moves by itself").await;
    let left = AtomicUsize::new(2);
    let shrinking = correct(move |asked| {
        let is_asked = is_count(asked) && !asked.line.ends_with("never");
        is_asked.then(|| counted(left.fetch_sub(1, Ordering::Relaxed)))
    });
    check_api(shrinking, "C2", "moves by itself").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_count_that_cannot_be_asked_for_is_refuted() {
    let forbidden = correct(|asked| is_count(asked).then(|| json(403, "{}")));
    check_api(forbidden, "C2", "wants to know who asks (403)").await;
    let text = correct(|asked| is_count(asked).then(|| json(200, "none")));
    check_api(text, "C2", "is no JSON").await;
    let other = correct(|asked| is_count(asked).then(|| json(200, r#"{"total":1}"#)));
    check_api(other, "C2", "no number and no array at `/count`").await;
}
