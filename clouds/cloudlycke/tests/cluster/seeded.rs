//! What Services at Cloudlycke may ask for, and what has to be there then.

use std::{collections::BTreeMap, time::Duration};

use cloudberth_core::Random;
use serde_json::{Value, json};
use testing_kit::{
    checks::annotation,
    seeded::{FaultPlan, Parts, Reached, SeededCloud, Shape, Wishes, pick},
};

use crate::{
    service::at_once,
    under_test::{Lycke, set_latency},
};

const POLICY: &str = "service.beta.kubernetes.io/cloudlycke-load-balancer-policy";
const POLICIES: [&str; 3] = ["round-robin", "least-connections", "source-hash"];

fn one_of<T: Clone>(random: &Random, all: &[T]) -> T {
    all[usize::try_from(pick(random, all.len() as u64)).unwrap()].clone()
}

pub(crate) fn ports(numbers: &[u16]) -> Value {
    let port = |number: &u16| json!({"name": format!("p{number}"), "port": number, "protocol": "TCP"});
    json!({"spec": {"ports": numbers.iter().map(port).collect::<Vec<_>>()}})
}

impl SeededCloud for Lycke {
    fn vary(&self, random: &Random) {
        set_latency(self, Duration::from_millis(1 + pick(random, 60)));
    }

    /// A load balancer is there as soon as it is asked for.
    fn set_build_time(&self, _: Duration) {}

    fn new_service(&self, random: &Random, _: &str, _: &BTreeMap<String, Value>) -> Value {
        ports(one_of(random, &[&[80][..], &[8080], &[80, 8443]]))
    }

    fn other_ports(&self, random: &Random) -> Value {
        ports(one_of(random, &[&[443][..], &[80, 443], &[53, 80, 9000]]))
    }

    fn other_setting(&self, random: &Random) -> Value {
        annotation(POLICY, json!(one_of(random, &POLICIES)))
    }

    fn life(&self) -> Vec<Value> {
        vec![ports(&[80]), ports(&[80, 443]), annotation(POLICY, json!("source-hash"))]
    }

    fn plan_faults(&self, plan: FaultPlan) {
        self.front.plan_faults(plan);
    }

    fn stop_faults(&self) {
        self.front.stop_faults();
        self.omit_from_answers();
    }

    fn refuse_connections(&self, refuse: bool) {
        self.door.shut(refuse);
    }

    fn refused_connections(&self) -> usize {
        self.door.refusals()
    }

    fn reached(&self) -> Vec<Reached> {
        self.front.journal().into_iter().map(Reached::from).collect()
    }

    fn creations(&self) -> &'static [&'static str] {
        &["loadbalancers.create"]
    }

    fn remove_instance(&self, provider_id: &str) {
        let (control, id) = (self.control(), provider_id.trim_start_matches("cloudlycke://").to_owned());
        at_once(async move { control.remove_machine(&id).await });
    }

    fn shape(&self, id: &str) -> Shape {
        let spec = self.balancer(id).unwrap().balancer.spec;
        let name = |machine: &String| machine.trim_start_matches("c2-").to_owned();
        let mut members: Vec<_> = spec.backends.iter().map(|backend| name(&backend.machine)).collect();
        members.sort();
        spec.listeners.iter().map(|listener| (listener.port, members.clone())).collect()
    }

    fn published(&self, id: &str) -> Vec<String> {
        self.balancer(id).unwrap().balancer.addresses.iter().map(ToString::to_string).collect()
    }

    fn parts(&self) -> Parts {
        [("load balancers", self.control().balancers(None).len())].into()
    }

    fn expected_parts(&self, wishes: &Wishes) -> Parts {
        [("load balancers", wishes.services.len())].into()
    }

    fn assert_more(&self, wishes: &Wishes, balancers: &BTreeMap<String, String>, case: &str) {
        for (name, service) in &wishes.services {
            let policy = service["metadata"]["annotations"][POLICY].as_str().unwrap_or("round-robin");
            let spec = self.balancer(&balancers[name]).unwrap().balancer.spec;
            let want = POLICIES.iter().position(|word| *word == policy).unwrap();
            let words = ["RoundRobin", "LeastConnections", "SourceHash"];
            assert_eq!(format!("{:?}", spec.policy), words[want], "{case} {name}");
        }
    }
}
