//! Every refusal, as a problem document.

use hapax::tower::{Code, Site};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use super::check;

#[tokio::test]
async fn a_refusal_is_the_same_document_everywhere() {
    let mut cases = Vec::new();
    for code in Code::ALL {
        let (parts, body) = code.answer("What happened.", &Site::default()).into_parts();
        let document: Value =
            serde_json::from_slice(&body.collect().await.unwrap().to_bytes()).unwrap();
        let mut headers: Vec<_> = parts
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
            .collect();
        headers.sort_unstable();
        cases.push(json!({ "code": code.code(), "status": parts.status.as_u16(), "headers": headers, "document": document }));
    }
    check("problems.json", "Every refusal as it is sent, with the detail `What happened.`", &cases);
}
