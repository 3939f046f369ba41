//! What a client asks before it asks anything.

use crate::conformance::lens::{
    aggregated, described, described_definitions, described_workloads, groups, nothing, resources, version,
    versions,
};
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
            .get(200, "/apis/apps/v1")
            .through(resources)
            .get(200, "/apis/apiextensions.k8s.io/v1")
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
            .through(described)
            .get(200, "/openapi/v3")
            .through(nothing)
            .get(200, "/openapi/v3/api/v1")
            .through(described)
            .get(200, "/openapi/v2")
            .through(described_workloads)
            .get(200, "/openapi/v3/apis/apps/v1")
            .through(described_workloads)
            .get(200, "/openapi/v2")
            .through(described_definitions)
            .get(200, "/openapi/v3/apis/apiextensions.k8s.io/v1")
            .through(described_definitions),
        // What kubectl asks for; the name with an `@` in it is the one that it uses.
        Row::new("the description in protobuf")
            .get_as(200, "/openapi/v2", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf")
            .through(described)
            .get_as(200, "/openapi/v2", "application/com.github.proto-openapi.spec.v2.v1.0+protobuf")
            .through(described)
            .get_as(200, "/openapi/v2", "text/plain, application/json")
            .through(described)
            .get_as(406, "/openapi/v2", "application/yaml"),
        // What it asks next about a kind that is not described.
        Row::new("custom kinds").get(200, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"),
    ]
}
