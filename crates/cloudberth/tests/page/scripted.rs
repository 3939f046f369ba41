//! A world that stands still until a test moves it: for the page at sizes and in states that a real one takes long to reach.

use std::sync::{Arc, Mutex};

use cloudberth::world::{
    BalancerCard, Command, Entry, Happening, Health, Later, MemberCard, NodeCard, Snapshot, Watched,
};
use tokio::sync::watch;

pub(crate) struct Scripted {
    now: Mutex<(Snapshot, Vec<Entry>)>,
    changed: watch::Sender<u64>,
}

const SHUTDOWN: &str = "node.cloudprovider.kubernetes.io/shutdown:NoSchedule";
const UNINITIALISED: &str = "node.cloudprovider.kubernetes.io/uninitialized:NoSchedule";

/// Most nodes are well; a few of each hundred are not, each in another way.
fn node(number: usize) -> NodeCard {
    let mut card = NodeCard {
        name: format!("node-{number}"),
        instance: Some(format!("cloudlycke://m-{number}")),
        instance_state: "running".to_owned(),
        ready: true,
        addresses: vec![format!("10.0.{}.{}", number / 256, number % 256)],
        zone: Some(format!("zone-{}", number % 3)),
        ..NodeCard::default()
    };
    match number * 7_919 % 100 {
        0..2 => (card.instance_state, card.ready) = ("gone".to_owned(), false),
        2..5 => {
            (card.instance_state, card.ready) = ("stopped".to_owned(), false);
            card.taints = vec![SHUTDOWN.to_owned()];
        }
        5..8 => card.ready = false,
        8..10 => {
            (card.instance, card.addresses, card.zone) = (None, Vec::new(), None);
            card.taints = vec![UNINITIALISED.to_owned()];
        }
        _ => {}
    }
    card
}

impl Scripted {
    /// So many nodes behind one load balancer.
    pub(crate) fn new(nodes: usize) -> Arc<Self> {
        let nodes: Vec<_> = (1..=nodes).map(node).collect();
        let member = |card: &NodeCard| MemberCard {
            node: card.name.clone(),
            health: if card.ready { Health::Up } else { Health::Down },
            requests_per_second: if card.ready { 0.2 } else { 0.0 },
        };
        let members: Vec<_> = nodes.iter().filter(|card| card.instance.is_some()).map(member).collect();
        let balancer = BalancerCard {
            service: "default/web".to_owned(),
            address: Some("127.77.0.1".to_owned()),
            state: "active".to_owned(),
            ports: vec!["80/TCP".to_owned()],
            requests_per_second: members.iter().map(|member| member.requests_per_second).sum(),
            members,
            ..BalancerCard::default()
        };
        let snapshot = Snapshot {
            seq: 1,
            provider: "cloudlycke".to_owned(),
            leader: Some("manager-1".to_owned()),
            traffic: true,
            nodes,
            balancers: vec![balancer],
            ..Snapshot::default()
        };
        Arc::new(Self { now: Mutex::new((snapshot, Vec::new())), changed: watch::Sender::new(1) })
    }

    /// Changes the world, and says so.
    pub(crate) fn change(&self, what: &str, change: impl FnOnce(&mut Snapshot)) {
        let (snapshot, entries) = &mut *self.now.lock().unwrap();
        change(snapshot);
        snapshot.seq += 1;
        snapshot.at_ms += 100;
        let what = Happening::Deed { what: what.to_owned() };
        entries.push(Entry { seq: snapshot.seq, at_ms: snapshot.at_ms, what });
        self.changed.send_replace(snapshot.seq);
    }
}

impl Watched for Scripted {
    fn snapshot(&self) -> Snapshot {
        self.now.lock().unwrap().0.clone()
    }

    fn happenings(&self, after: u64) -> Vec<Entry> {
        self.now.lock().unwrap().1.iter().filter(|entry| entry.seq > after).cloned().collect()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    fn run(&self, command: Command) -> Later<'_, Result<String, String>> {
        Box::pin(async move { Err(format!("nothing can be done here: {command:?}")) })
    }
}
