//! What a description of an API says about the routes that change something, as settings to start from.

use serde_json::{Map, Value, json};
use thiserror::Error;

use crate::yaml::json_of;

/// What an OpenAPI document suggests.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiProposal {
    /// Where the API is, if the document says so in full.
    pub url: Option<String>,
    /// Whether it wants a bearer token.
    pub bearer: bool,
    /// The routes that change something; those that take a key come first.
    pub routes: Vec<ProposedRoute>,
}

/// A route that changes something.
#[derive(Debug, Clone, PartialEq)]
pub struct ProposedRoute {
    /// `POST`
    pub method: String,
    /// As the document has it, behind the path of its server.
    pub path: String,
    /// A body that its schema allows, with `{marker}` where there is a place for one.
    pub body: Option<Value>,
    /// The header that it says keys are sent in.
    pub key_header: Option<String>,
    /// How its effects can be counted: `GET /payments?ref={marker} /items/length`.
    pub count: Option<String>,
    /// Where its answers name their effect.
    pub id: Option<String>,
}

/// Why a text suggests nothing.
#[derive(Debug, Error)]
pub enum OpenApiError {
    /// It begins as JSON does, and is none.
    #[error("it is no JSON")]
    NotJson(#[from] serde_json::Error),
    /// It is not YAML either.
    #[error("it cannot be read as YAML: {reason}")]
    NotYaml {
        /// Why, and where.
        reason: String,
    },
    /// It is something else.
    #[error("it has no `paths`, so that it is no OpenAPI document")]
    NoPaths,
    /// It only tells things.
    #[error("none of its routes changes anything: all are GET, HEAD or OPTIONS")]
    NothingChanges,
}

const CHANGING: [&str; 4] = ["post", "patch", "put", "delete"];
/// How deep schemas are followed: some name themselves.
const DEPTH_MAX: u32 = 6;
/// What clients call an operation of theirs by, the best first.
const MARKABLE: &[&str] = &[
    "ref",
    "reference",
    "external_id",
    "externalId",
    "external_reference",
    "client_reference",
    "client_reference_id",
    "reference_id",
    "referenceId",
    "merchant_reference",
    "merchantReference",
    "order_id",
    "orderId",
    "invoice_id",
    "description",
    "note",
    "memo",
    "comment",
    "name",
    "title",
];

impl ApiProposal {
    /// Reads an OpenAPI document (3.x, JSON or YAML).
    pub fn read(text: &str) -> Result<Self, OpenApiError> {
        let document: Value = if text.trim_start().starts_with('{') {
            serde_json::from_str(text)?
        } else {
            json_of(text).map_err(|reason| OpenApiError::NotYaml { reason })?
        };
        let paths =
            document.get("paths").and_then(Value::as_object).ok_or(OpenApiError::NoPaths)?;
        let server = document.pointer("/servers/0/url").and_then(Value::as_str).unwrap_or_default();
        let (url, prefix) = split_server(server);
        let reader = DocumentReader { document: &document, paths, prefix };
        let mut routes: Vec<_> = CHANGING
            .iter()
            .flat_map(|method| {
                paths.iter().filter_map(|(path, item)| reader.route(method, path, item))
            })
            .collect();
        routes.sort_by_key(|route| route.key_header.is_none());
        if routes.is_empty() {
            return Err(OpenApiError::NothingChanges);
        }
        let schemes = document.pointer("/components/securitySchemes").and_then(Value::as_object);
        let is_bearer = |scheme: &Value| {
            scheme.get("scheme").and_then(Value::as_str) == Some("bearer")
                || scheme.get("type").and_then(Value::as_str) == Some("oauth2")
        };
        let bearer = schemes.is_some_and(|schemes| schemes.values().any(is_bearer));
        Ok(Self { url, bearer, routes })
    }
}

/// Scheme and authority of a server if it has them, and its path without a slash at its end.
fn split_server(server: &str) -> (Option<String>, String) {
    let Some((scheme, rest)) = server.split_once("://") else {
        return (None, server.trim_end_matches('/').to_owned());
    };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    (Some(format!("{scheme}://{authority}")), path.trim_end_matches('/').to_owned())
}

struct DocumentReader<'a> {
    document: &'a Value,
    paths: &'a Map<String, Value>,
    prefix: String,
}

impl<'a> DocumentReader<'a> {
    fn route(&self, method: &str, path: &str, item: &'a Value) -> Option<ProposedRoute> {
        let operation = item.get(method)?;
        let parameters = self.parameters(item, operation);
        let key_header = parameters.iter().find_map(|parameter| {
            let name = parameter.get("name")?.as_str()?;
            let is_header = parameter.get("in")?.as_str()? == "header";
            let words = name.to_ascii_lowercase();
            let is_key = words.contains("idempotency") || words.contains("request-id");
            (is_header && is_key).then(|| name.to_owned())
        });
        let mut body = self.body(operation);
        let marked = body.as_mut().and_then(mark);
        let id = self.answer(operation).and_then(|schema| {
            self.properties(schema).contains_key("id").then(|| "/id".to_owned())
        });
        Some(ProposedRoute {
            method: method.to_ascii_uppercase(),
            path: format!("{}{path}", self.prefix),
            body,
            key_header,
            count: marked.and_then(|marked| self.count(path, &marked)),
            id,
        })
    }

