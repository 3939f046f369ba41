//! Every annotation, declared once: reading, refusals and the reference page follow from this table.

#![allow(missing_docs, reason = "each key states its meaning in its own declaration")]

use std::net::IpAddr;

use cloudberth_core::{
    annotation::{By, Int, Json, JsonList, Key, Kind, OneOf, Pattern, Table, Text},
    decide::nodeset::Selector,
    lb::Impact,
    net::{parse_cidr, parse_ip},
};
use ipnet::IpNet;
use serde::Deserialize;

pub static UUID: Key<Text> = Key::new("k8s.cloudscale.ch/loadbalancer-uuid", Text)
    .recorded()
    .about("The id of the load balancer. Set it by hand only to adopt one.");

/// The version of the way in which load balancers are built.
pub static CONFIG_VERSION: Key<Text> = Key::new("k8s.cloudscale.ch/loadbalancer-config-version", Text)
    .recorded()
    .default("1")
    .about("The version of the layout. Always 1, whatever stands there.");

pub static NAME: Key<Text> = Key::new("k8s.cloudscale.ch/loadbalancer-name", Text)
    .derived("`k8s-service-` and the UID of the Service")
    .impact(Impact::None)
    .about(
        "The name of the load balancer. A change renames it. One that has the name already is not taken: adopt it by \
         its id.",
    );

pub static FLAVOR: Key<Pattern> = Key::new(
    "k8s.cloudscale.ch/loadbalancer-flavor",
    Pattern::new("the name of a flavor", |t| !t.is_empty()),
)
.default("lb-standard")
.impact(Impact::Major)
.about("The flavor. It cannot be changed: a change is refused.");

pub static ZONE: Key<Text> = Key::new("k8s.cloudscale.ch/loadbalancer-zone", Text)
    .derived("the zone of the nodes' servers")
    .recorded()
    .impact(Impact::Major)
    .about("The zone; needed where nodes are in several. It cannot be changed: a change is refused.");

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Vip {
    /// The address; picked by the cloud where there is none.
    #[serde(default)]
    pub address: Option<String>,
    #[serde(default)]
    pub subnet: Option<String>,
}

pub static VIP_ADDRESSES: Key<Json<Vec<Vip>>> = Key::new(
    "k8s.cloudscale.ch/loadbalancer-vip-addresses",
    Json::new("a JSON list such as [{\"subnet\": \"UUID\", \"address\": \"10.0.0.5\"}]"),
)
.default("[]")
.impact(Impact::Major)
.about("Private addresses in place of the public pair; the address is optional. They cannot be changed.");

/// A floating IP as a user writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Floating {
    /// Equal for texts that mean the same: the network, or the single address.
    pub network: IpNet,
    /// The address by which the API knows it.
    pub address: IpAddr,
}

impl Floating {
    /// Reads an address, or a network that is a floating IP as a whole. Host bits make it an address.
    pub fn parse(text: &str) -> Option<Self> {
        let (address, length) = text.split_once('/').map_or((text, None), |(a, l)| (a, Some(l)));
        let address = parse_ip(address)?;
        let network = match length {
            Some(_) => parse_cidr(text)?,
            None => IpNet::from(address),
        };
        let network = if network.addr() == address { network } else { IpNet::from(address) };
        Some(Self { network, address })
    }
}

pub static FLOATING_IPS: Key<JsonList<By<Floating>>> = Key::new(
    "k8s.cloudscale.ch/loadbalancer-floating-ips",
    JsonList::of(By::new("a floating IP such as 192.0.2.7/32", |text| {
        Floating::parse(text).ok_or_else(String::new)
    })),
)
.default("[]")
.impact(Impact::Minimal)
.about("Floating IPs of the project that should lead here. One that is taken off the list stays assigned.");

pub static POOL_ALGORITHM: Key<OneOf<&'static str>> = Key::new(
    "k8s.cloudscale.ch/loadbalancer-pool-algorithm",
    OneOf::exact(&[
        ("round_robin", "round_robin"),
        ("least_connections", "least_connections"),
        ("source_ip", "source_ip"),
    ]),
)
.default("round_robin")
.impact(Impact::Considerable)
.about("Which node takes the next connection. A change replaces the pools.");

