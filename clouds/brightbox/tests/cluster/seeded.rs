//! What Services at Brightbox may ask for, and what has to be there then.

use std::{collections::BTreeMap, time::Duration};

use brightbox_sim::{
    Balancer, Cloud, CloudIp, Destination,
    replaced::{PREFIX, Variant, annotated, variants},
};
use cloudberth_core::{Random, ServiceView};
use serde_json::{Value, json};
use sim_kit::merge;
use testing_kit::{
    seeded::{FaultPlan, Parts, Reached, SeededCloud, Shape, Wishes, pick},
    takeover::TakenOver,
};

use crate::under_test::Brightbox;

const CLOUD_IP: &str = "cloudip-allocations";

/// Mostly plain, now and then with a certificate.
fn one_port(random: &Random, from: u64) -> Value {
    let port = if pick(random, 4) == 0 { 443 } else { from + pick(random, 50) };
    json!({"spec": {"ports": [{"name": "main", "port": port, "protocol": "TCP"}]}})
}

fn two_ports(number: u16) -> Value {
    let web = json!({"name": "web", "port": number, "protocol": "TCP", "nodePort": 30000 + number % 1000});
    let admin = json!({"name": "admin", "port": 9000, "protocol": "TCP", "nodePort": 31900});
    json!({"spec": {"ports": [web, admin]}})
}

fn said<'a>(service: &'a Value, key: &str) -> Option<&'a str> {
    service["metadata"]["annotations"].get(format!("{PREFIX}{key}"))?.as_str()
}

/// How a Service asks for a Cloud IP, if it does.
fn asked(service: &Value) -> Option<&str> {
    said(service, CLOUD_IP).or_else(|| service["spec"].get("loadBalancerIP")?.as_str())
}

impl Brightbox {
    fn cloud_ip(&self, id: &str) -> Option<CloudIp> {
        self.cloud.resources().cloud_ips.get(id).cloned()
    }

    /// Whether this is what a Service asks for.
    fn is_asked_for(&self, service: &Value, cloud_ip: &str) -> bool {
        let by_address = |text: &str| {
            let addresses =
                self.cloud_ip(cloud_ip).into_iter().flat_map(|ip| ip.addresses().collect::<Vec<_>>());
            addresses.into_iter().any(|ip| ip.to_string() == text)
        };
        asked(service).is_some_and(|text| text == cloud_ip || by_address(text))
    }

    fn balancer(&self, id: &str) -> Balancer {
        self.cloud.resources().balancers[id].clone()
    }
}

impl SeededCloud for Brightbox {
    fn prepare(&self) {
        let given = ["by-id", "by-address"];
        let given = given.map(|name| self.cloud.seed("cloud_ips", &json!({"name": name})).unwrap());
        self.given.set(given).unwrap();
    }

    fn vary(&self, random: &Random) {
        self.cloud.change_settings(|settings| {
            settings.latency = Duration::from_millis(1 + pick(random, 60));
            settings.delays.build = Duration::from_millis(pick(random, 3_000));
            settings.delays.removal = Duration::from_millis(pick(random, 8_000));
            settings.delays.map = Duration::from_millis(pick(random, 2) * pick(random, 2_000));
            settings.delays.unmap = Duration::from_millis(pick(random, 2_000));
            settings.delays.acme = Duration::from_millis(pick(random, 2) * pick(random, 20_000));
            settings.acme_in_lists = pick(random, 2) == 0;
        });
    }

    fn set_build_time(&self, build: Duration) {
        self.cloud.change_settings(|settings| settings.delays.build = build);
    }

    /// Each of the two Cloud IPs is asked for by one Service at a time.
    fn new_service(&self, random: &Random, _: &str, others: &BTreeMap<String, Value>) -> Value {
        let mut body = one_port(random, 80);
        let Some([by_id, by_address]) = self.given.get() else { return body };
        let is_free = |id: &str| !others.values().any(|other| self.is_asked_for(other, id));
        match pick(random, 3) {
            0 if is_free(by_id) => merge(&mut body, annotated(&[(CLOUD_IP, json!(by_id))])),
            1 if is_free(by_address) => {
                let address = self.cloud_ip(by_address).unwrap().public_ipv4;
                merge(&mut body, json!({"spec": {"loadBalancerIP": address}}));
            }
            _ => {}
        }
        body
    }

    fn other_ports(&self, random: &Random) -> Value {
        one_port(random, 200)
    }

    fn other_setting(&self, random: &Random) -> Value {
        let policy = ["round-robin", "source-address"][usize::from(pick(random, 2) == 0)];
        let settings = [
            ("policy", json!(policy)),
            ("healthcheck-timeout", json!((1_000 + pick(random, 5_000)).to_string())),
            ("listener-idle-timeout", json!((5_000 + pick(random, 5_000)).to_string())),
            ("policy", Value::Null),
        ];
        annotated(&[settings[usize::try_from(pick(random, 4)).unwrap()].clone()])
    }

    /// From a Cloud IP of its own to one that somebody has chosen.
    fn life(&self) -> Vec<Value> {
        let new = two_ports(80);
        let mut last = annotated(&[("policy", json!("round-robin"))]);
        if let Some([by_id, _]) = self.given.get() {
            merge(&mut last, annotated(&[(CLOUD_IP, json!(by_id))]));
        }
        vec![new, two_ports(443), last]
    }

