//! Events, through both of their APIs.

use serde_json::{Value, json};

use super::with;
use crate::conformance::lens::names;
use crate::conformance::row::Row;

const CORE: &str = "/api/v1/namespaces/${ns}/events";
const NEW: &str = "/apis/events.k8s.io/v1/namespaces/${ns}/events";

/// An event as client-go's recorder writes it, with these further fields.
fn event(name: &str, fields: &Value) -> Value {
    with(
        json!({
            "apiVersion": "v1", "kind": "Event", "metadata": { "name": name },
            "involvedObject": {
                "apiVersion": "v1", "kind": "Service", "namespace": "${ns}", "name": "web", "uid": "web-uid",
            },
            "reason": "EnsuredLoadBalancer", "message": "Ensured load balancer", "type": "Normal",
            "source": { "component": "service-controller" },
            "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:01Z", "count": 1,
        }),
        fields,
    )
}

pub(super) fn rows() -> Vec<Row> {
    let new = json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": { "name": "n" },
        "eventTime": "2026-01-01T00:00:00.000000Z", "reportingController": "example.com/c", "reportingInstance": "c-1",
        "action": "Binding", "reason": "Bound", "note": "Bound it", "type": "Normal",
        "regarding": { "apiVersion": "v1", "kind": "Pod", "namespace": "${ns}", "name": "p" },
    });
    vec![
        Row::new("an event, and the same through the newer API")
            .post(201, CORE, event("e", &json!({})))
            .get(200, format!("{CORE}/e"))
            .get(200, format!("{NEW}/e"))
            .get(200, NEW),
        Row::new("replacing an event that is not there creates it")
            .put(201, format!("{CORE}/e"), event("e", &json!({})))
            .put(200, format!("{CORE}/e"), event("e", &json!({ "count": 2 }))),
        Row::new("patching an event that is not there does not")
            .strategic_patch(404, format!("{CORE}/e"), json!({ "count": 2 })),
        Row::new("counting up, as a recorder does")
            .post(201, CORE, event("e", &json!({})))
            .strategic_patch(200, format!("{CORE}/e"), json!({
                "count": 2, "lastTimestamp": "2026-01-01T00:01:00Z",
            }))
            .merge_patch(200, format!("{CORE}/e"), json!({ "message": "Something else" }))
            .delete(200, format!("{CORE}/e")),
        Row::new("an event of the newer API, and the same through the old one")
            .post(201, NEW, new.clone())
            .get(200, format!("{CORE}/n"))
            .merge_patch(200, format!("{NEW}/n"), json!({
                "series": { "count": 2, "lastObservedTime": "2026-01-01T00:00:05.000000Z" },
            }))
            .merge_patch(422, format!("{NEW}/n"), json!({ "note": "changed" })),
        Row::new("what an event must have")
            .post(422, CORE, event("e", &json!({
                "involvedObject": { "kind": "Service", "namespace": "elsewhere", "name": "web" },
            })))
            .post(422, CORE, event("e", &json!({ "involvedObject": { "kind": "Node", "name": "n" } })))
            .post(422, NEW, json!({
                "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": { "name": "n" },
            }))
            .post(422, NEW, with(new, &json!({ "type": "Odd", "reason": "" }))),
        Row::new("an event about a node lives in the default namespace")
            .post(201, "/api/v1/namespaces/default/events", json!({ "apiVersion": "v1", "kind": "Event",
                "metadata": { "generateName": "${id}." }, "involvedObject": {
                    "kind": "Node", "name": "${id}", "uid": "${id}",
                },
                "reason": "Deleting", "message": "m", "type": "Normal", "source": {
                    "component": "c", "host": "h",
                } }))
            .get(200, "/api/v1/namespaces/default/events?fieldSelector=involvedObject.name%3D${id}%2CinvolvedObject.kind%3DNode"),
        Row::new("events by their fields")
            .post(201, CORE, event("a", &json!({ "type": "Warning" })))
            .post(201, CORE, event("b", &json!({ "reason": "Other" })))
            .get(200, format!("{CORE}?fieldSelector=type%3DWarning"))
            .through(names)
            .get(200, format!("{CORE}?fieldSelector=reason%3DOther%2CinvolvedObject.uid%3Dweb-uid"))
            .through(names)
            .get(200, format!("{NEW}?fieldSelector=regarding.name%3Dweb%2CreportingController%3D"))
            .through(names)
            .get(400, format!("{CORE}?fieldSelector=message%3Dx")),
    ]
}
