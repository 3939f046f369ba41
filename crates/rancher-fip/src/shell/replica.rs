//! One replica of the program.
//!
//! ```text
//!   configuration, watches, discovery ── all the time, so that a standby is warm
//!   a configuration and Helm ─► election ─► leads ─► controllers ─► told to stop: what is under way ends, the Lease is released
//!                                                                 └► the Lease is lost: everything stops, exit code 1
//! ```

use std::{
    fmt,
    sync::{Arc, Mutex, OnceLock, Weak},
    time::Duration,
};

use cloudberth_core::{
    Clock, Random,
    call::{CLAIM_RESERVE, Gate, Unguarded},
    decide::election::Config as LeaseConfig,
};
use cloudberth_runtime::{
    election::Election,
    metrics::{Counter, QueueMetrics},
    recorder::{Event, EventRecorder},
    writer::Writer,
};
use futures_util::future::{join, join3, join4, pending};
use kube::Client;
use tokio::sync::{Semaphore, watch};

use super::{
    Api, Context, Dial, Effects, Stores, Tokens, config,
    controllers::{Controllers, Router},
    lock,
    stores::Heard,
};
use crate::{
    config::Loaded,
    helm::{Helm, Leash},
    metrics::FipMetrics,
    options::Options,
    reasons::LEADER_ELECTION,
};

/// What a replica is made of.
pub struct Parts {
    /// The client of the management cluster.
    pub client: Client,
    /// The client for the Lease, so that nothing delays a renewal.
    pub lease_client: Client,
    /// The options.
    pub options: Options,
    /// Who we are in the election.
    pub identity: String,
    /// The way into downstream clusters.
    pub dial: Arc<dyn Dial>,
    /// Whoever installs charts.
    pub helm: Arc<dyn Helm>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Jitter.
    pub random: Arc<Random>,
    /// Tokens.
    pub tokens: Tokens,
    /// What is measured.
    pub metrics: FipMetrics,
    /// What is measured of the queues.
    pub queues: QueueMetrics,
    /// Events that were never written.
    pub events_dropped: Counter,
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts").field("options", &self.options).finish_non_exhaustive()
    }
}

/// Why a replica ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It was told to.
    Stopped,
    /// It was told to, and something under way had to be given up.
    CutShort,
    /// It lost the Lease.
    LostLease,
}

/// One replica.
pub struct Replica {
    parts: Parts,
    election: Option<Arc<Election>>,
    gate: Arc<dyn Gate>,
    local: Api,
    stores: Arc<Stores>,
    recorder: Arc<EventRecorder>,
    router: Arc<Router>,
    held: watch::Sender<Loaded>,
    helm: Mutex<Result<String, String>>,
}

impl Replica {
    /// A replica that does nothing before [`run`](Self::run).
    pub fn new(parts: Parts) -> Self {
        let Options { leader_elect, lease_name, lease_namespace, delays, .. } = &parts.options;
        // The recorder writes under the claim of the election that it reports about.
        let told_by: Arc<OnceLock<Weak<EventRecorder>>> = Arc::default();
        let election = leader_elect.then(|| {
            let told_by = Arc::clone(&told_by);
            let tell = move |what: Event| {
                if let Some(recorder) = told_by.get().and_then(Weak::upgrade) {
                    recorder.publish(what);
                }
            };
            let config = LeaseConfig {
                namespace: lease_namespace.clone(),
                name: lease_name.clone(),
                ..LeaseConfig::with_defaults(&parts.identity)
            };
            let (clock, random) = (Arc::clone(&parts.clock), Arc::clone(&parts.random));
            Election::new(parts.lease_client.clone(), config, clock, random, LEADER_ELECTION, tell)
        });
        let gate: Arc<dyn Gate> = match &election {
            Some(election) => Arc::clone(election) as _,
            None => Arc::new(Unguarded),
        };
        let writer = Writer::new(parts.client.clone(), Arc::clone(&parts.clock), Arc::clone(&gate));
        let recorder =
            EventRecorder::optional(writer.clone(), Arc::clone(&parts.random), parts.events_dropped.clone());
        told_by.get_or_init(|| Arc::downgrade(&recorder));
        Self {
            local: Api::new(writer, "local", delays.local_timeout, Effects::Live),
            stores: Stores::new(&parts.clock),
            election,
            gate,
            recorder,
            router: Arc::default(),
            held: watch::Sender::default(),
            helm: Mutex::new(Err("not checked yet".to_owned())),
            parts,
        }
    }

