//! The client of the API: one function per kind of request, each with a name for the metrics.

use std::{fmt, sync::Arc, time::Duration};

use cloudberth_core::{Call, Clock, Error, Listing, Lookup, Random, Result, lb::Outcome, rate::Backoff};
use cloudberth_http::{Answer, Client, Dialect, Envelope, Item, Observer, Operation, Policy, Transport};
use serde::de::DeserializeOwned;
use tokio::sync::OnceCell;

use crate::{
    action::{self, Refused, Unavailable},
    settings::{ClusterChoice, Settings},
    wire::{
        BalancerIdentity, BalancerSpec, Cluster, Deleted, ErrorBody, LoadBalancer, Machine, MachineIdentity,
    },
};

/// Lists come whole.
const LIST: Envelope = Envelope { key: "items", next: None, total: None };

/// What the client is made of besides its settings.
#[derive(Clone)]
pub struct Surroundings {
    /// What requests are sent through.
    pub transport: Transport,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub random: Arc<Random>,
    /// Sees every call.
    pub observer: Arc<dyn Observer>,
}

impl fmt::Debug for Surroundings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Surroundings").field("transport", &self.transport).finish_non_exhaustive()
    }
}

/// The name of a load balancer within the cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The namespace of its Service.
    pub namespace: String,
    /// The name of its Service.
    pub name: String,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// The API, as one cluster sees it. Clones share everything.
#[derive(Clone, Debug)]
pub(crate) struct Api {
    client: Client,
    choice: Arc<ClusterChoice>,
    cluster: Arc<OnceCell<String>>,
}

impl Api {
    pub(crate) fn new(settings: &Settings, around: Surroundings) -> Self {
        let Surroundings { transport, clock, random, observer } = around;
        let backoff = Backoff { first: Duration::from_millis(200), longest: Duration::from_secs(2) };
        let mut builder = Client::builder(settings.base.clone(), transport, clock, random)
            .policy(Policy { backoff, ..Policy::default() })
            .dialect(Dialect { undone, ..Dialect::default() })
            .observer(observer);
        if let Some(token) = &settings.token {
            builder = builder.authenticator(Arc::new(token.clone()));
        }
        Self { client: builder.build(), choice: Arc::new(settings.cluster.clone()), cluster: Arc::default() }
    }

    /// The key of this cluster. It is asked for once, unless a setting says it.
    pub(crate) async fn cluster(&self, call: &Call) -> Result<String> {
        if let ClusterChoice::Key(key) = &*self.choice {
            return Ok(key.clone());
        }
        let key = self.cluster.get_or_try_init(|| async {
            let known = self.clusters(call).await?;
            self.choice.choose(&known).map(str::to_owned)
        });
        key.await.cloned()
    }

    /// Asks whether the inventory has this cluster still, under the key that requests name. That it has not is nothing that
    /// a request for a machine could tell from a machine that is gone.
    pub(crate) async fn cluster_is_there(&self, call: &Call) -> Result<()> {
        let (key, known) = (self.cluster(call).await?, self.clusters(call).await?);
        if known.iter().any(|cluster| cluster.key == key) {
            return Ok(());
        }
        Err(Error::temporary(format!(
            "cluster {key:?} is not in the inventory any more, so nothing is known of its machines"
        )))
    }

    /// What is known of the key of this cluster without asking.
    pub(crate) fn cluster_in_words(&self) -> String {
        match &*self.choice {
            ClusterChoice::Key(key) => key.clone(),
            ClusterChoice::Named(name) => self.cluster.get().unwrap_or(name).clone(),
        }
    }

    pub(crate) async fn clusters(&self, call: &Call) -> Result<Vec<Cluster>> {
        let operation = Operation::get("list clusters", "clusters");
        let listed = self.list(call, operation, |cluster: &Cluster| cluster.key.clone()).await?;
        listed.all()
    }

    pub(crate) async fn machines(
        &self,
        call: &Call,
        cluster: &str,
    ) -> Result<Listing<Item<Machine, MachineIdentity>>> {
        let id = |one: &Item<Machine, MachineIdentity>| one.key(|one| &one.id, |one| &one.id).clone();
        let operation = Operation::get("list machines", "machines").query("cluster", cluster);
        self.list(call, operation, id).await
    }

    pub(crate) async fn machine(&self, call: &Call, id: &str) -> Lookup<Item<Machine, MachineIdentity>> {
        let operation = Operation::get("get machine", "machines").segment(id);
        Box::pin(self.client.lookup(call, operation)).await
    }

    pub(crate) async fn balancers(
        &self,
        call: &Call,
    ) -> Result<Listing<Item<LoadBalancer, BalancerIdentity>>> {
        let cluster = self.cluster(call).await?;
        let id = |one: &Item<LoadBalancer, BalancerIdentity>| match one {
            Item::Whole(one) => (one.namespace.clone(), one.name.clone()),
            Item::Flawed(one) => (one.identity.namespace.clone(), one.identity.name.clone()),
        };
        let operation = Operation::get("list load balancers", "loadbalancers").query("cluster", cluster);
        self.list(call, operation, id).await
    }