/// What is spoken to members of TCP ports.
pub static POOL_PROTOCOL: Key<OneOf<&'static str>> = Key::new(
    "k8s.cloudscale.ch/loadbalancer-pool-protocol",
    OneOf::exact(&[("tcp", "tcp"), ("proxy", "proxy"), ("proxyv2", "proxyv2")]),
)
.default("tcp")
.impact(Impact::Considerable)
.about("What is spoken to nodes on TCP ports; UDP ports always speak udp. A change replaces the pools.");

/// A host name in place of addresses.
pub static FORCE_HOSTNAME: Key<Text> = Key::new("k8s.cloudscale.ch/loadbalancer-force-hostname", Text)
    .default("")
    .about("Where it is not empty the status shows this name and no addresses.");

/// How packets arrive, as the status says it.
pub static IP_MODE: Key<OneOf<&'static str>> =
    Key::new("k8s.cloudscale.ch/loadbalancer-ip-mode", OneOf::exact(&[("Proxy", "Proxy"), ("VIP", "VIP")]))
        .default("Proxy")
        .about("`ipMode` of the addresses in the status, from Kubernetes 1.30 on.");

const POSITIVE: Int = Int::between(1, i32::MAX as i64);

macro_rules! numbers {
    ($( $name:ident: $key:literal = $default:literal, $impact:ident, $about:literal; )*) => { $(
        pub static $name: Key<Int> = Key::new(concat!("k8s.cloudscale.ch/loadbalancer-", $key), POSITIVE)
            .default($default)
            .impact(Impact::$impact)
            .about($about);
    )* };
}

numbers! {
    MONITOR_DELAY: "health-monitor-delay-s" = "2", Minimal, "Seconds between two checks of a node.";
    MONITOR_TIMEOUT: "health-monitor-timeout-s" = "1", Minimal, "Seconds after which a check has failed.";
    MONITOR_UP: "health-monitor-up-threshold" = "2", Minimal, "Successful checks until a node takes traffic.";
    MONITOR_DOWN: "health-monitor-down-threshold" = "3", Minimal, "Failed checks until a node takes none.";
    TIMEOUT_CLIENT_DATA: "timeout-client-data-ms" = "50000", None, "Milliseconds for which a client may be idle.";
    TIMEOUT_MEMBER_CONNECT: "timeout-member-connect-ms" = "5000", None, "Milliseconds to connect to a node.";
    TIMEOUT_MEMBER_DATA: "timeout-member-data-ms" = "50000", None, "Milliseconds for which a node may be idle.";
}

pub static MONITOR_TYPE: Key<OneOf<&'static str>> = Key::new(
    "k8s.cloudscale.ch/loadbalancer-health-monitor-type",
    OneOf::exact(&[
        ("ping", "ping"),
        ("tcp", "tcp"),
        ("http", "http"),
        ("https", "https"),
        ("tls-hello", "tls-hello"),
        ("udp-connect", "udp-connect"),
    ]),
)
.default("tcp")
.impact(Impact::Minimal)
.about("How nodes are checked, on every port alike. With externalTrafficPolicy Local it is always http.");

/// HTTP details of checks, as a user writes them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Http {
    pub expected_codes: Vec<String>,
    pub method: String,
    pub url_path: String,
    /// `1.0` or `1.1`.
    pub version: String,
    pub host: Option<String>,
}

