//! What a provider writes to have load balancers.

use std::time::Duration;

use crate::{
    annotation,
    call::Call,
    decide::nodeset::Selector,
    error::{Error, Result},
    lb::{Decision, Desired, Fleet, Identity, LockKey, LockKind, Name},
    lookup::{Listing, Lookup},
    provider_id::ProviderId,
    view::{NodeView, ServiceView},
};

pub(super) fn not_listed() -> Error {
    Error::permanent("this cloud cannot list what has our mark")
}

/// What became of a mutation that was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Outcome<R> {
    /// It took effect, and this is the answer.
    Done(R),
    /// It was to remove something that the cloud says is not there. What was just seen there may have been removed by
    /// somebody else, or another account may have answered: nothing is let go of because of it without a second look.
    NotThere,
    /// It certainly did not take effect, because the cloud refuses a part of it that another decision can leave out. What
    /// it said is folded in like an answer, and the turn goes on from there.
    Refused {
        /// What was refused, for [`Balancers::fold`].
        answer: R,
        /// The same for people.
        why: Error,
    },
    /// It certainly did not take effect.
    Failed(Error),
    /// It may have taken effect: the answer was lost, cut, or came from something in between.
    Unknown(Error),
}

impl<R> Outcome<R> {
    /// The same outcome with another answer.
    pub fn map<T>(self, f: impl FnOnce(R) -> T) -> Outcome<T> {
        match self {
            Self::Done(answer) => Outcome::Done(f(answer)),
            Self::NotThere => Outcome::NotThere,
            Self::Refused { answer, why } => Outcome::Refused { answer: f(answer), why },
            Self::Failed(why) => Outcome::Failed(why),
            Self::Unknown(why) => Outcome::Unknown(why),
        }
    }
}

/// A load balancer with our mark, from a listing of all that the credential shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marked {
    /// Its id, in the form of [`LockKind::Id`](crate::lb::LockKind::Id).
    pub id: String,
    /// Its name.
    pub name: String,
    /// The Service that it was made for, as far as the mark tells. A turn for it finds the load balancer and proves it to be
    /// its own.
    pub made_for: Box<ServiceView>,
    /// The instances behind it, as far as the listing shows them.
    pub instances: Vec<ProviderId>,
}

/// The load balancers of one cloud: pure functions, and four that talk.
///
/// # Laws of the pure part
/// - [`decide`](Self::decide) at rest decides nothing: the decision on what `Converged` was said about is `Converged`.
/// - decide, [`assume`](Self::assume), [`fold`](Self::fold), again, comes to rest.
/// - Any prefix of the steps followed by a fresh observation comes to the same end.
pub trait Balancers: Send + Sync {
    /// The listings that serve all Services of a pass. A new one is empty: each listing is fetched when the first Service
    /// needs it, as `cloudberth_http::LazyListing` does.
    type Survey: Default + Send + Sync + 'static;
    /// What there is for one Service: the load balancer, its parts, and whatever the decision needs beside them.
    type Observed: Clone + Send + Sync;
    /// One mutation.
    type Action: Clone + Send + Sync;
    /// What the cloud answers to one, ids included.
    type Answer: Send + Sync;

    /// The annotations that it reads and writes.
    fn annotations(&self) -> &annotation::Table;

    /// The annotations whose value is the id of one of its load balancers, those of a replaced program included.
    fn marks(&self) -> &[&'static str] {
        &[]
    }

    /// Whether the load balancer with this id, which a [mark](Self::marks) names, is visible with our credential. Where
    /// the cloud is not asked it is `Unknown`.
    fn shows(&self, _call: &Call, id: &str) -> impl Future<Output = Lookup<()>> + Send {
        let why = format!("this cloud does not look up load balancer {id:?} by its id");
        std::future::ready(Lookup::Unknown(Error::permanent(why)))
    }

