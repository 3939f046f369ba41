//! What people do in a world.

use std::{sync::PoisonError, time::Duration};

use cloudberth_core::{ObjectKey, view::ServiceType};
use kube::{
    Api,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use super::{
    Breakage, Command, World,
    kubelets::MARK,
    managers::name_of,
    objects::{Kind, text},
    visitors::MOST_PER_SECOND,
};

/// Whoever has not renewed a Lease for longer than this leads no more.
const LEASE: Duration = Duration::from_secs(16);
const LOOK: Duration = Duration::from_millis(200);

/// What keeps a Service until its load balancer is gone.
const FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";

impl World {
    pub(super) async fn act(&self, command: Command) -> Result<String, String> {
        let done = match command {
            Command::AddInstance => {
                let name = self.add_instance().await?;
                return Ok(format!("instance {name} has booted, and its kubelet has registered node {name}"));
            }
            Command::StopInstance { name } => {
                self.cloud.set_running(&name, false).await?;
                self.fall_silent(&name).await?;
                format!("instance {name} is switched off; its kubelet is silent")
            }
            Command::StartInstance { name } => {
                self.cloud.set_running(&name, true).await?;
                self.kubelets.report(&name, true, self.clock.wall()).await.map_err(|why| why.to_string())?;
                format!("instance {name} is switched on; its kubelet reports again")
            }
            Command::DestroyInstance { name } => {
                self.cloud.destroy(&name).await?;
                self.fall_silent(&name).await?;
                format!("instance {name} is destroyed; its kubelet is silent")
            }
            Command::CreateService { yaml } => self.create_service(&yaml).await?,
            Command::DeleteService { namespace, name } => {
                let services = self.services(&namespace);
                services.delete(&name, &DeleteParams::default()).await.map_err(|why| words(&why))?;
                format!("service {namespace}/{name} is to be deleted")
            }
            Command::BreakCloud { how } => {
                self.around.wire.set(Some(how));
                format!("the cloud is broken: {}", how.in_words())
            }
            Command::MendCloud => {
                let was = self.around.wire.breakage().map(Breakage::in_words);
                self.around.wire.set(None);
                was.map_or_else(|| "the cloud was well".to_owned(), |_| "the cloud is well again".to_owned())
            }
            Command::KillLeader => self.kill_leader()?,
            Command::Traffic { per_second } if !self.has_traffic() => {
                let cloud = self.cloud.name();
                return Err(format!(
                    "{per_second} requests per second: {cloud} is simulated, so nothing can be sent through its load balancers"
                ));
            }
            Command::Traffic { per_second } if per_second > MOST_PER_SECOND => {
                return Err(format!(
                    "{per_second} requests per second are too many; at most {MOST_PER_SECOND}"
                ));
            }
            Command::Traffic { per_second } => {
                self.visitors.set_rate(per_second);
                format!("{per_second} requests per second go through each load balancer")
            }
        };
        self.journal.deed(done.clone());
        Ok(done)
    }

    /// An instance boots, and its kubelet registers a node. Returns the name of the node.
    pub(super) async fn add_instance(&self) -> Result<String, String> {
        let number = {
            let mut added = self.added.lock().unwrap_or_else(PoisonError::into_inner);
            *added += 1;
            *added
        };
        let name = self.cloud.add(&format!("node-{number}")).await?;
        let registered = self.kubelets.register(&name, self.clock.wall()).await;
        if let Err(why) = registered {
            self.cloud.destroy(&name).await?;
            return Err(format!("node {name} cannot be registered: {}", words(&why)));
        }
        self.journal.deed(format!("instance {name} has booted, and its kubelet has registered a node"));
        Ok(name)
    }

    /// A node that is gone already needs no kubelet.
    async fn fall_silent(&self, name: &str) -> Result<(), String> {
        match self.kubelets.report(name, false, self.clock.wall()).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            other => other.map_err(|why| words(&why)),
        }
    }

    fn services(&self, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.people.clone(), namespace, &Kind::Service.resource())
    }

    async fn create_service(&self, yaml: &str) -> Result<String, String> {
        let object: Value = serde_saphyr::from_str(yaml).map_err(|why| format!("this is not YAML: {why}"))?;
        if text(&object, "/kind") != "Service" || text(&object, "/apiVersion") != "v1" {
            return Err("this is not a Service: it needs `apiVersion: v1` and `kind: Service`".to_owned());
        }
        let namespace = Some(text(&object, "/metadata/namespace")).filter(|name| !name.is_empty());
        let namespace = namespace.unwrap_or("default").to_owned();
        let service: DynamicObject =
            serde_json::from_value(object).map_err(|why| format!("this is not a Service: {why}"))?;
        let made = self.services(&namespace).create(&PostParams::default(), &service).await;
        let made = made.map_err(|why| words(&why))?;
        Ok(format!("service {namespace}/{} is created", made.metadata.name.unwrap_or_default()))
    }

    fn kill_leader(&self) -> Result<String, String> {
        let leader = self.objects.leader().ok_or("there is no leader at this moment")?;
        if !self.managers.kill(&leader) {
            return Err(format!("{} leads, which is not one of this sandbox", name_of(&leader)));
        }
        let next = self.managers.start()?;
        let leader = name_of(&leader);
        Ok(format!("{leader} is dead, and {next} takes its place; somebody leads when the Lease has run out"))
    }

    /// Whether the Lease is renewed: its holder may have been killed.
    async fn somebody_leads(&self) -> Option<String> {
        let before = self.objects.lease()?;
        tokio::time::timeout(LEASE, async {
            while self.objects.lease().as_ref() == Some(&before) {
                tokio::time::sleep(LOOK).await;
            }
        })
        .await
        .ok()?;
        self.objects.leader()
    }

    /// A cluster of somebody else is only played in if nothing of theirs can be touched. What a sandbox left there that was
    /// killed is removed.
    pub(super) async fn enter_foreign_cluster(&self) -> Result<(), String> {
        if let Some(leader) = self.somebody_leads().await {
            return Err(format!(
                "another cloud controller manager, {leader}, leads in this cluster; stop it first"
            ));
        }
        let services = self.objects.services();
        let theirs = services.iter().find(|service| service.class.is_none());
        if let Some(service) = theirs {
            return Err(format!(
                "service {}/{} of type LoadBalancer is there already, and the sandbox would take it over; use a cluster \
                 without any",
                service.namespace, service.name
            ));
        }
        let nodes = self.objects.nodes();
        let theirs = nodes.iter().find(|node| node.provider_id.is_none() && node.labels.get(MARK).is_none());
        if let Some(node) = theirs {
            return Err(format!(
                "node {} has no provider id, so the sandbox could take it for one of its own; use a cluster whose nodes \
                 have one, or that has no nodes",
                node.name
            ));
        }
        for node in nodes.iter().filter(|node| node.labels.get(MARK).is_some()) {
            self.kubelets.remove(&node.name).await.map_err(|why| words(&why))?;
        }
        Ok(())
    }

    /// Takes back what this world wrote to a cluster of somebody else. What cannot be taken back now is left: the cluster
    /// may be gone.
    pub(super) async fn leave(&self) {
        for node in self.objects.nodes().iter().filter(|node| node.labels.get(MARK).is_some()) {
            let _ = self.kubelets.remove(&node.name).await;
        }
        let params = PatchParams::default();
        for service in self.objects.services() {
            if service.class.is_some() || !service.finalizers.iter().any(|one| one == FINALIZER) {
                continue;
            }
            let ours = service
                .annotations
                .keys()
                .filter(|name| name.contains("cloudberth.dev/") || name.contains("cloudlycke.io/"));
            let annotations: serde_json::Map<_, _> = ours.map(|name| (name.clone(), Value::Null)).collect();
            let finalizers: Vec<_> = service.finalizers.iter().filter(|one| *one != FINALIZER).collect();
            let services = self.services(&service.namespace);
            let status = Patch::Merge(json!({"status": {"loadBalancer": null}}));
            let _ = services.patch_status(&service.name, &params, &status).await;
            let body = json!({"metadata": {"finalizers": finalizers, "annotations": annotations}});
            let _ = services.patch(&service.name, &params, &Patch::Merge(body)).await;
        }
        let leases = Api::<DynamicObject>::namespaced_with(
            self.people.clone(),
            "kube-system",
            &Kind::Lease.resource(),
        );
        let _ = leases.delete("cloud-controller-manager", &DeleteParams::default()).await;
    }

    /// Whether there is a Service of type `LoadBalancer` with this name.
    pub fn has_balanced_service(&self, namespace: &str, name: &str) -> bool {
        let service = self.objects.service(&ObjectKey::new(namespace, name));
        service.is_some_and(|service| service.service_type == ServiceType::LoadBalancer)
    }
}

/// What the API server said, without the code around it.
fn words(why: &kube::Error) -> String {
    match why {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}
