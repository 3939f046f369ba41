//! The state machine of one candidate.
//!
//! # Why a claim lasts as long as it does
//!
//! A renewal is *sent* at `s`, by our clock. The server stores it at some later time, and another candidate first
//! sees it later still. That candidate may take the lease when it has seen the record unchanged for the whole seconds that
//! the record names, so not before `s` plus those seconds, whatever the two clocks show, as long as they run at the same
//! speed. They nearly do, so a thousandth is subtracted. A claim ends at `s` plus the rest of the whole seconds, counted
//! from the sending of the last renewal that is known to have succeeded, never from its answer. A renewal whose answer was
//! lost extends nothing.
//!
//! Candidates of other programs compare records whose times are truncated to whole seconds, as client-go does. To them,
//! two renewals within one second are the same record, and they count from the first. So a renewal extends the claim only
//! if its second differs from that of the record it replaces. More frequent renewals are written and do not count.
//!
//! The claim also ends, at once, when the renew deadline passes, when the API server shows that the lease is not ours, and
//! when we are told to stop. After a loss the candidate tries again.

use std::time::Duration;

use jiff::Timestamp;

use super::{
    config::Config,
    lease::{Lease, Record},
    protocol::{Action, Input, Loss, Moment, Move, News, Ticket},
};
use crate::{
    error::{Category, Error, Result},
    lookup::Lookup,
    time::Tick,
};

/// The precision with which other programs compare times.
const SECOND: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
enum Phase {
    Resting { until: Tick },
    Reading { ticket: Ticket, until: Tick },
    Writing { ticket: Ticket, until: Tick, sent: Sent, optimistic: bool },
    Releasing { ticket: Ticket, until: Tick },
    Stopped { released: bool },
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Tick,
    /// It differs by whole seconds from the record that it replaces, so everybody sees it.
    counts: bool,
}

/// A Lease, and when its spec was first seen here.
#[derive(Clone, Debug)]
struct Observed {
    lease: Lease,
    since: Tick,
}

#[derive(Clone, Copy, Debug)]
struct LeaderClaim {
    /// When the renewal that it counts from was sent.
    since: Tick,
    until: Tick,
    /// When the renewal in flight must have succeeded.
    renew_by: Option<Tick>,
}

/// One candidate for leadership.
#[derive(Clone, Debug)]
pub struct Candidate {
    config: Config,
    phase: Phase,
    observed: Option<Observed>,
    claim: Option<LeaderClaim>,
    begun: Tick,
    /// Set once we are told to stop: until when a release may be tried.
    stop_by: Option<Tick>,
    /// Whether it may be tried at all.
    release: bool,
    news: Option<News>,
    tickets: u64,
    slow_paths: u64,
}

impl Candidate {
    /// A candidate without any input yet. Check the configuration's [`mistakes`](Config::mistakes) first.
    pub const fn new(config: Config) -> Self {
        Self {
            config,
            phase: Phase::Resting { until: Tick::ZERO },
            observed: None,
            claim: None,
            begun: Tick::ZERO,
            stop_by: None,
            release: false,
            news: None,
            tickets: 0,
            slow_paths: 0,
        }
    }

    /// Until when this replica may write; `None` if it does not lead. The module's documentation says why.
    pub fn claim_until(&self) -> Option<Tick> {
        self.claim.map(|claim| claim.until)
    }

    /// Who holds the lease, as far as is known; `None` while nothing is known or nobody does.
    pub fn holder(&self) -> Option<&str> {
        let holder = &self.observed.as_ref()?.lease.record.holder;
        (!holder.is_empty()).then_some(holder)
    }

    /// How many renewals needed a read first.
    pub const fn slow_paths(&self) -> u64 {
        self.slow_paths
    }

