//! Several clouds in one manager: every one that has a card, and the fake one in the memory of the manager.

use std::fs;

use cloudberth_e2e::{Cluster, Manager, eventually, manifests_of, throughout};
use serde_json::{Value, json};

use crate::clouds::{CARDS, Card};
use crate::fixture::{Fixture, SOON, is_served, waits};
use crate::services::{A_WHILE, SERVICES, service};
use crate::simulated_cloud::SimulatedCloud;
use crate::{Fallible, Outcome};

/// The cloud that lives in the manager. What it does is seen in Kubernetes only.
const FAKE: &str = "fake";
/// The label by which a node without an id says to whom it belongs.
const PROVIDER: &str = "cloudberth.dev/provider";
/// Each cloud has so many nodes at the beginning.
const FIRST: usize = 2;

/// One of the clouds of the manager.
pub(crate) struct Member {
    name: &'static str,
    /// The port that its Service opens, and the next one.
    ports: [u16; 2],
    /// How many of its instances have nodes.
    nodes: usize,
    /// How often its Service was changed, with its creation.
    changes: usize,
    /// None for the fake cloud.
    simulated: Option<Box<dyn SimulatedCloud>>,
}

/// How a cloud fails.
#[derive(Clone, Copy, Debug)]
enum Outage {
    /// It answers every request with 503.
    Refuses,
    /// It answers no request.
    IsSilent,
}

/// Which clouds fail together, and how. Each fails alone while all others work; then all of them fail, so that it takes as
/// long as one.
fn outages() -> Vec<(Outage, Vec<&'static str>)> {
    let alone = CARDS.iter().map(|card| (Outage::Refuses, vec![card.name]));
    alone.chain([(Outage::IsSilent, CARDS.iter().map(|card| card.name).collect())]).collect()
}

/// The instances of a cloud: one joins in each outage, and one at the end.
fn instances(cloud: &str) -> Vec<String> {
    (0..=FIRST + outages().len()).map(|number| format!("{cloud}-{number}")).collect()
}

impl Member {
    async fn of(card: &Card, cluster: &Cluster) -> Fallible<Self> {
        let names = instances(card.name);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let simulated = Some((card.over)(cluster.dir(), &names).await?);
        Ok(Self { name: card.name, ports: card.ports, nodes: 0, changes: 0, simulated })
    }

    fn fake() -> Self {
        Self { name: FAKE, ports: [80, 443], nodes: 0, changes: 0, simulated: None }
    }

    fn class(&self) -> String {
        format!("example.com/{}", self.name)
    }

    fn service(&self) -> String {
        format!("web-{}", self.name)
    }

    fn path(&self) -> String {
        format!("{SERVICES}/{}", self.service())
    }

    /// The name of the node of its next instance.
    fn next_node(&mut self) -> String {
        let instance = instances(self.name).swap_remove(self.nodes);
        self.nodes += 1;
        self.simulated.as_ref().map_or(instance.clone(), |cloud| cloud.node_name(&instance))
    }

    /// How many requests it has refused or left without an answer.
    fn failures(&self) -> usize {
        let Some(cloud) = &self.simulated else { return 0 };
        cloud.calls().iter().filter(|call| call.status == Some(503)).count() + cloud.under_way()
    }
}

/// The file of the fake cloud, and the flags for all clouds.
fn flags(members: &[Member], cluster: &Cluster) -> Fallible<Vec<String>> {
    let names: Vec<&str> = members.iter().map(|member| member.name).collect();
    let classes: Vec<String> =
        members.iter().map(|member| format!("{}={}", member.name, member.class())).collect();
    let fake = cluster.dir().join("fake.yaml");
    fs::write(&fake, json!({ "instances": instances(FAKE) }).to_string())?;
    let mut flags = vec![
        format!("--cloud-provider={}", names.join(",")),
        format!("--load-balancer-class={}", classes.join(",")),
        format!("--cloud-config={FAKE}={}", fake.display()),
        // Not every cloud has routes, and no manifest has the rights for them.
        "--configure-cloud-routes=false".to_owned(),
    ];
    let configured =
        members.iter().filter_map(|member| Some((member.name, member.simulated.as_ref()?.config()?)));
    flags.extend(configured.map(|(name, file)| format!("--cloud-config={name}={}", file.display())));
    Ok(flags)
}

