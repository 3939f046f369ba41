//! Lists: selectors, pages, and versions.

use serde_json::json;

use super::nodes::node;
use super::{CONFIG_MAPS, NODES, SERVICES, config_map};
use crate::conformance::lens::names;
use crate::conformance::row::Row;

pub(super) fn rows() -> Vec<Row> {
    [labels(), fields(), pages(), versions()].concat()
}

/// Four config maps with labels to choose by.
fn four(name: &'static str) -> Row {
    Row::new(name)
        .post(201, CONFIG_MAPS, config_map("a", &json!({ "tier": "front", "env": "prod" })))
        .post(201, CONFIG_MAPS, config_map("b", &json!({ "tier": "back", "env": "prod" })))
        .post(201, CONFIG_MAPS, config_map("c", &json!({ "tier": "back" })))
        .post(201, CONFIG_MAPS, config_map("d", &json!({})))
}

fn labels() -> Vec<Row> {
    let selectors = [
        "tier%3Dback",
        "tier%3D%3Dback",
        "tier!%3Dback",
        "tier",
        "!tier",
        "tier+in+(front%2Cback)",
        "tier+notin+(front)",
        "tier%3Dback%2Cenv%3Dprod",
        "tier%2C!env",
        "tier%3D",
        "none%3Dnone",
    ];
    let mut row = four("label selectors");
    for selector in selectors {
        row = row.get(200, format!("{CONFIG_MAPS}?labelSelector={selector}")).through(names);
    }
    let bad = ["tier%3D%3D%3Dx", "tier+in+front", "a+b+c", "tier%3Dnot+ok%3F", "%3Dx"];
    let refused = bad.into_iter().fold(Row::new("malformed label selectors"), |row, selector| {
        row.get(400, format!("{CONFIG_MAPS}?labelSelector={selector}"))
    });
    vec![row, refused]
}

fn fields() -> Vec<Row> {
    vec![
        four("field selectors on name and namespace")
            .get(200, format!("{CONFIG_MAPS}?fieldSelector=metadata.name%3Db"))
            .through(names)
            .get(200, format!("{CONFIG_MAPS}?fieldSelector=metadata.name!%3Db"))
            .through(names)
            .get(200, "/api/v1/configmaps?fieldSelector=metadata.namespace%3D${ns}%2Cmetadata.name%3Dc")
            .through(names)
            .get(200, format!("{CONFIG_MAPS}?fieldSelector=metadata.name%3Db&labelSelector=tier%3Dfront"))
            .through(names),
        Row::new("field selectors of one resource, and unknown ones")
            .post(
                201,
                NODES,
                node(&json!({
                    "spec": { "unschedulable": true }, "metadata": { "labels": { "row": "${id}" } },
                })),
            )
            .get(200, "/api/v1/nodes?fieldSelector=spec.unschedulable%3Dtrue&labelSelector=row%3D${id}")
            .through(names)
            .get(200, "/api/v1/nodes?fieldSelector=spec.unschedulable%3Dfalse&labelSelector=row%3D${id}")
            .through(names)
            .get(400, "/api/v1/nodes?fieldSelector=spec.providerID%3Dx")
            .get(400, "/api/v1/nodes?fieldSelector=metadata.labels%3Dx")
            .get(400, format!("{CONFIG_MAPS}?fieldSelector=nonsense")),
        Row::new("services by type and address")
            .post(
                201,
                SERVICES,
                json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "lb" },
                "spec": { "type": "LoadBalancer", "ports": [{ "port": 80 }] } }),
            )
            .post(
                201,
                SERVICES,
                json!({ "apiVersion": "v1", "kind": "Service", "metadata": {
                "name": "headless",
            },
                "spec": { "clusterIP": "None" } }),
            )
            .get(200, format!("{SERVICES}?fieldSelector=spec.type%3DLoadBalancer"))
            .through(names)
            .get(200, format!("{SERVICES}?fieldSelector=spec.clusterIP%3DNone"))
            .through(names)
            .get(400, format!("{SERVICES}?fieldSelector=spec.loadBalancerClass%3Dx")),
    ]
}

