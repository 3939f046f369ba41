//! One replica of the program, from its clients to its controllers.
//!
//! ```text
//!   watches ─────────────────────────────► stores      all the time, so that a standby is warm
//!   election ──► leads ──► a new ControllerSet ──► loses ──► the set is dropped, the election goes on
//! ```
//!
//! What a process adds (flags, files, ports, signals) is outside: the same replica runs in production, in the
//! simulation and in the demonstration.

#![allow(missing_docs, reason = "plain data whose names say what it is")]

use std::{
    convert::Infallible,
    fmt,
    panic::AssertUnwindSafe,
    pin::pin,
    sync::{Arc, OnceLock, Weak},
    time::Duration,
};

use cloudberth_controllers::{
    clouds::{Clouds, Member},
    context::ControllerContext,
    controller_set::{ControllerSet, ControllerSettings},
};
use cloudberth_core::{
    Clock, Random, Result,
    call::{CLAIM_RESERVE, Gate, Unguarded},
    decide::election::Config,
    reason::LEADER_ELECTION,
    time::Tick,
};
use cloudberth_runtime::{
    cluster::Cluster,
    election::Election,
    metrics::Metrics,
    recorder::{Event, EventRecorder},
};
use futures_util::{
    FutureExt,
    future::{BoxFuture, Shared, join, join_all, join3, pending, ready},
};
use kube::Client;

/// How long work that is under way may take to end when the program is told to stop. What takes longer is given up;
/// the next leader takes it up again, after the Lease has run out.
pub const GRACE: Duration = Duration::from_secs(5);

/// How long work that is under way may still write after the program was told to stop. The rest of the grace is for
/// what was sent: it is to be answered before the Lease is released.
pub const LAST_WRITE: Duration = GRACE.saturating_sub(CLAIM_RESERVE);

pub struct Parts {
    /// The client for everything but the Lease.
    pub client: Client,
    /// The client for the Lease: its own, so that no burst of other requests delays a renewal.
    pub lease_client: Client,
    /// The clouds, and the load-balancer classes that each of them claims.
    pub clouds: Vec<Member>,
    pub default_cloud: Option<String>,
    pub cluster_name: String,
    pub controllers: ControllerSettings,
    /// How the leader is found; `None` if there is one replica only.
    pub election: Option<Config>,
    /// A second lock, and the controllers that run only while both are held: those that another program ran before.
    pub migration: Option<(Config, ControllerSettings)>,
    pub metrics: Metrics,
    pub clock: Arc<dyn Clock>,
    pub random: Arc<Random>,
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.clouds.iter().map(|(cloud, _)| cloud.name()).collect();
        f.debug_struct("Parts")
            .field("clouds", &names)
            .field("controllers", &self.controllers)
            .finish_non_exhaustive()
    }
}

pub struct Replica {
    branch: Branch,
}

