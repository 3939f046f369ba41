//! The reasons that the framework publishes, in the order in which an object meets them.

crate::reasons! {
    /// Every reason of the framework.
    pub REASONS;

    ENSURING_LOAD_BALANCER = Normal, Service, "EnsuringLoadBalancer",
        when: "Work on the load balancer begins.",
        advice: "Nothing. `EnsuredLoadBalancer` or a warning follows; if neither does for minutes, read the log.";
    ENSURED_LOAD_BALANCER = Normal, Service, "EnsuredLoadBalancer",
        when: "The load balancer is as the Service asks, as far as nothing was refused.",
        advice: "Nothing.";
    UPDATED_LOAD_BALANCER = Normal, Service, "UpdatedLoadBalancer",
        when: "The load balancer has its new set of nodes.",
        advice: "Nothing.";
    DELETING_LOAD_BALANCER = Normal, Service, "DeletingLoadBalancer",
        when: "The Service no longer needs its load balancer, and its removal begins.",
        advice: "Nothing. `DeletedLoadBalancer` follows; until then a finalizer keeps the Service.";
    DELETED_LOAD_BALANCER = Normal, Service, "DeletedLoadBalancer",
        when: "The load balancer is gone and the finalizer is removed.",
        advice: "Nothing.";
    UNAVAILABLE_LOAD_BALANCER = Warning, Service, "UnAvailableLoadBalancer",
        when: "There is no node that the load balancer could send traffic to.",
        advice: "Look at the nodes: they must be Ready, initialised by their cloud and not excluded by label. If the Service selects nodes by annotation, check that it matches some.";
    SYNC_LOAD_BALANCER_FAILED = Warning, Service, "SyncLoadBalancerFailed",
        when: "The load balancer could not be created, changed or removed. The message has the cause.",
        advice: "It is tried again by itself; what runs goes on. If the message names the token, a quota or a field, correct that; if the cloud does not answer, wait for the cloud.";
    UPDATE_LOAD_BALANCER_FAILED = Warning, Service, "UpdateLoadBalancerFailed",
        when: "The load balancer did not get its new set of nodes. The message has the cause.",
        advice: "It is tried again by itself; the nodes from before still get traffic. Do not remove more nodes until it succeeds.";
    INVALID_ANNOTATION = Warning, Service, "InvalidAnnotation",
        when: "An annotation has a value that cannot be used. No load balancer is created; on an existing one the running setting stays.",
        advice: "Correct the annotation that the message names.";
    CONFLICTING_ANNOTATIONS = Warning, Service, "ConflictingAnnotations",
        when: "Two spellings of one annotation are set and say different things; the message says which counts.",
        advice: "Remove the one that is ignored.";
    DEPRECATED_ANNOTATION = Warning, Service, "DeprecatedAnnotation",
        when: "An annotation is set by an old name, which still works.",
        advice: "Use the new name that the message gives.";
    ANNOTATION_WITHOUT_EFFECT = Warning, Service, "AnnotationWithoutEffect",
        when: "An annotation is set that does nothing, here or any more; the message says why.",
        advice: "Remove it, or change the setting that takes its effect away.";
    UNKNOWN_ANNOTATION = Warning, Service, "UnknownAnnotation",
        when: "An annotation with the prefix of the cloud is not known; it is ignored.",
        advice: "Look for a typing mistake; the message has the nearest known name.";
    UNSUPPORTED_FIELD = Warning, Service, "UnsupportedField",
        when: "A field of the Service cannot be carried out on this cloud. No load balancer is created; on an existing one only that field is left out.",
        advice: "Change the field as the message says.";
    ADDRESS_TAKEN = Warning, Service, "AddressTaken",
        when: "A floating address that the Service asks for is also claimed by another Service, and stays where it is.",
        advice: "Remove the address from one of the two Services.";
    NO_ADDRESS_SHOWN = Warning, Service, "NoAddressShown",
        when: "The cloud shows no address of a load balancer that had one; the published address stays.",
        advice: "Check the load balancer in the cloud's console. If the address is right there, nothing is to be done.";
    LOAD_BALANCER_NOT_PROVEN = Warning, Service, "LoadBalancerNotProven",
        when: "A load balancer of the Service's name exists, and nothing shows that it is the Service's; it is not touched.",
        advice: "To adopt it, set the annotation that the message names to its id. Otherwise give the Service another name for its load balancer, or delete the old one by hand.";
    LOAD_BALANCER_OF_ANOTHER_SERVICE = Warning, Service, "LoadBalancerOfAnotherService",
        when: "The load balancer that the Service names was made for another Service; it is not touched.",
        advice: "If this Service replaces that one (a restore, a move), set `cloudberth.dev/adopt-load-balancer` to the id in the message. Otherwise remove the recorded id from this Service.";
    LOAD_BALANCER_OWNER_UNCLEAR = Warning, Service, "LoadBalancerOwnerUnclear",
        when: "The annotations do not say plainly which cloud has the load balancer; nothing is done until they do.",
        advice: "Correct the annotations that the message names, or start cloudberth with the cloud that it names.";
    ORPHANED_LOAD_BALANCER = Warning, Service, "OrphanedLoadBalancer",
        when: "The finalizer was removed before the load balancer was gone, so nothing tracks it any more.",
        advice: "Look for the load balancer in the cloud's console and delete it if nobody needs it; it costs money until then.";

    SYNCED = Normal, Node, "Synced",
        when: "The node is initialised: it has its provider id, addresses and labels, and may get pods.",
        advice: "Nothing.";
    NO_PROVIDER_ID = Warning, Node, "NoProviderID",
        when: "The node has no provider id and did not wait for its cloud, so load balancers and routes cannot find its instance.",
        advice: "Start its kubelet with `--cloud-provider=external`, delete the node and let it register anew.";
    INVALID_CONFIGURATION = Warning, Node, "InvalidConfiguration",
        when: "Something on the node is wrong, such as its provider id or the address its kubelet gave.",
        advice: "Correct what the message names, usually a flag of the kubelet (`--provider-id`, `--node-ip`).";
    CLOUD_RESOURCE_NOT_FOUND = Warning, Node, "CloudResourceNotFound",
        when: "The cloud has no instance for the node, or the instance lacks the address that the kubelet gave.",
        advice: "Compare the names in the message: the instance must have the node's name, or the kubelet its `--provider-id`. Check that the token is of the right project.";
    CLOUD_CONFLICT = Warning, Node, "CloudConflict",
        when: "Several instances have the node's name.",
        advice: "Rename all but one, or start the kubelet with `--provider-id`.";
    INTERNAL_ERROR = Warning, Node, "InternalError",
        when: "cloudberth met a bug while it worked on the node.",
        advice: "Report it with the log around that time. The node is tried again, and other nodes are not affected.";

    DELETING_NODE = Normal, Lifecycle, "DeletingNode",
        when: "The node is about to be deleted, because its instance was found gone twice.",
        advice: "Nothing, if the instance was deleted on purpose. Otherwise ask who deleted it in the cloud.";
    DELETING_NODE_FAILED = Warning, Lifecycle, "DeletingNodeFailed",
        when: "The node's instance is gone and the node could not be deleted. The message has the cause.",
        advice: "It is tried again by itself. If the message says forbidden, compare the role of cloudberth with its manifest.";
    NODE_DELETION_HELD = Warning, Lifecycle, "NodeDeletionHeld",
        when: "The node's instance is gone, and the node stays because too many nodes would go within ten minutes (`--max-node-deletions`).",
        advice: "Find out why so many instances are gone. If that is right, wait, or delete the node by hand.";
    LISTING_DOUBTFUL = Warning, Lifecycle, "MachineListingDoubtful",
        when: "The cloud's listing lacks so much that it is not believed, so the node stays.",
        advice: "Check that the token is of the right project. If the instance is really gone, set the annotation that the message names on the node.";
    INSTANCE_NOT_FOUND = Warning, Lifecycle, "MachineNotFound",
        when: "The node has no provider id, and the cloud has no instance of its name.",
        advice: "If the node is a left-over, delete it; it is never deleted automatically.";

    FAILED_TO_CREATE_ROUTE = Warning, Route, "FailedToCreateRoute",
        when: "The route to the pods of the node could not be created. The message has the cause.",
        advice: "It is tried again by itself; until then other nodes do not reach the pods of this one. Correct what the message names, such as a quota or the token.";

    UNROUTABLE_NETWORK = Warning, Route, "UnroutableNetwork",
        when: "The node has a network for pods of an IP family that the cloud cannot route.",
        advice: "Use a network plugin that needs no routes for that family, or a cluster of the other family only. The node is not held back by it.";

    LEADER_ELECTION = Normal, Election, "LeaderElection",
        when: "A replica became leader, or stopped leading.",
        advice: "Nothing, after a restart or an update. If it happens again and again, the leader does not reach the API server in time: look at the load of both.";
}
