//! From a cluster on Harvester to the project and the network of its virtual machines.
//!
//! ```text
//!   Cluster ─► provisioning Cluster ─► HarvesterConfig ─► vmNamespace, networks
//!                     └─► credential ─► Harvester's Cluster ─► its API: Namespace vmNamespace ─► annotation ─► Project
//! ```

use std::sync::Arc;

use cloudberth_core::ObjectKey;
use serde_json::Value;

use super::data;
use crate::{
    names::{FLEET_DEFAULT, PROJECT_ID},
    problem::{Again, Problem},
    reasons::CHAIN_FAILED,
    view::{ClusterView, ProjectView, ProvisioningView, entry, text},
};

/// What kind of place the instances of a cluster are in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// They are virtual machines on Harvester.
    Harvester(Guest),
    /// They are somewhere else: bare metal, another cloud.
    Elsewhere,
}

/// Where the facts about a guest of Harvester are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guest {
    /// The Secret with the credential for Harvester.
    pub credential: ObjectKey,
    /// The `HarvesterConfigs` that may be meant, the best first.
    pub configs: Vec<ObjectKey>,
}

fn reported(message: impl AsRef<str>) -> Problem {
    Problem::new(CHAIN_FAILED, Again::Slow, message)
}

/// Something that is not there yet.
pub fn not_yet(message: impl AsRef<str>) -> Problem {
    Problem::new(CHAIN_FAILED, Again::Soon, message)
}

/// The provisioning Cluster of a management Cluster: the one that says so, else the one of that id or display name which
/// says nothing else.
pub fn provisioning<'a>(
    cluster: &ClusterView,
    all: &'a [Arc<ProvisioningView>],
) -> Option<&'a ProvisioningView> {
    let by_status = all.iter().find(|other| other.body.cluster == cluster.name());
    let by_name = || {
        let mut named: Vec<_> = all
            .iter()
            .filter(|other| other.body.cluster.is_empty() && cluster.is_target(other.name()))
            .collect();
        named.sort_by_key(|other| (other.key.namespace != FLEET_DEFAULT, other.key.clone()));
        named.first().copied()
    };
    by_status.or_else(by_name).map(|found| &**found)
}

/// Where the instances of a cluster are.
pub fn place(provisioning: &ProvisioningView) -> Result<Place, Problem> {
    let body = &provisioning.body;
    let pool = body.pools.iter().find(|pool| pool.control_plane && pool.kind == "HarvesterConfig");
    let Some(pool) = pool else { return Ok(Place::Elsewhere) };
    let credential = if body.credential.is_empty() { &pool.credential } else { &body.credential };
    if credential.is_empty() {
        return Ok(Place::Elsewhere);
    }
    let mut parts = credential.split(':');
    let (Some(namespace), Some(name)) =
        (parts.next().filter(|part| !part.is_empty()), parts.next().filter(|part| !part.is_empty()))
    else {
        return Err(reported(format!(
            "cloudCredentialSecretName of {} is {credential:?}; it must be <namespace>:<name>",
            provisioning.key
        )));
    };
    if pool.config.is_empty() {
        return Err(reported(format!("machineConfigRef of {} has no name", provisioning.key)));
    }
    let own = &provisioning.key.namespace;
    let mut configs = vec![ObjectKey::new(own, &pool.config)];
    if own != FLEET_DEFAULT {
        configs.push(ObjectKey::new(FLEET_DEFAULT, &pool.config));
    }
    Ok(Place::Harvester(Guest { credential: ObjectKey::new(namespace, name), configs }))
}

/// What a `HarvesterConfig` says about the virtual machines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Virtual {
    /// Their namespace on Harvester.
    pub namespace: String,
    /// The networks of their interfaces, in order, without namespaces.
    pub networks: Vec<String>,
}

