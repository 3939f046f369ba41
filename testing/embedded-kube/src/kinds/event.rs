//! Events: kept in the core shape, shown in the shape of either API.

use serde_json::{Map, Value};

use super::super::field::FieldErrors;
use super::super::meta;
use super::super::names::{NameRule, qualified_name};
use super::super::resource::Resource;
use super::super::value::{self, at, int, text};

/// Fields whose names differ: in `events.k8s.io`, in the core group.
const RENAMED: [(&str, &str); 7] = [
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
    ("reportingController", "reportingComponent"),
];

fn renamed(event: &Value, name: impl Fn(&str) -> Option<&'static str>) -> Value {
    let rename = |(key, value): (&String, &Value)| {
        (name(key).map_or_else(|| key.clone(), str::to_owned), value.clone())
    };
    event.as_object().map(|map| map.iter().map(rename).collect::<Map<_, _>>()).unwrap_or_default().into()
}

/// An `events.k8s.io` event in the core shape.
pub(crate) fn to_core(event: &Value) -> Value {
    renamed(event, |key| RENAMED.iter().find(|(new, _)| *new == key).map(|(_, core)| *core))
}

/// A core event in the shape of `events.k8s.io`.
pub(crate) fn from_core(event: &Value) -> Value {
    renamed(event, |key| RENAMED.iter().find(|(_, core)| *core == key).map(|(new, _)| *new))
}

fn is_new_style(resource: &Resource) -> bool {
    resource.group == "events.k8s.io"
}

pub(super) fn validate_create(resource: &Resource, event: &Value) -> FieldErrors {
    let mut errors = legacy(resource, event);
    if !is_new_style(resource) {
        return errors;
    }
    errors.append(meta::validate(event, true, NameRule::Subdomain));
    series(event, &mut errors);
    if at(event, "eventTime").is_none() {
        errors.required("eventTime", "");
    }
    let kind = text(event, "type");
    if !matches!(kind, "Normal" | "Warning") {
        errors.invalid("type", "", &format!("has invalid value: {kind}"));
    }
    let unset = [
        ("firstTimestamp", at(event, "firstTimestamp").is_some()),
        ("lastTimestamp", at(event, "lastTimestamp").is_some()),
        ("count", int(event, "count") != 0),
        ("source", !text(event, "source.component").is_empty() || !text(event, "source.host").is_empty()),
    ];
    for (field, _) in unset.iter().filter(|(_, set)| *set) {
        errors.invalid(field, "", "needs to be unset");
    }
    errors
}

pub(super) fn validate_update(resource: &Resource, new: &Value, old: &Value) -> FieldErrors {
    let mut errors = legacy(resource, new);
    if !is_new_style(resource) {
        return errors;
    }
    errors.append(meta::validate_update(new, old));
    if at(new, "series") != at(old, "series") {
        series(new, &mut errors);
    }
    let frozen = [
        "involvedObject",
        "reason",
        "message",
        "source",
        "firstTimestamp",
        "lastTimestamp",
        "count",
        "reason",
        "type",
        "eventTime",
        "action",
        "related",
        "reportingComponent",
        "reportingInstance",
    ];
    for field in frozen.iter().filter(|field| at(new, field) != at(old, field)) {
        let shown = if *field == "reportingComponent" { "reportingController" } else { field };
        errors.invalid(shown, at(new, field).cloned().unwrap_or(Value::Null), "field is immutable");
    }
    errors
}

fn series(event: &Value, errors: &mut FieldErrors) {
    if at(event, "series").is_none() {
        return;
    }
    if int(event, "series.count") < 2 {
        errors.invalid("series.count", "", "should be at least 2");
    }
    if at(event, "series.lastObservedTime").is_none() {
        errors.required("series.lastObservedTime", "");
    }
}

/// What holds for every event: old ones must name their namespace, new ones their reporter and reason.
fn legacy(resource: &Resource, event: &Value) -> FieldErrors {
    let mut errors = FieldErrors::default();
    let (own, of_object) = (value::namespace(event), text(event, "involvedObject.namespace"));
    let mut mismatch =
        || errors.invalid("involvedObject.namespace", of_object, "does not match event.namespace");
    if at(event, "eventTime").is_none() {
        let fits = if of_object.is_empty() { matches!(own, "" | "default") } else { own == of_object };
        if !fits {
            mismatch();
        }
        return errors;
    }
    if of_object.is_empty() && !matches!(own, "default" | "kube-system") {
        mismatch();
    }
    let controller = if resource.group.is_empty() { "reportingComponent" } else { "reportingController" };
    let reporter = text(event, "reportingComponent");
    if reporter.is_empty() {
        errors.required(controller, "");
    }
    errors.invalid_each(controller, reporter, qualified_name(reporter));
    for (field, required) in
        [("reportingInstance", true), ("action", true), ("reason", true), ("message", false)]
    {
        let (content, limit) = (text(event, field), if field == "message" { 1024 } else { 128 });
        if required && content.is_empty() {
            errors.required(field, "");
        }
        if content.len() > limit {
            errors.invalid(field, "", &format!("can have at most {limit} characters"));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_two_shapes_are_one_event() {
        let new = json!({"regarding": {"kind": "Node"}, "note": "n", "deprecatedCount": 2, "reportingController": "c", "type": "Normal"});
        let core = json!({"involvedObject": {"kind": "Node"}, "message": "n", "count": 2, "reportingComponent": "c", "type": "Normal"});
        assert_eq!(to_core(&new), core);
        assert_eq!(from_core(&core), new);
    }

    #[test]
    fn events_are_checked() {
        let all = super::super::super::resource::builtin();
        let of = |group: &str| all.iter().find(|r| r.plural == "events" && r.group == group).unwrap();
        let old = json!({"metadata": {"name": "e", "namespace": "a"}, "involvedObject": {"namespace": "b"}});
        assert!(validate_create(of(""), &old).summary().unwrap().contains("does not match event.namespace"));
        let node =
            json!({"metadata": {"name": "e", "namespace": "default"}, "involvedObject": {"kind": "Node"}});
        assert!(validate_create(of(""), &node).is_empty());
        let found = validate_create(of("events.k8s.io"), &node).summary().unwrap();
        assert!(
            found.contains("eventTime: Required value") && found.contains("has invalid value"),
            "{found}"
        );
    }
}
