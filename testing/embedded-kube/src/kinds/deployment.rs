//! Deployments as data: nothing rolls them out.

use serde_json::{Value, json};

use super::super::field::FieldErrors;
use super::super::labels::LabelSelector;
use super::super::meta;
use super::super::names::NameRule;
use super::super::value::{at, at_mut, default, entries, int, list, put, set, text, texts};
use super::pod;

pub(super) fn defaults(deployment: &mut Value) {
    default(deployment, "spec.replicas", 1);
    default(deployment, "spec.strategy.type", "RollingUpdate");
    if text(deployment, "spec.strategy.type") == "RollingUpdate" {
        default(deployment, "spec.strategy.rollingUpdate.maxUnavailable", "25%");
        default(deployment, "spec.strategy.rollingUpdate.maxSurge", "25%");
    }
    default(deployment, "spec.revisionHistoryLimit", 10);
    default(deployment, "spec.progressDeadlineSeconds", 600);
    if let Some(template) = at_mut(deployment, "spec.template") {
        pod::spec_defaults(template);
    }
}

pub(super) fn prepare_create(deployment: &mut Value) {
    set(deployment, "metadata.generation", 1);
    set(deployment, "status", json!({}));
}

/// Replica sets inherit annotations, so a change of those is a new generation too.
pub(super) fn prepare_update(subresource: Option<&str>, new: &mut Value, old: &Value) {
    if subresource == Some("status") {
        put(new, "spec", at(old, "spec").cloned());
        put(new, "metadata.labels", at(old, "metadata.labels").cloned());
        return;
    }
    put(new, "status", at(old, "status").cloned());
    if ["spec", "metadata.annotations"].iter().any(|part| at(new, part) != at(old, part)) {
        meta::bump_generation(new);
    }
}

pub(super) fn validate(deployment: &Value) -> FieldErrors {
    let mut errors = meta::validate(deployment, true, NameRule::Subdomain);
    errors.append(validate_spec(deployment));
    errors
}

pub(super) fn validate_update(subresource: Option<&str>, new: &Value, old: &Value) -> FieldErrors {
    if subresource == Some("status") {
        return validate_status(new);
    }
    let mut errors = validate_spec(new);
    let selector = |object| at(object, "spec.selector").cloned().unwrap_or_default();
    if selector(new) != selector(old) {
        errors.invalid("spec.selector", selector(new), "field is immutable");
    }
    errors
}

fn not_negative(object: &Value, path: &str, errors: &mut FieldErrors) {
    if int(object, path) < 0 {
        errors.invalid(path, int(object, path), "must be greater than or equal to 0");
    }
}

fn validate_spec(deployment: &Value) -> FieldErrors {
    let mut errors = FieldErrors::default();
    not_negative(deployment, "spec.replicas", &mut errors);
    let selector = at(deployment, "spec.selector").map(selector_text);
    match &selector {
        None => errors.required("spec.selector", ""),
        Some(text) if text.is_empty() => {
            errors.invalid("spec.selector", json!({}), "empty selector is invalid for deployment");
        }
        Some(_) => {}
    }
    let template = at(deployment, "spec.template").cloned().unwrap_or_default();
    let matches = |text: &String| LabelSelector::parse(text).is_ok_and(|terms| terms.matches(&template));
    if !selector.is_some_and(|text| matches(&text)) {
        let labels = at(&template, "metadata.labels").cloned().unwrap_or_default();
        let why = "`selector` does not match template `labels`";
        errors.invalid("spec.template.metadata.labels", labels, why);
    }
    pod::validate_spec(&template, "spec.template.", &mut errors);
    let policy = text(&template, "spec.restartPolicy");
    if policy != "Always" {
        errors.not_supported("spec.template.spec.restartPolicy", policy, &["Always"]);
    }
    strategy(deployment, &mut errors);
    for path in ["spec.minReadySeconds", "spec.revisionHistoryLimit", "spec.progressDeadlineSeconds"] {
        not_negative(deployment, path, &mut errors);
    }
    let deadline = int(deployment, "spec.progressDeadlineSeconds");
    if deadline <= int(deployment, "spec.minReadySeconds") {
        let why = "must be greater than minReadySeconds";
        errors.invalid("spec.progressDeadlineSeconds", deadline, why);
    }
    errors
}

