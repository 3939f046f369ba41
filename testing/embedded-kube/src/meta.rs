//! Metadata: what the server sets and what may not change.

use serde_json::{Value, json};

use super::field::FieldErrors;
use super::names::{NameRule, label_value, qualified_name};
use super::status::{Answer, Failure};
use super::time;
use super::value::{self, at, entries, int, list, put, set, text, texts, unset};
use sim_kit::Surroundings;

const ANNOTATION_LIMIT: usize = 256 << 10;
pub(crate) const UNQUALIFIED: &str = "name is neither a standard finalizer name nor is it fully qualified";
const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// Clears what only the server sets.
pub(crate) fn wipe(object: &mut Value) {
    for field in ["creationTimestamp", "uid", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
        unset(object, &format!("metadata.{field}"));
    }
}

/// Gives a new object its identity and, where asked for, its name.
pub(crate) fn fill(object: &mut Value, world: &mut Surroundings) {
    set(object, "metadata.creationTimestamp", time::seconds(world.now()));
    let uid = world.uuid();
    set(object, "metadata.uid", uid);
    let prefix = text(object, "metadata.generateName").to_owned();
    if value::name(object).is_empty() && !prefix.is_empty() {
        set(object, "metadata.name", generated_name(&prefix, world));
    }
}

/// A prefix and five characters, without vowels so that they spell no words.
fn generated_name(prefix: &str, world: &mut Surroundings) -> String {
    const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let prefix: String = prefix.chars().take(58).collect();
    let suffix: String =
        (0..5).filter_map(|_| world.rng().choice(ALPHABET).map(|byte| char::from(*byte))).collect();
    format!("{prefix}{suffix}")
}

/// The object must be of the namespace that the path names.
pub(crate) fn settle_namespace(object: &mut Value, namespace: &str) -> Answer<()> {
    let own = value::namespace(object);
    if own == namespace {
        return Ok(());
    }
    if !own.is_empty() && !namespace.is_empty() {
        return Err(Failure::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    put(object, "metadata.namespace", (!namespace.is_empty()).then(|| json!(namespace)));
    Ok(())
}

/// Takes the fields that an update may not change from the old object.
pub(crate) fn carry_over(new: &mut Value, old: &Value) {
    if text(new, "metadata.uid").is_empty() {
        put(new, "metadata.uid", at(old, "metadata.uid").cloned());
    }
    for field in ["metadata.creationTimestamp", "metadata.deletionTimestamp"] {
        if let Some(value) = at(old, field) {
            set(new, field, value.clone());
        }
    }
    if at(new, "metadata.deletionGracePeriodSeconds").is_none() {
        put(
            new,
            "metadata.deletionGracePeriodSeconds",
            at(old, "metadata.deletionGracePeriodSeconds").cloned(),
        );
    }
}

/// The rules for metadata that hold at any time.
pub(crate) fn validate(object: &Value, namespaced: bool, rule: NameRule) -> FieldErrors {
    let mut errors = FieldErrors::default();
    let prefix = text(object, "metadata.generateName");
    if !prefix.is_empty() {
        errors.invalid_each("metadata.generateName", prefix, rule.problems(prefix, true));
    }
    match value::name(object) {
        "" => errors.required("metadata.name", "name or generateName is required"),
        name => errors.invalid_each("metadata.name", name, rule.problems(name, false)),
    }
    match (namespaced, value::namespace(object)) {
        (true, "") => errors.required("metadata.namespace", ""),
        (true, namespace) => {
            errors.invalid_each("metadata.namespace", namespace, NameRule::Label.problems(namespace, false));
        }
        (false, "") => {}
        (false, _) => errors.forbidden("metadata.namespace", "not allowed on this type"),
    }
    if int(object, "metadata.generation") < 0 {
        let generation = int(object, "metadata.generation");
        errors.invalid("metadata.generation", generation, "must be greater than or equal to 0");
    }
    labels(object, "metadata.labels", &mut errors);
    annotations(object, &mut errors);
    owners(object, &mut errors);
    finalizers(object, &mut errors);
    errors
}

/// The rules for a change of metadata.
pub(crate) fn validate_update(new: &Value, old: &Value) -> FieldErrors {
    let mut errors = FieldErrors::default();
    if at(old, "metadata.deletionTimestamp").is_some() {
        no_new_finalizers(new, old, &mut errors);
    }
    if value::revision(new).is_empty() {
        errors.invalid("metadata.resourceVersion", "", "must be specified for an update");
    }
    for field in
        ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"]
    {
        let path = format!("metadata.{field}");
        if at(new, &path) != at(old, &path) {
            let shown = at(new, &path).cloned().unwrap_or_else(|| match field {
                "name" | "namespace" | "uid" => json!(""),
                _ => Value::Null,
            });
            errors.invalid(&path, shown, "field is immutable");
        }
    }
    labels(new, "metadata.labels", &mut errors);
    annotations(new, &mut errors);
    owners(new, &mut errors);
    errors
}

fn no_new_finalizers(new: &Value, old: &Value, errors: &mut FieldErrors) {
    let known = texts(old, "metadata.finalizers");
    let mut extra = texts(new, "metadata.finalizers");
    extra.retain(|finalizer| !known.contains(finalizer));
    extra.sort();
    if !extra.is_empty() {
        let shown: Vec<String> = extra.iter().map(|finalizer| format!("{finalizer:?}")).collect();
        let detail = format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
            shown.join(", ")
        );
        errors.forbidden("metadata.finalizers", &detail);
    }
}

/// A map that must be a valid set of labels.
pub(crate) fn labels(object: &Value, path: &str, errors: &mut FieldErrors) {
    for (key, label) in entries(object, path) {
        errors.invalid_each(path, key, qualified_name(key));
        let label = label.as_str().unwrap_or_default();
        errors.invalid_each(path, label, label_value(label));
    }
}

fn annotations(object: &Value, errors: &mut FieldErrors) {
    let mut size = 0;
    for (key, annotation) in entries(object, "metadata.annotations") {
        errors.invalid_each("metadata.annotations", key, qualified_name(&key.to_lowercase()));
        size += key.len() + annotation.as_str().map_or(0, str::len);
    }
    if size > ANNOTATION_LIMIT {
        errors.too_long("metadata.annotations", ANNOTATION_LIMIT);
    }
}

fn owners(object: &Value, errors: &mut FieldErrors) {
    let all = list(object, "metadata.ownerReferences");
    let mut controller: Option<String> = None;
    for (index, owner) in all.iter().enumerate() {
        for field in ["apiVersion", "kind", "name", "uid"] {
            if text(owner, field).is_empty() {
                errors.required(&format!("metadata.ownerReferences[{index}].{field}"), "must not be empty");
            }
        }
        if at(owner, "controller").and_then(Value::as_bool) == Some(true) {
            let shown = format!("{}/{}", text(owner, "kind"), text(owner, "name"));
            match &controller {
                None => controller = Some(shown),
                Some(first) => {
                    let detail = format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {shown}"
                    );
                    errors.invalid("metadata.ownerReferences", Value::Array(all.to_vec()), &detail);
                }
            }
        }
    }
}

