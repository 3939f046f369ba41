//! The health monitors of pools, as far as they are known without another listing.
//!
//! Only the leader changes what is ours, so what it listed or made in its term holds until somebody edits it by hand. To
//! look for that is not what a change of nodes or of a port is for: every few minutes there is a look for hand edits,
//! and nothing is known for longer than the pause between two of them.

use std::{collections::BTreeMap, time::Duration};

use cloudberth_core::{Tick, lb::Outcome};

use crate::{Action, Answer, wire::HealthMonitor};

/// For how long monitors are known: shorter than the ten minutes between two looks for hand edits, so that each lists.
const KNOWN_FOR: Duration = Duration::from_secs(9 * 60);

/// The monitors of some pools.
#[derive(Debug, Default)]
pub(super) struct KnownMonitors {
    term: u64,
    pools: BTreeMap<String, Known>,
}

/// All monitors of one pool.
#[derive(Debug)]
struct Known {
    monitors: Vec<HealthMonitor>,
    since: Tick,
}

impl KnownMonitors {
    /// Forgets what was learnt in another term of leadership: whoever led meanwhile may have changed it.
    pub(super) fn begin(&mut self, term: u64) {
        if term != self.term {
            *self = Self { term, ..Self::default() };
        }
    }

    /// The monitors of these pools, if those of all of them are known.
    pub(super) fn of(&self, pools: &[String], now: Tick) -> Option<Vec<HealthMonitor>> {
        let known = |pool| self.pools.get(pool).filter(|known| now.since(known.since) < KNOWN_FOR);
        let all: Option<Vec<_>> = pools.iter().map(known).collect();
        Some(all?.into_iter().flat_map(|known| known.monitors.iter().cloned()).collect())
    }

    /// Takes in a listing that may serve these pools.
    pub(super) fn listed(&mut self, pools: &[String], monitors: &[HealthMonitor], now: Tick) {
        self.pools.retain(|_, known| now.since(known.since) < KNOWN_FOR);
        for pool in pools {
            let below = |monitor: &&HealthMonitor| monitor.pool.as_ref().is_some_and(|of| of.uuid == *pool);
            let monitors = monitors.iter().filter(below).cloned().collect();
            self.pools.insert(pool.clone(), Known { monitors, since: now });
        }
    }

