//! Whether the route controller runs.

use crate::{error::Result, route::ClusterCidrs};

/// Whether it runs, and for what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// It was switched off: worth a line in the log.
    SwitchedOff,
    /// The cloud has no routes: worth a warning, because the flag asks for them.
    NotOffered,
    /// It runs for these networks.
    Run(ClusterCidrs),
}

/// Decides from `--configure-cloud-routes`, what the cloud offers and `--cluster-cidr`, in this order. The networks
/// are looked at only when they are needed; then a bad value is an error that ends the program.
pub fn start(configure_cloud_routes: bool, offered: bool, cluster_cidr: &str) -> Result<Start> {
    if !configure_cloud_routes {
        return Ok(Start::SwitchedOff);
    }
    if !offered {
        return Ok(Start::NotOffered);
    }
    ClusterCidrs::parse(cluster_cidr).map(Start::Run)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_networks_matter_only_if_routes_are_wanted_and_offered() {
        const GOOD: &str = "10.244.0.0/16,fd00::/48";
        let run = || Some(Start::Run(ClusterCidrs::parse(GOOD).unwrap()));
        let table = [
            ("FW-306 switched off", false, true, GOOD, Some(Start::SwitchedOff)),
            ("FW-306 switched off and not offered", false, false, "", Some(Start::SwitchedOff)),
            ("FW-306 switched off, bad networks", false, true, "", Some(Start::SwitchedOff)),
            ("FW-306 not offered", true, false, GOOD, Some(Start::NotOffered)),
            ("FW-306 not offered, bad networks", true, false, "x", Some(Start::NotOffered)),
            ("FW-307 empty", true, true, "", None),
            ("FW-307 malformed", true, true, "10.244.0.0/33", None),
            ("FW-308 two of one family", true, true, "10.244.0.0/16,10.245.0.0/16", None),
            ("FW-309 one of each family", true, true, GOOD, run()),
        ];
        for (case, configure, offered, cidrs, want) in table {
            assert_eq!(start(configure, offered, cidrs).ok(), want, "{case}");
        }
    }
}
