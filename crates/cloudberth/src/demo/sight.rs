//! What can be seen, and in which words it is told. Each is shown by a watch of the Kubernetes API, by the cloud's own
//! books or by an answer that came through a load balancer.

use cloudberth::world::{Kind, Sighting, Watched as _, World, answers, subject, text};
use cloudberth_core::{
    NodeView, ServiceView,
    decide::node::taints::{SHUTDOWN, UNINITIALISED},
    view::Ready,
};
use serde_json::Value;

use super::{scene::Scene, story::Number};

/// So many requests in a row have to be answered as they should be.
const ENOUGH_VISITS: usize = 24;

#[derive(Clone, Copy, Debug)]
pub(super) enum Sight {
    /// A node, in this condition.
    Node(Number, NodeIs),
    /// A Service of this name has an address.
    Address(&'static str),
    /// A Service of this name does not exist any more.
    ServiceGone(&'static str),
    /// An event about something with this reason, whose message holds this; and what has to be true in the cloud then.
    Event(Subject, &'static str, &'static str, InCloud),
    /// The load balancer of this Service sends traffic to these nodes: some clouds see to it by themselves.
    Behind(&'static str, &'static [Number]),
    /// Requests in a row are answered, by these nodes and each of them.
    Traffic(&'static [Number]),
    /// These nodes are there and initialised, and a Service has its address.
    NothingLost(&'static [Number], &'static str),
    /// Where the load balancer of this Service was, connections are refused, and the cloud has none.
    Refuses(&'static str),
    LeaseFree,
}

/// What an event is about.
#[derive(Clone, Copy, Debug)]
pub(super) enum Subject {
    /// The Lease of the manager.
    Manager,
    /// A node.
    Its(Number),
    /// A Service.
    Named(&'static str),
}

/// The conditions of a node that the story knows.
#[derive(Clone, Copy, Debug)]
pub(super) enum NodeIs {
    /// Its kubelet registered it; it waits for its cloud.
    Waiting,
    /// Its cloud said what and where it is.
    Initialised,
    /// Its kubelet does not report any more.
    NotReady,
    ShutDown,
    Gone,
}

/// What has to be true in the cloud when something is seen in the API.
#[derive(Clone, Copy, Debug)]
pub(super) enum InCloud {
    Anything,
    /// The load balancer of the Service sends traffic to these nodes.
    Members(&'static [Number]),
    /// It listens on so many ports.
    Ports(usize),
    /// There is none for this Service.
    NoBalancer(&'static str),
}

impl Subject {
    fn text(self, scene: &Scene) -> String {
        match self {
            Self::Manager => "lease/cloud-controller-manager".to_owned(),
            Self::Its(number) => format!("node/{}", scene.node(number)),
            Self::Named(name) => format!("service/{name}"),
        }
    }
}

impl Sight {
    /// Whether it can be seen where no traffic flows.
    pub(super) const fn needs_traffic(self) -> bool {
        matches!(self, Self::Traffic(_))
    }

    /// It says something about the time until then, so it is looked at when all else was seen.
    pub(super) const fn comes_last(self) -> bool {
        matches!(self, Self::NothingLost(..))
    }

    pub(super) fn expectation(self, scene: &Scene) -> String {
        match self {
            Self::Node(number, is) => format!("node/{} {}", scene.node(number), is.expectation()),
            Self::Address(name) => format!("service/{name} with an address"),
            Self::ServiceGone(name) => format!("service/{name} deleted"),
            Self::Event(about, reason, part, in_cloud) => {
                let part = if part.is_empty() { String::new() } else { format!(" that says {part:?}") };
                format!("event {reason} of {}{part}{}", about.text(scene), in_cloud.expectation(scene))
            }
            Self::Behind(name, numbers) => {
                format!("{} behind the load balancer of {name}", scene.names(numbers).join(", "))
            }
            Self::Traffic(nodes) => {
                let nodes = scene.names(nodes).join(", ");
                format!("{ENOUGH_VISITS} requests in a row, answered by {nodes} and each of them")
            }
            Self::NothingLost(nodes, name) => {
                format!("{} initialised and service/{name} with its address", scene.names(nodes).join(", "))
            }
            Self::Refuses(name) => {
                format!("the cloud without a load balancer, and no answer at the address of {name}")
            }
            Self::LeaseFree => "lease/cloud-controller-manager without a holder".to_owned(),
        }
    }

    /// The fact to tell, if a watch has just shown what was waited for.
    pub(super) fn told_by(self, sighting: &Sighting, scene: &Scene, world: &World) -> Option<String> {
        match (self, sighting.kind) {
            (Self::Node(number, is), Kind::Node) => {
                let name = scene.node(number);
                let node = NodeView::from_json(&sighting.object).ok().filter(|node| node.name == name)?;
                is.fact(&node, sighting.gone).map(|fact| format!("node/{name} {fact}"))
            }
            (Self::Address(name), Kind::Service) => {
                let service = ServiceView::from_json(&sighting.object).ok()?;
                let ingress = service.ingress.first()?;
                let address = ingress.ip.clone().or_else(|| ingress.hostname.clone())?;
                (service.name == name).then(|| format!("service/{name} has EXTERNAL-IP {address}"))
            }
            (Self::ServiceGone(name), Kind::Service) => {
                let named = text(&sighting.object, "/metadata/name") == name;
                (sighting.gone && named).then(|| format!("service/{name} deleted"))
            }
            (Self::Event(about, reason, part, in_cloud), Kind::Event) => {
                let event = &sighting.object;
                let told = subject(event) == about.text(scene)
                    && text(event, "/reason") == reason
                    && text(event, "/message").contains(part);
                let proof = told.then(|| in_cloud.proof(about, scene, world)).flatten()?;
                Some(format!("{}{proof}", event_line(event)))
            }
            (Self::LeaseFree, Kind::Lease) => {
                let holder = text(&sighting.object, "/spec/holderIdentity");
                let ours = text(&sighting.object, "/metadata/name") == "cloud-controller-manager";
                (ours && holder.is_empty()).then(|| {
                    "lease/cloud-controller-manager has no holder; the next one may lead at once".to_owned()
                })
            }
            _ => None,
        }
    }

    /// The fact to tell, if it is so now. Looked at again and again, because no watch tells of it.
    pub(super) fn is_so(self, scene: &Scene, world: &World) -> Option<String> {
        match self {
            Self::Traffic(numbers) => {
                let visits = world.visits(scene.mark);
                let last = visits.get(visits.len().checked_sub(ENOUGH_VISITS)?..)?;
                let nodes = answers(last);
                let all = last.iter().all(|visit| visit.answer.is_ok());
                let mut wanted = scene.names(numbers);
                wanted.sort_unstable();
                let same = nodes.keys().map(String::as_str).eq(wanted);
                let shares: Vec<_> = nodes.iter().map(|(node, count)| format!("{count} by {node}")).collect();
                let fair = nodes.values().all(|count| count * 2 * nodes.len() >= ENOUGH_VISITS);
                (all && same && fair)
                    .then(|| format!("{ENOUGH_VISITS} requests, all answered: {}", shares.join(", ")))
            }
            Self::Behind(name, numbers) => {
                let members = world.members("default", name)?;
                let mut wanted = scene.names(numbers);
                wanted.sort_unstable();
                (members == wanted).then(|| format!("the cloud sends traffic to {}", members.join(", ")))
            }
            Self::NothingLost(numbers, name) => {
                let now = world.snapshot();
                let names = scene.names(numbers);
                let there = |name: &String| {
                    now.nodes.iter().any(|node| node.name == *name && node.instance.is_some() && node.ready)
                };
                let service = now.balancers.iter().find(|one| one.service == format!("default/{name}"))?;
                let address = service.address.clone()?;
                (now.nodes.len() == names.len() && names.iter().all(there)).then(|| {
                    format!("nothing is lost: {} nodes, and service/{name} at {address}", names.len())
                })
            }
            Self::Refuses(name) => {
                (world.balancer_count() == 0 && scene.refuses()).then(|| match scene.url() {
                    Some(url) => format!("the cloud has no load balancer; {url} refuses connections"),
                    None => format!("the cloud has no load balancer, for {name} or any other Service"),
                })
            }
            _ => None,
        }
    }

    /// What is the case instead, where that can be said in a line.
    pub(super) fn instead(self, scene: &Scene, world: &World) -> Option<String> {
        match self {
            Self::Traffic(_) => {
                let visits = world.visits(scene.mark);
                let failed: Vec<_> = visits.iter().filter_map(|visit| visit.answer.as_ref().err()).collect();
                let answered: Vec<_> =
                    answers(&visits).iter().map(|(node, count)| format!("{count} by {node}")).collect();
                let answered = if answered.is_empty() { "none".to_owned() } else { answered.join(", ") };
                let why = failed.last().map_or_else(String::new, |why| format!(" ({why})"));
                Some(format!(
                    "of {} requests {} failed{why}; answered: {answered}",
                    visits.len(),
                    failed.len()
                ))
            }
            Self::Event(about @ (Subject::Named(_) | Subject::Its(_)), ..) => {
                let about = about.text(scene);
                let events = world.objects(Kind::Event);
                let last =
                    events.iter().rfind(|event| subject(event) == about && text(event, "/type") == "Warning");
                last.map(|event| event_line(event))
            }
            _ => None,
        }
    }
}

impl NodeIs {
    const fn expectation(self) -> &'static str {
        match self {
            Self::Waiting => "with the taint of a node that waits for its cloud",
            Self::Initialised => "initialised",
            Self::NotReady => "NotReady",
            Self::ShutDown => "with the shutdown taint",
            Self::Gone => "deleted",
        }
    }

    fn fact(self, node: &NodeView, gone: bool) -> Option<String> {
        let is = match self {
            Self::Waiting => node.has_taint(UNINITIALISED),
            Self::Initialised => !node.has_taint(UNINITIALISED) && node.provider_id.is_some(),
            Self::NotReady => node.ready == Ready::Unknown,
            Self::ShutDown => node.has_taint(SHUTDOWN),
            Self::Gone => gone,
        };
        (is && gone == matches!(self, Self::Gone)).then(|| match self {
            Self::Waiting | Self::ShutDown => format!("has {}", taints(node)),
            Self::Initialised => format!("is initialised: {}", place(node)),
            Self::NotReady => "is NotReady".to_owned(),
            Self::Gone => "deleted".to_owned(),
        })
    }
}

impl InCloud {
    fn expectation(self, scene: &Scene) -> String {
        match self {
            Self::Anything => String::new(),
            Self::Members(numbers) => format!(", and {} behind it", scene.names(numbers).join(", ")),
            Self::Ports(count) => format!(", and {count} ports in the cloud"),
            Self::NoBalancer(name) => format!(", and no load balancer for {name}"),
        }
    }

    fn proof(self, about: Subject, scene: &Scene, world: &World) -> Option<String> {
        let Subject::Named(service) = about else { return Some(String::new()) };
        match self {
            Self::Anything => Some(String::new()),
            Self::Members(numbers) => {
                let members = world.members("default", service)?;
                let mut wanted = scene.names(numbers);
                wanted.sort_unstable();
                (members == wanted).then(|| format!("; the cloud sends traffic to {}", members.join(", ")))
            }
            Self::Ports(count) => {
                let ports = world.ports("default", service)?;
                let list: Vec<_> = ports.iter().map(ToString::to_string).collect();
                (ports.len() == count).then(|| format!("; the cloud listens on {}", list.join(", ")))
            }
            Self::NoBalancer(name) => world
                .members("default", name)
                .is_none()
                .then(|| format!("; the cloud has no load balancer for {name}")),
        }
    }
}

pub(super) fn event_line(event: &Value) -> String {
    let (level, reason) = (text(event, "/type"), text(event, "/reason"));
    format!("event {level} {reason} of {}: {}", subject(event), text(event, "/message"))
}

/// The taints of a node that have to do with its cloud, as `kubectl describe` has them.
pub(super) fn taints(node: &NodeView) -> String {
    let ours = node.taints.iter().filter(|taint| [UNINITIALISED, SHUTDOWN].contains(&taint.key.as_str()));
    let list: Vec<_> = ours.map(|taint| format!("{}:{}", taint.key, taint.effect.as_str())).collect();
    if list.is_empty() { "no cloud taint".to_owned() } else { format!("taint {}", list.join(", ")) }
}

/// What the cloud said about a node.
fn place(node: &NodeView) -> String {
    let label = |key: &str| node.labels.get(key).unwrap_or("?");
    let address = node.addresses.iter().find_map(cloudberth_core::NodeAddress::ip);
    format!(
        "{}, {}, region {}, zone {}, {}",
        node.provider_id.as_deref().unwrap_or("?"),
        address.map_or_else(|| "?".to_owned(), |ip| ip.to_string()),
        label("topology.kubernetes.io/region"),
        label("topology.kubernetes.io/zone"),
        label("node.kubernetes.io/instance-type"),
    )
}
