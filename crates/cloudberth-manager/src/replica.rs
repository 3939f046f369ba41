//! One replica of the program, from its clients to its controllers.
//!
//! ```text
//!   watches ─────────────────────────────► stores      all the time, so that a standby is warm
//!   election ──► leads ──► a new team ───► loses ──► the team is dropped, the election goes on
//! ```
//!
//! What a process adds (flags, files, ports, signals) is outside: the same replica runs in production, in the
//! simulation and in the demonstration.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use cloudberth_controllers::{
    clouds::{Clouds, Member},
    desk::Desk,
    team::{Team, TeamSettings},
};
use cloudberth_core::{
    Clock, Dice, Result,
    call::{Gate, Unguarded},
    decide::election::Config,
};
use cloudberth_runtime::{
    cluster::Cluster,
    election::Election,
    herald::{Herald, Occurrence},
    metrics::Metrics,
};
use futures_util::{
    FutureExt,
    future::{Shared, join, join3, pending},
};
use kube::Client;

/// How long work that is under way may take to end when the program is told to stop. What takes longer is given up;
/// the next leader takes it up again.
pub const GRACE: Duration = Duration::from_secs(5);

/// What a replica is made of.
pub struct Parts {
    /// The way to the API server.
    pub client: Client,
    /// The way to the Lease: its own, so that no burst of other requests delays a renewal.
    pub lease_client: Client,
    /// The clouds, and the load-balancer classes that each of them claims.
    pub clouds: Vec<Member>,
    /// Who serves Services without a class.
    pub default_cloud: Option<String>,
    /// The name of the cluster.
    pub cluster_name: String,
    /// Which controllers run, and how.
    pub team: TeamSettings,
    /// How the leader is found; `None` if there is one replica only.
    pub election: Option<Config>,
    /// What is counted.
    pub metrics: Metrics,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Chance.
    pub dice: Arc<Dice>,
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.clouds.iter().map(|(cloud, _)| cloud.name()).collect();
        f.debug_struct("Parts").field("clouds", &names).field("team", &self.team).finish_non_exhaustive()
    }
}

/// One replica.
pub struct Replica {
    desk: Desk,
    team: TeamSettings,
    election: Option<Arc<Election>>,
}

impl Replica {
    /// A replica that does nothing before [`run`](Self::run).
    pub fn new(parts: Parts) -> Result<Self> {
        let Parts { client, clock, dice, metrics, .. } = parts;
        // The herald writes under the claim of the election that it tells about.
        let herald: Arc<OnceLock<Arc<Herald>>> = Arc::default();
        let election = parts.election.map(|config| {
            let herald = Arc::clone(&herald);
            let tell = move |what: Occurrence| {
                if let Some(herald) = herald.get() {
                    herald.tell(what);
                }
            };
            Election::new(parts.lease_client, config, Arc::clone(&clock), Arc::clone(&dice), tell)
        });
        let gate: Arc<dyn Gate> = match &election {
            Some(election) => Arc::clone(election) as _,
            None => Arc::new(Unguarded),
        };
        let cluster = Cluster::new(client, Arc::clone(&clock), gate);
        let herald = Arc::clone(herald.get_or_init(|| Herald::new(cluster.clone(), Arc::clone(&dice))));
        let clouds = Clouds::new(parts.clouds, parts.default_cloud, &clock)?;
        let desk = Desk { cluster, clouds, herald, metrics, dice, cluster_name: parts.cluster_name };
        // Whatever is wrong with the controllers' settings is told now, not at the first time of leading.
        Team::new(&desk, &parts.team)?;
        Ok(Self { desk, team: parts.team, election })
    }

    /// What its controllers work with.
    pub const fn desk(&self) -> &Desk {
        &self.desk
    }

    /// Its part in the election; `None` if there is none.
    pub const fn election(&self) -> Option<&Arc<Election>> {
        self.election.as_ref()
    }

    /// Works until `stop`, then ends what is under way and lets go of the Lease. Dropping it is a crash: nothing is let
    /// go of, and the next leader waits for the end of the Lease.
    pub async fn run(&self, stop: impl Future<Output = ()> + Send) {
        let stop = stop.shared();
        let Desk { cluster, herald, dice, .. } = &self.desk;
        let ground = join3(
            cluster.nodes.run(cluster.client().clone(), Arc::clone(dice)),
            cluster.services.run(cluster.client().clone(), Arc::clone(dice)),
            herald.run(),
        );
        let work = async {
            self.terms(&stop).await;
            if let Some(election) = &self.election {
                election.stop();
            }
        };
        tokio::select! {
            biased;
            _ = join(work, self.stand()) => {}
            _ = ground => {}
        }
    }

    async fn stand(&self) {
        if let Some(election) = &self.election
            && !election.run().await
        {
            tracing::warn!("the Lease could not be let go of; the next leader waits for its end");
        }
    }

    /// One team for each time of leading, until the program is told to stop.
    async fn terms<S: Future<Output = ()> + Send>(&self, stop: &Shared<S>) {
        loop {
            let led = async {
                match &self.election {
                    Some(election) => Some(election.led().await),
                    None => None,
                }
            };
            let term = tokio::select! {
                biased;
                () = stop.clone() => return,
                term = led => term,
            };
            let lost = async {
                match (&self.election, term) {
                    (Some(election), Some(term)) => election.lost(term).await,
                    _ => pending().await,
                }
            };
            let Ok(controllers) = Team::new(&self.desk, &self.team) else { return };
            tracing::info!(?controllers, "this replica leads");
            let stopped = tokio::select! {
                biased;
                () = lost => false,
                () = controllers.run_until(stop.clone(), GRACE) => true,
            };
            if stopped {
                return;
            }
            tracing::warn!("this replica does not lead any more; it stands again");
        }
    }
}

impl fmt::Debug for Replica {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replica").field("desk", &self.desk).finish_non_exhaustive()
    }
}
