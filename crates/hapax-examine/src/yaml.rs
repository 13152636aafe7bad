//! YAML as the JSON that it means.

use serde_json::{Map, Number, Value};
use yaml_rust2::{Event, Yaml, parser::Parser, scanner::TScalarStyle};

/// How deep a document may be.
const DEPTH_MAX: usize = 128;

/// What is being read: a list, or an object with the key whose value comes next.
enum OpenValue {
    List(Vec<Value>),
    Object(Map<String, Value>, Option<String>),
}

/// The first document of a text; why it cannot be read, if so.
///
/// Aliases are refused: written out, a few lines of them can be more than any memory holds.
pub(crate) fn json_of(text: &str) -> Result<Value, String> {
    let mut parser = Parser::new_from_str(text);
    let mut open: Vec<OpenValue> = Vec::new();
    loop {
        let (event, mark) = parser.next_token().map_err(|error| error.to_string())?;
        let value = match event {
            Event::Nothing | Event::StreamStart | Event::DocumentStart => continue,
            Event::StreamEnd | Event::DocumentEnd => return Err("nothing is in it".to_owned()),
            Event::Alias(_) => {
                return Err(format!("an alias (`*…`) in line {}: write it out", mark.line()));
            }
            Event::Scalar(text, style, ..) => scalar(text, style),
            Event::SequenceStart(..) => {
                begin(&mut open, OpenValue::List(Vec::new()))?;
                continue;
            }
            Event::MappingStart(..) => {
                begin(&mut open, OpenValue::Object(Map::new(), None))?;
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(OpenValue::List(items)) => Value::Array(items),
                Some(OpenValue::Object(members, _)) => Value::Object(members),
                None => return Err(format!("an end without a beginning in line {}", mark.line())),
            },
        };
        if let Some(whole) = put(&mut open, value) {
            return Ok(whole);
        }
    }
}

fn begin(open: &mut Vec<OpenValue>, value: OpenValue) -> Result<(), String> {
    if open.len() == DEPTH_MAX {
        return Err(format!("it is more than {DEPTH_MAX} deep"));
    }
    open.push(value);
    Ok(())
}

/// Puts a value where it belongs, or gives it back where it is the whole document.
fn put(open: &mut [OpenValue], value: Value) -> Option<Value> {
    match open.last_mut() {
        None => return Some(value),
        Some(OpenValue::List(items)) => items.push(value),
        Some(OpenValue::Object(members, key)) => match key.take() {
            Some(key) => {
                members.insert(key, value);
            }
            // In JSON, keys are text: `200:` is `"200"`.
            None => *key = Some(value.as_str().map_or_else(|| value.to_string(), str::to_owned)),
        },
    }
    None
}

fn scalar(text: String, style: TScalarStyle) -> Value {
    if style != TScalarStyle::Plain {
        return Value::String(text);
    }
    match Yaml::from_str(&text) {
        Yaml::Null => Value::Null,
        Yaml::Boolean(is_so) => Value::Bool(is_so),
        Yaml::Integer(number) => Value::Number(number.into()),
        // What is no number in JSON stays as it is written.
        Yaml::Real(_) => {
            let number = text.parse().ok().and_then(Number::from_f64);
            number.map_or(Value::String(text), Value::Number)
        }
        Yaml::String(_) | Yaml::Array(_) | Yaml::Hash(_) | Yaml::Alias(_) | Yaml::BadValue => {
            Value::String(text)
        }
    }
}
