//! How the cloud behaves.

use std::time::Duration;

/// How the cloud behaves. By default it answers at once and is as strict as the real one.
#[derive(Clone, Debug)]
pub struct SimSettings {
    /// How long a request takes: half of it until it takes effect, half until the answer is there. Changes to one
    /// balancer and what belongs to it wait for each other, so that several at once take several times as long.
    pub latency: Duration,
    /// The part of the latency that is random, from 0 (none) to 1 (all).
    pub jitter: f64,
    /// How long a balancer is `changing` before it is `running`.
    pub build: Duration,
    /// How long a server is `changing` when it is made, started, stopped or rebooted.
    pub boot: Duration,
    /// How long a balancer is `changing` after something below it was changed. The real one does not show it.
    pub unrest: Duration,
    /// Refuses to delete a balancer that is not built yet.
    pub refuse_early_delete: bool,
    /// Puts the text of every field's error in a list.
    pub errors_in_lists: bool,
    /// The zone of resources that are created without one.
    pub default_zone: String,
    /// Servers that are there from the beginning, called `node-1`, `node-2` and so on.
    pub instances: usize,
    /// The limits of the project.
    pub limits: Limits,
}

impl Default for SimSettings {
    fn default() -> Self {
        Self {
            latency: Duration::ZERO,
            jitter: 0.0,
            build: Duration::ZERO,
            boot: Duration::ZERO,
            unrest: Duration::ZERO,
            refuse_early_delete: false,
            errors_in_lists: false,
            default_zone: "rma1".to_owned(),
            instances: 0,
            limits: Limits::default(),
        }
    }
}

/// How many resources of each kind a project may have.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the fields are called after what they limit")]
pub struct Limits {
    pub servers: usize,
    pub balancers: usize,
    pub floating_ips: usize,
    /// Of each pool.
    pub members: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { servers: usize::MAX, balancers: usize::MAX, floating_ips: usize::MAX, members: usize::MAX }
    }
}

/// The zones, each with its region.
pub(crate) const ZONES: [(&str, &str); 2] = [("rma1", "rma"), ("lpg1", "lpg")];

pub(crate) fn region_of(zone: &str) -> Option<&'static str> {
    ZONES.iter().find(|(slug, _)| *slug == zone).map(|(_, region)| *region)
}

/// The sizes of servers: slug, processors, gigabytes.
pub(crate) const FLAVORS: [(&str, i64, i64); 6] = [
    ("flex-4-1", 1, 4),
    ("flex-4-2", 2, 4),
    ("flex-4-4", 4, 4),
    ("flex-8-2", 2, 8),
    ("flex-16-4", 4, 16),
    ("plus-16-4", 4, 16),
];

/// The one size of load balancers.
pub(crate) const BALANCER_FLAVOR: &str = "lb-standard";
