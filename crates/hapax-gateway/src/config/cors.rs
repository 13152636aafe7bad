//! Which pages of other origins may ask: `[cors]`.

use std::time::Duration;

use hapax_tower::{Cors, Readers};
use http::{HeaderValue, Uri};
use toml::Spanned;

use super::{names::CORS, reader::TableReader};

/// How long browsers remember what they may, where nobody says.
const MAX_AGE: Duration = Duration::from_secs(600);

/// What `[cors]` says; nothing without it.
pub(super) fn read(top: &TableReader<'_>) -> Option<Cors> {
    if !top.has("cors") {
        return None;
    }
    let table = top.table("cors", CORS);
    let origins = table.list("origins", origin);
    if !table.has("origins") {
        let what = "nobody says which pages may ask";
        let advice = "write `origins = [\"https://shop.example\"]` too";
        table.fault(table.span(), format!("{what}; {advice}"));
    }
    let credentials = table.flag("credentials").unwrap_or(false);
    let max_age = table.duration_or_zero("max_age").map_or(MAX_AGE, Spanned::into_inner);
    let origins = origins?.into_inner();
    let readers = match origins.iter().position(Option::is_none) {
        None => Readers::Origins { listed: origins.into_iter().flatten().collect(), credentials },
        Some(_) if origins.len() == 1 && !credentials => Readers::Anybody,
        Some(_) if credentials => {
            let what = "browsers add no cookies where anybody may ask";
            let advice = "list the `origins`, or leave `credentials` out";
            table.fault(table.place("credentials"), format!("{what}; {advice}"));
            return None;
        }
        Some(_) => {
            let what = "\"*\" is every origin; leave the others out";
            table.fault(table.place("origins"), what);
            return None;
        }
    };
    Some(Cors { readers, max_age })
}

/// An origin as browsers write it; `None` for all of them.
fn origin(text: &str) -> Result<Option<HeaderValue>, String> {
    if text == "*" {
        return Ok(None);
    }
    let advice = "write an origin, such as \"https://shop.example\", or \"*\", instead";
    let refusal = || format!("cannot be {text:?}; {advice}");
    let uri: Uri = text.parse().map_err(|_| refusal())?;
    let (scheme, host) = uri.scheme_str().zip(uri.host()).ok_or_else(refusal)?;
    let usual_port = match scheme {
        "http" => 80,
        "https" => 443,
        _ => return Err(refusal()),
    };
    let has_more = uri.path() != "/" || uri.query().is_some() || text.contains(['@', '#']);
    if has_more || text.ends_with('/') {
        return Err(refusal());
    }
    let port = uri.port_u16().filter(|port| *port != usual_port);
    let port = port.map(|port| format!(":{port}")).unwrap_or_default();
    let origin = format!("{scheme}://{}{port}", host.to_ascii_lowercase());
    HeaderValue::try_from(origin).map(Some).map_err(|_| refusal())
}
