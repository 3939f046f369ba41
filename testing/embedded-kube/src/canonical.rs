//! Turns what a client sent into what the API server would store: without unknown fields, with empty fields by Go's
//! rules, and with times and quantities in canonical form.

use serde_json::{Map, Value, json};

use super::json::child;
use super::quantity;
use super::shape::{Field, Omit, Shape, Shapes, short};
use super::time;

/// A value that cannot be read into the field's type: the request fails.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Unreadable(String);

/// The outcome of reading an object: its stored form, and the unknown fields.
#[derive(Debug)]
pub(crate) struct Reading {
    pub(crate) value: Value,
    pub(crate) unknown: Vec<String>,
}

/// Reads `value` as the named shape.
pub(crate) fn read(shapes: &Shapes, name: &str, value: &Value) -> Result<Reading, Unreadable> {
    let mut reader = Reader { shapes, unknown: Vec::new() };
    let value = reader.fields(name, value, "", "")?;
    Ok(Reading { value, unknown: reader.unknown })
}

struct Reader<'a> {
    shapes: &'a Shapes,
    unknown: Vec<String>,
}

/// Where a value stands, for error texts: the struct that holds it, its path with and without list positions.
struct Place<'a> {
    holder: &'a str,
    path: &'a str,
    dotted: &'a str,
}

impl Place<'_> {
    fn mismatch(&self, value: &Value, shape: &Shape) -> Unreadable {
        let found = match value {
            Value::Null => "null".to_owned(),
            Value::Bool(_) => "bool".to_owned(),
            Value::Number(n) if n.is_f64() || matches!(shape, Shape::Int32 | Shape::Int64) => {
                format!("number {n}")
            }
            Value::Number(_) => "number".to_owned(),
            Value::String(_) => "string".to_owned(),
            Value::Array(_) => "array".to_owned(),
            Value::Object(_) => "object".to_owned(),
        };
        let holder = short(self.holder).rsplit('.').next().unwrap_or_default();
        Unreadable(format!(
            "json: cannot unmarshal {found} into Go struct field {holder}.{} of type {}",
            self.dotted,
            shape.go_name()
        ))
    }
}