impl Http {
    /// Reads the details and fills the gaps. `{}` and `null` mean that there are none.
    fn read(text: &str) -> Result<Option<Self>, String> {
        if matches!(text.trim(), "null") || text == "{}" {
            return Ok(None);
        }
        let mut http = Json::<Self>::new("").read(text)?;
        let gap = |field: &mut String, default: &str| {
            if field.is_empty() {
                default.clone_into(field);
            }
        };
        gap(&mut http.method, "GET");
        gap(&mut http.url_path, "/");
        gap(&mut http.version, "1.1");
        if http.expected_codes.is_empty() {
            http.expected_codes.push("200".to_owned());
        }
        http.host = http.host.filter(|host| !host.is_empty());
        match http.version.as_str() {
            "1.0" if http.host.is_some() => Err("a host needs version 1.1".to_owned()),
            "1.0" | "1.1" => Ok(Some(http)),
            other => Err(format!("version {other:?} is neither \"1.0\" nor \"1.1\"")),
        }
    }
}

pub static MONITOR_HTTP: Key<By<Option<Http>>> = Key::new(
    "k8s.cloudscale.ch/loadbalancer-health-monitor-http",
    By::new(
        "a JSON object such as {\"url_path\": \"/healthz\", \"expected_codes\": [\"200\"]}; the other keys are \
         method, version and host",
        Http::read,
    ),
)
.default("{}")
.impact(Impact::Minimal)
.about("Details of checks of type http and https.");

pub static LISTENER_PROTOCOL: Key<OneOf<&'static str>> =
    Key::new("k8s.cloudscale.ch/loadbalancer-listener-protocol", OneOf::exact(&[("tcp", "tcp")]))
        .default("tcp")
        .about("What clients speak on TCP ports; UDP ports always speak udp.");

/// A network that may connect: as it was written, and what it means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    pub text: String,
    pub network: IpNet,
}

pub static ALLOWED_CIDRS: Key<JsonList<By<Source>>> = Key::new(
    "k8s.cloudscale.ch/loadbalancer-listener-allowed-cidrs",
    JsonList::of(By::new("a network such as 192.0.2.0/24 (192.0.2.7/32 for one address)", |text| {
        let network = parse_cidr(text).ok_or_else(String::new)?;
        Ok(Source { text: text.to_owned(), network })
    })),
)
.default("[]")
.impact(Impact::Minimal)
.about("Who may connect; an empty list is everybody.");

pub static ALLOWED_SUBNETS: Key<JsonList<Text>> =
    Key::new("k8s.cloudscale.ch/loadbalancer-listener-allowed-subnets", JsonList::of(Text))
        .default("[]")
        .impact(Impact::Considerable)
        .about("Ids of the subnets in which nodes are reached; an empty list is all of them.");

pub static NODE_SELECTOR: Key<By<Selector>> =
    Key::new("k8s.cloudscale.ch/loadbalancer-node-selector", Selector::KIND)
        .default("")
        .impact(Impact::Minimal)
        .about("Only nodes whose labels match take traffic. One that matches no node empties every pool.");

/// The load balancer that we created, and on which `spec.loadBalancerSourceRanges` is therefore carried out.
pub static CREATED: Key<Text> = Key::new("cloudberth.dev/cloudscale-created", Text).recorded().about(
    "The id of the load balancer, where cloudberth created it: there spec.loadBalancerSourceRanges is carried out.",
);

/// All of them. Values are taken as they are: an empty one is a value.
pub static TABLE: Table = Table::new(&[
    &UUID,
    &CONFIG_VERSION,
    &NAME,
    &FLAVOR,
    &ZONE,
    &VIP_ADDRESSES,
    &FLOATING_IPS,
    &POOL_ALGORITHM,
    &POOL_PROTOCOL,
    &FORCE_HOSTNAME,
    &IP_MODE,
    &MONITOR_DELAY,
    &MONITOR_TIMEOUT,
    &MONITOR_UP,
    &MONITOR_DOWN,
    &MONITOR_TYPE,
    &MONITOR_HTTP,
    &LISTENER_PROTOCOL,
    &ALLOWED_CIDRS,
    &TIMEOUT_CLIENT_DATA,
    &TIMEOUT_MEMBER_CONNECT,
    &TIMEOUT_MEMBER_DATA,
    &ALLOWED_SUBNETS,
    &NODE_SELECTOR,
    &CREATED,
])
.watching(&["k8s.cloudscale.ch/"]);
