//! A load balancer with things around it: a server group, a firewall policy with a rule, a cloud address that is
//! mapped onto it, and domains that must resolve to that address. Everything is found by one name.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, OnceLock},
    time::Duration,
};

use cloudberth_core::{
    Call, Lookup, ServiceView,
    annotation::Table,
    lb::{
        Balancers, Decision, Desired, Fleet, Goal, Identity, Impact, LockKey, LockKind, Name, Next, Outcome,
        Publish, Refusal, Step,
    },
    reason,
    view::Ingress,
};

use crate::fixture::{Toy, Wire, no_annotations};

const DOMAIN: &str = "toy/domain";

/// Everything that carries the name. Each part is absent or there, with what was told to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    address: Option<String>,
    group: Option<BTreeSet<String>>,
    firewall: Option<String>,
    balancer: Option<BTreeSet<i64>>,
    mapped: bool,
    /// What the domain that the Service asks for resolves to. Not a part, but needed to decide.
    resolved: Option<String>,
}

impl Parts {
    fn is_nothing(&self) -> bool {
        *self == Self { resolved: self.resolved.clone(), ..Self::default() }
    }
}

#[derive(Default)]
pub struct Around {
    wire: Mutex<Wire>,
    world: Mutex<BTreeMap<String, Parts>>,
    pub dns: Mutex<BTreeMap<String, String>>,
}

#[derive(Clone, Debug)]
pub enum Change {
    Allocate,
    Release,
    SetGroup(BTreeSet<String>),
    DropGroup,
    SetFirewall(String),
    DropFirewall,
    Build(BTreeSet<i64>),
    Alter(BTreeSet<i64>),
    Demolish,
    Map,
}

#[derive(Clone, Debug)]
pub struct Action {
    name: String,
    change: Change,
}

fn apply(whole: &mut Parts, change: &Change) {
    match change {
        Change::Allocate => whole.address = Some("198.51.100.7".into()),
        Change::Release => whole.address = None,
        Change::SetGroup(servers) => whole.group = Some(servers.clone()),
        Change::DropGroup => whole.group = None,
        Change::SetFirewall(ports) => whole.firewall = Some(ports.clone()),
        Change::DropFirewall => whole.firewall = None,
        Change::Build(ports) | Change::Alter(ports) => whole.balancer = Some(ports.clone()),
        Change::Demolish => {
            whole.balancer = None;
            whole.mapped = false;
        }
        Change::Map => whole.mapped = true,
    }
}

fn name(service: &ServiceView, cluster: &str) -> String {
    format!("{}.{}.{cluster}", service.name, service.namespace)
}

impl Around {
    /// Parts that do not need each other are brought up together; those that do follow in a later round.
    fn rounds(want: &Desired, there: &Parts) -> [Vec<(Change, bool, Impact, &'static str)>; 2] {
        let servers: BTreeSet<_> = want.backends.iter().filter_map(|b| b.node.provider_id.clone()).collect();
        let ports: BTreeSet<_> = want.service.ports.iter().map(|p| p.port).collect();
        let rule = want.service.ports.iter().map(|p| p.node_port.to_string()).collect::<Vec<_>>().join(",");
        let mut first = Vec::new();
        if there.address.is_none() {
            first.push((Change::Allocate, true, Impact::None, "allocate a cloud address"));
        }
        if there.group.as_ref() != Some(&servers) {
            first.push((Change::SetGroup(servers), false, Impact::None, "set the server group"));
        }
        if there.firewall.as_ref() != Some(&rule) {
            first.push((Change::SetFirewall(rule), false, Impact::None, "set the firewall rule"));
        }
        match &there.balancer {
            None => first.push((Change::Build(ports), true, Impact::None, "build the load balancer")),
            Some(have) if *have != ports => {
                first.push((Change::Alter(ports), false, Impact::Minimal, "change the load balancer"));
            }
            Some(_) => {}
        }
        let second = if there.mapped {
            vec![]
        } else {
            vec![(Change::Map, false, Impact::Minimal, "map the address")]
        };
        [first, second]
    }

    fn removal(parts: &Parts) -> Vec<(Change, bool, Impact, &'static str)> {
        let mut all = Vec::new();
        if parts.group.is_some() {
            all.push((Change::DropGroup, false, Impact::Major, "delete the server group"));
        }
        if parts.firewall.is_some() {
            all.push((Change::DropFirewall, false, Impact::Major, "delete the firewall policy"));
        }
        match (&parts.balancer, &parts.address) {
            (Some(_), _) => all.push((Change::Demolish, false, Impact::Major, "delete the load balancer")),
            // Only an address that nothing is mapped to can be given back.
            (None, Some(_)) => all.push((Change::Release, false, Impact::Major, "release the cloud address")),
            (None, None) => {}
        }
        all
    }
}

impl Balancers for Around {
    type Survey = OnceLock<BTreeMap<String, Parts>>;
    type Observed = Parts;
    type Action = Action;
    type Answer = ();