    /// Whether a load balancer is there.
    pub(crate) async fn shows(&self, call: &Call, cluster: &str, key: &Key) -> Lookup<()> {
        let operation = Operation::get("get load balancer", "loadbalancers");
        let operation = operation.segment(cluster).segment(&key.namespace).segment(&key.name);
        let found: Lookup<BalancerIdentity> = Box::pin(self.client.lookup(call, operation)).await;
        found.map(|_| ())
    }

    /// Makes a load balancer, or makes it be like the spec. What the service does not give is told apart from other errors.
    pub(crate) async fn put(
        &self,
        call: &Call,
        key: &Key,
        spec: &BalancerSpec,
        creates: bool,
    ) -> Outcome<action::Answer> {
        let cluster = match self.cluster(call).await {
            Ok(cluster) => cluster,
            Err(why) => return Outcome::Failed(why),
        };
        let name = if creates { "create load balancer" } else { "update load balancer" };
        let operation = Operation::put(name, "loadbalancers");
        let operation = operation.segment(&cluster).segment(&key.namespace).segment(&key.name);
        let done = |balancer: LoadBalancer| action::Answer::Balancer(Box::new(balancer));
        let refused = |answer: &Answer, why: &Error| {
            let what = unavailable(answer, spec)?;
            let (mode, why) = (spec.address_mode.clone(), why.message().to_owned());
            Some(action::Answer::Refused(Refused { what, mode, why }))
        };
        Box::pin(self.client.write_or(call, operation.json(spec), done, refused)).await
    }

    /// Deletes a load balancer, unless it is another Service's by now. That it was not there is said as such.
    pub(crate) async fn delete(&self, call: &Call, key: &Key, uid: &str) -> Outcome<()> {
        let cluster = match self.cluster(call).await {
            Ok(cluster) => cluster,
            Err(why) => return Outcome::Failed(why),
        };
        let operation = Operation::delete("delete load balancer", "loadbalancers");
        let operation = operation.segment(&cluster).segment(&key.namespace).segment(&key.name);
        let sent = Box::pin(self.client.write::<Deleted>(call, operation.query("uid", uid))).await;
        match sent {
            Outcome::Done(Deleted { deleted: true }) => Outcome::Done(()),
            Outcome::Done(Deleted { deleted: false }) | Outcome::NotThere => Outcome::NotThere,
            other => other.map(|_| ()),
        }
    }

    async fn list<T, K>(
        &self,
        call: &Call,
        operation: Operation<cloudberth_http::Read>,
        id: impl Fn(&T) -> K + Send,
    ) -> Result<Listing<T>>
    where
        T: DeserializeOwned + Send,
        K: Ord + Send,
    {
        Box::pin(self.client.list(call, operation.tagged(), &LIST, id)).await
    }
}

/// A pool without a free address, and a service that is about to end, say so before anything is done.
fn undone(answer: &Answer) -> bool {
    let code = answer.json::<ErrorBody>().map(|body| body.code);
    code.is_ok_and(|code| matches!(code.as_str(), "pool_exhausted" | "shutting_down"))
}

/// What the service does not give, if it refuses a spec for that and for nothing else. The code says so, never the message.
fn unavailable(answer: &Answer, spec: &BalancerSpec) -> Option<Unavailable> {
    match answer.json::<ErrorBody>().ok()?.code.as_str() {
        "address_taken" | "address_not_in_pool" => Some(Unavailable::Address(spec.requested_address.clone())),
        "family_not_available" => Some(Unavailable::Families(spec.families.clone())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, StatusCode};

    use super::*;

    #[test]
    fn only_a_code_says_what_is_not_to_be_had() {
        let spec = BalancerSpec {
            requested_address: "127.77.0.9".to_owned(),
            families: vec!["IPv4".to_owned(), "IPv6".to_owned()],
            ..BalancerSpec::default()
        };
        let address = || Some(Unavailable::Address("127.77.0.9".to_owned()));
        let families = || Some(Unavailable::Families(spec.families.clone()));
        let table = [
            ("CL-42", 409, r#"{"code":"address_taken","message":"x"}"#, address()),
            ("CL-42", 422, r#"{"code":"address_not_in_pool","message":"x"}"#, address()),
            ("CL-68", 422, r#"{"code":"family_not_available","message":"x"}"#, families()),
            (
                "a word in a sentence",
                400,
                r#"{"code":"invalid_spec","message":"families: [] is short"}"#,
                None,
            ),
            ("another one", 409, r#"{"code":"uid_conflict","message":"address_taken"}"#, None),
            ("a page", 422, "<html>family_not_available</html>", None),
        ];
        for (case, status, body, want) in table {
            let answer = Answer::new(StatusCode::from_u16(status).unwrap(), HeaderMap::new(), body);
            assert_eq!(unavailable(&answer, &spec), want, "{case} {body}");
        }
    }
}
