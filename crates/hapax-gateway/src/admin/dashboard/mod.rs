//! The dashboard: a page and its modules, as they are in the repository, inside the program.
//!
//! There is no build step: what a browser gets is what is written in `page`. None of it is secret,
//! and none of it holds figures; those come from the API, by a session.

use axum::{
    Router,
    extract::{Path, Request, State},
    http::{
        HeaderName, HeaderValue, StatusCode,
        header::{
            CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY,
            X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
        },
    },
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::get,
};

use super::{AdminState, access::known_host, problem::AdminProblem};

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JS: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

/// Everything comes from this listener, nothing is written inline, and nobody frames it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'; require-trusted-types-for 'script'";

macro_rules! assets {
    ($($kind:ident $($name:literal)+;)+) => {
        &[$($(($name, $kind, include_str!(concat!("page/", $name))),)+)+]
    };
}

const PAGE: &str = include_str!("page/index.html");
const NOTICE: &str = include_str!("page/notice.html");
/// Every file of the page: its name, its media type and its text.
const ASSETS: &[(&str, &str, &str)] = assets! {
    CSS "base.css" "parts.css" "views.css";
    SVG "icon.svg";
    JS "main.js" "api.js" "change.js" "charts.js" "configuration.js" "consumers.js" "doubts.js"
       "elements.js" "housekeeping.js" "keys.js" "login.js" "operation.js" "outbox.js" "overview.js" "quarantine.js" "renew.js" "words.js";
};

/// The page and its files.
pub(super) fn routes(state: &AdminState) -> Router<AdminState> {
    Router::new()
        .route("/", get(async || served(HTML, PAGE)))
        .route("/dashboard/{file}", get(asset))
        .layer(middleware::from_fn_with_state(state.clone(), guarded))
}

/// Serves only whoever came by one of our names.
async fn guarded(
    State(state): State<AdminState>,
    request: Request,
    next: Next,
) -> Result<Response, AdminProblem> {
    known_host(&state.access, &request)?;
    Ok(next.run(request).await)
}

async fn asset(Path(file): Path<String>) -> Result<Response, AdminProblem> {
    let asset = ASSETS.iter().find(|(name, _, _)| *name == file);
    let (_, kind, text) = asset.ok_or_else(AdminProblem::no_such_page)?;
    Ok(served(kind, *text))
}

/// A page that tells one thing, and leads back to the dashboard. Texts may come from anybody.
pub(super) fn notice_page(status: StatusCode, title: &str, text: &str, back: &str) -> Response {
    let [title, text, back] = [title, text, back].map(escaped);
    let page = NOTICE.replace("{title}", &title).replace("{back}", &back);
    (status, served(HTML, page.replace("{text}", &text))).into_response()
}

/// The same text where HTML is expected.
fn escaped(text: &str) -> String {
    let named = [('&', "&amp;"), ('<', "&lt;"), ('>', "&gt;"), ('"', "&quot;"), ('\'', "&#39;")];
    let safe = |char: char| match named.iter().find(|(plain, _)| *plain == char) {
        Some((_, named)) => (*named).to_owned(),
        None => char.to_string(),
    };
    text.chars().map(safe).collect()
}

fn served(kind: &'static str, text: impl IntoResponse) -> Response {
    let headers: [(HeaderName, &'static str); 8] = [
        (CONTENT_TYPE, kind),
        (CACHE_CONTROL, "no-store"),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    let mut response = text.into_response();
    for (name, value) in headers {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_asks_nobody_else_for_anything_and_names_only_files_that_are_there() {
        let pages = [("index.html", HTML, PAGE), ("notice.html", HTML, NOTICE)];
        for (name, _, text) in ASSETS.iter().chain(&pages) {
            let text = text.replace("http://www.w3.org/2000/svg", "");
            for outside in ["http://", "https://", "//cdn", "@import", "url("] {
                assert!(!text.contains(outside), "{name}: {outside}");
            }
            for import in text.split(" from \"./").skip(1) {
                let file = import.split('"').next().unwrap_or_default();
                assert!(ASSETS.iter().any(|(name, _, _)| *name == file), "{name} imports {file}");
            }
        }
        let named = pages.iter().flat_map(|(_, _, text)| text.split("=\"/dashboard/").skip(1));
        for part in named {
            let file = part.split('"').next().unwrap_or_default();
            assert!(ASSETS.iter().any(|(name, _, _)| *name == file), "the page names {file}");
        }
    }

    #[test]
    fn what_is_shown_is_put_into_elements_as_text_and_never_as_markup() {
        for (name, _, text) in ASSETS {
            for way in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("] {
                assert!(!text.contains(way), "{name}: {way}");
            }
        }
        for inline in ["<style", " style=", " onclick", "<script>"] {
            assert!(![PAGE, NOTICE].iter().any(|page| page.contains(inline)), "{inline}");
        }
    }
}
