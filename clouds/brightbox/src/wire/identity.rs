//! What is read of a resource whose other fields cannot be.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A text, or `None` if it cannot be read.
fn if_text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Ok(Value::deserialize(from)?.as_str().map(str::to_owned))
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Named {
    pub id: String,
    /// The name; `None` where it cannot be read.
    #[serde(default, deserialize_with = "if_text")]
    pub name: Option<String>,
    /// The status as written; `None` where it cannot be read.
    #[serde(default, deserialize_with = "if_text")]
    pub status: Option<String>,
}
