//! Watches: from where they start, what they tell, and when they end.

use serde_json::{Value, json};

use super::nodes::node;
use super::{CONFIG_MAPS, NODE, NODES, config_map};
use crate::conformance::row::Row;

const BOX: &str = "/api/v1/namespaces/${ns}/configmaps/box";

pub(super) fn rows() -> Vec<Row> {
    [changes(), selections(), streaming_lists(), ends()].concat()
}

fn boxed(data: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "box", "labels": { "in": "yes" } },
        "data": data,
    })
}

fn changes() -> Vec<Row> {
    vec![
        Row::new("created, changed, deleted, seen from a list's version")
            .get(200, CONFIG_MAPS)
            .keep("rv", "/metadata/resourceVersion")
            .watch("w", format!("{CONFIG_MAPS}?watch=true&resourceVersion=${{rv}}"))
            .post(201, CONFIG_MAPS, boxed(&json!({ "a": "1" })))
            .merge_patch(200, BOX, json!({ "data": { "a": "2" } }))
            .merge_patch(200, BOX, json!({ "data": { "a": "2" } }))
            .delete(200, BOX)
            .take("w", 3),
        Row::new("resumed from the middle")
            .post(201, CONFIG_MAPS, boxed(&json!({ "a": "1" })))
            .keep("rv", "/metadata/resourceVersion")
            .merge_patch(200, BOX, json!({ "data": { "a": "2" } }))
            .merge_patch(200, BOX, json!({ "data": { "a": "3" } }))
            .watch("w", format!("{CONFIG_MAPS}?watch=true&resourceVersion=${{rv}}"))
            .take("w", 2)
            .keep("rv", "/0/object/metadata/resourceVersion")
            .watch("x", format!("{CONFIG_MAPS}?watch=true&resourceVersion=${{rv}}"))
            .delete(200, BOX)
            .take("x", 2)
            .take("w", 1),
        Row::new("without a version: first what there is")
            .post(201, CONFIG_MAPS, config_map("b", &json!({})))
            .post(201, CONFIG_MAPS, config_map("a", &json!({})))
            .settled(CONFIG_MAPS)
            .watch("w", format!("{CONFIG_MAPS}?watch=true"))
            .take("w", 2)
            .post(201, CONFIG_MAPS, config_map("c", &json!({})))
            .take("w", 1)
            .watch("x", format!("{CONFIG_MAPS}?watch=1&resourceVersion=0"))
            .take("x", 3),
        Row::new("deletion with a finalizer in the way")
            .post(201, NODES, node(&json!({ "metadata": { "finalizers": ["example.com/hold"] } })))
            .keep("rv", "/metadata/resourceVersion")
            .watch("w", "/api/v1/nodes?watch=true&resourceVersion=${rv}&fieldSelector=metadata.name%3D${id}")
            .delete(200, NODE)
            .merge_patch(200, NODE, json!({ "metadata": { "finalizers": null } }))
            .take("w", 2),
        Row::new("status writes are changes")
            .post(201, NODES, node(&json!({})))
            .keep("rv", "/metadata/resourceVersion")
            .watch("w", "/api/v1/nodes?watch=true&resourceVersion=${rv}&fieldSelector=metadata.name%3D${id}")
            .merge_patch(200, format!("{NODE}/status"), json!({ "status": { "phase": "Running" } }))
            .take("w", 1),
    ]
}

fn selections() -> Vec<Row> {
    vec![
        Row::new("an object that leaves or enters the selection")
            .post(201, CONFIG_MAPS, boxed(&json!({})))
            .keep("rv", "/metadata/resourceVersion")
            .watch("w", format!("{CONFIG_MAPS}?watch=true&labelSelector=in%3Dyes&resourceVersion=${{rv}}"))
            .merge_patch(200, BOX, json!({ "metadata": { "labels": { "in": "no" } } }))
            .merge_patch(200, BOX, json!({ "data": { "unseen": "1" } }))
            .merge_patch(200, BOX, json!({ "metadata": { "labels": { "in": "yes" } } }))
            .delete(200, BOX)
            .take("w", 3),
        Row::new("one object by its name")
            .get(200, CONFIG_MAPS)
            .keep("rv", "/metadata/resourceVersion")
            .watch(
                "w",
                format!("{CONFIG_MAPS}?watch=true&fieldSelector=metadata.name%3Dbox&resourceVersion=${{rv}}"),
            )
            .post(201, CONFIG_MAPS, config_map("other", &json!({})))
            .post(201, CONFIG_MAPS, boxed(&json!({})))
            .take("w", 1),
        Row::new("by the old paths")
            .post(201, CONFIG_MAPS, boxed(&json!({})))
            .keep("rv", "/metadata/resourceVersion")
            .watch("w", "/api/v1/watch/namespaces/${ns}/configmaps?resourceVersion=${rv}")
            .watch("x", "/api/v1/watch/namespaces/${ns}/configmaps/box?resourceVersion=${rv}")
            .merge_patch(200, BOX, json!({ "data": { "a": "1" } }))
            .take("w", 1)
            .take("x", 1),
        Row::new("one object by a watch on its path")
            .post(201, CONFIG_MAPS, boxed(&json!({})))
            .keep("rv", "/metadata/resourceVersion")
            .watch("w", format!("{BOX}?watch=true&resourceVersion=${{rv}}"))
            .merge_patch(200, BOX, json!({ "data": { "a": "1" } }))
            .take("w", 1),
    ]
}

