//! The condition that tells the scheduler whether a node's pods can be reached.

use jiff::Timestamp;
use serde_json::json;

use crate::{decide::node::patch::NodePatch, view::NodeView};

/// The type of the condition.
pub const NETWORK_UNAVAILABLE: &str = "NetworkUnavailable";

/// Whether the routes to a node's pods are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// All of them.
    Created,
    /// At least one is missing.
    NotCreated,
}

impl Network {
    /// Status, reason and message of the condition.
    const fn words(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Created => ("False", "RouteCreated", "RouteController created a route"),
            Self::NotCreated => ("True", "NoRouteCreated", "RouteController failed to create a route"),
        }
    }
}

/// The patch of the node's status that makes the condition say `network`; `None` when it says so
/// already, in status and in reason. The same status for somebody else's reason is written over: the reason tells
/// who vouches for it.
#[must_use]
pub fn condition_patch(node: &NodeView, network: Network, now: Timestamp) -> Option<NodePatch> {
    let (status, reason, message) = network.words();
    if node.network_unavailable.as_ref().is_some_and(|seen| seen.status == status && seen.reason == reason) {
        return None;
    }
    // Kubernetes keeps whole seconds.
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now).to_string();
    let condition = json!({
        "type": NETWORK_UNAVAILABLE,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": now,
        "lastHeartbeatTime": now,
    });
    Some(NodePatch::status(node, json!({ "conditions": [condition] })))
}

#[cfg(test)]
mod tests {
    use super::{Network::*, *};
    use crate::view::Condition;
    use serde_json::Value;

    const NOW: &str = "2026-03-02T04:05:06Z";

    fn patch(seen: Option<(&str, &str)>, network: Network) -> Option<Value> {
        let condition =
            |(status, reason): (&str, &str)| Condition { status: status.into(), reason: reason.into() };
        let node =
            NodeView { network_unavailable: seen.map(condition), uid: "u".into(), ..NodeView::default() };
        let patch = condition_patch(&node, network, "2026-03-02T04:05:06.789Z".parse().unwrap());
        patch.map(|patch| patch.body().clone())
    }

    #[test]
    fn the_condition_is_written_only_when_it_says_something_else() {
        let says = |status, reason| Some((status, reason));
        let table = [
            ("FW-294 none, created", None, Created, says("False", "RouteCreated")),
            ("FW-295 none, not created", None, NotCreated, says("True", "NoRouteCreated")),
            ("FW-296 created already", says("False", "RouteCreated"), Created, None),
            ("FW-297 CalicoIsUp", says("False", "CalicoIsUp"), Created, says("False", "RouteCreated")),
            ("FW-297 ExternalCNI", says("False", "ExternalCNI"), Created, says("False", "RouteCreated")),
            ("FW-298 another reason", says("True", "Other"), NotCreated, says("True", "NoRouteCreated")),
            ("FW-299 lost", says("False", "RouteCreated"), NotCreated, says("True", "NoRouteCreated")),
            ("FW-300 not created already", says("True", "NoRouteCreated"), NotCreated, None),
            ("found again", says("True", "NoRouteCreated"), Created, says("False", "RouteCreated")),
            ("an odd status", says("Unknown", "RouteCreated"), Created, says("False", "RouteCreated")),
        ];
        for (case, seen, network, want) in table {
            let got = patch(seen, network);
            let condition = got.as_ref().map(|body| &body["status"]["conditions"][0]);
            let said = condition.map(|c| (c["status"].as_str().unwrap(), c["reason"].as_str().unwrap()));
            assert_eq!(said, want, "{case}");
        }
    }

    #[test]
    fn the_patch_holds_the_whole_condition_and_nothing_else() {
        let body = |status: &str, reason: &str, message: &str| {
            json!({"metadata": {"uid": "u"}, "status": {"conditions": [{
                "type": "NetworkUnavailable", "status": status, "reason": reason, "message": message,
                "lastTransitionTime": NOW, "lastHeartbeatTime": NOW,
            }]}})
        };
        assert_eq!(
            patch(None, Created),
            Some(body("False", "RouteCreated", "RouteController created a route")),
            "FW-294"
        );
        assert_eq!(
            patch(None, NotCreated),
            Some(body("True", "NoRouteCreated", "RouteController failed to create a route")),
            "FW-295"
        );
    }
}
