//! What makes two requests of [`once`](crate::Hapax::once) the same: their JSON value.

use serde_json::Value;

/// Requests are compared as JSON values: order and spelling of members do not matter.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use hapax::{Hapax, Json};
/// use serde_json::json;
///
/// # async fn charge() -> Result<u32, std::io::Error> { Ok(7) }
/// let hapax = Hapax::open("memory:").await?;
/// for sent_at in ["12:00", "12:05"] {
///     let order = json!({ "cents": 100, "sent_at": sent_at });
///     let charged = hapax.once(("payments", "order-17"), &order, charge);
///     assert_eq!(charged.compare(Json.ignoring("/sent_at")).await?, 7);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Json;

impl Json {
    /// The same, without the member at this JSON pointer, such as `/sent_at`.
    pub fn ignoring(self, pointer: impl Into<String>) -> JsonIgnoring {
        JsonIgnoring { pointers: vec![pointer.into()] }
    }
}

/// [`Json`] without some of its members.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use hapax::{Hapax, Json, JsonIgnoring};
/// use serde_json::json;
///
/// # async fn charge() -> Result<u32, std::io::Error> { Ok(7) }
/// let hapax = Hapax::open("memory:").await?;
/// let rule: JsonIgnoring = Json.ignoring("/sent_at").ignoring("/trace/id");
/// for trace in ["a", "b"] {
///     let order = json!({ "cents": 100, "sent_at": "12:00", "trace": { "id": trace } });
///     let charged = hapax.once(("payments", "order-17"), &order, charge);
///     assert_eq!(charged.compare(rule.clone()).await?, 7);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JsonIgnoring {
    pointers: Vec<String>,
}

impl JsonIgnoring {
    /// The same, without the member at this JSON pointer either.
    #[must_use]
    pub fn ignoring(mut self, pointer: impl Into<String>) -> Self {
        self.pointers.push(pointer.into());
        self
    }

    /// The one spelling of a value, without the members that do not count.
    pub(crate) fn canonical(&self, mut value: Value) -> Vec<u8> {
        for pointer in &self.pointers {
            remove(&mut value, pointer);
        }
        let mut spelled = String::new();
        spell(&value, &mut spelled);
        spelled.into_bytes()
    }
}

impl From<Json> for JsonIgnoring {
    fn from(_: Json) -> Self {
        Self::default()
    }
}

#[cfg(feature = "tower")]
impl From<Json> for hapax_tower::BodyForm {
    fn from(_: Json) -> Self {
        Self::Json { ignored: Vec::new() }
    }
}

#[cfg(feature = "tower")]
impl From<JsonIgnoring> for hapax_tower::BodyForm {
    fn from(JsonIgnoring { pointers }: JsonIgnoring) -> Self {
        Self::Json { ignored: pointers }
    }
}

fn remove(value: &mut Value, pointer: &str) {
    let Some((parent, name)) = pointer.rsplit_once('/') else { return };
    let name = name.replace("~1", "/").replace("~0", "~");
    match value.pointer_mut(parent) {
        Some(Value::Object(members)) => drop(members.remove(&name)),
        Some(Value::Array(items)) => {
            if let Some(item) = name.parse().ok().filter(|at: &usize| *at < items.len()) {
                items.remove(item);
            }
        }
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) | None => {}
    }
}

/// Writes members in the order of their names, whichever map keeps them.
fn spell(value: &Value, out: &mut String) {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            out.push('{');
            for (at, (name, value)) in members.into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                out.push_str(&Value::String(name.clone()).to_string());
                out.push(':');
                spell(value, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                spell(item, out);
            }
            out.push(']');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            out.push_str(&value.to_string());
        }
    }
}
