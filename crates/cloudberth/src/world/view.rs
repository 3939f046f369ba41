//! How a world is shown: plain values from what Kubernetes and the cloud say.

use std::collections::{BTreeMap, VecDeque};

use cloudberth_core::{NodeAddress, NodeView, ServiceView, Tick, view::Ready};

use super::{
    clouds::{BalancerView, InstanceView},
    contract::{BalancerCard, Health, MemberCard, NodeCard},
};

const ZONE: &str = "topology.kubernetes.io/zone";
const TYPE: &str = "node.kubernetes.io/instance-type";

/// The instances that exist and whether they run, by the names of their nodes.
pub(crate) type Instances = BTreeMap<String, bool>;

pub(crate) fn by_name(instances: Vec<InstanceView>) -> Instances {
    instances.into_iter().map(|instance| (instance.name, instance.running)).collect()
}

pub(crate) fn node_card(node: &NodeView, instances: &Instances) -> NodeCard {
    let label = |key: &str| node.labels.get(key).map(str::to_owned);
    NodeCard {
        name: node.name.clone(),
        instance: node.provider_id.clone(),
        instance_state: instance_state(&node.name, instances).to_owned(),
        ready: node.ready == Ready::True,
        taints: node.taints.iter().map(|taint| format!("{}:{}", taint.key, taint.effect.as_str())).collect(),
        addresses: node.addresses.iter().filter_map(NodeAddress::ip).map(|ip| ip.to_string()).collect(),
        zone: label(ZONE),
        instance_type: label(TYPE),
    }
}

fn instance_state(node: &str, instances: &Instances) -> &'static str {
    match instances.get(node) {
        Some(true) => "running",
        Some(false) => "stopped",
        None => "gone",
    }
}

pub(crate) fn balancer_card(
    service: &ServiceView,
    balancer: Option<&BalancerView>,
    refused: Vec<String>,
    nodes: &[NodeCard],
    rates: &Rates,
) -> BalancerCard {
    let key = format!("{}/{}", service.namespace, service.name);
    let ingress = service.ingress.first();
    let address = ingress.and_then(|one| one.ip.clone().or_else(|| one.hostname.clone()));
    let state = if service.deleting {
        "deleting"
    } else if !refused.is_empty() {
        "refused"
    } else if address.is_some() {
        "active"
    } else {
        "pending"
    };
    let mut members: Vec<_> = balancer
        .into_iter()
        .flat_map(|balancer| &balancer.members)
        .map(|member| {
            // Both are in the order of their names.
            let at = nodes.binary_search_by(|node| node.name.as_str().cmp(&member.instance)).ok();
            let node = at.and_then(|at| nodes.get(at));
            let well = node.is_some_and(|node| node.ready && node.instance_state == "running");
            MemberCard {
                node: member.instance.clone(),
                health: match member.health {
                    Health::Up | Health::Unknown if !well => Health::Draining,
                    health => health,
                },
                requests_per_second: rates.of(&key, &member.instance),
            }
        })
        .collect();
    members.sort_by(|a, b| a.node.cmp(&b.node));
    let reachable = balancer.and_then(|balancer| balancer.reachable);
    BalancerCard {
        url: reachable.filter(|_| address.is_some()).map(|at| format!("http://{at}/")),
        address,
        state: state.to_owned(),
        refused,
        ports: service.ports.iter().map(|port| format!("{}/{}", port.port, port.protocol.as_str())).collect(),
        requests_per_second: tenths(members.iter().map(|member| member.requests_per_second).sum()),
        members,
        service: key,
    }
}

/// Connections so far, by Service and node.
pub(crate) type Counters = BTreeMap<(String, String), u64>;

/// How fast counters grow, over the newest samples.
#[derive(Debug, Default)]
pub(crate) struct Rates(BTreeMap<(String, String), VecDeque<(Tick, u64)>>);

impl Rates {
    /// With one sample a second, a change shows at once and a pause of the sampler does not look like one of traffic.
    const SAMPLES: usize = 4;

    /// Takes the counters of this moment; what is not among them is forgotten.
    pub(crate) fn sample(&mut self, now: Tick, counters: Counters) {
        self.0.retain(|key, _| counters.contains_key(key));
        for (key, count) in counters {
            let samples = self.0.entry(key).or_default();
            if samples.back().is_some_and(|(_, before)| *before > count) {
                samples.clear();
            }
            if samples.len() == Self::SAMPLES {
                samples.pop_front();
            }
            samples.push_back((now, count));
        }
    }

    fn of(&self, service: &str, node: &str) -> f64 {
        let samples = self.0.get(&(service.to_owned(), node.to_owned()));
        let (Some((begun, first)), Some((ended, last))) =
            (samples.and_then(VecDeque::front), samples.and_then(VecDeque::back))
        else {
            return 0.0;
        };
        let seconds = ended.since(*begun).as_secs_f64();
        if seconds <= 0.0 {
            return 0.0;
        }
        let grown = u32::try_from(last - first).unwrap_or(u32::MAX);
        tenths(f64::from(grown) / seconds)
    }
}