    fn plan_faults(&self, plan: FaultPlan) {
        self.cloud.plan_faults(plan);
    }

    fn stop_faults(&self) {
        self.cloud.stop_faults();
        self.edit_answers();
    }

    fn refuse_connections(&self, refuse: bool) {
        self.door.shut(refuse);
    }

    fn refused_connections(&self) -> usize {
        self.door.refusals()
    }

    fn reached(&self) -> Vec<Reached> {
        self.cloud.journal().into_iter().map(Reached::from).collect()
    }

    fn creations(&self) -> &'static [&'static str] {
        &[
            "load_balancers.create",
            "cloud_ips.create",
            "server_groups.create",
            "firewall_policies.create",
            "firewall_rules.create",
        ]
    }

    fn remove_instance(&self, provider_id: &str) {
        self.cloud.delete_server(provider_id.trim_start_matches("brightbox://"));
    }

    fn shape(&self, id: &str) -> Shape {
        let all = self.cloud.resources();
        let balancer = &all.balancers[id];
        let mut nodes: Vec<_> = balancer.nodes.iter().map(|id| all.servers[id].name.clone()).collect();
        nodes.sort();
        balancer.listeners.iter().map(|listener| (listener.in_port, nodes.clone())).collect()
    }

    fn published(&self, id: &str) -> Vec<String> {
        let all = self.cloud.resources();
        let mapped = all.cloud_ips_of(&Destination::Balancer(id.to_owned()));
        mapped.into_iter().flat_map(|ip| ip.reverse_dns.iter().chain([&ip.fqdn]).cloned()).collect()
    }

    fn parts(&self) -> Parts {
        let [balancers, cloud_ips, groups, policies] = self.counts();
        let made = self.cloud.groups().into_iter().filter(|group| !group.default);
        let rules = self.cloud.policies().into_iter().filter(|policy| !policy.default);
        [
            ("load balancers", balancers),
            ("Cloud IPs", cloud_ips),
            ("server groups", groups),
            ("firewall policies", policies),
            ("members of groups", made.map(|group| group.servers.len()).sum()),
            ("firewall rules", rules.map(|policy| policy.rules.len()).sum()),
        ]
        .into()
    }

    fn expected_parts(&self, wishes: &Wishes) -> Parts {
        let services = wishes.services.len();
        let own = wishes.services.values().filter(|service| asked(service).is_none()).count();
        let given = self.given.get().map_or(0, |given| given.len());
        [
            ("load balancers", services),
            ("Cloud IPs", own + given),
            ("server groups", services),
            ("firewall policies", services),
            ("members of groups", services * wishes.nodes.len()),
            ("firewall rules", services),
        ]
        .into()
    }

    fn assert_more(&self, wishes: &Wishes, balancers: &BTreeMap<String, String>, case: &str) {
        for id in self.given.get().into_iter().flatten() {
            let cloud_ip = self.cloud_ip(id);
            let cloud_ip =
                cloud_ip.unwrap_or_else(|| panic!("L5-1605 {case}: {id} is people's and was deleted"));
            let user = wishes.services.iter().find(|(_, service)| self.is_asked_for(service, id));
            let want = user.map(|(name, _)| Destination::Balancer(balancers[name].clone()));
            assert_eq!(cloud_ip.destination, want, "L6-1608 {case}: {id} leads where it is asked for");
        }
        for (name, service) in &wishes.services {
            let balancer = self.balancer(&balancers[name]);
            let policy = said(service, "policy").unwrap_or(&balancer.policy);
            assert_eq!(balancer.policy, policy, "BB-126 {case} {name}: what is not compared is written");
            let number = |key| said(service, key).map(|text| text.parse::<i64>().unwrap());
            let timeout = number("healthcheck-timeout").unwrap_or(balancer.healthcheck.timeout);
            assert_eq!(balancer.healthcheck.timeout, timeout, "BB-126 {case} {name}");
            let idle = number("listener-idle-timeout").unwrap_or(balancer.listeners[0].timeout);
            assert!(balancer.listeners.iter().all(|one| one.timeout == idle), "BB-126 {case} {name}");
            let secure = balancer.listeners.iter().any(|listener| listener.protocol == "https");
            let valid = balancer.domains.iter().filter(|domain| domain.status == "valid").count();
            assert_eq!(valid, if secure { 2 } else { 0 }, "{case} {name}: both names of the Cloud IP");
        }
        assert_eq!(self.cloud.emptied_balancers(), [], "{case}: a load balancer is never emptied");
    }
}

impl TakenOver for Brightbox {
    type Variant = Variant;

    fn variants() -> Vec<Variant> {
        variants()
    }

    /// It is found by its name.
    fn balancer_of(&self, service: &ServiceView) -> Option<String> {
        let name = format!("{}.{}.test", service.name, service.namespace);
        let mut alive = self.cloud.balancers().into_iter().filter(Balancer::alive);
        alive.find(|one| one.name.as_ref() == Some(&name)).map(|one| one.id)
    }

    fn records_what_it_finds(&self) -> bool {
        false
    }

    fn simulated(&self) -> &Cloud {
        &self.cloud
    }
}
