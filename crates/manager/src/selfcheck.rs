//! What is asked once at the start, so that a mistake of the installation is named before it costs somebody a night.

use std::time::Duration;

use cloudberth_core::{
    Error, NodeView, Result,
    decide::node::taints::UNINITIALISED,
    provider::Provider,
    provider_id::Reading,
    rights::{Right, Scope},
};
use cloudberth_runtime::{api_error::translate, bug::caught};
use futures_util::future::join_all;
use kube::{
    Client,
    api::{PostParams, Request},
};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(10);
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

/// A right that is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The right.
    pub right: Right,
    /// The verbs of it that are missing.
    pub verbs: Vec<&'static str>,
    /// The namespace in which it is missing; empty for the whole cluster.
    pub namespace: String,
}

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let held = Right { verbs: &[], ..self.right };
        let place = if self.namespace.is_empty() {
            String::new()
        } else {
            format!(" in namespace {}", self.namespace)
        };
        write!(
            f,
            "missing right: {}{}{place}: without it the program cannot {}; grant it in the program's role",
            self.verbs.join(", "),
            held,
            self.right.purpose
        )
    }
}

/// Those of `rights` that this client lacks, and the first error: a question without an answer proves nothing.
pub async fn missing_rights(
    client: &Client,
    rights: &[Right],
    lease_namespace: &str,
) -> (Vec<Missing>, Option<Error>) {
    let questions = rights.iter().flat_map(|right| right.verbs.iter().map(move |verb| (right, *verb)));
    let answers = join_all(questions.map(async |(right, verb)| {
        let namespace = match right.scope {
            Scope::Cluster => "",
            Scope::LeaseNamespace => lease_namespace,
            Scope::KubeSystem => "kube-system",
        };
        (right, verb, namespace, allowed(client, right, verb, namespace).await)
    }));
    let mut missing: Vec<Missing> = Vec::new();
    let mut trouble = None;
    for (right, verb, namespace, answer) in answers.await {
        match answer {
            Ok(true) => {}
            Ok(false) => match missing.iter_mut().find(|known| known.right == *right) {
                Some(known) => known.verbs.push(verb),
                None => missing.push(Missing {
                    right: *right,
                    verbs: vec![verb],
                    namespace: namespace.to_owned(),
                }),
            },
            Err(why) => trouble = trouble.or(Some(why)),
        }
    }
    (missing, trouble)
}

async fn allowed(client: &Client, right: &Right, verb: &str, namespace: &str) -> Result<bool> {
    let (resource, subresource) = right.resource.split_once('/').unwrap_or((right.resource, ""));
    let attributes = json!({
        "namespace": namespace, "verb": verb, "group": right.group,
        "resource": resource, "subresource": subresource, "name": right.name,
    });
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    });
    let body = serde_json::to_vec(&review).map_err(|why| Error::permanent(why.to_string()))?;
    let request = Request::new(REVIEWS)
        .create(&PostParams::default(), body)
        .map_err(|why| Error::permanent(why.to_string()))?;
    let answer = tokio::time::timeout(PATIENCE, client.request::<Value>(request)).await;
    let answer = answer.map_err(|_| Error::temporary("the Kubernetes API did not answer in time"))?;
    let answer = answer.map_err(|why| translate(&why))?;
    Ok(answer.pointer("/status/allowed").and_then(Value::as_bool).unwrap_or(false))
}

