//! An API that is a script.

use std::{sync::Arc, time::Duration};

use cloudberth_brightbox::{BrightboxProvider, Settings, Surroundings};
use cloudberth_core::{Call, Clock, Random, Secret, call::Unguarded};
use cloudberth_http::{
    NoResolver, TokenSource, Unobserved,
    surroundings::SystemClock,
    testing::{Reply, ScriptedCloud},
};
use serde_json::{Value, json};

pub(crate) const TOKENS: &str = "POST /token/";
pub(crate) const ACCOUNT: (&str, &str) = ("BRIGHTBOX_ACCOUNT", "acc-9t4wz");

pub(crate) struct Script {
    pub(crate) cloud: ScriptedCloud,
    pub(crate) provider: BrightboxProvider,
    clock: Arc<dyn Clock>,
}

/// A token that lasts two hours.
pub(crate) fn token(text: &str) -> Reply {
    Reply::json(200, &json!({"access_token": text, "token_type": "bearer", "expires_in": 7200}))
}

impl Script {
    /// With these variables beside client and secret.
    pub(crate) fn new(client: &str, variables: &[(&str, &str)]) -> Self {
        let cloud = ScriptedCloud::new();
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
        let source = |text| Ok(Some(TokenSource::fixed(Secret::new(text).unwrap())));
        let get = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
        let settings = Settings::read(source(client), source("s3cr3t"), get).unwrap();
        let around = Surroundings {
            transport: cloud.transport(),
            clock: Arc::clone(&clock),
            random: Arc::new(Random::seeded(1)),
            observer: Arc::new(Unobserved),
            resolver: Arc::new(NoResolver),
        };
        Self { provider: BrightboxProvider::new(&settings, around), cloud, clock }
    }

    /// An API client that is let in.
    pub(crate) fn signed_in() -> Self {
        let script = Self::new("cli-xxxxx", &[ACCOUNT]);
        script.cloud.always(TOKENS, token("t0k3n"));
        script
    }

    pub(crate) fn call(&self) -> Call {
        Call::new(self.clock.now() + Duration::from_secs(120), Arc::new(Unguarded))
    }
}

/// A server with one interface; `more` is put over it.
pub(crate) fn server(id: &str, more: &Value) -> Value {
    let mut server = json!({
        "id": id, "resource_type": "server", "name": "worker-1", "status": "active", "locked": false,
        "hostname": id, "fqdn": format!("{id}.gb1.brightbox.com"),
        "zone": {"id": "zon-2hh1a", "handle": "gb1-a"},
        "server_type": {"id": "typ-6uq0c", "name": "2GB SSD", "handle": "2gb.ssd"},
        "interfaces": [{"id": "int-w81zz", "ipv4_address": "10.241.7.22", "ipv6_address": "2a02:1348:17c:41:24:19ff:fe0a:1"}],
        "cloud_ips": [], "server_groups": [],
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        server[key] = value.clone();
    }
    server
}
