//! What a cloud has to offer, as small object-safe traits.
//!
//! A provider answers plain questions and carries out single steps. Caching, matching by name, confirming an
//! absence, retrying, waiting, writing to Kubernetes and deciding what is safe are not its business.
//!
//! # Guarantees that every implementation gives
//! - It never changes anything unless asked to by [`Routes::apply`] or a step of the load-balancer loop, and it
//!   sends no write that [`Call::write_until`](crate::Call::write_until) does not allow.
//! - `Absent` and a complete [`Listing`] are positive statements. A refused credential, an error, a time-out, a
//!   short page or a body that cannot be read is `Unknown`, an error, or a short listing (law 1).
//! - It ends by the deadline of its [`Call`], and it never panics because of what the cloud sent.
//! - Errors name what was attempted and carry no secret.

use std::{pin::Pin, sync::Arc, time::Duration};

use crate::{
    call::Call,
    error::{Error, Result, Retry},
    instance::{Instance, InstanceState},
    label::{Region, Zone},
    lb::{Fleet, Notice},
    lookup::{Listing, Lookup},
    net::IpFamily,
    provider_id::{ProviderId, Reading},
    route::{RouteChange, RouteData, RouteTable},
    view::NodeView,
};

pub use crate::lb::LoadBalancers;

/// A future in a box, as object-safe traits need it.
pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What became of starting a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// The cloud can be worked with.
    Ready,
    /// The cloud did not answer. Nothing is known about it, and it is started again later.
    Later(Error),
    /// The cloud refused for good. The error names the setting to change.
    Fatal(Error),
}

/// A failure is fatal if waiting does not help.
impl From<Result<()>> for Start {
    fn from(result: Result<()>) -> Self {
        match result {
            Ok(()) => Self::Ready,
            Err(why) => match why.category().retry() {
                Retry::OnChange | Retry::Slowly => Self::Fatal(why),
                Retry::Backoff | Retry::After(_) | Retry::Never => Self::Later(why),
            },
        }
    }
}

/// How much of something an account may have, and has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quota {
    /// What is counted, in the plural: `load balancers`.
    pub what: &'static str,
    /// How many there are.
    pub used: u64,
    /// How many there may be.
    pub limit: u64,
}

/// One cloud, and which capabilities it has.
pub trait Provider: Send + Sync {
    /// The name by which users choose it: `cloudscale`, `binarylane` and so on.
    fn name(&self) -> &str;

    /// The scheme of the provider ids that it writes. A node with another scheme is not its node (law 3).
    fn scheme(&self) -> &str;

    /// Whether an id, perhaps written by a program that this one replaces, is one of this cloud's.
    fn owns(&self, id: &ProviderId) -> bool {
        id.scheme() == self.scheme()
    }

    /// Reads the text of a node's provider id, in every spelling that was ever written for this cloud.
    fn read_id(&self, text: &str) -> Reading {
        Reading::plain(text, |id| self.owns(id))
    }

    /// Asks the cloud what has to be known before it is worked with, and begins what the provider runs by itself. After
    /// [`Start::Later`] it is called again. It may not write to the cloud.
    fn start<'a>(&'a self, _call: &'a Call) -> Boxed<'a, Start> {
        Box::pin(std::future::ready(Start::Ready))
    }

    /// Ends what the provider runs by itself, whether or not it was ever ready. It is the last call to it; what is not
    /// done by the deadline is given up.
    fn stop<'a>(&'a self, _call: &'a Call) -> Boxed<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    /// What the account may have, where the cloud tells. For people who look for the cause of trouble; nothing is decided
    /// by it.
    fn quotas<'a>(&'a self, _call: &'a Call) -> Boxed<'a, Result<Vec<Quota>>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// Instances.
    fn instances(&self) -> Option<&dyn Instances> {
        None
    }

    /// Load balancers.
    fn load_balancers(&self) -> Option<&dyn LoadBalancers> {
        None
    }

    /// Routes to pods.
    fn routes(&self) -> Option<&dyn Routes> {
        None
    }

    /// Zones and regions.
    fn zones(&self) -> Option<&dyn Zones> {
        None
    }
}

/// The instances of a cloud.
///
/// Existence, shutdown, metadata, caching, re-checking of negatives and matching by name are made from these by the
/// framework, once for all clouds.
pub trait Instances: Send + Sync {
    /// Every instance that the credential can see, in one paginated listing.
    ///
    /// An error means that nothing at all was learnt; a short listing still proves what it shows.
    fn list<'a>(&'a self, call: &'a Call) -> Boxed<'a, Result<Listing<Instance>>>;

