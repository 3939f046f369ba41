//! The Lease, read and written as the API server keeps it.

use jiff::{Timestamp, fmt::temporal::DateTimePrinter};
use serde_json::{Map, Value, json};

use crate::error::{Error, Result};

/// What a Lease says about who leads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The holder's identity; empty when nobody holds it.
    pub holder: String,
    /// How long others leave the record alone. `None` when it is not set, or not a time at all.
    pub duration_seconds: Option<u32>,
    /// When the holder took it. For people; never compared.
    pub acquired: Option<Timestamp>,
    /// When the holder last renewed it. For people; never compared.
    pub renewed: Option<Timestamp>,
    /// How often it changed hands.
    pub transitions: u32,
}

impl Record {
    /// The record as programs see it that keep times in whole seconds.
    #[must_use]
    pub fn in_whole_seconds(&self) -> Self {
        let whole = |at: Option<Timestamp>| at.and_then(|at| Timestamp::from_second(at.as_second()).ok());
        Self { acquired: whole(self.acquired), renewed: whole(self.renewed), ..self.clone() }
    }
}

/// A Lease with everything around its record, so that writing it back loses nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Who leads, as the spec says.
    pub record: Record,
    /// `metadata.resourceVersion`: what a replacement insists on. Empty for one that was never stored.
    pub resource_version: String,
    object: Value,
}

impl Lease {
    /// A Lease that does not exist yet.
    pub fn fresh(namespace: &str, name: &str, record: Record) -> Self {
        let object = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": { "namespace": namespace, "name": name },
        });
        Self { record: Record::default(), resource_version: String::new(), object }.with(record)
    }

    /// Reads a Lease. Missing and unimportant fields are ignored; an unreadable holder or duration is an error, because a
    /// lease that seems free would be taken.
    pub fn decode(object: Value) -> Result<Self> {
        let nothing = Value::Null;
        let field = |name: &str| object.get("spec").and_then(|spec| spec.get(name)).unwrap_or(&nothing);
        let unreadable = |name: &str| Error::temporary(format!("the Lease has an unreadable spec.{name}"));
        let holder = match field("holderIdentity") {
            Value::Null => String::new(),
            Value::String(holder) => holder.clone(),
            _ => return Err(unreadable("holderIdentity")),
        };
        let duration_seconds = match field("leaseDurationSeconds") {
            Value::Null => None,
            Value::Number(number) => {
                let seconds = number.as_i64().ok_or_else(|| unreadable("leaseDurationSeconds"))?;
                u32::try_from(seconds).ok().filter(|seconds| *seconds > 0)
            }
            _ => return Err(unreadable("leaseDurationSeconds")),
        };
        let time = |name: &str| field(name).as_str().and_then(|text| text.parse().ok());
        let record = Record {
            holder,
            duration_seconds,
            acquired: time("acquireTime"),
            renewed: time("renewTime"),
            transitions: field("leaseTransitions")
                .as_u64()
                .and_then(|n| n.try_into().ok())
                .unwrap_or_default(),
        };
        let version = object.get("metadata").and_then(|metadata| metadata.get("resourceVersion"));
        let resource_version = version.and_then(Value::as_str).unwrap_or_default().to_owned();
        Ok(Self { record, resource_version, object })
    }

    /// The same Lease with another record; everything else, fields that we do not know included, stays.
    #[must_use]
    pub fn with(&self, record: Record) -> Self {
        let mut object = self.object.clone();
        if let Some(fields) = object.as_object_mut() {
            let spec = fields.entry("spec").or_insert_with(|| json!({}));
            if !spec.is_object() {
                *spec = json!({});
            }
            if let Some(spec) = spec.as_object_mut() {
                write(spec, &record);
            }
        }
        Self { record, resource_version: self.resource_version.clone(), object }
    }

    /// What is sent to the API server.
    pub const fn object(&self) -> &Value {
        &self.object
    }

    /// Whether the specs differ in anything at all. A renewal whose time we cannot read still makes a difference.
    pub fn says_something_else_than(&self, other: &Self) -> bool {
        self.object.get("spec") != other.object.get("spec")
    }
}

