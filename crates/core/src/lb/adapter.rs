//! The object-safe side of [`Balancers`]: what the framework sees of a cloud whose types it does not know.

use std::{any::Any, fmt, sync::Arc, time::Duration};

use crate::{
    annotation::Table,
    call::Call,
    decide::{
        nodeset::Selector,
        service::ownership::{self, Ownership},
    },
    error::{Error, Result},
    lb::{
        Balancers, Decision, Desired, Effects, Fleet, Goal, LockKey, LockKind, Marked, Name, Notice, Permit,
        Refusal, Turn, TurnEnd, balancers::not_listed, drive, intended_name,
    },
    lookup::{Listing, Lookup},
    net::parse_ip,
    provider::Boxed,
    view::{NodeView, ServiceView},
};

/// A survey of any cloud, shared by all Services of a pass: its instances, and the listings of load balancers. Only the
/// provider that began it can read these.
#[derive(Clone)]
pub struct Survey {
    fleet: Arc<dyn Fleet>,
    listings: Arc<dyn Any + Send + Sync>,
}

impl fmt::Debug for Survey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Survey").finish_non_exhaustive()
    }
}

/// What holds for all load balancers of a cloud.
#[derive(Clone, Copy, Debug)]
pub struct Profile<'a> {
    /// [`Balancers::annotations`].
    pub annotations: &'a Table,
    /// [`Balancers::marks`].
    pub marks: &'a [&'static str],
    /// [`Balancers::settle_time`].
    pub settle_time: Duration,
    /// [`Balancers::needs_endpoints`].
    pub needs_endpoints: bool,
}

/// What one version of a Service asks of a cloud, before the cloud is looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// [`Balancers::name_for`].
    pub name: Name,
    /// [`Balancers::lock_keys`], with what a recorded intent names and what the status shows. Two Services with a key in
    /// common are never worked on at once, and each sees the other as a rival.
    pub keys: Vec<LockKey>,
    /// [`Balancers::selector`]; `None` also where it cannot be read, which the plan refuses.
    pub selector: Option<Selector>,
}

/// What would be said about a new Service by looking at it alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Review {
    /// [`LoadBalancers::screen`]: with any of these nothing is created.
    pub refused: Vec<Refusal>,
    /// What else people would be told.
    pub notices: Vec<Notice>,
}

/// The load balancers of one cloud, whichever it is. Every [`Balancers`] is one; providers write that.
pub trait LoadBalancers: Send + Sync {
    /// What holds for all of them.
    fn profile(&self) -> Profile<'_>;

    /// What a Service asks for. Pure.
    fn read(&self, service: &ServiceView, cluster: &str) -> Request;

    /// [`Balancers::accepts`]. Pure.
    fn accepts(&self, node: &NodeView, own: bool) -> bool;

    /// What is wrong with a Service that has no load balancer yet, as far as the Service alone can tell. Pure.
    ///
    /// With a refusal nothing is created, so nothing is written on the Service and the cloud is not asked either (law 8).
    fn screen(&self, want: &Desired) -> Vec<Refusal>;

    /// What would be said about a Service that has no load balancer yet. Pure.
    fn review(&self, want: &Desired) -> Review {
        Review { refused: self.screen(want), notices: Vec::new() }
    }

    /// [`Balancers::shows`].
    fn shows<'a>(&'a self, call: &'a Call, id: &'a str) -> Boxed<'a, Lookup<()>>;

    /// [`Balancers::marked`].
    fn marked<'a>(&'a self, _call: &'a Call, _cluster: &'a str) -> Boxed<'a, Result<Listing<Marked>>> {
        Box::pin(std::future::ready(Err(not_listed())))
    }

    /// [`Balancers::may_own`]. Pure. In doubt it may.
    fn may_own(&self, _service: &ServiceView, _cluster: &str, _marked: &Marked) -> bool {
        true
    }

    /// Begins a survey with the instances of `fleet`. Nothing is asked yet; an error is why nothing can be.
    fn survey(&self, fleet: &Arc<dyn Fleet>) -> Result<Survey>;

    /// Whose the load balancer is that was found for a Service; `Absent` where none was.
    fn owner<'a>(
        &'a self,
        call: &'a Call,
        survey: &'a Survey,
        want: &'a Desired,
    ) -> Boxed<'a, Lookup<Ownership>>;

    /// One turn of the loop for one Service: observe, and if what there is is this Service's, then decide,
    /// execute and fold until there is nothing more to do now. Dry [`Effects`] make it a dry run.
    fn turn<'a>(
        &'a self,
        call: &'a Call,
        survey: &'a Survey,
        want: &'a Desired,
        permit: Permit,
        effects: &'a dyn Effects,
    ) -> Boxed<'a, Turn>;
}

