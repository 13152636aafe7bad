//! What was typed over what a file says, over what a run that was interrupted was told.

use std::{fs, path::Path};

use toml::{Table, Value};

use super::{error::VerifyError, interrupted_run::InterruptedRun};
use crate::args::{RouteSettings, VerifyArgs, VerifySettings};

/// Settings of which only one can be meant: whoever names one of them means none of the others.
const EXCLUSIVE: [&[&str]; 2] = [
    &["json", "body"],
    &[
        "count",
        "count_command",
        "count_sql",
        "count_store",
        "webhook_sink",
        "upstream_double",
        "upstream_delay",
        "upstream_drop",
    ],
];

/// Everything that was said, and the run that is gone on with.
pub(super) fn read(
    args: &VerifyArgs,
    interrupted: Option<&InterruptedRun>,
) -> Result<VerifySettings, VerifyError> {
    let mut settings = interrupted.map_or_else(VerifySettings::default, |run| run.settings.clone());
    if let Some(path) = &args.source.config {
        settings = over(&settings, &from_file(path, args.source.route_name.as_deref())?)?;
    }
    over(&settings, &typed(args)?)
}

/// What was typed.
pub(super) fn typed(args: &VerifyArgs) -> Result<VerifySettings, VerifyError> {
    let (method, url) = match args.target.as_slice() {
        [] => (None, None),
        [url] if url.contains("://") => (Some("POST".to_owned()), Some(url.clone())),
        [method, url] => (Some(method.to_ascii_uppercase()), Some(url.clone())),
        other => return Err(VerifyError::Target { given: other.join(" ") }),
    };
    Ok(VerifySettings { method, url, ..args.settings.clone() })
}

/// What a file says of one of its routes, or of the only one.
fn from_file(path: &Path, name: Option<&str>) -> Result<VerifySettings, VerifyError> {
    let text = fs::read_to_string(path)
        .map_err(|source| VerifyError::Read { path: path.to_owned(), source })?;
    let mut settings: VerifySettings = toml::from_str(&text).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let line = before.lines().count().max(1) + usize::from(before.ends_with('\n'));
        // The names of all settings follow; `--help` has them in an order.
        let reason = error.message().split(", expected one of").next().unwrap_or_default();
        VerifyError::File { path: path.to_owned(), line, reason: reason.to_owned() }
    })?;
    let routes = std::mem::take(&mut settings.route);
    let settings = match chosen(path, &routes, name)? {
        Some(route) => with_route(&settings, route)?,
        None => settings,
    };
    Ok(rooted(settings, path.parent().unwrap_or_else(|| Path::new(""))))
}

/// Files that a file names are looked for where it is.
fn rooted(mut settings: VerifySettings, dir: &Path) -> VerifySettings {
    let VerifySettings { json, body, changed_body, invalid_body, count_store, .. } = &mut settings;
    for (text, mark) in [
        (json, "@"),
        (body, "@"),
        (changed_body, "@"),
        (invalid_body, "@"),
        (count_store, "sqlite:"),
    ] {
        let path =
            text.as_deref().and_then(|text| text.strip_prefix(mark)).map(|path| dir.join(path));
        if let Some(path) = path {
            *text = Some(format!("{mark}{}", path.display()));
        }
    }
    let VerifySettings { ca, json_report, html, junit, sarif, badge, compare, scope_file, .. } =
        &mut settings;
    for path in [ca, json_report, html, junit, sarif, badge, compare, scope_file] {
        *path = path.take().map(|path| dir.join(path));
    }
    settings
}

fn chosen<'r>(
    path: &Path,
    routes: &'r [RouteSettings],
    name: Option<&str>,
) -> Result<Option<&'r RouteSettings>, VerifyError> {
    let title = |route: &RouteSettings| format!("{} {}", route.method, route.path);
    let all = || routes.iter().map(|route| format!("'{}'", title(route))).collect::<Vec<_>>();
    match (routes, name) {
        ([], None) => Ok(None),
        ([only], None) => Ok(Some(only)),
        (_, None) => {
            Err(VerifyError::WhichRoute { path: path.to_owned(), routes: all().join(", ") })
        }
        (_, Some(name)) => {
            let found = routes.iter().find(|route| title(route).eq_ignore_ascii_case(name));
            let missing = || VerifyError::NoRoute {
                path: path.to_owned(),
                name: name.to_owned(),
                routes: all().join(", "),
            };
            found.map(Some).ok_or_else(missing)
        }
    }
}

/// What a route says counts for more than the rest of its file; its path is one of the host of `url`.
fn with_route(
    settings: &VerifySettings,
    route: &RouteSettings,
) -> Result<VerifySettings, VerifyError> {
    let host = settings.url.as_deref().unwrap_or_default();
    let host = match host.split_once("://") {
        Some((scheme, rest)) => {
            format!("{scheme}://{}", rest.split('/').next().unwrap_or_default())
        }
        None => host.to_owned(),
    };
    let RouteSettings { method, path, .. } = route.clone();
    let own = VerifySettings {
        method: Some(method),
        url: Some(format!("{host}{path}")),
        json: route.json.clone(),
        body: route.body.clone(),
        content_type: route.content_type.clone(),
        changed_body: route.changed_body.clone(),
        invalid_body: route.invalid_body.clone(),
        key_header: route.key_header.clone(),
        count: route.count.clone(),
        id: route.id.clone(),
        other_path: route.other_path.clone(),
        large_path: route.large_path.clone(),
        ..VerifySettings::default()
    };
    over(settings, &own)
}

/// Whether a setting that is true or false is no flag, because both are said.
pub(super) fn is_answer(name: &str) -> bool {
    matches!(name, "refusals_kept" | "errors_kept" | "key_required")
}

/// The settings of `below`, but for those that `above` names.
fn over(below: &VerifySettings, above: &VerifySettings) -> Result<VerifySettings, VerifyError> {
    let table = |settings| Table::try_from(settings).map_err(VerifyError::Settings);
    let is_named = |value: &Value| match value {
        Value::Array(items) => !items.is_empty(),
        Value::Boolean(is_set) => *is_set,
        Value::String(_)
        | Value::Integer(_)
        | Value::Float(_)
        | Value::Datetime(_)
        | Value::Table(_) => true,
    };
    let (mut below, mut above) = (table(below)?, table(above)?);
    above.retain(|name, value| is_named(value) || is_answer(name));
    for group in EXCLUSIVE {
        if group.iter().any(|name| above.contains_key(*name)) {
            below.retain(|name, _| !group.contains(&name));
        }
    }
    below.extend(above);
    below.try_into().map_err(VerifyError::Mixed)
}