fn strategy(deployment: &Value, errors: &mut FieldErrors) {
    let rolling = "spec.strategy.rollingUpdate";
    match text(deployment, "spec.strategy.type") {
        "Recreate" if at(deployment, rolling).is_some() => {
            errors.forbidden(rolling, "may not be specified when strategy `type` is 'Recreate'");
        }
        "Recreate" => {}
        "RollingUpdate" => {
            let none = |path: &str| matches!(at(deployment, path), Some(v) if v == 0 || v == "0%");
            let unavailable = format!("{rolling}.maxUnavailable");
            if none(&unavailable) && none(&format!("{rolling}.maxSurge")) {
                let shown = at(deployment, &unavailable).cloned().unwrap_or_default();
                errors.invalid(&unavailable, shown, "may not be 0 when `maxSurge` is 0");
            }
        }
        _ => {
            let shown = at(deployment, "spec.strategy").cloned().unwrap_or_default();
            errors.not_supported("spec.strategy", shown, &["Recreate", "RollingUpdate"]);
        }
    }
}

fn validate_status(deployment: &Value) -> FieldErrors {
    let mut errors = FieldErrors::default();
    let count = |name: &str| int(deployment, &format!("status.{name}"));
    for name in [
        "observedGeneration",
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
    ] {
        not_negative(deployment, &format!("status.{name}"), &mut errors);
    }
    for name in ["updatedReplicas", "readyReplicas", "availableReplicas"] {
        if count(name) > count("replicas") {
            let why = "cannot be greater than status.replicas";
            errors.invalid(&format!("status.{name}"), count(name), why);
        }
    }
    if count("availableReplicas") > count("readyReplicas") {
        let why = "cannot be greater than readyReplicas";
        errors.invalid("status.availableReplicas", count("availableReplicas"), why);
    }
    errors
}

/// A label selector as `kubectl` writes it: `app=web,tier in (a,b)`, in order of key.
pub(crate) fn selector_text(selector: &Value) -> String {
    let labels = entries(selector, "matchLabels")
        .map(|(key, value)| (key.as_str(), format!("{key}={}", value.as_str().unwrap_or_default())));
    let expressions = list(selector, "matchExpressions").iter().map(|term| {
        let (key, mut values) = (text(term, "key"), texts(term, "values"));
        values.sort();
        let values = values.join(",");
        let shown = match text(term, "operator") {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        };
        (key, shown)
    });
    let mut terms: Vec<(&str, String)> = labels.chain(expressions).collect();
    terms.sort();
    terms.into_iter().map(|(_, shown)| shown).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deployment(change: impl FnOnce(&mut Value)) -> Value {
        let mut deployment = json!({
            "metadata": {"name": "web", "namespace": "default", "generation": 1},
            "spec": {
                "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
            },
        });
        change(&mut deployment);
        defaults(&mut deployment);
        deployment
    }

    #[test]
    fn the_selector_has_to_match_and_stays() {
        let old = deployment(|_| {});
        assert!(validate(&old).is_empty(), "{:?}", validate(&old));
        let new = deployment(|d| {
            set(
                d,
                "spec.selector",
                json!({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]}),
            );
        });
        let found = validate_update(None, &new, &old).summary().unwrap();
        assert!(
            found.starts_with("spec.selector: Invalid value:") && found.ends_with("field is immutable"),
            "{found}"
        );
        let other = deployment(|d| set(d, "spec.template.metadata.labels.app", "other"));
        let found = validate(&other).summary().unwrap();
        assert_eq!(
            found,
            "spec.template.metadata.labels: Invalid value: {\"app\":\"other\"}: `selector` does not match template `labels`"
        );
    }

    #[test]
    fn what_is_new_is_a_new_generation() {
        let old = deployment(|_| {});
        for (path, value, generation) in [
            ("spec.replicas", json!(3), 2),
            ("metadata.annotations", json!({"a": "b"}), 2),
            ("metadata.labels", json!({"a": "b"}), 1),
        ] {
            let mut new = old.clone();
            set(&mut new, path, value);
            prepare_update(None, &mut new, &old);
            assert_eq!(int(&new, "metadata.generation"), generation, "{path}");
        }
    }

    #[test]
    fn selectors_are_written_in_order_of_key() {
        let selector = json!({"matchLabels": {"tier": "front"}, "matchExpressions": [
            {"key": "app", "operator": "NotIn", "values": ["b", "a"]}, {"key": "x", "operator": "DoesNotExist"},
        ]});
        assert_eq!(selector_text(&selector), "app notin (a,b),tier=front,!x");
    }
}
