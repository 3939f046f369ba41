//! Annotations, declared once and read by type.
//!
//! A provider declares each annotation as a static [`Key`] and lists the keys in a [`Table`]. Everything else follows
//! from the declaration: reading, defaults, the refusal of a wrong value, the hint at a mistyped key, the reference
//! documentation, and the rules for the API server.
//!
//! ```
//! use cloudberth_core::{annotation::{Key, OneOf, Table, Unsigned, Value}, lb::Impact};
//!
//! #[derive(Clone, Copy, Debug, PartialEq)]
//! enum Policy { RoundRobin, LeastConnections }
//!
//! static POLICY: Key<OneOf<Policy>> = Key::new(
//!     "example.com/policy",
//!     OneOf::exact(&[("round-robin", Policy::RoundRobin), ("least-connections", Policy::LeastConnections)]),
//! )
//! .default("round-robin")
//! .impact(Impact::Minimal)
//! .about("Which node takes the next connection.");
//!
//! static IDLE: Key<Unsigned> =
//!     Key::new("example.com/idle-timeout", Unsigned::between(1, 3_600)).about("Seconds until an idle one is cut.");
//!
//! static TABLE: Table = Table::new(&[&POLICY, &IDLE]).watching(&["example.com/"]);
//!
//! let service = [("example.com/policy".to_owned(), "least-connections".to_owned())].into();
//! let parsed = TABLE.parse(&service);
//! assert_eq!(parsed.get(&POLICY), Value::Set(Policy::LeastConnections));
//! assert_eq!(parsed.get(&IDLE), Value::Unset);
//! assert!(parsed.refused.is_empty());
//! ```

mod key;
mod kind;
mod list;
mod markdown;
mod shape;
mod table;
mod typo;

pub use key::{Alias, Entry, Fallback, Key, Reading, Report, Row, Spelling};
pub use kind::{By, Cidr, Int, Kind, OneOf, Pattern, Text, Unsigned};
pub use list::{CommaList, Json, JsonList};
pub use shape::Shape;
pub use table::{Parsed, Retired, Table};
pub use typo::nearest;

use std::collections::BTreeMap;

/// The annotations of an object, as Kubernetes keeps them.
pub type Annotations = BTreeMap<String, String>;

/// What an object says about one annotation.
///
/// "Not set" and "wrong" are different things: the first means the default, the second means that whatever is there
/// stays as it is (law 8).
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Value<T> {
    /// It is not set; the default applies.
    Unset,
    /// It is set, and good.
    Set(T),
    /// It is set to something that cannot be carried out; a refusal says so.
    Wrong,
}

impl<T> Value<T> {
    /// The value, if there is a good one.
    pub fn set(self) -> Option<T> {
        match self {
            Self::Set(value) => Some(value),
            Self::Unset | Self::Wrong => None,
        }
    }

    /// The value to use: the one that is set; the default if none is; the observed one if a wrong one is set, so that a
    /// mistake never changes what runs (law 8). With nothing observed the thing does not exist yet, and the refusal blocks
    /// its creation, so the default only fills the plan.
    pub fn settle(self, default: T, observed: Option<T>) -> T {
        match self {
            Self::Set(value) => value,
            Self::Unset => default,
            Self::Wrong => observed.unwrap_or(default),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_value_keeps_what_is_observed_and_a_missing_one_means_the_default() {
        let table = [
            ("L8-21 set", Value::Set(1), Some(9), 1),
            ("L8-22 not set", Value::Unset, Some(9), 5),
            ("L8-23 wrong, and something runs", Value::Wrong, Some(9), 9),
            ("L8-24 wrong, and nothing runs", Value::Wrong, None, 5),
        ];
        for (case, value, observed, want) in table {
            assert_eq!(value.settle(5, observed), want, "{case}");
        }
        assert_eq!(
            (Value::Set(1).set(), Value::<i32>::Unset.set(), Value::<i32>::Wrong.set()),
            (Some(1), None, None)
        );
    }
}
