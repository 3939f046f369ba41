//! Which events a pass publishes, and which were published before (law 4).
//!
//! A pass that finds nothing to do publishes nothing. What was published last is remembered per Service, in memory: after
//! a restart a refusal that still holds is published once more.

use crate::{
    decide::service::{
        events,
        lifecycle::{Closing, Opening},
    },
    lb::{Goal, Notice, Turn, TurnEnd},
};

/// What made a pass necessary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// The Service itself, a restart, or a look after hand edits.
    Service,
    /// Only the set of nodes.
    Nodes,
}

/// What was published about one Service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventDedup {
    /// The refusals and notices of the last turn.
    last: Vec<Notice>,
    /// That the Service is an orphan, or its owner unclear.
    opening: Option<Notice>,
    /// That there are no nodes.
    no_nodes: bool,
    /// The start of work was published, and its end was not.
    working: bool,
    /// The start of the removal was published.
    deleting: bool,
}

impl EventDedup {
    /// What to publish when a pass opens.
    pub fn opening(&mut self, opening: &Opening<'_>) -> Vec<Notice> {
        let notice = match opening {
            Opening::Orphan { provider } => Some(events::orphan(provider)),
            Opening::Doubt(why) => Some(events::doubtful(why)),
            _ => None,
        };
        let news = notice.clone().filter(|notice| self.opening.as_ref() != Some(notice));
        self.opening = notice;
        let begins = matches!(opening, Opening::Prepare { .. }).then(|| self.begin()).flatten();
        news.into_iter().chain(begins).collect()
    }

    /// What to publish when a pass closes. `nodes` are the names behind the load balancer.
    pub fn closing(
        &mut self,
        goal: Goal,
        occasion: Occasion,
        turn: &Turn,
        nodes: &[&str],
        closing: &Closing,
    ) -> Vec<Notice> {
        let mut out = self.of(turn);
        match goal {
            Goal::Present => self.present(occasion, turn, nodes, &mut out),
            Goal::Gone if !turn.done.is_empty() && !self.deleting => {
                self.deleting = true;
                out.push(events::deleting());
            }
            Goal::Gone => {}
        }
        match closing {
            Closing::Retry { error, .. } if goal == Goal::Present && occasion == Occasion::Nodes => {
                out.extend(events::update_failed(nodes, error));
            }
            Closing::Retry { error, .. } => out.extend(events::sync_failed(error)),
            Closing::RecordIntent => out.extend(self.begin()),
            _ => {}
        }
        out
    }

    /// What to publish when the finalizer is off.
    pub fn released(&mut self) -> Vec<Notice> {
        *self = Self::default();
        vec![events::deleted()]
    }

    /// Work begins; published once until its end is.
    fn begin(&mut self) -> Option<Notice> {
        let news = !self.working;
        self.working = true;
        news.then(events::ensuring)
    }

    /// Refusals and notices that were not among the last ones.
    fn of(&mut self, turn: &Turn) -> Vec<Notice> {
        let now: Vec<_> = events::refused(&turn.refused).into_iter().chain(turn.notices.clone()).collect();
        let news = now.iter().filter(|notice| !self.last.contains(notice)).cloned().collect();
        self.last = now;
        news
    }

