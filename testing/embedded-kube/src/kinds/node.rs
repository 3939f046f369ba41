//! Nodes: taints, the provider's id, pod ranges.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::super::field::FieldErrors;
use super::super::meta;
use super::super::names::{NameRule, label_value, qualified_name};
use super::super::value::{at, entries, list, put, set, text, texts, unset};
use super::service_addresses::{check_cidr, cidr_warning};

/// `podCIDR` is the first of `podCIDRs`, whichever of the two was given.
pub(super) fn defaults(node: &mut Value) {
    let (first, all) = (text(node, "spec.podCIDR").to_owned(), texts(node, "spec.podCIDRs"));
    match (first.is_empty(), all.first()) {
        (false, None) => set(node, "spec.podCIDRs", json!([first])),
        (true, Some(range)) => set(node, "spec.podCIDR", range.clone()),
        (false, Some(range)) if *range != first => set(node, "spec.podCIDRs", json!([first])),
        _ => {}
    }
    if at(node, "status.allocatable").is_none() {
        put(node, "status.allocatable", at(node, "status.capacity").cloned());
    }
}

/// A new node gets the not-ready taint.
pub(super) fn prepare_create(node: &mut Value) {
    const NOT_READY: &str = "node.kubernetes.io/not-ready";
    let mut taints = list(node, "spec.taints").to_vec();
    let held = |taint: &Value| text(taint, "key") == NOT_READY && text(taint, "effect") == "NoSchedule";
    if !taints.iter().any(held) {
        taints.push(json!({"key": NOT_READY, "effect": "NoSchedule"}));
        set(node, "spec.taints", taints);
    }
    unset(node, "spec.configSource");
    unset(node, "status.config");
}

pub(super) fn prepare_update(new: &mut Value, old: &Value) {
    put(new, "status", at(old, "status").cloned());
    if at(old, "spec.configSource").is_none() {
        unset(new, "spec.configSource");
    }
}

pub(super) fn warnings(node: &Value) -> Vec<String> {
    let deprecated = "spec.externalID: this field is deprecated, and is unused by Kubernetes";
    let mut warnings: Vec<String> = Vec::new();
    warnings.extend((!text(node, "spec.externalID").is_empty()).then(|| deprecated.to_owned()));
    let ranges = texts(node, "spec.podCIDRs");
    warnings.extend(
        ranges.iter().enumerate().filter_map(|(i, r)| cidr_warning(&format!("spec.podCIDRs[{i}]"), r)),
    );
    warnings
}

pub(super) fn validate(node: &Value) -> FieldErrors {
    let mut errors = meta::validate(node, false, NameRule::Subdomain);
    taints(node, &mut errors);
    quantities(node, &mut errors);
    let ranges = texts(node, "spec.podCIDRs");
    for (index, range) in ranges.iter().enumerate() {
        check_cidr(&format!("spec.podCIDRs[{index}]"), range, &[], &mut errors);
    }
    if ranges.len() > 1 {
        let sixes = ranges.iter().filter(|range| range.contains(':')).count();
        if ranges.len() > 2 || sixes != 1 {
            let detail = "may specify no more than one CIDR for each IP family";
            errors.invalid("spec.podCIDRs", json!(ranges), detail);
        }
    }
    errors
}

pub(super) fn validate_update(new: &Value, old: &Value) -> FieldErrors {
    let mut errors = FieldErrors::default();
    quantities(new, &mut errors);
    let mut seen = BTreeSet::new();
    for (index, address) in list(new, "status.addresses").iter().enumerate() {
        if !seen.insert((text(address, "type"), text(address, "address"))) {
            let (kind, host) = (text(address, "type"), text(address, "address"));
            let shown = format!("{{\"Type\":{kind:?},\"Address\":{host:?}}}");
            errors.duplicate_shown(&format!("status.addresses[{index}]"), shown, "");
        }
    }
    let (before, after) = (texts(old, "spec.podCIDRs"), texts(new, "spec.podCIDRs"));
    if !before.is_empty() {
        let detail = "node updates may not change podCIDR except from \"\" to valid";
        if before.len() == after.len() {
            for _ in before.iter().zip(&after).filter(|(before, after)| before != after) {
                errors.forbidden("spec.podCIDRs", detail);
            }
        } else {
            errors.forbidden("spec.podCIDRs", detail);
        }
    }
    match (text(old, "spec.providerID"), text(new, "spec.providerID")) {
        ("", _) => {}
        (_, "") => errors.invalid("spec.providerID", Value::Null, "field cannot be cleared once set"),
        (before, after) if before != after => {
            errors.invalid("spec.providerID", Value::Null, "field cannot be modified once set");
        }
        _ => {}
    }
    taints(new, &mut errors);
    if text(new, "spec.externalID") != text(old, "spec.externalID") {
        errors.forbidden("spec.externalID", "may not be updated");
    }
    errors
}