    /// Its part in the election; `None` if there is none.
    pub const fn election(&self) -> Option<&Arc<Election>> {
        self.election.as_ref()
    }

    /// The objects of the management cluster.
    pub const fn stores(&self) -> &Arc<Stores> {
        &self.stores
    }

    /// Why it is not ready, if it is not.
    pub fn not_ready(&self) -> Result<(), String> {
        let loaded = self.held.borrow().clone();
        if !loaded.trouble.is_empty() {
            return Err(format!("the configuration cannot be used: {}", loaded.trouble.join("; ")));
        }
        if loaded.good.is_none() {
            return Err("there is no configuration yet".to_owned());
        }
        lock(&self.helm).clone().map(|_| ())
    }

    /// Works until `stop`, or until the Lease is lost. Dropping the future is a crash.
    pub async fn run(&self, stop: impl Future<Output = ()> + Send) -> Ended {
        let Parts { client, random, options, .. } = &self.parts;
        let heard: Arc<dyn Heard> = Arc::clone(&self.router) as _;
        let _listening = self.stores.listen(&heard);
        let delays = options.delays;
        let changed = || {
            if let Some(controllers) = self.router.controllers() {
                controllers.enqueue_all();
            }
        };
        let around = join4(
            self.stores.watch(client, random),
            self.stores.discover(&self.local, random, &heard, delays.discovery_poll),
            config::follow(
                &self.local,
                &options.app_namespace,
                random,
                delays.config_poll,
                &self.held,
                changed,
            ),
            join(self.recorder.run(), self.check_helm(delays.config_poll)),
        );
        tokio::select! {
            biased;
            ended = self.lead(stop) => ended,
            _ = around => Ended::LostLease,
        }
    }

    /// Without Helm nothing can be done; it is looked for again and again.
    async fn check_helm(&self, poll: Duration) {
        loop {
            let found = self.parts.helm.check().await.map_err(|why| why.message);
            let news = *lock(&self.helm) != found;
            if news {
                match &found {
                    Ok(version) => tracing::info!(version, "helm found"),
                    Err(why) => tracing::error!(why, "helm cannot be used"),
                }
            }
            let good = found.is_ok();
            *lock(&self.helm) = found;
            if good {
                return pending().await;
            }
            tokio::time::sleep(poll).await;
        }
    }