    /// Asks the source itself about one instance, past every cache.
    fn get<'a>(&'a self, call: &'a Call, id: &'a ProviderId) -> Boxed<'a, Lookup<Instance>>;

    /// How often [`runs`](Self::runs) may be asked about one instance; `None` where the state of a listed instance can be
    /// believed. Asked are instances that are listed as running and whose nodes have not been Ready for a while.
    fn ask_every(&self) -> Option<Duration> {
        None
    }

    /// Asks past the listed state whether an instance runs. Only a state that is certain is an answer.
    fn runs<'a>(&'a self, _call: &'a Call, id: &'a ProviderId) -> Boxed<'a, Lookup<InstanceState>> {
        let why = Error::permanent(format!("this cloud cannot be asked whether {id} runs"));
        Box::pin(std::future::ready(Lookup::Unknown(why)))
    }

    /// Asks the source for an instance by its name, where the cloud can do that. Several of one name are `Unknown`.
    fn find<'a>(&'a self, _call: &'a Call, name: &'a str) -> Boxed<'a, Lookup<Instance>> {
        let why =
            Error::permanent(format!("this cloud cannot look up {name:?} by name; only a listing can tell"));
        Box::pin(std::future::ready(Lookup::Unknown(why)))
    }
}

/// The routes of a cloud.
pub trait Routes: Send + Sync {
    /// The families whose networks it can route. A node's networks of another family get no route: people are told, and
    /// the node is none the worse for it.
    fn families(&self) -> &[IpFamily] {
        &[IpFamily::V4, IpFamily::V6]
    }

    /// Every route that the cloud has in the networks of this cluster.
    ///
    /// `nodes` are the cluster's nodes in this cloud; the `fleet` knows their instances.
    fn list<'a>(
        &'a self,
        call: &'a Call,
        nodes: &'a [Arc<NodeView>],
        fleet: &'a Arc<dyn Fleet>,
    ) -> Boxed<'a, Result<RouteTable>>;

    /// Carries out changes, batched per routing object and in the given order within each.
    ///
    /// The answers stand in the order of the changes; a failure of one does not keep the others from being tried. What
    /// people should be told about the node of a new route comes with its answer. `listed` is what [`list`](Self::list)
    /// read, and `None` if something was changed since.
    fn apply<'a>(
        &'a self,
        call: &'a Call,
        listed: Option<&'a RouteData>,
        changes: &'a [RouteChange],
    ) -> Boxed<'a, Vec<Result<Vec<Notice>>>>;
}

/// A zone and the region around it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The region.
    pub region: Region,
    /// The zone; `None` where the region has none.
    pub zone: Option<Zone>,
}

/// The zones of a cloud, where it can list them.
pub trait Zones: Send + Sync {
    /// Every zone that the credential may use.
    fn list<'a>(&'a self, call: &'a Call) -> Boxed<'a, Result<Listing<Place>>>;
}

#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        task::{Context, Poll, Waker},
    };

    use super::*;
    use crate::{call::ReadOnly, error::Category, time::Tick};

    /// A cloud that can do as little as a cloud can.
    struct Least;

    impl Provider for Least {
        fn name(&self) -> &'static str {
            "least"
        }

        fn scheme(&self) -> &'static str {
            "least"
        }
    }

    impl Instances for Least {
        fn list<'a>(&'a self, _: &'a Call) -> Boxed<'a, Result<Listing<Instance>>> {
            Box::pin(std::future::ready(Ok(Listing::complete(vec![]))))
        }

        fn get<'a>(&'a self, _: &'a Call, _: &'a ProviderId) -> Boxed<'a, Lookup<Instance>> {
            Box::pin(std::future::ready(Lookup::Absent))
        }
    }

    #[test]
    fn a_provider_owns_the_ids_of_its_scheme_and_offers_nothing_by_default() {
        let owns = |id: &str| Least.owns(&id.parse().unwrap());
        let mine = Reading::Mine("least://1".parse().unwrap());
        assert_eq!(
            [Least.read_id("least://1"), Least.read_id("other://1")],
            [mine, Reading::Foreign],
            "L3-11"
        );
        assert_eq!((owns("least://1"), owns("other://1")), (true, false), "L3-10");
        assert!(Least.instances().is_none() && Least.load_balancers().is_none());
        assert!(Least.routes().is_none() && Least.zones().is_none());
    }

    #[test]
    fn a_start_fails_for_good_only_where_waiting_does_not_help() {
        assert_eq!(Start::from(Ok(())), Start::Ready);
        for category in Category::ALL {
            let why = Error::new(category, "x");
            let for_good =
                matches!(category, Category::UserInput | Category::Unauthorised | Category::Permanent);
            let want = if for_good { Start::Fatal(why.clone()) } else { Start::Later(why.clone()) };
            assert_eq!(Start::from(Err(why)), want, "L1-1530");
        }
    }

    #[test]
    fn a_cloud_without_look_up_by_name_does_not_deny() {
        let call = Call::new(Tick::from_secs(1), Arc::new(ReadOnly));
        let mut find = pin!(Least.find(&call, "web-1"));
        let answer = find.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        let Poll::Ready(Lookup::Unknown(why)) = answer else { panic!("L1-10 {answer:?}") };
        assert!(why.message().contains("web-1"), "{why}");
    }
}
