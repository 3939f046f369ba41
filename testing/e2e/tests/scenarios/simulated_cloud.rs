//! The cloud of a scenario, whichever it is. It runs in this process, on a port of its own, and outlives every manager.
//!
//! The fake cloud is none of these: it lives in the memory of a manager, where nobody else can look at it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::Fallible;

/// A load balancer with its ports and addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Balancer {
    pub(crate) id: String,
    /// The addresses and host names that a Service shows for it.
    pub(crate) addresses: BTreeSet<String>,
    /// The ports for clients, and the instances and their ports behind each.
    pub(crate) ports: BTreeMap<u16, (BTreeSet<String>, BTreeSet<u16>)>,
}

/// A request that the cloud got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    /// What was asked for, in the words of the simulated cloud.
    pub(crate) operation: String,
    /// It would change something.
    pub(crate) mutation: bool,
    /// The status of the answer, if one was made.
    pub(crate) status: Option<u16>,
    /// It was carried out; the answer may be lost.
    pub(crate) succeeded: bool,
}

/// What scenarios need of a cloud. Instances go by the names that scenarios give them.
pub(crate) trait SimulatedCloud {
    /// The environment that leads a manager to it.
    fn env(&self) -> Vec<(String, String)>;

    /// The file of `--cloud-config`, for a cloud that has one.
    fn config(&self) -> Option<PathBuf> {
        None
    }

    /// What no log may contain.
    fn secrets(&self) -> Vec<String>;

    /// A new instance, which runs.
    fn add(&self, instance: &str);
    fn stop(&self, instance: &str);
    fn start(&self, instance: &str);
    fn delete(&self, instance: &str);
    /// Whether there is such an instance.
    fn has(&self, instance: &str) -> bool;

    /// The name under which the kubelet of an instance registers its node. In some clouds it cannot be chosen.
    fn node_name(&self, instance: &str) -> String {
        instance.to_owned()
    }

    /// The provider id of an instance.
    fn provider_id(&self, instance: &str) -> String;
    /// The labels of an instance's node: its size, region and zone.
    fn labels(&self, instance: &str) -> Vec<(&'static str, String)>;
    /// The address by which instances reach each other.
    fn private_address(&self, instance: &str) -> String;

    /// The load balancers.
    fn balancers(&self) -> Vec<Balancer>;

    /// The port of an instance to which a port of a load balancer leads. Not every cloud can lead to another one.
    fn target(&self, _port: u16, node_port: u16) -> u16 {
        node_port
    }

    /// Every request so far.
    fn calls(&self) -> Vec<Call>;

    /// How many requests wait for their answers.
    fn under_way(&self) -> usize;

    /// The changes that were carried out so far, by the names of their operations.
    fn mutations(&self) -> Vec<String> {
        let made = self.calls().into_iter().filter(|call| call.mutation && call.succeeded);
        made.map(|call| call.operation).collect()
    }

    /// Every request is answered with 503 from now on.
    fn go_down(&self);
    /// No request is answered or carried out from now on, and no connection breaks.
    fn fall_silent(&self);
    /// Ends all faults.
    fn come_back(&self);
    /// The next load balancer is built, but the request is never answered.
    fn never_answer_the_next_creation(&self);
}

/// A cloud with a token that can be replaced while a manager runs.
pub(crate) trait Tokens {
    /// Accepts only this token from now on; the manager does not have it yet.
    fn revoke_all_tokens_but(&self, token: &str);
    /// Replaces the manager's token file atomically, as the kubelet replaces a mounted file.
    fn hand_over(&self, token: &str) -> Fallible<()>;
}

/// A cloud that has a card in the table of `clouds`.
pub(crate) trait CardCloud: SimulatedCloud + Sized + 'static {
    /// Its name in `--cloud-provider`, which is that of its folder too.
    const NAME: &'static str;
    /// Two ports that it can open for a Service.
    const PORTS: [u16; 2] = [80, 443];

    /// Serves a cloud with running instances of these names. Its files go into `dir`.
    async fn over(dir: &Path, instances: &[&str]) -> Fallible<Self>;
}
