//! What people read on a node, in the words that their alerts already look for.

/// Message of the event of a node that was initialised.
pub const SYNCED_MESSAGE: &str = "Node synced successfully";

/// Message of the warning about a node that joined past its cloud.
pub const UNBOUND_MESSAGE: &str = "the node has no provider id and does not wait for its cloud, so load balancers and \
                                   routes cannot find its instance safely; start its kubelet with \
                                   --cloud-provider=external and let it register anew";

/// Events with a longer message are refused by Kubernetes.
pub const MESSAGE_LIMIT: usize = 1_024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_not_too_long_for_kubernetes() {
        assert!(UNBOUND_MESSAGE.len() <= MESSAGE_LIMIT);
    }
}
