//! What people should know beside what is done.

use std::collections::BTreeSet;

use cloudberth_core::{
    lb::{Notice, Severity},
    provider_id::Reading,
    reason::DEPRECATED_ANNOTATION,
};

use super::{Plan, balancer};
use crate::{
    annotations::{APPLIED, CHECK_REQUEST, CHECK_TARGET, CLOUD_IP},
    ids::read_id,
    reasons::{
        CERTIFICATE_PENDING, CHECKS_ASK_WORKLOAD, CLOUD_IP_KEPT, CLUSTER_NAME_SHARED, LOAD_BALANCER_FAILED,
        NODE_WITHOUT_SERVER, SEVERAL_OF_ONE_NAME,
    },
    spec::CloudIpRequest,
    wire::{BalancerStatus, LoadBalancer},
};

/// How many nodes one message names.
const NAMED: usize = 5;

impl Plan<'_> {
    /// Adds everything to what reading the Service gave.
    pub(super) fn tell(&mut self) {
        let mut notices: Vec<Notice> = self.doubles();
        notices.extend(self.failed());
        notices.extend(self.missing_servers());
        if let CloudIpRequest::Address(_) = self.spec.cloud_ip {
            let text = format!("spec.loadBalancerIP: the field is deprecated; use {}", CLOUD_IP.name());
            notices.push(Notice::warning(DEPRECATED_ANNOTATION, text));
        }
        if let Some(cloud_ip) = self.cloud_ip() {
            notices.extend(self.domains.notices(cloud_ip));
            if self.spec.cloud_ip == CloudIpRequest::Own && cloud_ip.name != self.spec.name {
                let message =
                    format!("Cloud IP {} stays in use although nothing asks for it any more", cloud_ip.id);
                notices.push(Notice { severity: Severity::Normal, reason: CLOUD_IP_KEPT, message });
            }
        }
        if let Some(live) = self.live {
            notices.extend(balancer::unwritten(self.want, &self.spec, live, self.observed));
            notices.extend(self.pending_certificates(live));
            notices.extend(self.asks_workload());
            notices.extend(self.strangers(live));
        }
        self.spec.notices.append(&mut notices);
    }

    fn doubles(&self) -> Vec<Notice> {
        let several = |kind: &str, ids: Vec<&str>| {
            let text = format!(
                "several {kind} are called {}: {}; the first is used",
                self.spec.name,
                ids.join(", ")
            );
            (ids.len() > 1).then(|| Notice::warning(SEVERAL_OF_ONE_NAME, text))
        };
        let alive = self.observed.balancers.iter().filter(|one| one.status.is_alive());
        let groups = self.observed.groups.iter().map(|one| one.id.as_str());
        let policies = self.observed.policies.iter().map(|one| one.id.as_str());
        let all = [
            several("load balancers", alive.map(|one| one.id.as_str()).collect()),
            several("server groups", groups.collect()),
            several("firewall policies", policies.collect()),
        ];
        all.into_iter().flatten().collect()
    }

    fn failed(&self) -> Option<Notice> {
        let text = match (self.observed.failed(), &self.observed.replaced) {
            (Some(failed), _) => format!("load balancer {} is {}", failed.id, failed.status.as_str()),
            (None, Some(id)) => format!("load balancer {id} has failed and is replaced"),
            (None, None) => return None,
        };
        Some(Notice::warning(LOAD_BALANCER_FAILED, text))
    }

    fn missing_servers(&self) -> Option<Notice> {
        let missing = &self.observed.servers.missing;
        let few: Vec<_> = missing.iter().take(NAMED).map(|(node, why)| format!("{node}: {why}")).collect();
        let text = format!("{} nodes take no traffic: {}", missing.len(), few.join("; "));
        (!missing.is_empty()).then(|| Notice::warning(NODE_WITHOUT_SERVER, text))
    }

    fn pending_certificates(&self, live: &LoadBalancer) -> Vec<Notice> {
        // One that is being built, or was written just now, cannot have a certificate yet.
        let new = live.status == BalancerStatus::Creating || self.observed.written;
        let domains = live.acme.iter().flat_map(|acme| &acme.domains);
        let pending = domains.filter(|domain| self.spec.is_https() && !new && !domain.is_valid());
        let notice = pending.map(|domain| {
            let said = domain.last_message.as_deref().unwrap_or("no message");
            let text = format!("the certificate of {} is {}: {said}", domain.identifier, domain.status);
            Notice::warning(CERTIFICATE_PENDING, text)
        });
        notice.collect()
    }

    /// Said once, with the first thing that is written for a Service: it is what people trip over, and no mistake.
    fn asks_workload(&self) -> Option<Notice> {
        let new = self.observed.written && !self.want.service.annotations.contains_key(APPLIED.name());
        if !new || !self.spec.asks_workload {
            return None;
        }
        let (path, port) = (self.spec.check.request.as_deref().unwrap_or_default(), self.spec.check.port);
        let message = format!(
            "the workload itself is asked for {path} on node port {port} to see whether a node may take traffic; where it \
             does not answer that, set {} to another path, or {} to kube-proxy",
            CHECK_REQUEST.name(),
            CHECK_TARGET.name()
        );
        Some(Notice { severity: Severity::Normal, reason: CHECKS_ASK_WORKLOAD, message })
    }

    /// Several servers take traffic, and none of them is a node of this cluster: another one may have the same name.
    fn strangers(&self, live: &LoadBalancer) -> Option<Notice> {
        let nodes = self.want.nodes.iter().filter_map(|node| {
            let text = node.provider_id.as_deref().unwrap_or(&node.name);
            match read_id(text, self.switches.k3s) {
                Reading::Mine(id) => Some(id.id().to_owned()),
                Reading::Malformed | Reading::Foreign => None,
            }
        });
        let ours: BTreeSet<String> = nodes.chain(self.observed.servers.found.iter().cloned()).collect();
        let strange = live.nodes.iter().all(|node| !ours.contains(&node.id));
        if self.observed.written || ours.is_empty() || live.nodes.len() < 2 || !strange {
            return None;
        }
        let text = format!(
            "none of the {} servers behind load balancer {} ({}) is a node of this cluster; if another cluster of this \
             account has the same --cluster-name, rename one of them",
            live.nodes.len(),
            live.name,
            live.id
        );
        Some(Notice::warning(CLUSTER_NAME_SHARED, text))
    }
}