fn finalizers(object: &Value, errors: &mut FieldErrors) {
    let all = texts(object, "metadata.finalizers");
    for finalizer in &all {
        errors.invalid_each("metadata.finalizers", finalizer, qualified_name(finalizer));
    }
    let has = |name: &str| all.iter().any(|finalizer| finalizer == name);
    if has(ORPHAN) && has(FOREGROUND) {
        let detail = format!("finalizer {ORPHAN} and {FOREGROUND} cannot be both set");
        errors.invalid("metadata.finalizers", json!(all), &detail);
    }
}

/// Finalizers of core kinds must be qualified names.
pub(crate) fn qualified_finalizers(object: &Value, errors: &mut FieldErrors) {
    for (index, finalizer) in texts(object, "metadata.finalizers").iter().enumerate() {
        if !finalizer.contains('/') && !["kubernetes", ORPHAN, FOREGROUND].contains(&finalizer.as_str()) {
            let path = format!("metadata.finalizers[{index}]");
            errors.invalid(&path, finalizer.as_str(), UNQUALIFIED);
        }
    }
}

/// The finalizers that a deletion leaves on an object, as its propagation policy asks for.
pub(crate) fn finalizers_for_deletion(object: &Value, options: &Value) -> Vec<String> {
    let all = texts(object, "metadata.finalizers");
    let has = |name: &str| all.iter().any(|finalizer| finalizer == name);
    let policy = text(options, "propagationPolicy");
    let (orphan, foreground) = match (at(options, "orphanDependents").and_then(Value::as_bool), policy) {
        (Some(orphan), _) => (orphan, false),
        (None, "Orphan") => (true, false),
        (None, "Foreground") => (false, true),
        (None, "Background") => (false, false),
        (None, _) => (has(ORPHAN), has(FOREGROUND)),
    };
    let mut kept: Vec<String> = all.iter().filter(|f| *f != ORPHAN && *f != FOREGROUND).cloned().collect();
    kept.extend(orphan.then(|| ORPHAN.to_owned()));
    kept.extend(foreground.then(|| FOREGROUND.to_owned()));
    kept
}

