//! Discovery: groups, versions and resources, in the old form and in the aggregated one.

use std::collections::BTreeMap;

use http::{Method, StatusCode, header};
use serde_json::{Value, json};

use super::definitions;
use super::render::bytes;
use super::resource::Resource;
use super::router::{Incoming, Reply};
use super::state::State;
use super::value::set;

/// The Kubernetes version that is implemented, whatever version the server reports.
pub(crate) const VERSION: &str = "v1.37.1";

/// Groups in the order of their weight; all others come after them, by name.
const WEIGHTY: [&str; 7] = [
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "apiextensions.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
];

/// Answers the paths of discovery; `None` for any other path.
pub(crate) fn answer(state: &State, incoming: &Incoming) -> Option<Reply> {
    if !matches!(incoming.method, Method::GET | Method::HEAD) {
        return None;
    }
    let path = incoming.path.trim_matches('/');
    let parts: Vec<&str> = path.split('/').collect();
    match parts.as_slice() {
        ["healthz" | "livez" | "readyz"] | ["healthz" | "livez" | "readyz", "ping" | "log" | "etcd"] => {
            Some(Reply::text(StatusCode::OK, "ok"))
        }
        ["version"] => Some(json_reply(&version(&state.version))),
        ["api"] => {
            Some(aggregated(state, incoming, true).unwrap_or_else(|| json_reply(&core_versions(incoming))))
        }
        ["apis"] => {
            Some(aggregated(state, incoming, false).unwrap_or_else(|| json_reply(&group_list(state))))
        }
        ["api", version] => resource_list(state, "", version),
        ["apis", group] => one_group(state, group),
        ["apis", group, version] => resource_list(state, group, version),
        [""] => Some(json_reply(&json!({"paths": paths(state)}))),
        _ => None,
    }
}

fn json_reply(value: &Value) -> Reply {
    Reply::json(StatusCode::OK, bytes(value))
}

/// The first two numbers of a version, with what a vendor puts behind them.
fn numbers(full: &str) -> (&str, &str) {
    let (major, minor) = full.trim_start_matches('v').split_once('.').unwrap_or(("1", "0"));
    (major, minor.split('.').next().unwrap_or("0"))
}

/// Whether a server of this version keeps `ipMode` in the status of a Service: from 1.30 on.
pub(crate) fn keeps_ip_mode(full: &str) -> bool {
    let number =
        |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>().parse::<u32>();
    let (major, minor) = numbers(full);
    !matches!((number(major), number(minor)), (Ok(major), Ok(minor)) if (major, minor) < (1, 30))
}

fn version(full: &str) -> Value {
    let (major, minor) = numbers(full);
    json!({
        "major": major, "minor": minor, "emulationMajor": major, "emulationMinor": minor,
        "minCompatibilityMajor": major, "minCompatibilityMinor": minor.parse::<u32>().unwrap_or(1).saturating_sub(1).to_string(),
        "gitVersion": full, "gitCommit": "", "gitTreeState": "", "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "", "compiler": "rustc", "platform": "linux/amd64",
    })
}

fn core_versions(incoming: &Incoming) -> Value {
    let host = incoming.headers.get(header::HOST).and_then(|value| value.to_str().ok());
    let address = json!({"clientCIDR": "0.0.0.0/0", "serverAddress": host.unwrap_or("127.0.0.1")});
    json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [address]})
}

/// The groups beside the core one, each with its versions.
fn groups(state: &State) -> Vec<(&str, Vec<&str>)> {
    let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for resource in state.resources.iter().filter(|resource| !resource.group.is_empty()) {
        let versions = groups.entry(&resource.group).or_default();
        if !versions.contains(&resource.version.as_str()) {
            versions.push(&resource.version);
        }
    }
    for versions in groups.values_mut() {
        versions.sort_by_key(|version| definitions::priority(version));
    }
    let mut groups: Vec<(&str, Vec<&str>)> = groups.into_iter().collect();
    groups.sort_by_key(|(name, _)| WEIGHTY.iter().position(|known| known == name).unwrap_or(WEIGHTY.len()));
    groups
}

fn group(name: &str, versions: &[&str]) -> Value {
    let form = |version: &&str| json!({"groupVersion": format!("{name}/{version}"), "version": version});
    let all: Vec<Value> = versions.iter().map(form).collect();
    json!({"name": name, "versions": all, "preferredVersion": all.first()})
}

fn group_list(state: &State) -> Value {
    let groups: Vec<Value> = groups(state).iter().map(|(name, versions)| group(name, versions)).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

fn one_group(state: &State, name: &str) -> Option<Reply> {
    let groups = groups(state);
    let (_, versions) = groups.iter().find(|(known, _)| *known == name)?;
    let mut value = group(name, versions);
    set(&mut value, "kind", "APIGroup");
    set(&mut value, "apiVersion", "v1");
    Some(json_reply(&value))
}

fn served<'a>(state: &'a State, group: &'a str, version: &'a str) -> impl Iterator<Item = &'a Resource> {
    let mut all: Vec<&Resource> = state
        .resources
        .iter()
        .filter(|resource| resource.group == group && resource.version == version)
        .map(AsRef::as_ref)
        .collect();
    all.sort_by(|a, b| a.plural.cmp(&b.plural));
    all.into_iter()
}

