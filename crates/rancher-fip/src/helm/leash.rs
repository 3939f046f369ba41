//! How long a Helm child may go on.
//!
//! Helm writes to a downstream cluster for minutes, which is longer than any claim lasts. So a child is begun under a claim
//! and lives on while the claim is renewed. When it has not been renewed by the renew deadline, the child is told to end;
//! when the claim ends, it is killed: only then may others lead. Helm itself knows of no claim, so it may send something in
//! the last seconds of it. This is the one exception to law 9.

use std::{fmt, pin::Pin, sync::Arc, time::Duration};

use cloudberth_core::{
    Clock,
    call::{CLAIM_RESERVE, Gate},
    time::Tick,
};
use tokio::{sync::watch, time::sleep};

use super::{HelmError, HelmFailure};

/// The claim is looked at this often.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// What may end a Helm child before its time: the end of the claim, and the end of this program.
#[derive(Clone)]
pub struct Leash {
    clock: Arc<dyn Clock>,
    gate: Arc<dyn Gate>,
    spare: Duration,
    stop: watch::Receiver<bool>,
}

impl Leash {
    /// A leash for children that are begun while `gate` allows writes.
    ///
    /// `spare` is how long before the end of the claim a child is told to end: the duration of the Lease less the renew
    /// deadline. A `true` in `stop` says that this program ends: children are told so at once and have their grace. Keep
    /// the gate open until they are gone, or they are killed at the end of the claim that they last knew of.
    pub fn new(
        clock: Arc<dyn Clock>,
        gate: Arc<dyn Gate>,
        spare: Duration,
        stop: watch::Receiver<bool>,
    ) -> Self {
        Self { clock, gate, spare, stop }
    }

    /// The time by which all this is counted.
    pub(super) fn now(&self) -> Tick {
        self.clock.now()
    }

    /// The claim, if a child may be begun now.
    pub(super) fn may_begin(&self) -> Option<Tick> {
        let claim = self.gate.claim_until()?;
        let left = claim.since(self.now());
        (left >= CLAIM_RESERVE && left > self.spare && !*self.stop.borrow()).then_some(claim)
    }

    /// Sees `work` through. When `life` says so, `tell` tells it to end. Returns what came of it, or nothing if it has to be
    /// killed, and why it was told to end, if it was. What only reads is not `guarded`: it needs no claim.
    pub(super) async fn hold<T>(
        &self,
        mut life: Life,
        guarded: bool,
        mut work: Pin<&mut (impl Future<Output = T> + Send)>,
        tell: impl Fn() + Send,
    ) -> (Option<T>, Option<Ended>) {
        let mut ended = None;
        loop {
            let mut look = self.look();
            if !guarded {
                look.claim = Some(Tick(Duration::MAX));
            }
            let pause = match life.step(look) {
                Step::Wait(until) => until.since(look.now).min(LOOK_EVERY),
                Step::Terminate(why) => {
                    ended = Some(why);
                    tell();
                    continue;
                }
                Step::Kill => return (None, ended.or(Some(Ended::Lost))),
            };
            tokio::select! {
                biased;
                done = work.as_mut() => return (Some(done), ended),
                () = self.told_to_stop(), if !look.stop => {}
                () = sleep(pause) => {}
            }
        }
    }

    fn look(&self) -> Look {
        Look { now: self.now(), claim: self.gate.claim_until(), stop: *self.stop.borrow() }
    }

    /// Returns when this program is told to end. Never, if nobody can say so any more.
    async fn told_to_stop(&self) {
        let mut stop = self.stop.clone();
        if stop.wait_for(|stop| *stop).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    pub(super) const fn spare(&self) -> Duration {
        self.spare
    }
}

impl fmt::Debug for Leash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leash").field("spare", &self.spare).finish_non_exhaustive()
    }
}

/// Why a child was told to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// This program ends.
    Stopped,
    /// The claim was not renewed in time, or is over.
    Lost,
    /// It took too long.
    TooLong,
}

impl Ended {
    /// The failure of what was told to end for this.
    pub(super) fn failure(self, doing: &str) -> HelmError {
        let (failure, why) = match self {
            Self::Stopped => (HelmFailure::Stopped, "this program ends"),
            Self::Lost => (HelmFailure::Stopped, "this replica no longer leads"),
            Self::TooLong => (HelmFailure::TimedOut, "it took longer than it may"),
        };
        HelmError::new(failure, format!("helm {doing} was told to end: {why}"))
    }
}

/// What is to be seen now.
#[derive(Clone, Copy, Debug)]
struct Look {
    now: Tick,
    claim: Option<Tick>,
    stop: bool,
}

