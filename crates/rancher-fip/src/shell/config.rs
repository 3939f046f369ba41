//! Keeps the configuration current, by reading it again and again: our role may not watch it.

use std::{sync::Arc, time::Duration};

use cloudberth_core::Random;
use tokio::sync::watch;

use super::Api;
use crate::{
    config::Loaded,
    names::{CA_SECRET, CONFIG_MAP},
};

/// Reads the configuration once.
pub(super) async fn load(local: &Api, namespace: &str, last: &Loaded) -> Loaded {
    let map = local.get(&format!("/api/v1/namespaces/{namespace}/configmaps"), CONFIG_MAP).await;
    let secret = local.get(&format!("/api/v1/namespaces/{namespace}/secrets"), CA_SECRET).await;
    last.after(&map, &secret)
}

/// Keeps the configuration current until it is dropped. `changed` is called whenever another one is in force.
pub(super) async fn follow(
    local: &Api,
    namespace: &str,
    random: &Arc<Random>,
    poll: Duration,
    held: &watch::Sender<Loaded>,
    changed: impl Fn(),
) {
    loop {
        let last = held.borrow().clone();
        let new = load(local, namespace, &last).await;
        if new.trouble != last.trouble && !new.trouble.is_empty() {
            let kept = if new.good.is_some() { "; the last good configuration stays in force" } else { "" };
            tracing::error!("the configuration cannot be used{kept}: {}", new.trouble.join("; "));
        }
        if new.warnings != last.warnings {
            new.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
        }
        let news = new.good != last.good;
        if news && new.good.is_some() {
            tracing::info!("a new configuration is in force");
        }
        held.send_replace(new);
        if news {
            changed();
        }
        tokio::time::sleep(random.jitter(poll, 0.1)).await;
    }
}
