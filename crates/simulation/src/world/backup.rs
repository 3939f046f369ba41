//! etcd is restored from a backup.

use std::{collections::BTreeSet, time::Duration};

use cloudberth_core::view::ServiceType;

use super::{Alarm, World};
use crate::{people::node_name, wire::Cut};

/// More nodes than these no schedule has.
const NODES: u8 = 16;

impl World {
    /// The API server is away, and comes back with the backup. Nobody can reach it for so long that every claim has
    /// ended by then and every write to a cloud that was under way shows in the cloud's listings.
    pub(super) fn shut_down(&self, seconds: u64) {
        if self.power.is_cut() {
            return;
        }
        self.power.cut(Cut::Refused);
        self.api.restart();
        let alarm = self.alarm.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            let _ = alarm.send(Alarm::Restore);
        });
    }

    pub(super) async fn restore(&mut self) {
        let before = self.people.all_services().await.unwrap_or_default();
        let names = self.node_names().await;
        if let Some(backup) = &self.backup {
            self.api.restore(backup);
            self.witness.restored();
        }
        let now = self.clock.now();
        let after = self.people.all_services().await.unwrap_or_default();
        for service in &after {
            let wanted = !service.deleting && service.service_type == ServiceType::LoadBalancer;
            // It wants again what somebody had said since that it does not.
            if let (true, Some((_, until))) =
                (wanted, self.condemned.get_mut(&service.uid).and_then(|spans| spans.last_mut()))
            {
                until.get_or_insert(now);
            }
        }
        let known: BTreeSet<_> = after.into_iter().map(|service| service.uid).collect();
        self.forgotten
            .extend(before.into_iter().map(|service| service.uid).filter(|uid| !known.contains(uid)));
        self.settle_nodes(&names).await;
        self.power.mend();
    }

    async fn node_names(&self) -> BTreeSet<String> {
        self.people.all_nodes().await.unwrap_or_default().into_iter().map(|node| node.name).collect()
    }

    /// Kubelets find out what the API server has forgotten. `before` are the nodes that it knew until now.
    async fn settle_nodes(&mut self, before: &BTreeSet<String>) {
        let nodes = self.people.all_nodes().await.unwrap_or_default();
        let now = self.clock.now();
        for number in 0..NODES {
            let name = node_name(number);
            let machine = self.sky.named(&name);
            let node = nodes.iter().find(|node| node.name == name);
            match (node, machine) {
                (Some(node), Some((id, _)))
                    if self.witness.runs_on(&node.uid).is_none_or(|its| its != id) =>
                {
                    // The node of a machine that is gone, and another machine has its name.
                    self.people.delete_node(&name).await;
                    self.bury(&name);
                    self.register(number, true).await;
                }
                (None, Some(_)) => {
                    self.bury(&name);
                    self.register(number, true).await;
                }
                (Some(_), _) => {
                    if !before.contains(&name) {
                        self.lives.entry(name.clone()).or_default().push((now, None));
                    }
                    self.people.heartbeat(&self.sky, &name).await;
                }
                (None, None) => self.bury(&name),
            }
        }
    }
}
