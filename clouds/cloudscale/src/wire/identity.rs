//! The identity and the parent of a resource: what is read of one whose other fields cannot be.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::Stub;

/// A text, or `None` if it cannot be read.
fn if_text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Ok(Value::deserialize(from)?.as_str().map(str::to_owned))
}

fn if_stub<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Stub>, D::Error> {
    let value = Value::deserialize(from)?;
    Ok(value.get("uuid").and_then(Value::as_str).map(|uuid| Stub { uuid: uuid.to_owned() }))
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Named {
    pub uuid: String,
    /// The name; `None` where it cannot be read.
    #[serde(default, deserialize_with = "if_text")]
    pub name: Option<String>,
}

/// A part of a load balancer. At least one of the two references is there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Below")]
pub struct PartIdentity {
    pub uuid: String,
    pub load_balancer: Option<Stub>,
    /// The pool, for what is below one.
    pub pool: Option<Stub>,
}

#[derive(Deserialize)]
struct Below {
    uuid: String,
    #[serde(default, deserialize_with = "if_stub")]
    load_balancer: Option<Stub>,
    #[serde(default, deserialize_with = "if_stub")]
    pool: Option<Stub>,
}

impl TryFrom<Below> for PartIdentity {
    type Error = &'static str;

    fn try_from(Below { uuid, load_balancer, pool }: Below) -> Result<Self, Self::Error> {
        if load_balancer.is_none() && pool.is_none() {
            return Err("nothing says to which load balancer it belongs");
        }
        Ok(Self { uuid, load_balancer, pool })
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct FloatingIdentity {
    pub network: String,
}