    fn present(&mut self, occasion: Occasion, turn: &Turn, nodes: &[&str], out: &mut Vec<Notice>) {
        self.working |= !turn.done.is_empty();
        if nodes.is_empty() && (!self.no_nodes || !turn.done.is_empty()) {
            out.push(events::no_nodes());
        }
        self.no_nodes = nodes.is_empty();
        if turn.end == TurnEnd::Converged && self.working {
            self.working = false;
            match occasion {
                Occasion::Service => out.push(events::ensured()),
                Occasion::Nodes if !nodes.is_empty() => out.push(events::updated()),
                Occasion::Nodes => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        error::Error,
        lb::{Creation, Refusal, Severity},
        reason,
    };

    const REST: Closing = Closing::TurnEnd { clear_intent: false };
    const PREPARE: Opening<'_> = Opening::Prepare { provider: "cloud", intent: true };

    fn turn(end: TurnEnd, done: &[&str]) -> Turn {
        let done = done.iter().map(|&step| step.to_owned()).collect();
        Turn { end, done, denied: false, creation: Creation::Nothing, refused: vec![], notices: vec![] }
    }

    fn reasons(notices: &[Notice]) -> Vec<&'static str> {
        notices.iter().map(|notice| notice.reason.name()).collect()
    }

    fn retry(error: &Error) -> Closing {
        Closing::Retry { error: error.clone(), clear_intent: false }
    }

    #[test]
    fn a_building_load_balancer_is_announced_and_reported_once() {
        let mut told = EventDedup::default();
        let mut say = |rest, done: &[&str], closing: &Closing| {
            let turn = turn(rest, done);
            reasons(&told.closing(Goal::Present, Occasion::Service, &turn, &["n"], closing))
        };
        let wait = || TurnEnd::Wait { on: "building".into(), poll: Duration::from_secs(5) };
        let waiting = Closing::Wait { poll: Duration::from_secs(5), clear_intent: true };
        assert_eq!(say(TurnEnd::NeedsIntent, &[], &Closing::RecordIntent), ["EnsuringLoadBalancer"]);
        assert_eq!(say(wait(), &["create"], &waiting), [""; 0]);
        assert_eq!(say(TurnEnd::Converged, &[], &REST), ["EnsuredLoadBalancer"]);
        assert_eq!(say(TurnEnd::Converged, &[], &REST), [""; 0], "L4-107 nothing to do, nothing to say");
        assert_eq!(say(TurnEnd::Converged, &["resize"], &REST), ["EnsuredLoadBalancer"]);
    }

    #[test]
    fn preparing_announces_and_says_it_once() {
        let mut told = EventDedup::default();
        assert_eq!(reasons(&told.opening(&PREPARE)), ["EnsuringLoadBalancer"]);
        assert_eq!(told.opening(&PREPARE), []);
        assert_eq!(told.opening(&Opening::Ensure { provider: "cloud" }), [], "L4-108");
    }

    #[test]
    fn new_nodes_have_their_own_words() {
        let error = Error::temporary("503");
        let (failed, unknown) = (TurnEnd::Failed(error.clone()), TurnEnd::Unknown(error.clone()));
        let converged = || TurnEnd::Converged;
        let table = [
            (
                "an update",
                Occasion::Nodes,
                turn(converged(), &["add"]),
                &["n"][..],
                REST,
                vec!["UpdatedLoadBalancer"],
            ),
            (
                "FW-229 an update to no nodes",
                Occasion::Nodes,
                turn(converged(), &["remove"]),
                &[],
                REST,
                vec!["UnAvailableLoadBalancer"],
            ),
            (
                "FW-157 no nodes from the start",
                Occasion::Service,
                turn(converged(), &["create"]),
                &[],
                REST,
                vec!["UnAvailableLoadBalancer", "EnsuredLoadBalancer"],
            ),
            (
                "FW-227 an update fails",
                Occasion::Nodes,
                turn(unknown, &[]),
                &["n"],
                retry(&error),
                vec!["UpdateLoadBalancerFailed"],
            ),
            (
                "FW-158 a pass fails",
                Occasion::Service,
                turn(failed, &[]),
                &["n"],
                retry(&error),
                vec!["SyncLoadBalancerFailed"],
            ),
            (
                "we stopped ourselves",
                Occasion::Service,
                turn(converged(), &[]),
                &["n"],
                retry(&Error::cancelled("shutdown")),
                vec![],
            ),
        ];
        for (case, occasion, turn, nodes, closing, want) in table {
            let said = EventDedup::default().closing(Goal::Present, occasion, &turn, nodes, &closing);
            assert_eq!(reasons(&said), want, "{case}");
        }
    }

    #[test]
    fn the_lack_of_nodes_is_said_when_it_begins_and_when_something_is_done() {
        let mut told = EventDedup::default();
        let mut say = |done: &[&str], nodes: &[&str]| {
            let turn = turn(TurnEnd::Converged, done);
            reasons(&told.closing(Goal::Present, Occasion::Nodes, &turn, nodes, &REST))
        };
        assert_eq!(say(&[], &[]), ["UnAvailableLoadBalancer"]);
        assert_eq!(say(&[], &[]), [""; 0], "L4-109");
        assert_eq!(say(&["x"], &[]), ["UnAvailableLoadBalancer"]);
        assert_eq!(say(&[], &["n"]), [""; 0]);
        assert_eq!(say(&[], &[]), ["UnAvailableLoadBalancer"]);
    }

    #[test]
    fn a_removal_is_announced_once_and_reported() {
        let mut told = EventDedup::default();
        let error = Error::temporary("503");
        let say = |told: &mut EventDedup, rest, done: &[&str], closing: &Closing| {
            reasons(&told.closing(Goal::Gone, Occasion::Nodes, &turn(rest, done), &[], closing))
        };
        let failed = TurnEnd::Failed(error.clone());
        assert_eq!(say(&mut told, failed, &[], &retry(&error)), ["SyncLoadBalancerFailed"], "FW-152");
        assert_eq!(
            say(&mut told, TurnEnd::Converged, &["delete"], &Closing::Release),
            ["DeletingLoadBalancer"]
        );
        assert_eq!(say(&mut told, TurnEnd::Converged, &["delete"], &Closing::Release), [""; 0]);
        assert_eq!(reasons(&told.released()), ["DeletedLoadBalancer"]);
        assert_eq!(told, EventDedup::default());
    }

    #[test]
    fn refusals_and_notices_are_said_when_they_are_new() {
        let mut told = EventDedup::default();
        let refusal = |field: &str| Refusal {
            reason: reason::UNSUPPORTED_FIELD,
            field: field.to_owned(),
            message: "no".to_owned(),
        };
        let notice = |reason| Notice { severity: Severity::Warning, reason, message: "look".to_owned() };
        let mut say = |refused: Vec<Refusal>, notices: Vec<Notice>| {
            let turn = Turn { refused, notices, ..turn(TurnEnd::Converged, &[]) };
            reasons(&told.closing(Goal::Present, Occasion::Service, &turn, &["n"], &REST))
        };
        assert_eq!(
            say(vec![refusal("a")], vec![notice(reason::ADDRESS_TAKEN)]),
            ["UnsupportedField", "AddressTaken"]
        );
        assert_eq!(say(vec![refusal("a")], vec![notice(reason::ADDRESS_TAKEN)]), [""; 0], "L4-110");
        assert_eq!(
            say(vec![refusal("b")], vec![notice(reason::ADDRESS_TAKEN), notice(reason::NO_ADDRESS_SHOWN)]),
            ["UnsupportedField", "NoAddressShown"]
        );
        assert_eq!(say(vec![], vec![]), [""; 0]);
        assert_eq!(say(vec![refusal("b")], vec![]), ["UnsupportedField"], "it is back");
    }

    #[test]
    fn orphans_and_doubts_are_said_once() {
        let mut told = EventDedup::default();
        let orphan = Opening::Orphan { provider: "cloud" };
        let doubt = Opening::Doubt(Error::user_input("two ids"));
        assert_eq!(reasons(&told.opening(&orphan)), ["OrphanedLoadBalancer"]);
        assert_eq!(told.opening(&orphan), []);
        assert_eq!(reasons(&told.opening(&doubt)), ["LoadBalancerOwnerUnclear"]);
        assert_eq!(told.opening(&Opening::Nothing), []);
        assert_eq!(reasons(&told.opening(&doubt)), ["LoadBalancerOwnerUnclear"]);
    }
}
