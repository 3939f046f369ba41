//! What a quota asks for.

use std::sync::Arc;

use serde_json::Value;

use super::select::is_harvester;
use crate::{
    names::GO_FINALIZER,
    problem::{Again, Problem},
    reasons::QUOTA_PROJECT_MISSING,
    view::{ClusterView, ProjectView, QuotaView},
};

/// What a quota asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asks<'a> {
    /// Nothing, now.
    Nothing,
    /// A Secret here, for the guests of a Harvester cluster.
    Local(&'a ProjectView),
    /// Secrets here and downstream: the cluster's own pass delivers them.
    Cluster(&'a ProjectView, &'a ClusterView),
    /// Something is missing.
    Blocked(Problem),
}

/// The Project of a quota, which is named like it: the first in the order of the API server of the floating IPs.
pub fn project<'a>(quota: &str, projects: &'a [Arc<ProjectView>]) -> Option<&'a ProjectView> {
    projects.iter().find(|project| project.name() == quota).map(|project| &**project)
}

/// What a quota asks for. One that is being deleted asks for nothing: its Secrets stay.
pub fn asks<'a>(
    quota: &QuotaView,
    projects: &'a [Arc<ProjectView>],
    cluster: impl Fn(&str) -> Option<&'a ClusterView>,
) -> Asks<'a> {
    if quota.body.deleting {
        return Asks::Nothing;
    }
    let Some(project) = project(quota.name(), projects) else {
        let text = format!("there is no project {}", quota.name());
        return Asks::Blocked(Problem::new(QUOTA_PROJECT_MISSING, Again::Slow, text));
    };
    if project.body.cluster == "local" {
        return Asks::Nothing;
    }
    let Some(cluster) = cluster(&project.body.cluster) else {
        let text =
            format!("the cluster {} of the project {} does not exist", project.body.cluster, project.key);
        return Asks::Blocked(Problem::new(QUOTA_PROJECT_MISSING, Again::Soon, text));
    };
    if is_harvester(cluster) {
        Asks::Local(project)
    } else if cluster.body.enabled.as_deref() == Some("enabled") {
        Asks::Cluster(project, cluster)
    } else {
        Asks::Nothing
    }
}

/// A quota that is being deleted, without the finalizer of a later Go release, which nobody else would remove. Nothing if
/// it is not being deleted or does not carry it: it is never added.
pub fn without_finalizer(quota: &Value) -> Option<Value> {
    quota.pointer("/metadata/deletionTimestamp")?;
    let mut new = quota.clone();
    let finalizers = new.pointer_mut("/metadata/finalizers")?.as_array_mut()?;
    let before = finalizers.len();
    finalizers.retain(|name| name != GO_FINALIZER);
    (finalizers.len() < before).then_some(new)
}

#[cfg(test)]
mod tests {
    use cloudberth_runtime::object::Watched;
    use serde_json::json;

    use super::*;
    use crate::plan::select::tests::cluster;

    #[allow(clippy::needless_pass_by_value, reason = "tables read better without references")]
    fn quota(name: &str, metadata: Value) -> QuotaView {
        let mut json = json!({"metadata": metadata});
        json["metadata"]["name"] = name.into();
        QuotaView::read(json).unwrap()
    }

    fn project_of(namespace: &str, name: &str, cluster: &str) -> Arc<ProjectView> {
        let json =
            json!({"metadata": {"name": name, "namespace": namespace}, "spec": {"clusterName": cluster}});
        Arc::new(ProjectView::read(json).unwrap())
    }

    #[test]
    fn a_quota_asks_for_what_its_cluster_can_use() {
        let clusters = [
            cluster("c-harv", "harv01", &json!({"provider.cattle.io": "harvester"})),
            cluster("c-on", "on", &json!({"rancher-fip": "enabled"})),
            cluster("c-off", "off", &json!({})),
            cluster("local", "local", &json!({"rancher-fip": "enabled"})),
        ];
        let projects = [
            project_of("c-harv", "p-harv", "c-harv"),
            project_of("c-on", "p-on", "c-on"),
            project_of("c-off", "p-off", "c-off"),
            project_of("c-gone", "p-gone", "c-gone"),
            project_of("local", "p-local", "local"),
        ];
        let find = |name: &str| clusters.iter().find(|cluster| cluster.name() == name);
        let word = |quota: &QuotaView| match asks(quota, &projects, find) {
            Asks::Nothing => "nothing".to_owned(),
            Asks::Local(project) => format!("local {}", project.key),
            Asks::Cluster(project, cluster) => format!("{} {}", cluster.name(), project.key),
            Asks::Blocked(problem) => format!("{:?}", problem.again),
        };
        let table = [
            ("RF-155", "p-harv", "local c-harv/p-harv"),
            ("RF-156", "p-on", "c-on c-on/p-on"),
            ("RF-157", "p-off", "nothing"),
            ("RF-158 RF-159", "p-none", "Slow"),
            ("RF-168", "p-local", "nothing"),
            ("RF-169", "p-gone", "Soon"),
        ];
        for (case, name, want) in table {
            assert_eq!(word(&quota(name, json!({}))), want, "{case}");
        }
        let going = quota("p-on", json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}));
        assert_eq!(word(&going), "nothing", "RF-167");
    }

    #[test]
    fn the_finalizer_of_a_later_release_goes_with_the_quota_and_is_never_added() {
        let both = json!({"metadata": {"name": "p", "deletionTimestamp": "2026-01-01T00:00:00Z",
            "finalizers": ["rancher.k8s.binbash.org/floatingipprojectquota-cleanup", GO_FINALIZER]}});
        let new = without_finalizer(&both).unwrap();
        assert_eq!(
            new["metadata"]["finalizers"],
            json!(["rancher.k8s.binbash.org/floatingipprojectquota-cleanup"]),
            "RF-223"
        );
        assert_eq!(without_finalizer(&new), None, "RF-223");
        let living = json!({"metadata": {"name": "p", "finalizers": [GO_FINALIZER]}});
        assert_eq!(without_finalizer(&living), None, "RF-224");
        assert_eq!(without_finalizer(&json!({"metadata": {"name": "p"}})), None, "RF-224");
    }
}
