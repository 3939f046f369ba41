//! Pods as data: nothing runs them.

use serde_json::{Value, json};

use super::super::field::FieldErrors;
use super::super::meta;
use super::super::names::{NameRule, dns_label};
use super::super::value::{at, at_mut, default, int, list, put, set, text, unset};

pub(super) fn defaults(pod: &mut Value) {
    spec_defaults(pod);
    default(pod, "spec.enableServiceLinks", true);
    if let Some(ip) = at_mut(pod, "status") {
        let (single, plural) = (text(ip, "podIP").to_owned(), list(ip, "podIPs").len());
        if !single.is_empty() && plural == 0 {
            set(ip, "podIPs", json!([{"ip": single}]));
        }
    }
}

/// The defaults that a template for pods gets too.
pub(super) fn spec_defaults(pod: &mut Value) {
    default(pod, "spec.restartPolicy", "Always");
    default(pod, "spec.dnsPolicy", "ClusterFirst");
    default(pod, "spec.schedulerName", "default-scheduler");
    default(pod, "spec.terminationGracePeriodSeconds", 30);
    default(pod, "spec.securityContext", json!({}));
    for part in ["spec.containers", "spec.initContainers"] {
        for container in at_mut(pod, part).and_then(Value::as_array_mut).into_iter().flatten() {
            container_defaults(container);
        }
    }
}

fn container_defaults(container: &mut Value) {
    default(container, "terminationMessagePath", "/dev/termination-log");
    default(container, "terminationMessagePolicy", "File");
    let image = text(container, "image").to_owned();
    let file = image.rsplit('/').next().unwrap_or_default();
    let fixed = image.contains('@') || file.split_once(':').is_some_and(|(_, tag)| tag != "latest");
    default(container, "imagePullPolicy", if fixed { "IfNotPresent" } else { "Always" });
    for port in at_mut(container, "ports").and_then(Value::as_array_mut).into_iter().flatten() {
        default(port, "protocol", "TCP");
    }
}

pub(super) fn prepare_create(pod: &mut Value) {
    set(pod, "metadata.generation", 1);
    default(pod, "spec.priority", 0);
    default(pod, "spec.preemptionPolicy", "PreemptLowerPriority");
    let mut tolerations = list(pod, "spec.tolerations").to_vec();
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let covers = |t: &Value| {
            matches!(text(t, "key"), "")
                || (text(t, "key") == key && matches!(text(t, "effect"), "" | "NoExecute"))
        };
        if !tolerations.iter().any(covers) {
            tolerations.push(
                json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}),
            );
        }
    }
    set(pod, "spec.tolerations", tolerations);
    set(pod, "status", json!({"phase": "Pending", "qosClass": quality(pod)}));
}

/// The class that requests and limits put a pod in.
fn quality(pod: &Value) -> &'static str {
    let of = |part: &str| {
        list(pod, "spec.containers")
            .iter()
            .map(|c| at(c, part).cloned().unwrap_or(json!({})))
            .collect::<Vec<_>>()
    };
    let (requests, limits) = (of("resources.requests"), of("resources.limits"));
    let empty = |all: &[Value]| all.iter().all(|one| one.as_object().is_none_or(serde_json::Map::is_empty));
    if empty(&requests) && empty(&limits) {
        return "BestEffort";
    }
    let full = limits.iter().all(|limit| at(limit, "cpu").is_some() && at(limit, "memory").is_some());
    let equal = requests
        .iter()
        .zip(&limits)
        .all(|(request, limit)| empty(std::slice::from_ref(request)) || request == limit);
    if full && equal { "Guaranteed" } else { "Burstable" }
}

pub(super) fn prepare_update(subresource: Option<&str>, new: &mut Value, old: &Value) {
    if subresource == Some("status") {
        put(new, "spec", at(old, "spec").cloned());
        put(new, "metadata.ownerReferences", at(old, "metadata.ownerReferences").cloned());
        unset(new, "metadata.deletionTimestamp");
        return;
    }
    put(new, "status", at(old, "status").cloned());
    if at(new, "spec") != at(old, "spec") {
        meta::bump_generation(new);
    }
}

pub(super) fn validate(pod: &Value) -> FieldErrors {
    let mut errors = meta::validate(pod, true, NameRule::Subdomain);
    validate_spec(pod, "", &mut errors);
    errors
}

/// The rules for a pod, or for the template of pods that stands at `place` in another object.
pub(super) fn validate_spec(pod: &Value, place: &str, errors: &mut FieldErrors) {
    let containers = list(pod, "spec.containers");
    if containers.is_empty() {
        errors.required(&format!("{place}spec.containers"), "");
    }
    for (index, container) in containers.iter().enumerate() {
        let path = |field: &str| format!("{place}spec.containers[{index}].{field}");
        match text(container, "name") {
            "" => errors.required(&path("name"), ""),
            name => errors.invalid_each(&path("name"), name, dns_label(name)),
        }
        if text(container, "image").is_empty() {
            errors.required(&path("image"), "");
        }
    }
    let policies = ["Always", "OnFailure", "Never"];
    let policy = text(pod, "spec.restartPolicy");
    if !policies.contains(&policy) {
        errors.not_supported(&format!("{place}spec.restartPolicy"), policy, &policies);
    }
}

/// A scheduled pod that runs is given time to stop; any other goes at once.
pub(super) fn grace(pod: &Value, options: &Value) -> i64 {
    let unscheduled = text(pod, "spec.nodeName").is_empty();
    let finished = matches!(text(pod, "status.phase"), "Failed" | "Succeeded");
    if unscheduled || finished {
        return 0;
    }
    match at(options, "gracePeriodSeconds").and_then(Value::as_i64) {
        Some(seconds) if seconds < 0 => 1,
        Some(seconds) => seconds,
        None => int(pod, "spec.terminationGracePeriodSeconds"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_get_the_fields_that_people_know() {
        let mut pod =
            json!({"spec": {"containers": [{"name": "a", "image": "x/y:1"}, {"name": "b", "image": "z"}]}});
        defaults(&mut pod);
        prepare_create(&mut pod);
        assert_eq!(pod["spec"]["restartPolicy"], "Always");
        assert_eq!(pod["spec"]["containers"][0]["imagePullPolicy"], "IfNotPresent");
        assert_eq!(pod["spec"]["containers"][1]["imagePullPolicy"], "Always");
        assert_eq!(pod["status"], json!({"phase": "Pending", "qosClass": "BestEffort"}));
    }

    #[test]
    fn only_a_running_pod_gets_time_to_stop() {
        let running = json!({"spec": {"nodeName": "n", "terminationGracePeriodSeconds": 30}, "status": {"phase": "Running"}});
        assert_eq!(grace(&running, &json!({})), 30);
        assert_eq!(grace(&running, &json!({"gracePeriodSeconds": 0})), 0);
        assert_eq!(grace(&json!({"spec": {"terminationGracePeriodSeconds": 30}}), &json!({})), 0);
    }
}