fn pages() -> Vec<Row> {
    vec![
        four("pages")
            .get(200, format!("{CONFIG_MAPS}?limit=2"))
            .keep("next", "/metadata/continue")
            .get(200, format!("{CONFIG_MAPS}?limit=1&continue=${{next}}"))
            .keep("next", "/metadata/continue")
            .get(200, format!("{CONFIG_MAPS}?limit=5&continue=${{next}}")),
        four("a page shows the list as it was when the first page was read")
            .get(200, format!("{CONFIG_MAPS}?limit=2"))
            .keep("next", "/metadata/continue")
            .delete(200, format!("{CONFIG_MAPS}/c"))
            .post(201, CONFIG_MAPS, config_map("e", &json!({})))
            .get(200, format!("{CONFIG_MAPS}?limit=5&continue=${{next}}"))
            .through(names),
        four("pages of a selection do not tell how many are left")
            .get(200, format!("{CONFIG_MAPS}?limit=1&labelSelector=tier"))
            .through(names)
            .keep("next", "/metadata/continue")
            .get(200, format!("{CONFIG_MAPS}?limit=1&labelSelector=tier&continue=${{next}}"))
            .through(names),
        four("malformed pages")
            .get(400, format!("{CONFIG_MAPS}?continue=garbage"))
            .get(400, format!("{CONFIG_MAPS}?limit=x"))
            .get(200, format!("{CONFIG_MAPS}?limit=-1"))
            .through(names)
            .get(200, format!("{CONFIG_MAPS}?limit=1"))
            .keep("next", "/metadata/continue")
            .get(400, format!("{CONFIG_MAPS}?limit=1&resourceVersion=5&continue=${{next}}")),
    ]
}

fn versions() -> Vec<Row> {
    vec![
        Row::new("an empty list is a list").get(200, CONFIG_MAPS),
        four("a list with all its objects, sorted by name").get(200, CONFIG_MAPS),
        four("versions of a list")
            .get(200, CONFIG_MAPS)
            .keep("rv", "/metadata/resourceVersion")
            .get(200, format!("{CONFIG_MAPS}?resourceVersion=0"))
            .through(crate::conformance::lens::nothing)
            .get(200, format!("{CONFIG_MAPS}?resourceVersion=${{rv}}&resourceVersionMatch=NotOlderThan"))
            .through(names)
            .delete(200, format!("{CONFIG_MAPS}/a"))
            .get(200, format!("{CONFIG_MAPS}?resourceVersion=${{rv}}&resourceVersionMatch=Exact"))
            .through(names)
            .get(422, format!("{CONFIG_MAPS}?resourceVersionMatch=Exact"))
            .get(422, format!("{CONFIG_MAPS}?resourceVersion=0&resourceVersionMatch=Exact"))
            .get(422, format!("{CONFIG_MAPS}?resourceVersion=${{rv}}&resourceVersionMatch=Newest"))
            .get(400, format!("{CONFIG_MAPS}?resourceVersion=x")),
        four("a version from the future")
            .get(504, format!("{CONFIG_MAPS}?resourceVersion=99999999&resourceVersionMatch=NotOlderThan&timeoutSeconds=1"))
            .through(crate::conformance::lens::refusal),
        four("one object at a version")
            .settled(CONFIG_MAPS)
            .get(200, format!("{CONFIG_MAPS}/a?resourceVersion=0"))
            .get(404, format!("{CONFIG_MAPS}/none")),
        four("objects of all namespaces")
            .get(200, "/api/v1/configmaps?labelSelector=tier&fieldSelector=metadata.namespace%3D${ns}")
            .through(names),
        Row::new("a namespace that is not there has empty lists and takes nothing")
            .get(200, "/api/v1/namespaces/nowhere/configmaps")
            .get(404, "/api/v1/namespaces/nowhere/configmaps/x")
            .post(404, "/api/v1/namespaces/nowhere/configmaps", config_map("x", &json!({}))),
        four("metadata only")
            .get_as(200, format!("{CONFIG_MAPS}/a"), "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io")
            .get_as(200, CONFIG_MAPS, "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"),
    ]
}