    /// Fails only if we believe that we lead and have not renewed for the lease's duration and `tolerance`: then the
    /// program is stuck.
    pub fn health(&self, now: Tick, tolerance: Duration) -> Result<()> {
        match (&self.observed, self.claim) {
            (Some(observed), Some(_))
                if now.since(observed.since) > self.config.lease_duration.saturating_add(tolerance) =>
            {
                Err(Error::temporary(format!(
                    "failed election to renew leadership on lease {}",
                    self.config.name
                )))
            }
            _ => Ok(()),
        }
    }

    /// Takes an input and returns what to do next.
    pub fn step(&mut self, input: Input, at: Moment) -> Move {
        self.give_up_if_late(at);
        let action = match (input, self.phase.clone()) {
            (_, Phase::Stopped { released }) => Action::Stopped { released },
            (Input::Stop { release }, _) => self.stop(release, at),
            (Input::Noticed(lease), _) => self.noticed(lease, at),
            (Input::Read(of, answer), Phase::Reading { ticket, .. }) if of == ticket => self.read(answer, at),
            (Input::Wrote(of, answer), Phase::Writing { ticket, sent, optimistic, .. }) if of == ticket => {
                match answer {
                    Ok(stored) => self.wrote(stored, sent, at),
                    Err(_) if optimistic => self.get(at),
                    Err(_) => self.failed(at),
                }
            }
            (Input::Wrote(of, answer), Phase::Releasing { ticket, .. }) if of == ticket => {
                self.released(answer, at)
            }
            _ => self.go_on(at),
        };
        Move { action, news: self.news.take() }
    }

    /// What is due without new input, or how long to wait.
    fn go_on(&mut self, at: Moment) -> Action {
        let until = match &self.phase {
            Phase::Stopped { released } => return Action::Stopped { released: *released },
            Phase::Resting { until }
            | Phase::Reading { until, .. }
            | Phase::Writing { until, .. }
            | Phase::Releasing { until, .. } => *until,
        };
        if at.now < until {
            return self.wait(until);
        }
        match &self.phase {
            Phase::Resting { .. } => self.begin(at),
            Phase::Writing { optimistic: true, .. } => self.get(at),
            _ => self.failed(at),
        }
    }

    /// Begins a try. A leader whose lease is still valid renews it without a read.
    fn begin(&mut self, at: Moment) -> Action {
        self.begun = at.now;
        if let Some(claim) = &mut self.claim {
            claim.renew_by.get_or_insert(at.now + self.config.renew_deadline);
        }
        match &self.observed {
            Some(seen) if self.is_mine(&seen.lease) && at.now < self.expiry(seen) => {
                let (old, new) = (seen.lease.clone(), self.renewed(&seen.lease.record, at));
                self.update(&old, new, true, at)
            }
            _ => self.get(at),
        }
    }

    fn read(&mut self, answer: Lookup<Lease>, at: Moment) -> Action {
        let lease = match answer {
            Lookup::Unknown(_) => return self.failed(at),
            Lookup::Present(lease) => Some(lease),
            Lookup::Absent => None,
        };
        // Others may lead already: the claim is over.
        if self.claim.is_some() && !lease.as_ref().is_some_and(|lease| self.is_mine(lease)) {
            self.lose(Loss::Taken);
        }
        let Some(lease) = lease else { return self.absent(at) };
        self.observe(lease.clone(), at);
        let held = self.observed.as_ref().is_some_and(|seen| at.now < self.expiry(seen));
        let mine = self.is_mine(&lease);
        if self.stop_by.is_some() {
            return if mine { self.release(&lease, at) } else { self.end(false) };
        }
        if !mine && !lease.record.holder.is_empty() && held {
            return self.failed(at);
        }
        let record = if mine {
            self.slow_paths += 1;
            self.renewed(&lease.record, at)
        } else {
            self.taken(lease.record.transitions.saturating_add(1), at)
        };
        self.update(&lease, record, false, at)
    }

    fn absent(&mut self, at: Moment) -> Action {
        self.observed = None;
        if self.stop_by.is_some() {
            return self.end(false);
        }
        let lease = Lease::fresh(&self.config.namespace, &self.config.name, self.taken(0, at));
        let (ticket, until) = self.request(at);
        let sent = Sent { at: at.now, counts: true };
        self.phase = Phase::Writing { ticket, until, sent, optimistic: false };
        Action::Create { ticket, until, lease }
    }

