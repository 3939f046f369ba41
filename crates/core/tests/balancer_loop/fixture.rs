//! A cloud that can lose answers, and a shell that does what the service controller does around the loop.

use std::{
    collections::BTreeMap,
    pin::pin,
    sync::{Arc, Mutex},
    task::{Context, Poll, Waker},
};

use cloudberth_core::{
    Call, Error, Instance, Lookup, NodeView, ProviderId, Result, ServiceView, Tick,
    annotation::Table,
    call::Unguarded,
    lb::{
        Backend, Balancers, Claims, Creation, Desired, Effects, Fleet, Goal, IntentMark, Outcome, Permit,
        Publish, Rival, SharedInstances, StepReport, Turn, TurnEnd, drive,
    },
    provider::{Boxed, LoadBalancers},
    view::ServicePort,
};

/// Runs a future of the toys, which never really wait.
pub fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("a toy never waits"),
    }
}

pub fn call() -> Call {
    Call::new(Tick::from_secs(60), Arc::new(Unguarded))
}

/// A cloud whose instances no toy asks for.
struct NoFleet;

impl Fleet for NoFleet {
    fn listing(&self) -> Boxed<'_, SharedInstances> {
        panic!("no toy lists instances")
    }

    fn ask<'a>(&'a self, _: &'a Call, id: &'a ProviderId) -> Boxed<'a, Lookup<Instance>> {
        panic!("no toy asks about {id}")
    }
}

pub fn no_fleet() -> Arc<dyn Fleet> {
    Arc::new(NoFleet)
}

pub fn no_annotations() -> &'static Table {
    static NONE: Table = Table::new(&[]);
    &NONE
}

/// What happens to one mutation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Refused: it did not take effect.
    Refused,
    /// It took effect and the answer was lost.
    AnswerLost,
    /// It did not take effect and nobody knows.
    RequestLost,
    /// The program dies after it took effect; a new one starts from what is written down.
    Crash,
}

/// The part of a toy cloud that all shapes share: faults, a count of mutations and a supply of ids.
#[derive(Debug, Default)]
pub struct Wire {
    pub mutations: usize,
    pub faults: BTreeMap<usize, Fault>,
    pub crashed: bool,
    ids: usize,
}

impl Wire {
    pub fn id(&mut self, kind: &str) -> String {
        self.ids += 1;
        format!("{kind}-{}", self.ids)
    }

    /// Sends one mutation through the faults. `apply` makes it take effect.
    pub fn send<R>(&mut self, apply: impl FnOnce(&mut Self) -> Result<R>) -> Outcome<R> {
        let number = self.mutations;
        self.mutations += 1;
        let lost = || Outcome::Unknown(Error::temporary("connection closed before the answer"));
        match self.faults.remove(&number) {
            Some(Fault::Refused) => Outcome::Failed(Error::temporary("503")),
            Some(Fault::RequestLost) => lost(),
            fault => match (apply(self), fault) {
                (Err(error), _) => Outcome::Failed(error),
                (Ok(_), Some(Fault::Crash)) => {
                    self.crashed = true;
                    lost()
                }
                (Ok(_), Some(_)) => lost(),
                (Ok(answer), None) => Outcome::Done(answer),
            },
        }
    }
}

/// A toy that the fixture can look into.
pub trait Toy: Balancers + Sized {
    fn empty() -> Self;
    fn wire(&self) -> &Mutex<Wire>;
    /// Lets the cloud finish what it is busy with.
    fn settle(&self);
    /// Everything that exists, in words without ids, sorted: equal worlds have equal descriptions.
    fn describe(&self) -> Vec<String>;
}

/// What is written on the Service.
#[derive(Default)]
pub struct ServiceLog {
    pub intent: Mutex<bool>,
    pub published: Mutex<Option<Publish>>,
    pub steps: Mutex<Vec<StepReport>>,
    pub fail_records: Mutex<usize>,
}

