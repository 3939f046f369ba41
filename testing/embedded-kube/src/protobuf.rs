//! Bodies in Kubernetes' protobuf form, which Go's typed clients write: read into the JSON that everything else works
//! on. Answers are JSON; every client that writes protobuf also reads that.

use serde_json::{Map, Value, json};

use super::shape::{Fields, Shape, Shapes};
use super::time;

/// The first bytes of every such body.
const MAGIC: &[u8] = b"k8s\0";

/// The body is not what it says it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the body is not a Kubernetes protobuf message")]
pub(crate) struct Malformed;

type Result<T> = std::result::Result<T, Malformed>;

/// A field as it stands on the wire.
#[derive(Clone, Copy, Debug)]
enum Raw<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// Reads a whole body: its kind and version come from the envelope, its shape is the one given.
pub(crate) fn read(shapes: &Shapes, shape: &str, body: &[u8]) -> Result<Value> {
    let envelope = fields(body.strip_prefix(MAGIC).ok_or(Malformed)?)?;
    let (mut value, mut named) = (json!({}), Vec::new());
    for (number, raw) in envelope {
        match (number, raw) {
            (1, Raw::Bytes(type_meta)) => named = fields(type_meta)?,
            (2, Raw::Bytes(content)) => value = message(shapes, shape, content)?,
            _ => {}
        }
    }
    for (number, raw) in named {
        let (Raw::Bytes(bytes), Some(field)) = (raw, ["", "apiVersion", "kind"].get(number)) else {
            continue;
        };
        super::value::set(&mut value, field, text(bytes)?);
    }
    Ok(value)
}

/// Takes a message apart into numbered fields.
fn fields(mut bytes: &[u8]) -> Result<Vec<(usize, Raw<'_>)>> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes)?;
        let number = usize::try_from(tag >> 3).map_err(|_| Malformed)?;
        let raw = match tag & 7 {
            0 => Raw::Number(varint(&mut bytes)?),
            1 => Raw::Bytes(take(&mut bytes, 8)?),
            2 => {
                let length = usize::try_from(varint(&mut bytes)?).map_err(|_| Malformed)?;
                Raw::Bytes(take(&mut bytes, length)?)
            }
            5 => Raw::Bytes(take(&mut bytes, 4)?),
            _ => return Err(Malformed),
        };
        all.push((number, raw));
    }
    Ok(all)
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Result<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(length).ok_or(Malformed)?;
    *bytes = rest;
    Ok(taken)
}

fn varint(bytes: &mut &[u8]) -> Result<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first().ok_or(Malformed)?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(Malformed)
}

fn text(bytes: &[u8]) -> Result<String> {
    String::from_utf8(bytes.to_vec()).map_err(|_| Malformed)
}

fn message(shapes: &Shapes, shape: &str, bytes: &[u8]) -> Result<Value> {
    let mut map = Map::new();
    let known = shapes.get(shape).ok_or(Malformed)?;
    for (number, raw) in fields(bytes)? {
        match (known.inlined(number), raw) {
            (Some(inner), Raw::Bytes(bytes)) => {
                if let Value::Object(inner) = message(shapes, inner, bytes)? {
                    map.extend(inner);
                }
            }
            _ => insert(shapes, known, &mut map, number, raw)?,
        }
    }
    Ok(Value::Object(map))
}

fn insert(
    shapes: &Shapes,
    known: &Fields,
    map: &mut Map<String, Value>,
    number: usize,
    raw: Raw<'_>,
) -> Result<()> {
    // A field of a newer version of the API is ignored, like other unknown fields.
    let Some(field) = known.iter().find(|field| field.number == Some(number)) else {
        return Ok(());
    };
    match field.shape.pointee() {
        Shape::List(inner) => {
            let item = value(shapes, inner, raw)?;
            if let Value::Array(list) = map.entry(field.name.clone()).or_insert_with(|| json!([])) {
                list.push(item);
            }
        }
        Shape::Map(inner) => {
            let (key, item) = entry(shapes, inner, raw)?;
            if let Value::Object(entries) = map.entry(field.name.clone()).or_insert_with(|| json!({})) {
                entries.insert(key, item);
            }
        }
        shape => {
            map.insert(field.name.clone(), value(shapes, shape, raw)?);
        }
    }
    Ok(())
}

/// Maps are lists of pairs.
fn entry(shapes: &Shapes, shape: &Shape, raw: Raw<'_>) -> Result<(String, Value)> {
    let Raw::Bytes(bytes) = raw else { return Err(Malformed) };
    let (mut key, mut item) = (String::new(), Value::Null);
    for (number, raw) in fields(bytes)? {
        match (number, raw) {
            (1, Raw::Bytes(bytes)) => key = text(bytes)?,
            (2, raw) => item = value(shapes, shape, raw)?,
            _ => {}
        }
    }
    Ok((key, item))
}

