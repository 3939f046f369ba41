//! Several candidates, one server, and everything that can go wrong between them: never two valid claims at once.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::{
    error::{Category, Error, Result},
    lookup::Lookup,
    time::{Random, Tick},
};

type Millis = u64;

enum What {
    Arrives(usize, Action),
    /// An answer, or a watch event, reaches a candidate.
    Heard(usize, Input),
    Wake(usize),
}

struct Replica {
    candidate: Candidate,
    /// How far its clocks are ahead of real time.
    tick_ahead: Duration,
    /// Millionths by which its monotonic clock runs fast.
    fast: u32,
    wall_ahead: Duration,
    /// Its time of day does not move at all.
    wall_stands: bool,
    life: usize,
    leads: bool,
    /// Until when nothing reaches it and nothing of it gets through.
    cut_off_until: Millis,
    /// Until when it does not run at all.
    frozen_until: Millis,
}

/// Short times, so that much happens in a short run. The request time-out is 2 s.
fn hasty(identity: &str) -> Config {
    Config {
        lease_duration: Duration::from_secs(5),
        renew_deadline: Duration::from_secs(4),
        retry_period: Duration::from_secs(1),
        ..Config::with_defaults(identity)
    }
}

struct World {
    seed: u64,
    random: Random,
    now: Millis,
    agenda: BTreeMap<(Millis, u64), (usize, What)>,
    sequence: u64,
    lease: Option<Value>,
    version: u64,
    replicas: Vec<Replica>,
    faults: bool,
    leaders: u64,
    takeovers: u64,
    /// Another program, which sees every version at once and yet tells only whole seconds apart: what it saw, and since
    /// when.
    onlooker: Option<(Record, Millis)>,
}

impl World {
    fn new(seed: u64, replicas: usize) -> Self {
        let mut world = Self {
            seed,
            random: Random::seeded(seed),
            now: 0,
            agenda: BTreeMap::new(),
            sequence: 0,
            lease: None,
            version: 0,
            replicas: Vec::new(),
            faults: true,
            leaders: 0,
            takeovers: 0,
            onlooker: None,
        };
        for index in 0..replicas {
            let replica = world.newborn(index, 0);
            world.replicas.push(replica);
            world.plan(0, index, What::Wake(index));
        }
        world
    }

    fn below(&self, limit: u64) -> u64 {
        self.random.bits() % limit
    }

    fn chance(&self, percent: u64) -> bool {
        self.faults && self.below(100) < percent
    }

    fn newborn(&self, index: usize, life: usize) -> Replica {
        Replica {
            candidate: Candidate::new(hasty(&format!("replica{index}-{life}"))),
            tick_ahead: Duration::from_millis(self.below(10_000_000)),
            fast: u32::try_from(self.below(900)).unwrap(),
            wall_ahead: Duration::from_millis(self.below(10_000_000)),
            wall_stands: self.below(4) == 0,
            life,
            leads: false,
            cut_off_until: 0,
            frozen_until: 0,
        }
    }

    fn plan(&mut self, after: Millis, index: usize, what: What) {
        self.sequence += 1;
        let life = self.replicas[index].life;
        self.agenda.insert((self.now + after, self.sequence), (life, what));
    }

    /// Mostly quick, sometimes longer than any deadline.
    fn delay(&self) -> Millis {
        match self.faults.then(|| self.below(20)) {
            Some(0) => self.below(8_000),
            Some(1..=8) => self.below(2_000),
            _ => 1 + self.below(50),
        }
    }

    fn is_cut_off(&self, index: usize) -> bool {
        self.faults && self.now < self.replicas[index].cut_off_until
    }

    fn tick(&self, index: usize) -> Tick {
        let (real, replica) = (Duration::from_millis(self.now), &self.replicas[index]);
        Tick(real + real * replica.fast / 1_000_000 + replica.tick_ahead)
    }

    fn wall(&self, index: usize) -> Timestamp {
        let replica = &self.replicas[index];
        let passed = if replica.wall_stands { 0 } else { self.now };
        Timestamp::UNIX_EPOCH + replica.wall_ahead + Duration::from_millis(passed)
    }

    fn step(&mut self, index: usize, input: Input) {
        let moment =
            Moment { now: self.tick(index), wall: self.wall(index), fraction: self.random.fraction() };
        let Move { action, news } = self.replicas[index].candidate.step(input, moment);
        match news {
            Some(News::Leads) => {
                assert!(!self.replicas[index].leads, "leads twice");
                self.replicas[index].leads = true;
                self.leaders += 1;
            }
            Some(News::Lost(_)) => {
                assert!(self.replicas[index].leads, "lost what it did not have");
                self.replicas[index].leads = false;
            }
            None => {}
        }
        let claims = self.replicas[index].candidate.claim_until().is_some();
        assert_eq!(claims, self.replicas[index].leads, "the news and the claim disagree");
        let until = match &action {
            Action::Get { until, .. } | Action::Create { until, .. } | Action::Update { until, .. } => {
                if !self.chance(5) && !self.is_cut_off(index) {
                    let after = self.delay();
                    self.plan(after, index, What::Arrives(index, action.clone()));
                }
                *until
            }
            Action::Wait(until) => *until,
            Action::Stopped { .. } => return self.restart(index),
        };
        if self.chance(3) {
            self.replicas[index].cut_off_until = self.now + self.below(12_000);
        }
        if self.chance(3) {
            self.replicas[index].frozen_until = self.now + self.below(12_000);
        }
        let after = u64::try_from(until.since(moment.now).as_millis()).unwrap() + 1;
        self.plan(after, index, What::Wake(index));
    }

