//! What a pass needs.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex},
};

use cloudberth_core::{Clock, ObjectKey, Random, Reason, Result, provider::Boxed};
use cloudberth_runtime::{
    recorder::{Event, EventRecorder, ObjectRef},
    writer::Writer,
};
use kube::Client;
use tokio::sync::{Semaphore, watch};

use super::{Api, Effects, Stores, lock, memory::Memory};
use crate::{
    config::{Good, Loaded},
    helm::{Helm, Leash},
    metrics::FipMetrics,
    problem::Problem,
    settings::Delays,
    view::ClusterView,
};

/// Makes clients of downstream clusters.
pub trait Dial: Send + Sync {
    /// A client of the cluster that a kubeconfig names.
    fn dial<'a>(&'a self, kubeconfig: &'a [u8]) -> Boxed<'a, Result<Client>>;
}

/// Draws the random bytes of a token from a source that nobody can guess.
pub type Tokens = Arc<dyn Fn() -> Result<[u8; 16]> + Send + Sync>;

/// What a pass needs.
pub(super) struct Context {
    /// The management cluster.
    pub(super) local: Api,
    /// Its objects.
    pub(super) stores: Arc<Stores>,
    /// The way into downstream clusters.
    pub(super) dial: Arc<dyn Dial>,
    /// Whoever installs charts.
    pub(super) helm: Arc<dyn Helm>,
    /// How many charts are installed at once.
    pub(super) helm_slots: Semaphore,
    /// Until when Helm may work.
    pub(super) leash: Leash,
    /// The configuration.
    pub(super) config: watch::Receiver<Loaded>,
    /// Events; none in a dry run.
    pub(super) recorder: Option<Arc<EventRecorder>>,
    /// What is measured.
    pub(super) metrics: FipMetrics,
    /// Jitter.
    pub(super) random: Arc<Random>,
    /// Tokens.
    pub(super) tokens: Tokens,
    /// Every delay.
    pub(super) delays: Delays,
    /// What is remembered of each cluster, for as long as this replica leads.
    pub(super) memories: Mutex<BTreeMap<String, Arc<Memory>>>,
}

impl Context {
    /// The time.
    pub(super) fn clock(&self) -> &Arc<dyn Clock> {
        self.local.writer().clock()
    }

    /// The configuration in force.
    pub(super) fn good(&self) -> Option<Good> {
        self.config.borrow().good.clone()
    }

    /// What is remembered of a cluster.
    pub(super) fn memory(&self, cluster: &str) -> Arc<Memory> {
        Arc::clone(lock(&self.memories).entry(cluster.to_owned()).or_default())
    }

    /// Forgets a cluster.
    pub(super) fn forget(&self, cluster: &str) {
        lock(&self.memories).remove(cluster);
        self.metrics.forget(cluster);
    }

    /// The API of a downstream cluster.
    pub(super) fn downstream(&self, name: &str, client: Client) -> Api {
        let local = self.local.writer();
        let writer = Writer::new(client, Arc::clone(local.clock()), local.gate());
        Api::new(writer, name, self.delays.downstream_timeout, self.local.effects().clone())
    }

    /// Whether this is a dry run.
    pub(super) const fn is_dry(&self) -> bool {
        matches!(self.local.effects(), Effects::Dry(_))
    }

    /// Publishes an event about a cluster.
    pub(super) fn tell_cluster(&self, cluster: &ClusterView, reason: Reason, message: &str) {
        self.tell("management.cattle.io/v3", "Cluster", &cluster.key, &cluster.uid, reason, message);
    }

    /// Publishes an event about any object.
    pub(super) fn tell(
        &self,
        api_version: &str,
        kind: &str,
        key: &ObjectKey,
        uid: &str,
        reason: Reason,
        message: &str,
    ) {
        let Some(recorder) = &self.recorder else { return };
        let about = ObjectRef {
            api_version: api_version.to_owned(),
            ..ObjectRef::core(kind, &key.namespace, &key.name, uid)
        };
        let row = reason.row();
        let warning = row.severity == cloudberth_core::lb::Severity::Warning;
        let component = row.source.component();
        recorder.publish(Event { about, warning, reason, message: message.to_owned(), component });
    }

    /// Publishes those of the problems that are new since the last pass: a failure that goes on is one event.
    pub(super) fn tell_news(&self, cluster: &ClusterView, memory: &Memory, problems: &[Problem]) {
        for problem in memory.news(problems) {
            self.tell_cluster(cluster, problem.reason, &problem.message);
        }
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("local", &self.local).finish_non_exhaustive()
    }
}