impl Effects for ServiceLog {
    fn record<'a>(&'a self, publish: &'a Publish, intent: IntentMark) -> Boxed<'a, Result<()>> {
        Box::pin(async move {
            let mut left = self.fail_records.lock().unwrap();
            if *left > 0 {
                *left -= 1;
                return Err(Error::temporary("the API server is away"));
            }
            *self.published.lock().unwrap() = Some(publish.clone());
            if intent == IntentMark::Clear {
                *self.intent.lock().unwrap() = false;
            }
            Ok(())
        })
    }

    fn step(&self, report: StepReport) {
        self.steps.lock().unwrap().push(report);
    }
}

/// What a dry run would have published last.
#[derive(Default)]
pub struct Dry(Mutex<Option<Publish>>);

impl Effects for Dry {
    fn is_dry(&self) -> bool {
        true
    }

    fn record<'a>(&'a self, publish: &'a Publish, _: IntentMark) -> Boxed<'a, Result<()>> {
        *self.0.lock().unwrap() = Some(publish.clone());
        Box::pin(async { Ok(()) })
    }
}

/// What a turn would do about what was observed, and what would be published in the end.
pub fn dry_run<B: Balancers>(
    toy: &B,
    want: &Desired,
    observed: Option<B::Observed>,
) -> (Turn, Option<Publish>) {
    let dry = Dry::default();
    let turn = now(drive(toy, &call(), &dry, want, observed, Permit::Create));
    (turn, dry.0.into_inner().unwrap())
}

/// One turn from a fresh survey, as the service controller takes it.
pub fn turn<T: Toy>(toy: &T, want: &Desired, log: &ServiceLog, permit: Permit) -> Turn {
    let survey = LoadBalancers::survey(toy, &no_fleet()).unwrap();
    now(toy.turn(&call(), &survey, want, permit, log))
}

/// Turns until the Service rests, recording an intent where one is needed. Panics if it takes for ever.
pub fn converge<T: Toy>(toy: &T, want: &Desired, log: &ServiceLog) -> TurnEnd {
    for _ in 0..50 {
        let mut account = turn(toy, want, log, Permit::NoCreate);
        if account.end == TurnEnd::NeedsIntent {
            *log.intent.lock().unwrap() = true;
            account = turn(toy, want, log, Permit::Create);
        }
        toy.wire().lock().unwrap().crashed = false;
        match account.end {
            TurnEnd::Converged | TurnEnd::Refused => return account.end,
            // The settle time passes: whatever was under way shows by now.
            TurnEnd::Wait { .. } | TurnEnd::Unknown(_) | TurnEnd::Failed(_) => toy.settle(),
            TurnEnd::NeedsIntent => panic!("the intent is recorded"),
        }
        assert!(
            account.creation != Creation::Unsure || *log.intent.lock().unwrap(),
            "a lost creation keeps its mark"
        );
    }
    panic!("{:?} does not come to rest: {:?}", want.service.key(), toy.describe());
}

/// A Service called `web` with these ports, on these nodes.
pub fn want(ports: &[i64], nodes: &[&str]) -> Desired {
    let port = |port: &i64| ServicePort { port: *port, node_port: 30_000 + *port, ..ServicePort::default() };
    let node = |name: &&str| Backend {
        node: Arc::new(NodeView {
            name: (*name).to_owned(),
            provider_id: Some(format!("toy://{name}")),
            ..NodeView::default()
        }),
        local_endpoint: None,
    };
    let service = ServiceView {
        namespace: "default".into(),
        name: "web".into(),
        uid: "u-1".into(),
        ports: ports.iter().map(port).collect(),
        ..ServiceView::default()
    };
    Desired {
        service: Arc::new(service),
        cluster: "kubernetes".into(),
        goal: Goal::Present,
        backends: nodes.iter().map(node).collect(),
        rivals: Vec::new(),
        nodes: Vec::new(),
        claims: Claims::default(),
    }
}

pub fn annotated(mut want: Desired, key: &str, value: &str) -> Desired {
    Arc::make_mut(&mut want.service).annotations.insert(key.into(), value.into());
    want
}

pub fn gone(mut want: Desired) -> Desired {
    want.goal = Goal::Gone;
    want
}

pub fn contested(mut want: Desired, rival: Rival) -> Desired {
    want.rivals.push(rival);
    want
}
