//! A load balancer made of many kinds: the balancer itself, pools, listeners, monitors, members and floating
//! addresses. Later steps need the ids that earlier ones were answered with, and writes are refused while the
//! balancer is changing.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, OnceLock},
    time::Duration,
};

use cloudberth_core::{
    Call, Error, Lookup, ServiceView,
    annotation::Table,
    lb::{
        Balancers, Decision, Desired, Fleet, Goal, Identity, Impact, LockKey, LockKind, Name, Next, Outcome,
        Publish, Refusal, Step,
    },
    reason,
};

use crate::fixture::{Toy, Wire, no_annotations};

const FLOATING: &str = "toy/floating-ip";

#[derive(Clone, Debug, Default)]
pub struct Tree {
    id: String,
    name: String,
    changing: bool,
    pools: BTreeMap<String, Pool>,
    floating: BTreeSet<String>,
}

#[derive(Clone, Debug, Default)]
pub struct Pool {
    name: String,
    listener: Option<i64>,
    monitor: bool,
    members: BTreeMap<String, String>,
}

#[derive(Default)]
pub struct Six {
    wire: Mutex<Wire>,
    trees: Mutex<BTreeMap<String, Tree>>,
}

#[derive(Clone, Debug)]
pub enum Action {
    CreateBalancer { name: String },
    DeleteBalancer { id: String },
    CreatePool { balancer: String, name: String },
    DeletePool { balancer: String, pool: String },
    CreateListener { balancer: String, pool: String, port: i64 },
    CreateMonitor { balancer: String, pool: String },
    CreateMember { balancer: String, pool: String, address: String },
    DeleteMember { balancer: String, pool: String, member: String },
    AssignFloating { balancer: String, address: String },
}

fn balancer_of(act: &Action) -> Option<&str> {
    match act {
        Action::CreateBalancer { .. } => None,
        Action::DeleteBalancer { id } => Some(id),
        Action::CreatePool { balancer, .. }
        | Action::DeletePool { balancer, .. }
        | Action::CreateListener { balancer, .. }
        | Action::CreateMonitor { balancer, .. }
        | Action::CreateMember { balancer, .. }
        | Action::DeleteMember { balancer, .. }
        | Action::AssignFloating { balancer, .. } => Some(balancer),
    }
}

/// What an act does to a tree, given the id that the cloud chose. The cloud and the fold agree by construction.
fn grow(tree: &mut Tree, act: &Action, new: &str) {
    match act {
        Action::CreateBalancer { name } => {
            *tree = Tree { id: new.to_owned(), name: name.clone(), ..Tree::default() };
        }
        Action::DeleteBalancer { .. } => {}
        Action::CreatePool { name, .. } => {
            tree.pools.insert(new.to_owned(), Pool { name: name.clone(), ..Pool::default() });
        }
        Action::DeletePool { pool, .. } => {
            tree.pools.remove(pool);
        }
        Action::CreateListener { pool, port, .. } => tree.pools.get_mut(pool).unwrap().listener = Some(*port),
        Action::CreateMonitor { pool, .. } => tree.pools.get_mut(pool).unwrap().monitor = true,
        Action::CreateMember { pool, address, .. } => {
            tree.pools.get_mut(pool).unwrap().members.insert(new.to_owned(), address.clone());
        }
        Action::DeleteMember { pool, member, .. } => {
            tree.pools.get_mut(pool).unwrap().members.remove(member);
        }
        Action::AssignFloating { address, .. } => {
            tree.floating.insert(address.clone());
        }
    }
}

impl Six {
    fn pool_steps(want: &Desired, tree: &Tree) -> Vec<Step<Action>> {
        let balancer = || tree.id.clone();
        let mut steps = Vec::new();
        for port in &want.service.ports {
            let name = format!("tcp/{}", port.port);
            if !tree.pools.values().any(|p| p.name == name) {
                let label = format!("create pool {name}");
                steps.push(Step::new(Action::CreatePool { balancer: balancer(), name }, Impact::None, label));
            }
        }
        for (id, pool) in &tree.pools {
            if !want.service.ports.iter().any(|p| pool.name == format!("tcp/{}", p.port)) {
                let act = Action::DeletePool { balancer: balancer(), pool: id.clone() };
                steps.push(Step::new(act, Impact::Considerable, format!("delete pool {}", pool.name)));
            }
        }
        steps
    }