fn write(spec: &mut Map<String, Value>, record: &Record) {
    let time = |at: Option<Timestamp>| at.map_or(Value::Null, |at| micro_time(at).into());
    spec.insert("holderIdentity".to_owned(), record.holder.clone().into());
    spec.insert("leaseDurationSeconds".to_owned(), record.duration_seconds.into());
    spec.insert("acquireTime".to_owned(), time(record.acquired));
    spec.insert("renewTime".to_owned(), time(record.renewed));
    spec.insert("leaseTransitions".to_owned(), record.transitions.into());
}

/// `2006-01-02T15:04:05.000000Z`: six digits, always.
fn micro_time(at: Timestamp) -> String {
    const PRINTER: DateTimePrinter = DateTimePrinter::new().precision(Some(6));
    PRINTER.timestamp_to_string(&at)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stored() -> Value {
        json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": { "namespace": "kube-system", "name": "ccm", "resourceVersion": "41", "labels": { "a": "b" } },
            "spec": {
                "holderIdentity": "node1_x",
                "leaseDurationSeconds": 15,
                "acquireTime": "2026-08-01T10:00:00.000000Z",
                "renewTime": "2026-08-01T10:00:02.123456Z",
                "leaseTransitions": 7,
                "preferredHolder": "node2_y",
            },
        })
    }

    fn record() -> Record {
        Record {
            holder: "node1_x".to_owned(),
            duration_seconds: Some(15),
            acquired: Some("2026-08-01T10:00:00Z".parse().unwrap()),
            renewed: Some("2026-08-01T10:00:02.123456Z".parse().unwrap()),
            transitions: 7,
        }
    }

    fn change(path: &str, value: Value) -> Value {
        let mut object = stored();
        *object.pointer_mut(path).unwrap() = value;
        object
    }

    #[test]
    fn a_lease_is_read_and_written_back_whole() {
        let lease = Lease::decode(stored()).unwrap();
        assert_eq!((&lease.record, lease.resource_version.as_str()), (&record(), "41"));
        assert_eq!(lease.with(record()).object(), &stored());
        let taken = Record { holder: String::new(), duration_seconds: Some(1), transitions: 8, ..record() };
        let mut want = change("/spec/holderIdentity", json!(""));
        want["spec"]["leaseDurationSeconds"] = json!(1);
        want["spec"]["leaseTransitions"] = json!(8);
        let written = lease.with(taken.clone());
        assert_eq!(
            (written.object(), &written.record, written.resource_version.as_str()),
            (&want, &taken, "41")
        );
        assert_eq!(Lease::decode(want).unwrap(), written);
    }

    #[test]
    fn a_fresh_lease_has_a_name_and_no_version() {
        let lease = Lease::fresh("kube-system", "ccm", Record { acquired: None, ..record() });
        assert_eq!(lease.resource_version, "");
        assert_eq!(
            lease.object(),
            &json!({
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": { "namespace": "kube-system", "name": "ccm" },
                "spec": {
                    "holderIdentity": "node1_x",
                    "leaseDurationSeconds": 15,
                    "acquireTime": null,
                    "renewTime": "2026-08-01T10:00:02.123456Z",
                    "leaseTransitions": 7,
                },
            })
        );
    }

    #[test]
    fn times_have_six_digits() {
        for (text, want) in [
            ("2026-08-01T10:00:00Z", "2026-08-01T10:00:00.000000Z"),
            ("2026-08-01T10:00:00.5Z", "2026-08-01T10:00:00.500000Z"),
            ("2026-08-01T12:00:00.000001+02:00", "2026-08-01T10:00:00.000001Z"),
            ("1969-12-31T23:59:59.25Z", "1969-12-31T23:59:59.250000Z"),
        ] {
            assert_eq!(micro_time(text.parse().unwrap()), want, "{text}");
        }
    }

    #[test]
    fn what_is_missing_is_forgiven() {
        let empty = Record::default();
        let table = [
            ("nothing", json!({}), empty.clone()),
            ("not an object", json!(7), empty.clone()),
            ("no spec", json!({ "spec": null }), empty.clone()),
            ("an odd spec", json!({ "spec": [1] }), empty),
            (
                "no holder",
                change("/spec/holderIdentity", json!(null)),
                Record { holder: String::new(), ..record() },
            ),
            (
                "no duration",
                change("/spec/leaseDurationSeconds", json!(null)),
                Record { duration_seconds: None, ..record() },
            ),
            (
                "a duration of nothing",
                change("/spec/leaseDurationSeconds", json!(0)),
                Record { duration_seconds: None, ..record() },
            ),
            (
                "a negative duration",
                change("/spec/leaseDurationSeconds", json!(-3)),
                Record { duration_seconds: None, ..record() },
            ),
            (
                "the shortest duration",
                change("/spec/leaseDurationSeconds", json!(1)),
                Record { duration_seconds: Some(1), ..record() },
            ),
            ("an odd time", change("/spec/renewTime", json!("now")), Record { renewed: None, ..record() }),
            ("an odd time", change("/spec/acquireTime", json!(12)), Record { acquired: None, ..record() }),
            (
                "odd transitions",
                change("/spec/leaseTransitions", json!(-1)),
                Record { transitions: 0, ..record() },
            ),
        ];
        for (case, object, want) in table {
            assert_eq!(Lease::decode(object).unwrap().record, want, "{case}");
        }
        assert_eq!(
            Lease::decode(change("/metadata/resourceVersion", json!(41))).unwrap().resource_version,
            ""
        );
    }

    #[test]
    fn what_would_make_a_lease_seem_free_is_not_forgiven() {
        for (path, value) in [
            ("/spec/holderIdentity", json!(7)),
            ("/spec/holderIdentity", json!(["node1"])),
            ("/spec/leaseDurationSeconds", json!("15")),
            ("/spec/leaseDurationSeconds", json!(1.5)),
            ("/spec/leaseDurationSeconds", json!(true)),
        ] {
            let why = Lease::decode(change(path, value)).unwrap_err();
            let want =
                format!("the Lease has an unreadable {}", path.trim_start_matches('/').replace('/', "."));
            assert_eq!(why.message(), want);
        }
    }

    #[test]
    fn only_the_spec_makes_a_difference_and_all_of_it_does() {
        let lease = |object| Lease::decode(object).unwrap();
        let original = lease(stored());
        assert!(!lease(change("/metadata/resourceVersion", json!("99"))).says_something_else_than(&original));
        for (path, value) in [
            ("/spec/renewTime", json!("odd")),
            ("/spec/holderIdentity", json!("x")),
            ("/spec/preferredHolder", json!(1)),
        ] {
            assert!(lease(change(path, value)).says_something_else_than(&original), "{path}");
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let key = prop_oneof![
            Just("metadata".to_owned()),
            Just("spec".to_owned()),
            Just("resourceVersion".to_owned()),
            Just("holderIdentity".to_owned()),
            Just("leaseDurationSeconds".to_owned()),
            Just("renewTime".to_owned()),
            "[a-z]{1,3}",
        ];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".{0,30}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 6, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(key.clone(), inner, 0..6)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn no_document_can_panic_the_reader(object in any_json()) {
            if let Ok(lease) = Lease::decode(object.clone()) {
                prop_assert_eq!(lease.object(), &object);
                let rewritten = lease.with(record());
                if object.is_object() {
                    prop_assert_eq!(Lease::decode(rewritten.object().clone()).unwrap(), rewritten);
                }
            }
        }

        #[test]
        fn what_is_written_reads_the_same(
            holder in ".{0,20}",
            seconds in 1..=u32::MAX,
            transitions: u32,
            micros in 0..4_000_000_000_000_000_i64,
        ) {
            let at = Timestamp::from_microsecond(micros).unwrap();
            let record =
                Record { holder, duration_seconds: Some(seconds), acquired: Some(at), renewed: Some(at), transitions };
            let lease = Lease::fresh("ns", "name", record.clone());
            prop_assert_eq!(Lease::decode(lease.object().clone()).unwrap().record, record);
        }
    }
}