/// The verbs of a resource. Nothing is written to a custom kind that is going.
fn verbs(resource: &Resource) -> Vec<&str> {
    let going = resource.custom.as_ref().is_some_and(|custom| custom.terminating);
    let kept = |verb: &&str| !going || !matches!(*verb, "patch" | "create" | "update");
    resource.verbs.iter().map(String::as_str).filter(kept).collect()
}

fn resource_list(state: &State, group: &str, version: &str) -> Option<Reply> {
    let mut entries = Vec::new();
    for resource in served(state, group, version) {
        let mut entry = json!({
            "name": resource.plural, "singularName": resource.singular, "namespaced": resource.namespaced,
            "kind": resource.kind, "verbs": verbs(resource),
        });
        if !resource.short_names.is_empty() {
            set(&mut entry, "shortNames", json!(resource.short_names));
        }
        if !resource.categories.is_empty() {
            set(&mut entry, "categories", json!(resource.categories));
        }
        entries.push(entry);
        for part in &resource.subresources {
            let mut entry = json!({
                "name": format!("{}/{}", resource.plural, part.name), "singularName": "",
                "namespaced": resource.namespaced, "kind": resource.kind, "verbs": part.verbs,
            });
            if let Some((group, version, kind)) = &part.kind {
                set(&mut entry, "group", group.as_str());
                set(&mut entry, "version", version.as_str());
                set(&mut entry, "kind", kind.as_str());
            }
            entries.push(entry);
        }
    }
    if entries.is_empty() {
        return None;
    }
    let mut list = json!({"kind": "APIResourceList", "resources": entries});
    if group.is_empty() {
        set(&mut list, "groupVersion", version);
    } else {
        set(&mut list, "apiVersion", "v1");
        set(&mut list, "groupVersion", format!("{group}/{version}"));
    }
    Some(json_reply(&list))
}

/// The aggregated form, for clients that ask for it.
fn aggregated(state: &State, incoming: &Incoming, core: bool) -> Option<Reply> {
    let accept = incoming.headers.get(header::ACCEPT)?.to_str().ok()?;
    let wants = |version: &str| {
        accept.split(',').any(|clause| {
            let has = |part: &str| clause.split(';').any(|word| word.trim() == part);
            clause.trim().starts_with("application/json")
                && has("g=apidiscovery.k8s.io")
                && has(&format!("v={version}"))
                && has("as=APIGroupDiscoveryList")
        })
    };
    let (version, content_type) = if wants("v2") {
        ("v2", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
    } else if wants("v2beta1") {
        ("v2beta1", "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList")
    } else {
        return None;
    };
    let items: Vec<Value> = if core {
        vec![json!({"metadata": {}, "versions": [one_version(state, "", "v1")]})]
    } else {
        let all = groups(state);
        all.iter()
            .map(|(name, versions)| {
                let versions: Vec<Value> = versions.iter().map(|v| one_version(state, name, v)).collect();
                json!({"metadata": {"name": name}, "versions": versions})
            })
            .collect()
    };
    let list = json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": format!("apidiscovery.k8s.io/{version}"),
        "metadata": {}, "items": items,
    });
    Some(Reply { content_type, ..json_reply(&list) })
}

fn one_version(state: &State, group: &str, version: &str) -> Value {
    let kind = |resource: &Resource| match resource.custom {
        Some(_) => json!({"group": group, "version": version, "kind": resource.kind}),
        None => json!({"group": "", "version": "", "kind": resource.kind}),
    };
    let entry = |resource: &Resource| {
        let mut entry = json!({
            "resource": resource.plural, "responseKind": kind(resource), "singularResource": resource.singular,
            "scope": if resource.namespaced { "Namespaced" } else { "Cluster" }, "verbs": verbs(resource),
        });
        if !resource.short_names.is_empty() {
            set(&mut entry, "shortNames", json!(resource.short_names));
        }
        if !resource.categories.is_empty() {
            set(&mut entry, "categories", json!(resource.categories));
        }
        if !resource.subresources.is_empty() {
            let parts: Vec<Value> = resource
                .subresources
                .iter()
                .map(|part| {
                    let kind = match &part.kind {
                        Some((group, version, kind)) => {
                            json!({"group": group, "version": version, "kind": kind})
                        }
                        None => kind(resource),
                    };
                    json!({"subresource": part.name, "responseKind": kind, "verbs": part.verbs})
                })
                .collect();
            set(&mut entry, "subresources", json!(parts));
        }
        entry
    };
    let resources: Vec<Value> = served(state, group, version).map(entry).collect();
    json!({"version": version, "freshness": "Current", "resources": resources})
}

fn paths(state: &State) -> Vec<String> {
    let mut paths = vec!["/api".to_owned(), "/api/v1".to_owned(), "/apis".to_owned()];
    for (group, versions) in groups(state) {
        paths.push(format!("/apis/{group}"));
        paths.extend(versions.iter().map(|version| format!("/apis/{group}/{version}")));
    }
    paths.extend(
        ["/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version"].map(str::to_owned),
    );
    paths.sort();
    paths
}
