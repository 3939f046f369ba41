//! The world of the story: who is who in it, and how its acts are carried out.

use std::{
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use cloudberth::world::{Breakage, Command, Kind, Watched as _, World, free_port, mistake};
use kube::{
    Api,
    api::{DynamicObject, Patch, PatchParams},
};
use serde_json::json;

use super::story::{Act, Number};

/// Who is who.
#[derive(Debug)]
pub(super) struct Scene {
    /// The names of nodes, in the order in which they joined.
    nodes: Vec<String>,
    /// The ports of the Service: the first one, and one that comes later.
    pub(super) ports: [u16; 2],
    /// An annotation of this cloud, and a value with a mistake in it.
    mistake: (&'static str, &'static str),
    /// Where requests were sent.
    at: Option<SocketAddr>,
    /// The newest visit when the last act was done.
    pub(super) mark: u64,
}

impl Scene {
    pub(super) fn new(world: &World) -> Self {
        let mistake = mistake(&world.snapshot().provider);
        let ports = if world.has_traffic() { [free_port(8080), free_port(8443)] } else { [80, 443] };
        Self { nodes: Vec::new(), ports, mistake, at: None, mark: 0 }
    }

    /// The name of a node; before it has joined, what it will be called in most clouds.
    pub(super) fn node(&self, number: Number) -> String {
        let known = number.checked_sub(1).and_then(|at| self.nodes.get(at));
        known.cloned().unwrap_or_else(|| format!("node-{number}"))
    }

    pub(super) fn names(&self, numbers: &[Number]) -> Vec<String> {
        numbers.iter().map(|number| self.node(*number)).collect()
    }

    pub(super) fn url(&self) -> Option<String> {
        self.at.map(|at| format!("http://{at}/"))
    }

    /// Nothing listens any more where requests were sent.
    pub(super) fn refuses(&self) -> bool {
        self.at.is_none_or(|at| TcpStream::connect_timeout(&at, Duration::from_millis(200)).is_err())
    }

    pub(super) async fn act(&mut self, act: Act, world: &World) -> Result<(), String> {
        match act {
            Act::StartManager => {
                world.start_manager()?;
            }
            Act::Boot(count) => {
                for _ in 0..count {
                    let before: Vec<_> = self.nodes.clone();
                    world.run(Command::AddInstance).await?;
                    let names = world.instance_names();
                    self.nodes.extend(names.into_iter().filter(|name| !before.contains(name)));
                }
            }
            Act::Stop(number) => drop(world.run(Command::StopInstance { name: self.node(number) }).await?),
            Act::Destroy(number) => {
                world.run(Command::DestroyInstance { name: self.node(number) }).await?;
            }
            Act::Serve(name) => self.serve(name, None, world).await?,
            Act::ServeWithMistake(name) => self.serve(name, Some(self.mistake), world).await?,
            Act::BreakCloudAndOpenPort(name) => {
                world.run(Command::BreakCloud { how: Breakage::Errors }).await?;
                let [first, second] = self.ports;
                let body = json!({"spec": {"ports": [port("first", first), port("second", second)]}});
                let services = Api::<DynamicObject>::namespaced_with(
                    world.client().clone(),
                    "default",
                    &Kind::Service.resource(),
                );
                let patched = services.patch(name, &PatchParams::default(), &Patch::Merge(body)).await;
                patched.map_err(|why| why.to_string())?;
            }
            Act::MendCloud => drop(world.run(Command::MendCloud).await?),
            Act::Delete(names) => {
                let url = world.snapshot().balancers.into_iter().find_map(|one| one.url);
                self.at =
                    url.and_then(|url| url.trim_start_matches("http://").trim_end_matches('/').parse().ok());
                for name in names {
                    let (namespace, name) = ("default".to_owned(), (*name).to_owned());
                    world.run(Command::DeleteService { namespace, name }).await?;
                }
            }
            Act::StopManager => world.stop_managers().await,
        }
        self.mark = world.newest_visit();
        Ok(())
    }

    async fn serve(&self, name: &str, mistake: Option<(&str, &str)>, world: &World) -> Result<(), String> {
        let annotations: serde_json::Map<_, _> =
            mistake.into_iter().map(|(key, value)| (key.to_owned(), json!(value))).collect();
        let service = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "annotations": annotations},
            "spec": {"type": "LoadBalancer", "selector": {"app": name}, "ports": [port("first", self.ports[0])]},
        });
        world.run(Command::CreateService { yaml: service.to_string() }).await.map(|_| ())
    }
}

fn port(name: &str, port: u16) -> serde_json::Value {
    json!({"name": name, "port": port, "protocol": "TCP"})
}
