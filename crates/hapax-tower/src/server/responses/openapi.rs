//! What the layer adds to the operations of an API, as a document of OpenAPI.

use std::collections::HashMap;

use http::Method;
use serde_json::{Map, Value, json};

use crate::server::{
    dialect::Dialect,
    options::{BodyForm, InFlight, KeyRule, Protection},
    requests::{
        key_format,
        route::{Route, Routes},
        tenancy::Tenancy,
    },
    responses::{
        code::Code,
        dialects::{described_in, status_in},
    },
};

/// The headers and refusals of the protected routes: a document of its own, to be merged into the
/// one of the API.
///
/// Routes that OpenAPI has no words for, because they end in `*` or have a method it does not know,
/// are listed under `x-idempotency-routes`.
///
/// ```
/// use hapax_tower::{Protection, Routes, Tenancy, Treatment, openapi_fragment};
/// use http::Method;
///
/// let payments = Treatment::Protect(Protection::default());
/// let routes = Routes::default().route(Method::POST, "/payments", payments)?;
/// let fragment = openapi_fragment(&routes, &Tenancy::credential());
/// assert!(fragment["paths"]["/payments"]["post"].is_object());
/// # Ok::<(), hapax_tower::InvalidRoute>(())
/// ```
pub fn openapi_fragment(routes: &Routes, tenancy: &Tenancy) -> Value {
    let (mut paths, mut others) = (Map::new(), Vec::new());
    let mut templates = PathTemplates::default();
    for route in routes.all() {
        let Some(protection) = route.treated.protection() else { continue };
        let is_shared = protection.tenancy.as_ref().unwrap_or(tenancy).is_shared();
        let described = operation(protection, is_shared);
        match (method_name(&route.method), templates.of(route)) {
            (Some(method), Some(PathTemplate { path, names })) => {
                let mut described = described;
                let known = names.iter().map(|name| path_parameter(name));
                if let Some(parameters) = described["parameters"].as_array_mut() {
                    parameters.splice(0..0, known);
                }
                paths.entry(path).or_insert_with(|| json!({}))[method] = described;
            }
            (None, _) | (_, None) => others.push(json!({
                "method": route.method.as_str(),
                "path": route.pattern,
                "operation": described,
            })),
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Idempotency",
            "summary": "Headers and refusals of operations that are carried out once per key.",
            "version": env!("CARGO_PKG_VERSION"),
        },
        "paths": paths,
        "components": { "schemas": { "Problem": problem_schema() } },
        "x-idempotency-routes": others,
    })
}

/// Methods of requests that change something, as OpenAPI calls them.
fn method_name(method: &Method) -> Option<&'static str> {
    let names = [
        (Method::POST, "post"),
        (Method::PUT, "put"),
        (Method::PATCH, "patch"),
        (Method::DELETE, "delete"),
    ];
    names.into_iter().find(|(known, _)| known == method).map(|(_, name)| name)
}

/// A path as OpenAPI writes it, and the names of its parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PathTemplate {
    path: String,
    names: Vec<String>,
}

/// The templates in use. Two that differ by names alone are one to OpenAPI: the first counts.
#[derive(Default)]
struct PathTemplates(HashMap<Vec<Option<String>>, PathTemplate>);

impl PathTemplates {
    /// `None` if OpenAPI has no words for the path.
    fn of(&mut self, route: &Route) -> Option<PathTemplate> {
        if route.pattern.ends_with('*') {
            return None;
        }
        let (mut shape, mut path, mut names) = (Vec::new(), String::new(), Vec::new());
        for segment in route.pattern.split('/').skip(1) {
            path.push('/');
            let inner = segment.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
            if let Some(inner) = inner {
                let name = parameter_name(inner, &names);
                path.extend(["{", &name, "}"]);
                names.push(name);
                shape.push(None);
            } else if segment.contains(['{', '}', '?', '#']) {
                return None;
            } else {
                path.push_str(segment);
                shape.push(Some(segment.to_owned()));
            }
        }
        Some(self.0.entry(shape).or_insert(PathTemplate { path, names }).clone())
    }
}

