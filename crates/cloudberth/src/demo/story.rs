//! What happens, and what has to be seen after it. A table; how it is played is elsewhere.

use cloudberth::world::{PERIOD, TIMING};
use cloudberth_core::decide::lifecycle::Timing;

use super::sight::{
    InCloud::{Anything, Members, NoBalancer, Ports},
    NodeIs::{Gone, Initialised, NotReady, ShutDown, Waiting},
    Sight::{self, Address, Behind, Event, LeaseFree, Node, NothingLost, Refuses, ServiceGone, Traffic},
    Subject::{Its, Manager, Named},
};

/// Nodes are called by their number in the order in which they join: their names are up to the cloud.
pub(super) type Number = usize;

#[derive(Clone, Copy, Debug)]
pub(super) enum Act {
    StartManager,
    /// So many instances boot, and their kubelets register nodes.
    Boot(usize),
    Stop(Number),
    Destroy(Number),
    /// A Service of type `LoadBalancer` is created.
    Serve(&'static str),
    /// The same, with an annotation that has a mistake in it.
    ServeWithMistake(&'static str),
    /// The cloud answers nothing but errors, and a Service gets another port.
    BreakCloudAndOpenPort(&'static str),
    /// The cloud is well again.
    MendCloud,
    /// Services are deleted.
    Delete(&'static [&'static str]),
    StopManager,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) says: &'static str,
    pub(super) because: Option<fn() -> String>,
    pub(super) act: Act,
    /// What has to be seen before the next step.
    pub(super) sees: &'static [Sight],
}

fn why_nodes_stay() -> String {
    format!(
        "(Nodes are hard to lose: the instance has to be missing from a complete listing and to a lookup, twice,\n          \
         {} s apart, and none goes within {} s after it was first seen. In production it is {} s and {} s, and the\n          \
         cloud is asked every 5 s instead of every {} s.)",
        TIMING.confirm_after.as_secs(),
        TIMING.start_up_grace.as_secs(),
        Timing::LAW.confirm_after.as_secs(),
        Timing::LAW.start_up_grace.as_secs(),
        PERIOD.as_secs(),
    )
}

fn kubelets_are_played() -> String {
    "(The demo plays the kubelets: what they would report about an instance, it reports at once.)".to_owned()
}

fn backends_are_played() -> String {
    "(A small HTTP server at each node port stands in for kube-proxy and pods. Requests, load balancer and\n          \
     answers are real; they stay on the loopback interface.)"
        .to_owned()
}

const SERVICE: &str = "web";
const MISTAKEN: &str = "typo";

pub(super) static STORY: &[Step] = &[
    Step {
        says: "The manager starts and stands for election.",
        because: None,
        act: Act::StartManager,
        sees: &[Event(Manager, "LeaderElection", "became leader", Anything)],
    },
    Step {
        says: "Three instances boot. Their kubelets register nodes that take no pods before the cloud knows them.",
        because: Some(kubelets_are_played),
        act: Act::Boot(3),
        sees: &[
            Node(1, Waiting),
            Node(2, Waiting),
            Node(3, Waiting),
            Node(1, Initialised),
            Node(2, Initialised),
            Node(3, Initialised),
        ],
    },
    Step {
        says: "kubectl apply: Service web, type LoadBalancer. The cloud builds a load balancer.",
        because: None,
        act: Act::Serve(SERVICE),
        sees: &[Address(SERVICE), Event(Named(SERVICE), "EnsuredLoadBalancer", "", Members(&[1, 2, 3]))],
    },
    Step {
        says: "Requests go through it, and are spread over the nodes.",
        because: Some(backends_are_played),
        act: Act::Boot(0),
        sees: &[Traffic(&[1, 2, 3])],
    },
    Step {
        says: "Somebody switches the instance of the second node off. Its node stays, and is marked.",
        because: None,
        act: Act::Stop(2),
        sees: &[Node(2, NotReady), Node(2, ShutDown), Traffic(&[1, 3])],
    },
    Step {
        says: "Somebody destroys that instance. Its node goes too, and nothing is sent there any more.",
        because: Some(why_nodes_stay),
        act: Act::Destroy(2),
        sees: &[
            Event(Its(2), "DeletingNode", "does not exist", Anything),
            Node(2, Gone),
            Behind(SERVICE, &[1, 3]),
        ],
    },
    Step {
        says: "A new instance boots, joins the cluster and gets its share.",
        because: None,
        act: Act::Boot(1),
        sees: &[
            Node(4, Waiting),
            Node(4, Initialised),
            Event(Named(SERVICE), "UpdatedLoadBalancer", "", Members(&[1, 3, 4])),
            Traffic(&[1, 3, 4]),
        ],
    },
    Step {
        says: "kubectl apply: Service typo, with a mistyped annotation. It is refused, and the refusal names it.",
        because: None,
        act: Act::ServeWithMistake(MISTAKEN),
        sees: &[Event(Named(MISTAKEN), "InvalidAnnotation", "", NoBalancer(MISTAKEN))],
    },
    Step {
        says: "The cloud's API breaks: every request fails with 500. Just then web gets a second port.",
        because: None,
        act: Act::BreakCloudAndOpenPort(SERVICE),
        sees: &[
            Event(Named(SERVICE), "SyncLoadBalancerFailed", "", Ports(1)),
            Traffic(&[1, 3, 4]),
            NothingLost(&[1, 3, 4], SERVICE),
        ],
    },
    Step {
        says: "The cloud's API is well again. What failed is tried again by itself.",
        because: None,
        act: Act::MendCloud,
        sees: &[Event(Named(SERVICE), "EnsuredLoadBalancer", "", Ports(2))],
    },
    Step {
        says: "kubectl delete service web typo. Nothing of them is left.",
        because: None,
        act: Act::Delete(&[SERVICE, MISTAKEN]),
        sees: &[
            Event(Named(SERVICE), "DeletedLoadBalancer", "", NoBalancer(SERVICE)),
            ServiceGone(SERVICE),
            ServiceGone(MISTAKEN),
            Refuses(SERVICE),
        ],
    },
    Step {
        says: "The manager is told to stop (SIGTERM). It lets go of its Lease.",
        because: None,
        act: Act::StopManager,
        sees: &[LeaseFree],
    },
];