impl<B: Balancers> LoadBalancers for B {
    fn profile(&self) -> Profile<'_> {
        Profile {
            annotations: self.annotations(),
            marks: self.marks(),
            settle_time: self.settle_time(),
            needs_endpoints: self.needs_endpoints(),
        }
    }

    fn read(&self, service: &ServiceView, cluster: &str) -> Request {
        let mut keys = self.lock_keys(service, cluster);
        let intended = intended_name(service).map(|name| LockKey::new(LockKind::Name, name));
        let published = service.ingress.iter().filter_map(|entry| parse_ip(entry.ip.as_deref()?));
        let published = published.map(|ip| LockKey::new(LockKind::Published, ip.to_string()));
        for key in intended.into_iter().chain(published) {
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        let selector = self.selector(service).ok().flatten();
        Request { name: self.name_for(service, cluster), keys, selector }
    }

    fn accepts(&self, node: &NodeView, own: bool) -> bool {
        Balancers::accepts(self, node, own)
    }

    fn screen(&self, want: &Desired) -> Vec<Refusal> {
        self.decide(want, None).refused
    }

    fn review(&self, want: &Desired) -> Review {
        let Decision { refused, notices, .. } = self.decide(want, None);
        Review { refused, notices }
    }

    fn shows<'a>(&'a self, call: &'a Call, id: &'a str) -> Boxed<'a, Lookup<()>> {
        Box::pin(Balancers::shows(self, call, id))
    }

    fn marked<'a>(&'a self, call: &'a Call, cluster: &'a str) -> Boxed<'a, Result<Listing<Marked>>> {
        Box::pin(Balancers::marked(self, call, cluster))
    }

    fn may_own(&self, service: &ServiceView, cluster: &str, marked: &Marked) -> bool {
        Balancers::may_own(self, service, cluster, marked)
    }

    fn survey(&self, fleet: &Arc<dyn Fleet>) -> Result<Survey> {
        Ok(Survey { fleet: Arc::clone(fleet), listings: Arc::new(B::Survey::default()) })
    }

    fn owner<'a>(
        &'a self,
        call: &'a Call,
        survey: &'a Survey,
        want: &'a Desired,
    ) -> Boxed<'a, Lookup<Ownership>> {
        Box::pin(async move {
            let Survey { fleet, listings } = survey;
            let Some(listings) = listings.downcast_ref() else { return Lookup::Unknown(not_its_survey()) };
            let observed = self.observe(call, &**fleet, listings, want).await.known();
            Lookup::from(observed.map(|observed| Some(judge(self, want, &observed?)?.0)))
        })
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
            let Survey { fleet, listings } = survey;
            let Some(listings) = listings.downcast_ref() else { return Turn::unknown(not_its_survey()) };
            let observed = match self.observe(call, &**fleet, listings, want).await.known() {
                Ok(observed) => observed,
                Err(why) => return Turn::unknown(why),
            };
            match observed.as_ref().and_then(|observed| judge(self, want, observed)?.1) {
                Some(refusal) => Turn { refused: vec![refusal], ..Turn::new().end(left_alone(want.goal)) },
                None => drive(self, call, effects, want, observed, permit).await,
            }
        })
    }
}

fn not_its_survey() -> Error {
    Error::permanent("internal error: the survey is of another cloud")
}

/// Whose the observed load balancer is, and why nothing is done about it where it is not this Service's.
fn judge<B: Balancers>(
    balancers: &B,
    want: &Desired,
    observed: &B::Observed,
) -> Option<(Ownership, Option<Refusal>)> {
    let Desired { service, cluster, goal, .. } = want;
    let found = balancers.identity(observed)?;
    let keys = balancers.lock_keys(service, cluster);
    let verdict = ownership::judge(service, &keys, &balancers.name_for(service, cluster), &found);
    let refusal = ownership::refusal(&verdict, &found, *goal, balancers.marks().first().copied());
    Some((verdict, refusal))
}

/// How a turn ends where what is there is not this Service's: nothing is created beside it, and nobody has to wait for
/// it to go.
const fn left_alone(goal: Goal) -> TurnEnd {
    match goal {
        Goal::Present => TurnEnd::Refused,
        Goal::Gone => TurnEnd::Converged,
    }
}