/// The clouds, with a leader that works for all of them.
struct Together<'w> {
    fixture: Fixture<'w, ()>,
    members: Vec<Member>,
    manager: Manager,
}

impl<'w> Together<'w> {
    async fn start(cluster: &'w Cluster) -> Fallible<Self> {
        let mut members = Vec::new();
        for card in CARDS {
            members.push(Member::of(card, cluster).await?);
        }
        members.push(Member::fake());
        let names: Vec<&str> = CARDS.iter().map(|card| card.name).collect();
        let fixture = Fixture::with(cluster, (), &manifests_of(&names)?).await?;
        let clouds = members.iter().filter_map(|member| member.simulated.as_ref());
        let env: Vec<(String, String)> = clouds.flat_map(|cloud| cloud.env()).collect();
        let mut manager = fixture.manager_with("leader", &flags(&members, cluster)?, &env).await?;
        manager.leads(SOON).await?;
        Ok(Self { fixture, members, manager })
    }

    /// Waits until the Service of a member leads to all of its nodes, on its current port.
    async fn is_served(&self, member: &Member) -> Outcome {
        let Some(cloud) = &member.simulated else {
            return self.is_served_in_memory(member).await;
        };
        let all = instances(member.name);
        let nodes: Vec<&str> = all.iter().take(member.nodes).map(String::as_str).collect();
        is_served(self.fixture.cluster, &member.path(), &**cloud, &member.ports[..1], &nodes).await?;
        Ok(())
    }

    /// Only the manager can tell what it did in its own memory: a line for each step.
    async fn is_served_in_memory(&self, member: &Member) -> Outcome {
        let what = format!("all nodes of {} and a port for each change are in the log", member.name);
        eventually(SOON, &what, async || {
            let log = self.manager.log();
            let steps = |label: &str| {
                let is_it = |line: &&String| line.contains(&member.service()) && line.contains(label);
                log.iter().filter(is_it).count()
            };
            let done = (steps("open port "), steps("add instance "));
            if done == (member.changes, member.nodes) { Ok(()) } else { Err(format!("{done:?} in {log:#?}")) }
        })
        .await?;
        Ok(())
    }

    /// A node of each of these clouds joins and is initialised. Its label says whose it is: without it, a cloud that does
    /// not answer might have an instance of that name too.
    async fn nodes_join(&mut self, wanted: impl Fn(&Member) -> bool) -> Outcome {
        let mut joined = Vec::new();
        for member in self.members.iter_mut().filter(|member| wanted(member)) {
            let (name, node) = (member.name, member.next_node());
            let labels = json!({ "metadata": { "labels": { PROVIDER: name } } });
            self.fixture.join(&node, labels).await?;
            joined.push((name, node));
        }
        for (name, node) in joined {
            let found = self.fixture.initialised(&node).await?;
            let id = found["spec"]["providerID"].as_str().unwrap_or_default();
            assert!(id.starts_with(&format!("{name}://")), "{found}");
        }
        Ok(())
    }

    /// The Services of these clouds open their other port.
    async fn services_change(&mut self, wanted: impl Fn(&Member) -> bool) -> Outcome {
        for member in self.members.iter_mut().filter(|member| wanted(member)) {
            member.ports.swap(0, 1);
            member.changes += 1;
            let spec = service("", &member.ports[..1])["spec"].clone();
            self.fixture.cluster.patch(&member.path(), &json!({ "spec": spec })).await?;
        }
        Ok(())
    }

