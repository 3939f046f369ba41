//! Which clusters take part.

use crate::view::ClusterView;

/// Whether a cluster takes part, and if not, why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// It takes part.
    Enabled,
    /// It is the management cluster itself.
    Local,
    /// It is a Harvester host: its guests take part, not itself.
    Harvester,
    /// It did not opt in.
    NotEnabled,
    /// It is being deleted: nothing new is begun, and nothing is released before it is gone.
    Deleting,
}

/// Whether a cluster takes part. The label has to be exactly `enabled`.
pub fn select(cluster: &ClusterView) -> Selection {
    let body = &cluster.body;
    if cluster.name() == "local" {
        Selection::Local
    } else if is_harvester(cluster) {
        Selection::Harvester
    } else if body.enabled.as_deref() != Some("enabled") {
        Selection::NotEnabled
    } else if body.deleting {
        Selection::Deleting
    } else {
        Selection::Enabled
    }
}

/// Whether it is a Harvester host.
pub fn is_harvester(cluster: &ClusterView) -> bool {
    cluster.body.provider.as_deref() == Some("harvester")
}

#[cfg(test)]
pub(crate) mod tests {
    use cloudberth_runtime::object::Watched;
    use serde_json::{Value, json};

    use super::*;

    pub(crate) fn cluster(name: &str, display: &str, labels: &Value) -> ClusterView {
        let metadata =
            json!({"name": name, "uid": format!("uid-{name}"), "resourceVersion": "1", "labels": labels});
        ClusterView::read(json!({"metadata": metadata, "spec": {"displayName": display}})).unwrap()
    }

    #[test]
    fn only_exactly_enabled_clusters_take_part() {
        use Selection::*;
        let fip = |value: &str| json!({"rancher-fip": value});
        let table = [
            ("RF-24", cluster("local", "local", &fip("enabled")), Local),
            (
                "RF-25",
                cluster("c-1", "h", &json!({"provider.cattle.io": "harvester", "rancher-fip": "enabled"})),
                Harvester,
            ),
            ("RF-26 no label", cluster("c-1", "x", &json!({})), NotEnabled),
            ("RF-26 another case", cluster("c-1", "x", &fip("Enabled")), NotEnabled),
            ("RF-26 another word", cluster("c-1", "x", &fip("true")), NotEnabled),
            ("RF-26 RF-28", cluster("c-1", "x", &fip("disabled")), NotEnabled),
            ("RF-27 RF-29", cluster("c-1", "x", &fip("enabled")), Enabled),
            (
                "another provider",
                cluster("c-1", "x", &json!({"provider.cattle.io": "rke2", "rancher-fip": "enabled"})),
                Enabled,
            ),
        ];
        for (case, cluster, want) in table {
            assert_eq!(select(&cluster), want, "{case}");
        }
        let mut going = cluster("c-1", "x", &fip("enabled"));
        going.body.deleting = true;
        assert_eq!(select(&going), Deleting, "RF-34 RF-182");
    }
}