/// Reads a `HarvesterConfig`. Its fields are at the top level.
pub fn virtual_instances(key: &ObjectKey, config: &Value) -> Result<Virtual, Problem> {
    let namespace = text(config, "/vmNamespace");
    if namespace.is_empty() {
        return Err(reported(format!("vmNamespace of the HarvesterConfig {key} is empty")));
    }
    let info: Value = serde_json::from_str(text(config, "/networkInfo"))
        .map_err(|_| reported(format!("networkInfo of the HarvesterConfig {key} is not JSON")))?;
    let interfaces = member(&info, "interfaces").and_then(Value::as_array);
    let names: Vec<_> = interfaces
        .into_iter()
        .flatten()
        .map(|interface| member(interface, "networkName").and_then(Value::as_str).unwrap_or_default())
        .collect();
    let first = names.first().copied().unwrap_or_default();
    if network(first).is_none() {
        return Err(reported(format!(
            "networkInfo of the HarvesterConfig {key}: the first interface has the network {first:?}; it must be \
             <namespace>/<name>"
        )));
    }
    let networks = names.into_iter().filter_map(network).map(str::to_owned).collect();
    Ok(Virtual { namespace: namespace.to_owned(), networks })
}

/// A member of an object, whatever the case of its name: the Go program reads it so.
fn member<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    let object = object.as_object()?;
    object
        .get(name)
        .or_else(|| object.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value))
}

/// The name in `<namespace>/<name>`.
fn network(text: &str) -> Option<&str> {
    let (namespace, name) = text.split_once('/')?;
    (!namespace.is_empty() && !name.is_empty() && !name.contains('/')).then_some(name)
}

/// The id of the Harvester cluster that a credential is for.
pub fn harvester_id(key: &ObjectKey, credential: &Value) -> Result<String, Problem> {
    let id = data::text(credential, "harvestercredentialConfig-clusterId");
    if id.is_empty() {
        return Err(reported(format!(
            "the credential {key} has no harvestercredentialConfig-clusterId: an external Harvester cannot be used"
        )));
    }
    Ok(id)
}

/// What the annotation of a namespace says about its project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectRef {
    /// The cluster of the project; empty if the annotation does not name it.
    pub cluster: String,
    /// The id of the project.
    pub project: String,
}

/// The project of a namespace on Harvester.
pub fn project_ref(namespace: &str, annotation: Option<&str>) -> Result<ProjectRef, Problem> {
    let Some(text) = annotation.filter(|text| !text.is_empty()) else {
        return Err(reported(format!(
            "the namespace {namespace} on Harvester has no annotation {PROJECT_ID}: it is in no project"
        )));
    };
    Ok(match text.split(':').collect::<Vec<_>>()[..] {
        [cluster, project] if !project.is_empty() => {
            ProjectRef { cluster: cluster.to_owned(), project: project.to_owned() }
        }
        _ => ProjectRef { cluster: String::new(), project: text.to_owned() },
    })
}

/// The annotation of a namespace that names its project.
pub fn project_annotation(namespace: &Value) -> Option<String> {
    entry(namespace, "annotations", PROJECT_ID).map(str::to_owned)
}

/// The Project that is meant, and whether another cluster has one of the same id.
pub fn project<'a>(
    meant: &ProjectRef,
    projects: &'a [Arc<ProjectView>],
) -> Result<(&'a ProjectView, bool), Problem> {
    let named: Vec<_> =
        projects.iter().map(|project| &**project).filter(|project| project.name() == meant.project).collect();
    let there = |project: &&&ProjectView| {
        project.key.namespace == meant.cluster || project.body.cluster == meant.cluster
    };
    let found = named.iter().find(there).or_else(|| named.first());
    let found = found.ok_or_else(|| not_yet(format!("there is no project {}", meant.project)))?;
    Ok((found, named.len() > 1))
}

#[cfg(test)]
mod tests {
    use cloudberth_runtime::object::Watched;
    use serde_json::json;

    use super::*;
    use crate::plan::select::tests::cluster;

    fn provisioned(namespace: &str, name: &str, status: &str, spec: &Value) -> Arc<ProvisioningView> {
        let json = json!({"metadata": {"name": name, "namespace": namespace}, "spec": spec, "status": {"clusterName": status}});
        Arc::new(ProvisioningView::read(json).unwrap())
    }

