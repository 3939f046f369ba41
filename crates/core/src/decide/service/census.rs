//! How the Services of our clouds stand: which of them wait for an address, and of which something is refused.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::{
    decide::{
        service::{assignments::Assignment, need::wants},
        waiting::Waiting,
    },
    lb::{Goal, Turn, TurnEnd},
    view::{ObjectKey, ServiceView},
};

/// Whether a Service has what it asks us for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address {
    /// It wants no load balancer from us, or none any more.
    NotWanted,
    /// Its address is published.
    Published,
    /// It has none yet.
    Missing,
}

impl Address {
    /// What a Service says about itself.
    #[must_use]
    pub fn of(service: &ServiceView, assignment: &Assignment<'_>) -> Self {
        match (wants(service, assignment) && !service.deleting, service.ingress.is_empty()) {
            (false, _) => Self::NotWanted,
            (true, false) => Self::Published,
            (true, true) => Self::Missing,
        }
    }
}

/// Whether something of a Service is refused after a turn; `None` where the turn ended before that was decided, so that
/// what held before still does (law 1).
#[must_use]
pub fn is_refused(goal: Goal, turn: &Turn) -> Option<bool> {
    if goal == Goal::Gone {
        return Some(false);
    }
    match turn.end {
        _ if !turn.refused.is_empty() => Some(true),
        TurnEnd::Refused => Some(true),
        TurnEnd::Converged | TurnEnd::Wait { .. } | TurnEnd::NeedsIntent => Some(false),
        TurnEnd::Failed(_) | TurnEnd::Unknown(_) => None,
    }
}

/// How all Services stand. One that is refused does not wait: it is for a person to change it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Census {
    addresses: BTreeMap<ObjectKey, Address>,
    refused: BTreeSet<ObjectKey>,
    waiting: Waiting<ObjectKey>,
}

impl Census {
    /// A version of the Service was seen.
    pub fn seen(&mut self, key: &ObjectKey, address: Address, now: Timestamp) {
        if address == Address::NotWanted {
            self.addresses.remove(key);
            self.refused.remove(key);
        } else {
            self.addresses.insert(key.clone(), address);
        }
        self.weigh(key, now);
    }

    /// A pass over the Service found out whether something of it is refused.
    pub fn judged(&mut self, key: &ObjectKey, refused: bool, now: Timestamp) {
        if refused && self.addresses.contains_key(key) {
            self.refused.insert(key.clone());
        } else {
            self.refused.remove(key);
        }
        self.weigh(key, now);
    }

    /// Those that wait for an address.
    #[must_use]
    pub const fn waiting(&self) -> &Waiting<ObjectKey> {
        &self.waiting
    }

    /// How many there are of which something is refused.
    #[must_use]
    pub fn refused(&self) -> usize {
        self.refused.len()
    }

    fn weigh(&mut self, key: &ObjectKey, now: Timestamp) {
        let waits = self.addresses.get(key) == Some(&Address::Missing) && !self.refused.contains(key);
        self.waiting.set(key, waits, now);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        decide::service::testing::{assignments, classy, service, typed},
        error::Error,
        lb::{Creation, Refusal},
        reason,
        view::{Ingress, ServiceType},
    };

    #[test]
    fn only_a_service_that_wants_an_address_from_us_can_lack_one() {
        let mut served = service();
        served.ingress = vec![Ingress::default()];
        let mut deleting = service();
        deleting.deleting = true;
        let table = [
            ("new", service(), Address::Missing),
            ("served", served, Address::Published),
            ("on its way out", deleting, Address::NotWanted),
            ("of another class", classy("example.net/other"), Address::NotWanted),
            ("of another type", typed(ServiceType::ClusterIp), Address::NotWanted),
        ];
        for (case, view, want) in table {
            assert_eq!(Address::of(&view, &assignments().of(&view)), want, "{case}");
        }
    }

    #[test]
    fn a_turn_that_never_decided_says_nothing_about_refusals() {
        let refusal =
            || Refusal { reason: reason::INVALID_ANNOTATION, field: "x".into(), message: "y".into() };
        let why = || Error::temporary("the cloud is away");
        let wait = || TurnEnd::Wait { on: "it".into(), poll: Duration::ZERO };
        let table = [
            ("nothing left", Goal::Present, TurnEnd::Converged, false, Some(false)),
            ("held back beside a load balancer", Goal::Present, TurnEnd::Converged, true, Some(true)),
            ("nothing is built", Goal::Present, TurnEnd::Refused, true, Some(true)),
            ("being built", Goal::Present, wait(), false, Some(false)),
            ("about to be built", Goal::Present, TurnEnd::NeedsIntent, false, Some(false)),
            ("failed before a decision", Goal::Present, TurnEnd::Failed(why()), false, None),
            ("failed after one", Goal::Present, TurnEnd::Failed(why()), true, Some(true)),
            ("the cloud is away", Goal::Present, TurnEnd::Unknown(why()), false, None),
            ("to be removed", Goal::Gone, TurnEnd::Unknown(why()), true, Some(false)),
        ];
        for (case, goal, end, refused, want) in table {
            let refused = if refused { vec![refusal()] } else { vec![] };
            let turn = Turn {
                end,
                done: vec![],
                denied: false,
                creation: Creation::Nothing,
                refused,
                notices: vec![],
            };
            assert_eq!(is_refused(goal, &turn), want, "{case}");
        }
    }

    enum Heard {
        Version(Address),
        Pass(bool),
    }

    #[test]
    fn a_service_waits_until_it_is_served_refused_or_gone() {
        use Heard::{Pass, Version};
        let (key, at) = (ObjectKey::new("a", "b"), |second| Timestamp::from_second(second).unwrap());
        let mut census = Census::default();
        // What is heard, and how many wait since when, and how many are refused.
        let table = [
            ("created", Version(Address::Missing), Some(0), 0),
            ("changed", Version(Address::Missing), Some(0), 0),
            ("refused", Pass(true), None, 1),
            ("edited", Version(Address::Missing), None, 1),
            ("no longer refused", Pass(false), Some(4), 0),
            ("served", Version(Address::Published), None, 0),
            ("a field is refused", Pass(true), None, 1),
            ("its address is lost", Version(Address::Missing), None, 1),
            ("gone", Version(Address::NotWanted), None, 0),
            ("a late word about it", Pass(true), None, 0),
        ];
        for (now, (case, heard, since, refused)) in (0..).zip(table) {
            match heard {
                Version(address) => census.seen(&key, address, at(now)),
                Pass(refused) => census.judged(&key, refused, at(now)),
            }
            let waits = (census.waiting().count(), census.waiting().oldest());
            assert_eq!(waits, (usize::from(since.is_some()), since.map(at)), "{case}");
            assert_eq!(census.refused(), refused, "{case}");
        }
        assert_eq!(census, Census::default(), "nothing is kept about one that is gone");
    }
}
