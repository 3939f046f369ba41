//! The event reasons that only this provider publishes.

cloudberth_core::reasons! {
    /// All of them, for the reference.
    pub(crate) REASONS;

    UNSUPPORTED_SERVICE_PORT = Warning, Service, "UnsupportedServicePort",
        when: "The Service has a port that BinaryLane cannot forward: only TCP 80 and TCP 443 can be.",
        advice: "Use port 80 or 443, TCP, or put an ingress controller in front of the Service.";
    UNSUPPORTED_IP_FAMILY = Warning, Service, "UnsupportedIPFamily",
        when: "The Service asks for IPv6, and the address of a load balancer is IPv4.",
        advice: "Set `spec.ipFamilies` to IPv4, and `spec.ipFamilyPolicy` to SingleStack or PreferDualStack.";
    UNSUPPORTED_SESSION_AFFINITY = Warning, Service, "UnsupportedSessionAffinity",
        when: "The Service asks for session affinity, and BinaryLane has a fixed one: a client stays with a server for 60 s.",
        advice: "Set `spec.sessionAffinity` to None.";
    UNSUPPORTED_LOAD_BALANCER_IP = Warning, Service, "UnsupportedLoadBalancerIP",
        when: "The Service asks for an address, and BinaryLane chooses the address of a load balancer itself.",
        advice: "Remove `spec.loadBalancerIP`.";
    REGION_IMMUTABLE = Warning, Service, "RegionImmutable",
        when: "The Service asks for another region than its load balancer is in; the running one stays.",
        advice: "Set the annotation back. If the change is needed, create a new Service beside the old one and move clients over.";
    NODE_REGION_MISMATCH = Warning, Service, "NodeRegionMismatch",
        when: "Some nodes take no traffic because their server is in another region than the load balancer.",
        advice: "Keep the nodes of a cluster in one region, or use an anycast load balancer.";
    NODE_OUTSIDE_VPC = Warning, Service, "NodeOutsideVPC",
        when: "Some nodes take no traffic because their server is not in the VPC of `BINARYLANE_VPC_ID`.",
        advice: "Move the servers into the VPC, or remove the setting.";
    NODE_NOT_RESOLVED = Normal, Service, "NodeNotResolved",
        when: "Some nodes take no traffic for now because their server is not found or not described.",
        advice: "Wait: it is tried again. If it lasts, look at the servers that the message names.";
    PORT_NOT_FORWARDED = Normal, Service, "PortNotForwarded",
        when: "The annotation says which protocols are forwarded and leaves out a port of the Service.",
        advice: "Nothing, if that is meant. Otherwise add the protocol to the annotation, or remove the annotation.";
    ONE_IP_FAMILY = Normal, Service, "OnlyOneIPFamily",
        when: "The Service prefers both IP families, and its load balancer has an IPv4 address only.",
        advice: "Nothing.";
    LOAD_BALANCER_ERRORED = Warning, Service, "LoadBalancerErrored",
        when: "BinaryLane could not build the load balancer. It is neither removed nor replaced.",
        advice: "Look at it in the cloud's console, or ask BinaryLane's support. Delete the Service to give it up.";
    LOAD_BALANCER_BLOCKED = Warning, Service, "LoadBalancerBlocked",
        when: "BinaryLane waits for a person before it goes on building the load balancer, such as for an invoice to be paid.",
        advice: "Do what the message says in the cloud's console.";
    DUPLICATE_LOAD_BALANCER = Warning, Service, "DuplicateLoadBalancer",
        when: "There are several load balancers of the Service's generated name; one is used, and what is surely left over is removed.",
        advice: "Look at those that the message names, and delete what nobody needs.";
    LOAD_BALANCER_NAME_TAKEN = Warning, Service, "LoadBalancerNameTaken",
        when: "A load balancer of the Service's generated name belongs to another cluster; it is not touched.",
        advice: "Give each cluster of the account a `--cluster-name` of its own.";
    LOAD_BALANCER_CLAIMED = Warning, Service, "LoadBalancerClaimed",
        when: "The recorded id is that of another Service's load balancer; it is not touched.",
        advice: "Nothing, if the annotation was copied by mistake: it is corrected. Otherwise remove it from the other Service.";
    NO_ROUTE_CHECK = Warning, Route, "SourceDestinationCheckEnabled",
        when: "The server of a new route only takes packets to its own addresses, so traffic that is routed to its pods is dropped.",
        advice: "Turn off the source and destination check of the server in the cloud's console.";
}
