//! Programs that are broken on purpose, to show that the harness notices. What is shipped has no such switch: the same
//! program gets a provider, a clock or a wire that does what a careless one would.

use std::sync::{Arc, Mutex};

use cloudberth_core::{
    Call, Clock, Instance, Instances, Listing, LoadBalancers, Lookup, NodeView, Provider, ProviderId, Result,
    Routes, ServiceView, Zones,
    decide::service::ownership::Ownership,
    lb::{
        Desired, Effects, Fleet, Goal, IntentMark, Permit, Profile, Publish, Refusal, Request, StepReport,
        Survey, Turn, TurnEnd,
    },
    provider::Boxed,
};
use cloudberth_fake::FakeProvider;

use crate::{lock, world::Steps};

/// Which law is broken, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// Laws 1 and 2: what is not known is taken for absent.
    UnknownIsAbsent,
    /// Law 2: patches of nodes do not say which node they are meant for.
    NoNodeUid,
    /// Law 4: it writes although nothing differs.
    SecondPassWrites,
    /// Law 5: what cannot be observed is torn down.
    DeletesOnError,
    /// Law 6: the intent is lost on the way to the API server.
    NoIntent,
    /// Law 7: each listing also asks about every instance.
    AsksAboutEach,
    /// Law 9: a replica that is told to end lets go of the Lease when its grace is over, whatever is still under way.
    LetsGo,
    /// Law 9: the clock of one replica runs at half the speed, so that its claim lasts twice as long.
    SlowClock,
    /// The plan forgets the nodes.
    OtherPlan,
}

impl Broken {
    const ALL: [(&str, Self); 9] = [
        ("2", Self::UnknownIsAbsent),
        ("2-uid", Self::NoNodeUid),
        ("4", Self::SecondPassWrites),
        ("5", Self::DeletesOnError),
        ("6", Self::NoIntent),
        ("7", Self::AsksAboutEach),
        ("9", Self::SlowClock),
        ("9-release", Self::LetsGo),
        ("plan", Self::OtherPlan),
    ];

    /// The program of this name: the number of the law that it breaks, and how, where there are several ways; or `plan`.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, broken)| broken)
    }

    /// All names, in words.
    pub fn names() -> String {
        Self::ALL.map(|(name, _)| name).join(", ")
    }

    /// Whether this is about the law that it breaks. What else a careless program does wrong shows nothing.
    pub(crate) fn explains(self, wrong: &str) -> bool {
        let name = Self::ALL.into_iter().find(|(_, broken)| *broken == self).map(|(name, _)| name);
        let law = name.and_then(|name| name.split('-').next());
        law.is_some_and(|law| wrong.trim_start_matches("law ").starts_with(&format!("{law}:")))
    }
}

/// A cloud as a program sees it that may be careless. It notes the steps that are sent.
pub(crate) struct Watched {
    pub(crate) inner: FakeProvider,
    pub(crate) broken: Option<Broken>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) steps: Arc<Mutex<Steps>>,
}

impl Watched {
    fn is(&self, broken: Broken) -> bool {
        self.broken == Some(broken)
    }

    fn balancers(&self) -> &dyn LoadBalancers {
        self.inner.balancers()
    }
}

impl Provider for Watched {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn scheme(&self) -> &str {
        self.inner.scheme()
    }

    fn instances(&self) -> Option<&dyn Instances> {
        Some(self)
    }

    fn load_balancers(&self) -> Option<&dyn LoadBalancers> {
        Some(self)
    }

    fn routes(&self) -> Option<&dyn Routes> {
        self.inner.routes()
    }

    fn zones(&self) -> Option<&dyn Zones> {
        self.inner.zones()
    }
}

