//! Config maps, secrets and leases.

use serde_json::{Map, Value, json};

use super::super::field::FieldErrors;
use super::super::meta;
use super::super::names::{NameRule, config_key};
use super::super::value::{self, at, default, entries, int, set, text, unset};

const SIZE_LIMIT: usize = 1 << 20;

/// The type, and `stringData` folded into `data`.
pub(super) fn secret_defaults(secret: &mut Value) {
    default(secret, "type", "Opaque");
    let plain: Map<String, Value> =
        entries(secret, "stringData").map(|(k, v)| (k.clone(), v.clone())).collect();
    unset(secret, "stringData");
    for (key, text) in plain {
        let encoded = super::super::base64_encode(text.as_str().unwrap_or_default().as_bytes());
        if at(secret, "data").is_none() {
            set(secret, "data", json!({}));
        }
        if let Some(data) = value::at_mut(secret, "data").and_then(Value::as_object_mut) {
            data.insert(key, json!(encoded));
        }
    }
}

pub(super) fn prepare_secret_update(new: &mut Value, old: &Value) {
    default(new, "type", text(old, "type"));
}

fn keys(object: &Value, part: &str, errors: &mut FieldErrors) -> usize {
    let mut size = 0;
    for (key, content) in entries(object, part) {
        errors.invalid_each(&format!("{part}[{key}]"), key, config_key(key));
        size += content.as_str().map_or(0, str::len);
    }
    size
}

pub(super) fn validate_config_map(map: &Value) -> FieldErrors {
    let mut errors = meta::validate(map, true, NameRule::Subdomain);
    let mut size = 0;
    for (key, content) in entries(map, "data") {
        errors.invalid_each(&format!("data[{key}]"), key, config_key(key));
        if entries(map, "binaryData").any(|(other, _)| other == key) {
            errors.invalid(&format!("data[{key}]"), key.as_str(), "duplicate of key present in binaryData");
        }
        size += content.as_str().map_or(0, str::len);
    }
    size += keys(map, "binaryData", &mut errors);
    if size > SIZE_LIMIT {
        errors.too_long("", SIZE_LIMIT);
    }
    errors
}

fn frozen(new: &Value, old: &Value, parts: &[&str], errors: &mut FieldErrors) {
    let immutable = |object: &Value| at(object, "immutable").and_then(Value::as_bool) == Some(true);
    if !immutable(old) {
        return;
    }
    let detail = "field is immutable when `immutable` is set";
    if !immutable(new) {
        errors.forbidden("immutable", detail);
    }
    for part in parts.iter().filter(|part| at(new, part) != at(old, part)) {
        errors.forbidden(part, detail);
    }
}

pub(super) fn validate_config_map_update(new: &Value, old: &Value) -> FieldErrors {
    let mut errors = FieldErrors::default();
    frozen(new, old, &["data", "binaryData"], &mut errors);
    errors.append(validate_config_map(new));
    errors
}

pub(super) fn validate_secret(secret: &Value) -> FieldErrors {
    let mut errors = meta::validate(secret, true, NameRule::Subdomain);
    if keys(secret, "data", &mut errors) > SIZE_LIMIT {
        errors.too_long("data", SIZE_LIMIT);
    }
    let has = |key: &str| entries(secret, "data").any(|(other, _)| other == key);
    let mut require = |key: &str| errors.required(&format!("data[{key}]"), "");
    match text(secret, "type") {
        "kubernetes.io/service-account-token" => {
            let annotation = "kubernetes.io/service-account.name";
            if !entries(secret, "metadata.annotations").any(|(key, v)| key == annotation && v != "") {
                errors.required(&format!("metadata.annotations[{annotation}]"), "");
            }
        }
        "kubernetes.io/tls" => {
            for key in ["tls.crt", "tls.key"].iter().filter(|key| !has(key)) {
                require(key);
            }
        }
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => {
            require("username");
            require("password");
        }
        "kubernetes.io/ssh-auth" if !has("ssh-privatekey") => require("ssh-privatekey"),
        "kubernetes.io/dockercfg" if !has(".dockercfg") => require(".dockercfg"),
        "kubernetes.io/dockerconfigjson" if !has(".dockerconfigjson") => require(".dockerconfigjson"),
        _ => {}
    }
    errors
}

pub(super) fn validate_secret_update(new: &Value, old: &Value) -> FieldErrors {
    let mut errors = FieldErrors::default();
    if text(new, "type") != text(old, "type") {
        errors.invalid("type", text(new, "type"), "field is immutable");
    }
    frozen(new, old, &["data"], &mut errors);
    errors.append(validate_secret(new));
    errors
}

pub(super) fn validate_lease(lease: &Value, old: Option<&Value>) -> FieldErrors {
    let mut errors = match old {
        None => meta::validate(lease, true, NameRule::Subdomain),
        Some(old) => meta::validate_update(lease, old),
    };
    let set = |path: &str| at(lease, path).is_some();
    if set("spec.leaseDurationSeconds") && int(lease, "spec.leaseDurationSeconds") <= 0 {
        let seconds = int(lease, "spec.leaseDurationSeconds");
        errors.invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0");
    }
    if int(lease, "spec.leaseTransitions") < 0 {
        let transitions = int(lease, "spec.leaseTransitions");
        errors.invalid("spec.leaseTransitions", transitions, "must be greater than or equal to 0");
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_becomes_data() {
        let mut secret = json!({"data": {"a": "eA=="}, "stringData": {"b": "y", "a": "z"}});
        secret_defaults(&mut secret);
        assert_eq!(secret, json!({"type": "Opaque", "data": {"a": "eg==", "b": "eQ=="}}));
    }

    #[test]
    fn what_is_immutable_stays() {
        let of = |data: Value, immutable: bool| json!({"metadata": {"name": "a", "namespace": "b"}, "type": "Opaque", "data": data, "immutable": immutable});
        let old = of(json!({"a": "x"}), true);
        assert!(validate_config_map_update(&old, &old).is_empty());
        let found = validate_config_map_update(&of(json!({"a": "y"}), false), &old).summary().unwrap();
        assert!(found.contains("immutable: Forbidden") && found.contains("data: Forbidden"), "{found}");
        let mut other = old.clone();
        set(&mut other, "type", "kubernetes.io/tls");
        let found = validate_secret_update(&other, &old).summary().unwrap();
        assert!(found.contains("type: Invalid value: \"kubernetes.io/tls\": field is immutable"), "{found}");
        assert!(found.contains("data[tls.crt]: Required value"), "{found}");
    }
}
