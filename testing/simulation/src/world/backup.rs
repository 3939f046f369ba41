//! etcd is restored from a backup.

use std::{collections::BTreeSet, time::Duration};

use cloudberth_core::{ServiceView, decide::service::FINALIZER, view::ServiceType};

use super::{Alarm, World};
use crate::{
    clouds::NamedCloud,
    people::{CLUSTER, node_name, service_name},
    wire::Cut,
};

/// By when after a restore every Service that wants a load balancer has its finalizer: the Lease expires, the watches are
/// resumed and the cloud is looked at.
const ADOPTION: Duration = Duration::from_secs(60);
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
        let names = self.node_names().await;
        if let Some(backup) = &self.backup {
            self.api.restore(backup);
            self.witness.restored();
        }
        let now = self.clock.now();
        let services = self.people.all_services().await.unwrap_or_default();
        let wants =
            |service: &&ServiceView| !service.deleting && service.service_type == ServiceType::LoadBalancer;
        for service in services.iter().filter(wants) {
            // It wants again what somebody had said since that it does not.
            if let Some((_, until)) = self.condemned.get_mut(&service.uid).and_then(|spans| spans.last_mut())
            {
                until.get_or_insert(now);
            }
        }
        let held = |service: &&ServiceView| service.finalizers.iter().any(|finalizer| finalizer == FINALIZER);
        let known = services.iter().filter(|service| wants(service) || held(service));
        let known: BTreeSet<_> = known.map(|service| format!("{CLUSTER}-{}", service.uid)).collect();
        for NamedCloud { name, cloud } in self.clouds.iter() {
            let unknown = cloud.balancers().into_iter().filter(|balancer| !known.contains(&balancer.name));
            self.orphaned.extend(unknown.map(|balancer| (*name, balancer.id)));
        }
        self.settle_nodes(&names).await;
        self.restored = Some(now);
        self.power.mend();
    }

    /// A Service is about to say that it needs no load balancer. If the backup had it without a finalizer and nobody could
    /// put one on since, it goes at once, and nothing is left that tells of a load balancer which was built after the
    /// backup.
    pub(super) async fn abandon(&mut self, service: u8) {
        if self.restored.is_none_or(|at| self.clock.now().since(at) > ADOPTION) {
            return;
        }
        let services = self.people.all_services().await.unwrap_or_default();
        let Some(service) = services.iter().find(|one| one.name == service_name(service)) else { return };
        if service.finalizers.iter().any(|finalizer| finalizer == FINALIZER) {
            return;
        }
        let name = format!("{CLUSTER}-{}", service.uid);
        for NamedCloud { name: cloud_name, cloud } in self.clouds.iter() {
            let its = cloud.balancers().into_iter().filter(|balancer| balancer.name == name);
            self.orphaned.extend(its.map(|balancer| (*cloud_name, balancer.id)));
        }
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
            let instance = self.clouds.named(&name);
            let node = nodes.iter().find(|node| node.name == name);
            match (node, instance) {
                (Some(node), Some((id, _)))
                    if self.witness.runs_on(&node.uid).is_none_or(|its| its != id) =>
                {
                    // The node of an instance that is gone, and another instance has its name.
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
                    self.people.heartbeat(&self.clouds, &name).await;
                }
                (None, None) => self.bury(&name),
            }
        }
    }
}