/// What to do to the child now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Nothing, before this time.
    Wait(Tick),
    /// Tell it to end.
    Terminate(Ended),
    Kill,
}

/// One child's life, as a pure machine: it is shown what is to be seen, and says what to do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Life {
    /// When it has taken too long.
    until: Tick,
    /// How long it has between being told and being killed.
    grace: Duration,
    /// How long before the end of the claim it is told.
    spare: Duration,
    /// The latest end of a claim that was seen: until then nobody else leads.
    claim: Tick,
    /// When it was told to end.
    told: Option<Tick>,
}

impl Life {
    pub(super) const fn new(claim: Tick, until: Tick, grace: Duration, spare: Duration) -> Self {
        Self { until, grace, spare, claim, told: None }
    }

    fn step(&mut self, look: Look) -> Step {
        let Look { now, claim, stop } = look;
        if let Some(claim) = claim {
            self.claim = self.claim.max(claim);
        }
        if let Some(told) = self.told {
            let killed = (told + self.grace).min(self.claim);
            return if killed <= now { Step::Kill } else { Step::Wait(killed) };
        }
        let renewed_by = self.claim - self.spare;
        let why = if self.claim <= now {
            // Frozen, or asleep: others may lead by now.
            self.told = Some(now);
            return Step::Kill;
        } else if stop {
            Ended::Stopped
        } else if claim.is_none() || renewed_by <= now {
            Ended::Lost
        } else if self.until <= now {
            Ended::TooLong
        } else {
            return Step::Wait(self.until.min(renewed_by));
        };
        self.told = Some(now);
        Step::Terminate(why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRACE: Duration = Duration::from_secs(20);
    const SPARE: Duration = Duration::from_secs(5);

    fn at(now: u64, claim: Option<u64>, stop: bool) -> Look {
        Look { now: Tick::from_secs(now), claim: claim.map(Tick::from_secs), stop }
    }

    fn wait(until: u64) -> Step {
        Step::Wait(Tick::from_secs(until))
    }

    /// Looks, one after the other, and what each leads to.
    type Script = Vec<(Look, Step)>;

    #[test]
    fn a_child_ends_when_it_must_and_not_before() {
        let told = |why| Step::Terminate(why);
        let table: Vec<(&str, Script)> = vec![
            (
                "L9-801 a claim that is renewed lets it go on",
                vec![
                    (at(0, Some(15), false), wait(10)),
                    (at(9, Some(23), false), wait(18)),
                    (at(17, Some(31), false), wait(26)),
                ],
            ),
            (
                "L9-802 told at the renew deadline, killed at the end of the Lease",
                vec![
                    (at(9, Some(15), false), wait(10)),
                    (at(10, Some(15), false), told(Ended::Lost)),
                    (at(11, None, false), wait(15)),
                    (at(15, None, false), Step::Kill),
                ],
            ),
            (
                "L9-803 told at once when the claim is given up",
                vec![(at(3, None, false), told(Ended::Lost)), (at(4, None, false), wait(15))],
            ),
            (
                "L9-804 after a freeze beyond the Lease it is killed at once",
                vec![(at(15, Some(15), false), Step::Kill)],
            ),
            (
                "RF-75 told when the program ends, with all its grace while the claim is renewed",
                vec![
                    (at(5, Some(19), true), told(Ended::Stopped)),
                    (at(6, Some(19), true), wait(19)),
                    (at(18, Some(33), true), wait(25)),
                    (at(25, Some(39), true), Step::Kill),
                ],
            ),
            (
                "RF-73 told when it takes too long, killed after its grace",
                vec![
                    (at(100, Some(115), false), wait(110)),
                    (at(720, Some(735), false), told(Ended::TooLong)),
                    (at(739, Some(754), false), wait(740)),
                    (at(740, Some(755), false), Step::Kill),
                ],
            ),
        ];
        for (case, script) in table {
            let mut life = Life::new(Tick::from_secs(15), Tick::from_secs(720), GRACE, SPARE);
            for (look, want) in script {
                assert_eq!(life.step(look), want, "{case} at {:?}", look.now);
            }
        }
    }

    #[test]
    fn without_an_election_only_time_and_the_end_of_the_program_count() {
        let forever = Tick(Duration::MAX);
        let mut life = Life::new(forever, Tick::from_secs(720), GRACE, SPARE);
        let look = |now| Look { now: Tick::from_secs(now), claim: Some(forever), stop: false };
        assert_eq!(life.step(look(0)), wait(720));
        assert_eq!(life.step(look(720)), Step::Terminate(Ended::TooLong));
        assert_eq!(life.step(look(740)), Step::Kill);
    }
}