/// A taint is identified by its key and its effect. (The wrong path in messages is the API server's.)
fn taints(node: &Value, errors: &mut FieldErrors) {
    let mut seen = BTreeSet::new();
    for (index, taint) in list(node, "spec.taints").iter().enumerate() {
        let path = format!("metadata.taints[{index}]");
        let (key, value, effect) = (text(taint, "key"), text(taint, "value"), text(taint, "effect"));
        errors.invalid_each(&format!("{path}.key"), key, qualified_name(key));
        let problems = label_value(value);
        if !problems.is_empty() {
            errors.invalid(&format!("{path}.value"), value, &problems.join(";"));
        }
        match effect {
            "" => errors.required(&format!("{path}.effect"), ""),
            "NoSchedule" | "PreferNoSchedule" | "NoExecute" => {}
            other => {
                let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
                errors.not_supported(&format!("{path}.effect"), other, &effects);
            }
        }
        if !seen.insert((effect, key)) {
            let added = at(taint, "timeAdded").cloned().unwrap_or(Value::Null);
            let shown = format!(
                "{{\"Key\":{key:?},\"Value\":{value:?},\"Effect\":{effect:?},\"TimeAdded\":{added}}}"
            );
            errors.duplicate_shown(&path, shown, "taints must be unique by key and effect pair");
        }
    }
}

fn quantities(node: &Value, errors: &mut FieldErrors) {
    for part in ["status.capacity", "status.allocatable"] {
        for (name, quantity) in entries(node, part) {
            let shown = quantity.as_str().unwrap_or_default();
            if super::super::quantity::nanos(shown).is_some_and(|nanos| nanos < 0) {
                let path = format!("{part}.{name}");
                errors.invalid(&path, shown, "must be greater than or equal to 0");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(spec: &Value) -> Value {
        json!({"metadata": {"name": "n", "resourceVersion": "1"}, "spec": spec, "status": {}})
    }

    #[test]
    fn bad_nodes_are_refused() {
        let taint = |key: &str, effect: &str| json!({"key": key, "effect": effect});
        let table = [
            ("fine", node(&json!({"taints": [taint("a", "NoSchedule"), taint("a", "NoExecute")]})), ""),
            (
                "the same taint twice",
                node(&json!({"taints": [taint("a", "NoSchedule"), taint("a", "NoSchedule")]})),
                "metadata.taints[1]: Duplicate value",
            ),
            (
                "no effect",
                node(&json!({"taints": [taint("a", "")]})),
                "metadata.taints[0].effect: Required value",
            ),
            (
                "strange effect",
                node(&json!({"taints": [taint("a", "Explode")]})),
                "metadata.taints[0].effect: Unsupported value: \"Explode\": supported values: \"NoSchedule\", \"PreferNoSchedule\", \"NoExecute\"",
            ),
            ("a bad range", node(&json!({"podCIDRs": ["10.0.0.0/33"]})), "spec.podCIDRs[0]: Invalid value"),
            (
                "two ranges of one family",
                node(&json!({"podCIDRs": ["10.0.0.0/24", "10.1.0.0/24"]})),
                "no more than one CIDR for each IP family",
            ),
        ];
        for (case, node, want) in table {
            let found = validate(&node).summary().unwrap_or_default();
            assert!(if want.is_empty() { found.is_empty() } else { found.contains(want) }, "{case}: {found}");
        }
    }

    #[test]
    fn what_is_set_once_stays() {
        let old =
            node(&json!({"providerID": "x://1", "podCIDRs": ["10.0.0.0/24"], "podCIDR": "10.0.0.0/24"}));
        let table = [
            ("the same", old.clone(), ""),
            (
                "another provider id",
                node(&json!({"providerID": "x://2", "podCIDRs": ["10.0.0.0/24"]})),
                "spec.providerID: Invalid value: null: field cannot be modified once set",
            ),
            (
                "no provider id",
                node(&json!({"podCIDRs": ["10.0.0.0/24"]})),
                "spec.providerID: Invalid value: null: field cannot be cleared once set",
            ),
            (
                "another range",
                node(&json!({"providerID": "x://1", "podCIDRs": ["10.9.0.0/24"]})),
                "node updates may not change podCIDR",
            ),
        ];
        for (case, new, want) in table {
            let found = validate_update(&new, &old).summary().unwrap_or_default();
            assert!(if want.is_empty() { found.is_empty() } else { found.contains(want) }, "{case}: {found}");
        }
    }

    #[test]
    fn the_two_range_fields_agree() {
        let table = [
            (
                json!({"podCIDR": "10.0.0.0/24"}),
                json!({"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24"]}),
            ),
            (
                json!({"podCIDRs": ["10.0.0.0/24"]}),
                json!({"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24"]}),
            ),
        ];
        for (given, want) in table {
            let mut node = node(&given);
            defaults(&mut node);
            assert_eq!(node["spec"], want);
        }
    }
}