    fn pool(kind: &str, control_plane: bool, config: &str) -> Value {
        json!({"controlPlaneRole": control_plane, "machineConfigRef": {"kind": kind, "name": config}})
    }

    #[test]
    fn the_provisioning_cluster_that_says_so_is_the_one() {
        let guest = cluster("c-m-1", "guest01", &json!({}));
        let none = json!({});
        let (by_display, by_id) = (
            provisioned("fleet-default", "guest01", "", &none),
            provisioned("fleet-default", "c-m-1", "", &none),
        );
        let (ours, foreign) = (
            provisioned("team", "guest01", "c-m-1", &none),
            provisioned("fleet-default", "guest01", "c-m-2", &none),
        );
        let find =
            |all: &[Arc<ProvisioningView>]| provisioning(&guest, all).map(|found| found.key.to_string());
        assert_eq!(find(&[]), None, "RF-94");
        assert_eq!(
            find(std::slice::from_ref(&by_display)).as_deref(),
            Some("fleet-default/guest01"),
            "RF-92"
        );
        assert_eq!(find(&[by_id]).as_deref(), Some("fleet-default/c-m-1"), "RF-92 imported");
        assert_eq!(find(&[foreign.clone(), ours]).as_deref(), Some("team/guest01"), "RF-93");
        assert_eq!(find(&[foreign]), None, "RF-93 one of another cluster is not taken");
        assert_eq!(
            find(&[provisioned("a", "guest01", "", &none), by_display]).as_deref(),
            Some("fleet-default/guest01")
        );
    }

    fn of(spec: &Value) -> Result<Place, Problem> {
        place(&provisioned("fleet-default", "g", "", spec))
    }

    #[test]
    fn only_harvester_with_a_credential_is_harvester() {
        let with = |credential: Value, pools: Vec<Value>| json!({"cloudCredentialSecretName": credential, "rkeConfig": {"machinePools": pools}});
        let good = pool("HarvesterConfig", true, "cp");
        let table = [
            ("RF-95 no credential", with(Value::Null, vec![good.clone()])),
            ("RF-95 an empty one", with(json!(""), vec![good.clone()])),
            ("RF-96 another kind", with(json!("a:b"), vec![pool("Amazonec2Config", true, "x")])),
            ("RF-97 workers only", with(json!("a:b"), vec![pool("HarvesterConfig", false, "x")])),
            ("no pools", with(json!("a:b"), vec![])),
            ("imported", json!({})),
        ];
        for (case, spec) in table {
            assert_eq!(of(&spec), Ok(Place::Elsewhere), "{case}");
        }
        let guest = |spec: &Value| match of(spec).unwrap() {
            Place::Harvester(guest) => (guest.credential.to_string(), guest.configs[0].to_string()),
            Place::Elsewhere => panic!("{spec}"),
        };
        let several = with(
            json!("ns:cc:extra"),
            vec![pool("HarvesterConfig", false, "w"), good, pool("HarvesterConfig", true, "b")],
        );
        assert_eq!(guest(&several), ("ns/cc".to_owned(), "fleet-default/cp".to_owned()), "RF-98 RF-104");
        let mut own = pool("HarvesterConfig", true, "cp");
        own["cloudCredentialSecretName"] = json!("ns:pool");
        assert_eq!(guest(&with(Value::Null, vec![own])).0, "ns/pool", "the credential of the pool");
        for bad in ["cc-hv1", ":cc", "ns:"] {
            let problem = of(&with(json!(bad), vec![pool("HarvesterConfig", true, "cp")])).unwrap_err();
            assert!(
                problem.message.contains("<namespace>:<name>") && problem.again == Again::Slow,
                "RF-104 {bad}"
            );
        }
        let elsewhere =
            provisioned("team", "g", "", &with(json!("a:b"), vec![pool("HarvesterConfig", true, "cp")]));
        let Ok(Place::Harvester(guest)) = place(&elsewhere) else { panic!() };
        assert_eq!(
            guest.configs.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["team/cp", "fleet-default/cp"]
        );
    }

