//! The kubelets, played: what they would tell the Kubernetes API about their instances.

use std::time::Duration;

use cloudberth_core::decide::node::taints::UNINITIALISED;
use jiff::Timestamp;
use kube::{
    Api, Client,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use super::objects::Kind;

/// The mark of nodes that a world has registered, so that it removes no others.
pub(crate) const MARK: &str = "cloudberth.dev/sandbox";

/// How often a kubelet says that it is alive. A real control plane gives a node up after 40 seconds of silence.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(10);

const NOT_READY: &str = "node.kubernetes.io/not-ready";
/// The manager writes to a new node two or three times.
const CONFLICTS: usize = 10;

/// Plays kubelets with this client.
#[derive(Clone)]
pub(crate) struct Kubelets(Client);

impl Kubelets {
    pub(crate) const fn new(client: Client) -> Self {
        Self(client)
    }

    fn nodes(&self) -> Api<DynamicObject> {
        Api::all_with(self.0.clone(), &Kind::Node.resource())
    }

    /// A kubelet registers its node, which waits for its cloud.
    pub(crate) async fn register(&self, name: &str, now: Timestamp) -> kube::Result<()> {
        let taint = json!({"key": UNINITIALISED, "value": "true", "effect": "NoSchedule"});
        let mut node = DynamicObject::new(name, &Kind::Node.resource());
        node.metadata.labels = Some(
            [("kubernetes.io/hostname", name), (MARK, "true")].map(|(k, v)| (k.into(), v.into())).into(),
        );
        node.data = json!({"spec": {"taints": [taint]}});
        self.nodes().create(&PostParams::default(), &node).await?;
        self.report(name, true, now).await
    }

    /// A kubelet reports, or has fallen silent and the control plane says so in its place.
    pub(crate) async fn report(&self, name: &str, ready: bool, now: Timestamp) -> kube::Result<()> {
        let body = Patch::Strategic(status(ready, now));
        let node = self.nodes().patch_status(name, &PatchParams::default(), &body).await?;
        if ready { self.welcome(node).await } else { Ok(()) }
    }

    /// Every node is registered with a taint that says that it is not ready. The control plane takes it off when it is;
    /// where there is none, that is played too.
    async fn welcome(&self, mut node: DynamicObject) -> kube::Result<()> {
        let name = node.metadata.name.clone().unwrap_or_default();
        for _ in 0..CONFLICTS {
            let taints = node.data.pointer_mut("/spec/taints").and_then(Value::as_array_mut);
            let Some(taints) = taints else { return Ok(()) };
            let before = taints.len();
            taints.retain(|taint| taint.get("key").and_then(Value::as_str) != Some(NOT_READY));
            if taints.len() == before {
                return Ok(());
            }
            // Somebody else may work on the taints at the same time.
            match self.nodes().replace(&name, &PostParams::default(), &node).await {
                Err(kube::Error::Api(status)) if status.code == 409 => node = self.nodes().get(&name).await?,
                other => return other.map(|_| ()),
            }
        }
        Ok(())
    }

    /// Removes a node, as somebody would who gives up the cluster.
    pub(crate) async fn remove(&self, name: &str) -> kube::Result<()> {
        self.nodes().delete(name, &DeleteParams::default()).await?;
        Ok(())
    }
}

fn status(ready: bool, now: Timestamp) -> Value {
    let (status, reason, message) = if ready {
        ("True", "KubeletReady", "the sandbox plays this kubelet")
    } else {
        ("Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")
    };
    let condition = json!({
        "type": "Ready", "status": status, "reason": reason, "message": message,
        "lastHeartbeatTime": now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
    });
    json!({"status": {"conditions": [condition], "nodeInfo": info()}})
}

/// Every field is required by the API; those that nobody plays are empty.
fn info() -> Value {
    json!({
        "kubeletVersion": concat!("v", env!("CARGO_PKG_VERSION"), "-sandbox"), "operatingSystem": "linux",
        "architecture": "", "bootID": "", "containerRuntimeVersion": "", "kernelVersion": "", "kubeProxyVersion": "",
        "machineID": "", "osImage": "", "systemUUID": "",
    })
}
