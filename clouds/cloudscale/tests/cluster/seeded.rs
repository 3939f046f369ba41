//! What Services at cloudscale.ch may ask for, and what has to be there then.

use std::{collections::BTreeMap, net::IpAddr, time::Duration};

use cloudberth_core::Random;
use cloudscale_sim::{
    Cloud, Target,
    replaced::{PREFIX, Variant, annotated, variants},
};
use serde_json::{Value, json};
use sim_kit::merge;
use testing_kit::{
    seeded::{FaultPlan, Parts, Reached, SeededCloud, Shape, Wishes, pick},
    takeover::TakenOver,
};

use crate::under_test::Cloudscale;

/// The only one there is, so that only one Service at a time asks for it.
const FLOATING: &str = "192.0.2.7";

fn one_port(random: &Random, from: u64) -> Value {
    json!({"spec": {"ports": [{"name": "main", "port": from + pick(random, 50), "protocol": "TCP"}]}})
}

fn two_ports(number: u16) -> Value {
    let web = json!({"name": "web", "port": number, "protocol": "TCP", "nodePort": 30000 + number % 1000});
    let admin = json!({"name": "admin", "port": 9000, "protocol": "TCP", "nodePort": 31900});
    json!({"spec": {"ports": [web, admin]}})
}

fn floating() -> Value {
    annotated(&[("floating-ips", json!(format!("[\"{FLOATING}/32\"]")))])
}

fn asks_for_floating(service: &Value) -> bool {
    service["metadata"]["annotations"].get(format!("{PREFIX}floating-ips")).is_some()
}

impl SeededCloud for Cloudscale {
    fn prepare(&self) {
        self.add_floating_ip(format!("{FLOATING}/32").parse().unwrap(), None);
    }

    fn vary(&self, random: &Random) {
        self.change_settings(|settings| {
            settings.build = Duration::from_millis(pick(random, 3_000));
            settings.latency = Duration::from_millis(1 + pick(random, 60));
            settings.unrest = Duration::from_millis(if pick(random, 3) == 0 { 200 } else { 0 });
            settings.refuse_early_delete = pick(random, 2) == 0;
            settings.errors_in_lists = pick(random, 2) == 0;
        });
    }

    fn set_build_time(&self, build: Duration) {
        self.change_settings(|settings| settings.build = build);
    }

    fn new_service(&self, random: &Random, _: &str, others: &BTreeMap<String, Value>) -> Value {
        let mut body = one_port(random, 80);
        if !others.values().any(asks_for_floating) {
            merge(&mut body, floating());
        }
        body
    }

    fn other_ports(&self, random: &Random) -> Value {
        one_port(random, 200)
    }

    fn other_setting(&self, random: &Random) -> Value {
        let cidrs = format!("[\"10.{}.0.0/16\"]", pick(random, 200));
        annotated(&[("listener-allowed-cidrs", json!(cidrs))])
    }

    fn life(&self) -> Vec<Value> {
        let mut new = two_ports(80);
        merge(&mut new, floating());
        let mut last = annotated(&[("pool-algorithm", json!("least_connections"))]);
        merge(&mut last, json!({"spec": {"externalTrafficPolicy": "Local"}}));
        vec![new, two_ports(443), last]
    }

    fn plan_faults(&self, plan: FaultPlan) {
        Cloud::plan_faults(self, plan);
    }

    fn stop_faults(&self) {
        Cloud::stop_faults(self);
        self.edit_answers();
    }

    fn refuse_connections(&self, refuse: bool) {
        self.door.shut(refuse);
    }

    fn refused_connections(&self) -> usize {
        self.door.refusals()
    }

    fn reached(&self) -> Vec<Reached> {
        let reached = |entry: cloudscale_sim::Entry| Reached {
            sent: entry.sent,
            mutation: entry.mutation,
            succeeded: entry.outcome.succeeded(),
            operation: entry.operation,
        };
        self.journal().into_iter().map(reached).collect()
    }

    fn creations(&self) -> &'static [&'static str] {
        &[
            "load-balancers.create",
            "pools.create",
            "members.create",
            "listeners.create",
            "health-monitors.create",
        ]
    }

    fn remove_instance(&self, provider_id: &str) {
        self.delete_server(provider_id.trim_start_matches("cloudscale://"));
    }

    fn shape(&self, id: &str) -> Shape {
        let stock = self.resources();
        let owner = |address: IpAddr| {
            let has = |server: &&cloudscale_sim::Server| server.addresses().any(|own| own.address == address);
            stock.servers.values().find(has).map_or_else(|| address.to_string(), |server| server.name.clone())
        };
        let mut shape = Shape::new();
        for listener in stock.listeners.values().filter(|listener| listener.balancer == id) {
            let pool = listener.pool.as_deref().unwrap_or_default();
            let members = stock.members.values().filter(|member| member.pool == pool);
            let mut members: Vec<_> = members.map(|member| owner(member.address)).collect();
            members.sort();
            shape.insert(listener.protocol_port, members);
        }
        shape
    }

    fn published(&self, id: &str) -> Vec<String> {
        self.resources().balancers[id].vips.iter().map(|vip| vip.address.to_string()).collect()
    }

    fn parts(&self) -> Parts {
        let stock = self.resources();
        [
            ("load balancers", stock.balancers.len()),
            ("pools", stock.pools.len()),
            ("listeners", stock.listeners.len()),
            ("health monitors", stock.monitors.len()),
            ("members", stock.members.len()),
        ]
        .into()
    }

    fn expected_parts(&self, wishes: &Wishes) -> Parts {
        let ports = wishes.all_ports();
        [
            ("load balancers", wishes.services.len()),
            ("pools", ports),
            ("listeners", ports),
            ("health monitors", ports),
            ("members", ports * wishes.nodes.len()),
        ]
        .into()
    }

    fn assert_more(&self, wishes: &Wishes, balancers: &BTreeMap<String, String>, case: &str) {
        if let Some((name, _)) = wishes.services.iter().find(|(_, service)| asks_for_floating(service)) {
            let target = self.target_of(FLOATING.parse().unwrap());
            let want = Some(Target::Balancer(balancers[name].clone()));
            assert_eq!(target, want, "L6-809 {case}: no floating IP is lost");
        }
        assert_eq!(self.emptied_pools(), [], "{case}: a pool with healthy members is never emptied");
    }
}

impl TakenOver for Cloudscale {
    type Variant = Variant;

    fn variants() -> Vec<Variant> {
        variants()
    }

    fn simulated(&self) -> &Cloud {
        self
    }
}
