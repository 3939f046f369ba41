//! What a request asks for.

use std::borrow::Cow;

use http::Method;
use percent_encoding::percent_decode_str;

use crate::{plane::BalancerKey, refusal::Refusal};

/// What a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Route {
    Health,
    Ready,
    Version,
    Metrics,
    Clusters,
    ListMachines,
    AddMachine,
    GetMachine(String),
    PatchMachine(String),
    DeleteMachine(String),
    ListBalancers,
    GetBalancer(BalancerKey),
    PutBalancer(BalancerKey),
    DeleteBalancer(BalancerKey),
    Stats(BalancerKey),
    Events,
}

impl Route {
    pub(super) fn find(method: &Method, path: &str) -> Result<Self, Refusal> {
        let not_found = || Refusal::new(404, "not_found", format!("there is nothing at {path}"));
        let parts: Option<Vec<String>> = path.split('/').skip(1).map(decode).collect();
        let parts = parts.ok_or_else(not_found)?;
        let parts: Vec<_> = parts.iter().map(String::as_str).collect();
        let one = |method, route| vec![(method, route)];
        let known = match *parts.as_slice() {
            ["healthz"] => one(Method::GET, Self::Health),
            ["readyz"] => one(Method::GET, Self::Ready),
            ["version"] => one(Method::GET, Self::Version),
            ["metrics"] => one(Method::GET, Self::Metrics),
            ["v1", "clusters"] => one(Method::GET, Self::Clusters),
            ["v1", "machines"] => vec![(Method::GET, Self::ListMachines), (Method::POST, Self::AddMachine)],
            ["v1", "machines", id] if !id.is_empty() => vec![
                (Method::GET, Self::GetMachine(id.to_owned())),
                (Method::PATCH, Self::PatchMachine(id.to_owned())),
                (Method::DELETE, Self::DeleteMachine(id.to_owned())),
            ],
            ["v1", "loadbalancers"] => one(Method::GET, Self::ListBalancers),
            ["v1", "loadbalancers", cluster, namespace, name] => {
                let key = key(cluster, namespace, name).ok_or_else(not_found)?;
                vec![
                    (Method::GET, Self::GetBalancer(key.clone())),
                    (Method::PUT, Self::PutBalancer(key.clone())),
                    (Method::DELETE, Self::DeleteBalancer(key)),
                ]
            }
            ["v1", "loadbalancers", cluster, namespace, name, "stats"] => {
                one(Method::GET, Self::Stats(key(cluster, namespace, name).ok_or_else(not_found)?))
            }
            ["v1", "events"] => one(Method::GET, Self::Events),
            _ => return Err(not_found()),
        };
        let allowed = known.iter().map(|(method, _)| method.as_str()).collect::<Vec<_>>().join(", ");
        let found = known.into_iter().find(|(known, _)| known == method);
        found.map(|(_, route)| route).ok_or_else(|| {
            Refusal::method(format!("{path} does not take {method}; it takes {allowed}"), allowed)
        })
    }
}

fn decode(part: &str) -> Option<String> {
    percent_decode_str(part).decode_utf8().ok().map(Cow::into_owned)
}

/// What the names of Services and namespaces are made of; a slash in one would make two keys look the same.
fn key(cluster: &str, namespace: &str, name: &str) -> Option<BalancerKey> {
    let plain = |text: &str| {
        let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
        !text.is_empty() && text.len() <= 253 && text.bytes().all(plain)
    };
    let good = plain(cluster) && plain(namespace) && plain(name);
    good.then(|| BalancerKey {
        cluster: cluster.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    })
}

/// What follows the question mark.
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    pub(super) fn new(query: Option<&str>) -> Self {
        let pairs = query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
        let decoded = |text: &str| {
            let text = text.replace('+', " ");
            percent_decode_str(&text).decode_utf8_lossy().into_owned()
        };
        let split = |pair: &str| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(name), decoded(value))
        };
        Self(pairs.map(split).collect())
    }

    /// The value of a parameter; an empty one is none.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    pub(super) fn number(&self, name: &str) -> Result<Option<u64>, Refusal> {
        let wrong = |text: &str| Refusal::invalid(format!("{name}: {text:?} must be a whole number"));
        self.get(name).map(|text| text.parse().map_err(|_| wrong(text))).transpose()
    }
}
