//! How the cloud behaves.

use std::time::Duration;

use serde::Deserialize;

/// How the cloud behaves. By default it answers at once, everything is done at once, and only its own credentials let
/// clients in.
#[derive(Clone, Debug)]
pub struct SimSettings {
    /// How long a request takes: half of it until it takes effect, half until the answer is there.
    pub latency: Duration,
    /// The part of the latency that is random, from 0 (none) to 1 (all).
    pub jitter: f64,
    /// How long things take that go on after the answer.
    pub delays: Delays,
    /// The status that new balancers end in: `active`, or `failed`.
    pub builds_end_in: String,
    /// Whether listings of balancers have `acme`. The real ones have not, as far as is known.
    pub acme_in_lists: bool,
    /// The zone of servers that are made without one. The region is what stands before its last dash.
    pub default_zone: String,
    /// Servers that are there from the beginning, called `node-1`, `node-2` and so on.
    pub instances: usize,
    /// The limits of the account.
    pub limits: Limits,
    /// How many requests are let through; all if there is none. Tokens do not count.
    pub rate: Option<Rate>,
    /// How tokens are given.
    pub tokens: TokenSettings,
    /// Lets every client id with a secret in as an API client, and every access token.
    pub open: bool,
}

impl SimSettings {
    /// The region: `gb1` of `gb1-a`.
    pub fn region(&self) -> &str {
        self.default_zone.rsplit_once('-').map_or(self.default_zone.as_str(), |(region, _)| region)
    }

    /// The domain under which the region's names are.
    pub(crate) fn domain(&self) -> String {
        format!("{}.brightbox.com", self.region())
    }

    /// The zones of the region.
    pub(crate) fn zones(&self) -> [String; 2] {
        ["a", "b"].map(|letter| format!("{}-{letter}", self.region()))
    }
}

impl Default for SimSettings {
    fn default() -> Self {
        Self {
            latency: Duration::ZERO,
            jitter: 0.0,
            delays: Delays::default(),
            builds_end_in: "active".to_owned(),
            acme_in_lists: false,
            default_zone: "gb1-a".to_owned(),
            instances: 0,
            limits: Limits::default(),
            rate: None,
            tokens: TokenSettings::default(),
            open: false,
        }
    }
}

/// How tokens are given.
#[derive(Clone, Copy, Debug)]
pub struct TokenSettings {
    /// How long an access token is good for; two hours by default.
    pub life: Duration,
    /// How long a refresh token is good for; thirty days by default.
    pub refresh_life: Duration,
    /// Gives a new refresh token with every answer to the old one, which is then worth nothing.
    pub rotate_refresh: bool,
    /// Answers with a form instead of JSON.
    pub as_forms: bool,
}

impl Default for TokenSettings {
    fn default() -> Self {
        let (hour, day) = (3_600, 24 * 3_600);
        Self {
            life: Duration::from_secs(2 * hour),
            refresh_life: Duration::from_secs(30 * day),
            rotate_refresh: false,
            as_forms: false,
        }
    }
}

/// How long things take that go on after the answer; nothing by default, but deleted things stay listed for an hour.
/// What takes a year is as good as stuck, until [`Cloud::settle`](crate::Cloud::settle) completes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delays {
    /// How long a balancer is `creating`.
    pub build: Duration,
    /// How long a balancer is `deleting`.
    pub removal: Duration,
    /// How long it takes until a Cloud IP shows that it was mapped.
    pub map: Duration,
    /// How long it takes until a Cloud IP shows that it was unmapped.
    pub unmap: Duration,
    /// How long a domain is `pending`, once its balancer is active and has a Cloud IP.
    pub acme: Duration,
    /// How long starting, stopping or deleting a server takes.
    pub boot: Duration,
    /// How long servers and balancers are shown as `deleted`.
    pub retention: Duration,
}

impl Default for Delays {
    fn default() -> Self {
        let none = Duration::ZERO;
        Self {
            build: none,
            removal: none,
            map: none,
            unmap: none,
            acme: none,
            boot: none,
            retention: Duration::from_secs(3_600),
        }
    }
}

/// Changes to the delays, in milliseconds, as the control port takes them.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct DelayOrder {
    build: Option<u64>,
    removal: Option<u64>,
    map: Option<u64>,
    unmap: Option<u64>,
    acme: Option<u64>,
    boot: Option<u64>,
    retention: Option<u64>,
    latency: Option<u64>,
}

impl DelayOrder {
    /// Carries the order out; what it does not name stays.
    pub(crate) fn apply(&self, settings: &mut SimSettings) {
        let delays = &mut settings.delays;
        let fields = [
            (&mut delays.build, self.build),
            (&mut delays.removal, self.removal),
            (&mut delays.map, self.map),
            (&mut delays.unmap, self.unmap),
            (&mut delays.acme, self.acme),
            (&mut delays.boot, self.boot),
            (&mut delays.retention, self.retention),
            (&mut settings.latency, self.latency),
        ];
        for (delay, millis) in fields {
            *delay = millis.map_or(*delay, Duration::from_millis);
        }
    }
}

/// How many resources of a kind the account may have.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the fields are called after what they limit")]
pub struct Limits {
    pub balancers: usize,
    pub cloud_ips: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { balancers: 10_000, cloud_ips: 10_000 }
    }
}

/// So many requests in each period; those above are answered with 429.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the fields say it")]
pub struct Rate {
    pub requests: u64,
    pub period: Duration,
}

/// The sizes of servers: handle, name, processors, megabytes of memory and of disk, status.
pub(crate) const SERVER_TYPES: [(&str, &str, u64, u64, u64, &str); 4] = [
    ("512mb.ssd", "512MB SSD", 1, 512, 20_480, "deprecated"),
    ("1gb.ssd", "1GB SSD", 2, 1_024, 30_720, "available"),
    ("2gb.ssd", "2GB SSD", 2, 2_048, 40_960, "available"),
    ("4gb.ssd", "4GB SSD", 4, 4_096, 81_920, "available"),
];

/// The size of servers that are made without one.
pub(crate) const USUAL_TYPE: &str = "2gb.ssd";
