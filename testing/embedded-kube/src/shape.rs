//! The shapes of the kinds: which fields there are, how Go writes them, and how strategic patches merge them.
//!
//! The data file beside this module is the only place that knows Kubernetes' fields. A kind without a shape (a
//! custom resource) is kept as it comes.

use std::collections::BTreeMap;

/// Whether an empty field is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Omit {
    Always,
    Empty,
    Zero,
}

/// The wire form of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A string, with the Go name of its type where that is not plain `string`.
    String(Option<String>),
    Bool,
    Int32,
    Int64,
    Bytes,
    Quantity,
    Time,
    MicroTime,
    IntOrString,
    Any,
    List(Box<Shape>),
    Map(Box<Shape>),
    Pointer(Box<Shape>),
    Struct(String),
}

/// How a strategic merge treats a field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PatchRule {
    pub(crate) merge: bool,
    /// Clients say which keys of an item stay.
    pub(crate) retain_keys: bool,
    pub(crate) key: Option<String>,
}

/// One field of a struct.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) name: String,
    /// Its number in protobuf, where it has one.
    pub(crate) number: Option<usize>,
    pub(crate) omit: Omit,
    pub(crate) shape: Shape,
    pub(crate) rule: PatchRule,
}

/// The fields of one struct, in the order of the wire format.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields {
    fields: Vec<Field>,
    inlined: Vec<(usize, String)>,
}

impl Fields {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Field> {
        self.fields.iter()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// The shape of a message that is one of its own in protobuf only.
    pub(crate) fn inlined(&self, number: usize) -> Option<&str> {
        self.inlined.iter().find(|(known, _)| *known == number).map(|(_, shape)| shape.as_str())
    }
}

/// All known shapes by name, such as `core/v1.Service`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shapes(BTreeMap<String, Fields>);

impl Shapes {
    /// The shapes of Kubernetes' own kinds that are served here.
    pub(crate) fn kubernetes() -> Self {
        Self::parse(include_str!("schema/kinds.txt"))
    }

