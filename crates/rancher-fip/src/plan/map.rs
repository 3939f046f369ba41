//! The `ConfigMap` that maps pools to network interfaces.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{Change, data, is_hands_off};
use crate::{
    names::{INTERFACE_MAP, MANAGED},
    problem::{Again, Problem},
    reasons::MAP_INCOMPLETE,
    view::entry,
};

/// What the map is to say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The interface of each pool that is known to belong into it.
    pub entries: BTreeMap<String, String>,
    /// Others may belong into it too: which ones could not be told.
    pub is_partial: bool,
}

/// The entries of the map. As long as it cannot be told which pools belong into it, what it says about others that exist
/// stays: unknown is not absent.
pub fn entries(
    wanted: &Wanted,
    existing: Option<&Value>,
    exists: impl Fn(&str) -> bool,
) -> BTreeMap<String, String> {
    let mut entries = wanted.entries.clone();
    let now =
        existing.and_then(|map| map.get("data")).and_then(Value::as_object).filter(|_| wanted.is_partial);
    for (pool, interface) in now.into_iter().flatten().filter(|(pool, _)| exists(pool)) {
        entries.entry(pool.clone()).or_insert_with(|| interface.as_str().unwrap_or_default().to_owned());
    }
    entries
}

/// What is to be done to the map. `data` is replaced as a whole; everything else of the object stays.
///
/// Where no pool matches, a map that we marked is emptied, and one without our mark is left alone: administrators make it
/// by hand.
pub fn plan(existing: Option<&Value>, namespace: &str, entries: &BTreeMap<String, String>) -> Change {
    let wanted: Map<String, Value> =
        entries.iter().map(|(pool, interface)| (pool.clone(), interface.as_str().into())).collect();
    let Some(existing) = existing else {
        if wanted.is_empty() {
            return Change::Keep;
        }
        let metadata =
            json!({"name": INTERFACE_MAP, "namespace": namespace, "annotations": {MANAGED: "true"}});
        return Change::Create(
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": wanted}),
        );
    };
    let nothing = Map::new();
    let now = existing.get("data").and_then(Value::as_object).unwrap_or(&nothing);
    let ours = entry(existing, "annotations", MANAGED) == Some("true");
    if is_hands_off(existing) || *now == wanted || (wanted.is_empty() && !ours) {
        return Change::Keep;
    }
    let mut new = existing.clone();
    if let Some(object) = new.as_object_mut() {
        object.insert("data".to_owned(), wanted.into());
    }
    data::set_entry(&mut new, "annotations", MANAGED, "true");
    Change::Replace(new)
}