impl Replica {
    /// A replica that does nothing before [`run`](Self::run).
    pub fn new(parts: Parts) -> Result<Self> {
        let Parts { client, clock, random, metrics, .. } = parts;
        // The recorder writes under the claim of the election that it reports about, and the election must not keep it alive.
        let told_by: Arc<OnceLock<Weak<EventRecorder>>> = Arc::default();
        let stand = |config: Config| {
            let told_by = Arc::clone(&told_by);
            let tell = move |what: Event| {
                if let Some(recorder) = told_by.get().and_then(Weak::upgrade) {
                    recorder.publish(what);
                }
            };
            let (client, random) = (parts.lease_client.clone(), Arc::clone(&random));
            Election::new(client, config, Arc::clone(&clock), random, LEADER_ELECTION, tell)
        };
        let election = parts.election.map(&stand);
        let gate: Arc<dyn Gate> = match &election {
            Some(election) => Arc::clone(election) as _,
            None => Arc::new(Unguarded),
        };
        let clouds = Clouds::new(parts.clouds, parts.default_cloud, &clock)?.metered(&metrics.queues);
        let cluster = Cluster::new(client, Arc::clone(&clock), Arc::clone(&gate))
            .with_endpoints(clouds.need_endpoints())
            .metered(&metrics.queues);
        let dropped = metrics.manager.events_dropped.clone();
        let recorder = EventRecorder::counting(cluster.writer().clone(), Arc::clone(&random), dropped);
        told_by.get_or_init(|| Arc::downgrade(&recorder));
        let ctx = ControllerContext {
            cluster,
            clouds,
            recorder,
            metrics,
            random: Arc::clone(&random),
            cluster_name: parts.cluster_name,
        };
        let inner = parts.migration.map(|(config, controllers)| {
            let election = stand(config);
            let both = Both(gate, Arc::clone(&election) as _);
            let ctx = ControllerContext { cluster: ctx.cluster.behind(Arc::new(both)), ..ctx.clone() };
            Box::new(Branch { election: Some(election), ctx, controllers, inner: None })
        });
        let branch = Branch { election, ctx, controllers: parts.controllers, inner };
        branch.check()?;
        Ok(Self { branch })
    }

    pub const fn ctx(&self) -> &ControllerContext {
        &self.branch.ctx
    }

    /// Its part in the election; `None` if there is none.
    pub const fn election(&self) -> Option<&Arc<Election>> {
        self.branch.election.as_ref()
    }

    /// Works until `stop`, then ends what is under way, stops the clouds and releases the Lease, unless something that was
    /// sent may still take effect. Dropping the future is a crash: the next leader waits until the Lease expires.
    pub async fn run(&self, stop: impl Future<Output = ()> + Send) {
        let ControllerContext { cluster, recorder, random, .. } = self.ctx();
        let ground = join3(cluster.watch(random), recorder.run(), cluster.learn_version(random));
        let told = OnceLock::new();
        let stop = async {
            stop.await;
            told.get_or_init(|| cluster.clock().now());
        };
        tokio::select! {
            biased;
            _ = self.branch.run(stop.shared(), self.stop_clouds(&told).boxed()) => {}
            _ = ground => {}
        }
    }

    /// Stops all clouds at the same time, within what is left of the grace since the program was `told` to stop.
    async fn stop_clouds(&self, told: &OnceLock<Tick>) {
        let ControllerContext { cluster, clouds, .. } = self.ctx();
        let now = cluster.clock().now();
        let left = (*told.get().unwrap_or(&now) + GRACE).since(now);
        let call = &cluster.call(left);
        let stops = clouds.iter().map(|cloud| async move {
            let stop = AssertUnwindSafe(cloud.provider.stop(call)).catch_unwind();
            match tokio::time::timeout(left, stop).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => {
                    tracing::error!(cloud = cloud.name(), "internal error: the stop of a cloud panicked");
                }
                Err(_) => tracing::warn!(cloud = cloud.name(), "cloud not stopped in time"),
            }
        });
        join_all(stops).await;
    }
}

/// Controllers behind a lock, and those behind a further lock that is asked for only while this one is held.
struct Branch {
    election: Option<Arc<Election>>,
    ctx: ControllerContext,
    controllers: ControllerSettings,
    inner: Option<Box<Branch>>,
}

impl Branch {
    /// Reports mistakes in the controllers' settings now instead of when this replica first leads.
    fn check(&self) -> Result<()> {
        ControllerSet::new(&self.ctx, &self.controllers)?;
        self.inner.as_ref().map_or(Ok(()), |inner| inner.check())
    }

