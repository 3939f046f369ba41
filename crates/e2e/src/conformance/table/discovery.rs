//! What a client asks before it asks anything.

use crate::conformance::lens::{aggregated, groups, nothing, resources, version, versions};
use crate::conformance::row::Row;

const AGGREGATED: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

pub(super) fn rows() -> Vec<Row> {
    vec![
        Row::new("the version").get(200, "/version").through(version),
        Row::new("groups and versions").get(200, "/api").through(versions).get(200, "/apis").through(groups),
        Row::new("one group").get(200, "/apis/coordination.k8s.io").get(404, "/apis/example.com"),
        Row::new("resources of the core group").get(200, "/api/v1").through(resources),
        Row::new("resources of other groups")
            .get(200, "/apis/coordination.k8s.io/v1")
            .through(resources)
            .get(200, "/apis/events.k8s.io/v1")
            .through(resources)
            .get(200, "/apis/discovery.k8s.io/v1")
            .through(resources)
            .get(200, "/apis/authentication.k8s.io/v1")
            .through(resources)
            .get(200, "/apis/authorization.k8s.io/v1")
            .through(resources),
        Row::new("aggregated")
            .get_as(200, "/api", AGGREGATED)
            .through(aggregated)
            .get_as(200, "/apis", AGGREGATED)
            .through(aggregated),
        Row::new("descriptions")
            .get(200, "/openapi/v2")
            .through(nothing)
            .get(200, "/openapi/v3")
            .through(nothing),
    ]
}
