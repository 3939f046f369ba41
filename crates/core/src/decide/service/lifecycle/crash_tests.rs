//! Whole lives against a cloud that forgets to answer and a program that dies between any two calls (law 6).

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{
    decide::service::{
        FINALIZER,
        change::{Written, remember},
        patch,
        testing::{MARK, apply, assignments},
        trigger::{Trigger, WatchEvent, trigger},
    },
    lb::{INTENT_ANNOTATION, Intents, Publish, intended_name},
    time::Tick,
    view::Ingress,
};

const SETTLE: Duration = Duration::from_secs(60);
const START: &str = "2026-03-02T04:05:00Z";

/// What goes wrong during one pass.
#[derive(Clone, Debug, Default)]
struct Luck {
    /// The pass sees a version that is so many behind the newest.
    stale: usize,
    /// So many calls are made before the program dies.
    calls: Option<u8>,
    /// The cloud cannot be asked.
    blind: bool,
    /// The cloud refuses to create or delete.
    refuse: bool,
    /// The answer to a creation is lost.
    lost: bool,
    /// How long a new load balancer takes to show up under its name.
    lag: i64,
    /// How long a creation takes on its way to the cloud.
    slow: i64,
    /// How far the clock of the program that starts after this one died is ahead.
    ahead: i64,
}

#[derive(Clone, Debug)]
enum Op {
    Pass(Luck),
    Tick(i64),
    Type(bool),
    /// Somebody edits the name that the load balancer should have.
    Rename(u8),
    Delete,
}

struct Balancer {
    id: u64,
    name: String,
    shows_at: Timestamp,
}

struct World {
    now: Timestamp,
    /// How far the program's clock is ahead of real time.
    ahead: i64,
    intents: Intents,
    object: Option<Value>,
    history: Vec<Value>,
    version: u64,
    cloud: Vec<Balancer>,
    created: u64,
    writes: u64,
    written: Written,
    calls_left: Option<u8>,
}

const NAME: &str = "cloud.example/name";

/// The name that the Service asks for.
fn name(view: &ServiceView) -> &str {
    view.annotations.get(NAME).map_or("lb", String::as_str)
}

/// The program died, or a write did not go through.
struct Dead;

impl World {
    fn new() -> Self {
        let object = json!({"metadata": {"name": "web", "uid": "u-1", "resourceVersion": "1"},
                            "spec": {"type": "LoadBalancer"}});
        Self {
            now: START.parse().unwrap(),
            ahead: 0,
            intents: Intents::default(),
            object: Some(object),
            history: vec![],
            version: 1,
            cloud: vec![],
            created: 0,
            writes: 0,
            written: Written::new(),
            calls_left: None,
        }
    }

    fn view(&self) -> ServiceView {
        ServiceView::from_json(self.object.as_ref().unwrap()).unwrap()
    }

    /// Monotonic time.
    fn tick(&self) -> Tick {
        let start: Timestamp = START.parse().unwrap();
        Tick(self.now.duration_since(start).unsigned_abs())
    }

    fn intent(&mut self, view: &ServiceView) -> Intent {
        let now = self.tick();
        self.intents.judge(view, now, SETTLE)
    }

    /// What the program takes for the time of day.
    fn wall(&self) -> Timestamp {
        self.now + SignedDuration::from_secs(self.ahead)
    }

    /// The program starts anew: it remembers nothing, and its clock is another one.
    fn restart(&mut self, ahead: i64) {
        self.ahead = ahead;
        self.intents = Intents::default();
    }

