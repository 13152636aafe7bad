//! The document at `/.well-known/idempotency`.

use std::time::Duration;

use hapax_tower::path_fits;
use http::Method;
use serde::Deserialize;

/// The policy a server publishes, as far as a client needs it.
#[derive(Debug, Deserialize)]
pub(super) struct Published {
    #[serde(default)]
    routes: Vec<PublishedRoute>,
    otherwise: Option<PublishedPolicy>,
}

#[derive(Debug, Deserialize)]
struct PublishedRoute {
    method: String,
    path: String,
    #[serde(flatten)]
    policy: PublishedPolicy,
}

#[derive(Debug, Deserialize)]
struct PublishedPolicy {
    #[serde(default)]
    protected: bool,
    retention_seconds: Option<u64>,
}

impl Published {
    /// How long the key of such a request is remembered, if the server says so.
    pub(super) fn window(&self, method: &Method, path: &str) -> Option<Duration> {
        let route = self
            .routes
            .iter()
            .find(|route| route.method == method.as_str() && path_fits(&route.path, path));
        let policy = route.map(|route| &route.policy).or(self.otherwise.as_ref())?;
        policy.retention_seconds.filter(|_| policy.protected).map(Duration::from_secs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_route_that_fits_says_how_long_keys_are_remembered() {
        let published: Published = serde_json::from_value(serde_json::json!({
            "routes": [
                { "method": "POST", "path": "/open", "protected": false, "retention_seconds": 9 },
                { "method": "POST", "path": "/orders/{id}", "protected": true, "retention_seconds": 60 },
                { "method": "POST", "path": "/*", "protected": true, "retention_seconds": 120 },
            ],
            "otherwise": { "protected": true, "retention_seconds": 3600 },
            "replay_header": "Idempotent-Replayed",
        }))
        .unwrap();
        for (method, path, seconds) in [
            (Method::POST, "/open", None),
            (Method::POST, "/orders/7", Some(60)),
            (Method::POST, "/orders/7/items", Some(120)),
            (Method::PATCH, "/orders/7", Some(3600)),
        ] {
            let window = published.window(&method, path);
            assert_eq!(window, seconds.map(Duration::from_secs), "{method} {path}");
        }
    }

    #[test]
    fn a_document_that_says_nothing_publishes_no_window() {
        let published: Published = serde_json::from_str("{}").unwrap();
        assert_eq!(published.window(&Method::POST, "/orders"), None);
    }
}