    /// Some clouds fail with work to do, all others go on with theirs, and in the end all of it is done.
    async fn go_through(&mut self, outage: Outage, failing: &[&str]) -> Outcome {
        let fails = |member: &Member| failing.contains(&member.name);
        let works = |member: &Member| !fails(member);
        let seen = |members: &[Member]| -> Vec<_> {
            let clouds = members.iter().filter(|member| fails(member));
            clouds.filter_map(|member| Some(member.simulated.as_ref()?.balancers())).collect()
        };
        let before = seen(&self.members);
        let mut failures = Vec::new();
        for member in self.members.iter().filter(|member| fails(member)) {
            let cloud = member.simulated.as_ref().unwrap();
            failures.push((member.name, member.failures()));
            match outage {
                Outage::Refuses => cloud.go_down(),
                Outage::IsSilent => cloud.fall_silent(),
            }
        }
        self.services_change(fails).await?;
        for (name, earlier) in failures {
            let member = self.members.iter().find(|member| member.name == name).unwrap();
            eventually(SOON, &format!("{name} fails with work to do"), async || {
                let now = member.failures();
                if now > earlier { Ok(()) } else { Err(format!("{now} failures")) }
            })
            .await?;
        }
        self.nodes_join(works).await?;
        self.services_change(works).await?;
        for member in self.members.iter().filter(|member| works(member)) {
            self.is_served(member).await?;
        }
        assert_eq!(seen(&self.members), before, "L5-1601 while {failing:?} failed: {outage:?}");
        for member in self.members.iter().filter(|member| fails(member)) {
            member.simulated.as_ref().unwrap().come_back();
        }
        for member in self.members.iter().filter(|member| fails(member)) {
            self.is_served(member).await?;
        }
        Ok(())
    }
}

pub(crate) async fn all_clouds_work_in_one_manager_and_none_holds_up_another(cluster: &Cluster) -> Outcome {
    for factory in cloudberth::CLOUDS.iter().filter(|factory| factory.name != FAKE) {
        let has_card = CARDS.iter().any(|card| card.name == factory.name);
        assert!(has_card, "{} has no card in tests/scenarios/clouds", factory.name);
    }
    let mut all = Together::start(cluster).await?;
    for _ in 0..FIRST {
        all.nodes_join(|_| true).await?;
    }
    let nobodys = cluster.create(SERVICES, &service("web", &[80])).await?;
    for member in &mut all.members {
        let mut own = service(&member.service(), &member.ports[..1]);
        own["spec"]["loadBalancerClass"] = json!(member.class());
        cluster.create(SERVICES, &own).await?;
        member.changes += 1;
    }
    for member in &all.members {
        all.is_served(member).await?;
        let path = member.path();
        let is_shown = |found: &Value| found["status"]["loadBalancer"]["ingress"].is_array();
        all.fixture.until("the Service shows its load balancer", &path, is_shown).await?;
    }
    for (outage, failing) in outages() {
        all.go_through(outage, &failing).await?;
    }
    // A node that does not say whose it is waits until every cloud has said whether it has such an instance (law 1).
    let cloud = all.members[0].simulated.take().unwrap();
    cloud.go_down();
    let node = all.members.last_mut().unwrap().next_node();
    all.fixture.join(&node, json!({})).await?;
    throughout(A_WHILE, "the node waits (L1-1601)", async || {
        let found = all.fixture.node(&node).await.map_err(|why| why.to_string())?;
        if waits(&found) { Ok(()) } else { Err(found.to_string()) }
    })
    .await?;
    cloud.come_back();
    all.fixture.initialised(&node).await?;

    let now = cluster.get(&format!("{SERVICES}/web")).await?;
    let version = |service: &Value| service["metadata"]["resourceVersion"].clone();
    assert_eq!(version(&now), version(&nobodys), "L3-1601 a Service without a class is nobody's");
    let mut secrets = cloud.secrets();
    secrets.extend(
        all.members.iter().filter_map(|member| member.simulated.as_ref()).flat_map(|cloud| cloud.secrets()),
    );
    all.fixture.close_with(std::slice::from_mut(&mut all.manager), &secrets).await
}
