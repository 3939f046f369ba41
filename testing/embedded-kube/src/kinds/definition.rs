//! Definitions of custom kinds: what may stand in them, and the steps from a new one to one that is served.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::super::field::FieldErrors;
use super::super::meta;
use super::super::names::{NameRule, dns_subdomain, label_1035};
use super::super::structural;
use super::super::time;
use super::super::value::{at, default, list, name, put, set, text, texts};

/// Keeps a definition until its objects are gone.
pub(crate) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

pub(super) fn defaults(definition: &mut Value) {
    let kind = text(definition, "spec.names.kind").to_owned();
    default(definition, "spec.names.singular", kind.to_lowercase());
    if !kind.is_empty() {
        default(definition, "spec.names.listKind", format!("{kind}List"));
    }
    default(definition, "spec.conversion", json!({"strategy": "None"}));
    if list(definition, "status.storedVersions").is_empty() {
        remember_storage(definition);
    }
}

/// The version that objects are written in is remembered for as long as objects may be stored in it.
fn remember_storage(definition: &mut Value) {
    let mut stored = texts(definition, "status.storedVersions");
    let storage = list(definition, "spec.versions").iter().find(|version| is(version, "storage"));
    if let Some(storage) = storage.map(|version| text(version, "name").to_owned())
        && !stored.contains(&storage)
    {
        stored.push(storage);
        set(definition, "status.storedVersions", json!(stored));
    }
}

fn is(version: &Value, flag: &str) -> bool {
    at(version, flag) == Some(&Value::Bool(true))
}

pub(super) fn prepare_create(definition: &mut Value) {
    set(definition, "metadata.generation", 1);
    let status =
        json!({"conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": null});
    set(definition, "status", status);
    remember_storage(definition);
}

pub(super) fn prepare_update(subresource: Option<&str>, new: &mut Value, old: &Value) {
    if subresource == Some("status") {
        let status = at(new, "status").cloned();
        let version = at(new, "metadata.resourceVersion").cloned();
        *new = old.clone();
        put(new, "status", status);
        put(new, "metadata.resourceVersion", version);
        return;
    }
    put(new, "status", at(old, "status").cloned());
    if at(new, "spec") != at(old, "spec") {
        meta::bump_generation(new);
    }
    remember_storage(new);
}

pub(super) fn validate(definition: &Value) -> FieldErrors {
    let mut errors = meta::validate(definition, false, NameRule::Subdomain);
    let wanted = format!("{}.{}", text(definition, "spec.names.plural"), text(definition, "spec.group"));
    if name(definition) != wanted {
        errors.invalid("metadata.name", name(definition), "must be spec.names.plural+\".\"+spec.group");
    }
    errors.append(validate_spec(definition));
    errors.append(stored_versions(definition));
    errors
}

pub(super) fn validate_update(subresource: Option<&str>, new: &Value, old: &Value) -> FieldErrors {
    if subresource.is_some() {
        return FieldErrors::default();
    }
    let mut errors = validate_spec(new);
    let fixed: &[&str] =
        if has_condition(old, "Established") { &["spec.scope", "spec.names.kind"] } else { &[] };
    for path in fixed.iter().chain(&["spec.group", "spec.names.plural"]) {
        if text(new, path) != text(old, path) {
            errors.invalid(path, text(new, path), "field is immutable");
        }
    }
    errors.append(stored_versions(new));
    errors
}

fn validate_spec(definition: &Value) -> FieldErrors {
    let mut errors = FieldErrors::default();
    let given = |path: &str| text(definition, path);
    match given("spec.group") {
        "" => errors.required("spec.group", ""),
        group if !dns_subdomain(group).is_empty() => {
            errors.invalid("spec.group", group, &dns_subdomain(group).join(","));
        }
        group if !group.contains('.') => {
            errors.invalid("spec.group", group, "should be a domain with at least one dot");
        }
        _ => {}
    }
    match given("spec.scope") {
        "" => errors.required("spec.scope", ""),
        "Cluster" | "Namespaced" => {}
        other => errors.not_supported("spec.scope", other, &["Cluster", "Namespaced"]),
    }
    versions(definition, &mut errors);
    for field in ["plural", "singular", "kind", "listKind"] {
        let (path, given) = (format!("spec.names.{field}"), given(&format!("spec.names.{field}")));
        if given.is_empty() {
            errors.required(&path, "");
        }
    }
    for field in ["plural", "singular"] {
        let (path, given) = (format!("spec.names.{field}"), given(&format!("spec.names.{field}")));
        if !given.is_empty() && !label_1035(given).is_empty() {
            errors.invalid(&path, given, &label_1035(given).join(","));
        }
    }
    for field in ["kind", "listKind"] {
        let (path, given) = (format!("spec.names.{field}"), given(&format!("spec.names.{field}")));
        let problems = label_1035(&given.to_lowercase());
        if !given.is_empty() && !problems.is_empty() {
            let why = format!("may have mixed case, but should otherwise match: {}", problems.join(","));
            errors.invalid(&path, given, &why);
        }
    }
    for (index, short) in texts(definition, "spec.names.shortNames").iter().enumerate() {
        if !label_1035(short).is_empty() {
            let path = format!("spec.names.shortNames[{index}]");
            errors.invalid(&path, short.as_str(), &label_1035(short).join(","));
        }
    }
    if !given("spec.names.kind").is_empty() && given("spec.names.kind") == given("spec.names.listKind") {
        let why = "kind and listKind may not be the same";
        errors.invalid("spec.names.listKind", given("spec.names.listKind"), why);
    }
    let versions = list(definition, "spec.versions");
    if let Some(schema) = versions.first().and_then(|first| at(first, "schema.openAPIV3Schema"))
        && alike(versions)
    {
        structural::check(schema, "spec.validation.openAPIV3Schema", &mut errors);
    }
    if given("spec.conversion.strategy") != "None" {
        // There is nobody here who could be asked to convert.
        errors.not_supported("spec.conversion.strategy", given("spec.conversion.strategy"), &["None"]);
    }
    errors
}

