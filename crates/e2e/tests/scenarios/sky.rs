//! The cloud behind a scenario.

use std::fs;

use cloudberth_e2e::World;

use crate::Fallible;

/// A cloud, and how a manager is told of it.
pub(crate) struct Sky {
    machines: Vec<String>,
    config: String,
}

impl Sky {
    /// With running machines of these names.
    pub(crate) fn over(world: &World, machines: &[&str]) -> Fallible<Self> {
        let machines: Vec<String> = machines.iter().map(|name| (*name).to_owned()).collect();
        let file = world.dir().join("cloud.json");
        fs::write(&file, serde_json::json!({ "machines": machines }).to_string())?;
        Ok(Self { machines, config: file.display().to_string() })
    }

    /// The manifests that come with this cloud.
    pub(crate) const MANIFESTS: &str = "cloudscale";

    pub(crate) fn flags(&self) -> Vec<String> {
        let flags = ["--cloud-provider=fake".to_owned(), format!("--cloud-config={}", self.config)];
        flags.into_iter().chain(["--configure-cloud-routes=false".to_owned()]).collect()
    }

    pub(crate) fn env(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// The provider id of a machine.
    pub(crate) fn provider_id(&self, machine: &str) -> String {
        let place = self.machines.iter().position(|name| name == machine).expect("a machine of this sky");
        format!("fake://m-{:04}", place + 1)
    }

    /// The provider id of a machine that was never there.
    pub(crate) fn nowhere(&self) -> String {
        "fake://m-9999".to_owned()
    }

    /// What the cloud says about every machine, as labels.
    pub(crate) fn labels(&self) -> [(&'static str, &'static str); 3] {
        [
            ("node.kubernetes.io/instance-type", "small"),
            ("topology.kubernetes.io/region", "north"),
            ("topology.kubernetes.io/zone", "north-1"),
        ]
    }
}
