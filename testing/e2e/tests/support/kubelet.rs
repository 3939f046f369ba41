//! What a kubelet does for a pod, done here: the files of its Secrets, its environment, and which account it has.

use std::path::Path;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use cloudberth_e2e::{Cluster, Container};
use serde_json::Value;

/// What the pods of a workload run.
#[derive(Debug)]
pub(crate) struct Pod {
    pub(crate) namespace: String,
    pub(crate) account: String,
    pub(crate) image: String,
    pub(crate) command: Vec<String>,
    pub(crate) args: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
}

impl Pod {
    /// Reads a workload as it is on the server, with its Secrets. Files go below `root` in place of `/`.
    pub(crate) async fn of(cluster: &Cluster, workload: &Value, root: &Path) -> Self {
        let namespace = workload["metadata"]["namespace"].as_str().unwrap();
        let pod = &workload["spec"]["template"]["spec"];
        let container = Container::of(workload).unwrap();
        let mut held = Vec::new();
        for (variable, secret, key) in container.secrets() {
            let path = format!("/api/v1/namespaces/{namespace}/secrets/{secret}");
            let secret = cluster.get(&path).await.unwrap_or_default();
            if let Some(value) = secret["data"][key].as_str() {
                let value = String::from_utf8(STANDARD.decode(value).unwrap()).unwrap();
                held.push((variable.to_owned(), value));
            }
        }
        let env = container.env_under(root, &held);
        Self {
            namespace: namespace.to_owned(),
            account: pod["serviceAccountName"].as_str().unwrap_or_default().to_owned(),
            image: pod["containers"][0]["image"].as_str().unwrap().to_owned(),
            env: env.unwrap_or_else(|why| panic!("the pod waits: {why}")),
            command: container.command,
            args: container.args,
        }
    }
}
