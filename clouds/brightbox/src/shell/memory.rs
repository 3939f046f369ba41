//! What is remembered of Services and load balancers between two looks, within one term.

use std::{collections::BTreeMap, time::Duration};

use cloudberth_core::Tick;

use crate::wire::{Acme, AcmeDomain};

/// For how long a certificate that was seen valid is taken to be so. It only decides how often the cloud is asked.
const TRUST: Duration = Duration::from_secs(3_600);

#[derive(Debug, Default)]
pub(super) struct Memory {
    term: u64,
    /// The digest of each Service's settings when it was first seen, by its UID: an edit that was made meanwhile is an edit
    /// that we saw.
    first: BTreeMap<String, String>,
    /// Certificates that were seen valid, by load balancer, and when: listings do not show them.
    certificates: BTreeMap<String, (Tick, Acme)>,
}

impl Memory {
    /// Forgets what was learnt in another term of leadership: whoever led meanwhile may have changed it.
    pub(super) fn begin(&mut self, term: u64) {
        if term != self.term {
            *self = Self { term, ..Self::default() };
        }
    }

    /// The digest with which a Service was first seen, which is the one that it has `now` if this is the first time.
    pub(super) fn first(&mut self, uid: &str, now: impl FnOnce() -> String) -> String {
        self.first.entry(uid.to_owned()).or_insert_with(now).clone()
    }

    /// A Service does not want its load balancer any more.
    pub(super) fn forget(&mut self, uid: &str) {
        self.first.remove(uid);
    }

    /// The certificate of a load balancer, if it was seen valid not long ago.
    pub(super) fn certificate(&self, balancer: &str, now: Tick) -> Option<Acme> {
        let (_, acme) = self.certificates.get(balancer).filter(|(seen, _)| now.since(*seen) < TRUST)?;
        Some(acme.clone())
    }

    /// The certificate of a load balancer was looked at.
    pub(super) fn saw(&mut self, balancer: &str, acme: &Acme, now: Tick) {
        self.certificates.retain(|_, (seen, _)| now.since(*seen) < TRUST);
        if !acme.domains.is_empty() && acme.domains.iter().all(AcmeDomain::is_valid) {
            self.certificates.insert(balancer.to_owned(), (now, acme.clone()));
        }
    }

    /// A load balancer is about to be written to: its certificate may change with it.
    pub(super) fn writes(&mut self, balancer: &str) {
        self.certificates.remove(balancer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acme(statuses: &[&str]) -> Acme {
        let domain = |status: &&str| AcmeDomain {
            identifier: "a.example".to_owned(),
            status: (*status).to_owned(),
            last_message: None,
        };
        Acme { domains: statuses.iter().map(domain).collect() }
    }

    #[test]
    fn only_a_valid_certificate_is_remembered_and_not_for_long() {
        let table = [
            ("valid", acme(&["valid", "valid"]), 3_599, true),
            ("too old", acme(&["valid"]), 3_600, false),
            ("one is pending", acme(&["valid", "pending"]), 1, false),
            ("none at all", acme(&[]), 1, false),
        ];
        for (case, seen, age, known) in table {
            let mut memory = Memory::default();
            memory.saw("lba-1", &seen, Tick::from_secs(100));
            let found = memory.certificate("lba-1", Tick::from_secs(100 + age));
            assert_eq!(found, known.then_some(seen), "{case}");
            assert_eq!(memory.certificate("lba-2", Tick::from_secs(100)), None, "{case}");
        }
    }

    #[test]
    fn a_write_ends_what_is_known_of_a_certificate_and_old_ones_are_dropped() {
        let mut memory = Memory::default();
        memory.saw("lba-1", &acme(&["valid"]), Tick::ZERO);
        memory.saw("lba-2", &acme(&["valid"]), Tick::from_secs(10));
        memory.writes("lba-2");
        assert_eq!(memory.certificate("lba-2", Tick::from_secs(11)), None);
        assert!(memory.certificate("lba-1", Tick::from_secs(11)).is_some());
        memory.saw("lba-3", &acme(&["valid"]), Tick::from_secs(4_000));
        assert_eq!(memory.certificates.keys().collect::<Vec<_>>(), ["lba-3"]);
    }

    #[test]
    fn the_first_sight_of_a_service_counts_until_it_is_let_go_or_the_term_ends() {
        let mut memory = Memory::default();
        memory.begin(1);
        assert_eq!(memory.first("u-1", || "a".to_owned()), "a");
        assert_eq!(memory.first("u-1", || "b".to_owned()), "a");
        memory.begin(1);
        assert_eq!(memory.first("u-1", || "b".to_owned()), "a", "the same term");
        memory.forget("u-1");
        assert_eq!(memory.first("u-1", || "c".to_owned()), "c");
        memory.saw("lba-1", &acme(&["valid"]), Tick::ZERO);
        memory.begin(2);
        assert_eq!(memory.first("u-1", || "d".to_owned()), "d", "another term");
        assert_eq!(memory.certificate("lba-1", Tick::ZERO), None, "another term");
    }
}
