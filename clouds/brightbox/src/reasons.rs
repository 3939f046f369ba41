//! The event reasons that only this provider publishes.

cloudberth_core::reasons! {
    /// All of them, for the reference.
    pub(crate) REASONS;

    NODE_WITHOUT_SERVER = Warning, Service, "NodeWithoutServer",
        when: "Some nodes take no traffic because their server is not found.",
        advice: "Look at the nodes that the message names: is the server gone, or is the credential of another account?";
    CERTIFICATE_PENDING = Warning, Service, "CertificatePending",
        when: "The address is published, and the certificate of a domain is not there yet.",
        advice: "Wait a few minutes. If it lasts, point the domain that the message names at the address that it names.";
    DOMAIN_LEADS_ELSEWHERE = Warning, Service, "DomainLeadsElsewhere",
        when: "A domain of the certificate does not lead to the Cloud IP, so it is left out until it does.",
        advice: "Point the domain at one of the addresses in the message.";
    SETTINGS_NOT_WRITTEN = Warning, Service, "SettingsNotWritten",
        when: "A setting differs on a load balancer from before cloudberth, which never wrote it; it is left as it is.",
        advice: "Edit the Service in any way to have the setting written, or set the annotation to what runs.";
    SOURCE_RANGES_IGNORED = Warning, Service, "SourceRangesIgnored",
        when: "`spec.loadBalancerSourceRanges` is set, and Brightbox load balancers cannot limit who connects; everybody can.",
        advice: "Remove the field. Limit who connects in the workload, or by a network policy.";
    CLOUD_IP_KEPT = Normal, Service, "CloudIPKept",
        when: "The Cloud IP was chosen by an annotation or a field that is gone by now, and stays in use.",
        advice: "Nothing, if the address should stay. To get another one, unmap the Cloud IP by hand.";
    LOAD_BALANCER_FAILED = Warning, Service, "LoadBalancerFailed",
        when: "The cloud gave up on the load balancer; it is replaced.",
        advice: "Nothing at first. If the new one fails too, ask the vendor's support about the id in the message.";
    SEVERAL_OF_ONE_NAME = Warning, Service, "SeveralOfOneName",
        when: "Several things of one kind have the name of the load balancer; the first is used.",
        advice: "Delete the others that the message names, unless two clusters share one `--cluster-name`: then rename one.";
    CHECKS_ASK_WORKLOAD = Normal, Service, "ChecksAskWorkload",
        when: "A load balancer was created whose checks ask the workload for `/healthz`, because nobody chose another check.",
        advice: "Nothing, if the workload answers it. Otherwise set another path, or let kube-proxy answer.";
    CLUSTER_NAME_SHARED = Warning, Service, "ClusterNameShared",
        when: "None of several servers behind the load balancer is a node of this cluster.",
        advice: "See whether another cluster of the account has the same `--cluster-name`, and rename one. Otherwise nothing.";
}
