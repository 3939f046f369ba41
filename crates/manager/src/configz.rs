//! What `/configz` answers: the configuration that is in effect.

use std::time::Duration;

use cloudberth_core::decide::selection;
use serde_json::{Value, json};

use crate::{
    flags::{AnyFlag, Flags, GoDuration},
    options::{Election, Options},
};

const GROUP: &str = "cloudcontrollermanager.config.k8s.io";

/// The answer: what every cloud controller manager shows, and beside it what only cloudberth has. A limit that is found
/// by itself is `null`. There are no secrets among flags, so there are none here.
pub fn configz(flags: &Flags, options: &Options) -> Value {
    json!({
        GROUP: {
            "kind": "CloudControllerManagerConfiguration",
            "apiVersion": format!("{GROUP}/v1alpha1"),
            "Generic": generic(flags, options),
            "KubeCloudShared": shared(flags, options),
            "NodeController": {
                "ConcurrentNodeSyncs": options.controllers.workers.node_syncs,
                "ConcurrentNodeStatusUpdates": options.controllers.workers.node_status_updates,
            },
            "NodeLifecycleController": {
                "NodeMonitorPeriod": span(options.controllers.node_monitor_period),
                "ConcurrentNodeLifecycleSyncs": options.controllers.workers.node_lifecycle_syncs,
            },
            "ServiceController": { "ConcurrentServiceSyncs": options.controllers.workers.service_syncs },
            "NodeStatusUpdateFrequency": span(options.controllers.node_status_update_frequency),
            "Webhook": { "Webhooks": list(&options.webhooks) },
        },
        "cloudberth.dev": {
            "Providers": options.clouds.providers,
            "DefaultProvider": options.clouds.default_provider,
            "LoadBalancerClasses": options.clouds.classes,
            "MaxNodeDeletions": options.controllers.deletions.share.to_string(),
            "DryRun": options.dry_run,
        },
    })
}

fn generic(flags: &Flags, options: &Options) -> Value {
    let migration = options.election.as_ref().and_then(|election| election.migration.as_ref());
    let leaders: Option<Vec<_>> = migration.map(|migration| {
        let leaders = migration.controller_leaders.iter();
        leaders.map(|leader| json!({ "name": leader.name, "component": leader.component })).collect()
    });
    json!({
        // There has been no port without TLS for years; the fields are still shown.
        "Port": 0,
        "Address": "0.0.0.0",
        "MinResyncPeriod": span(options.controllers.min_resync_period),
        "ClientConnection": {
            "kubeconfig": flags.kubeconfig.get(),
            "acceptContentTypes": "",
            "contentType": "application/json",
            "qps": options.kube.qps,
            "burst": options.kube.burst,
        },
        "ControllerStartInterval": span(options.controllers.start_interval),
        "LeaderElection": election(flags, options.election.as_ref()),
        "Controllers": selection::resolve(&flags.controllers.get().0, &selection::aliases()),
        "Debugging": {
            "enableProfiling": flags.profiling.get(),
            "enableContentionProfiling": false,
        },
        "LeaderMigrationEnabled": migration.is_some(),
        "LeaderMigration": {
            "leaderName": migration.map_or("", |migration| migration.leader_name.as_str()),
            "resourceLock": migration.map_or("", |migration| migration.resource_lock.as_str()),
            "controllerLeaders": leaders,
        },
    })
}

fn election(flags: &Flags, election: Option<&Election>) -> Value {
    let span_or = |pick: fn(&Election) -> Duration, given: &GoDuration| {
        election.map_or_else(|| given.to_string(), |election| span(pick(election)))
    };
    json!({
        "leaderElect": election.is_some(),
        "leaseDuration": span_or(|election| election.lease_duration, flags.leader_elect_lease_duration.get()),
        "renewDeadline": span_or(|election| election.renew_deadline, flags.leader_elect_renew_deadline.get()),
        "retryPeriod": span_or(|election| election.retry_period, flags.leader_elect_retry_period.get()),
        "resourceLock": flags.leader_elect_resource_lock.get(),
        "resourceName": flags.leader_elect_resource_name.get(),
        "resourceNamespace": flags.leader_elect_resource_namespace.get(),
    })
}

