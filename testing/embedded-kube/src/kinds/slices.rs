//! Endpoints and their slices, as data.

use serde_json::{Value, json};

use super::super::field::FieldErrors;
use super::super::meta;
use super::super::names::NameRule;
use super::super::value::{at, at_mut, default, int, list, set, text};
use super::service_addresses::ip_warning;

pub(super) fn slice_defaults(slice: &mut Value) {
    for port in at_mut(slice, "ports").and_then(Value::as_array_mut).into_iter().flatten() {
        if at(port, "name").is_none() {
            set(port, "name", "");
        }
        default(port, "protocol", "TCP");
    }
}

pub(super) fn endpoints_defaults(endpoints: &mut Value) {
    for subset in at_mut(endpoints, "subsets").and_then(Value::as_array_mut).into_iter().flatten() {
        for port in at_mut(subset, "ports").and_then(Value::as_array_mut).into_iter().flatten() {
            default(port, "protocol", "TCP");
        }
    }
}

pub(super) fn prepare_create(slice: &mut Value) {
    set(slice, "metadata.generation", 1);
}

/// Anything but metadata other than labels counts as a new generation.
pub(super) fn prepare_update(new: &mut Value, old: &Value) {
    let content = |slice: &Value| {
        let mut content = slice.clone();
        set(&mut content, "metadata", json!({"labels": at(slice, "metadata.labels")}));
        content
    };
    if content(new) != content(old) {
        meta::bump_generation(new);
    }
}

fn address_warnings(object: &Value, part: &str, inner: &str) -> Vec<String> {
    let mut warnings = Vec::new();
    for (i, holder) in list(object, part).iter().enumerate() {
        for (j, address) in list(holder, inner).iter().enumerate() {
            let (ip, tail) = match address {
                Value::String(ip) => (ip.as_str(), ""),
                other => (text(other, "ip"), ".ip"),
            };
            warnings.extend(ip_warning(&format!("{part}[{i}].{inner}[{j}]{tail}"), ip));
        }
    }
    warnings
}

pub(super) fn warnings(endpoints: &Value) -> Vec<String> {
    let mut warnings = address_warnings(endpoints, "subsets", "addresses");
    warnings.extend(address_warnings(endpoints, "subsets", "notReadyAddresses"));
    warnings
}

pub(super) fn slice_warnings(slice: &Value) -> Vec<String> {
    address_warnings(slice, "endpoints", "addresses")
}

pub(super) fn validate_slice(slice: &Value) -> FieldErrors {
    let mut errors = meta::validate(slice, true, NameRule::Subdomain);
    let types = ["FQDN", "IPv4", "IPv6"];
    match text(slice, "addressType") {
        "" => errors.required("addressType", ""),
        known if types.contains(&known) => {}
        other => errors.not_supported("addressType", other, &types),
    }
    if list(slice, "endpoints").len() > 1000 {
        errors.too_many("endpoints", list(slice, "endpoints").len(), 1000);
    }
    for (index, endpoint) in list(slice, "endpoints").iter().enumerate() {
        if list(endpoint, "addresses").is_empty() {
            errors.required(&format!("endpoints[{index}].addresses"), "must contain at least 1 address");
        }
    }
    errors
}

pub(super) fn validate_slice_update(new: &Value, old: &Value) -> FieldErrors {
    let mut errors = validate_slice(new);
    if text(new, "addressType") != text(old, "addressType") {
        errors.invalid("addressType", Value::Null, "field is immutable");
    }
    errors
}

pub(super) fn validate_endpoints(endpoints: &Value) -> FieldErrors {
    let mut errors = meta::validate(endpoints, true, NameRule::Subdomain);
    for (index, subset) in list(endpoints, "subsets").iter().enumerate() {
        if list(subset, "addresses").is_empty() && list(subset, "notReadyAddresses").is_empty() {
            let detail = "must specify `addresses` or `notReadyAddresses`";
            errors.required(&format!("subsets[{index}]"), detail);
        }
        for (at, port) in list(subset, "ports").iter().enumerate() {
            let number = int(port, "port");
            if !(1..=65_535).contains(&number) {
                let path = format!("subsets[{index}].ports[{at}].port");
                errors.invalid(&path, number, "must be between 1 and 65535, inclusive");
            }
        }
    }
    errors
}
