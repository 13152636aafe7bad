//! Where something is in a document.

use serde_json::Value;

/// A JSON pointer, of which a last part `length` may also count the members of an array or an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonPath(String);

impl JsonPath {
    /// `/items/length`, `/id`; nothing stands for the whole document.
    pub fn new(pointer: impl Into<String>) -> Self {
        Self(pointer.into())
    }

    /// What stands there.
    pub fn find(&self, document: &Value) -> Option<Value> {
        if let Some(found) = document.pointer(&self.0) {
            return Some(found.clone());
        }
        let parent = self.0.strip_suffix("/length").and_then(|parent| document.pointer(parent))?;
        let members =
            parent.as_array().map(Vec::len).or_else(|| Some(parent.as_object()?.len()))?;
        Some(members.into())
    }

    /// What stands there, as text by which two can be compared.
    pub fn text(&self, body: &[u8]) -> Option<String> {
        let document: Value = serde_json::from_slice(body).ok()?;
        match self.find(&document)? {
            Value::Null => None,
            Value::String(text) => Some(text),
            other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                Some(other.to_string())
            }
        }
    }

    /// As it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
