//! The addresses that the service has refused, so that it is not asked for them again and again.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use cloudberth_core::{Clock, Tick};

use crate::api::Key;

/// After this time the service is asked again: whoever has the address may have let go of it.
const FOR: Duration = Duration::from_secs(300);

struct Refused {
    wanted: String,
    why: String,
    at: Tick,
}

/// By load balancer.
pub(super) struct RefusedAddresses {
    clock: Arc<dyn Clock>,
    all: Mutex<BTreeMap<Key, Refused>>,
}

impl RefusedAddresses {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, all: Mutex::default() }
    }

    pub(super) fn remember(&self, key: &Key, wanted: &str, why: &str) {
        let refused = Refused { wanted: wanted.to_owned(), why: why.to_owned(), at: self.clock.now() };
        self.all.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone(), refused);
    }

    /// The address that was refused not long ago, and why.
    pub(super) fn remembered(&self, key: &Key) -> Option<(String, String)> {
        let now = self.clock.now();
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, refused| now.since(refused.at) < FOR);
        all.get(key).map(|refused| (refused.wanted.clone(), refused.why.clone()))
    }
}