fn versions(definition: &Value, errors: &mut FieldErrors) {
    let versions = list(definition, "spec.versions");
    let place = |index: usize| format!("spec.versions[{index}]");
    for (index, version) in versions.iter().enumerate() {
        if at(version, "schema.openAPIV3Schema").is_none() {
            errors.required(&format!("{}.schema.openAPIV3Schema", place(index)), "");
        }
    }
    for (index, version) in versions.iter().enumerate() {
        let name = text(version, "name");
        if !label_1035(name).is_empty() {
            errors.invalid(&format!("{}.name", place(index)), name, &label_1035(name).join(","));
        }
        if at(version, "deprecationWarning").is_some() && !is(version, "deprecated") {
            let why = "can only be set for deprecated versions";
            let path = format!("{}.deprecationWarning", place(index));
            errors.invalid(&path, text(version, "deprecationWarning"), why);
        }
        if let Some(schema) = at(version, "schema.openAPIV3Schema").filter(|_| !alike(versions)) {
            structural::check(schema, &format!("{}.schema.openAPIV3Schema", place(index)), errors);
        }
    }
    let names: BTreeSet<&str> = versions.iter().map(|version| text(version, "name")).collect();
    let shown = || at(definition, "spec.versions").cloned().unwrap_or_default();
    if names.len() < versions.len() {
        errors.invalid("spec.versions", shown(), "must contain unique version names");
    }
    if versions.iter().filter(|version| is(version, "storage")).count() != 1 {
        let why = "must have exactly one version marked as storage version";
        errors.invalid("spec.versions", shown(), why);
    }
}

/// Whether all versions have the same schema. The server then speaks of that of the whole definition.
fn alike(versions: &[Value]) -> bool {
    versions.windows(2).all(|pair| matches!(pair, [a, b] if at(a, "schema") == at(b, "schema")))
}

fn stored_versions(definition: &Value) -> FieldErrors {
    let mut errors = FieldErrors::default();
    let stored = texts(definition, "status.storedVersions");
    let path = "status.storedVersions";
    if stored.is_empty() {
        let shown = at(definition, path).cloned().unwrap_or_default();
        errors.invalid(path, shown, "must have at least one stored version");
        return errors;
    }
    let known = list(definition, "spec.versions");
    let missing = known.iter().filter(|version| is(version, "storage")).map(|version| text(version, "name"));
    for version in missing.filter(|version| !stored.iter().any(|stored| stored == version)) {
        let why = format!("must have the storage version {version}");
        errors.invalid(path, json!(stored), &why);
    }
    for (index, version) in stored.iter().enumerate() {
        if !known.iter().any(|known| text(known, "name") == version) {
            let why = format!(
                "missing from spec.versions; {version} was previously a storage version, and must remain in \
                 spec.versions until a storage migration ensures no data remains persisted in {version} and removes \
                 {version} from status.storedVersions"
            );
            errors.invalid(&format!("{path}[{index}]"), version.as_str(), &why);
        }
    }
    errors
}

/// The rules of its schemas that have no effect here, for the client to know.
pub(super) fn warnings(definition: &Value) -> Vec<String> {
    let schemas = list(definition, "spec.versions").iter().enumerate().filter_map(|(index, version)| {
        let place = format!("spec.versions[{index}].schema.openAPIV3Schema");
        at(version, "schema.openAPIV3Schema").map(|schema| structural::ignored(schema, &place))
    });
    schemas.flatten().map(|path| format!("{path} has no effect on this server")).collect()
}

