//! The metrics that every part of the program has, in the order of the reference.

cloudberth_core::metrics! {
    /// Every metric of this crate.
    pub TABLE;

    RUNNING_CONTROLLERS = Beta Gauge "running_managed_controllers" ["name", "manager"],
        "Whether a controller runs at present: 1 if it does, 0 if not";
    BUILD_INFO = Beta Gauge "kubernetes_build_info"
        ["major", "minor", "git_version", "git_commit", "git_tree_state", "build_date", "go_version", "compiler", "platform"],
        "Always 1; its labels tell which build this is";
    EVENTS_DROPPED = Alpha Counter "cloudberth_events_dropped_total" [],
        "Events that were not written: too many at once, or the API would not take them";

    MASTER_STATUS = Alpha Gauge "leader_election_master_status" ["name"],
        "Whether this process holds the lease: 1 if it does, 0 if not";
    SLOW_PATH = Alpha Counter "leader_election_slowpath_total" ["name"],
        "Renewals of the lease that had to read it first";

    TAINT_REMOVAL_DELAY = Alpha Histogram "node_controller_cloud_provider_taint_removal_delay_seconds" [],
        "Seconds from the creation of a node until the taint of uninitialised nodes was removed";
    INITIAL_SYNC_DELAY = Alpha Histogram "node_controller_initial_node_sync_delay_seconds" [],
        "Seconds from the creation of a node until it was synced for the first time";
    NODES_WAITING = Alpha Gauge "cloudberth_nodes_waiting" [],
        "Nodes that wait for their cloud: they carry the taint of uninitialised nodes";
    NODES_WAITING_SINCE = Alpha Gauge "cloudberth_nodes_waiting_since_timestamp_seconds" [],
        "When the node was created that waits longest for its cloud, in seconds since 1970; 0 if none waits";
    MONITOR_DURATION = Alpha Histogram "cloud_node_lifecycle_controller_monitor_nodes_duration_seconds" [],
        "Seconds that a pass over all nodes took";
    NODE_CLOUD_CALLS = Alpha Counter "cloud_node_lifecycle_controller_cloud_provider_calls_total" ["operation", "result"],
        "Questions put to the cloud about nodes";
    DELETIONS_HELD = Alpha Counter "cloudberth_node_deletions_held_total" [],
        "Node deletions put off because too many were due at once";

    LOAD_BALANCER_SYNCS = Alpha Counter "service_controller_loadbalancer_sync_total" [],
        "Updates of the hosts of load balancers";
    NODE_SYNC_ERRORS = Alpha Counter "service_controller_nodesync_error_total" [],
        "Failed updates of the hosts of load balancers";
    NODE_SYNC_LATENCY = Alpha Histogram "service_controller_nodesync_latency_seconds" [],
        "Seconds that a pass over all load balancers took after nodes had changed";
    UPDATE_HOSTS_LATENCY = Alpha Histogram "service_controller_update_loadbalancer_host_latency_seconds" [],
        "Seconds that the update of the hosts of one load balancer took";
    ORPHANS = Alpha Counter "cloudberth_orphaned_load_balancers_total" [],
        "Load balancers that may be left without a Service; they are never deleted";
    SERVICES_WAITING = Alpha Gauge "cloudberth_services_waiting" [],
        "Services that want a load balancer from a cloud, are not refused and have no address";
    SERVICES_WAITING_SINCE = Alpha Gauge "cloudberth_services_waiting_since_timestamp_seconds" [],
        "Since when the Service waits that waits longest for an address, in seconds since 1970; 0 if none waits";
    SERVICES_REFUSED = Alpha Gauge "cloudberth_services_refused" [],
        "Services of which a field or an annotation is refused; an event of each says which";
    ROUTE_SYNCS = Alpha Counter "route_controller_route_sync_total" ["outcome", "trigger"],
        "Passes over the routes";

    QUEUE_DEPTH = Beta Gauge "workqueue_depth" ["name"],
        "Keys that wait for a worker";
    QUEUE_ADDS = Beta Counter "workqueue_adds_total" ["name"],
        "Keys that began to wait";
    QUEUE_WAITED = Beta Histogram "workqueue_queue_duration_seconds" ["name"],
        "Seconds that a key waited for a worker";
    QUEUE_WORKED = Beta Histogram "workqueue_work_duration_seconds" ["name"],
        "Seconds that the work on a key took";
    QUEUE_UNFINISHED = Beta Gauge "workqueue_unfinished_work_seconds" ["name"],
        "Seconds that the work in progress has taken so far, added up; it grows while workers are stuck";
    QUEUE_LONGEST = Beta Gauge "workqueue_longest_running_processor_seconds" ["name"],
        "Seconds that the oldest work in progress has taken so far";
    QUEUE_RETRIES = Beta Counter "workqueue_retries_total" ["name"],
        "Keys to be worked on later";
    WORKER_PANICS = Alpha Counter "cloudberth_worker_panics_total" ["queue"],
        "Internal errors that a worker met; each is a bug";
    QUEUE_REFUSED = Alpha Counter "cloudberth_workqueue_refused_total" ["queue"],
        "Keys that found a queue full; the whole store is gone through later instead";

    CLOUD_REQUESTS = Alpha Counter "cloudberth_cloud_requests_total" ["provider", "operation", "outcome", "code"],
        "Requests sent to a cloud, retries included";
    CLOUD_THROTTLES = Alpha Counter "cloudberth_cloud_throttles_total" ["provider"],
        "Answers by which a cloud asked for fewer requests";
    CLOUD_BUDGET_WAITS = Alpha Histogram "cloudberth_cloud_budget_wait_seconds" ["provider"],
        "Seconds that requests waited for the request budget of their credential";
    CLOUD_DURATIONS = Alpha Histogram "cloudprovider_{cloud}_api_request_duration_seconds" ["request"],
        "Seconds that a request to the cloud took";
    CLOUD_ERRORS = Alpha Counter "cloudprovider_{cloud}_api_request_errors" ["request"],
        "Requests to the cloud that failed";

    KUBE_REQUESTS = Alpha Counter "rest_client_requests_total" ["code", "method", "host"],
        "Requests to the Kubernetes API";
    KUBE_DURATIONS = Alpha Histogram "rest_client_request_duration_seconds" ["verb", "host"],
        "Seconds until the Kubernetes API began to answer a request";
    KUBE_REQUEST_SIZES = Alpha Histogram "rest_client_request_size_bytes" ["verb", "host"],
        "Bytes sent to the Kubernetes API in the body of a request";

    CPU_SECONDS = Unmarked Counter "process_cpu_seconds_total" [],
        "Seconds of processor time used";
    OPEN_FILES = Unmarked Gauge "process_open_fds" [],
        "Open file descriptors";
    RESIDENT_MEMORY = Unmarked Gauge "process_resident_memory_bytes" [],
        "Resident memory in bytes";
    START_TIME = Unmarked Gauge "process_start_time_seconds" [],
        "When the process began, in seconds since 1970";
}
