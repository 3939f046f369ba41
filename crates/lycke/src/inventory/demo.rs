//! Inventories to begin with.

use std::fmt::Write as _;

/// With more clusters, an octet of an address would be too large.
pub const MOST_CLUSTERS: u8 = 25;
/// With more workers, an octet of an address would be too large.
pub const MOST_WORKERS: u8 = 244;

/// An inventory that is made up: clusters with one control-plane machine and some workers each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demo {
    /// How many clusters, at most [`MOST_CLUSTERS`].
    pub clusters: u8,
    /// How many workers in each, at most [`MOST_WORKERS`].
    pub workers: u8,
    /// On loopback addresses, where no virtual machine is needed.
    pub loopback: bool,
}

impl Demo {
    /// The text of the inventory file, or what is wrong with the numbers.
    pub fn inventory(self) -> Result<String, String> {
        let Self { clusters, workers, loopback } = self;
        if clusters == 0 || clusters > MOST_CLUSTERS {
            return Err(format!("{clusters} clusters: there may be 1 to {MOST_CLUSTERS}"));
        }
        if workers > MOST_WORKERS {
            return Err(format!("{workers} workers: there may be at most {MOST_WORKERS}"));
        }
        let mut text =
            String::from("version: 1\ndefaults: { region: virtualbox, zone: virtualbox }\nclusters:\n");
        for c in 1..=clusters {
            // In the first cluster of the original, nothing knows of the cloud.
            let managed = loopback || c > 1 || clusters == 1;
            let _ = writeln!(text, "  c{c}: {{ kubernetesName: kubernetes-{c}, managed: {managed} }}");
        }
        text.push_str("types:\n  vbox.vm.512mb.1cpu: { cpus: 1, memoryMiB: 512 }\n");
        text.push_str("  vbox.vm.1g.2cpu: { cpus: 2, memoryMiB: 1024 }\nmachines:\n");
        for c in 1..=clusters {
            let address = |last: u8| {
                if loopback { format!("127.0.{c}0.{last}") } else { format!("192.168.{c}0.{last}") }
            };
            let mut machine = |id: String, name: String, size: &str, last: u8| {
                let at = address(last);
                let _ = writeln!(
                    text,
                    "  - {{ id: {id}, name: {name}, cluster: c{c}, type: {size}, internal: [{at}], external: [{at}] }}"
                );
            };
            machine(format!("m-c{c}-1"), format!("master-c{c}-1"), "vbox.vm.512mb.1cpu", 10);
            for i in 1..=workers {
                machine(format!("n-c{c}-{i}"), format!("node-c{c}-{i}"), "vbox.vm.1g.2cpu", 10 + i);
            }
        }
        Ok(text)
    }
}
