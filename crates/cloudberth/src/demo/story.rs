//! What happens, and what has to be seen after it. A table; how it is played is elsewhere.

use std::time::Duration;

use cloudberth_core::decide::lifecycle::Timing;

use super::sight::{
    InCloud::{Anything, Members, NoBalancer, Ports},
    NodeIs::{Back, Gone, Initialised, NotReady, ShutDown, Waiting},
    Sight::{self, Address, Event, LeaseFree, Node, ServiceGone},
};

#[derive(Clone, Copy, Debug)]
pub(super) enum Act {
    /// Nothing; what was begun earlier is waited for.
    Nothing,
    /// Instances boot, each in its zone, and their kubelets register nodes.
    Join(&'static [(&'static str, &'static str)]),
    Stop(&'static str),
    Start(&'static str),
    Destroy(&'static str),
    /// A Service of type `LoadBalancer` is created, with an annotation.
    Serve(&'static str, (&'static str, &'static str)),
    /// An annotation of a Service is changed.
    Annotate(&'static str, (&'static str, &'static str)),
    /// The cloud answers nothing but errors, and a Service gets another port.
    BreakCloudAndOpenPort(&'static str),
    /// The cloud is well again.
    MendCloud,
    Delete(&'static str),
    StopManager,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) says: &'static str,
    pub(super) because: Option<fn() -> String>,
    pub(super) act: Act,
    /// What has to be seen before the next step.
    pub(super) sees: &'static [Sight],
    /// What has to be seen by the end; the story goes on meanwhile, until a step that does [`Act::Nothing`].
    pub(super) later: &'static [Sight],
}

/// How long something may take, on an instance that is busy with other things too. In practice nothing takes a tenth of it,
/// except what a law slows down.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);

/// How long what a law slows down may take.
pub(super) fn long_patience() -> Duration {
    Timing::LAW.start_up_grace + Timing::LAW.confirm_after + PATIENCE
}

fn why_nodes_stay() -> String {
    format!(
        "(Nodes are hard to lose: none goes within {} s after it was first seen, and its instance has to be\n          \
         missing twice, {} s apart. So this takes a while; the story goes on meanwhile.)",
        Timing::LAW.start_up_grace.as_secs(),
        Timing::LAW.confirm_after.as_secs(),
    )
}

fn kubelets_are_played() -> String {
    "(The demo plays the kubelets: what they would report about an instance, it reports at once.)".to_owned()
}

const ALGORITHM: &str = "fake.cloudberth.dev/algorithm";

const PLAIN: Step = Step { says: "", because: None, act: Act::Nothing, sees: &[], later: &[] };

pub(super) static STORY: &[Step] = &[
    Step {
        says: "The manager starts and stands for election.",
        sees: &[Event("lease/cloud-controller-manager", "LeaderElection", "became leader", Anything)],
        ..PLAIN
    },
    Step {
        says: "Three instances boot. Their kubelets register nodes that take no pods before the cloud knows them.",
        because: Some(kubelets_are_played),
        act: Act::Join(&[("worker-1", "north-1"), ("worker-2", "north-2"), ("worker-3", "north-1")]),
        sees: &[
            Node("worker-1", Waiting),
            Node("worker-2", Waiting),
            Node("worker-3", Waiting),
            Node("worker-1", Initialised),
            Node("worker-2", Initialised),
            Node("worker-3", Initialised),
        ],
        ..PLAIN
    },
    Step {
        says: "Somebody deletes the instance of worker-3 at the cloud. Its node will go too.",
        because: Some(why_nodes_stay),
        act: Act::Destroy("worker-3"),
        sees: &[Node("worker-3", NotReady)],
        later: &[Event("node/worker-3", "DeletingNode", "does not exist", Anything), Node("worker-3", Gone)],
    },
    Step {
        says: "kubectl apply: Service web, type LoadBalancer, with a mistyped annotation. It is refused, and the refusal names it.",
        act: Act::Serve("web", (ALGORITHM, "least-conections")),
        sees: &[Event("service/web", "InvalidAnnotation", ALGORITHM, NoBalancer)],
        ..PLAIN
    },
    Step {
        says: "The annotation is corrected. The cloud builds the load balancer.",
        act: Act::Annotate("web", (ALGORITHM, "least-connections")),
        sees: &[
            Address("web"),
            Event("service/web", "EnsuredLoadBalancer", "", Members(&["worker-1", "worker-2"])),
        ],
        ..PLAIN
    },
    Step {
        says: "A fourth instance boots and joins the cluster.",
        act: Act::Join(&[("worker-4", "north-2")]),
        sees: &[
            Node("worker-4", Waiting),
            Node("worker-4", Initialised),
            Event("service/web", "UpdatedLoadBalancer", "", Members(&["worker-1", "worker-2", "worker-4"])),
        ],
        ..PLAIN
    },
    Step {
        says: "Somebody switches the instance of worker-2 off. Its node stays, and is marked.",
        act: Act::Stop("worker-2"),
        sees: &[Node("worker-2", NotReady), Node("worker-2", ShutDown)],
        ..PLAIN
    },
    Step {
        says: "It is switched on again.",
        act: Act::Start("worker-2"),
        sees: &[Node("worker-2", Back)],
        ..PLAIN
    },
    Step {
        says: "The cloud's API breaks: every request fails. Just then web gets a second port, 443.",
        act: Act::BreakCloudAndOpenPort("web"),
        sees: &[Event("service/web", "SyncLoadBalancerFailed", "", Ports(&[80]))],
        ..PLAIN
    },
    Step {
        says: "The cloud's API is well again. What failed is tried again by itself.",
        act: Act::MendCloud,
        sees: &[Event("service/web", "EnsuredLoadBalancer", "", Ports(&[80, 443]))],
        ..PLAIN
    },
    Step { says: "Now for worker-3, whose instance was deleted.", ..PLAIN },
    Step {
        says: "kubectl delete service web. Its load balancer goes first, then the Service.",
        act: Act::Delete("web"),
        sees: &[ServiceGone("web"), Event("service/web", "DeletedLoadBalancer", "", NoBalancer)],
        ..PLAIN
    },
    Step {
        says: "The manager is told to stop (SIGTERM). It lets go of its Lease.",
        act: Act::StopManager,
        sees: &[LeaseFree],
        ..PLAIN
    },
];
