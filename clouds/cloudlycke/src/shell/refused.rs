//! What the service has refused, so that it is not asked for it again and again.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use cloudberth_core::{Clock, Tick};

use crate::{action::Refused, api::Key};

/// After this time the service is asked again: whoever has an address may have let go of it.
const FOR: Duration = Duration::from_secs(300);
/// The same for a load balancer that is not there yet, whose Service serves nobody meanwhile.
const FOR_A_NEW_ONE: Duration = crate::plan::ASK_AGAIN;
/// Remembered of one load balancer: more than one spec can ask for.
const MOST: usize = 8;

/// By load balancer, the newest last.
pub(super) struct Refusals {
    clock: Arc<dyn Clock>,
    all: Mutex<BTreeMap<Key, Vec<(Refused, Tick)>>>,
}

impl Refusals {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, all: Mutex::default() }
    }

    pub(super) fn remember(&self, key: &Key, refused: &Refused) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.entry(key.clone()).or_default();
        known.retain(|(one, _)| (&one.what, &one.mode) != (&refused.what, &refused.mode));
        if known.len() >= MOST {
            known.remove(0);
        }
        known.push((refused.clone(), self.clock.now()));
    }

    /// What was refused not long ago.
    pub(super) fn remembered(&self, key: &Key, is_new: bool) -> Vec<Refused> {
        let now = self.clock.now();
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, known| {
            known.retain(|(_, at)| now.since(*at) < FOR);
            !known.is_empty()
        });
        let age = if is_new { FOR_A_NEW_ONE } else { FOR };
        let known = all.get(key).into_iter().flatten();
        known.filter(|(_, at)| now.since(*at) < age).map(|(refused, _)| refused.clone()).collect()
    }
}
