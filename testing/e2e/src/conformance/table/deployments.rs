//! Deployments, which nobody rolls out here: what is stored, and what is refused.

use serde_json::{Value, json};

use super::with;
use crate::conformance::lens::refusal;
use crate::conformance::row::Row;

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/${ns}/deployments";
const WEB: &str = "/apis/apps/v1/namespaces/${ns}/deployments/web";
const STATUS: &str = "/apis/apps/v1/namespaces/${ns}/deployments/web/status";

pub(super) fn rows() -> Vec<Row> {
    [life(), refusals()].concat()
}

fn spec() -> Value {
    json!({
        "selector": { "matchLabels": { "app": "web" } },
        "template": {
            "metadata": { "labels": { "app": "web" } },
            "spec": { "containers": [{ "name": "c", "image": "i" }] },
        },
    })
}

fn deployment(spec: &Value) -> Value {
    json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" }, "spec": spec })
}

fn life() -> Vec<Row> {
    let made = |name| Row::new(name).post(201, DEPLOYMENTS, deployment(&spec()));
    let ready = json!({ "status": {
        "observedGeneration": 1, "replicas": 3, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 1,
        "conditions": [{ "type": "Available", "status": "True", "reason": "MinimumReplicasAvailable" }],
    } });
    vec![
        made("a bare deployment is completed, read, and deleted")
            .get(200, WEB)
            .delete(200, WEB)
            .get(404, WEB),
        Row::new("everything that is given stays")
            .post(201, DEPLOYMENTS, with(deployment(&with(spec(), &json!({
                "replicas": 0, "strategy": { "type": "Recreate" }, "minReadySeconds": 5, "revisionHistoryLimit": 0,
                "progressDeadlineSeconds": 30, "paused": true,
                "template": { "metadata": { "labels": { "app": "web", "tier": "front" }, "annotations": { "a": "b" } },
                    "spec": { "containers": [
                        { "name": "c", "image": "i:1", "ports": [{ "containerPort": 80 }], "env": [{ "name": "A", "value": "b" }] },
                        { "name": "d", "image": "j@sha256:0", "resources": { "requests": { "cpu": "1000m" } } },
                    ], "nodeSelector": { "x": "y" }, "terminationGracePeriodSeconds": 5 } },
            }))), &json!({ "metadata": { "labels": { "l": "m" } }, "status": { "replicas": 7 } })))
            .table(200, WEB),
        made("what is new is a new generation")
            .merge_patch(200, WEB, json!({ "spec": { "replicas": 3 } }))
            .merge_patch(200, WEB, json!({ "metadata": { "labels": { "a": "b" } } }))
            .merge_patch(200, WEB, json!({ "metadata": { "annotations": { "a": "b" } } }))
            .merge_patch(200, WEB, json!({ "status": { "replicas": 3 } }))
            .merge_patch(200, WEB, json!({ "metadata": { "annotations": { "a": "b" } } }))
            .json_patch(200, WEB, json!([{ "op": "replace", "path": "/spec/paused", "value": true }])),
        made("the status has a path of its own")
            .merge_patch(200, STATUS, with(ready.clone(), &json!({ "spec": { "replicas": 9 }, "metadata": { "labels": { "a": "b" } } })))
            .strategic_patch(200, STATUS, json!({ "status": { "conditions": [{ "type": "Progressing", "status": "True" }] } }))
            .get(200, STATUS)
            .table(200, WEB)
            .table(200, DEPLOYMENTS)
            .merge_patch(422, STATUS, json!({ "status": { "replicas": 1 } }))
            .merge_patch(422, STATUS, json!({ "status": { "unavailableReplicas": -1 } })),
        made("containers are merged by name")
            .strategic_patch(200, WEB, json!({ "spec": { "template": { "spec": { "containers": [
                { "name": "c", "image": "i:2" }, { "name": "d", "image": "j" },
            ] } } } }))
            .strategic_patch(200, WEB, json!({ "spec": { "strategy": {
                "$retainKeys": ["type"], "type": "Recreate",
            } } }))
            .strategic_patch(200, WEB, json!({ "spec": { "template": { "metadata": { "annotations": {
                "kubectl.kubernetes.io/restartedAt": "2026-01-02T03:04:05Z",
            } } } } })),
        made("a replacement needs no version, but may name one")
            .put(200, WEB, deployment(&with(spec(), &json!({ "replicas": 2 }))))
            .put(409, WEB, with(deployment(&spec()), &json!({ "metadata": { "resourceVersion": "1" } })))
            .put(404, format!("{DEPLOYMENTS}/other"), with(deployment(&spec()), &json!({ "metadata": { "name": "other" } }))),
        made("lists and watches")
            .get(200, DEPLOYMENTS)
            .keep("rv", "/metadata/resourceVersion")
            .watch("w", format!("{DEPLOYMENTS}?watch=1&resourceVersion=${{rv}}"))
            .merge_patch(200, WEB, json!({ "spec": { "replicas": 2 } }))
            .delete(200, WEB)
            .take("w", 2)
            .get(200, format!("{DEPLOYMENTS}?labelSelector=app%3Dweb"))
            .get(400, format!("{DEPLOYMENTS}?fieldSelector=spec.replicas%3D1")),
    ]
}