    #[test]
    fn networks_are_read_as_the_go_program_reads_them() {
        let key = ObjectKey::new("fleet-default", "cp");
        let read =
            |info: &str| virtual_instances(&key, &json!({"vmNamespace": "team-a", "networkInfo": info}));
        let networks = |info: &str| read(info).unwrap().networks;
        assert_eq!(
            networks(r#"{"interfaces":[{"networkName":"team-a/vlan10","x":1}]}"#),
            ["vlan10"],
            "RF-91"
        );
        assert_eq!(
            networks(r#"{"interfaces":[{"networkName":"a/one"},{"networkName":"a/two"}]}"#),
            ["one", "two"],
            "RF-102"
        );
        assert_eq!(networks(r#"{"Interfaces":[{"NetworkName":"team-a/vlan10"}]}"#), ["vlan10"], "RF-221");
        let bad = [
            "",
            "{",
            "{}",
            r#"{"interfaces":[]}"#,
            r#"{"interfaces":[{"networkName":""}]}"#,
            r#"{"interfaces":[{"networkName":"vlan10"}]}"#,
            r#"{"interfaces":[{"networkName":"a/b/c"}]}"#,
            r#"{"interfaces":[{"networkName":"team-a/"}]}"#,
            r#"{"interfaces":[{"networkName":"/vlan10"}]}"#,
            r"[1]",
        ];
        for info in bad {
            let problem = read(info).unwrap_err();
            assert_eq!(problem.again, Again::Slow, "RF-100 RF-101 RF-221 {info}");
            assert!(problem.message.contains("networkInfo"), "{problem:?}");
        }
        let empty = virtual_instances(&key, &json!({"networkInfo": "{}"})).unwrap_err();
        assert!(empty.message.contains("vmNamespace"), "RF-103");
    }

    #[test]
    fn a_credential_names_its_harvester() {
        let key = ObjectKey::new("cattle-global-data", "cc");
        let secret = json!({"data": {"harvestercredentialConfig-clusterId": "Yy1tLWhhcnYwMQ=="}});
        assert_eq!(harvester_id(&key, &secret), Ok("c-m-harv01".to_owned()), "RF-91");
        assert!(harvester_id(&key, &json!({"data": {}})).unwrap_err().message.contains("external"), "RF-106");
    }

    fn projects(keys: &[(&str, &str)]) -> Vec<Arc<ProjectView>> {
        let one = |(namespace, name): &(&str, &str)| {
            let json = json!({"metadata": {"name": name, "namespace": namespace}, "spec": {"clusterName": namespace},
                "status": {"backingNamespace": "elsewhere"}});
            Arc::new(ProjectView::read(json).unwrap())
        };
        keys.iter().map(one).collect()
    }

    #[test]
    fn the_annotation_names_the_project() {
        let read = |text: &str| project_ref("team-a", Some(text)).unwrap();
        let full = ProjectRef { cluster: "c-m-harv01".to_owned(), project: "p-abcde".to_owned() };
        assert_eq!(read("c-m-harv01:p-abcde"), full, "RF-91");
        assert_eq!(read("p-abcde"), ProjectRef { cluster: String::new(), ..full.clone() }, "RF-112");
        for missing in [None, Some("")] {
            assert_eq!(project_ref("team-a", missing).unwrap_err().again, Again::Slow, "RF-111");
        }
        let all = projects(&[("c-m-aaa", "p-abcde"), ("c-m-harv01", "p-abcde"), ("c-m-harv01", "p-other")]);
        let (found, ambiguous) = project(&full, &all).unwrap();
        assert_eq!((found.key.namespace.as_str(), ambiguous), ("c-m-harv01", true), "RF-113");
        let (found, ambiguous) = project(&full, &all[1..]).unwrap();
        assert_eq!((found.key.namespace.as_str(), ambiguous), ("c-m-harv01", false), "RF-153");
        assert_eq!(project(&full, &all[2..]).unwrap_err().again, Again::Soon, "RF-114");
    }
}