    fn child_steps(want: &Desired, tree: &Tree) -> Vec<Step<Action>> {
        let balancer = || tree.id.clone();
        let mut steps = Vec::new();
        for (id, pool) in &tree.pools {
            let port = want.service.ports.iter().find(|p| pool.name == format!("tcp/{}", p.port)).unwrap();
            let wanted: BTreeSet<String> =
                want.backends.iter().map(|b| format!("{}:{}", b.node.name, port.node_port)).collect();
            let have: BTreeSet<String> = pool.members.values().cloned().collect();
            for address in wanted.difference(&have) {
                let act =
                    Action::CreateMember { balancer: balancer(), pool: id.clone(), address: address.clone() };
                steps.push(Step::new(act, Impact::None, format!("add member {address}")));
            }
            if pool.listener.is_none() {
                let act = Action::CreateListener { balancer: balancer(), pool: id.clone(), port: port.port };
                steps.push(Step::new(act, Impact::None, format!("create listener {}", port.port)));
            }
            if !pool.monitor {
                let act = Action::CreateMonitor { balancer: balancer(), pool: id.clone() };
                steps.push(Step::new(act, Impact::Minimal, format!("create monitor of {}", pool.name)));
            }
        }
        if !steps.is_empty() {
            return steps; // new members first: a pool is never emptied by an update
        }
        for (id, pool) in &tree.pools {
            let suffix = |a: &str| want.backends.iter().any(|b| a.starts_with(&format!("{}:", b.node.name)));
            for (member, address) in pool.members.iter().filter(|(_, a)| !suffix(a)) {
                let act =
                    Action::DeleteMember { balancer: balancer(), pool: id.clone(), member: member.clone() };
                steps.push(Step::new(act, Impact::Minimal, format!("remove member {address}")));
            }
        }
        steps
    }

    fn floating_steps(want: &Desired, tree: &Tree, refused: &[Refusal]) -> Vec<Step<Action>> {
        want.service
            .annotations
            .get(FLOATING)
            .filter(|ip| refused.is_empty() && !tree.floating.contains(*ip))
            .map(|ip| {
                let act = Action::AssignFloating { balancer: tree.id.clone(), address: ip.clone() };
                Step::new(act, Impact::Minimal, format!("assign {ip}"))
            })
            .into_iter()
            .collect()
    }
}

impl Balancers for Six {
    type Survey = OnceLock<BTreeMap<String, Tree>>;
    type Observed = Tree;
    type Action = Action;
    type Answer = String;

    fn annotations(&self) -> &Table {
        no_annotations()
    }

    fn settle_time(&self) -> Duration {
        Duration::from_secs(30)
    }

    fn width(&self) -> usize {
        4
    }

    fn name_for(&self, s: &ServiceView, _: &str) -> Name {
        Name { text: format!("k8s-service-{}", s.uid), generated: true }
    }

    fn identity(&self, seen: &Tree) -> Option<Identity> {
        let made_for = seen.name.strip_prefix("k8s-service-").map(str::to_owned);
        Some(Identity { id: seen.id.clone(), name: seen.name.clone(), made_for, ..Identity::default() })
    }

    fn lock_keys(&self, s: &ServiceView, cluster: &str) -> Vec<LockKey> {
        let name = LockKey::new(LockKind::Name, self.name_for(s, cluster).text);
        let floating = s.annotations.get(FLOATING).map(|ip| LockKey::new(LockKind::Address, ip.clone()));
        [name].into_iter().chain(floating).collect()
    }

    async fn observe(
        &self,
        _: &Call,
        _: &dyn Fleet,
        survey: &OnceLock<BTreeMap<String, Tree>>,
        want: &Desired,
    ) -> Lookup<Tree> {
        let all = survey.get_or_init(|| self.trees.lock().unwrap().clone());
        let name = format!("k8s-service-{}", want.service.uid);
        let found: Vec<_> = all.values().filter(|t| t.name == name).collect();
        match found.as_slice() {
            [] => Lookup::Absent,
            [one] => Lookup::Present((*one).clone()),
            several => {
                let ids: Vec<_> = several.iter().map(|t| t.id.as_str()).collect();
                Lookup::Unknown(Error::permanent(format!(
                    "several load balancers are called {name}: {}",
                    ids.join(", ")
                )))
            }
        }
    }