    /// Our record is stored. The claim counts from the time of sending, or stays as it was.
    fn wrote(&mut self, stored: Lease, sent: Sent, at: Moment) -> Action {
        if self.stop_by.is_some() {
            return self.release(&stored, at);
        }
        self.observed = Some(Observed { lease: stored, since: at.now });
        let fresh = LeaderClaim { since: sent.at, until: sent.at + self.config.claim(), renew_by: None };
        let same = self.claim.map(|claim| LeaderClaim { renew_by: None, ..claim });
        let Some(claim) = Some(fresh).filter(|_| sent.counts).or(same).filter(|claim| at.now < claim.until)
        else {
            return self.failed(at);
        };
        if self.claim.replace(claim).is_none() {
            self.news = Some(News::Leads);
            return self.begin(at);
        }
        self.rest(at.now + self.config.retry_period)
    }

    fn noticed(&mut self, lease: Option<Lease>, at: Moment) -> Action {
        let free = lease.as_ref().is_none_or(|lease| lease.record.holder.is_empty());
        let mine = lease.as_ref().is_some_and(|lease| self.is_mine(lease));
        if let (Some(lease), None) = (lease, self.claim) {
            self.observe(lease, at);
        }
        // A leader that sees a record other than its own reads the current one at once.
        let look = if self.claim.is_some() { !mine } else { free };
        match self.phase {
            Phase::Resting { .. } if look => self.begin(at),
            _ => self.go_on(at),
        }
    }

    fn stop(&mut self, release: bool, at: Moment) -> Action {
        let first = self.stop_by.is_none();
        if first {
            self.release = release;
        }
        self.stop_by.get_or_insert(at.now + self.config.renew_deadline);
        if self.claim.is_some() {
            self.lose(Loss::Stopped);
            return match self.observed.take() {
                Some(seen) => self.release(&seen.lease, at),
                None => self.end(false),
            };
        }
        match self.phase {
            // We may be about to lead; the answer will show.
            Phase::Writing { .. } | Phase::Releasing { .. } => self.go_on(at),
            Phase::Reading { .. } if !first => self.go_on(at),
            _ => self.end(false),
        }
    }

    fn release(&mut self, lease: &Lease, at: Moment) -> Action {
        if !self.release {
            return self.end(false);
        }
        if lease.resource_version.is_empty() {
            return self.get(at);
        }
        let record = Record {
            holder: String::new(),
            duration_seconds: Some(1),
            transitions: lease.record.transitions,
            ..self.taken(0, at)
        };
        let (ticket, until) = self.request(at);
        self.phase = Phase::Releasing { ticket, until };
        Action::Update { ticket, until, lease: lease.with(record) }
    }

    fn released(&mut self, answer: Result<Lease>, at: Moment) -> Action {
        match answer {
            Ok(_) => self.end(true),
            Err(why) if why.category() == Category::Conflict => self.get(at),
            Err(_) => self.end(false),
        }
    }

    /// The present try failed; the next one comes after a pause.
    fn failed(&mut self, at: Moment) -> Action {
        if self.stop_by.is_some() {
            self.end(false)
        } else if self.claim.is_some() {
            self.rest(at.now.max(self.begun + self.config.retry_period))
        } else {
            let pause = at.now + self.config.pause(at.fraction);
            // Soon after the lease expires, but not all candidates at once.
            let late = self.config.retry_period.mul_f64(at.fraction.clamp(0.0, 1.0) / 2.0);
            let others =
                |seen: &&Observed| !self.is_mine(&seen.lease) && !seen.lease.record.holder.is_empty();
            let end = self.observed.as_ref().filter(others).map(|seen| self.expiry(seen));
            let end = end.filter(|end| *end > at.now);
            self.rest(end.map_or(pause, |end| pause.min(end + late)))
        }
    }