    fn parameters(&self, item: &'a Value, operation: &'a Value) -> Vec<&'a Value> {
        let lists = [item.get("parameters"), operation.get("parameters")];
        let all = lists.into_iter().flatten().filter_map(Value::as_array).flatten();
        all.map(|parameter| self.resolved(parameter)).collect()
    }

    /// A body that the operation takes: its example, or one made from its schema.
    fn body(&self, operation: &'a Value) -> Option<Value> {
        let body = self.resolved(operation.get("requestBody")?);
        let media = body.pointer("/content/application~1json")?;
        if let Some(example) = media.get("example") {
            return Some(example.clone());
        }
        let examples = media.get("examples").and_then(Value::as_object);
        if let Some(example) =
            examples.and_then(|all| all.values().find_map(|one| one.get("value")))
        {
            return Some(example.clone());
        }
        media.get("schema").map(|schema| self.sample(schema, DEPTH_MAX))
    }

    /// The schema of what the first success answers.
    fn answer(&self, operation: &'a Value) -> Option<&'a Value> {
        let answers = operation.get("responses")?.as_object()?;
        let success = answers.iter().find(|(status, _)| status.starts_with('2'))?.1;
        self.resolved(success).pointer("/content/application~1json/schema")
    }

    /// A list of what this path makes, in which one is found by what it was marked with.
    fn count(&self, path: &str, marked: &str) -> Option<String> {
        let item = self.paths.get(path)?;
        let list = item.get("get")?;
        let parameters = self.parameters(item, list);
        let filter = parameters.iter().find(|parameter| {
            parameter.get("in").and_then(Value::as_str) == Some("query")
                && parameter.get("name").and_then(Value::as_str) == Some(marked)
        })?;
        let filter = filter.get("name")?.as_str()?;
        let schema = self.resolved(self.answer(list)?);
        let pointer = if schema.get("type").and_then(Value::as_str) == Some("array") {
            String::new()
        } else {
            let properties = self.properties(schema);
            let is_list =
                |schema: &Value| schema.get("type").and_then(Value::as_str) == Some("array");
            let (name, _) = properties.iter().find(|(_, schema)| is_list(self.resolved(schema)))?;
            format!("/{name}")
        };
        Some(format!("GET {}{path}?{filter}={{marker}} {pointer}/length", self.prefix))
    }

    /// What a reference stands for.
    fn resolved<'v>(&self, value: &'v Value) -> &'v Value
    where
        'a: 'v,
    {
        let target = value.get("$ref").and_then(Value::as_str);
        let found = target
            .and_then(|target| target.strip_prefix('#'))
            .and_then(|pointer| self.document.pointer(pointer));
        found.unwrap_or(value)
    }

    /// The members of a schema, those of the schemas that it is made of included.
    fn properties(&self, schema: &'a Value) -> Map<String, Value> {
        let schema = self.resolved(schema);
        let parts = schema.get("allOf").and_then(Value::as_array).into_iter().flatten();
        let parts = parts.map(|part| self.resolved(part)).chain([schema]);
        let members = parts.filter_map(|part| part.get("properties")?.as_object());
        members.flatten().map(|(name, schema)| (name.clone(), schema.clone())).collect()
    }

    fn sample(&self, schema: &Value, depth: u32) -> Value {
        let schema = self.resolved(schema);
        for given in ["example", "default", "const"] {
            if let Some(value) = schema.get(given) {
                return value.clone();
            }
        }
        if let Some(first) = schema.pointer("/enum/0").or_else(|| schema.pointer("/examples/0")) {
            return first.clone();
        }
        for choice in ["/oneOf/0", "/anyOf/0"] {
            if let Some(first) = schema.pointer(choice).filter(|_| depth > 0) {
                return self.sample(first, depth - 1);
            }
        }
        let kind =
            schema.get("type").and_then(|kind| kind.as_str().or_else(|| kind.get(0)?.as_str()));
        match kind {
            Some("string") => string_sample(schema),
            Some("integer" | "number") => {
                schema.get("minimum").cloned().unwrap_or_else(|| json!(100))
            }
            Some("boolean") => json!(true),
            Some("array") => match schema.get("items").filter(|_| depth > 0) {
                Some(items) => json!([self.sample(items, depth - 1)]),
                None => json!([]),
            },
            Some(_) | None => self.object_sample(schema, depth),
        }
    }

    /// What is required, and whatever the operation can be found by.
    fn object_sample(&self, schema: &Value, depth: u32) -> Value {
        let parts = schema.get("allOf").and_then(Value::as_array).into_iter().flatten();
        let mut members = Map::new();
        for part in parts.map(|part| self.resolved(part)).chain([schema]) {
            let required: Vec<_> = part
                .get("required")
                .and_then(Value::as_array)
                .map_or_else(Vec::new, |names| names.iter().filter_map(Value::as_str).collect());
            let properties = part.get("properties").and_then(Value::as_object);
            for (name, schema) in properties.into_iter().flatten().filter(|_| depth > 0) {
                let is_wanted = required.is_empty()
                    || required.contains(&name.as_str())
                    || MARKABLE.contains(&name.as_str());
                if is_wanted {
                    members.insert(name.clone(), self.sample(schema, depth - 1));
                }
            }
        }
        Value::Object(members)
    }
}

fn string_sample(schema: &Value) -> Value {
    match schema.get("format").and_then(Value::as_str) {
        Some("uuid") => json!("00000000-0000-4000-8000-000000000000"),
        Some("date") => json!("2030-01-01"),
        Some("date-time") => json!("2030-01-01T00:00:00Z"),
        Some("email") => json!("ada@example.com"),
        Some("uri" | "url") => json!("https://example.com/"),
        Some(_) | None => json!("text"),
    }
}

/// Puts `{marker}` where a client names its operation; the name of that member.
fn mark(body: &mut Value) -> Option<String> {
    let members = body.as_object_mut()?;
    let name = MARKABLE.iter().find(|name| members.get(**name).is_some_and(Value::is_string))?;
    members.insert((*name).to_owned(), json!("{marker}"));
    Some((*name).to_owned())
}
