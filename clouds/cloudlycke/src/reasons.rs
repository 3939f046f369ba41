//! The event reasons that only this provider publishes.

cloudberth_core::reasons! {
    /// All of them, for the reference.
    pub(crate) REASONS;

    PORT_NOT_SERVED = Warning, Service, "PortNotServed",
        when: "A port of the load balancer could not be bound; its other ports serve. The status of the Service shows the reason too.",
        advice: "Do what the message says: stop the program that has the port, or give the Service another one. It is tried again every two seconds.";
    PORT_SHIFTED = Warning, Service, "PortShifted",
        when: "The service may not bind a port below 1024, so it listens on that port plus 10000.",
        advice: "Use the port that the message names. Or let the service bind low ports: `setcap cap_net_bind_service=+ep` on the program, or a lower `net.ipv4.ip_unprivileged_port_start`; then start it again.";
    LOCAL_CLIENTS_LOCKED_OUT = Warning, Service, "LocalClientsLockedOut",
        when: "The source ranges leave out 127.0.0.0/8, from where all clients of a loopback address come.",
        advice: "Add 127.0.0.0/8 to `spec.loadBalancerSourceRanges`.";
    NODE_NOT_IN_INVENTORY = Warning, Service, "NodeNotInInventory",
        when: "Some nodes take no traffic because the inventory does not know them.",
        advice: "Add them to the inventory file, with the names or the provider ids of the nodes.";
    NO_NODES_BEHIND = Warning, Service, "NoNodesBehindLoadBalancer",
        when: "The load balancer has its address and no node behind it, so it closes every connection.",
        advice: "Do what the message says. On a cluster of one node, remove the label that it names.";
    FAMILY_LEFT_OUT = Normal, Service, "IPFamilyLeftOut",
        when: "The Service prefers both IP families, and the addresses of this mode are of one.",
        advice: "Nothing; or use the address mode `shared` or `pool`.";
}
