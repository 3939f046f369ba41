//! Every flag, once. Names, types, defaults and groups are those of the programs that cloudberth replaces; the last
//! group is its own.

use std::net::{IpAddr, Ipv4Addr};

use cloudberth_core::decide::lifecycle::{Cap, Share};

use super::{
    declare::{
        AnyFlag, FlagInfo, Group,
        Note::{Ceiling, Deprecated, NoEffect, Works},
        Setting, flags,
    },
    duration::GoDuration,
    lists::{Files, Int32s, NamedCertKeys, Strings},
    special::{GateList, Level, Quantity, VModule, VersionFlag},
};

const ANY: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
const NO_IPAM: super::Note = NoEffect("cloudberth has no controller that hands out pod networks");
const NO_WEBHOOKS: super::Note = NoEffect("no cloud here has a webhook, so none is served");
const UNBUFFERED: super::Note = NoEffect("log lines are written at once, as one stream");

fn text(text: &str) -> String {
    text.to_owned()
}

flags! {
    Debugging {
        contention_profiling: bool = false, "contention-profiling",
            NoEffect("there is no profile of blocking here"),
            "Record where the program blocks, if profiling is on.";
        profiling: bool = true, "profiling", Works,
            "Serve /debug/pprof/ and /debug/flags/ on the secure port.";
    }
    LeaderMigration {
        enable_leader_migration: bool = false, "enable-leader-migration", Works,
            "Take over controllers from another program one by one, with a second lock.";
        leader_migration_config: String = text(""), "leader-migration-config", Works,
            "File of kind LeaderMigrationConfiguration that says which controllers move. Empty: the built-in one.";
    }
    Generic {
        allocate_node_cidrs: bool = false, "allocate-node-cidrs", NO_IPAM,
            "Whether pod networks are handed out to nodes.";
        allow_untagged_cloud: bool = false, "allow-untagged-cloud",
            Deprecated("cloudberth needs no cluster id"),
            "Run with a cloud that knows no cluster id.";
        cidr_allocator_type: String = text("RangeAllocator"), "cidr-allocator-type", NO_IPAM,
            "How pod networks are handed out.";
        cloud_config: Files = Files::default(), "cloud-config", Works,
            "The provider's configuration file; provider=file if several clouds run, given again for each. Empty: none.";
        cloud_provider: String = text(""), "cloud-provider", Works,
            "The cloud, or several separated by commas.";
        cluster_cidr: String = text(""), "cluster-cidr", Works,
            "The pod networks, one or one of each family, separated by a comma. The route controller needs them.";
        cluster_name: String = text("kubernetes"), "cluster-name", Works,
            "The cluster's name, as it appears in what is made in the cloud.";
        configure_cloud_routes: bool = true, "configure-cloud-routes", Works,
            "Make routes to the nodes' pod networks, where the cloud has routes.";
        controller_start_interval: GoDuration = GoDuration::secs(0), "controller-start-interval",
            NoEffect("the controllers share one look at each cloud, so that starting them together costs nothing"),
            "Pause after the start of each controller, up to twice as long by chance.";
        controllers: Strings = Strings::of(&["*"]), "controllers", Works,
            "Which controllers run: * for all, a name to add one, -name to leave one out. There are \
             cloud-node-controller, cloud-node-lifecycle-controller, node-route-controller and \
             service-lb-controller.";
        external_cloud_volume_plugin: String = text(""), "external-cloud-volume-plugin",
            NoEffect("volumes are no concern of this program"),
            "The volume plugin of an external cloud.";
        feature_gates: GateList = GateList::default(), "feature-gates", Works,
            "Features to switch, as Name=true or Name=false, separated by commas.";
        kube_api_burst: i32 = 30, "kube-api-burst", Ceiling,
            "How many requests to the API server may go out at once beyond --kube-api-qps.";
        kube_api_content_type: String = text("application/vnd.kubernetes.protobuf"), "kube-api-content-type",
            NoEffect("the API server is spoken to in JSON"),
            "The content type of requests to the API server.";
        kube_api_qps: f32 = 20.0, "kube-api-qps", Ceiling,
            "How many requests to the API server may go out in a second. Zero or less: no limit.";
        leader_elect: bool = true, "leader-elect", Works,
            "Work only while holding the lease, so that several replicas can stand by.";
        leader_elect_lease_duration: GoDuration = GoDuration::secs(15), "leader-elect-lease-duration", Works,
            "How long others leave the lease of a silent leader alone. More than the retry period and 3s.";
        leader_elect_renew_deadline: GoDuration = GoDuration::secs(10), "leader-elect-renew-deadline", Works,
            "How long a leader tries to renew before it stops leading. Less than the lease's duration.";
        leader_elect_resource_lock: String = text("leases"), "leader-elect-resource-lock", Works,
            "What the lock is made of. Only leases exist.";
        leader_elect_resource_name: String = text("cloud-controller-manager"), "leader-elect-resource-name", Works,
            "The lease's name.";
        leader_elect_resource_namespace: String = text("kube-system"), "leader-elect-resource-namespace", Works,
            "The lease's namespace.";
        leader_elect_retry_period: GoDuration = GoDuration::secs(2), "leader-elect-retry-period", Works,
            "The time between two tries to take or renew the lease.";
        min_resync_period: GoDuration = GoDuration::secs(43_200), "min-resync-period",
            NoEffect("nodes, Services and routes are each looked at again in passes of their own"),
            "How often every object is looked at again, up to twice as long by chance. Zero: never.";
        node_sync_period: GoDuration = GoDuration::secs(0), "node-sync-period",
            Deprecated("it does nothing in the programs replaced either"),
            "How often nodes are synced.";
        route_reconciliation_period: GoDuration = GoDuration::secs(10), "route-reconciliation-period", Works,
            "How often routes are compared with nodes.";
        use_service_account_credentials: bool = false, "use-service-account-credentials",
            NoEffect("all controllers use the program's own account, whose role is as small as their calls"),
            "Give each controller a service account of its own.";
    }
    CloudNodeController {
        concurrent_node_status_updates: i32 = 0, "concurrent-node-status-updates", Ceiling,
            "How many nodes' addresses are updated at once. Zero: as many as --concurrent-node-syncs.";
        concurrent_node_syncs: i32 = 1, "concurrent-node-syncs", Ceiling,
            "How many nodes are initialised at once.";
    }
    CloudNodeLifecycleController {
        concurrent_node_lifecycle_syncs: i32 = 1, "concurrent-node-lifecycle-syncs", Ceiling,
            "How many nodes are checked for a lost instance at once.";
        node_monitor_period: GoDuration = GoDuration::secs(5), "node-monitor-period", Works,
            "How often nodes that are not ready are checked for a lost or stopped instance.";
    }
    ServiceLbController {
        concurrent_service_syncs: i32 = 1, "concurrent-service-syncs", Ceiling,
            "How many Services are worked on at once.";
    }
    Webhook {
        webhooks: Strings = Strings::default(), "webhooks", Works,
            "Which webhooks run, written as in --controllers. There are none.";
    }
    WebhookServing {
        webhook_bind_address: IpAddr = ANY, "webhook-bind-address", NO_WEBHOOKS,
            "The address that webhooks are served on.";
        webhook_cert_dir: String = text(""), "webhook-cert-dir", NO_WEBHOOKS,
            "The folder of the webhooks' certificate.";
        webhook_disable_http2_serving: bool = false, "webhook-disable-http2-serving", NO_WEBHOOKS,
            "Serve webhooks over HTTP/1.1 only.";
        webhook_secure_port: i64 = 10_260, "webhook-secure-port", NO_WEBHOOKS,
            "The port that webhooks are served on; 0 for none. Not the same as --secure-port.";
        webhook_tls_cert_file: String = text(""), "webhook-tls-cert-file", NO_WEBHOOKS,
            "The webhooks' certificate, followed by its intermediates.";
        webhook_tls_cipher_suites: Strings = Strings::default(), "webhook-tls-cipher-suites", NO_WEBHOOKS,
            "The webhooks' cipher suites.";
        webhook_tls_curve_preferences: Int32s = Int32s::default(), "webhook-tls-curve-preferences", NO_WEBHOOKS,
            "The webhooks' key exchange groups, by number.";
        webhook_tls_min_version: String = text(""), "webhook-tls-min-version", NO_WEBHOOKS,
            "The oldest TLS version that webhooks are served over.";
        webhook_tls_private_key_file: String = text(""), "webhook-tls-private-key-file", NO_WEBHOOKS,
            "The key of --webhook-tls-cert-file.";
        webhook_tls_sni_cert_key: NamedCertKeys = NamedCertKeys::default(), "webhook-tls-sni-cert-key", NO_WEBHOOKS,
            "A certificate and its key for some host names of the webhook server.";
    }
    SecureServing {
        address: IpAddr = ANY, "address",
            Deprecated("there is no port without TLS; use --bind-address for the one with TLS"),
            "The address of the port without TLS.";
        bind_address: IpAddr = ANY, "bind-address", Works,
            "The address that the secure port is opened on. 0.0.0.0 and :: are all interfaces.";
        cert_dir: String = text(""), "cert-dir", Works,
            "The folder where a certificate is kept, or made if it is not there. Empty: made anew in memory.";
        disable_http2_serving: bool = false, "disable-http2-serving", Works,
            "Serve over HTTP/1.1 only.";
        http2_max_streams_per_connection: i64 = 0, "http2-max-streams-per-connection", Works,
            "How many requests one HTTP/2 connection may carry at once. 0 is 100.";
        permit_address_sharing: bool = false, "permit-address-sharing", Works,
            "Open the port with SO_REUSEADDR.";
        permit_port_sharing: bool = false, "permit-port-sharing", Works,
            "Open the port with SO_REUSEPORT.";
        secure_port: i64 = 10_258, "secure-port", Works,
            "The port for health, metrics and configuration over HTTPS; 0 for none.";
        tls_cert_file: String = text(""), "tls-cert-file", Works,
            "The certificate, followed by its intermediates. Read again when it changes.";
        tls_cipher_suites: Strings = Strings::default(), "tls-cipher-suites", Works,
            "The cipher suites that may be used, separated by commas. Empty: all that are sound.";
        tls_curve_preferences: Int32s = Int32s::default(), "tls-curve-preferences", Works,
            "The key exchange groups that may be used, by number: 29 X25519, 23 P-256, 24 P-384. Empty: all.";
        tls_min_version: String = text(""), "tls-min-version", Works,
            "The oldest TLS version: VersionTLS12 or VersionTLS13. Empty: VersionTLS12.";
        tls_private_key_file: String = text(""), "tls-private-key-file", Works,
            "The key of --tls-cert-file.";
        tls_sni_cert_key: NamedCertKeys = NamedCertKeys::default(), "tls-sni-cert-key", Works,
            "A certificate file, a comma, its key file, and after a colon the host names that it is for. May be given \
             again.";
    }
    Authentication {
        authentication_kubeconfig: String = text(""), "authentication-kubeconfig", Works,
            "The kubeconfig for TokenReviews. Empty: the pod's own; outside of a cluster no token is accepted.";
        authentication_skip_lookup: bool = false, "authentication-skip-lookup", Works,
            "Do not read missing certificate authorities from the cluster.";
        authentication_token_webhook_cache_ttl: GoDuration = GoDuration::secs(10),
            "authentication-token-webhook-cache-ttl", Works,
            "How long the answer of a TokenReview is remembered.";
        authentication_tolerate_lookup_failure: bool = false, "authentication-tolerate-lookup-failure", Works,
            "Go on if missing certificate authorities cannot be read from the cluster.";
        client_ca_file: String = text(""), "client-ca-file", Works,
            "The certificate authority of client certificates.";
        requestheader_allowed_names: Strings = Strings::default(), "requestheader-allowed-names", Works,
            "The names of front proxies that may say who a caller is. Empty: every one with a valid certificate.";
        requestheader_client_ca_file: String = text(""), "requestheader-client-ca-file", Works,
            "The certificate authority of front proxies.";
        requestheader_extra_headers_prefix: Strings = Strings::of(&["x-remote-extra-"]),
            "requestheader-extra-headers-prefix", Works,
            "How the headers begin in which a front proxy says more about a caller.";
        requestheader_group_headers: Strings = Strings::of(&["x-remote-group"]), "requestheader-group-headers", Works,
            "The headers in which a front proxy says a caller's groups.";
        requestheader_uid_headers: Strings = Strings::default(), "requestheader-uid-headers", Works,
            "The headers in which a front proxy says a caller's UID. X-Remote-Uid must be among them.";
        requestheader_username_headers: Strings = Strings::of(&["x-remote-user"]), "requestheader-username-headers",
            Works,
            "The headers in which a front proxy says a caller's name.";
    }
    Authorization {
        authorization_always_allow_paths: Strings = Strings::of(&["/healthz", "/readyz", "/livez"]),
            "authorization-always-allow-paths", Works,
            "Paths that everybody may read; one that ends in * stands for all that begin so.";
        authorization_kubeconfig: String = text(""), "authorization-kubeconfig", Works,
            "The kubeconfig for SubjectAccessReviews. Empty: the pod's own; outside of a cluster all else is forbidden.";
        authorization_webhook_cache_authorized_ttl: GoDuration = GoDuration::secs(10),
            "authorization-webhook-cache-authorized-ttl", Works,
            "How long a yes of a SubjectAccessReview is remembered.";
        authorization_webhook_cache_unauthorized_ttl: GoDuration = GoDuration::secs(10),
            "authorization-webhook-cache-unauthorized-ttl", Works,
            "How long a no of a SubjectAccessReview is remembered.";
    }
    Misc {
        kubeconfig: String = text(""), "kubeconfig", Works,
            "How to reach and authenticate to the API server. Empty: the pod's own account.";
        master: String = text(""), "master", Works,
            "The address of the API server, instead of the kubeconfig's.";
        node_status_update_frequency: GoDuration = GoDuration::secs(300), "node-status-update-frequency", Works,
            "How often the nodes' addresses and labels are compared with the cloud.";
    }
    Global {
        help: bool = false, "help", Works,
            "Print this and stop.";
        log_flush_frequency: GoDuration = GoDuration::secs(5), "log-flush-frequency", UNBUFFERED,
            "How often the log is flushed.";
        log_json_info_buffer_size: Quantity = Quantity::zero(), "log-json-info-buffer-size", UNBUFFERED,
            "Bytes of information that wait in memory, with a split JSON log. Needs the gate LoggingAlphaOptions.";
        log_json_split_stream: bool = false, "log-json-split-stream", UNBUFFERED,
            "Errors to stderr and the rest to stdout, in JSON. Needs the gate LoggingAlphaOptions.";
        log_text_info_buffer_size: Quantity = Quantity::zero(), "log-text-info-buffer-size", UNBUFFERED,
            "Bytes of information that wait in memory, with a split text log. Needs the gate LoggingAlphaOptions.";
        log_text_split_stream: bool = false, "log-text-split-stream", UNBUFFERED,
            "Errors to stderr and the rest to stdout, in text. Needs the gate LoggingAlphaOptions.";
        logging_format: String = text("text"), "logging-format", Works,
            "How log lines look: text or json.";
        v: Level = Level(0), "v", Works,
            "How much is logged. Can be changed while running, at /debug/flags/v.";
        version: VersionFlag = VersionFlag::No, "version", Works,
            "Print the version and stop; raw prints more, and a version such as v1.2.3-mine is reported instead of ours.";
        vmodule: VModule = VModule::default(), "vmodule", Works,
            "Other levels than --v for parts of the program, such as service=4. Text format only.";
    }
    Cloudberth {
        default_provider: String = text(""), "default-provider", Works,
            "Which of several clouds serves Services that name no load-balancer class. Empty: none of them; if there is \
             one cloud only, that one.";
        dry_run: bool = false, "dry-run", Works,
            "Say what would be done and stop; nothing is written, neither to the cluster nor to the cloud. Exit code 0: \
             nothing to do, 2: changes pending, 1: it could not be told.";
        load_balancer_class: Strings = Strings::default(), "load-balancer-class", Works,
            "Load-balancer classes to serve: class, or provider=class if several clouds run. A Service of any other class is left alone.";
        max_node_deletions: Share = Cap::LAW.share, "max-node-deletions", Works,
            "How many nodes may be deleted within ten minutes: a number, or a share of the cluster but always one. \
             With 0 no node is ever deleted.";
        output: String = text("text"), "output", Works,
            "With --dry-run: how what would be done is printed, text or json.";
    }
}