fn tenths(rate: f64) -> f64 {
    (rate * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::clouds::MemberView, *};

    fn node(name: &str, ready: &str, taints: &serde_json::Value) -> NodeView {
        NodeView::from_json(&json!({
            "metadata": {"name": name, "uid": "u", "labels": {ZONE: "z1", TYPE: "small"}},
            "spec": {"providerID": "cloudlycke://n-1", "taints": taints},
            "status": {
                "conditions": [{"type": "Ready", "status": ready}],
                "addresses": [{"type": "InternalIP", "address": "127.78.1.1"}, {"type": "Hostname", "address": name}],
            },
        }))
        .unwrap()
    }

    fn instances() -> Instances {
        let of = |name: &str, running| InstanceView { name: name.to_owned(), running };
        by_name(vec![of("node-1", true), of("node-2", false)])
    }

    #[test]
    fn a_node_is_shown_with_its_instance() {
        let taints = json!([{"key": "a/b", "effect": "NoSchedule"}]);
        let card = node_card(&node("node-1", "True", &taints), &instances());
        assert_eq!(card.taints, ["a/b:NoSchedule"]);
        assert_eq!(card.addresses, ["127.78.1.1"], "a host name is no address");
        assert!(card.ready && card.instance.as_deref() == Some("cloudlycke://n-1"));
        assert_eq!((card.zone.as_deref(), card.instance_type.as_deref()), (Some("z1"), Some("small")));
        for (name, want) in [("node-1", "running"), ("node-2", "stopped"), ("node-3", "gone")] {
            assert_eq!(instance_state(name, &instances()), want);
        }
    }

    fn service(ingress: &serde_json::Value, deleting: bool) -> ServiceView {
        let mut object = json!({
            "metadata": {"name": "web", "namespace": "default", "uid": "u"},
            "spec": {"type": "LoadBalancer", "ports": [{"port": 80, "protocol": "TCP"}]},
            "status": {"loadBalancer": {"ingress": ingress}},
        });
        if deleting {
            object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        ServiceView::from_json(&object).unwrap()
    }

    #[test]
    fn the_state_of_a_balancer_follows_from_its_service() {
        let at = json!([{"ip": "127.79.1.5"}]);
        let table = [
            (service(&json!([]), false), vec![], "pending"),
            (service(&at, false), vec![], "active"),
            (service(&at, false), vec!["no".to_owned()], "refused"),
            (service(&at, true), vec!["no".to_owned()], "deleting"),
        ];
        for (service, refused, want) in table {
            let card = balancer_card(&service, None, refused, &[], &Rates::default());
            assert_eq!(card.state, want);
            assert_eq!(
                (card.service.as_str(), card.ports.as_slice()),
                ("default/web", &["80/TCP".to_owned()][..])
            );
        }
    }

    #[test]
    fn a_member_whose_node_is_not_well_is_draining() {
        let none = json!([]);
        let nodes = [node("node-1", "True", &none), node("node-2", "Unknown", &none)];
        let nodes = nodes.map(|node| node_card(&node, &instances()));
        let member =
            |instance: &str, health| MemberView { instance: instance.to_owned(), health, connections: 0 };
        let members =
            vec![member("node-2", Health::Up), member("node-1", Health::Up), member("node-3", Health::Down)];
        let balancer =
            BalancerView { members, ports: vec![80], reachable: Some("127.79.1.5:10080".parse().unwrap()) };
        let service = service(&json!([{"ip": "127.79.1.5"}]), false);
        let card = balancer_card(&service, Some(&balancer), Vec::new(), &nodes, &Rates::default());
        let health: Vec<_> = card.members.iter().map(|one| (one.node.as_str(), one.health)).collect();
        let want = [("node-1", Health::Up), ("node-2", Health::Draining), ("node-3", Health::Down)];
        assert_eq!(health, want);
        assert_eq!(card.url.as_deref(), Some("http://127.79.1.5:10080/"), "where it really listens");
    }

    #[test]
    fn rates_are_over_the_newest_samples() {
        let key = || ("default/web".to_owned(), "node-1".to_owned());
        let mut rates = Rates::default();
        for (second, count) in [(0, 0), (1, 100), (2, 110), (3, 120), (4, 130)] {
            rates.sample(Tick::from_secs(second), [(key(), count)].into());
        }
        assert!((rates.of("default/web", "node-1") - 10.0).abs() < f64::EPSILON, "{rates:?}");
        rates.sample(Tick::from_secs(5), [(key(), 3)].into());
        assert!(rates.of("default/web", "node-1").abs() < f64::EPSILON, "counters that began again");
        rates.sample(Tick::from_secs(6), BTreeMap::new());
        assert!(rates.0.is_empty(), "what is gone is forgotten");
    }
}
