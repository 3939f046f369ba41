//! The event reasons that only this provider publishes.

cloudberth_core::reasons! {
    /// All of them, for the reference.
    pub(crate) REASONS;

    NO_VALID_NODES = Warning, Service, "NoValidNodes",
        when: "No node takes traffic: none matches the node selector, or none has a private address in an allowed subnet.",
        advice: "Check the node selector and the allowed subnets of the Service, and that the servers have a private network.";
    NODE_WITHOUT_SERVER = Warning, Service, "NodeWithoutServer",
        when: "Some nodes take no traffic because their server is not found.",
        advice: "Look at the nodes that the message names: is the server gone, or is the token of another project?";
    NODE_ADDRESS_UNKNOWN = Warning, Service, "NodeAddressUnknown",
        when: "The servers of some nodes cannot be read, so no member is removed for now.",
        advice: "Wait: it is tried again. If it lasts, look at the servers in the cloud's console.";
    IMMUTABLE_FIELD = Warning, Service, "ImmutableField",
        when: "A setting was changed that an existing load balancer cannot change; the running one stays.",
        advice: "Set it back. If the change is needed, create a new Service beside the old one and move clients over.";
    CLAIMED_BY_ANOTHER_SERVICE = Warning, Service, "ClaimedByAnotherService",
        when: "Two Services name the same load balancer, and nothing shows whose it is; neither changes it.",
        advice: "Remove or change the annotation that the message names on the Service that does not own it.";
    SOURCE_RANGES_IGNORED = Warning, Service, "SourceRangesIgnored",
        when: "`spec.loadBalancerSourceRanges` is set on a load balancer from before cloudberth, which ignored it; it stays open as it is.",
        advice: "Set the annotation that the message names to say who may connect.";
    HEALTH_CHECK_DETAILS = Warning, Service, "HealthCheckDetails",
        when: "HTTP details of the health check are set together with `externalTrafficPolicy: Local`, where the check asks kube-proxy.",
        advice: "Remove the annotation, unless you know that the details fit kube-proxy's health check.";
}