impl Reader<'_> {
    fn fields(&mut self, name: &str, value: &Value, path: &str, dotted: &str) -> Result<Value, Unreadable> {
        let empty = Map::new();
        let given = match value {
            Value::Object(map) => map,
            Value::Null => &empty,
            other => {
                let place = Place { holder: name, path, dotted };
                return Err(place.mismatch(other, &Shape::Struct(name.to_owned())));
            }
        };
        let Some(fields) = self.shapes.get(name) else {
            return Ok(value.clone());
        };
        for key in given.keys() {
            if fields.get(key).is_none() {
                self.unknown.push(child(path, key));
            }
        }
        let mut kept = Map::new();
        for field in fields.iter() {
            let value = match given.get(&field.name).filter(|value| !value.is_null()) {
                Some(given) => {
                    let (path, dotted) = (child(path, &field.name), child(dotted, &field.name));
                    self.field(field, given, &Place { holder: name, path: &path, dotted: &dotted })?
                }
                None => self.absent(field)?,
            };
            if let Some(value) = value {
                kept.insert(field.name.clone(), value);
            }
        }
        Ok(Value::Object(kept))
    }

    fn field(
        &mut self,
        field: &Field,
        given: &Value,
        place: &Place<'_>,
    ) -> Result<Option<Value>, Unreadable> {
        let value = self.value(&field.shape, given, place)?;
        let drop = match (&field.shape, field.omit) {
            (Shape::Pointer(_) | Shape::Struct(_) | Shape::IntOrString | Shape::Quantity, _)
            | (_, Omit::Always) => false,
            (_, Omit::Empty | Omit::Zero) => is_empty(&value),
        };
        Ok((!drop).then_some(value))
    }

    /// What Go writes for a field that was not given.
    fn absent(&mut self, field: &Field) -> Result<Option<Value>, Unreadable> {
        let value = match (&field.shape, field.omit) {
            (_, Omit::Zero) | (Shape::Pointer(_), Omit::Empty) => None,
            (Shape::Struct(name), _) => Some(self.fields(name, &Value::Null, "", "")?),
            (Shape::Time | Shape::MicroTime, _) => Some(Value::Null),
            (Shape::Quantity, _) => Some(json!("0")),
            (_, Omit::Empty) if field.shape != Shape::IntOrString => None,
            (Shape::String(_), _) => Some(json!("")),
            (Shape::Int32 | Shape::Int64 | Shape::IntOrString, _) => Some(json!(0)),
            (Shape::Bool, _) => Some(json!(false)),
            _ => Some(Value::Null),
        };
        Ok(value)
    }

    fn value(&mut self, shape: &Shape, given: &Value, place: &Place<'_>) -> Result<Value, Unreadable> {
        let mismatch = || place.mismatch(given, shape);
        match shape {
            Shape::Pointer(inner) => self.value(inner, given, place),
            Shape::Struct(name) => match given {
                Value::Object(_) | Value::Null => self.fields(name, given, place.path, place.dotted),
                _ => Err(mismatch()),
            },
            Shape::String(_) => given.is_string().then(|| given.clone()).ok_or_else(mismatch),
            Shape::Bool => given.is_boolean().then(|| given.clone()).ok_or_else(mismatch),
            Shape::Int32 => match given.as_i64().map(i32::try_from) {
                Some(Ok(_)) => Ok(given.clone()),
                _ => Err(mismatch()),
            },
            Shape::Int64 => given.is_i64().then(|| given.clone()).ok_or_else(mismatch),
            Shape::IntOrString => match given {
                Value::String(_) => Ok(given.clone()),
                Value::Number(n) if n.as_i64().is_some_and(|n| i32::try_from(n).is_ok()) => Ok(given.clone()),
                _ => Err(mismatch()),
            },
            Shape::Bytes => match given.as_str().map(|s| (s, super::base64_decode(s))) {
                Some((text, Some(_))) => Ok(json!(text)),
                Some((text, None)) => Err(bad_base64(text)),
                None => Err(mismatch()),
            },
            Shape::Quantity => quantity::canonical(given).map(Value::String).map_err(Unreadable),
            Shape::Time | Shape::MicroTime => read_time(given, place, shape),
            Shape::Any => Ok(given.clone()),
            Shape::List(inner) => {
                let items = given.as_array().ok_or_else(mismatch)?;
                let read = items.iter().enumerate().map(|(at, item)| {
                    let path = format!("{}[{at}]", place.path);
                    self.element(inner, item, &Place { path: &path, ..*place })
                });
                Ok(Value::Array(read.collect::<Result<_, _>>()?))
            }
            Shape::Map(inner) => {
                let entries = given.as_object().ok_or_else(mismatch)?;
                let read = entries.iter().map(|(key, item)| {
                    let path = child(place.path, key);
                    let place = Place { path: &path, ..*place };
                    Ok((key.clone(), self.element(inner, item, &place)?))
                });
                Ok(Value::Object(read.collect::<Result<_, _>>()?))
            }
        }
    }

    /// An element of a list or map: null stands for the type's zero.
    fn element(&mut self, shape: &Shape, given: &Value, place: &Place<'_>) -> Result<Value, Unreadable> {
        if !given.is_null() {
            return self.value(shape, given, place);
        }
        let field = Field {
            name: String::new(),
            number: None,
            omit: Omit::Always,
            shape: shape.clone(),
            rule: super::shape::PatchRule::default(),
        };
        Ok(self.absent(&field)?.unwrap_or(Value::Null))
    }
}

fn read_time(given: &Value, place: &Place<'_>, shape: &Shape) -> Result<Value, Unreadable> {
    let text = given.as_str().ok_or_else(|| place.mismatch(given, shape))?;
    if text.is_empty() {
        return Ok(Value::Null);
    }
    if *shape == Shape::MicroTime {
        return time::parse_micros(text).map(|at| json!(time::micros(at))).map_err(Unreadable);
    }
    match time::parse(text) {
        Some(at) => Ok(json!(time::seconds(at))),
        None => Err(Unreadable(format!(
            "parsing time {text:?} as \"2006-01-02T15:04:05Z07:00\": cannot parse {text:?} as \"2006\""
        ))),
    }
}

