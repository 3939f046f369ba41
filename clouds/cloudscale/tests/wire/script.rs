//! A provider whose API is a script.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use cloudberth_cloudscale::{CloudscaleProvider, Settings, Surroundings};
use cloudberth_core::{Call, Clock, Instances, Provider, Random, Secret, call::Unguarded};
use cloudberth_http::{Attempt, Observer, TokenSource, surroundings::SystemClock, testing::ScriptedCloud};
use serde_json::{Value, json};

pub(crate) const TOKEN: &str = "t0k3n-of-the-project";
pub(crate) const ONE: &str = "00000000-0000-4000-8000-000000000001";
pub(crate) const TWO: &str = "00000000-0000-4000-8000-000000000002";

/// The names of the operations that were attempted.
#[derive(Debug, Default)]
pub(crate) struct Names(Mutex<Vec<&'static str>>);

impl Observer for Names {
    fn attempted(&self, attempt: Attempt) {
        self.0.lock().unwrap().push(attempt.operation);
    }
}

pub(crate) struct Script {
    pub(crate) cloud: ScriptedCloud,
    pub(crate) provider: CloudscaleProvider,
    clock: Arc<SystemClock>,
    names: Arc<Names>,
}

impl Script {
    pub(crate) fn new() -> Self {
        let cloud = ScriptedCloud::new();
        let clock = Arc::new(SystemClock::default());
        let names = Arc::new(Names::default());
        let token = TokenSource::fixed(Secret::new(TOKEN).unwrap());
        let settings = Settings::read(Ok(Some(token)), |_| None).unwrap();
        let around = Surroundings {
            transport: cloud.transport(),
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            random: Arc::new(Random::seeded(1)),
            observer: Arc::clone(&names) as Arc<dyn Observer>,
        };
        Self { cloud, provider: CloudscaleProvider::new(&settings, around), clock, names }
    }

    pub(crate) fn call(&self) -> Call {
        Call::new(self.clock.now() + Duration::from_secs(120), Arc::new(Unguarded))
    }

    pub(crate) fn instances(&self) -> &dyn Instances {
        self.provider.instances().unwrap()
    }

    pub(crate) fn operations(&self) -> Vec<&'static str> {
        self.names.0.lock().unwrap().clone()
    }
}

pub(crate) fn server(uuid: &str, name: &str) -> Value {
    let address = json!({"address": "10.0.0.7", "subnet": {"uuid": "55ee"}});
    json!({"uuid": uuid, "name": name, "status": "running", "zone": {"slug": "rma1"}, "flavor": {"slug": "flex-4-2"},
           "interfaces": [{"type": "private", "addresses": [address]}]})
}
