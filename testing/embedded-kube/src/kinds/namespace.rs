//! Namespaces: the label with their name, the phase, the finalizer that a controller must clear.

use serde_json::{Value, json};

use super::super::field::FieldErrors;
use super::super::meta;
use super::super::names::{NameRule, qualified_name};
use super::super::value::{self, at, put, set, text, texts};

const NAME_LABEL: &str = "kubernetes.io/metadata.name";

pub(super) fn defaults(namespace: &mut Value) {
    if !value::name(namespace).is_empty() {
        label(namespace);
    }
}

/// Every namespace carries its name as a label.
pub(super) fn label(namespace: &mut Value) {
    let name = value::name(namespace).to_owned();
    if at(namespace, "metadata.labels").is_none() {
        set(namespace, "metadata.labels", json!({}));
    }
    if let Some(labels) = value::at_mut(namespace, "metadata.labels").and_then(Value::as_object_mut) {
        labels.insert(NAME_LABEL.to_owned(), json!(name));
    }
}

pub(super) fn prepare_create(namespace: &mut Value) {
    set(namespace, "status", json!({"phase": "Active"}));
    let mut finalizers = texts(namespace, "spec.finalizers");
    if !finalizers.iter().any(|finalizer| finalizer == "kubernetes") {
        finalizers.push("kubernetes".to_owned());
    }
    set(namespace, "spec.finalizers", json!(finalizers));
}

pub(super) fn prepare_update(subresource: Option<&str>, new: &mut Value, old: &Value) {
    let keep = match subresource {
        Some("status") => &["spec"][..],
        Some(_) => &["status"],
        None => &["spec.finalizers", "status"],
    };
    for path in keep {
        put(new, path, at(old, path).cloned());
    }
}

pub(super) fn validate(namespace: &Value) -> FieldErrors {
    let mut errors = meta::validate(namespace, false, NameRule::Label);
    finalizers(namespace, |_| "spec.finalizers".to_owned(), &mut errors);
    errors
}

pub(super) fn validate_update(subresource: Option<&str>, new: &Value) -> FieldErrors {
    let mut errors = FieldErrors::default();
    match subresource {
        Some("finalize") => finalizers(new, |index| format!("spec.finalizers[{index}]"), &mut errors),
        Some("status") => {
            let phase = text(new, "status.phase");
            let (wanted, when) = match at(new, "metadata.deletionTimestamp") {
                None => ("Active", "empty"),
                Some(_) => ("Terminating", "not empty"),
            };
            if phase != wanted {
                let detail = format!("may only be '{wanted}' if `deletionTimestamp` is {when}");
                errors.invalid("status.Phase", phase, &detail);
            }
        }
        _ => {}
    }
    errors
}

fn finalizers(namespace: &Value, path: impl Fn(usize) -> String, errors: &mut FieldErrors) {
    for (index, finalizer) in texts(namespace, "spec.finalizers").iter().enumerate() {
        let path = path(index);
        errors.invalid_each(&path, finalizer, qualified_name(finalizer));
        if !finalizer.contains('/') && finalizer != "kubernetes" {
            errors.invalid(&path, finalizer.as_str(), meta::UNQUALIFIED);
        }
    }
}