    /// Whether this replica could do the work of a leader.
    async fn until_able(&self) {
        let mut loaded = self.held.subscribe();
        // It cannot fail: the sender lives as long as we do.
        let _ = loaded.wait_for(|loaded| loaded.good.is_some()).await;
        while lock(&self.helm).is_err() {
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }

    async fn lead(&self, stop: impl Future<Output = ()> + Send) -> Ended {
        let mut stop = std::pin::pin!(stop);
        // Whoever has no configuration does not hold the Lease.
        tokio::select! {
            biased;
            () = &mut stop => return Ended::Stopped,
            () = self.until_able() => {}
        }
        let Some(election) = &self.election else { return self.term(stop, pending()).await };
        let work = async {
            let term = tokio::select! {
                biased;
                () = &mut stop => {
                    election.close();
                    election.stop();
                    return Ended::Stopped;
                }
                term = election.led() => term,
            };
            let ended = self.term(stop, election.lost(term)).await;
            election.close();
            match ended {
                Ended::Stopped => {
                    // Events are written beside the work. Should one not end, the Lease is kept.
                    let _ = tokio::time::timeout(CLAIM_RESERVE, election.settled()).await;
                }
                Ended::CutShort | Ended::LostLease => election.cut_short(),
            }
            election.stop();
            ended
        };
        let (ended, released) = join(work, election.run()).await;
        if !released && ended == Ended::Stopped {
            tracing::debug!("the Lease was not released");
        }
        ended
    }

    /// One term of leading.
    async fn term(
        &self,
        stop: impl Future<Output = ()> + Send,
        lost: impl Future<Output = ()> + Send,
    ) -> Ended {
        let (tell, told) = watch::channel(false);
        let ctx = self.context(told);
        let controllers = Controllers::new(ctx, self.parts.options.workers, &self.parts.queues);
        let mut lost = std::pin::pin!(lost);
        let mut stop = std::pin::pin!(stop);
        // A replica whose watches were broken must not act on old stores.
        let current = async {
            self.stores.clusters.until_synced().await;
            self.stores.clusters.current().await;
        };
        tokio::select! {
            biased;
            () = &mut lost => return Ended::LostLease,
            () = &mut stop => return Ended::Stopped,
            () = current => {}
        }
        self.router.lead(&controllers);
        tracing::info!("this replica leads");
        let mut work = std::pin::pin!(controllers.run());
        tokio::select! {
            biased;
            () = &mut lost => {
                controllers.close();
                // Helm was told to end at the renew deadline and has until the end of the Lease; its leash sees to both.
                // All else finds its gate closed.
                let _ = tokio::time::timeout(spare(), work).await;
                return Ended::LostLease;
            }
            () = &mut stop => {}
            () = &mut work => return Ended::CutShort,
        }
        tracing::info!("stopping; waiting for work under way");
        controllers.close();
        // Helm is told to end; the release is then failed or finished, and not pending.
        tell.send_replace(true);
        tokio::select! {
            biased;
            () = async {
                (&mut lost).await;
                tokio::time::sleep(spare()).await;
            } => Ended::LostLease,
            () = &mut work => Ended::Stopped,
            () = tokio::time::sleep(self.parts.options.delays.grace) => Ended::CutShort,
        }
    }

    fn context(&self, told: watch::Receiver<bool>) -> Arc<Context> {
        let Parts { options, clock, random, .. } = &self.parts;
        Arc::new(Context {
            local: self.local.clone(),
            stores: Arc::clone(&self.stores),
            dial: Arc::clone(&self.parts.dial),
            helm: Arc::clone(&self.parts.helm),
            helm_slots: Semaphore::new(options.helm_processes),
            leash: Leash::new(Arc::clone(clock), Arc::clone(&self.gate), spare(), told),
            config: self.held.subscribe(),
            recorder: Some(Arc::clone(&self.recorder)),
            metrics: self.parts.metrics.clone(),
            random: Arc::clone(random),
            tokens: Arc::clone(&self.parts.tokens),
            delays: options.delays,
            memories: Mutex::default(),
        })
    }

    /// What would be done now, without doing it.
    pub async fn dry_run(&self, patience: Duration) -> super::Plan {
        let Parts { client, random, options, .. } = &self.parts;
        let heard: Arc<dyn Heard> = Arc::clone(&self.router) as _;
        let delays = options.delays;
        let around = join3(
            self.stores.watch(client, random),
            self.stores.discover(&self.local, random, &heard, delays.discovery_poll),
            config::follow(
                &self.local,
                &options.app_namespace,
                random,
                delays.config_poll,
                &self.held,
                || (),
            ),
        );
        let (_tell, told) = watch::channel(false);
        let ctx = self.context(told);
        tokio::select! {
            biased;
            plan = super::dry_run(&ctx, patience) => plan,
            _ = around => super::Plan::default(),
        }
    }
}

/// How long the Lease lasts after the renew deadline.
fn spare() -> Duration {
    let lease = LeaseConfig::with_defaults("");
    lease.lease_duration.saturating_sub(lease.renew_deadline)
}

impl fmt::Debug for Replica {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replica").field("stores", &self.stores).finish_non_exhaustive()
    }
}