    fn restart(&mut self, index: usize) {
        self.replicas[index] = self.newborn(index, self.replicas[index].life + 1);
        let after = self.below(5_000);
        self.plan(after, index, What::Wake(index));
    }

    fn serve(&mut self, index: usize, action: &Action) {
        let unavailable = self.chance(5);
        let answer = match action {
            Action::Get { ticket, .. } => Input::Read(
                *ticket,
                match &self.lease {
                    _ if unavailable => Lookup::Unknown(Error::temporary("503")),
                    Some(lease) => Lookup::Present(Lease::decode(lease.clone()).unwrap()),
                    None => Lookup::Absent,
                },
            ),
            Action::Create { ticket, lease, .. } => {
                let free = self.lease.is_none();
                Input::Wrote(*ticket, self.store(index, lease, free, unavailable))
            }
            Action::Update { ticket, lease, .. } => {
                assert!(!lease.resource_version.is_empty(), "an unconditional replacement");
                let stored = self.lease.as_ref().map(|lease| lease["metadata"]["resourceVersion"].clone());
                let matches = stored == Some(json!(lease.resource_version));
                Input::Wrote(*ticket, self.store(index, lease, matches, unavailable))
            }
            Action::Wait(_) | Action::Stopped { .. } => return,
        };
        if !self.chance(5) {
            let after = self.delay();
            self.plan(after, index, What::Heard(index, answer));
        }
    }

    fn store(&mut self, writer: usize, lease: &Lease, fits: bool, unavailable: bool) -> Result<Lease> {
        if unavailable {
            return Err(Error::temporary("503"));
        }
        if !fits {
            return Err(Error::new(Category::Conflict, "409"));
        }
        self.version += 1;
        let mut object = lease.object().clone();
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        if let Some(old) = &self.lease
            && old["spec"]["holderIdentity"] != object["spec"]["holderIdentity"]
        {
            self.takeovers += 1;
        }
        self.lease = Some(object.clone());
        let stored = Lease::decode(object).unwrap();
        let seen = stored.record.in_whole_seconds();
        if self.onlooker.as_ref().is_none_or(|(known, _)| *known != seen) {
            self.onlooker = Some((seen, self.now));
        }
        for index in (0..self.replicas.len()).filter(|index| *index != writer) {
            if self.below(2) == 0 {
                let after = self.delay();
                self.plan(after, index, What::Heard(index, Input::Noticed(Some(stored.clone()))));
            }
        }
        Ok(stored)
    }

    fn claims(&self) -> Vec<usize> {
        let valid = |index: &usize| {
            self.replicas[*index].candidate.claim_until().is_some_and(|until| self.tick(*index) < until)
        };
        (0..self.replicas.len()).filter(valid).collect()
    }

    /// Whether the onlooker, whose clock runs fast, would take the lease now.
    fn looks_over(&self) -> bool {
        self.onlooker.as_ref().is_some_and(|(record, since)| {
            let passed = (self.now - since) * 1_000_900 / 1_000_000;
            passed >= u64::from(record.duration_seconds.unwrap_or(0)) * 1_000
        })
    }

    fn run(&mut self, until: Millis) {
        while let Some(entry) = self.agenda.first_entry() {
            if entry.key().0 > until {
                break;
            }
            let ((now, _), (life, what)) = entry.remove_entry();
            self.now = now;
            match what {
                // The server does not care who is alive.
                What::Arrives(index, action) => self.serve(index, &action),
                What::Heard(index, _) | What::Wake(index) if self.replicas[index].life != life => {}
                What::Heard(index, _) if self.is_cut_off(index) => {}
                What::Heard(index, _) | What::Wake(index) if self.now < self.replicas[index].frozen_until => {
                    let after = self.replicas[index].frozen_until - self.now;
                    self.plan(after, index, what);
                }
                What::Wake(index) if self.chance(1) => self.restart(index),
                What::Wake(index) if self.chance(1) => {
                    let release = self.below(4) > 0;
                    self.step(index, Input::Stop { release });
                }
                What::Wake(index) => self.step(index, Input::Wake),
                What::Heard(index, input) => self.step(index, input),
            }
            let claims = self.claims();
            assert!(claims.len() <= 1, "L9-117 seed {} at {now} ms: two may write: {claims:?}", self.seed);
            let safe = claims.is_empty() || !self.looks_over();
            assert!(
                safe,
                "L9-316 seed {} at {now} ms: another program may take over from {claims:?}",
                self.seed
            );
        }
        self.now = until;
    }
}

#[test]
fn never_do_two_replicas_hold_a_valid_claim() {
    let (mut leaders, mut takeovers) = (0, 0);
    for seed in 0..100 {
        let mut world = World::new(seed, if seed % 2 == 0 { 2 } else { 3 });
        world.run(200_000);
        leaders += world.leaders;
        takeovers += world.takeovers;
        // Once all is well again, somebody leads before the longest lease and pause are over, and stays.
        world.faults = false;
        world.run(220_000);
        let leader = world.claims();
        assert_eq!(leader.len(), 1, "seed {seed}: nobody leads");
        world.run(240_000);
        assert_eq!(world.claims(), leader, "seed {seed}: the leader changed for no reason");
    }
    assert!(leaders > 500 && takeovers > 500, "too quiet to prove anything: {leaders} {takeovers}");
}