/// Marks an object as going away, with no time left.
pub(crate) fn mark_deleting(object: &mut Value, now: jiff::Timestamp) {
    let due = at(object, "metadata.deletionTimestamp").and_then(Value::as_str).and_then(time::parse);
    if due.is_none() {
        bump_generation(object);
    }
    if due.is_none_or(|due| due > now) {
        set(object, "metadata.deletionTimestamp", time::seconds(now));
    }
    set(object, "metadata.deletionGracePeriodSeconds", 0);
}

/// Adds one to a generation that is kept at all.
pub(crate) fn bump_generation(object: &mut Value) {
    let generation = int(object, "metadata.generation");
    if generation > 0 {
        set(object, "metadata.generation", generation + 1);
    }
}

/// An object on its way out with nothing in its way any more goes with the update that cleared it.
pub(crate) fn gone_after(new: &Value, old: &Value) -> bool {
    list(new, "metadata.finalizers").is_empty()
        && at(old, "metadata.deletionTimestamp").is_some()
        && int(old, "metadata.deletionGracePeriodSeconds") == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(errors: &FieldErrors) -> String {
        errors.summary().unwrap_or_default()
    }

    #[test]
    fn metadata_is_checked() {
        let table = [
            ("fine", json!({"metadata": {"name": "a", "namespace": "b"}}), ""),
            (
                "no name",
                json!({"metadata": {"namespace": "b"}}),
                "metadata.name: Required value: name or generateName is required",
            ),
            ("no namespace", json!({"metadata": {"name": "a"}}), "metadata.namespace: Required value"),
            (
                "finalizers that exclude each other",
                json!({"metadata": {"name": "a", "namespace": "b", "finalizers": ["orphan", "foregroundDeletion"]}}),
                "cannot be both set",
            ),
            (
                "an owner without a uid",
                json!({"metadata": {"name": "a", "namespace": "b", "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n"}]}}),
                "metadata.ownerReferences[0].uid: Required value: must not be empty",
            ),
            (
                "a bad label",
                json!({"metadata": {"name": "a", "namespace": "b", "labels": {"x": "-"}}}),
                "metadata.labels: Invalid value: \"-\"",
            ),
        ];
        for (case, object, want) in table {
            let found = summary(&validate(&object, true, NameRule::Label));
            assert!(if want.is_empty() { found.is_empty() } else { found.contains(want) }, "{case}: {found}");
        }
    }

    #[test]
    fn a_terminating_object_gets_no_new_finalizer() {
        let old = json!({"metadata": {"name": "a", "resourceVersion": "1", "deletionTimestamp": "2024-01-01T00:00:00Z", "finalizers": ["a/b"]}});
        let mut new = old.clone();
        set(&mut new, "metadata.finalizers", json!(["a/b", "z/y", "c/d"]));
        assert_eq!(
            summary(&validate_update(&new, &old)),
            "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, \
             found new finalizers []string{\"c/d\", \"z/y\"}"
        );
        set(&mut new, "metadata.finalizers", json!([]));
        assert!(validate_update(&new, &old).is_empty());
    }

    #[test]
    fn deletion_finalizers_follow_the_policy() {
        let object = json!({"metadata": {"finalizers": ["x/y", "orphan"]}});
        let table = [
            (json!({}), vec!["x/y", "orphan"]),
            (json!({"propagationPolicy": "Background"}), vec!["x/y"]),
            (json!({"propagationPolicy": "Foreground"}), vec!["x/y", "foregroundDeletion"]),
            (json!({"orphanDependents": false}), vec!["x/y"]),
            (json!({"orphanDependents": true}), vec!["x/y", "orphan"]),
        ];
        for (options, want) in table {
            assert_eq!(finalizers_for_deletion(&object, &options), want, "{options}");
        }
    }

    #[test]
    fn generated_names_fit() {
        let mut world = Surroundings::new(1, || jiff::Timestamp::UNIX_EPOCH);
        let mut object = json!({"metadata": {"generateName": "x".repeat(70)}});
        fill(&mut object, &mut world);
        assert_eq!(value::name(&object).len(), 63);
        assert!(NameRule::Label.problems(value::name(&object), false).is_empty());
    }
}
