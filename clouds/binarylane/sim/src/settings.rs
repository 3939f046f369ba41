//! How the cloud behaves.

use std::time::Duration;

use crate::switches::Switches;

/// How the cloud behaves. By default it answers at once and builds a load balancer in two seconds.
#[derive(Clone, Debug)]
pub struct SimSettings {
    /// How long a request takes: half of it until it takes effect, half until the answer is there.
    pub latency: Duration,
    /// The part of the latency that is random, from 0 (none) to 1 (all).
    pub jitter: f64,
    /// How long a balancer is `new` before it is `active`.
    pub build: Duration,
    /// How long a server takes to be made, switched on or off, and how long other server actions take.
    pub boot: Duration,
    /// The region of servers that are there from the beginning.
    pub default_region: String,
    /// Servers that are there from the beginning, called `node-1`, `node-2` and so on.
    pub instances: usize,
    /// The version that `X-Spec-Version` names. From 0.35 on there are more fields in answers, and from 0.40 on
    /// load balancers can be filtered by name.
    pub api_version: (u16, u16, u16),
    /// The limits of the account.
    pub limits: Limits,
    /// More requests are answered with 429; the real API is not known to do that.
    pub rate_limit: Option<RateLimit>,
    /// What is not known about the real API, and what it was seen to do only sometimes.
    pub switches: Switches,
}

impl Default for SimSettings {
    fn default() -> Self {
        Self {
            latency: Duration::ZERO,
            jitter: 0.0,
            build: Duration::from_secs(2),
            boot: Duration::ZERO,
            default_region: "bne".to_owned(),
            instances: 0,
            api_version: (0, 34, 0),
            limits: Limits::default(),
            rate_limit: None,
            switches: Switches::default(),
        }
    }
}

impl SimSettings {
    /// Whether the API is newer than the one that the rest is modelled on.
    pub(crate) const fn is_newer(&self) -> bool {
        let (major, minor, _) = self.api_version;
        major > 0 || minor > 34
    }

    /// Whether load balancers can be filtered by name, and `per_page=0` asks for the count only.
    pub(crate) const fn counts_and_filters(&self) -> bool {
        let (major, minor, _) = self.api_version;
        major > 0 || minor >= 40
    }

    pub(crate) fn version(&self) -> String {
        let (major, minor, patch) = self.api_version;
        format!("{major}.{minor}.{patch}")
    }
}

/// How many resources of each kind an account may have.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the fields are called after what they limit")]
pub struct Limits {
    pub servers: usize,
    pub balancers: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { servers: usize::MAX, balancers: usize::MAX }
    }
}

/// How many requests are answered within how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// So many requests …
    pub requests: usize,
    /// … within so long.
    pub within: Duration,
}

/// The regions: slug and name.
pub const REGIONS: [(&str, &str); 6] = [
    ("bne", "Brisbane"),
    ("syd", "Sydney"),
    ("mel", "Melbourne"),
    ("per", "Perth"),
    ("adl", "Adelaide"),
    ("sin", "Singapore"),
];

/// The sizes of servers: slug, processors, megabytes, gigabytes of disk.
pub(crate) const SIZES: [(&str, i64, i64, i64); 4] = [
    ("std-min", 1, 1024, 20),
    ("std-1vcpu", 1, 2048, 40),
    ("std-2vcpu", 2, 4096, 60),
    ("std-4vcpu", 4, 8192, 100),
];

/// The images: id and slug.
pub(crate) const IMAGES: [(i64, &str); 2] = [(77, "ubuntu-24.04"), (81, "debian-13")];

pub(crate) fn is_region(slug: &str) -> bool {
    REGIONS.iter().any(|(known, _)| *known == slug)
}
