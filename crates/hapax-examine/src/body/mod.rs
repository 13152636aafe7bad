//! Other bodies for the same operation: with another value, in another order, and such that an API refuses them.
//!
//! Whatever is not meant to be another stays as it was written, byte by byte, and the marker stays in any case.

use std::ops::Range;

use self::places::{BodyPlaces, TemplateForm};
use crate::{BodyTemplate, ExamRequest};

mod places;

/// Most numbers and strings of a body that are changed in turn.
const PLACES_MAX: usize = 3;

/// A body that differs from the one it was made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OtherBody {
    /// What differs, in words: `101 instead of 100`.
    pub(crate) what: String,
    /// The body.
    pub(crate) text: String,
}

/// Bodies of the same length with another value, those to be tried first before the others.
pub(crate) fn changed_in_place(template: &BodyTemplate, request: &ExamRequest) -> Vec<OtherBody> {
    changed(template, request, neighbour_of_number, neighbour_of_text, false)
}

/// Bodies of another length with another value.
pub(crate) fn changed_in_length(template: &BodyTemplate, request: &ExamRequest) -> Vec<OtherBody> {
    let longer = |text: &str| Some(format!("{text}x"));
    changed(template, request, number_of_other_length, longer, true)
}

/// The same content with its members in another order and, in JSON, other whitespace; nothing if it has no members.
pub(crate) fn reordered(template: &BodyTemplate, request: &ExamRequest) -> Option<String> {
    let text = str::from_utf8(&request.body).ok()?;
    let places = BodyPlaces::read(template, text)?;
    let members: Vec<_> = places.members.iter().rev().map(|member| &text[member.clone()]).collect();
    match places.form {
        TemplateForm::Json => {
            (!members.is_empty()).then(|| format!(" {{\n\t{} \n}}\n", members.join(" ,\n\t")))
        }
        TemplateForm::Pairs => (members.len() > 1).then(|| members.join("&")),
    }
}

/// Bodies that an API ought to refuse, the likeliest first.
pub(crate) fn refusable(template: &BodyTemplate, request: &ExamRequest) -> Vec<OtherBody> {
    if let Some(given) = &template.invalid {
        let text = given.replace("{marker}", &request.marker);
        return vec![OtherBody { what: "the invalid body that was given".to_owned(), text }];
    }
    let Ok(text) = str::from_utf8(&request.body) else { return Vec::new() };
    let Some(places) = BodyPlaces::read(template, text) else { return Vec::new() };
    let is_marker = |place: &&Range<usize>| text[(*place).clone()].contains(&request.marker);
    let dropped = places.members.iter().filter(|place| !is_marker(place)).take(PLACES_MAX);
    let mut bodies: Vec<_> = dropped
        .map(|dropped| {
            let kept = places.members.iter().filter(|member| *member != dropped);
            let kept: Vec<_> = kept.map(|member| &text[member.clone()]).collect();
            let what = format!("without {}", &text[dropped.clone()]);
            OtherBody { what, text: places.form.joined(&kept) }
        })
        .collect();
    bodies.extend(places.numbers.first().map(|number| {
        let value = &text[number.clone()];
        let other = places.form.text(&format!("x{value}"));
        let what = format!("{other} instead of {value}");
        OtherBody { what, text: replaced(text, number, &other) }
    }));
    bodies
}

fn changed(
    template: &BodyTemplate,
    request: &ExamRequest,
    number: fn(&str) -> Option<String>,
    string: fn(&str) -> Option<String>,
    adds_member: bool,
) -> Vec<OtherBody> {
    let Ok(text) = str::from_utf8(&request.body) else { return Vec::new() };
    if let Some(given) = &template.changed {
        let given = given.replace("{marker}", &request.marker);
        let what = "the changed body that was given".to_owned();
        return vec![OtherBody { what, text: given }];
    }
    let Some(places) = BodyPlaces::read(template, text) else { return Vec::new() };
    let is_marker = |place: &&Range<usize>| text[(*place).clone()].contains(&request.marker);
    let numbers = places.numbers.iter().take(PLACES_MAX).map(|place| (place, number));
    let strings = places.strings.iter().filter(|place| !is_marker(place)).take(PLACES_MAX);
    let changed = numbers.chain(strings.map(|place| (place, string)));
    let mut bodies: Vec<_> = changed
        .filter_map(|(place, change)| {
            let value = &text[place.clone()];
            let other = change(value)?;
            let what = format!("{other} instead of {value}");
            Some(OtherBody { what, text: replaced(text, place, &other) })
        })
        .collect();
    if let Some(first) = places.members.first().filter(|_| adds_member) {
        let another = places.form.another_member();
        let text = format!("{}{another}{}", &text[..first.start], &text[first.start..]);
        bodies.push(OtherBody { what: "one more member".to_owned(), text });
    }
    // What was put together may be none: a number of JSON may not begin with 0.
    bodies.retain(|body| BodyPlaces::read(template, &body.text).is_some());
    bodies
}

/// A number next to this one that is written with as many characters.
fn neighbour_of_number(number: &str) -> Option<String> {
    neighbour(number, |last| last.is_ascii_digit())
}

/// A text next to this one that is written with as many characters.
fn neighbour_of_text(text: &str) -> Option<String> {
    neighbour(text, |last| last.is_ascii_alphanumeric())
}

fn neighbour(text: &str, is_changed: fn(char) -> bool) -> Option<String> {
    let last = text.chars().last().filter(|last| is_changed(*last))?;
    let other = match last {
        '9' => '8',
        'z' => 'y',
        'Z' => 'Y',
        other => char::from_u32(u32::from(other) + 1)?,
    };
    Some(format!("{}{other}", text.strip_suffix(last)?))
}