/// Whether a condition of a definition is true.
pub(crate) fn has_condition(definition: &Value, kind: &str) -> bool {
    let found =
        list(definition, "status.conditions").iter().find(|condition| text(condition, "type") == kind);
    found.is_some_and(|condition| text(condition, "status") == "True")
}

/// Sets a condition. Its time moves only when its status does.
pub(crate) fn set_condition(
    definition: &mut Value,
    kind: &str,
    status: bool,
    reason: &str,
    message: &str,
    now: jiff::Timestamp,
) {
    let status = if status { "True" } else { "False" };
    let mut condition = json!({
        "type": kind, "status": status, "lastTransitionTime": time::seconds(now), "reason": reason, "message": message,
    });
    let mut all = list(definition, "status.conditions").to_vec();
    match all.iter_mut().find(|known| text(known, "type") == kind) {
        Some(known) => {
            if text(known, "status") == status {
                set(&mut condition, "lastTransitionTime", text(known, "lastTransitionTime"));
            }
            *known = condition;
        }
        None => all.push(condition),
    }
    set(definition, "status.conditions", all);
}

/// The next step of a definition on its way to being served: its names are accepted, then it is established. `None`
/// when there is nothing to do.
pub(crate) fn advance<'a>(
    definition: &Value,
    others: impl Iterator<Item = &'a Value>,
    now: jiff::Timestamp,
) -> Option<Value> {
    let mut next = definition.clone();
    if at(definition, "spec.names") != at(definition, "status.acceptedNames") {
        accept_names(&mut next, others, now);
    }
    if next == *definition
        && has_condition(definition, "NamesAccepted")
        && !has_condition(definition, "Established")
        && at(definition, "metadata.deletionTimestamp").is_none()
    {
        let message = "the initial names have been accepted";
        set_condition(&mut next, "Established", true, "InitialNamesAccepted", message, now);
    }
    (next != *definition).then_some(next)
}

/// Takes the names that no other definition of the group has.
fn accept_names<'a>(definition: &mut Value, others: impl Iterator<Item = &'a Value>, now: jiff::Timestamp) {
    let (mut resources, mut kinds) = (BTreeSet::new(), BTreeSet::new());
    let group = text(definition, "spec.group").to_owned();
    let of_group =
        others.filter(|other| text(other, "spec.group") == group && name(other) != name(definition));
    for other in of_group {
        let taken = |field: &str| text(other, &format!("status.acceptedNames.{field}")).to_owned();
        resources.extend([taken("plural"), taken("singular")]);
        resources.extend(texts(other, "status.acceptedNames.shortNames"));
        kinds.extend([taken("kind"), taken("listKind")]);
    }
    let used = |name: &str| format!("{name:?} is already in use");
    let mut conflict = None;
    let mut accepted: Map<String, Value> =
        at(definition, "status.acceptedNames").and_then(Value::as_object).cloned().unwrap_or_default();
    let shorts = texts(definition, "spec.names.shortNames");
    let short_conflicts: Vec<String> =
        shorts.iter().filter(|short| resources.contains(*short)).map(|short| used(short)).collect();
    for (field, reason, taken) in [
        ("plural", "PluralConflict", &resources),
        ("singular", "SingularConflict", &resources),
        ("shortNames", "ShortNamesConflict", &resources),
        ("kind", "KindConflict", &kinds),
        ("listKind", "ListKindConflict", &kinds),
    ] {
        let path = format!("spec.names.{field}");
        let why = match short_conflicts.as_slice() {
            _ if field != "shortNames" => {
                let wanted = text(definition, &path);
                taken.contains(wanted).then(|| used(wanted))
            }
            [] => None,
            [one] => Some(one.clone()),
            many => Some(format!("[{}]", many.join(", "))),
        };
        match (why, at(definition, &path)) {
            (Some(why), _) => conflict = Some((reason, why)),
            (None, Some(wanted)) => drop(accepted.insert(field.to_owned(), wanted.clone())),
            (None, None) => drop(accepted.remove(field)),
        }
    }
    match at(definition, "spec.names.categories") {
        Some(categories) => drop(accepted.insert("categories".to_owned(), categories.clone())),
        None => drop(accepted.remove("categories")),
    }
    set(definition, "status.acceptedNames", accepted);
    let established = has_condition(definition, "Established");
    let first = list(definition, "status.conditions").iter().all(|c| text(c, "type") != "Established");
    if let Some((reason, why)) = conflict {
        set_condition(definition, "NamesAccepted", false, reason, &why, now);
        if first {
            set_condition(definition, "Established", false, "NotAccepted", "not all names are accepted", now);
        }
        return;
    }
    set_condition(definition, "NamesAccepted", true, "NoConflicts", "no conflicts found", now);
    if !established {
        let message = "the initial names have been accepted";
        set_condition(definition, "Established", false, "Installing", message, now);
    }
}