impl Instances for Watched {
    fn list<'a>(&'a self, call: &'a Call) -> Boxed<'a, Result<Listing<Instance>>> {
        Box::pin(async move {
            let listing = Instances::list(&self.inner, call).await;
            if self.is(Broken::UnknownIsAbsent) {
                return Ok(Listing::complete(listing.map(|all| all.items).unwrap_or_default()));
            }
            if self.is(Broken::AsksAboutEach) {
                for instance in listing.iter().flat_map(|all| &all.items) {
                    drop(self.inner.get(call, &instance.id).await);
                }
            }
            listing
        })
    }

    fn get<'a>(&'a self, call: &'a Call, id: &'a ProviderId) -> Boxed<'a, Lookup<Instance>> {
        Box::pin(async move {
            match self.inner.get(call, id).await {
                Lookup::Unknown(_) if self.is(Broken::UnknownIsAbsent) => Lookup::Absent,
                answer => answer,
            }
        })
    }
}

impl LoadBalancers for Watched {
    fn profile(&self) -> Profile<'_> {
        self.balancers().profile()
    }

    fn read(&self, service: &ServiceView, cluster: &str) -> Request {
        self.balancers().read(service, cluster)
    }

    fn accepts(&self, node: &NodeView, own: bool) -> bool {
        self.balancers().accepts(node, own)
    }

    fn screen(&self, want: &Desired) -> Vec<Refusal> {
        self.balancers().screen(want)
    }

    fn shows<'a>(&'a self, call: &'a Call, id: &'a str) -> Boxed<'a, Lookup<()>> {
        if self.is(Broken::UnknownIsAbsent) {
            return Box::pin(std::future::ready(Lookup::Present(())));
        }
        self.balancers().shows(call, id)
    }

    fn survey(&self, fleet: &Arc<dyn Fleet>) -> Result<Survey> {
        self.balancers().survey(fleet)
    }

    fn owner<'a>(
        &'a self,
        call: &'a Call,
        survey: &'a Survey,
        want: &'a Desired,
    ) -> Boxed<'a, Lookup<Ownership>> {
        self.balancers().owner(call, survey, want)
    }

    fn turn<'a>(
        &'a self,
        call: &'a Call,
        survey: &'a Survey,
        want: &'a Desired,
        permit: Permit,
        effects: &'a dyn Effects,
    ) -> Boxed<'a, Turn> {
        Box::pin(async move {
            let inner = self.balancers();
            if effects.is_dry() {
                let backends = if self.is(Broken::OtherPlan) { Vec::new() } else { want.backends.clone() };
                let want = Desired { backends, ..want.clone() };
                return inner.turn(call, survey, &want, permit, effects).await;
            }
            let noting = Noting { effects, service: want.service.key().to_string(), steps: &self.steps };
            let turn = inner.turn(call, survey, want, permit, &noting).await;
            if self.is(Broken::SecondPassWrites)
                && turn.end == TurnEnd::Converged
                && want.goal == Goal::Present
            {
                let when = self.clock.now().0.as_nanos().to_string();
                let annotations = [("fake.cloudberth.dev/looked-at".to_owned(), when)].into();
                let publish = Publish { annotations, ..Publish::default() };
                // A careless program does not look at the answer either.
                let _ = effects.record(&publish, IntentMark::Keep).await;
            }
            if self.is(Broken::DeletesOnError) && matches!(turn.end, TurnEnd::Unknown(_) | TurnEnd::Failed(_))
            {
                let gone = Desired { goal: Goal::Gone, ..want.clone() };
                drop(inner.turn(call, survey, &gone, Permit::NoCreate, effects).await);
            }
            turn
        })
    }
}

/// Notes each step before it goes on.
struct Noting<'a> {
    effects: &'a dyn Effects,
    service: String,
    steps: &'a Mutex<Steps>,
}

impl Effects for Noting<'_> {
    fn record<'a>(&'a self, publish: &'a Publish, intent: IntentMark) -> Boxed<'a, Result<()>> {
        self.effects.record(publish, intent)
    }

    fn step(&self, report: StepReport) {
        lock(self.steps).entry(self.service.clone()).or_default().push(report.label.clone());
        self.effects.step(report);
    }
}