    /// Works until `stop`, and lets the lock go after `last`. Returns whether all work had ended.
    fn run<'a, S>(&'a self, stop: Shared<S>, last: BoxFuture<'a, ()>) -> BoxFuture<'a, bool>
    where
        S: Future<Output = ()> + Send + 'a,
    {
        Box::pin(async move {
            let work = async {
                let ended = self.terms(&stop).await;
                last.await;
                if let Some(election) = &self.election {
                    election.close();
                    if ended {
                        // Events are written beside the work. Should one not end, the election keeps the Lease.
                        let _ = tokio::time::timeout(CLAIM_RESERVE, election.settled()).await;
                    } else {
                        election.cut_short();
                    }
                    election.stop();
                }
                ended
            };
            let both = join(work, self.stand());
            tokio::select! {
                biased;
                (ended, ()) = both => ended,
                never = self.close_in_time(&stop) => match never {},
            }
        })
    }

    async fn stand(&self) {
        if let Some(election) = &self.election
            && !election.run().await
        {
            tracing::warn!("lease not released; the next leader waits until it expires");
        }
    }

    /// Shuts the gate for new writes early enough for those that were sent to be answered.
    async fn close_in_time<S: Future<Output = ()> + Send>(&self, stop: &Shared<S>) -> Infallible {
        stop.clone().await;
        tokio::time::sleep(LAST_WRITE).await;
        if let Some(election) = &self.election {
            election.close();
        }
        pending().await
    }

    /// Runs a new set of controllers for each term of leading, until `stop`. Returns whether all work had ended.
    async fn terms<S: Future<Output = ()> + Send>(&self, stop: &Shared<S>) -> bool {
        loop {
            let led = async {
                match &self.election {
                    Some(election) => Some(election.led().await),
                    None => None,
                }
            };
            let term = tokio::select! {
                biased;
                () = stop.clone() => return true,
                term = led => term,
            };
            let lost = async {
                match (&self.election, term) {
                    (Some(election), Some(term)) => election.lost(term).await,
                    _ => pending().await,
                }
            };
            let mut lost = pin!(lost);
            // A replica whose watches were broken must not act on old stores: nodes and Services may have come back
            // since, and what belongs to them in the cloud would be deleted.
            tokio::select! {
                biased;
                () = stop.clone() => return true,
                () = &mut lost => continue,
                () = self.ctx.cluster.current() => {}
            }
            let Ok(controllers) = ControllerSet::new(&self.ctx, &self.controllers) else { return true };
            tracing::info!(?controllers, "this replica leads");
            let inner = async {
                match &self.inner {
                    Some(inner) => inner.run(stop.clone(), ready(()).boxed()).await,
                    None => true,
                }
            };
            tokio::select! {
                biased;
                () = &mut lost => tracing::warn!("this replica does not lead any more; it stays in the election"),
                (ended, inner) = join(controllers.run_until(stop.clone(), GRACE), inner) => return ended && inner,
            }
        }
    }
}

/// What is written behind two locks needs both claims.
struct Both(Arc<dyn Gate>, Arc<dyn Gate>);

impl Gate for Both {
    fn claim_until(&self) -> Option<Tick> {
        Some(self.0.claim_until()?.min(self.1.claim_until()?))
    }

    fn write_began(&self) {
        self.0.write_began();
        self.1.write_began();
    }

    fn write_ended(&self, in_doubt_until: Option<Tick>) {
        self.0.write_ended(in_doubt_until);
        self.1.write_ended(in_doubt_until);
    }
}

impl fmt::Debug for Replica {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replica").field("ctx", self.ctx()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Until(Option<u64>);

    impl Gate for Until {
        fn claim_until(&self) -> Option<Tick> {
            self.0.map(Tick::from_secs)
        }
    }

    #[test]
    fn two_locks_need_two_claims() {
        let table = [
            (Some(5), Some(9), Some(5)),
            (Some(9), Some(5), Some(5)),
            (None, Some(5), None),
            (Some(5), None, None),
        ];
        for (one, two, want) in table {
            let both = Both(Arc::new(Until(one)), Arc::new(Until(two)));
            assert_eq!(both.claim_until(), want.map(Tick::from_secs), "L9-40 {one:?} {two:?}");
        }
    }
}