    /// Takes in what became of a mutation. What is not certain is no longer known.
    pub(super) fn heard(&mut self, act: &Action, outcome: &Outcome<Answer>, now: Tick) {
        match (act, outcome) {
            (_, Outcome::Done(Answer::Pool(pool))) => self.listed(std::slice::from_ref(&pool.uuid), &[], now),
            (Action::CreateMonitor(new), Outcome::Done(Answer::Monitor(made))) => {
                if let Some(known) = self.pools.get_mut(&new.pool) {
                    known.monitors.push(HealthMonitor::clone(made));
                }
            }
            (Action::CreateMonitor(new), _) => drop(self.pools.remove(&new.pool)),
            (Action::UpdateMonitor { monitor, .. } | Action::DeleteMonitor { monitor }, _) => {
                self.pools.retain(|_, known| known.monitors.iter().all(|other| other.uuid != *monitor));
            }
            (Action::DeletePool { pool }, _) => drop(self.pools.remove(pool)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use cloudberth_core::Error;

    use super::*;
    use crate::wire::{MonitorChange, NewMonitor, NewPool, Pool, Stub};

    const NOW: Tick = Tick::ZERO;

    fn monitor(uuid: &str, pool: &str) -> HealthMonitor {
        let pool = Some(Stub { uuid: pool.to_owned() });
        HealthMonitor { uuid: uuid.to_owned(), pool, ..HealthMonitor::default() }
    }

    fn create(pool: &str) -> Action {
        Action::CreateMonitor(NewMonitor { pool: pool.to_owned(), ..NewMonitor::default() })
    }

    fn made(uuid: &str, pool: &str) -> Outcome<Answer> {
        Outcome::Done(Answer::Monitor(Box::new(monitor(uuid, pool))))
    }

    fn told(known: &KnownMonitors, pools: &[&str], now: Tick) -> Option<Vec<String>> {
        let pools: Vec<_> = pools.iter().map(ToString::to_string).collect();
        Some(known.of(&pools, now)?.into_iter().map(|monitor| monitor.uuid).collect())
    }

    fn filled() -> KnownMonitors {
        let mut known = KnownMonitors::default();
        let all = [monitor("m1", "p1"), monitor("m2", "p2"), monitor("m9", "p9")];
        known.listed(&["p1".to_owned(), "p2".to_owned()], &all, NOW);
        known
    }

    #[test]
    fn monitors_are_known_only_where_a_listing_served() {
        let table = [
            ("both", vec!["p1", "p2"], Some(vec!["m1", "m2"])),
            ("of one", vec!["p2"], Some(vec!["m2"])),
            ("L1-1601 the listing was not for that pool", vec!["p1", "p9"], None),
            ("no pool", vec![], Some(vec![])),
        ];
        for (case, pools, want) in table {
            let want = want.map(|all| all.iter().map(ToString::to_string).collect());
            assert_eq!(told(&filled(), &pools, NOW), want, "{case}");
        }
    }

    #[test]
    fn nothing_is_known_for_long_or_from_another_term() {
        let known = filled();
        let last = NOW + KNOWN_FOR;
        assert!(told(&known, &["p1"], last - Duration::from_nanos(1)).is_some());
        assert_eq!(told(&known, &["p1"], last), None, "L4-1602 the next look for hand edits lists");
        let mut known = known;
        known.listed(&["p3".to_owned()], &[], last);
        assert_eq!(known.pools.len(), 1, "L12-1603 what is too old is dropped");
        let mut known = filled();
        known.begin(0);
        assert!(told(&known, &["p1"], NOW).is_some());
        known.begin(1);
        assert_eq!(told(&known, &["p1"], NOW), None, "L6-1604 another replica may have led");
    }

    #[test]
    fn what_we_do_is_known_and_what_is_lost_is_not() {
        let lost = || Outcome::Unknown(Error::temporary("503"));
        let update = Action::UpdateMonitor { monitor: "m1".to_owned(), change: MonitorChange::Delay(1) };
        let remove = Action::DeleteMonitor { monitor: "m1".to_owned() };
        let table = [
            ("another of the pool", create("p1"), made("m3", "p1"), Some(vec!["m1", "m3"])),
            ("one of another pool", create("p2"), made("m3", "p2"), Some(vec!["m1"])),
            ("L1-1605 a creation without an answer", create("p1"), lost(), None),
            ("L1-1606 a change", update.clone(), Outcome::Done(Answer::Done), None),
            ("L1-1606 a change without an answer", update, lost(), None),
            ("a removal", remove, Outcome::NotThere, None),
            (
                "the pool is gone",
                Action::DeletePool { pool: "p1".to_owned() },
                Outcome::Done(Answer::Done),
                None,
            ),
        ];
        for (case, act, outcome, want) in table {
            let mut known = filled();
            known.heard(&act, &outcome, NOW);
            let want = want.map(|all| all.iter().map(ToString::to_string).collect());
            assert_eq!(told(&known, &["p1"], NOW), want, "{case}");
        }
    }

    #[test]
    fn a_pool_of_ours_begins_without_monitors() {
        let mut known = KnownMonitors::default();
        let pool = Pool { uuid: "p1".to_owned(), ..Pool::default() };
        known.heard(&Action::CreatePool(NewPool::default()), &Outcome::Done(Answer::Pool(pool)), NOW);
        assert_eq!(told(&known, &["p1"], NOW), Some(vec![]));
        known.heard(&create("p1"), &made("m1", "p1"), NOW);
        assert_eq!(told(&known, &["p1"], NOW), Some(vec!["m1".to_owned()]));
        known.heard(&create("p7"), &made("m7", "p7"), NOW);
        assert_eq!(told(&known, &["p7"], NOW), None, "L1-1607 it may have others");
    }
}