    fn decide(&self, want: &Desired, seen: Option<&Tree>) -> Decision<Action> {
        let Some(tree) = seen else {
            if want.goal == Goal::Gone {
                return Decision::new(Next::Converged);
            }
            let name = format!("k8s-service-{}", want.service.uid);
            let label = format!("create load balancer {name}");
            return Decision::new(Next::Act(vec![Step::creating(Action::CreateBalancer { name }, label)]));
        };
        if tree.changing {
            return Decision::new(Next::Wait {
                on: "the load balancer to finish changing".into(),
                poll: Duration::from_secs(1),
            });
        }
        if want.goal == Goal::Gone {
            let step = Step::new(
                Action::DeleteBalancer { id: tree.id.clone() },
                Impact::Major,
                "delete load balancer",
            );
            return Decision::new(Next::Act(vec![step]));
        }
        let contested = want.rivals.iter().filter(|r| r.key.kind == LockKind::Address);
        let refused: Vec<_> = contested
            .map(|r| Refusal {
                reason: reason::ADDRESS_TAKEN,
                field: FLOATING.into(),
                message: format!("{} is assigned to another service: {}", r.key.value, r.service),
            })
            .collect();
        let pools = Self::pool_steps(want, tree);
        let floating = Self::floating_steps(want, tree, &refused);
        let children = if pools.is_empty() { Self::child_steps(want, tree) } else { vec![] };
        let round = [pools, children, floating].into_iter().find(|steps| !steps.is_empty());
        let next = round.map_or(Next::Converged, Next::Act);
        let publish =
            Publish { annotations: [("toy/uuid".to_owned(), tree.id.clone())].into(), ..Publish::default() };
        Decision { publish: Some(publish), refused, ..Decision::new(next) }
    }

    async fn execute(&self, _: &Call, act: &Action) -> Outcome<String> {
        self.wire.lock().unwrap().send(|wire| {
            let mut trees = self.trees.lock().unwrap();
            let new = wire.id("id");
            match balancer_of(act) {
                None => {
                    let mut tree = Tree::default();
                    grow(&mut tree, act, &new);
                    tree.changing = true;
                    trees.insert(new.clone(), tree);
                }
                Some(id) if matches!(act, Action::DeleteBalancer { .. }) => {
                    trees.remove(id);
                }
                Some(id) => {
                    let tree = trees.get_mut(id).ok_or_else(|| Error::permanent("404"))?;
                    if tree.changing {
                        return Err(Error::temporary("the load balancer is changing"));
                    }
                    grow(tree, act, &new);
                }
            }
            Ok(new)
        })
    }

    fn fold(&self, seen: Option<Tree>, act: &Action, new: &String) -> Option<Tree> {
        if matches!(act, Action::DeleteBalancer { .. }) {
            return None;
        }
        let mut tree = seen.unwrap_or_default();
        grow(&mut tree, act, new);
        // A real answer says "changing"; an assumed one is at once what it will become.
        tree.changing = matches!(act, Action::CreateBalancer { .. }) && !new.starts_with("assumed");
        Some(tree)
    }

    fn assume(&self, act: &Action) -> String {
        format!("assumed {act:?}")
    }
}

impl Toy for Six {
    fn empty() -> Self {
        Self::default()
    }

    fn wire(&self) -> &Mutex<Wire> {
        &self.wire
    }

    fn settle(&self) {
        self.trees.lock().unwrap().values_mut().for_each(|t| t.changing = false);
    }

    fn describe(&self) -> Vec<String> {
        let mut all = Vec::new();
        for tree in self.trees.lock().unwrap().values() {
            all.push(format!("{} {:?}", tree.name, tree.floating));
            for pool in tree.pools.values() {
                let members: BTreeSet<_> = pool.members.values().collect();
                assert_eq!(members.len(), pool.members.len(), "a member twice");
                all.push(format!("{} {:?} {} {members:?}", pool.name, pool.listener, pool.monitor));
            }
        }
        all.sort();
        all
    }
}
