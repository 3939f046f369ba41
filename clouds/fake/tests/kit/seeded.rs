//! What Services may ask of the fake cloud, and what has to be there then.

use std::{collections::BTreeMap, time::Duration};

use cloudberth_core::Random;
use cloudberth_fake::{ALGORITHM, FLOATING_ADDRESS};
use serde_json::{Value, json};
use sim_kit::{Harm, merge};
use testing_kit::{
    checks::annotation,
    seeded::{FaultPlan, Parts, Reached, SeededCloud, Shape, Wishes, pick},
};

use crate::under_test::Fake;

/// The only one there is, so that only one Service at a time asks for it.
const FLOATING: &str = "192.0.2.7";

fn ports(random: &Random, from: u64) -> Value {
    let port = |number: u64| json!({"name": format!("p{number}"), "port": number, "protocol": "TCP"});
    let first = from + pick(random, 50);
    let all: Vec<_> = (first..=first + pick(random, 2)).map(port).collect();
    json!({"spec": {"ports": all}})
}

fn floating() -> Value {
    annotation(FLOATING_ADDRESS.name(), json!(FLOATING))
}

fn asks_for_floating(service: &Value) -> bool {
    service["metadata"]["annotations"].get(FLOATING_ADDRESS.name()).is_some()
}

impl SeededCloud for Fake {
    fn prepare(&self) {
        self.cloud.add_floating(FLOATING);
    }

    fn vary(&self, random: &Random) {
        let millis = |most| Duration::from_millis(1 + pick(random, most));
        self.cloud.set_pace(millis(60), millis(5_000), millis(3_000));
    }

    fn set_build_time(&self, build: Duration) {
        self.cloud.set_pace(Duration::from_millis(20), Duration::ZERO, build);
    }

    fn new_service(&self, random: &Random, _: &str, others: &BTreeMap<String, Value>) -> Value {
        let mut body = ports(random, 100);
        if !others.values().any(asks_for_floating) {
            merge(&mut body, floating());
        }
        body
    }

    fn other_ports(&self, random: &Random) -> Value {
        ports(random, 200)
    }

    fn other_setting(&self, random: &Random) -> Value {
        let algorithms = ["round-robin", "least-connections"];
        annotation(ALGORITHM.name(), json!(algorithms[usize::from(pick(random, 2) == 0)]))
    }

    fn life(&self) -> Vec<Value> {
        let mut new = json!({"spec": {"ports": [{"port": 80, "protocol": "TCP"}]}});
        merge(&mut new, floating());
        let admin = json!({"name": "admin", "port": 9000, "protocol": "TCP"});
        let two = json!({"spec": {"ports": [{"name": "web", "port": 443, "protocol": "TCP"}, admin]}});
        vec![new, two, annotation(ALGORITHM.name(), json!("least-connections"))]
    }

    fn plan_faults(&self, plan: FaultPlan) {
        self.faults.lock().unwrap().plan = Some(plan);
    }

    fn stop_faults(&self) {
        self.faults.lock().unwrap().plan = None;
    }

    /// There is no connection that could be refused: every request is lost.
    fn refuse_connections(&self, refuse: bool) {
        self.faults.lock().unwrap().plan =
            refuse.then(|| Box::new(|_: &_| Some(Harm::LostCall)) as FaultPlan);
    }

    fn refused_connections(&self) -> usize {
        0
    }

    fn reached(&self) -> Vec<Reached> {
        let reached = |call: cloudberth_fake::CallRecord| Reached {
            sent: call.sent,
            operation: call.operation.to_owned(),
            mutation: call.write,
            succeeded: call.outcome == "ok",
        };
        self.cloud.calls().into_iter().map(reached).collect()
    }

    fn creations(&self) -> &'static [&'static str] {
        &["create balancer", "add listener", "add member"]
    }

    fn remove_instance(&self, provider_id: &str) {
        self.cloud.delete_instance(provider_id.trim_start_matches("fake://"));
    }

    fn shape(&self, id: &str) -> Shape {
        let Some(balancer) = self.cloud.balancers().into_iter().find(|balancer| balancer.id == id) else {
            return Shape::new();
        };
        let instances = self.cloud.instances();
        let name = |id: &String| {
            let found = instances.iter().find(|instance| instance.id == *id);
            found.map_or_else(|| id.clone(), |instance| instance.name.clone())
        };
        let mut members: Vec<_> = balancer.members.values().map(name).collect();
        members.sort();
        let ports = balancer.listeners.values().map(|listener| u16::try_from(listener.port).unwrap());
        ports.map(|port| (port, members.clone())).collect()
    }

    fn published(&self, id: &str) -> Vec<String> {
        let mut all = self.cloud.balancers();
        all.retain(|balancer| balancer.id == id);
        all.into_iter().map(|balancer| balancer.address).collect()
    }

    fn parts(&self) -> Parts {
        let all = self.cloud.balancers();
        [
            ("load balancers", all.len()),
            ("listeners", all.iter().map(|balancer| balancer.listeners.len()).sum()),
            ("members", all.iter().map(|balancer| balancer.members.len()).sum()),
        ]
        .into()
    }

    fn expected_parts(&self, wishes: &Wishes) -> Parts {
        let services = wishes.services.len();
        [
            ("load balancers", services),
            ("listeners", wishes.all_ports()),
            ("members", services * wishes.nodes.len()),
        ]
        .into()
    }

    fn assert_more(&self, wishes: &Wishes, balancers: &BTreeMap<String, String>, case: &str) {
        if let Some((name, _)) = wishes.services.iter().find(|(_, service)| asks_for_floating(service)) {
            let holder = self.cloud.balancers().into_iter().find(|one| one.floating.contains(FLOATING));
            let holder = holder.map(|one| one.id);
            assert_eq!(holder.as_ref(), balancers.get(name), "L6-1603 {case}: no address is lost");
        }
    }
}