fn refusals() -> Vec<Row> {
    let refused =
        |name, change: &Value| Row::new(name).post(422, DEPLOYMENTS, deployment(&with(spec(), change)));
    let template = |labels: Value, spec: Value| json!({ "template": { "metadata": { "labels": labels }, "spec": spec } });
    let containers = || json!({ "containers": [{ "name": "c", "image": "i" }] });
    vec![
        Row::new("a deployment of nothing").post(422, DEPLOYMENTS, deployment(&json!({}))),
        refused(
            "a selector that selects nothing of its own",
            &json!({ "selector": { "matchLabels": { "app": "other" } } }),
        ),
        refused("a selector that selects everything", &json!({ "selector": {} })),
        refused("no containers", &template(json!({ "app": "web" }), json!({ "containers": [] }))),
        refused(
            "a container without a name and an image",
            &template(json!({ "app": "web" }), json!({ "containers": [{}] })),
        ),
        refused(
            "pods that are not started again",
            &template(json!({ "app": "web" }), with(containers(), &json!({ "restartPolicy": "Never" }))),
        ),
        refused(
            "a negative number",
            &json!({ "replicas": -1, "minReadySeconds": -1, "revisionHistoryLimit": -1 }),
        ),
        refused(
            "a deadline that is over too soon",
            &json!({ "minReadySeconds": 10, "progressDeadlineSeconds": 10 }),
        ),
        refused("a strategy that is none", &json!({ "strategy": { "type": "Guess" } })).through(refusal),
        refused(
            "a strategy that contradicts itself",
            &json!({ "strategy": { "type": "Recreate", "rollingUpdate": {} } }),
        ),
        refused(
            "a rollout that cannot move",
            &json!({ "strategy": { "rollingUpdate": { "maxSurge": 0, "maxUnavailable": 0 } } }),
        ),
        Row::new("the selector is for ever").post(201, DEPLOYMENTS, deployment(&spec())).put(
            422,
            WEB,
            deployment(&json!({
                "selector": { "matchLabels": { "app": "other" } },
                "template": { "metadata": { "labels": { "app": "other" } }, "spec": containers() },
            })),
        ),
        Row::new("unknown fields and wrong types")
            .post(201, DEPLOYMENTS, deployment(&with(spec(), &json!({ "replica": 1 }))))
            .post(
                400,
                format!("{DEPLOYMENTS}?fieldValidation=Strict"),
                deployment(&with(spec(), &json!({ "replica": 1 }))),
            )
            .post(400, DEPLOYMENTS, deployment(&with(spec(), &json!({ "replicas": "1" }))))
            .post(
                400,
                DEPLOYMENTS,
                json!({ "apiVersion": "apps/v2", "kind": "Deployment", "metadata": { "name": "web" } }),
            ),
    ]
}