    fn get(&mut self, at: Moment) -> Action {
        if self.stop_by.is_some_and(|end| at.now >= end) {
            return self.end(false);
        }
        let (ticket, until) = self.request(at);
        self.phase = Phase::Reading { ticket, until };
        Action::Get { ticket, until }
    }

    fn update(&mut self, old: &Lease, record: Record, optimistic: bool, at: Moment) -> Action {
        let counts = old.record.in_whole_seconds() != record.in_whole_seconds();
        let lease = old.with(record);
        if lease.resource_version.is_empty() {
            // Without a version the replacement would be unconditional.
            return if optimistic { self.get(at) } else { self.failed(at) };
        }
        let (ticket, until) = self.request(at);
        self.phase = Phase::Writing { ticket, until, sent: Sent { at: at.now, counts }, optimistic };
        Action::Update { ticket, until, lease }
    }

    fn rest(&mut self, until: Tick) -> Action {
        self.phase = Phase::Resting { until };
        self.wait(until)
    }

    /// Waits, but not longer than the claim lasts.
    fn wait(&self, until: Tick) -> Action {
        Action::Wait(self.give_up_at().map_or(until, |late| late.min(until)))
    }

    fn end(&mut self, released: bool) -> Action {
        self.phase = Phase::Stopped { released };
        Action::Stopped { released }
    }

    fn give_up_at(&self) -> Option<Tick> {
        self.claim.map(|claim| claim.renew_by.map_or(claim.until, |by| by.min(claim.until)))
    }

    fn give_up_if_late(&mut self, at: Moment) {
        if self.give_up_at().is_some_and(|late| at.now >= late) {
            self.lose(Loss::Expired);
            self.phase = Phase::Resting { until: at.now + self.config.pause(at.fraction) };
        }
    }

    fn lose(&mut self, why: Loss) {
        self.claim = None;
        self.news = Some(News::Lost(why));
    }

    fn request(&mut self, at: Moment) -> (Ticket, Tick) {
        self.tickets += 1;
        (Ticket(self.tickets), at.now + self.config.request_timeout())
    }

    fn observe(&mut self, lease: Lease, at: Moment) {
        let since = match &self.observed {
            Some(seen) if !lease.says_something_else_than(&seen.lease) => seen.since,
            _ => at.now,
        };
        self.observed = Some(Observed { lease, since });
    }

    /// When the record expires. If it names no duration, ours counts.
    fn expiry(&self, seen: &Observed) -> Tick {
        let seconds = seen.lease.record.duration_seconds.unwrap_or_else(|| self.config.whole_seconds());
        seen.since + Duration::from_secs(seconds.into())
    }

    fn is_mine(&self, lease: &Lease) -> bool {
        lease.record.holder == self.config.identity
    }

    fn taken(&self, transitions: u32, at: Moment) -> Record {
        let now = Some(whole_micros(at.wall));
        Record {
            holder: self.config.identity.clone(),
            duration_seconds: Some(self.config.whole_seconds()),
            acquired: now,
            renewed: now,
            transitions,
        }
    }

    /// A renewed record of ours. It differs from the old one even if the wall clock stands still or was set back: others
    /// count from the last change that they saw, and a renewal that changes nothing would not count. Once a second it also
    /// differs in its whole seconds; that never runs ahead of a wall clock that moves.
    fn renewed(&self, old: &Record, at: Moment) -> Record {
        let fresh = self.taken(old.transitions, at);
        let must_count = self.claim.is_none_or(|claim| at.now.since(claim.since) >= SECOND);
        let least = old.renewed.and_then(|then| {
            if must_count {
                Timestamp::from_second(then.as_second().checked_add(1)?).ok()
            } else {
                then.checked_add(Duration::from_micros(1)).ok()
            }
        });
        Record { acquired: old.acquired, renewed: fresh.renewed.max(least), ..fresh }
    }
}

fn whole_micros(at: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(at.as_microsecond()).unwrap_or(at)
}