/// A smaller number where there is one, because a limit may stand above.
fn number_of_other_length(number: &str) -> Option<String> {
    let is_plain = number.len() > 1 && number.bytes().all(|byte| byte.is_ascii_digit());
    let is_zero = number == "0";
    Some(match number.get(..number.len() - 1) {
        Some(shorter) if is_plain => shorter.to_owned(),
        Some(_) | None if is_zero => "10".to_owned(),
        Some(_) | None => format!("{number}1"),
    })
}

fn replaced(text: &str, place: &Range<usize>, by: &str) -> String {
    format!("{}{by}{}", &text[..place.start], &text[place.end..])
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn template(text: &str) -> BodyTemplate {
        BodyTemplate {
            content_type: "application/json".to_owned(),
            text: text.to_owned(),
            changed: None,
            invalid: None,
        }
    }

    fn request(text: &str) -> ExamRequest {
        let mut request = ExamRequest::get("/", Vec::new());
        request.marker = "m-1".to_owned();
        request.with_body(text.replace("{marker}", "m-1"))
    }

    fn texts(bodies: Vec<OtherBody>) -> Vec<String> {
        bodies.into_iter().map(|body| body.text).collect()
    }

    const PAYMENT: &str =
        r#"{"amount": 100, "to": {"name": "a\"b:9", "at": [1.5]}, "ref": "{marker}"}"#;

    #[test]
    fn a_value_is_changed_where_it_stands() {
        let made = texts(changed_in_place(&template(PAYMENT), &request(PAYMENT)));
        assert_eq!(
            made,
            [
                r#"{"amount": 101, "to": {"name": "a\"b:9", "at": [1.5]}, "ref": "m-1"}"#,
                r#"{"amount": 100, "to": {"name": "a\"b:9", "at": [1.6]}, "ref": "m-1"}"#,
                r#"{"amount": 100, "to": {"name": "a\"b:8", "at": [1.5]}, "ref": "m-1"}"#,
            ]
        );
        assert!(made.iter().all(|body| body.len() == request(PAYMENT).body.len()));
    }

    #[test]
    fn a_value_is_changed_in_its_length() {
        let made = texts(changed_in_length(&template(PAYMENT), &request(PAYMENT)));
        assert_eq!(
            made[0],
            r#"{"amount": 10, "to": {"name": "a\"b:9", "at": [1.5]}, "ref": "m-1"}"#
        );
        assert!(made.iter().all(|body| body.len() != request(PAYMENT).body.len()));
        assert!(made.iter().all(|body| body.contains("m-1")));
    }

    #[test]
    fn where_there_is_nothing_but_the_marker_a_member_is_added() {
        let text = r#"{"ref":"{marker}"}"#;
        assert_eq!(texts(changed_in_place(&template(text), &request(text))), [""; 0]);
        assert_eq!(
            texts(changed_in_length(&template(text), &request(text))),
            [r#"{"note":"changed","ref":"m-1"}"#]
        );
    }

    #[test]
    fn members_are_reordered_and_stay_the_same() {
        let other = reordered(&template(PAYMENT), &request(PAYMENT)).unwrap();
        let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        assert_eq!(value(&other), value(&PAYMENT.replace("{marker}", "m-1")));
        assert!(other.find("ref") < other.find("amount"), "{other}");
    }

    #[test]
    fn a_body_to_be_refused_lacks_a_member_and_keeps_the_marker() {
        let made = texts(refusable(&template(PAYMENT), &request(PAYMENT)));
        assert_eq!(
            made,
            [
                r#"{"to": {"name": "a\"b:9", "at": [1.5]},"ref": "m-1"}"#,
                r#"{"amount": 100,"ref": "m-1"}"#,
                r#"{"amount": "x100", "to": {"name": "a\"b:9", "at": [1.5]}, "ref": "m-1"}"#,
            ]
        );
    }

    #[test]
    fn what_is_neither_json_nor_pairs_is_left_alone() {
        let text = "<payment ref=\"{marker}\">100</payment>";
        assert_eq!(texts(changed_in_place(&template(text), &request(text))), [""; 0]);
        assert_eq!(reordered(&template(text), &request(text)), None);
    }

    #[test]
    fn pairs_of_a_form_are_changed_as_members_are() {
        let text = "currency=eur&amount=100&metadata[ref]={marker}";
        let mut form = template(text);
        form.content_type = "application/x-www-form-urlencoded".to_owned();
        assert_eq!(
            texts(changed_in_place(&form, &request(text))),
            [
                "currency=eur&amount=101&metadata[ref]=m-1",
                "currency=eus&amount=100&metadata[ref]=m-1"
            ]
        );
        assert_eq!(
            texts(changed_in_length(&form, &request(text)))[0],
            "currency=eur&amount=10&metadata[ref]=m-1"
        );
        assert_eq!(
            reordered(&form, &request(text)).unwrap(),
            "metadata[ref]=m-1&amount=100&currency=eur"
        );
        assert_eq!(
            texts(refusable(&form, &request(text))),
            [
                "amount=100&metadata[ref]=m-1",
                "currency=eur&metadata[ref]=m-1",
                "currency=eur&amount=x100&metadata[ref]=m-1",
            ]
        );
    }

    #[test]
    fn given_bodies_are_preferred() {
        let mut given = template(PAYMENT);
        given.changed = Some("amount=7&ref={marker}".to_owned());
        given.invalid = Some("ref={marker}".to_owned());
        assert_eq!(texts(changed_in_place(&given, &request(PAYMENT))), ["amount=7&ref=m-1"]);
        assert_eq!(texts(refusable(&given, &request(PAYMENT))), ["ref=m-1"]);
    }
}
