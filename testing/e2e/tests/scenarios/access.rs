//! Roles are enforced, and every request is logged.

use cloudberth_e2e::{Cluster, Request, Row, eventually};
use serde_json::json;

use crate::Outcome;
use crate::fixture::{Fixture, SOON};

const MANIFESTS: &str = r#"
apiVersion: v1
kind: ServiceAccount
metadata: {name: manager, namespace: kube-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: manager}
rules:
- {apiGroups: [""], resources: [nodes], verbs: [get, list, watch]}
- {apiGroups: [""], resources: [nodes/status], verbs: [patch]}
- {apiGroups: [coordination.k8s.io], resources: [leases], resourceNames: [lead], verbs: [get, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: manager}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: manager}
subjects: [{kind: ServiceAccount, namespace: kube-system, name: manager}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: manager-reader, namespace: kube-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: extension-apiserver-authentication-reader}
subjects: [{kind: ServiceAccount, namespace: kube-system, name: manager}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: manager, namespace: kube-system}
"#;

/// `verb group resource/part namespace name status`.
fn words(row: &Row) -> String {
    let dash = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
    let part = if row.subresource.is_empty() { String::new() } else { format!("/{}", row.subresource) };
    format!(
        "{} {} {}{part} {} {} {}",
        row.verb,
        dash(&row.group),
        row.resource,
        dash(&row.namespace),
        dash(&row.name),
        row.status
    )
}

pub(crate) async fn an_account_has_the_rights_of_its_role_and_every_call_is_logged(
    cluster: &Cluster,
) -> Outcome {
    let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "n1" } });
    cluster.create("/api/v1/nodes", &node).await?;
    let account = cluster.account("kube-system", "manager", MANIFESTS).await?;
    let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
    let mut ready = Request::new(http::Method::PATCH, "/api/v1/nodes/n1/status")
        .json(&json!({ "status": { "conditions": [{ "type": "Ready", "status": "True" }] } }));
    ready.content_type = "application/strategic-merge-patch+json".into();
    let table = [
        (Request::get("/api/v1/nodes/n1"), "get - nodes - n1 200"),
        (Request::get("/api/v1/nodes?limit=1"), "list - nodes - - 200"),
        (Request::post("/api/v1/nodes", &node), "create - nodes - - 403"),
        (ready, "patch - nodes/status - n1 200"),
        (Request::get(format!("{leases}/lead")), "get coordination.k8s.io leases kube-system lead 404"),
        (Request::get(format!("{leases}/other")), "get coordination.k8s.io leases kube-system other 403"),
        (
            Request::get(format!("{leases}?watch=true&timeoutSeconds=1&fieldSelector=metadata.name%3Dlead")),
            "watch coordination.k8s.io leases kube-system lead 200",
        ),
        (
            Request::get(format!("{leases}?watch=true&timeoutSeconds=1")),
            "watch coordination.k8s.io leases kube-system - 403",
        ),
        (
            Request::get("/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"),
            "get - configmaps kube-system extension-apiserver-authentication 200",
        ),
        (Request::get("/api/v1/services"), "list - services - - 403"),
        (Request::get("/version"), "get - /version - - 200"),
        (Request::get("/metrics"), "get - /metrics - - 403"),
    ];
    for (request, want) in &table {
        let answer = account.client.send(request).await?;
        let refused = answer.status == 403;
        assert_eq!(refused, want.ends_with(" 403"), "{want}: {}", answer.json());
    }
    let want: Vec<&str> = table.iter().map(|(_, want)| *want).collect();
    eventually(SOON, "every call is on record", async || {
        let found: Vec<String> = cluster.calls_of(&account.user).iter().map(words).collect();
        if found == want { Ok(()) } else { Err(format!("{found:#?}\ninstead of\n{want:#?}")) }
    })
    .await?;

    let rows = cluster.calls_of(&account.user);
    for row in &rows {
        assert_eq!(account.rights.allow(&account.user, &row.action()), row.status != 403, "{row:?}");
    }
    assert_eq!(account.rights.unused(&account.user, &rows), ["ClusterRole manager: watch nodes"]);
    Ok(())
}

pub(crate) async fn an_account_without_a_role_may_only_use_discovery(cluster: &Cluster) -> Outcome {
    let account = cluster.account("default", "guest", "").await?;
    let review = json!({ "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": { "resourceAttributes": { "verb": "list", "resource": "nodes" } } });
    let answer = account
        .client
        .send(&Request::post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", &review))
        .await?;
    assert_eq!((answer.status, &answer.json()["status"]["allowed"]), (201, &json!(false)));
    let answer = account.client.send(&Request::get("/api/v1/nodes")).await?;
    let said = answer.json()["message"].as_str().unwrap_or_default().to_owned();
    let start =
        r#"nodes is forbidden: User "system:serviceaccount:default:guest" cannot list resource "nodes""#;
    assert!(answer.status == 403 && said.starts_with(start), "{said}");
    assert_eq!(account.client.send(&Request::get("/apis")).await?.status, 200);
    Ok(())
}

const READER: &str = r"
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: metrics-reader}
rules:
- {nonResourceURLs: [/metrics], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: metrics-reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: metrics-reader}
subjects: [{kind: ServiceAccount, namespace: default, name: reader}]
";

pub(crate) async fn a_manager_asks_the_cluster_who_may_read_its_metrics(cluster: &Cluster) -> Outcome {
    let fixture = Fixture::new(cluster, &["one"]).await?;
    let manager = fixture.leader(&[]).await?;
    let reader = cluster.account("default", "reader", READER).await?;
    let guest = cluster.account("default", "guest", "").await?;
    let (nobody, wrong) = (String::new(), "nobody-has-this-token".to_owned());
    let table = [
        ("/healthz", &nobody, 200),
        ("/livez", &nobody, 200),
        ("/readyz", &nobody, 200),
        ("/metrics", &nobody, 403),
        ("/metrics", &wrong, 401),
        ("/metrics", &guest.token, 403),
        ("/metrics", &reader.token, 200),
        ("/configz", &reader.token, 403),
    ];
    for (path, token, want) in table {
        let mut request = Request::get(path);
        if !token.is_empty() {
            request.headers.push(("authorization".to_owned(), format!("Bearer {token}")));
        }
        let answer = manager.pages().send(&request).await?;
        assert_eq!(answer.status, want, "{path}: {}", answer.json());
    }
    fixture.close(&mut [manager]).await
}
