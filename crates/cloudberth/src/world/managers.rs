//! The replicas of the controller manager: the same code as in production, each a task of this process.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use cloudberth_controllers::{
    controller_set::ControllerSettings, lifecycle::LifecycleSettings, node::NodeSettings,
    service::ServiceSettings,
};
use cloudberth_core::decide::{election::Config, lifecycle::Timing};
use cloudberth_manager::replica::{GRACE, Parts, Replica};
use cloudberth_runtime::metrics::{Metrics, Registry};
use kube::Client;
use tokio::{sync::Notify, task::JoinHandle};
use tracing::instrument::WithSubscriber as _;

use super::{
    clouds::{Around, CLUSTER, WorldCloud},
    journal::Journal,
    steps::StepLog,
    writes::told,
};

/// How a world differs from production: law 2's waits are shorter, so that one can watch.
pub const TIMING: Timing =
    Timing { start_up_grace: Duration::from_secs(5), confirm_after: Duration::from_secs(2) };
/// How often instances are compared with nodes; every five seconds in production.
pub const PERIOD: Duration = Duration::from_secs(1);

/// What replicas are made of.
pub(crate) struct Managers {
    server: Client,
    cloud: Arc<dyn WorldCloud>,
    around: Around,
    journal: Arc<Journal>,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    started: u32,
    replicas: Vec<Running>,
}

struct Running {
    identity: String,
    stop: Arc<Notify>,
    task: JoinHandle<()>,
}

impl Managers {
    pub(crate) fn new(
        server: Client,
        cloud: Arc<dyn WorldCloud>,
        around: Around,
        journal: Arc<Journal>,
    ) -> Self {
        Self { server, cloud, around, journal, inner: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts one more replica, and returns its name.
    pub(crate) fn start(&self) -> Result<String, String> {
        let number = {
            let mut inner = self.lock();
            inner.started += 1;
            inner.started
        };
        let identity = format!("manager-{number}_{}", self.around.random.uuid());
        let replica = self.replica(&identity)?;
        let stop = Arc::new(Notify::new());
        let told = Arc::clone(&stop);
        let run = async move { replica.run(async move { told.notified().await }).await };
        let task = tokio::spawn(run.with_subscriber(StepLog::new(Arc::clone(&self.journal))));
        self.lock().replicas.push(Running { identity: identity.clone(), stop, task });
        Ok(name_of(&identity).to_owned())
    }

    fn replica(&self, identity: &str) -> Result<Replica, String> {
        let client = told(&self.server, &self.journal);
        let lifecycle =
            LifecycleSettings { period: PERIOD, timing: TIMING, workers: 1, ..LifecycleSettings::default() };
        let provider = self.cloud.provider(&self.around)?;
        let parts = Parts {
            lease_client: client.clone(),
            client,
            clouds: vec![(provider, BTreeSet::new())],
            default_cloud: None,
            cluster_name: CLUSTER.to_owned(),
            controllers: ControllerSettings {
                node: Some(NodeSettings::default()),
                lifecycle: Some(lifecycle),
                service: Some(ServiceSettings::default()),
                routes: None,
            },
            election: Some(Config::with_defaults(identity)),
            migration: None,
            metrics: Metrics::new(&mut Registry::default()),
            clock: Arc::clone(&self.around.clock),
            random: Arc::clone(&self.around.random),
        };
        Replica::new(parts).map_err(|why| why.to_string())
    }

    /// Ends a replica without a word, as a power failure does. Its Lease stays until it runs out.
    pub(crate) fn kill(&self, identity: &str) -> bool {
        let mut inner = self.lock();
        let Some(at) = inner.replicas.iter().position(|replica| replica.identity == identity) else {
            return false;
        };
        inner.replicas.remove(at).task.abort();
        true
    }

    /// Tells all replicas to end, and waits until they have released what they hold.
    pub(crate) async fn stop(&self) {
        let replicas = std::mem::take(&mut self.lock().replicas);
        for replica in &replicas {
            replica.stop.notify_one();
        }
        for replica in replicas {
            let ended = replica.task.abort_handle();
            if tokio::time::timeout(GRACE * 2, replica.task).await.is_err() {
                ended.abort();
            }
        }
    }
}

impl Drop for Managers {
    fn drop(&mut self) {
        for replica in &self.lock().replicas {
            replica.task.abort();
        }
    }
}

/// The part of an identity that people are shown.
pub(crate) fn name_of(identity: &str) -> &str {
    identity.split_once('_').map_or(identity, |(name, _)| name)
}
