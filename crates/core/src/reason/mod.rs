//! Why an event is published: every reason is declared once, with what the reference says about it.
//!
//! An event cannot be built without a [`Reason`], and [`reasons!`](crate::reasons) is how one is declared: it makes the
//! constants and the table that holds them all. The framework's are here, a provider's in its own crate, and
//! `docs/reference/events.md` is written from these tables.

mod table;

pub use table::*;

use std::{cmp::Ordering, fmt};

use crate::lb::Severity;

/// The controller that publishes an event, and with it the component that the event names and the kind of its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventSource {
    /// The service controller, about a Service. A provider's events are published by it too.
    Service,
    /// The node controller, about a node.
    Node,
    /// The lifecycle controller, about a node.
    Lifecycle,
    /// The route controller, about a node.
    Route,
    /// Leader election, about its Lease.
    Election,
    /// A program of its own, about the objects that it works on.
    Other {
        /// The component that the event names.
        component: &'static str,
        /// The kind of the object that the event is about.
        kind: &'static str,
    },
}

impl EventSource {
    /// Every source of the controller manager once.
    pub const ALL: [Self; 5] = [Self::Service, Self::Node, Self::Lifecycle, Self::Route, Self::Election];

    /// The component that the event names.
    #[must_use]
    pub const fn component(self) -> &'static str {
        match self {
            Self::Service => "service-controller",
            Self::Node => "cloud-node-controller",
            Self::Lifecycle => "cloud-node-lifecycle-controller",
            Self::Route => "route_controller",
            Self::Election => "cloud-controller-manager",
            Self::Other { component, .. } => component,
        }
    }

    /// The kind of the object that the event is about.
    #[must_use]
    pub const fn kind(self) -> &'static str {
        match self {
            Self::Service => "Service",
            Self::Node | Self::Lifecycle | Self::Route => "Node",
            Self::Election => "Lease",
            Self::Other { kind, .. } => kind,
        }
    }
}

/// A row of a table of reasons.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// One word in `PascalCase`, for alerts.
    pub name: &'static str,
    /// Who publishes it.
    pub source: EventSource,
    /// `Normal` or `Warning`; the same each time.
    pub severity: Severity,
    /// When it is published.
    pub when: &'static str,
    /// What to do about it, for whoever is on call.
    pub advice: &'static str,
}

/// The reason of an event. Two of the same name are equal.
#[derive(Clone, Copy)]
pub struct Reason(&'static Row);

impl Reason {
    /// The reason of this row. Use [`reasons!`](crate::reasons), which also puts it into a table.
    #[must_use]
    pub const fn new(row: &'static Row) -> Self {
        Self(row)
    }

    /// One word in `PascalCase`, for alerts.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.0.name
    }

    /// Everything that the table says about it.
    #[must_use]
    pub const fn row(self) -> &'static Row {
        self.0
    }
}

/// Declares reasons as constants, and the table that holds all of them.
///
/// ```
/// cloudberth_core::reasons! {
///     /// The reasons of this provider.
///     pub(crate) REASONS;
///
///     DOMAIN_ELSEWHERE = Warning, Service, "DomainElsewhere",
///         when: "A domain of the Service belongs to another load balancer.",
///         advice: "Remove it there or here.";
/// }
/// assert_eq!(REASONS, [DOMAIN_ELSEWHERE]);
/// assert_eq!(DOMAIN_ELSEWHERE, "DomainElsewhere");
/// ```
#[macro_export]
macro_rules! reasons {
    (
        $(#[$about:meta])*
        $vis:vis $table:ident;
        $(
            $reason:ident = $severity:ident, $source:ident $({$($other:tt)*})?, $name:literal,
            when: $when:literal, advice: $advice:literal;
        )*
    ) => {
        $(
            #[doc = concat!("`", $name, "`: ", $when)]
            $vis const $reason: $crate::Reason = $crate::Reason::new(&$crate::reason::Row {
                name: $name,
                source: $crate::reason::EventSource::$source $({$($other)*})?,
                severity: $crate::lb::Severity::$severity,
                when: $when,
                advice: $advice,
            });
        )*
        $(#[$about])*
        $vis const $table: &[$crate::Reason] = &[$($reason),*];
    };
}

impl PartialEq for Reason {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Reason {}

impl PartialEq<&str> for Reason {
    fn eq(&self, other: &&str) -> bool {
        self.name() == *other
    }
}

impl PartialOrd for Reason {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Reason {
    fn cmp(&self, other: &Self) -> Ordering {
        self.name().cmp(other.name())
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Debug for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.name(), f)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    reasons! {
        TWINS;

        FIRST = Normal, Node, "Twin", when: "First.", advice: "Nothing.";
        SECOND = Warning, Service, "Twin", when: "Second.", advice: "Something.";
        THIRD = Normal, Other { component: "else", kind: "Cluster" }, "Third", when: "Third.", advice: "Nothing.";
    }

    #[test]
    fn a_reason_is_its_name() {
        assert_eq!(TWINS, [FIRST, SECOND, THIRD]);
        assert_eq!(FIRST, SECOND);
        assert_eq!(FIRST.cmp(&SECOND), Ordering::Equal);
        assert!(SYNCED > DELETING_NODE && SYNCED != FIRST);
        assert_eq!((FIRST.to_string(), format!("{FIRST:?}")), ("Twin".to_owned(), "\"Twin\"".to_owned()));
    }

    #[test]
    fn a_program_of_its_own_names_itself_and_its_kinds() {
        let source = THIRD.row().source;
        assert_eq!((source.component(), source.kind()), ("else", "Cluster"));
    }

    #[test]
    fn every_reason_has_a_name_of_its_own_and_says_when_and_what_to_do() {
        let names: BTreeSet<_> = REASONS.iter().collect();
        assert_eq!(names.len(), REASONS.len(), "{REASONS:?}");
        for reason in REASONS {
            let Row { name, when, advice, .. } = reason.row();
            assert!(name.starts_with(|c: char| c.is_ascii_uppercase()), "{name}");
            assert!(name.chars().all(|c| c.is_ascii_alphabetic()), "{name}");
            assert!([when, advice].iter().all(|text| text.len() > 5 && text.ends_with('.')), "{name}");
            assert!([when, advice].iter().all(|text| !text.contains(['|', '\n'])), "{name} breaks the page");
        }
    }
}
