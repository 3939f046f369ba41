//! What can be seen in the API, and in which words it is told.

use cloudberth_core::{
    NodeView, ServiceView,
    decide::node::taints::{SHUTDOWN, UNINITIALISED},
    view::Ready,
};
use cloudberth_fake::Cloud;
use serde_json::Value;

use super::watch::{Kind, Sighting};

#[derive(Clone, Copy, Debug)]
pub(super) enum Sight {
    /// A node of this name, in this condition.
    Node(&'static str, NodeIs),
    /// A Service of this name has an address.
    Address(&'static str),
    /// A Service of this name does not exist any more.
    ServiceGone(&'static str),
    /// An event about an object (`service/web`) with this reason, whose message holds this; and what has to be true in
    /// the cloud then.
    Event(&'static str, &'static str, &'static str, InCloud),
    LeaseFree,
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
    Back,
    Gone,
}

/// What has to be true in the cloud when something is seen in the API.
#[derive(Clone, Copy, Debug)]
pub(super) enum InCloud {
    Anything,
    /// These instances stand behind a load balancer.
    Members(&'static [&'static str]),
    /// A load balancer listens on these ports.
    Ports(&'static [i64]),
    NoBalancer,
}

impl Sight {
    pub(super) fn expectation(self) -> String {
        match self {
            Self::Node(name, is) => format!("node/{name} {}", is.expectation()),
            Self::Address(name) => format!("service/{name} with an address"),
            Self::ServiceGone(name) => format!("service/{name} deleted"),
            Self::Event(about, reason, part, _) => format!("event {reason} of {about} that says {part:?}"),
            Self::LeaseFree => "lease/cloud-controller-manager without a holder".to_owned(),
        }
    }

    /// The fact to tell, if this is what was waited for.
    pub(super) fn told_by(self, sighting: &Sighting, cloud: &Cloud) -> Option<String> {
        match (self, sighting.kind) {
            (Self::Node(name, is), Kind::Node) => {
                let node = NodeView::from_json(&sighting.object).ok().filter(|node| node.name == name)?;
                is.fact(&node, sighting.gone).map(|fact| format!("node/{name} {fact}"))
            }
            (Self::Address(name), Kind::Service) => {
                let service = ServiceView::from_json(&sighting.object).ok()?;
                let address = service.ingress.first().and_then(|ingress| ingress.ip.clone())?;
                (service.name == name).then(|| format!("service/{name} has EXTERNAL-IP {address}"))
            }
            (Self::ServiceGone(name), Kind::Service) => {
                let named = text(&sighting.object, "/metadata/name") == name;
                (sighting.gone && named).then(|| format!("service/{name} deleted"))
            }
            (Self::Event(about, reason, part, in_cloud), Kind::Event) => {
                let told = told_of(&sighting.object) == about
                    && text(&sighting.object, "/reason") == reason
                    && text(&sighting.object, "/message").contains(part);
                let proof = told.then(|| in_cloud.proof(cloud)).flatten()?;
                Some(format!("{}{proof}", event_line(&sighting.object)))
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
}

impl NodeIs {
    const fn expectation(self) -> &'static str {
        match self {
            Self::Waiting => "with the taint of a node that waits for its cloud",
            Self::Initialised => "initialised",
            Self::NotReady => "NotReady",
            Self::ShutDown => "with the shutdown taint",
            Self::Back => "Ready without the shutdown taint",
            Self::Gone => "deleted",
        }
    }

    fn fact(self, node: &NodeView, gone: bool) -> Option<String> {
        let is = match self {
            Self::Waiting => node.has_taint(UNINITIALISED),
            Self::Initialised => !node.has_taint(UNINITIALISED) && node.provider_id.is_some(),
            Self::NotReady => node.ready == Ready::Unknown,
            Self::ShutDown => node.has_taint(SHUTDOWN),
            Self::Back => node.ready == Ready::True && !node.has_taint(SHUTDOWN),
            Self::Gone => gone,
        };
        (is && gone == matches!(self, Self::Gone)).then(|| match self {
            Self::Waiting | Self::ShutDown => format!("has {}", taints(node)),
            Self::Initialised => format!("is initialised: {}", place(node)),
            Self::NotReady => "is NotReady".to_owned(),
            Self::Back => format!("is Ready, {}", taints(node)),
            Self::Gone => "deleted".to_owned(),
        })
    }
}

impl InCloud {
    fn proof(self, cloud: &Cloud) -> Option<String> {
        match self {
            Self::Anything => Some(String::new()),
            Self::Members(wanted) => {
                let instances = cloud.instances();
                let name = |id: &String| instances.iter().find(|m| m.id == *id).map(|m| m.name.clone());
                let balancer = cloud.balancers().into_iter().next()?;
                let mut members: Vec<_> = balancer.members.values().filter_map(name).collect();
                members.sort_unstable();
                (members == wanted).then(|| format!("; the cloud sends traffic to {}", members.join(", ")))
            }
            Self::Ports(wanted) => {
                let balancer = cloud.balancers().into_iter().next()?;
                let mut ports: Vec<_> = balancer.listeners.values().map(|listener| listener.port).collect();
                ports.sort_unstable();
                let list: Vec<_> = ports.iter().map(ToString::to_string).collect();
                (ports == wanted).then(|| format!("; the cloud listens on {}", list.join(", ")))
            }
            Self::NoBalancer => {
                cloud.balancers().is_empty().then(|| "; the cloud has no load balancer".to_owned())
            }
        }
    }
}

/// The text at a place of an object; empty if there is none.
pub(super) fn text<'a>(object: &'a Value, path: &str) -> &'a str {
    object.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

fn told_of(event: &Value) -> String {
    let kind = text(event, "/involvedObject/kind").to_lowercase();
    format!("{kind}/{}", text(event, "/involvedObject/name"))
}

pub(super) fn event_line(event: &Value) -> String {
    let (level, reason) = (text(event, "/type"), text(event, "/reason"));
    format!("event {level} {reason} of {}: {}", told_of(event), text(event, "/message"))
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