/// A name of its own for each parameter of a path.
fn parameter_name(inner: &str, taken: &[String]) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let is_usable = !inner.is_empty() && inner.bytes().all(is_plain);
    if is_usable && !taken.iter().any(|name| name == inner) {
        return inner.to_owned();
    }
    let mut numbered = (1..).map(|number| format!("segment{number}"));
    numbered.find(|name| !taken.contains(name)).unwrap_or_default()
}

fn path_parameter(name: &str) -> Value {
    let schema = json!({ "type": "string", "minLength": 1 });
    json!({ "name": name, "in": "path", "required": true, "schema": schema })
}

fn operation(protection: &Protection, is_shared: bool) -> Value {
    let mut responses = Map::new();
    for code in refusals(protection, is_shared) {
        add_refusal(&mut responses, &protection.dialect, code);
    }
    responses.insert("default".to_owned(), answered());
    if protection.in_flight == InFlight::Accept {
        responses.insert("202".to_owned(), accepted());
    }
    json!({ "parameters": parameters(protection), "responses": responses })
}

fn parameters(protection: &Protection) -> Vec<Value> {
    let seconds = protection.policy.retention().window.as_secs();
    let form = protection.read_as();
    let header = |name: &str, required: bool, description: String, schema: Value| {
        json!({
            "name": name,
            "in": "header",
            "required": required,
            "description": description,
            "schema": schema,
        })
    };
    let is_required = protection.key == KeyRule::Required && protection.derived_key.is_none();
    let mut parameters = vec![header(
        protection.key_header().as_str(),
        is_required,
        format!(
            "One key per operation, kept for {seconds} seconds: {}.",
            key_format::described(form)
        ),
        json!({
            "type": "string",
            "minLength": 1,
            "maxLength": key_format::VALUE_BYTES_MAX,
            "pattern": key_format::pattern(form),
        }),
    )];
    if protection.dialect == Dialect::Repeatability {
        let what = "When the request was first sent, as an HTTP date.".to_owned();
        let schema = json!({ "type": "string" });
        parameters.push(header("repeatability-first-sent", is_required, what, schema));
    }
    let what = "`wait=N`: wait so many seconds for a request with the same key that is at work.";
    let schema = json!({ "type": "string" });
    parameters.push(header("prefer", false, what.to_owned(), schema));
    parameters
}

/// What a client of the route may be refused with.
fn refusals(protection: &Protection, is_shared: bool) -> Vec<Code> {
    let mut codes = vec![
        Code::KeyMalformed,
        Code::BodyTooSlow,
        Code::KeyInFlight,
        Code::OutcomeInDoubt,
        Code::ResponseNotRetained,
        Code::BodyTooLarge,
        Code::KeyReused,
        Code::ExecutionUnanswered,
        Code::StoreUnavailable,
        Code::ExecutionTimedOut,
    ];
    let mut add = |condition: bool, more: &[Code]| {
        if condition {
            codes.extend_from_slice(more);
        }
    };
    let is_required = protection.key == KeyRule::Required;
    add(is_required && protection.derived_key.is_none(), &[Code::KeyMissing]);
    add(is_required && protection.derived_key.is_some(), &[Code::KeyUnderivable]);
    add(!is_shared, &[Code::CredentialMissing, Code::CallerRefused]);
    add(!protection.policy.retention().tombstone.is_zero(), &[Code::KeyGone]);
    add(
        protection.dialect == Dialect::Repeatability,
        &[Code::FirstSentTooOld, Code::FirstSentMalformed],
    );
    add(protection.limit.is_some(), &[Code::RateLimited]);
    let form_is_asked_for = match protection.body {
        BodyForm::Json { .. } | BodyForm::Multipart => true,
        BodyForm::Auto { .. } | BodyForm::Raw => false,
    };
    add(form_is_asked_for, &[Code::BodyNotCanonical, Code::BodyEncoded]);
    codes
}