/// What is odd about a map: interfaces without a name, and pools of projects that are not in it.
pub fn oddities(entries: &BTreeMap<String, String>, pools: &[String]) -> Option<Problem> {
    let nameless = entries.iter().filter(|(_, interface)| interface.is_empty());
    let nameless = nameless.map(|(pool, _)| format!("the pool {pool} has no targetNetworkInterface"));
    let missing = pools.iter().filter(|pool| !entries.contains_key(*pool));
    let missing =
        missing.map(|pool| format!("the pool {pool} of a project is not among the pools of the cluster"));
    let all: Vec<_> = nameless.chain(missing).collect();
    (!all.is_empty()).then(|| Problem::new(MAP_INCOMPLETE, Again::Never, all.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(pool, interface)| ((*pool).to_owned(), (*interface).to_owned())).collect()
    }

    #[allow(clippy::needless_pass_by_value, reason = "tables read better without references")]
    fn map(data: Value, annotations: Value) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "binaryData": {"b": "eA=="},
            "metadata": {"name": INTERFACE_MAP, "namespace": "fip", "uid": "u", "resourceVersion": "7",
                "labels": {"l": "1"}, "annotations": annotations}, "data": data})
    }

    #[test]
    fn the_map_is_what_the_pools_say_and_nothing_is_written_twice() {
        let two = entries(&[("a", "eth1"), ("b", "")]);
        let Change::Create(new) = plan(None, "fip", &two) else { panic!() };
        assert_eq!(new["data"], json!({"a": "eth1", "b": ""}), "RF-124 RF-132");
        assert_eq!(plan(Some(&new), "fip", &two), Change::Keep, "RF-129");
        assert_eq!(plan(None, "fip", &entries(&[])), Change::Keep, "RF-125");
        let more = entries(&[("a", "eth2"), ("b", ""), ("c", "eth3")]);
        assert_eq!(plan(Some(&new), "fip", &more).object().unwrap()["data"]["c"], "eth3", "RF-127");
    }

    #[test]
    fn what_others_put_beside_the_data_stays_and_what_they_put_into_it_goes() {
        let one = entries(&[("a", "eth1")]);
        let old = map(json!({"a": "eth1", "mine": "x"}), json!({"note": "keep"}));
        let Change::Replace(new) = plan(Some(&old), "fip", &one) else { panic!() };
        assert_eq!(new["data"], json!({"a": "eth1"}), "RF-128");
        assert_eq!(
            (&new["binaryData"], &new["metadata"]["labels"]),
            (&json!({"b": "eA=="}), &json!({"l": "1"})),
            "RF-128"
        );
        assert_eq!(new["metadata"]["annotations"], json!({"note": "keep", MANAGED: "true"}), "RF-128");
        assert_eq!(new["metadata"]["resourceVersion"], "7", "only what was read is replaced");
    }

    #[test]
    fn what_may_belong_to_the_map_stays_until_it_is_known() {
        let existing = map(json!({"a": "old", "b": "eth2", "gone": "eth3"}), json!({}));
        let of = |wanted: &[(&str, &str)], is_partial, existing: Option<&Value>| {
            let wanted = Wanted { entries: entries(wanted), is_partial };
            super::entries(&wanted, existing, |pool| pool != "gone")
        };
        let table = [
            ("everything is known", of(&[("a", "eth1")], false, Some(&existing)), entries(&[("a", "eth1")])),
            (
                "law 1 another pool that exists stays, and what is known wins",
                of(&[("a", "eth1")], true, Some(&existing)),
                entries(&[("a", "eth1"), ("b", "eth2")]),
            ),
            ("there is no map yet", of(&[("a", "eth1")], true, None), entries(&[("a", "eth1")])),
            ("nothing is known", of(&[], true, Some(&existing)), entries(&[("a", "old"), ("b", "eth2")])),
        ];
        for (case, have, want) in table {
            assert_eq!(have, want, "{case}");
        }
    }

    #[test]
    fn only_a_map_that_is_ours_is_emptied() {
        let none = entries(&[]);
        let ours = map(json!({"a": "eth1"}), json!({MANAGED: "true"}));
        assert_eq!(plan(Some(&ours), "fip", &none).object().unwrap()["data"], json!({}), "RF-126");
        let by_hand = map(json!({"a": "eth1"}), json!({}));
        assert_eq!(plan(Some(&by_hand), "fip", &none), Change::Keep, "RF-216");
        assert!(
            plan(Some(&by_hand), "fip", &entries(&[("b", "eth1")])).object().is_some(),
            "RF-216 a pool matches"
        );
        let hands_off = map(json!({"a": "eth1"}), json!({MANAGED: "false"}));
        assert_eq!(plan(Some(&hands_off), "fip", &entries(&[("b", "x")])), Change::Keep, "RF-151");
    }

    #[test]
    fn oddities_are_told_together() {
        assert_eq!(oddities(&entries(&[("a", "eth1")]), &["a".to_owned()]), None);
        let problem = oddities(&entries(&[("a", "")]), &["z".to_owned()]).unwrap();
        assert!(
            problem.message.contains("the pool a has no") && problem.message.contains("the pool z of"),
            "RF-132 {problem:?}"
        );
    }
}