fn streaming_lists() -> Vec<Row> {
    let streaming =
        "watch=true&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan";
    vec![
        Row::new("a streaming list: what there is, a bookmark, and what comes")
            .post(201, CONFIG_MAPS, config_map("b", &json!({})))
            .post(201, CONFIG_MAPS, config_map("a", &json!({})))
            .watch("w", format!("{CONFIG_MAPS}?{streaming}"))
            .take("w", 3)
            .post(201, CONFIG_MAPS, config_map("c", &json!({})))
            .take("w", 1),
        Row::new("a streaming list of nothing")
            .watch("w", format!("{CONFIG_MAPS}?{streaming}"))
            .take("w", 1),
        Row::new("a streaming list not older than a version")
            .post(201, CONFIG_MAPS, config_map("a", &json!({})))
            .keep("rv", "/metadata/resourceVersion")
            .watch("w", format!("{CONFIG_MAPS}?{streaming}&resourceVersion=${{rv}}"))
            .take("w", 2)
            .watch("x", format!("{CONFIG_MAPS}?{streaming}&resourceVersion=0"))
            .take("x", 2),
        Row::new("a streaming list of a selection")
            .post(201, CONFIG_MAPS, config_map("a", &json!({ "in": "no" })))
            .post(201, CONFIG_MAPS, config_map("b", &json!({ "in": "yes" })))
            .watch("w", format!("{CONFIG_MAPS}?{streaming}&labelSelector=in%3Dyes"))
            .take("w", 2),
        Row::new("a streaming list is asked for completely or not at all")
            .get(422, format!("{CONFIG_MAPS}?watch=true&sendInitialEvents=true&allowWatchBookmarks=true"))
            .get(422, format!("{CONFIG_MAPS}?watch=true&sendInitialEvents=true&resourceVersionMatch=Exact"))
            .get(422, format!("{CONFIG_MAPS}?watch=true&resourceVersionMatch=NotOlderThan"))
            .get(422, format!("{CONFIG_MAPS}?sendInitialEvents=true")),
        Row::new("explicitly without what there is")
            .post(201, CONFIG_MAPS, config_map("a", &json!({})))
            .settled(CONFIG_MAPS)
            .watch("w", format!("{CONFIG_MAPS}?watch=true&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion=0"))
            .post(201, CONFIG_MAPS, config_map("b", &json!({})))
            .take("w", 1),
    ]
}

fn ends() -> Vec<Row> {
    vec![
        Row::new("a watch ends after the time that was asked for")
            .post(201, CONFIG_MAPS, boxed(&json!({})))
            .settled(CONFIG_MAPS)
            .watch("w", format!("{CONFIG_MAPS}?watch=true&timeoutSeconds=1"))
            .drain("w"),
        // There is something to tell only when the store has moved on, be it elsewhere.
        Row::new("a watch that asked for bookmarks gets one before its end")
            .post(201, CONFIG_MAPS, boxed(&json!({})))
            .keep("rv", "/metadata/resourceVersion")
            .watch("w", format!("{CONFIG_MAPS}?watch=true&allowWatchBookmarks=true&resourceVersion=${{rv}}&timeoutSeconds=5&fieldSelector=metadata.name%3Dbox"))
            .post(201, CONFIG_MAPS, config_map("other", &json!({})))
            .drain_with_bookmarks("w"),
        Row::new("a version too old is gone")
            .watch("w", format!("{CONFIG_MAPS}?watch=true&resourceVersion=1"))
            .drain("w"),
        Row::new("a malformed version").get(500, format!("{CONFIG_MAPS}?watch=true&resourceVersion=x")),
        Row::new("a table, watched")
            .post(201, CONFIG_MAPS, boxed(&json!({})))
            .settled(CONFIG_MAPS)
            .watch_table("w", format!("{CONFIG_MAPS}?watch=true"))
            .take("w", 1)
            .merge_patch(200, BOX, json!({ "data": { "a": "1" } }))
            .take("w", 1),
    ]
}
