//! One of the two copies of the program that run side by side, and the ways in which it ends.

use std::{sync::Arc, time::Duration};

use cloudberth_core::{Clock, Dice, decide::election::Config};
use cloudberth_fake::{Cloud, FakeProvider};
use cloudberth_runtime::election::Election;
use cloudberth_sim::kube::KubeApi;
use http::HeaderValue;
use kube::Client;
use tokio::{sync::watch, task::JoinHandle};

use crate::{
    clock::SkewedClock,
    program::{Broken, Program},
    wire::{Partition, Wire},
    witness::Witness,
};

/// What the names of all replicas begin with, in both call logs.
pub(crate) const PROGRAM: &str = "reference-program";

/// The most that one way of a request to the Kubernetes API takes.
const LATENCY: Duration = Duration::from_millis(50);

/// What a replica is started with.
pub(crate) struct Site<'a> {
    pub(crate) api: &'a KubeApi,
    pub(crate) cloud: &'a Cloud,
    pub(crate) clock: &'a Arc<dyn Clock>,
    pub(crate) dice: &'a Arc<Dice>,
    pub(crate) witness: &'a Arc<Witness>,
    pub(crate) broken: Option<Broken>,
}

/// A place for one copy of the program. A copy that ended is followed by another one, under another name.
pub(crate) struct Replica {
    slot: usize,
    lives: u32,
    pub(crate) identity: String,
    pub(crate) partition: Arc<Partition>,
    task: Option<JoinHandle<()>>,
    stop: watch::Sender<bool>,
}

impl Replica {
    pub(crate) fn new(slot: usize) -> Self {
        Self {
            slot,
            lives: 0,
            identity: String::new(),
            partition: Arc::default(),
            task: None,
            stop: watch::Sender::new(false),
        }
    }

    /// Starts a copy with a clock and a name of its own. What ran before must have ended.
    pub(crate) fn start(&mut self, site: &Site<'_>) {
        self.lives += 1;
        self.identity = format!("{PROGRAM}-{}.{}", self.slot, self.lives);
        self.stop = watch::Sender::new(false);
        let clock: Arc<dyn Clock> = Arc::new(SkewedClock::draw(site.clock, site.dice));
        let wire = Wire {
            api: site.api.service(),
            who: HeaderValue::from_str(&self.identity).unwrap_or(HeaderValue::from_static(PROGRAM)),
            dice: Arc::clone(site.dice),
            latency: LATENCY,
            partition: Arc::clone(&self.partition),
            witness: Some(Arc::clone(site.witness)),
        };
        let client = Client::new(wire, "default");
        let dice = Arc::new(Dice::seeded(site.dice.bits()));
        let config = Config::with_defaults(&self.identity);
        let election = Election::new(client.clone(), config, Arc::clone(&clock), Arc::clone(&dice), |_| ());
        site.witness.meet(&self.identity, &election, &clock);
        let provider = FakeProvider::new("fake", site.cloud, &self.identity, Arc::clone(&clock));
        let program = Program {
            client,
            provider: Arc::new(provider),
            clock,
            dice,
            election,
            stop: self.stop.subscribe(),
            broken: site.broken,
        };
        self.task = Some(tokio::spawn(program.run()));
    }

    /// Ends it at whatever it is doing, without a word.
    pub(crate) async fn kill(&mut self, witness: &Witness) {
        if let Some(task) = self.task.take() {
            task.abort();
            // Waits until everything that it held is dropped; the error says that it was told to.
            let _ = task.await;
        }
        witness.bury(&self.identity);
    }

    /// Tells it to finish what it is at, let go of the Lease, and end.
    pub(crate) fn retire(&self) {
        self.stop.send_replace(true);
    }

    pub(crate) fn is_retiring(&self) -> bool {
        *self.stop.borrow()
    }

    /// Waits for one that was told to end.
    pub(crate) async fn retired(&mut self, witness: &Witness) {
        if let Some(task) = self.task.take() {
            // One that died of something else is missed by whoever asks whether it lives.
            let _ = task.await;
        }
        witness.bury(&self.identity);
    }

    /// Whether it is still there; it never ends by itself.
    pub(crate) fn lives(&self) -> bool {
        self.task.as_ref().is_some_and(|task| !task.is_finished())
    }
}