    /// Every load balancer with our mark and the cluster's name, or one that cannot be told from such: what is left over is
    /// found among these. One that cannot be read makes the listing short.
    fn marked(&self, _call: &Call, _cluster: &str) -> impl Future<Output = Result<Listing<Marked>>> + Send {
        std::future::ready(Err(not_listed()))
    }

    /// Whether a Service may have a claim to a load balancer: its id is recorded, or it has a name of this Service's. Pure.
    fn may_own(&self, service: &ServiceView, cluster: &str, marked: &Marked) -> bool {
        self.lock_keys(service, cluster).iter().any(|key| match key.kind {
            LockKind::Name => key.value.eq_ignore_ascii_case(&marked.name),
            LockKind::Id => key.value == marked.id,
            LockKind::Address | LockKind::Published => false,
        })
    }

    /// How long a creation whose answer was lost may still take to show up in a lookup (law 6).
    fn settle_time(&self) -> Duration;

    /// Which nodes a Service wants behind its load balancer; `None` where it does not say. A selector that cannot be
    /// read is an error here and a refusal of the plan. Pure.
    fn selector(&self, _service: &ServiceView) -> Result<Option<Selector>> {
        Ok(None)
    }

    /// Whether the `local_endpoint` of backends has to be known for Services with `externalTrafficPolicy: Local`. The
    /// `EndpointSlices` of the cluster are watched only if a cloud says so, and its factory then lists
    /// [`ENDPOINT_SLICES`](crate::rights::ENDPOINT_SLICES) among its rights.
    fn needs_endpoints(&self) -> bool {
        false
    }

    /// Whether a node may stand behind its load balancers; `own` says whether the node is this cloud's. Pure.
    fn accepts(&self, _node: &NodeView, own: bool) -> bool {
        own
    }

    /// How many independent steps for one load balancer may be under way at once. One, where the cloud serialises
    /// them anyway.
    fn width(&self) -> usize {
        1
    }

    /// What a load balancer would be called that is created for the Service now. Pure.
    ///
    /// The name is recorded before the creation is sent, and has to be looked for as long as it stands there (see
    /// [`intended_name`](crate::lb::intended_name)).
    fn name_for(&self, service: &ServiceView, cluster: &str) -> Name;

    /// Which load balancer was observed; `None` where there is none. Pure.
    ///
    /// The framework judges by it [whose](crate::decide::service::ownership) it is, before anything is done about it.
    fn identity(&self, observed: &Self::Observed) -> Option<Identity>;

    /// Names, ids and addresses that a Service lays claim to. Pure.
    fn lock_keys(&self, service: &ServiceView, cluster: &str) -> Vec<LockKey>;

    /// Finds what there is for one Service, from what the survey has, the `fleet` and questions of its own. Look-ups beside
    /// the cloud (DNS) belong here too.
    ///
    /// Looked for are the recorded id, the name, and the [intended name](crate::lb::intended_name).
    /// `Absent` needs a complete answer. Several candidates are `Unknown` with an error that names them. Whether the one
    /// that was found is this Service's is not the provider's to judge.
    fn observe(
        &self,
        call: &Call,
        fleet: &dyn Fleet,
        survey: &Self::Survey,
        want: &Desired,
    ) -> impl Future<Output = Lookup<Self::Observed>> + Send;

    /// What to do next about what was observed. Pure.
    fn decide(&self, want: &Desired, observed: Option<&Self::Observed>) -> Decision<Self::Action>;

    /// Sends one mutation, once.
    fn execute(&self, call: &Call, act: &Self::Action) -> impl Future<Output = Outcome<Self::Answer>> + Send;

    /// What there is after `act` was answered by `answer`. Pure.
    fn fold(
        &self,
        observed: Option<Self::Observed>,
        act: &Self::Action,
        answer: &Self::Answer,
    ) -> Option<Self::Observed>;

    /// A plausible answer to `act`, for dry runs and property tests. Pure.
    fn assume(&self, act: &Self::Action) -> Self::Answer;
}
