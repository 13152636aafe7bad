//! The page: whole in itself, and nothing in it is the server's to decide.

use hapax_examine::{DefectClass, ExaminationRecord, ProbeVerdict, ReportDocument, render_html};

use super::{
    WHEN, answer, api, defect, exchange, forms::open_elements, probe, record, report, request,
};

#[test]
fn a_page_says_what_happened_and_what_to_do() {
    let html = render_html(&report());
    let places: Vec<_> = [
        "<div class=\"letter bad\">F</div>",
        "<code>POST http://127.0.0.1:8080/payments</code>",
        "What to mend",
        "Claim the key in one atomic step",
        "What was found",
        "One key had 2 effects",
        "<svg class=\"timeline\"",
        "What to do:",
        "What went over the wire (3 exchanges)",
        "How to see it again",
        "What could not be told",
        "What was not tried",
        "What was as it should be",
        "Why this grade, and what a better one takes",
        "How it was examined",
    ]
    .into_iter()
    .map(|part| html.find(part).ok_or(part))
    .collect();
    assert!(places.iter().all(Result::is_ok), "{places:?} in\n{html}");
    assert!(places.is_sorted(), "{places:?}");
    assert_eq!(open_elements(body_of(&html)), Vec::<String>::new());
}

#[test]
fn what_the_same_exchanges_show_is_pictured_once() {
    let defects = vec![
        defect(DefectClass::Safety, "two effects", &[1]),
        defect(DefectClass::Contract, "a `Retry-After` is missing", &[1]),
        defect(DefectClass::Hygiene, "the last", &[2]),
    ];
    let exchanges = vec![
        exchange(1, "first", (0, 9), answer(201, "{}")),
        exchange(2, "retry", (9, 19), answer(201, "{}")),
    ];
    let verdict = ProbeVerdict::Fail { trials: 1, defects };
    let record = ExaminationRecord { probes: vec![probe("V01", verdict, exchanges)], ..record() };
    let html = render_html(&ReportDocument::of(&record, &api(), WHEN));
    assert_eq!(html.matches("<svg class=\"timeline\"").count(), 2);
    assert!(html.contains("the same exchanges as <a href=\"#finding-1\">finding 1</a>"), "{html}");
    assert!(html.contains("2. A <code>Retry-After</code> is missing"), "{html}");
    // All three are mended by the same.
    assert_eq!(html.matches("(as for <a href=\"#finding-1\">finding 1</a>)").count(), 2);
    assert_eq!(open_elements(body_of(&html)), Vec::<String>::new());
}

#[test]
fn a_page_needs_nothing_else() {
    let html = render_html(&report());
    for word in ["<script", "<link", "<img", " src=", "url(", "@import", "href=\"http"] {
        assert!(!html.contains(word), "{word}");
    }
    assert!(html.contains("default-src 'none'"));
    assert!(html.contains("prefers-color-scheme: dark") && html.contains("@media print"));
}

#[test]
fn a_hostile_server_writes_no_markup() {
    const HOSTILE: &str =
        "</pre></style><script>alert(1)</script><img src=x onerror=\"a\"> ' & \u{1}";
    let mut attack = exchange(1, HOSTILE, (0, 9), answer(201, HOSTILE));
    attack.request = request("t", HOSTILE, HOSTILE);
    let mut hostile = probe(
        "V08",
        ProbeVerdict::Fail { trials: 1, defects: vec![defect(DefectClass::Safety, HOSTILE, &[1])] },
        vec![attack],
    );
    hostile.notes.push((std::time::Duration::from_millis(3), HOSTILE.to_owned()));
    let open = probe("V09", ProbeVerdict::inconclusive(HOSTILE), Vec::new());
    let record = ExaminationRecord {
        probes: vec![hostile, open],
        oracle_text: HOSTILE.to_owned(),
        ..record()
    };
    let mut api = api();
    api.key.name = HOSTILE.to_owned();
    api.path = HOSTILE.to_owned();
    let html = render_html(&ReportDocument::of(&record, &api, HOSTILE));
    for word in ["<script", "<img", "onerror=\"", "</pre></style>", "\u{1}"] {
        assert!(!html.contains(word), "{word} in {html}");
    }
    assert!(html.contains("&lt;script&gt;"));
    assert_eq!(open_elements(body_of(&html)), Vec::<String>::new());
}

#[test]
fn a_picture_has_a_lane_for_each_exchange_and_marks_for_what_was_done() {
    let html = render_html(&report());
    let pictures: Vec<_> = html
        .split("<svg class=\"timeline\"")
        .skip(1)
        .map(|rest| rest.split("</svg>").next().unwrap())
        .collect();
    let [race, kill, cut] = pictures.as_slice() else { unreachable!("three findings: {html}") };
    assert_eq!(race.matches("class=\"wait\"").count(), 3);
    assert!(race.contains("1 30.0 ms: 2 effects of hpx-1"), "{race}");
    // Duplicates that met, and that each named another effect.
    assert_eq!(race.matches("class=\"together\"").count(), 1);
    assert!(race.contains("201 (1)") && race.contains("201 (2)"), "{race}");
    assert_eq!(kill.matches("<line class=\"kill\"").count(), 1);
    assert_eq!(kill.matches("<line class=\"done\"").count(), 1);
    assert!(kill.contains("closed by the server") && kill.contains("no answer"), "{kill}");
    assert_eq!(cut.matches("class=\"cut\"").count(), 2);
}

#[test]
fn a_picture_of_many_exchanges_stays_a_picture() {
    let many: Vec<_> =
        (1..=100).map(|number| exchange(number, "duplicate", (0, 20), answer(201, "{}"))).collect();
    let verdict = ProbeVerdict::Fail {
        trials: 1,
        defects: vec![defect(DefectClass::Safety, "many effects", &[])],
    };
    let record = ExaminationRecord { probes: vec![probe("V02", verdict, many)], ..record() };
    let html = render_html(&ReportDocument::of(&record, &api(), WHEN));
    assert_eq!(html.matches("class=\"wait\"").count(), 24);
    assert!(html.contains("and 76 exchanges more") && html.contains("and 60 more"), "{html}");
}

/// Without its styles, in which `>` is no end of a tag.
fn body_of(html: &str) -> &str {
    html.split_once("</head>\n").unwrap().1.strip_suffix("</html>\n").unwrap()
}
