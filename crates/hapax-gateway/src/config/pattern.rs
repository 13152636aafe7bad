//! Which requests a route means: `POST /payments/{id}`.

use hapax_tower::{SAFE_METHODS, plain_path};
use http::Method;

/// Methods that change something, and are meant by `*`.
const UNSAFE: [Method; 4] = [Method::POST, Method::PUT, Method::PATCH, Method::DELETE];

/// Methods and the paths they are about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Match {
    pub(crate) methods: Vec<Method>,
    pub(crate) path: String,
}

impl Match {
    /// Reads `POST /payments`, `POST, PUT /payments/{id}` or `* /v1/*`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let advice =
            "write methods and a path, such as \"POST /payments/{id}\" or \"* /v1/*\", instead";
        let Some((methods, path)) = text.find('/').map(|at| text.split_at(at)) else {
            return Err(format!("names no path in {text:?}; {advice}"));
        };
        let methods = methods.split([',', ' ']).filter(|name| !name.is_empty());
        let methods = methods.map(method).collect::<Result<Vec<_>, _>>()?;
        let mut methods: Vec<_> = methods.into_iter().flatten().collect();
        if methods.is_empty() {
            return Err(format!("names no method in {text:?}; {advice}"));
        }
        let mut seen = Vec::with_capacity(methods.len());
        methods.retain(|method| {
            let is_new = !seen.contains(method);
            seen.push(method.clone());
            is_new
        });
        Ok(Self { methods, path: checked_path(path)? })
    }

    /// Whether every request the other one means is meant by this one too.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        let all_methods = other.methods.iter().all(|method| self.methods.contains(method));
        all_methods && covers(&self.path, &other.path)
    }

    /// A method both mean, if their paths are the same but for the names in braces.
    pub(crate) fn same_as(&self, other: &Self) -> Option<&Method> {
        let same = covers(&self.path, &other.path) && covers(&other.path, &self.path);
        self.methods.iter().find(|method| same && other.methods.contains(method))
    }
}

fn method(name: &str) -> Result<Vec<Method>, String> {
    if name == "*" {
        return Ok(UNSAFE.to_vec());
    }
    let method = Method::from_bytes(name.as_bytes());
    let method =
        method.map_err(|_| format!("cannot use {name:?} as a method; write \"POST\" instead"))?;
    if SAFE_METHODS.contains(&method.as_str()) || method == Method::CONNECT {
        let why = if method == Method::CONNECT { "opens a tunnel" } else { "changes nothing" };
        return Err(format!("cannot be about {name}, which {why} and always passes; leave it out"));
    }
    let upper = name.to_ascii_uppercase();
    if upper != name {
        return Err(format!("names the method {name:?}; write \"{upper}\" instead"));
    }
    Ok(vec![method])
}

fn checked_path(path: &str) -> Result<String, String> {
    let visible = path.bytes().all(|byte| byte.is_ascii_graphic());
    if !visible || path.contains(['?', '#']) {
        return Err(format!("has the path {path:?}; write a path alone, percent-encoded, instead"));
    }
    let segments: Vec<_> = path.split('/').skip(1).collect();
    for (at, segment) in segments.iter().enumerate() {
        let is_last = at + 1 == segments.len();
        if segment.contains('*') && !(is_last && *segment == "*") {
            let advice = "write `*` only as the last segment, or `{name}` for one segment, instead";
            return Err(format!("has the path {path:?}; {advice}"));
        }
        let inner = segment.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        let is_name = inner.is_some_and(|name| !name.is_empty() && !name.contains(['{', '}']));
        if segment.contains(['{', '}']) && !is_name {
            let advice = "write `{name}` for a whole segment instead";
            return Err(format!("has the path {path:?}; {advice}"));
        }
    }
    plain_path(path).ok_or_else(|| {
        let advice = "write a path without `.`, `..`, `\\` and stray `%` instead";
        format!("has the path {path:?}, which servers read in different ways; {advice}")
    })
}

/// Whether every path of `narrow` is one of `wide`, by the rules of `hapax_tower::Routes`.
fn covers(wide: &str, narrow: &str) -> bool {
    let split = |path: &'_ str| -> (Vec<String>, bool) {
        let start = path.strip_suffix("/*");
        (start.unwrap_or(path).split('/').map(str::to_owned).collect(), start.is_some())
    };
    let ((wide, wide_is_open), (narrow, narrow_is_open)) = (split(wide), split(narrow));
    let long_enough =
        if wide_is_open { narrow.len() >= wide.len() } else { narrow.len() == wide.len() };
    let fits = wide
        .iter()
        .zip(&narrow)
        .all(|(wide, narrow)| wide == narrow || wide.starts_with('{') && !narrow.is_empty());
    long_enough && fits && (wide_is_open || !narrow_is_open)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wide_pattern_covers_a_narrow_one() {
        for (wide, narrow, covered) in [
            ("/a", "/a", true),
            ("/a/{x}", "/a/{y}", true),
            ("/a/{x}", "/a/b", true),
            ("/a/b", "/a/{x}", false),
            ("/a/{x}", "/a/", false),
            ("/a/*", "/a", true),
            ("/a/*", "/a/b/c", true),
            ("/a/*", "/a/b/*", true),
            ("/a/b/*", "/a/*", false),
            ("/a/{x}", "/a/*", false),
            ("/*", "/anything", true),
            ("/a/*", "/ab", false),
        ] {
            assert_eq!(covers(wide, narrow), covered, "{wide} {narrow}");
        }
    }

    #[test]
    fn a_match_names_methods_and_a_path() {
        let read = Match::parse("POST, PUT,POST /a/{id}").unwrap();
        assert_eq!(
            read,
            Match { methods: vec![Method::POST, Method::PUT], path: "/a/{id}".to_owned() }
        );
        assert_eq!(Match::parse("* /*").unwrap().methods, UNSAFE);
        assert_eq!(Match::parse("POST /%70ay%c3%a9").unwrap().path, "/pay%C3%A9");
        for text in [
            "",
            "POST",
            "/a",
            "GET /a",
            "post /a",
            "CONNECT /a",
            "POST /a?b",
            "POST /a/*/b",
            "POST /a*",
            "POST /{}",
            "POST /a{b}",
            "POST /ü",
            "POST /a/../b",
            "POST /a%",
            "P(ST /a",
        ] {
            assert!(Match::parse(text).is_err(), "{text}");
        }
    }
}