    fn annotations(&self) -> &Table {
        no_annotations()
    }

    fn settle_time(&self) -> Duration {
        Duration::from_secs(60)
    }

    fn width(&self) -> usize {
        8
    }

    fn name_for(&self, s: &ServiceView, cluster: &str) -> Name {
        Name { text: name(s, cluster), generated: true }
    }

    fn identity(&self, _: &Parts) -> Option<Identity> {
        // The parts are kept under the name that was generated for the Service.
        None
    }

    fn lock_keys(&self, s: &ServiceView, cluster: &str) -> Vec<LockKey> {
        vec![LockKey::new(LockKind::Name, name(s, cluster))]
    }

    async fn observe(
        &self,
        _: &Call,
        _: &dyn Fleet,
        survey: &OnceLock<BTreeMap<String, Parts>>,
        want: &Desired,
    ) -> Lookup<Parts> {
        let all = survey.get_or_init(|| self.world.lock().unwrap().clone());
        let domain = want.service.annotations.get(DOMAIN);
        let resolved = domain.and_then(|d| self.dns.lock().unwrap().get(d).cloned());
        let parts = all.get(&name(&want.service, &want.cluster)).cloned().unwrap_or_default();
        if parts.is_nothing() { Lookup::Absent } else { Lookup::Present(Parts { resolved, ..parts }) }
    }

    fn decide(&self, want: &Desired, seen: Option<&Parts>) -> Decision<Action> {
        let nothing = Parts::default();
        let parts = seen.unwrap_or(&nothing);
        let name = name(&want.service, &want.cluster);
        let act = |all: Vec<(Change, bool, Impact, &'static str)>| {
            let step = |(change, creates, impact, label): (Change, bool, Impact, &str)| Step {
                act: Action { name: name.clone(), change },
                label: format!("{label} {name}"),
                impact,
                creates,
            };
            if all.is_empty() { Next::Converged } else { Next::Act(all.into_iter().map(step).collect()) }
        };
        if want.goal == Goal::Gone {
            return Decision::new(act(Self::removal(parts)));
        }
        let [first, second] = Self::rounds(want, parts);
        let next = act(if first.is_empty() { second } else { first });
        let mut decision = Decision::new(next);
        let domain = want.service.annotations.get(DOMAIN).filter(|_| parts.mapped);
        if let Some(domain) = domain.filter(|_| parts.resolved != parts.address) {
            decision.refused.push(Refusal {
                reason: reason::UNSUPPORTED_FIELD,
                field: DOMAIN.into(),
                message: format!(
                    "{domain} does not resolve to {}",
                    parts.address.clone().unwrap_or_default()
                ),
            });
        }
        if parts.mapped {
            let ingress = Ingress { hostname: parts.address.clone(), ..Ingress::default() };
            decision.publish = Some(Publish { ingress: Some(vec![ingress]), ..Publish::default() });
        }
        decision
    }

    async fn execute(&self, _: &Call, act: &Action) -> Outcome<()> {
        self.wire.lock().unwrap().send(|_| {
            let mut world = self.world.lock().unwrap();
            apply(world.entry(act.name.clone()).or_default(), &act.change);
            Ok(())
        })
    }

    fn fold(&self, seen: Option<Parts>, act: &Action, (): &()) -> Option<Parts> {
        let mut parts = seen.unwrap_or_default();
        apply(&mut parts, &act.change);
        (!parts.is_nothing()).then_some(parts)
    }

    fn assume(&self, _: &Action) {}
}

impl Toy for Around {
    fn empty() -> Self {
        Self::default()
    }

    fn wire(&self) -> &Mutex<Wire> {
        &self.wire
    }

    fn settle(&self) {}

    fn describe(&self) -> Vec<String> {
        let world = self.world.lock().unwrap();
        world
            .iter()
            .filter(|(_, parts)| !parts.is_nothing())
            .map(|(name, parts)| format!("{name} {parts:?}"))
            .collect()
    }
}
