//! What people read on a node, in the words that their alerts already look for.

use crate::error::Category;

/// The component that events about nodes come from.
pub const COMPONENT: &str = "cloud-node-controller";

/// Reason of the event of a node that was initialised.
pub const SYNCED: &str = "Synced";

/// Message of the event of a node that was initialised.
pub const SYNCED_MESSAGE: &str = "Node synced successfully";

/// Reason of the warning about a node that joined past its cloud.
pub const UNBOUND: &str = "NoProviderID";

/// Message of the warning about a node that joined past its cloud.
pub const UNBOUND_MESSAGE: &str = "the node has no provider id and does not wait for its cloud, so load balancers and \
                                   routes cannot find its instance safely; start its kubelet with \
                                   --cloud-provider=external and let it register anew";

/// Reason of the warning about a node that a worker met a bug with.
pub const BUG: &str = "InternalError";

/// Events with a longer message are refused by Kubernetes.
pub const MESSAGE_LIMIT: usize = 1_024;

/// The reason of the warning that a decision which failed is worth on its node.
///
/// None where the cause lies with the cloud or its credential: then every node has it, nobody who looks at this one can
/// help, and the log and the metrics say it once for all.
#[must_use]
pub const fn worth_telling(why: Category) -> Option<&'static str> {
    match why {
        Category::UserInput | Category::NotFound | Category::Conflict => why.event_reason(),
        Category::Unauthorised
        | Category::Throttled { .. }
        | Category::Temporary
        | Category::Permanent
        | Category::Cancelled => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_told_only_what_can_be_mended_there() {
        let told = Category::ALL.iter().filter_map(|category| worth_telling(*category)).collect::<Vec<_>>();
        assert_eq!(told, ["InvalidConfiguration", "CloudResourceNotFound", "CloudConflict"]);
        assert!(UNBOUND_MESSAGE.len() <= MESSAGE_LIMIT);
    }
}
