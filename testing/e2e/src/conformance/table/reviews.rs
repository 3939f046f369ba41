//! Who one is, and what one may.

use serde_json::{Value, json};

use crate::conformance::lens::refusal;
use crate::conformance::row::Row;

const MAY_I: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
const MAY_SHE: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
const WHO: &str = "/apis/authentication.k8s.io/v1/tokenreviews";

/// The verdict, without the words in which an authorizer explains itself.
fn verdict(body: &Value) -> Value {
    json!({ "kind": body.get("kind"), "spec": body.get("spec"), "allowed": body.pointer("/status/allowed") })
}

pub(super) fn rows() -> Vec<Row> {
    let review = |kind: &str, spec: &Value| {
        json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec,
        })
    };
    let token = |token: &str| {
        json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": { "token": token },
        })
    };
    vec![
        Row::new("an administrator may")
            .post(201, MAY_I, review("SelfSubjectAccessReview", &json!({
                "resourceAttributes": { "verb": "list", "resource": "nodes" },
            })))
            .through(verdict)
            .post(201, MAY_I, review("SelfSubjectAccessReview", &json!({
                "nonResourceAttributes": { "verb": "get", "path": "/metrics" },
            })))
            .through(verdict)
            .post(422, MAY_I, review("SelfSubjectAccessReview", &json!({}))),
        Row::new("a stranger may not")
            .post(201, MAY_SHE, review("SubjectAccessReview", &json!({ "user": "stranger",
                "resourceAttributes": { "verb": "list", "resource": "nodes" } })))
            .through(verdict)
            .post(422, MAY_SHE, review("SubjectAccessReview", &json!({
                "resourceAttributes": { "verb": "list", "resource": "nodes" },
            }))),
        Row::new("a token that nobody gave out")
            .post(201, WHO, token("made-up"))
            .through(|body| json!({
                "authenticated": body.pointer("/status/authenticated"), "user": body.pointer("/status/user"),
            }))
            .post(400, WHO, token(""))
            .through(refusal),
    ]
}
