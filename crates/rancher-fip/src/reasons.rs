//! Why events are published.

use cloudberth_core::reasons;

reasons! {
    /// The reasons of the cluster manager for Rancher.
    pub REASONS;

    CLUSTER_READY = Normal, Other { component: "rancher-fip-cluster-manager", kind: "Cluster" }, "FloatingIPsReady",
        when: "Charts, secrets and the interface map are as they should be, after a change or a failure.",
        advice: "Nothing.";
    OPTED_OUT = Normal, Other { component: "rancher-fip-cluster-manager", kind: "Cluster" }, "FloatingIPsOptedOut",
        when: "The label `rancher-fip` is no longer `enabled`. What was installed stays.",
        advice: "Nothing. Uninstall the charts by hand if they are not wanted any more.";
    NO_KUBECONFIG = Warning, Other { component: "rancher-fip-cluster-manager", kind: "Cluster" }, "KubeconfigUnusable",
        when: "There is no kubeconfig of the cluster, or it cannot be used.",
        advice: "Check the Secret that the message names in the namespace of the provisioning Cluster.";
    UNREACHABLE = Warning, Other { component: "rancher-fip-cluster-manager", kind: "Cluster" }, "ClusterUnreachable",
        when: "The API server of the cluster does not answer, or refuses the credential.",
        advice: "Check the cluster and the credential in its kubeconfig. It is tried again by itself.";
    CHAIN_FAILED = Warning, Other { component: "rancher-fip-cluster-manager", kind: "Cluster" }, "ProjectNotResolved",
        when: "The project of a cluster on Harvester could not be found. Charts are installed all the same.",
        advice: "Correct what the message names. It is tried again by itself.";
    BALANCER_CONFLICT = Warning, Other { component: "rancher-fip-cluster-manager", kind: "Cluster" }, "LoadBalancerConflict",
        when: "Another load balancer than the one asked for is installed. Neither is touched.",
        advice: "Uninstall one of the two, or change the label `rancher-fip-lbtype`.";
    BALANCER_UNKNOWN = Warning, Other { component: "rancher-fip-cluster-manager", kind: "Cluster" }, "LoadBalancerTypeUnknown",
        when: "The label `rancher-fip-lbtype` has a value that is not known; the default is used.",
        advice: "Set the label to `metallb` or `purelb`, or remove it.";
    BALANCER_MISSING = Warning, Other { component: "rancher-fip-cluster-manager", kind: "Cluster" }, "LoadBalancerNotConfigured",
        when: "The load balancer that the label asks for is not in the configuration.",
        advice: "Complete its section in the ConfigMap, or change the label.";
    HELM_FAILED = Warning, Other { component: "rancher-fip-cluster-manager", kind: "Cluster" }, "ChartFailed",
        when: "A chart could not be installed or upgraded. The message has the cause.",
        advice: "Read the message. It is tried again by itself; a mistake in values or templates needs a new configuration.";
    HELM_WAITING = Warning, Other { component: "rancher-fip-cluster-manager", kind: "Cluster" }, "ChartBusy",
        when: "A release is being changed by somebody else, or is in a state that nobody can work on.",
        advice: "Wait. If it stays, look at the release with `helm history`.";
    WRITE_FAILED = Warning, Other { component: "rancher-fip-cluster-manager", kind: "Cluster" }, "WriteFailed",
        when: "An object could not be read or written. The message names it and has the cause.",
        advice: "It is tried again by itself. If a right is missing, grant it; an immutable object has to be replaced by hand.";
    MAP_INCOMPLETE = Warning, Other { component: "rancher-fip-cluster-manager", kind: "Cluster" }, "InterfaceMapIncomplete",
        when: "A pool has no network interface, or the pool of a project is not in the interface map.",
        advice: "Set `spec.targetNetworkInterface` of the pool, or `spec.targetCluster`.";
    CA_LEFT = Warning, Other { component: "rancher-fip-cluster-manager", kind: "Cluster" }, "CAKeptDownstream",
        when: "The CA is gone here; the copy downstream stays.",
        advice: "Delete the Secret `cacerts` downstream by hand if it is not needed any more.";
    KINDS_MISSING = Warning, Other { component: "rancher-fip-cluster-manager", kind: "Cluster" }, "FloatingIPKindsMissing",
        when: "The floating-IP kinds are not served here, so pools and quotas are unknown.",
        advice: "Install the CRDs of rancher-fip-manager.";
    RELEASE_FAILED = Warning, Other { component: "rancher-fip-cluster-manager", kind: "FloatingIP" }, "ReleaseFailed",
        when: "A floating IP of a cluster that is gone could not be released.",
        advice: "Read the message; a webhook may refuse the change. It is tried again by itself.";
    QUOTA_PROJECT_MISSING = Warning, Other { component: "rancher-fip-cluster-manager", kind: "FloatingIPProjectQuota" }, "ProjectMissing",
        when: "There is no project of the quota's name, or its cluster is missing.",
        advice: "Create the project, or delete the quota.";
    NO_DEFAULT_POOL = Warning, Other { component: "rancher-fip-cluster-manager", kind: "FloatingIPProjectQuota" }, "NoDefaultPool",
        when: "No pool of the cluster carries the annotation `rancher-fip-default-network: \"true\"`.",
        advice: "Annotate the pool that is to be the default.";
    SEVERAL_DEFAULT_POOLS = Warning, Other { component: "rancher-fip-cluster-manager", kind: "FloatingIPProjectQuota" }, "SeveralDefaultPools",
        when: "Several pools of the cluster are marked as default; the first by name is used.",
        advice: "Remove the annotation from all but one.";
    DUPLICATE_PROJECT = Warning, Other { component: "rancher-fip-cluster-manager", kind: "Cluster" }, "ProjectAmbiguous",
        when: "Two clusters have a project of this id. The API server of the floating IPs looks at the first only.",
        advice: "Rename is not possible; use another project.";
    QUOTA_FAILED = Warning, Other { component: "rancher-fip-cluster-manager", kind: "FloatingIPProjectQuota" }, "QuotaFailed",
        when: "The Secret of the quota's project could not be read or written.",
        advice: "It is tried again by itself. If the namespace of the project is missing, create it.";
    SECRETS_KEPT = Normal, Other { component: "rancher-fip-cluster-manager", kind: "FloatingIPProjectQuota" }, "SecretsKept",
        when: "A quota is being deleted. Its Secrets stay, because clusters on Harvester use them without a quota.",
        advice: "Delete the Secrets that the message names by hand if they are not needed any more.";
    LEADER_ELECTION = Normal, Other { component: "rancher-fip-cluster-manager", kind: "Lease" }, "LeaderElection",
        when: "A replica became the leader, or stopped being it.",
        advice: "Nothing.";
}
