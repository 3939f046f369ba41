//! The ways in which the replaced program is used.

use std::fmt;

use serde_json::{Value, json};

use super::{DOMAIN, seed};
use crate::Cloud;

/// One way to use the replaced program: what a user wrote, and what it made of that.
#[derive(Clone)]
pub struct Variant {
    /// What is special about it.
    pub case: &'static str,
    pub(super) annotations: Vec<(&'static str, &'static str)>,
    pub(super) spec: Value,
    /// The user has chosen a Cloud IP.
    pub(super) given: bool,
    pub(super) nodes: usize,
    pub(super) acme_in_lists: bool,
    /// What differs in the load balancer from what the Service says, because that program never wrote it.
    pub(super) left: fn(&mut Value),
    /// Something else that is there beside this load balancer.
    pub(super) beside: Option<fn(&Cloud, &str)>,
    pub(super) is_usual: bool,
}

impl fmt::Debug for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Variant").field("case", &self.case).finish_non_exhaustive()
    }
}

/// One without anything special.
pub fn plain(case: &'static str) -> Variant {
    Variant {
        case,
        annotations: Vec::new(),
        spec: json!({}),
        given: false,
        nodes: 3,
        acme_in_lists: false,
        left: |_| {},
        beside: None,
        is_usual: true,
    }
}

fn with(case: &'static str, annotations: &[(&'static str, &'static str)]) -> Variant {
    Variant { annotations: annotations.to_vec(), ..plain(case) }
}

fn tcp(name: &str, port: u16) -> Value {
    json!({"name": name, "port": port, "protocol": "TCP"})
}

fn both() -> Value {
    json!({"ports": [tcp("https", 443), tcp("http", 80)]})
}

impl Variant {
    /// The same with one node: there is only one order to hand it over in.
    #[must_use]
    pub fn on_one_node(self) -> Self {
        Self { nodes: 1, ..self }
    }

    /// Whether domains are listed, which the replaced program needs to see that nothing has to be written.
    #[must_use]
    pub fn with_domains_listed(self) -> Self {
        Self { acme_in_lists: true, ..self }
    }

    /// Whether it has domains, which lead to its Cloud IP only where the simulated names are asked.
    pub fn has_domains(&self) -> bool {
        self.annotations.iter().any(|(key, _)| *key == "ssl-domains")
    }

    fn left_as(self, left: fn(&mut Value)) -> Self {
        Self { left, is_usual: false, ..self }
    }

    fn beside(self, beside: fn(&Cloud, &str)) -> Self {
        Self { beside: Some(beside), is_usual: false, ..self }
    }
}

/// All of them: as many as there are kinds of settings.
pub fn variants() -> Vec<Variant> {
    [ports_and_addresses(), settings(), left_overs()].concat()
}

fn ports_and_addresses() -> Vec<Variant> {
    let three = json!({"ports": [tcp("a", 80), tcp("b", 8080), tcp("c", 9090)]});
    let blanks = [("ssl-ports", "443, 80"), ("ssl-domains", DOMAIN)];
    let star = [("ssl-ports", "*"), ("ssl-domains", DOMAIN)];
    let named = [("ssl-ports", "b,9090"), ("ssl-domains", DOMAIN)];
    let four = json!({"ports": [tcp("https", 443), tcp("a", 80), tcp("b", 8080), tcp("c", 9090)]});
    vec![
        plain("http"),
        with("tcp", &[("listener-protocol", "tcp")]),
        Variant { spec: both(), ..plain("https, acme in the detail only") },
        Variant { spec: both(), ..plain("https, acme in lists") }.with_domains_listed().on_one_node(),
        Variant { spec: json!({"externalTrafficPolicy": "Local"}), ..plain("Local") },
        Variant {
            spec: json!({"externalTrafficPolicy": "Local"}),
            ..with("Local over tcp", &[("listener-protocol", "tcp")])
        },
        Variant { given: true, ..plain("a Cloud IP that the user has chosen") },
        Variant { nodes: 5, ..plain("five nodes") },
        plain("one node").on_one_node(),
        Variant { spec: three, ..plain("three ports") },
        Variant { given: true, spec: both(), ..with("a domain", &[("ssl-domains", DOMAIN)]) },
        Variant { given: true, spec: four, ..with("more ports that speak https", &named) },
        Variant { given: true, spec: both(), ..with("BB-185 ssl-ports with blanks", &blanks) },
        Variant { given: true, spec: both(), ..with("BB-185 ssl-ports with a star", &star) },
    ]
}

fn settings() -> Vec<Variant> {
    vec![
        with("a policy", &[("policy", "round-robin")]),
        with("an idle time-out", &[("listener-idle-timeout", "60000")]),
        with("proxy protocol", &[("listener-proxy-protocol", "v2")]),
        with("a check over tcp", &[("healthcheck-protocol", "tcp")]),
        with("another path", &[("healthcheck-request", "/x")]),
        with(
            "check timing",
            &[
                ("healthcheck-timeout", "4000"),
                ("healthcheck-healthy-threshold", "4"),
                ("healthcheck-unhealthy-threshold", "5"),
            ],
        ),
    ]
}

fn left_overs() -> Vec<Variant> {
    let sample = [("healthcheck-interval", "4000"), ("idle-timeout", "60000"), ("buffer-size", "4096")];
    vec![
        with("BB-182 a policy that was edited without effect", &[("policy", "round-robin")])
            .left_as(|body| body["policy"] = json!("least-connections")),
        plain("an idle time-out that was removed without effect")
            .left_as(|body| body["listeners"][0]["timeout"] = json!(60_000)),
        with("the vendor's sample", &sample).left_as(|body| {
            body["listeners"][0]["timeout"] = json!(50_000);
            body["healthcheck"]["interval"] = json!(5_000);
        }),
        with("no path", &[("healthcheck-request", "")])
            .left_as(|body| body["healthcheck"]["request"] = json!("/healthz")),
        plain("domains of a certificate that nobody needs any more").left_as(|body| {
            body["domains"] = json!(["old.example.org"]);
        }),
        plain("BB-183 a rule by hand").beside(|cloud, _| {
            let policy = cloud.policies().into_iter().find(|policy| !policy.default).unwrap().id;
            let by_hand = json!({"firewall_policy": policy, "protocol": "tcp", "source": "any",
                "destination_port": "22", "description": "by hand"});
            seed(cloud, "firewall_rules", &by_hand);
        }),
        plain("BB-183 a failed twin").beside(|cloud, live| {
            cloud.edit(|resources| {
                let mut twin = resources.balancers[live].clone();
                "lba-twin0".clone_into(&mut twin.id);
                "failed".clone_into(&mut twin.status);
                resources.balancers.insert(twin.id.clone(), twin);
            });
        }),
    ]
}
