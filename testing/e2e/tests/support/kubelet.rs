//! What a kubelet does for a pod, done here: the files of its Secrets, its environment, and which account it has.

use std::fs;
use std::path::{Path, PathBuf};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use cloudberth_e2e::Cluster;
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
        let namespace = text(workload, "/metadata/namespace").to_owned();
        let pod = &workload["spec"]["template"]["spec"];
        let container = &pod["containers"][0];
        let under = |path: &str| -> PathBuf { root.join(path.trim_start_matches('/')) };
        let mut mounted = Vec::new();
        for mount in items(container, "volumeMounts") {
            let path = text(mount, "/mountPath");
            let volume = items(pod, "volumes").find(|volume| volume["name"] == mount["name"]);
            let secret = &volume.unwrap_or_else(|| panic!("no volume for {mount}"))["secret"];
            fs::create_dir_all(under(path)).unwrap();
            for item in items(secret, "items") {
                let (name, key) = (text(secret, "/secretName"), text(item, "/key"));
                let held = held(cluster, &namespace, name, key).await;
                let held = held.unwrap_or_else(|| panic!("the Secret {name} has no {key}: the pod waits"));
                fs::write(under(path).join(text(item, "/path")), held).unwrap();
            }
            mounted.push(format!("{path}/"));
        }
        let mut env = Vec::new();
        for variable in items(container, "env") {
            let mut value = text(variable, "/value").to_owned();
            if let Some(from) = variable.pointer("/valueFrom/secretKeyRef") {
                match held(cluster, &namespace, text(from, "/name"), text(from, "/key")).await {
                    Some(held) => value = String::from_utf8(held).unwrap(),
                    None if from["optional"] == true => continue,
                    None => panic!("no Secret has {from}: the pod waits"),
                }
            } else if mounted.iter().any(|path| value.starts_with(path)) {
                value = under(&value).display().to_string();
            }
            env.push((text(variable, "/name").to_owned(), value));
        }
        let words = |field| items(container, field).map(|word| word.as_str().unwrap().to_owned()).collect();
        Self {
            account: text(pod, "/serviceAccountName").to_owned(),
            image: text(container, "/image").to_owned(),
            command: words("command"),
            args: words("args"),
            namespace,
            env,
        }
    }
}

/// What a Secret has under a key.
async fn held(cluster: &Cluster, namespace: &str, name: &str, key: &str) -> Option<Vec<u8>> {
    let secret = cluster.get(&format!("/api/v1/namespaces/{namespace}/secrets/{name}")).await.ok()?;
    Some(STANDARD.decode(secret["data"][key].as_str()?).unwrap())
}

fn items<'v>(object: &'v Value, field: &str) -> impl Iterator<Item = &'v Value> {
    object[field].as_array().into_iter().flatten()
}

fn text<'v>(object: &'v Value, pointer: &str) -> &'v str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
