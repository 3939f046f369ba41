//! What is not known about the real API, or what it does only sometimes, as switches that a test can flip at any time.

use std::{collections::BTreeSet, time::Duration};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// All switches. The defaults follow what was seen of the real API. In JSON, durations are in milliseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is independent of the others")]
pub struct Switches {
    /// Pages hold at most this many items, whatever was asked for.
    pub page_cap: Option<usize>,
    /// Items with these ids are left out of lists, and still counted.
    pub hidden: BTreeSet<i64>,
    /// Lists are in random order, drawn anew for each page.
    pub random_order: bool,
    /// A list changes after its first page was read.
    pub shift: Shift,
    /// `?hostname=` has no effect.
    pub ignore_hostname: bool,
    /// A balancer has no address before it is active.
    pub ip_when_active: bool,
    /// Building a balancer ends in `errored`.
    pub build_fails: bool,
    /// Actions that build something wait for this invoice to be paid.
    pub blocking_invoice: Option<i64>,
    /// Actions that build something wait for an answer to this question.
    pub question: Option<Question>,
    /// A balancer can be read and is listed only so long after it was made.
    #[serde(with = "millis")]
    pub visible_after: Duration,
    /// A balancer that was deleted is still listed for so long.
    #[serde(with = "millis")]
    pub listed_after_delete: Duration,
    /// A PUT of a balancer has `links: null` in its answer.
    pub no_update_link: bool,
    /// Adding a server to a pool that has it, or removing one that is not there, is refused.
    pub strict_members: bool,
    /// A regional balancer takes servers of other regions.
    pub any_region: bool,
    /// What becomes of a server that is deleted.
    pub cancellation: Cancellation,
    /// Servers that are off say `active`.
    pub off_says_active: bool,
    /// `is_running` ends `errored` although the server runs.
    pub probe_fails: bool,
    /// Server actions of these types are answered with 202 and no body.
    pub silent_actions: BTreeSet<String>,
    /// Servers without a VPC list a private address, which does not work.
    pub phantom_private: bool,
    /// Servers in a VPC list a private address of the provider's own, in front of theirs.
    pub provider_private: bool,
    /// A change of a VPC takes effect so much later, between which others can read.
    #[serde(with = "millis")]
    pub vpc_delay: Duration,
    /// Regions in which no server can be made.
    pub full_regions: BTreeSet<String>,
}

impl Default for Switches {
    fn default() -> Self {
        Self {
            page_cap: None,
            hidden: BTreeSet::new(),
            random_order: false,
            shift: Shift::Never,
            ignore_hostname: false,
            ip_when_active: false,
            build_fails: false,
            blocking_invoice: None,
            question: None,
            visible_after: Duration::ZERO,
            listed_after_delete: Duration::ZERO,
            no_update_link: false,
            strict_members: false,
            any_region: false,
            cancellation: Cancellation::Archive,
            off_says_active: false,
            probe_fails: false,
            silent_actions: BTreeSet::from(["rename".to_owned()]),
            phantom_private: false,
            provider_private: false,
            vpc_delay: Duration::ZERO,
            full_regions: BTreeSet::new(),
        }
    }
}

impl Switches {
    /// These switches with some of them changed, as JSON has it; the error is for people.
    pub(crate) fn changed(&self, change: &Value) -> Result<Self, String> {
        let mut all = serde_json::to_value(self).map_err(|error| error.to_string())?;
        match (&mut all, change) {
            (Value::Object(all), Value::Object(change)) => {
                all.extend(change.iter().map(|(key, value)| (key.clone(), value.clone())));
            }
            _ => return Err("the switches must be an object".to_owned()),
        }
        serde_json::from_value(all).map_err(|error| format!("these are no switches: {error}"))
    }
}

/// How a list changes between two of its pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Shift {
    /// It does not.
    #[default]
    Never,
    /// Something appears on the first page after that was read: its last item comes again on the second.
    Inserted,
    /// Something vanishes from the first page after that was read: the first item of the next page is missed.
    Removed,
}

/// What becomes of a server that is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Cancellation {
    /// It is `archive` at once, and stays.
    #[default]
    Archive,
    /// It has its time of cancellation at once, and is `archive` after so long.
    ArchiveAfter(#[serde(with = "millis")] Duration),
    /// It cannot be found any more.
    Gone,
    /// It is `archive` at once, and cannot be found after so long.
    GoneAfter(#[serde(with = "millis")] Duration),
}

/// What an action asks of people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "BinaryLane documents them")]
pub enum Question {
    ContinueAfterPingFailure,
    AllowUncleanPowerOff,
}

mod millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_millis)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn switches_are_changed_one_by_one() {
        let change = json!({"pageCap": 20, "visibleAfter": 70_000, "cancellation": {"goneAfter": 5}, "shift": "removed"});
        let changed = Switches::default().changed(&change).unwrap();
        let want = Switches {
            page_cap: Some(20),
            visible_after: Duration::from_secs(70),
            cancellation: Cancellation::GoneAfter(Duration::from_millis(5)),
            shift: Shift::Removed,
            ..Switches::default()
        };
        assert_eq!(changed, want);
        for wrong in [json!([]), json!({"pageCap": "many"}), json!({"unknown": true})] {
            assert!(Switches::default().changed(&wrong).is_err(), "{wrong}");
        }
    }
}