/// What is odd about the nodes that are there at the start, one sentence for each kind of oddity.
pub fn odd_nodes<'a>(nodes: impl IntoIterator<Item = &'a NodeView>, clouds: &[&dyn Provider]) -> Vec<String> {
    let (mut never, mut foreign) = (Vec::new(), Vec::new());
    for node in nodes {
        // Whose an id is on which its provider panics cannot be told; it is at least not certain to be foreign.
        let foreign_to =
            |cloud: &&dyn Provider, id: &str| caught(|| cloud.read_id(id)) == Ok(Reading::Foreign);
        let reads = |id: &String| !clouds.iter().all(|cloud| foreign_to(cloud, id));
        match &node.provider_id {
            Some(id) if !reads(id) => foreign.push(format!("{} ({id})", node.name)),
            None if !node.has_taint(UNINITIALISED) => never.push(node.name.clone()),
            _ => {}
        }
    }
    let mut out = Vec::new();
    if !never.is_empty() {
        out.push(format!(
            "these nodes joined without --cloud-provider=external on their kubelets, so nobody initialises them: {}; set \
             the flag and let them join anew, or set spec.providerID",
            few(&never)
        ));
    }
    if !foreign.is_empty() {
        out.push(format!(
            "these nodes carry the provider id of another program and are left alone: {}",
            few(&foreign)
        ));
    }
    out
}

/// At most ten, and how many more.
fn few(names: &[String]) -> String {
    let more = names.len().saturating_sub(10);
    let shown: Vec<_> = names.iter().take(10).map(String::as_str).collect();
    if more == 0 { shown.join(", ") } else { format!("{} and {more} more", shown.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rights::RIGHTS;
    use embedded_kube::KubeApi;
    use jiff::Timestamp;
    use sim_kit::Surroundings;
    use std::sync::Arc;

    fn cluster(forbidden: &'static [(&'static str, &'static str)]) -> Client {
        let api = KubeApi::new(Surroundings::new(1, || Timestamp::UNIX_EPOCH));
        let policy = move |_: &_, action: &embedded_kube::Action| {
            let is = |(verb, resource): &&(&str, &str)| *verb == action.verb && *resource == action.resource;
            forbidden.iter().find(is).map(|_| "no".to_owned())
        };
        api.set_policy(Some(Arc::new(policy)));
        Client::new(api.service(), "default")
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_missing_is_named_with_what_it_is_for() {
        let (missing, trouble) = missing_rights(&cluster(&[]), &RIGHTS, "kube-system").await;
        assert_eq!((missing, trouble), (vec![], None));

        let (missing, trouble) = missing_rights(
            &cluster(&[("delete", "nodes"), ("update", "leases"), ("get", "leases")]),
            &RIGHTS,
            "system",
        )
        .await;
        assert_eq!(trouble, None);
        let texts: Vec<_> = missing.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "missing right: delete nodes: without it the program cannot label, untaint and remove nodes; \
                 grant it in the program's role",
                "missing right: get, update leases.coordination.k8s.io in namespace system: without it the program \
                 cannot be the only one who writes; grant it in the program's role",
            ]
        );
    }

    struct Cloud;

    impl Provider for Cloud {
        fn name(&self) -> &'static str {
            "alpha"
        }

        fn scheme(&self) -> &'static str {
            "alpha"
        }
    }

    #[test]
    fn odd_nodes_are_named_once_for_each_kind() {
        let node = |name: &str, id: Option<&str>, taint: bool| {
            let taints =
                if taint { json!([{"key": UNINITIALISED, "effect": "NoSchedule"}]) } else { json!([]) };
            let body = json!({"metadata": {"name": name}, "spec": {"providerID": id, "taints": taints}});
            NodeView::from_json(&body).unwrap()
        };
        let table = [
            ("ours", node("a", Some("alpha://1"), false), None),
            ("waits for us", node("a", None, true), None),
            ("never waited", node("a", None, false), Some("--cloud-provider=external")),
            ("another program's", node("a", Some("k3s://a"), false), Some("a (k3s://a)")),
        ];
        for (case, node, want) in table {
            let said = odd_nodes([&node], &[&Cloud]);
            assert_eq!(said.len(), usize::from(want.is_some()), "{case}: {said:?}");
            assert!(want.is_none_or(|want| said.concat().contains(want)), "{case}: {said:?}");
        }
        let many: Vec<_> = (0..14).map(|i| node(&format!("n{i}"), None, false)).collect();
        let said = odd_nodes(&many, &[&Cloud]).concat();
        assert!(said.contains("n9 and 4 more") && !said.contains("n10"), "{said}");
    }
}