/// Where Go's decoder would have stopped.
fn bad_base64(text: &str) -> Unreadable {
    let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'\n' | b'\r');
    let at = text.bytes().position(|b| !fits(b)).unwrap_or(text.len());
    Unreadable(format!("illegal base64 data at input byte {at}"))
}

/// Empty in the sense of Go's `omitempty`.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Number(n) => n.as_i64() == Some(0),
        Value::String(s) => s.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Bool(true) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(name: &str, value: &Value) -> Result<Reading, Unreadable> {
        read(&Shapes::kubernetes(), name, value)
    }

    #[test]
    fn what_is_kept_follows_gos_rules() {
        let table = [
            (
                "nothing given",
                "core/v1.Service",
                json!({}),
                json!({"metadata": {}, "spec": {}, "status": {"loadBalancer": {}}}),
            ),
            (
                "empty things go, pointers to empty things stay",
                "core/v1.ServiceSpec",
                json!({"clusterIP": "", "ports": [], "selector": {}, "allocateLoadBalancerNodePorts": false, "publishNotReadyAddresses": false}),
                json!({"allocateLoadBalancerNodePorts": false}),
            ),
            (
                "required fields are written even when empty",
                "core/v1.ServicePort",
                json!({"name": null}),
                json!({"port": 0, "targetPort": 0}),
            ),
            (
                "times take their one form",
                "core/v1.NodeCondition",
                json!({"type": "Ready", "status": "True", "lastHeartbeatTime": "2024-01-02T03:04:05.678+01:00"}),
                json!({"type": "Ready", "status": "True", "lastHeartbeatTime": "2024-01-02T02:04:05Z", "lastTransitionTime": null}),
            ),
            (
                "quantities too",
                "core/v1.NodeStatus",
                json!({"capacity": {"cpu": "2000m", "memory": "2048Ki"}}),
                json!({"capacity": {"cpu": "2", "memory": "2Mi"}, "daemonEndpoints": {"kubeletEndpoint": {"Port": 0}},
                       "nodeInfo": {"machineID": "", "systemUUID": "", "bootID": "", "kernelVersion": "", "osImage": "",
                                    "containerRuntimeVersion": "", "kubeletVersion": "", "kubeProxyVersion": "",
                                    "operatingSystem": "", "architecture": ""}}),
            ),
        ];
        for (case, name, given, want) in table {
            assert_eq!(reading(name, &given).unwrap().value, want, "{case}");
        }
    }

    #[test]
    fn unknown_fields_are_named_with_their_place() {
        let given = json!({"spek": 1, "spec": {"ports": [{"port": 1}, {"prt": 2}]}, "metadata": {"labels": {"any": "thing"}}});
        assert_eq!(reading("core/v1.Service", &given).unwrap().unknown, ["spek", "spec.ports[1].prt"]);
    }

    #[test]
    fn a_wrong_type_is_refused_in_gos_words() {
        let table = [
            (
                json!({"spec": {"ports": "80"}}),
                "json: cannot unmarshal string into Go struct field ServiceSpec.spec.ports of type []v1.ServicePort",
            ),
            (
                json!({"spec": {"ports": [{"port": "80"}]}}),
                "json: cannot unmarshal string into Go struct field ServicePort.spec.ports.port of type int32",
            ),
            (
                json!({"spec": {"type": 1}}),
                "json: cannot unmarshal number into Go struct field ServiceSpec.spec.type of type v1.ServiceType",
            ),
            (
                json!({"metadata": {"labels": {"a": 1}}}),
                "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string",
            ),
        ];
        for (given, want) in table {
            assert_eq!(reading("core/v1.Service", &given).unwrap_err().to_string(), want);
        }
    }
}
