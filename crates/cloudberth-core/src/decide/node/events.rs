//! What people read on a node, in the words that their alerts already look for.

/// The component that events about nodes come from.
pub const COMPONENT: &str = "cloud-node-controller";

/// Reason of the event of a node that was initialised.
pub const SYNCED: &str = "Synced";

/// Message of the event of a node that was initialised.
pub const SYNCED_MESSAGE: &str = "Node synced successfully";

/// Events with a longer message are refused by Kubernetes.
pub const MESSAGE_LIMIT: usize = 1_024;