    /// One call to anybody; the last one may be the end.
    fn call(&mut self) -> Result<(), Dead> {
        match &mut self.calls_left {
            Some(0) => Err(Dead),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Changes the object; one that goes with nothing to hold it is gone.
    fn edit(&mut self, change: impl FnOnce(&mut Value)) {
        let Some(object) = &mut self.object else { return };
        self.history.push(object.clone());
        change(object);
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        let free = object["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty);
        if free && object["metadata"]["deletionTimestamp"].is_string() {
            self.object = None;
            assert!(self.cloud.is_empty(), "the Service went and left a load balancer");
        }
    }

    /// A patch, with the checks of the API server.
    fn patch(&mut self, body: Option<Value>) -> Result<(), Dead> {
        let Some(body) = body else { return Ok(()) };
        self.call()?;
        let Some(object) = &self.object else { return Err(Dead) };
        let pinned = &body["metadata"]["resourceVersion"];
        let stale = pinned.is_string() && *pinned != object["metadata"]["resourceVersion"];
        let late =
            body["metadata"]["finalizers"].is_array() && object["metadata"]["deletionTimestamp"].is_string();
        if stale || late {
            return Err(Dead);
        }
        self.writes += 1;
        let old = self.view();
        remember(&mut self.written, &body);
        self.edit(|object| apply(object, &body));
        if self.object.is_some() {
            let (assignments, new) = (assignments(), self.view());
            let event = WatchEvent::Updated { old: &old, new: &new };
            let why = trigger(&assignments, event, &assignments.of(&new), &self.written);
            assert!(matches!(why, None | Some(Trigger::Cleanup)), "L4-112 our own write is work: {why:?}");
        }
        Ok(())
    }

    /// The ids that a lookup finds: by name what shows up already, by recorded id at once.
    fn found(&self, view: &ServiceView) -> Vec<u64> {
        let recorded = view.annotations.get(MARK);
        let called = |lb: &Balancer| lb.name == name(view) || intended_name(view) == Some(&lb.name);
        let shows =
            |lb: &&Balancer| (lb.shows_at <= self.now && called(lb)) || recorded == Some(&lb.id.to_string());
        self.cloud.iter().filter(shows).map(|lb| lb.id).collect()
    }

    /// A turn of the loop, with the toy's own plan: one load balancer, its id, its address.
    fn turn(&mut self, view: &ServiceView, goal: Goal, permit: Permit, luck: &Luck) -> Result<Turn, Dead> {
        let turn = |end, creation| Turn {
            end,
            done: vec![],
            denied: false,
            creation,
            refused: vec![],
            notices: vec![],
        };
        let error = || Error::temporary("bad luck");
        self.call()?;
        if luck.blind {
            return Ok(turn(TurnEnd::Unknown(error()), Creation::Nothing));
        }
        let found = self.found(view);
        let (id, creation) = match (goal, found.first()) {
            (Goal::Gone, None) => return Ok(turn(TurnEnd::Converged, Creation::Nothing)),
            (Goal::Gone, Some(_)) => {
                self.call()?;
                if luck.refuse {
                    return Ok(turn(TurnEnd::Failed(error()), Creation::Nothing));
                }
                self.cloud.retain(|lb| !found.contains(&lb.id));
                return Ok(turn(TurnEnd::Converged, Creation::Nothing));
            }
            (Goal::Present, Some(id)) => (*id, Creation::Nothing),
            (Goal::Present, None)
                if permit == Permit::NoCreate || intended_name(view) != Some(name(view)) =>
            {
                return Ok(turn(TurnEnd::NeedsIntent, Creation::Nothing));
            }
            (Goal::Present, None) => {
                self.call()?;
                if luck.refuse {
                    return Ok(turn(TurnEnd::Failed(error()), Creation::Nothing));
                }
                self.now += SignedDuration::from_secs(luck.slow);
                self.created += 1;
                let shows_at = self.now + SignedDuration::from_secs(luck.lag);
                self.cloud.push(Balancer { id: self.created, name: name(view).to_owned(), shows_at });
                assert_eq!(self.cloud.len(), 1, "a second load balancer");
                if luck.lost {
                    return Ok(turn(TurnEnd::Unknown(error()), Creation::Unsure));
                }
                (self.created, Creation::Known)
            }
        };
        let address = Ingress { ip: Some(format!("192.0.2.{id}")), ..Ingress::default() };
        let publish = Publish {
            ingress: Some(vec![address]),
            annotations: [(MARK.to_owned(), id.to_string())].into(),
            ..Publish::default()
        };
        self.patch(patch::record(view, &publish, true))?;
        // Renamed only after its id is on record, as the driver does it: whoever dies in between finds it by the id.
        if self.cloud.iter().any(|lb| lb.id == id && lb.name != name(view)) {
            self.call()?;
            self.cloud.iter_mut().filter(|lb| lb.id == id).for_each(|lb| name(view).clone_into(&mut lb.name));
        }
        Ok(turn(TurnEnd::Converged, creation))
    }

    /// One pass of the shell.
    fn pass(&mut self, luck: &Luck) -> Result<(), Dead> {
        self.calls_left = luck.calls;
        let assignments = assignments();
        let known = self.history.iter().chain(&self.object).rev().nth(luck.stale).or(self.object.as_ref());
        let Some(known) = known else { return Ok(()) };
        let mut view = ServiceView::from_json(known).unwrap();
        let opening = open(&view, &assignments.of(&view), self.intent(&view));
        let Some((provider, goal, mut permit)) = opening.turn() else { return Ok(()) };
        if let Opening::Prepare { intent, .. } = opening {
            let intent = intent.then(|| (self.wall(), name(&view)));
            self.patch(patch::prepare(&assignments, &view, provider, intent))?;
            view = self.view();
        }
        loop {
            let turn = self.turn(&view, goal, permit, luck);
            if permit == Permit::Create && turn.as_ref().map_or(true, |t| t.creation != Creation::Nothing) {
                let now = self.tick();
                self.intents.touched(&view.key(), now);
            }
            let turn = turn?;
            if self.object.is_none() {
                return Err(Dead);
            }
            let newest = if luck.stale > 0 { view.clone() } else { self.view() };
            let clear = match close(goal, permit, &turn, self.intent(&newest)) {
                Closing::RecordIntent => {
                    self.patch(patch::prepare(
                        &assignments,
                        &newest,
                        provider,
                        Some((self.wall(), name(&newest))),
                    ))?;
                    view = self.view();
                    permit = Permit::Create;
                    continue;
                }
                Closing::Release => {
                    return self.patch(patch::release(&newest, &assignments.of(&newest), []));
                }
                Closing::Hold { .. } => false,
                Closing::TurnEnd { clear_intent }
                | Closing::Wait { clear_intent, .. }
                | Closing::Retry { clear_intent, .. } => clear_intent,
            };
            return self.patch(patch::record(&newest, &Publish::default(), clear));
        }
    }

    fn step(&mut self, op: &Op) {
        match op {
            Op::Pass(luck) => {
                let ended = self.pass(luck);
                if ended.is_err() && self.calls_left == Some(0) {
                    self.restart(luck.ahead);
                }
            }
            Op::Tick(seconds) => self.now += SignedDuration::from_secs(*seconds),
            Op::Type(wanted) => {
                let text = if *wanted { "LoadBalancer" } else { "ClusterIP" };
                self.edit(|object| object["spec"]["type"] = text.into());
            }
            Op::Rename(number) => {
                self.edit(|object| object["metadata"]["annotations"][NAME] = format!("lb-{number}").into());
            }
            Op::Delete => {
                self.edit(|object| object["metadata"]["deletionTimestamp"] = "2026-03-02T04:05:00Z".into());
            }
        }
    }
}

fn luck() -> impl Strategy<Value = Luck> {
    let rare = || prop::bool::weighted(0.25);
    (
        prop_oneof![3 => Just(0), 1 => 1_usize..5],
        prop::option::of(0_u8..6),
        rare(),
        rare(),
        any::<bool>(),
        0_i64..60,
        prop_oneof![3 => Just(0), 1 => 0_i64..90],
        -600_i64..600,
    )
        .prop_map(|(stale, calls, blind, refuse, lost, lag, slow, ahead)| Luck {
            stale,
            calls,
            blind,
            refuse,
            lost,
            lag,
            slow,
            ahead,
        })
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => luck().prop_map(Op::Pass),
        3 => (1_i64..40).prop_map(Op::Tick),
        2 => any::<bool>().prop_map(Op::Type),
        2 => (0_u8..3).prop_map(Op::Rename),
        1 => Just(Op::Delete),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn nothing_is_leaked_doubled_or_lost(ops in prop::collection::vec(op(), 0..24)) {
        let mut world = World::new();
        for op in &ops {
            world.step(op);
        }
        for _ in 0..4 {
            world.step(&Op::Pass(Luck::default()));
            world.step(&Op::Tick(61));
        }
        if world.object.is_none() {
            prop_assert!(world.cloud.is_empty(), "L6-122 leaked");
        } else {
            let view = world.view();
            let wanted = view.service_type == crate::view::ServiceType::LoadBalancer && !view.deleting;
            prop_assert_eq!(world.cloud.len(), usize::from(wanted), "L6-123 lost or leaked");
            prop_assert_eq!(view.finalizers.iter().any(|name| name == FINALIZER), wanted, "L6-124");
            prop_assert_eq!(view.ingress.len(), usize::from(wanted), "the address is published or cleared");
            prop_assert!(!view.annotations.contains_key(INTENT_ANNOTATION), "L6-125 the intent is over");
        }
        let writes = world.writes;
        world.step(&Op::Pass(Luck::default()));
        prop_assert_eq!(world.writes, writes, "L4-111 a second pass writes nothing");
    }
}

#[test]
fn a_quiet_life_takes_four_writes() {
    let mut world = World::new();
    world.step(&Op::Pass(Luck::default()));
    assert_eq!(
        (world.writes, world.cloud.len()),
        (2, 1),
        "FW-146 the finalizer with the intent, then id and address"
    );
    world.step(&Op::Pass(Luck::default()));
    assert_eq!(world.writes, 2, "FW-150 nothing is left to write");
    world.step(&Op::Type(false));
    world.step(&Op::Pass(Luck::default()));
    assert_eq!((world.writes, world.cloud.len()), (3, 0), "FW-148 finalizer and address go in one write");
    let view = world.view();
    assert!(view.finalizers.is_empty() && view.ingress.is_empty(), "FW-148");
    world.step(&Op::Type(true));
    world.step(&Op::Pass(Luck::default()));
    world.step(&Op::Delete);
    assert!(world.object.is_some(), "the finalizer holds it");
    world.step(&Op::Pass(Luck::default()));
    assert!(world.object.is_none() && world.cloud.is_empty(), "FW-149");
}

#[test]
fn what_was_created_under_a_name_that_was_edited_since_is_found() {
    let lost = Luck { lost: true, lag: 20, ..Luck::default() };
    for delete in [false, true] {
        let mut world = World::new();
        world.step(&Op::Pass(lost.clone()));
        assert_eq!(world.cloud.len(), 1);
        world.step(&Op::Rename(1));
        if delete {
            world.step(&Op::Delete);
        }
        for _ in 0..4 {
            world.step(&Op::Pass(Luck::default()));
            world.step(&Op::Tick(30));
        }
        assert_eq!(world.created, 1, "L6-306 it is found, not made a second time");
        if delete {
            assert!(world.object.is_none() && world.cloud.is_empty(), "L6-307 nothing is left");
        } else {
            assert_eq!(world.cloud.iter().map(|lb| lb.name.as_str()).collect::<Vec<_>>(), ["lb-1"], "L6-306");
        }
    }
}