    fn parse(text: &str) -> Self {
        let mut shapes: BTreeMap<String, Fields> = BTreeMap::new();
        let mut name = None;
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            match (line.strip_prefix("  "), &name) {
                (None, _) => {
                    shapes.insert(line.to_owned(), Fields::default());
                    name = Some(line.to_owned());
                }
                (Some(field), Some(name)) => {
                    if let Some(fields) = shapes.get_mut(name) {
                        fields.inlined.extend(parse_inlined(field));
                        fields.fields.extend(parse_field(field));
                    }
                }
                (Some(_), None) => {}
            }
        }
        Self(shapes)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Fields> {
        self.0.get(name)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Fields)> {
        self.0.iter().map(|(name, fields)| (name.as_str(), fields))
    }
}

fn parse_inlined(line: &str) -> Option<(usize, String)> {
    let (number, shape) = line.strip_prefix("~ ")?.split_once(' ')?;
    Some((number.parse().ok()?, shape.to_owned()))
}

fn parse_field(line: &str) -> Option<Field> {
    let mut words = line.split(' ');
    let (name, number, omit, shape) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let mut rule = PatchRule::default();
    for word in words {
        match word.split_once('=') {
            Some(("patch", strategies)) => {
                rule.merge = strategies.split(',').any(|s| s == "merge");
                rule.retain_keys = strategies.split(',').any(|s| s == "retainKeys");
            }
            Some(("key", key)) => rule.key = Some(key.to_owned()),
            _ => {}
        }
    }
    let omit = match omit {
        "always" => Omit::Always,
        "omitzero" => Omit::Zero,
        _ => Omit::Empty,
    };
    Some(Field { name: name.to_owned(), number: number.parse().ok(), omit, shape: parse_shape(shape), rule })
}

fn parse_shape(text: &str) -> Shape {
    if let Some(inner) = text.strip_prefix('*') {
        return Shape::Pointer(Box::new(parse_shape(inner)));
    }
    if let Some(inner) = text.strip_prefix("[]") {
        return Shape::List(Box::new(parse_shape(inner)));
    }
    if let Some(inner) = text.strip_prefix("map:") {
        return Shape::Map(Box::new(parse_shape(inner)));
    }
    let (base, go_name) = match text.split_once('=') {
        Some((base, go_name)) => (base, Some(go_name)),
        None => (text, None),
    };
    match base {
        "string" => Shape::String(go_name.map(|name| short(name).to_owned())),
        "bool" => Shape::Bool,
        "int32" => Shape::Int32,
        "int64" => Shape::Int64,
        "bytes" => Shape::Bytes,
        "quantity" => Shape::Quantity,
        "time" => Shape::Time,
        "microtime" => Shape::MicroTime,
        "intstr" => Shape::IntOrString,
        "any" => Shape::Any,
        name => Shape::Struct(name.to_owned()),
    }
}

/// `core/v1.Service` as Go prints it: `v1.Service`.
pub(crate) fn short(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

impl Shape {
    /// The name of the type in Go's decoding errors.
    pub(crate) fn go_name(&self) -> String {
        match self {
            Self::String(name) => name.clone().unwrap_or_else(|| "string".to_owned()),
            Self::Bool => "bool".to_owned(),
            Self::Int32 => "int32".to_owned(),
            Self::Int64 => "int64".to_owned(),
            Self::Bytes => "[]uint8".to_owned(),
            Self::Quantity => "resource.Quantity".to_owned(),
            Self::Time => "v1.Time".to_owned(),
            Self::MicroTime => "v1.MicroTime".to_owned(),
            Self::IntOrString => "intstr.IntOrString".to_owned(),
            Self::Any => "map[string]interface {}".to_owned(),
            Self::List(inner) => format!("[]{}", inner.go_name()),
            Self::Map(inner) => format!("map[string]{}", inner.go_name()),
            Self::Pointer(inner) => inner.go_name(),
            Self::Struct(name) => short(name).to_owned(),
        }
    }

    /// The shape behind any pointers.
    pub(crate) fn pointee(&self) -> &Self {
        match self {
            Self::Pointer(inner) => inner.pointee(),
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_file_is_complete() {
        fn refers(shape: &Shape, out: &mut Vec<String>) {
            match shape {
                Shape::List(s) | Shape::Map(s) | Shape::Pointer(s) => refers(s, out),
                Shape::Struct(name) => out.push(name.clone()),
                _ => {}
            }
        }
        let shapes = Shapes::kubernetes();
        let mut fields = 0;
        for (name, of) in shapes.iter() {
            for field in of.iter() {
                fields += 1;
                let mut names = Vec::new();
                refers(&field.shape, &mut names);
                for to in names {
                    assert!(shapes.get(&to).is_some(), "{name}.{} refers to {to}", field.name);
                }
            }
        }
        assert!(fields > 900, "{fields} fields");
    }

    #[test]
    fn patch_rules_are_those_of_the_api() {
        let shapes = Shapes::kubernetes();
        let table = [
            ("core/v1.ServiceSpec", "ports", true, Some("port")),
            ("core/v1.NodeStatus", "addresses", true, Some("type")),
            ("core/v1.NodeStatus", "conditions", true, Some("type")),
            ("core/v1.NodeSpec", "taints", false, None),
            ("core/v1.NodeSpec", "podCIDRs", true, None),
            ("core/v1.PodSpec", "containers", true, Some("name")),
            ("meta/v1.ObjectMeta", "finalizers", true, None),
            ("meta/v1.ObjectMeta", "ownerReferences", true, Some("uid")),
            ("core/v1.LoadBalancerStatus", "ingress", false, None),
            ("core/v1.ServiceStatus", "conditions", true, Some("type")),
        ];
        for (of, field, merge, key) in table {
            let rule = &shapes.get(of).unwrap().get(field).unwrap().rule;
            assert_eq!((rule.merge, rule.key.as_deref()), (merge, key), "{of}.{field}");
        }
    }
}