fn shared(flags: &Flags, options: &Options) -> Value {
    json!({
        "CloudProvider": {
            "Name": options.clouds.providers.join(","),
            "CloudConfigFile": flags.cloud_config.text(),
        },
        "ExternalCloudVolumePlugin": flags.external_cloud_volume_plugin.get(),
        "UseServiceAccountCredentials": options.kube.own_accounts,
        "AllowUntaggedCloud": flags.allow_untagged_cloud.get(),
        "RouteReconciliationPeriod": span(options.controllers.route_reconciliation_period),
        "ClusterName": options.clouds.cluster_name,
        "ClusterCIDR": options.controllers.cluster_cidr,
        "AllocateNodeCIDRs": flags.allocate_node_cidrs.get(),
        "CIDRAllocatorType": flags.cidr_allocator_type.get(),
        "ConfigureCloudRoutes": options.controllers.configure_cloud_routes,
        "NodeSyncPeriod": flags.node_sync_period.get().to_string(),
    })
}

fn span(span: Duration) -> String {
    GoDuration::from(span).to_string()
}

/// A list as Go shows it: one without entries is `null`.
fn list(entries: &[String]) -> Option<&[String]> {
    (!entries.is_empty()).then_some(entries)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;
    use crate::{flags::parse, options::Known};

    fn shown(args: &[&str]) -> Value {
        let mut flags = Flags::default();
        let mut mistakes = parse(&mut flags, "ccm", args.iter().map(OsString::from));
        let known = Known { providers: &["cloudscale", "binarylane"], webhooks: &[] };
        let made = Options::make(&flags, known, &|_| Err("no such file".to_owned()));
        mistakes.extend(made.mistakes);
        assert_eq!(mistakes, []);
        configz(&flags, &made.options)
    }

    const DEFAULTS: &str = r#"{
        "cloudcontrollermanager.config.k8s.io": {
            "kind": "CloudControllerManagerConfiguration",
            "apiVersion": "cloudcontrollermanager.config.k8s.io/v1alpha1",
            "Generic": {
                "Port": 0,
                "Address": "0.0.0.0",
                "MinResyncPeriod": "12h0m0s",
                "ClientConnection": {
                    "kubeconfig": "", "acceptContentTypes": "", "contentType": "application/json",
                    "qps": null, "burst": null
                },
                "ControllerStartInterval": "0s",
                "LeaderElection": {
                    "leaderElect": true, "leaseDuration": "15s", "renewDeadline": "10s", "retryPeriod": "2s",
                    "resourceLock": "leases", "resourceName": "cloud-controller-manager",
                    "resourceNamespace": "kube-system"
                },
                "Controllers": ["*"],
                "Debugging": { "enableProfiling": true, "enableContentionProfiling": false },
                "LeaderMigrationEnabled": false,
                "LeaderMigration": { "leaderName": "", "resourceLock": "", "controllerLeaders": null }
            },
            "KubeCloudShared": {
                "CloudProvider": { "Name": "cloudscale", "CloudConfigFile": "" },
                "ExternalCloudVolumePlugin": "",
                "UseServiceAccountCredentials": false,
                "AllowUntaggedCloud": false,
                "RouteReconciliationPeriod": "10s",
                "ClusterName": "kubernetes",
                "ClusterCIDR": "",
                "AllocateNodeCIDRs": false,
                "CIDRAllocatorType": "RangeAllocator",
                "ConfigureCloudRoutes": true,
                "NodeSyncPeriod": "0s"
            },
            "NodeController": { "ConcurrentNodeSyncs": null, "ConcurrentNodeStatusUpdates": null },
            "NodeLifecycleController": { "NodeMonitorPeriod": "5s", "ConcurrentNodeLifecycleSyncs": null },
            "ServiceController": { "ConcurrentServiceSyncs": null },
            "NodeStatusUpdateFrequency": "5m0s",
            "Webhook": { "Webhooks": null }
        },
        "cloudberth.dev": {
            "Providers": ["cloudscale"],
            "DefaultProvider": "cloudscale",
            "LoadBalancerClasses": {},
            "MaxNodeDeletions": "10%",
            "DryRun": false
        }
    }"#;

    #[test]
    fn the_defaults_are_shown_in_the_known_form() {
        let want: Value = serde_json::from_str(DEFAULTS).unwrap();
        assert_eq!(shown(&["--cloud-provider=cloudscale"]), want, "FW-310");
    }

    #[test]
    fn what_is_given_is_what_is_shown() {
        let shown = shown(&[
            "--cloud-provider=cloudscale,binarylane",
            "--default-provider=binarylane",
            "--load-balancer-class=cloudscale=example.com/lb",
            "--cloud-config=cloudscale=/etc/cloud",
            "--controllers=*,-route",
            "--concurrent-node-syncs=5",
            "--concurrent-service-syncs=2",
            "--kube-api-qps=40",
            "--kube-api-burst=60",
            "--node-monitor-period=90s",
            "--leader-elect-lease-duration=1m",
            "--enable-leader-migration",
            "--max-node-deletions=3",
            "--use-service-account-credentials",
            "--cluster-cidr=10.0.0.0/8",
            "--profiling=false",
            "--dry-run",
        ]);
        let table = [
            ("/KubeCloudShared/CloudProvider/Name", json!("cloudscale,binarylane")),
            ("/KubeCloudShared/CloudProvider/CloudConfigFile", json!("cloudscale=/etc/cloud")),
            ("/KubeCloudShared/UseServiceAccountCredentials", json!(true)),
            ("/KubeCloudShared/ClusterCIDR", json!("10.0.0.0/8")),
            ("/Generic/Controllers", json!(["*", "-node-route-controller"])),
            ("/Generic/ClientConnection/qps", json!(40.0)),
            ("/Generic/ClientConnection/burst", json!(60)),
            ("/Generic/LeaderElection/leaseDuration", json!("1m0s")),
            ("/Generic/Debugging/enableProfiling", json!(false)),
            ("/Generic/LeaderMigrationEnabled", json!(true)),
            ("/Generic/LeaderMigration/leaderName", json!("cloud-provider-extraction-migration")),
            (
                "/Generic/LeaderMigration/controllerLeaders/0",
                json!({ "name": "route-controller", "component": "*" }),
            ),
            ("/NodeController/ConcurrentNodeSyncs", json!(5)),
            ("/NodeController/ConcurrentNodeStatusUpdates", json!(5)),
            ("/NodeLifecycleController/NodeMonitorPeriod", json!("1m30s")),
            ("/ServiceController/ConcurrentServiceSyncs", json!(2)),
        ];
        for (path, want) in table {
            let path = format!("/{GROUP}{path}");
            assert_eq!(shown.pointer(&path), Some(&want), "{path}");
        }
        let own = json!({
            "Providers": ["cloudscale", "binarylane"],
            "DefaultProvider": "binarylane",
            "LoadBalancerClasses": { "example.com/lb": "cloudscale" },
            "MaxNodeDeletions": "3",
            "DryRun": true,
        });
        assert_eq!(shown.get("cloudberth.dev"), Some(&own));
    }

    #[test]
    fn an_election_that_is_off_is_shown_as_it_was_set() {
        let shown =
            shown(&["--cloud-provider=cloudscale", "--leader-elect=false", "--leader-elect-retry-period=3s"]);
        let election = shown.pointer(&format!("/{GROUP}/Generic/LeaderElection")).unwrap();
        assert_eq!((&election["leaderElect"], &election["retryPeriod"]), (&json!(false), &json!("3s")));
    }
}
