//! What Services at BinaryLane may ask for, and what has to be there then.

use std::{collections::BTreeMap, time::Duration};

use binarylane_sim::{
    Access, Cloud, Harm, RouteEntry, Shift,
    replaced::{Variant, annotated, first_generation, ports, second_generation},
};
use cloudberth_core::Random;
use serde_json::{Value, json};
use sim_kit::merge;
use testing_kit::{
    TokenFile,
    seeded::{FaultPlan, Parts, Reached, SeededCloud, Shape, Wishes, misfortune, pick},
    takeover::TakenOver,
};

use crate::under_test::{BinaryLane, pod_cidr, server};

/// Entries in the VPC that nobody but their owners may touch: one outside and one inside the cluster's networks.
fn foreign() -> [RouteEntry; 2] {
    let entry = |destination: &str, description: Option<&str>| RouteEntry {
        router: "10.240.9.9".to_owned(),
        destination: destination.to_owned(),
        description: description.map(str::to_owned),
    };
    [entry("10.50.0.0/16", Some("office")), entry("10.244.250.0/24", None)]
}

/// The ids of load balancers begin here.
const BALANCERS: i64 = 5_001;

fn one_of<T: Clone>(random: &Random, all: &[T]) -> T {
    all[usize::try_from(pick(random, all.len() as u64)).unwrap()].clone()
}

fn checked_at(path: &str) -> Value {
    annotated(&[("health-check-path", json!(path))])
}

impl<const ROUTES: bool> BinaryLane<ROUTES> {
    /// Tokens are known, and lists whole, from now on.
    fn end_trouble(&self) {
        self.set_tokens([(TokenFile::OWN, Access::Own)]);
        self.trouble_lists(Shift::Never, None, Vec::new());
    }

    fn trouble_lists(&self, shift: Shift, page_cap: Option<usize>, hidden: Vec<i64>) {
        self.switch(|switches| {
            (switches.shift, switches.page_cap) = (shift, page_cap);
            switches.hidden = hidden.into_iter().collect();
        });
    }
}

/// Ids of the cloud, from the first: every second one of forty.
fn every_second(first: i64) -> Vec<i64> {
    (first..first + 40).step_by(2).collect()
}

impl<const ROUTES: bool> SeededCloud for BinaryLane<ROUTES> {
    fn prepare(&self) {
        if ROUTES {
            let vpc = self.first_vpc();
            self.edit(|all| all.vpcs.get_mut(&vpc).unwrap().route_entries.extend(foreign()));
        }
    }

    fn vary(&self, random: &Random) {
        let seldom = |most| Duration::from_secs(if pick(random, 4) == 0 { pick(random, most) } else { 0 });
        self.change_settings(|settings| {
            settings.build = Duration::from_millis(pick(random, 8_000));
            settings.latency = Duration::from_millis(1 + pick(random, 60));
        });
        self.switch(|switches| {
            switches.ip_when_active = pick(random, 2) == 0;
            switches.no_update_link = pick(random, 2) == 0;
            switches.strict_members = pick(random, 4) == 0;
            switches.provider_private = pick(random, 4) == 0;
            switches.visible_after = seldom(60);
            switches.listed_after_delete = seldom(10);
            switches.vpc_delay = seldom(3);
        });
    }

    /// For one turn in five the token is refused; lists change while they are read, have short pages and lack items.
    fn draw_trouble(&self, random: &Random) {
        let known = (pick(random, 5) > 0).then_some((TokenFile::OWN, Access::Own));
        let shift = one_of(random, &[Shift::Never, Shift::Inserted, Shift::Removed]);
        let cap = one_of(random, &[None, Some(1), Some(2)]);
        let hidden = match pick(random, 6) {
            0 => every_second(BALANCERS + i64::try_from(pick(random, 2)).unwrap()),
            1 => every_second(self.servers()[0].id + i64::try_from(pick(random, 2)).unwrap()),
            _ => Vec::new(),
        };
        self.set_tokens(known);
        self.trouble_lists(shift, cap, hidden);
    }

    /// Now and then longer than a creation may take to show up.
    fn pause(&self, random: &Random) -> Duration {
        let most = if pick(random, 6) == 0 { 180_000 } else { 4_000 };
        Duration::from_millis(pick(random, most))
    }

    /// A creation whose answer was lost may take two minutes to show up.
    fn patience(&self) -> u64 {
        200
    }

    fn set_build_time(&self, build: Duration) {
        self.change_settings(|settings| settings.build = build);
    }