fn add_refusal(responses: &mut Map<String, Value>, dialect: &Dialect, code: Code) {
    let known = responses.entry(status_in(dialect, code).as_str().to_owned());
    let response = known.or_insert_with(|| {
        let (media_type, schema) = described_in(dialect);
        json!({ "description": "", "content": { media_type: { "schema": schema } } })
    });
    let description = response["description"].as_str().unwrap_or_default();
    let separator = if description.is_empty() { "" } else { " " };
    response["description"] =
        format!("{description}{separator}{} ({}).", code.title(), code.code()).into();
    let comes_back = matches!(
        code,
        Code::KeyInFlight | Code::RateLimited | Code::StoreUnavailable | Code::ExecutionTimedOut
    );
    if comes_back {
        let schema = json!({ "type": "integer", "minimum": 1 });
        let what = "Seconds after which asking again makes sense.";
        response["headers"]["Retry-After"] = json!({ "description": what, "schema": schema });
    }
}

/// What the service itself answers, the first time or again.
fn answered() -> Value {
    let replayed = json!({
        "description": "The answer was given before and is given again.",
        "schema": { "type": "string", "enum": ["true"] },
    });
    let expires = json!({
        "description": "Until when the answer is kept, as an HTTP date.",
        "schema": { "type": "string" },
    });
    json!({
        "description": "What the service answers, once; then the same again.",
        "headers": { "Idempotent-Replayed": replayed, "Idempotency-Expires": expires },
    })
}

fn accepted() -> Value {
    let text = json!({ "type": "string" });
    json!({
        "description": "It is accepted, and will be carried out; look at `Location` for how it went.",
        "headers": {
            "Location": { "schema": text },
            "Retry-After": { "schema": { "type": "integer", "minimum": 1 } },
        },
        "content": { "application/json": { "schema": {
            "type": "object",
            "required": ["state"],
            "properties": { "state": text },
        } } },
    })
}

/// A problem document of RFC 9457, with what ours have beside it.
fn problem_schema() -> Value {
    let text = json!({ "type": "string" });
    json!({
        "type": "object",
        "required": ["type", "title", "status", "detail", "code"],
        "properties": {
            "type": text,
            "title": text,
            "status": { "type": "integer", "minimum": 400, "maximum": 599 },
            "detail": text,
            "code": text,
            "differs": { "type": "array", "items": text },
            "operation": text,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn templates(patterns: &[&str]) -> Vec<Option<String>> {
        let treatment = crate::Treatment::Protect(Protection::default());
        let mut routes = Routes::new(crate::Treatment::PassThrough).unwrap();
        for pattern in patterns {
            routes = routes.route(Method::POST, pattern, treatment.clone()).unwrap();
        }
        let mut templates = PathTemplates::default();
        routes.all().iter().map(|route| templates.of(route).map(|template| template.path)).collect()
    }

    #[test]
    fn paths_are_written_as_openapi_writes_them() {
        let check = |pattern, expected: Option<&str>| {
            assert_eq!(templates(&[pattern]), [expected.map(str::to_owned)], "{pattern}");
        };
        check("/pay", Some("/pay"));
        check("/pay/{id}/refunds/{refund_id}", Some("/pay/{id}/refunds/{refund_id}"));
        check("/pay/{id}/{id}/{}", Some("/pay/{id}/{segment1}/{segment2}"));
        check("/v1/*", None);
        check("/a{b}", None);
    }

    #[test]
    fn paths_that_differ_by_names_alone_are_one() {
        let written = templates(&["/pay/{id}", "/pay/{name}", "/pay/all"]);
        let expected = ["/pay/{id}", "/pay/{id}", "/pay/all"].map(|path| Some(path.to_owned()));
        assert_eq!(written, expected);
    }
}
