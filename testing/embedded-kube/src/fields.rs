//! Field selectors: `metadata.name=a,spec.unschedulable!=true`, over the fields that a resource declares.

use serde_json::Value;

use super::resource::{Behaviour, Resource};
use super::value;

/// A conjunction of (un)equalities on fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldSelector(Vec<Term>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Term {
    path: String,
    absent: String,
    equal: bool,
    value: String,
}

impl FieldSelector {
    /// Parses a selector for a resource; only fields that it declares may be named.
    pub(crate) fn parse(text: &str, resource: &Resource) -> Result<Self, String> {
        let mut terms = Vec::new();
        for part in split_terms(text) {
            let (label, equal, value) = split_operator(&part)
                .ok_or_else(|| format!("invalid selector: '{text}'; can't understand '{part}'"))?;
            let (path, absent) = known(resource, label)?;
            terms.push(Term { path, absent, equal, value: unescape(value) });
        }
        Ok(Self(terms))
    }

    pub(crate) fn matches(&self, object: &Value, behaviour: Behaviour) -> bool {
        self.0.iter().all(|term| (field(object, term, behaviour) == term.value) == term.equal)
    }

    /// The value that a field must have, if the selector demands one.
    pub(crate) fn demands(&self, path: &str) -> Option<&str> {
        self.0.iter().find(|term| term.equal && term.path == path).map(|term| term.value.as_str())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Where a field is and what stands for it when it is absent, or why it cannot be selected by.
fn known(resource: &Resource, label: &str) -> Result<(String, String), String> {
    if label == "metadata.name" || (label == "metadata.namespace" && resource.namespaced) {
        return Ok((label.to_owned(), String::new()));
    }
    match resource.selectable.iter().find(|field| field.label == label) {
        Some(field) => Ok((field.path.clone(), field.absent.clone())),
        None if resource.selectable.is_empty() && resource.custom.is_none() => Err(format!(
            "{label:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
        )),
        None => Err(format!("field label not supported: {label}")),
    }
}

fn field(object: &Value, term: &Term, behaviour: Behaviour) -> String {
    let path = match (behaviour, term.path.as_str()) {
        (Behaviour::Event, "source") if value::text(object, "source.component").is_empty() => {
            "reportingComponent"
        }
        (Behaviour::Event, "source") => "source.component",
        (_, path) => path,
    };
    match value::at(object, path) {
        None => term.absent.clone(),
        Some(Value::String(s)) => s.clone(),
        Some(other) => other.to_string(),
    }
}

/// Splits at commas that are not escaped.
fn split_terms(text: &str) -> Vec<String> {
    let (mut terms, mut term, mut escaped) = (Vec::new(), String::new(), false);
    for c in text.chars() {
        match c {
            ',' if !escaped => terms.push(std::mem::take(&mut term)),
            c => term.push(c),
        }
        escaped = c == '\\' && !escaped;
    }
    terms.push(term);
    terms.retain(|term| !term.is_empty());
    terms
}

fn split_operator(term: &str) -> Option<(&str, bool, &str)> {
    let at = term.find('=')?;
    let (left, right) = term.split_at(at);
    if let Some(left) = left.strip_suffix('!') {
        return Some((left, false, right.strip_prefix('=')?));
    }
    Some((left, true, right.strip_prefix("==").or_else(|| right.strip_prefix('='))?))
}

fn unescape(text: &str) -> String {
    let (mut plain, mut escaped) = (String::new(), false);
    for c in text.chars() {
        if c == '\\' && !escaped {
            escaped = true;
        } else {
            plain.push(c);
            escaped = false;
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_are_selected_by() {
        let all = super::super::resource::builtin();
        let resource = |plural: &str| all.iter().find(|r| r.plural == plural).unwrap();
        let table = [
            ("nodes", json!({"metadata": {"name": "a"}, "spec": {}}), "spec.unschedulable=false", true),
            ("nodes", json!({"spec": {"unschedulable": true}}), "spec.unschedulable=true", true),
            ("nodes", json!({"metadata": {"name": "a"}}), "metadata.name!=a", false),
            ("nodes", json!({"metadata": {"name": "a"}}), "metadata.name==a,spec.unschedulable!=true", true),
            ("secrets", json!({"type": "Opaque"}), "type=Opaque", true),
            ("services", json!({"spec": {"type": "LoadBalancer"}}), "spec.type=LoadBalancer", true),
            (
                "events",
                json!({"involvedObject": {"kind": "Node"}, "source": {"component": "c"}}),
                "involvedObject.kind=Node,source=c",
                true,
            ),
            ("events", json!({"reportingComponent": "c"}), "source=c", true),
            ("pods", json!({"status": {"phase": "Running"}}), "status.phase!=Running", false),
            ("services", json!({"metadata": {"name": "a,b"}}), "metadata.name=a\\,b", true),
        ];
        for (plural, object, text, want) in table {
            let resource = resource(plural);
            let selector = FieldSelector::parse(text, resource).unwrap();
            assert_eq!(selector.matches(&object, resource.behaviour), want, "{plural} {text}");
        }
    }

    #[test]
    fn undeclared_fields_are_refused() {
        let all = super::super::resource::builtin();
        let resource = |plural: &str| all.iter().find(|r| r.plural == plural).unwrap();
        assert_eq!(
            FieldSelector::parse("spec.x=1", resource("services")).unwrap_err(),
            "field label not supported: spec.x"
        );
        assert!(
            FieldSelector::parse("spec.x=1", resource("leases"))
                .unwrap_err()
                .contains("is not a known field selector")
        );
        assert!(
            FieldSelector::parse("spec.x", resource("leases")).unwrap_err().starts_with("invalid selector")
        );
    }
}