fn value(shapes: &Shapes, shape: &Shape, raw: Raw<'_>) -> Result<Value> {
    match (shape, raw) {
        (Shape::Pointer(inner), raw) => value(shapes, inner, raw),
        (Shape::Bool, Raw::Number(number)) => Ok(json!(number != 0)),
        (Shape::Int32 | Shape::Int64, Raw::Number(number)) => Ok(json!(number.cast_signed())),
        (Shape::String(_), Raw::Bytes(bytes)) => text(bytes).map(Value::String),
        (Shape::Bytes, Raw::Bytes(bytes)) => Ok(json!(super::base64_encode(bytes))),
        (Shape::Struct(name), Raw::Bytes(bytes)) => message(shapes, name, bytes),
        (Shape::Time, Raw::Bytes(bytes)) => moment(bytes, time::seconds),
        (Shape::MicroTime, Raw::Bytes(bytes)) => moment(bytes, time::micros),
        (Shape::Quantity, Raw::Bytes(bytes)) => {
            part(bytes, 1).map(|quantity| quantity.unwrap_or_else(|| json!("0")))
        }
        (Shape::Any, Raw::Bytes(bytes)) => any(bytes),
        (Shape::IntOrString, Raw::Bytes(bytes)) => int_or_string(bytes),
        // A list within a map or list is a message with one repeated field.
        (Shape::List(inner), Raw::Bytes(bytes)) => {
            let items = fields(bytes)?.into_iter().filter(|(number, _)| *number == 1);
            items.map(|(_, raw)| value(shapes, inner, raw)).collect::<Result<Vec<_>>>().map(Value::Array)
        }
        _ => Err(Malformed),
    }
}

fn moment(bytes: &[u8], print: fn(jiff::Timestamp) -> String) -> Result<Value> {
    let (mut seconds, mut nanos) = (0i64, 0i32);
    for (number, raw) in fields(bytes)? {
        match (number, raw) {
            (1, Raw::Number(number)) => seconds = number.cast_signed(),
            (2, Raw::Number(number)) => nanos = i32::try_from(number.cast_signed()).map_err(|_| Malformed)?,
            _ => {}
        }
    }
    // An empty message and the zero time both mean that there is no time.
    if bytes.is_empty() || seconds <= -62_135_596_800 {
        return Ok(Value::Null);
    }
    let at = jiff::Timestamp::new(seconds, nanos).map_err(|_| Malformed)?;
    Ok(json!(print(at)))
}

fn part(bytes: &[u8], wanted: usize) -> Result<Option<Value>> {
    for (number, raw) in fields(bytes)? {
        if let (true, Raw::Bytes(bytes)) = (number == wanted, raw) {
            return text(bytes).map(|text| Some(Value::String(text)));
        }
    }
    Ok(None)
}

/// Raw JSON.
fn any(bytes: &[u8]) -> Result<Value> {
    match part(bytes, 1)? {
        Some(Value::String(text)) => serde_json::from_str(&text).map_err(|_| Malformed),
        _ => Ok(Value::Null),
    }
}

fn int_or_string(bytes: &[u8]) -> Result<Value> {
    let (mut is_text, mut number) = (false, 0i64);
    for (field, raw) in fields(bytes)? {
        match (field, raw) {
            (1, Raw::Number(kind)) => is_text = kind == 1,
            (2, Raw::Number(value)) => number = value.cast_signed(),
            _ => {}
        }
    }
    if is_text { Ok(part(bytes, 3)?.unwrap_or_else(|| json!(""))) } else { Ok(json!(number)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(number: u8, content: &[u8]) -> Vec<u8> {
        let mut bytes = vec![number << 3 | 2, u8::try_from(content.len()).unwrap()];
        bytes.extend_from_slice(content);
        bytes
    }

    fn number(field: u8, value: u8) -> Vec<u8> {
        vec![field << 3, value]
    }

    fn body(kind: &str, content: &[u8]) -> Vec<u8> {
        let names = [field(1, b"v1"), field(2, kind.as_bytes())].concat();
        [MAGIC.to_vec(), field(1, &names), field(2, content)].concat()
    }

    #[test]
    fn messages_become_objects() {
        let shapes = Shapes::kubernetes();
        let label = field(11, &[field(1, b"a"), field(2, b"b")].concat());
        let metadata = [field(1, b"web"), field(3, b"default"), label].concat();
        let target = [number(1, 1), field(3, b"http")].concat();
        let port = [field(1, b"p"), number(3, 80), field(4, &target)].concat();
        let spec = [field(1, &port), field(4, b"NodePort")].concat();
        let service = body("Service", &[field(1, &metadata), field(2, &spec), field(15, b"new")].concat());
        assert_eq!(
            read(&shapes, "core/v1.Service", &service).unwrap(),
            json!({"apiVersion": "v1", "kind": "Service",
                   "metadata": {"name": "web", "namespace": "default", "labels": {"a": "b"}},
                   "spec": {"ports": [{"name": "p", "port": 80, "targetPort": "http"}], "type": "NodePort"}})
        );
    }

    #[test]
    fn bytes_times_and_inlined_messages() {
        let shapes = Shapes::kubernetes();
        let data = field(2, &[field(1, b"k"), field(2, b"\xff\x00")].concat());
        let secret = read(&shapes, "core/v1.Secret", &body("Secret", &data)).unwrap();
        assert_eq!(secret["data"], json!({"k": "/wA="}));
        let volume = [field(1, b"v"), field(2, &field(1, &field(1, b"/x")))].concat();
        let pod = field(2, &field(1, &volume));
        let pod = read(&shapes, "core/v1.Pod", &body("Pod", &pod)).unwrap();
        assert_eq!(pod["spec"]["volumes"], json!([{"name": "v", "hostPath": {"path": "/x"}}]));
    }

    #[test]
    fn nonsense_is_refused() {
        let shapes = Shapes::kubernetes();
        for body in [&b""[..], b"{}", b"k8s\0\xff", b"k8s\0\x12\x7f"] {
            assert_eq!(read(&shapes, "core/v1.Service", body), Err(Malformed), "{body:?}");
        }
    }
}
