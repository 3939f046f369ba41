//! The tables that `kubectl get` prints.

use serde_json::{Value, json};

use super::nodes::node;
use super::{CONFIG_MAPS, NODE, NODES, SERVICES, config_map};
use crate::conformance::row::{AS_TABLE, Row};

pub(super) fn rows() -> Vec<Row> {
    [nodes(), services(), others()].concat()
}

fn nodes() -> Vec<Row> {
    let conditions = |ready: &str| json!([{ "type": "Ready", "status": ready }]);
    let with = |name, fields: &Value| Row::new(name).post(201, NODES, node(fields)).table(200, NODE);
    vec![
        with("a bare node", &json!({})),
        with("a node that is ready, with everything that is shown", &json!({
            "metadata": {
                "labels": {
                    "node-role.kubernetes.io/control-plane": "", "node-role.kubernetes.io/etcd": "",
                    "row": "${id}",
                },
            },
            "status": {
                "conditions": conditions("True"),
                "addresses": [{ "type": "ExternalIP", "address": "192.0.2.1" }, { "type": "InternalIP", "address": "10.1.0.1" },
                    { "type": "InternalIP", "address": "fd00::1" }, { "type": "Hostname", "address": "h" }],
                "nodeInfo": { "kubeletVersion": "v1.37.1", "osImage": "Debian GNU/Linux", "kernelVersion": "6.1.0",
                    "containerRuntimeVersion": "containerd://2.0.1", "architecture": "arm64" },
            },
        }))
        .table(200, "/api/v1/nodes?labelSelector=row%3D${id}")
        .table(200, "/api/v1/nodes?labelSelector=row%3D${id}&includeObject=Object")
        .table(200, "/api/v1/nodes?labelSelector=row%3D${id}&includeObject=None")
        .table(200, "/api/v1/nodes?labelSelector=row%3Dnone"),
        with("a node that is not ready and not schedulable", &json!({
            "spec": { "unschedulable": true }, "status": { "conditions": conditions("False") },
        })),
        with("a node nobody hears of, with an old role label", &json!({
            "metadata": { "labels": { "kubernetes.io/role": "worker" } }, "status": {
                "conditions": conditions("Unknown"),
            },
        })),
        with("a node of which only the architecture is known", &json!({
            "status": { "nodeInfo": { "architecture": "amd64" } },
        })),
        Row::new("a missing node is no table").table(404, NODE),
        Row::new("one row of a change or a deletion")
            .post(201, NODES, node(&json!({})))
            .send(200, {
                let mut request = crate::Request::new(http::Method::DELETE, NODE);
                request.headers.push(("accept".into(), AS_TABLE.into()));
                request
            }),
    ]
}

fn services() -> Vec<Row> {
    let web = |name, spec: &Value| {
        let body =
            json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "web" }, "spec": spec });
        Row::new(name).post(201, SERVICES, body).table(200, format!("{SERVICES}/web"))
    };
    let port = json!([{ "port": 80 }]);
    let status = format!("{SERVICES}/web/status");
    vec![
        web("a cluster IP", &json!({ "selector": { "app": "web", "tier": "front" }, "ports": port })),
        web("a headless service", &json!({ "clusterIP": "None" })),
        web("an external name", &json!({ "type": "ExternalName", "externalName": "db.example.com" })),
        web(
            "node ports",
            &json!({ "type": "NodePort", "ports": [
            { "name": "a", "port": 80 }, { "name": "b", "port": 53, "protocol": "UDP" },
        ] }),
        ),
        web("a load balancer, waiting and then there", &json!({ "type": "LoadBalancer", "ports": port }))
            .merge_patch(
                200,
                status.clone(),
                json!({ "status": { "loadBalancer": { "ingress": [
                { "ip": "192.0.2.1" }, { "hostname": "lb.example.com" },
            ] } } }),
            )
            .table(200, SERVICES),
        web(
            "a load balancer with external addresses",
            &json!({
                "type": "LoadBalancer", "externalIPs": ["198.51.100.7"], "ports": port,
            }),
        )
        .merge_patch(
            200,
            status,
            json!({ "status": { "loadBalancer": { "ingress": [{ "ip": "192.0.2.1" }] } } }),
        )
        .table(200, format!("{SERVICES}/web")),
        web("external addresses", &json!({ "externalIPs": ["198.51.100.7", "198.51.100.8"], "ports": port })),
    ]
}

fn others() -> Vec<Row> {
    vec![
        Row::new("namespaces")
            .post(201, "/api/v1/namespaces", json!({
                "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "${id}" },
            }))
            .table(200, "/api/v1/namespaces/${id}"),
        Row::new("config maps")
            .post(201, CONFIG_MAPS, config_map("box", &json!({})))
            .merge_patch(200, format!("{CONFIG_MAPS}/box"), json!({ "data": { "a": "1", "b": "2" } }))
            .table(200, CONFIG_MAPS),
        Row::new("secrets")
            .post(201, "/api/v1/namespaces/${ns}/secrets", json!({ "apiVersion": "v1", "kind": "Secret",
                "metadata": { "name": "key" }, "stringData": { "a": "b" } }))
            .table(200, "/api/v1/namespaces/${ns}/secrets"),
        Row::new("service accounts")
            .post(201, "/api/v1/namespaces/${ns}/serviceaccounts", json!({ "apiVersion": "v1", "kind": "ServiceAccount",
                "metadata": { "name": "robot" } }))
            .table(200, "/api/v1/namespaces/${ns}/serviceaccounts"),
        Row::new("leases")
            .post(201, "/apis/coordination.k8s.io/v1/namespaces/${ns}/leases", json!({
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": "lead" },
                "spec": { "holderIdentity": "me" } }))
            .table(200, "/apis/coordination.k8s.io/v1/namespaces/${ns}/leases"),
        Row::new("events")
            .post(201, "/api/v1/namespaces/${ns}/events", json!({ "apiVersion": "v1", "kind": "Event",
                "metadata": { "name": "e" }, "type": "Warning", "reason": "Because", "message": "It is so", "count": 3,
                "involvedObject": {
                    "kind": "Service", "namespace": "${ns}", "name": "web",
                }, "source": { "component": "test" } }))
            .table(200, "/api/v1/namespaces/${ns}/events"),
        Row::new("endpoints and slices")
            .post(201, "/apis/discovery.k8s.io/v1/namespaces/${ns}/endpointslices", json!({
                "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": { "name": "web-1" },
                "addressType": "IPv4", "endpoints": [{
                    "addresses": ["10.2.0.1"],
                }], "ports": [{ "port": 80 }] }))
            .table(200, "/apis/discovery.k8s.io/v1/namespaces/${ns}/endpointslices")
            .post(201, "/api/v1/namespaces/${ns}/endpoints", json!({ "apiVersion": "v1", "kind": "Endpoints",
                "metadata": { "name": "web" }, "subsets": [{
                    "addresses": [{ "ip": "10.2.0.1" }], "ports": [{ "port": 80 }],
                }] }))
            .table(200, "/api/v1/namespaces/${ns}/endpoints"),
        Row::new("pods")
            .post(201, "/api/v1/namespaces/${ns}/pods", json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "p" },
                "spec": { "nodeName": "n", "containers": [{ "name": "c", "image": "i" }] } }))
            .table(200, "/api/v1/namespaces/${ns}/pods"),
    ]
}