    fn new_service(&self, random: &Random, _: &str, _: &BTreeMap<String, Value>) -> Value {
        ports(one_of(random, &[&[80][..], &[443], &[80, 443]]))
    }

    fn other_ports(&self, random: &Random) -> Value {
        ports(one_of(random, &[&[443][..], &[80, 443]]))
    }

    fn other_setting(&self, random: &Random) -> Value {
        checked_at(&format!("/up/{}", pick(random, 9)))
    }

    fn life(&self) -> Vec<Value> {
        let mut new = ports(&[80]);
        merge(&mut new, checked_at("/up"));
        vec![new, ports(&[80, 443]), checked_at("/ready")]
    }

    /// Also a gateway that gives up on what is carried out all the same, and lists that lack items.
    fn misfortune(&self, random: &Random) -> Harm {
        match pick(random, 4) {
            0 => Harm::Masked { code: 504, empty: pick(random, 2) == 0 },
            1 => Harm::ShortList,
            _ => misfortune(random),
        }
    }

    fn plan_faults(&self, plan: FaultPlan) {
        Cloud::plan_faults(self, plan);
    }

    fn stop_faults(&self) {
        Cloud::stop_faults(self);
        self.omit_from_answers();
        self.end_trouble();
    }

    fn refuse_connections(&self, refuse: bool) {
        self.door.shut(refuse);
    }

    fn refused_connections(&self) -> usize {
        self.door.refusals()
    }

    fn reached(&self) -> Vec<Reached> {
        self.journal().into_iter().map(Reached::from).collect()
    }

    fn creations(&self) -> &'static [&'static str] {
        &["load_balancers.create"]
    }

    fn remove_instance(&self, provider_id: &str) {
        self.delete_server(server(provider_id));
    }

    fn shape(&self, id: &str) -> Shape {
        let all = self.resources();
        let balancer = &all.balancers[&id.parse().unwrap()];
        let name =
            |id: &i64| all.servers.get(id).map_or_else(|| id.to_string(), |server| server.name.clone());
        let mut members: Vec<_> = balancer.server_ids.iter().map(name).collect();
        members.sort();
        let port = |rule: &String| if rule == "http" { 80 } else { 443 };
        balancer.rules.iter().map(|rule| (port(rule), members.clone())).collect()
    }

    fn published(&self, id: &str) -> Vec<String> {
        self.balancer(id.parse().unwrap()).unwrap().ip.iter().map(ToString::to_string).collect()
    }

    fn parts(&self) -> Parts {
        [("load balancers", self.resources().balancers.len())].into()
    }

    fn expected_parts(&self, wishes: &Wishes) -> Parts {
        [("load balancers", wishes.services.len())].into()
    }

    fn assert_more(&self, wishes: &Wishes, balancers: &BTreeMap<String, String>, case: &str) {
        for (name, service) in &wishes.services {
            let path = &service["metadata"]["annotations"]["service.beta.kubernetes.io/binarylane-loadbalancer-health-check-path"];
            let check = self.balancer(balancers[name].parse().unwrap()).unwrap().health_check;
            assert_eq!(check.path, path.as_str().unwrap_or("/"), "{case} {name}");
        }
        assert_eq!(self.emptied_pools(), [], "{case}: a pool is never emptied");
        assert_eq!(self.doubled(), [""; 0], "L6-1605 {case}: not for a moment is there a second one");
        let routes = self.routes(self.first_vpc());
        let (theirs, ours): (Vec<_>, Vec<_>) =
            routes.into_iter().partition(|entry| foreign().contains(entry));
        let want = if ROUTES { foreign().to_vec() } else { Vec::new() };
        assert_eq!(theirs, want, "L3-1601 {case}: no foreign entry is touched");
        let mut have: Vec<_> = ours.into_iter().map(|entry| entry.destination).collect();
        let mut want: Vec<_> = wishes.nodes.values().filter(|_| ROUTES).map(|id| pod_cidr(id)).collect();
        have.sort();
        want.sort();
        assert_eq!(have, want, "L6-1604 {case}: every node has its route, and nobody else one of ours");
    }
}

/// Without routes what the first generation left behind, with them what the second did.
impl<const ROUTES: bool> TakenOver for BinaryLane<ROUTES> {
    type Variant = Variant;

    fn variants() -> Vec<Variant> {
        if ROUTES { second_generation() } else { first_generation() }
    }

    fn simulated(&self) -> &Cloud {
        self
    }
}
