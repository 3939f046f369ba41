//! Parses method and path into an operation on a resource.

use std::fmt;

use http::Method;
use percent_encoding::percent_decode_str;

use super::refusal::Refusal;

/// The kinds of resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Server,
    Balancer,
    Pool,
    Member,
    Listener,
    Monitor,
    FloatingIp,
    Network,
    Subnet,
    Region,
    Flavor,
}

impl Kind {
    pub(crate) const fn plural(self) -> &'static str {
        match self {
            Self::Server => "servers",
            Self::Balancer => "load-balancers",
            Self::Pool => "pools",
            Self::Member => "members",
            Self::Listener => "listeners",
            Self::Monitor => "health-monitors",
            Self::FloatingIp => "floating-ips",
            Self::Network => "networks",
            Self::Subnet => "subnets",
            Self::Region => "regions",
            Self::Flavor => "flavors",
        }
    }
}

/// What a request does to its resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    List,
    Get(String),
    Create,
    Update(String),
    Delete(String),
    /// `start`, `stop` or `reboot` of a server.
    Power(String, String),
}

impl Verb {
    fn word(&self) -> &str {
        match self {
            Self::List => "list",
            Self::Get(_) => "get",
            Self::Create => "create",
            Self::Update(_) => "update",
            Self::Delete(_) => "delete",
            Self::Power(_, word) => word,
        }
    }
}

/// A parsed request line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) kind: Kind,
    pub(crate) verb: Verb,
    /// The pool whose members are meant.
    pub(crate) pool: Option<String>,
}

/// The name of an operation: `members.create`.
impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.kind.plural(), self.verb.word())
    }
}

impl Route {
    /// Parses a path, or says why not: it does not exist, or does not allow the method.
    pub(crate) fn parse(method: &Method, path: &str) -> Result<Self, Refusal> {
        let decoded: Vec<_> = path
            .trim_matches('/')
            .split('/')
            .map(|part| percent_decode_str(part).decode_utf8_lossy().into_owned())
            .collect();
        let parts: Vec<_> = decoded.iter().map(String::as_str).collect();
        let (kind, pool, rest) = Self::place(&parts).ok_or_else(Refusal::not_found)?;
        let verb = match (method, rest) {
            (&Method::GET, []) => Verb::List,
            (&Method::POST, []) => Verb::Create,
            (&Method::GET, [id]) => Verb::Get((*id).to_owned()),
            (&Method::PATCH, [id]) => Verb::Update((*id).to_owned()),
            (&Method::DELETE, [id]) => Verb::Delete((*id).to_owned()),
            (&Method::POST, [id, word @ ("start" | "stop" | "reboot")]) if kind == Kind::Server => {
                Verb::Power((*id).to_owned(), (*word).to_owned())
            }
            (_, [] | [_]) => return Err(Self::not_allowed(method)),
            _ => return Err(Refusal::not_found()),
        };
        let read_only = matches!(kind, Kind::Region | Kind::Flavor);
        if read_only && verb != Verb::List {
            return Err(if method == Method::GET { Refusal::not_found() } else { Self::not_allowed(method) });
        }
        Ok(Self { kind, verb, pool })
    }

    fn not_allowed(method: &Method) -> Refusal {
        Refusal::new(405, &format!("Method {:?} not allowed.", method.as_str()))
    }

    /// The kind, the pool of members, and what follows.
    fn place<'a>(parts: &'a [&'a str]) -> Option<(Kind, Option<String>, &'a [&'a str])> {
        let (&first, rest) = parts.strip_prefix(&["v1"])?.split_first()?;
        Some(match (first, rest) {
            ("load-balancers", ["pools", pool, "members", rest @ ..]) => {
                (Kind::Member, Some((*pool).to_owned()), rest)
            }
            ("load-balancers", ["pools", rest @ ..]) => (Kind::Pool, None, rest),
            ("load-balancers", ["listeners", rest @ ..]) => (Kind::Listener, None, rest),
            ("load-balancers", ["health-monitors", rest @ ..]) => (Kind::Monitor, None, rest),
            ("load-balancers", rest) => (Kind::Balancer, None, rest),
            ("servers", rest) => (Kind::Server, None, rest),
            ("floating-ips", rest) => (Kind::FloatingIp, None, rest),
            ("networks", rest) => (Kind::Network, None, rest),
            ("subnets", rest) => (Kind::Subnet, None, rest),
            ("regions", rest) => (Kind::Region, None, rest),
            ("flavors", rest) => (Kind::Flavor, None, rest),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_parsed() {
        let table = [
            ("GET", "/v1/servers", Ok("servers.list")),
            ("GET", "/v1/servers/x", Ok("servers.get")),
            ("POST", "/v1/servers/x/stop", Ok("servers.stop")),
            ("POST", "/v1/servers/x/explode", Err(404)),
            ("GET", "/v1/load-balancers", Ok("load-balancers.list")),
            ("POST", "/v1/load-balancers", Ok("load-balancers.create")),
            ("PATCH", "/v1/load-balancers/x", Ok("load-balancers.update")),
            ("GET", "/v1/load-balancers/pools", Ok("pools.list")),
            ("DELETE", "/v1/load-balancers/pools/x", Ok("pools.delete")),
            ("POST", "/v1/load-balancers/pools/x/members", Ok("members.create")),
            ("GET", "/v1/load-balancers/pools/x/members/y", Ok("members.get")),
            ("GET", "/v1/load-balancers/listeners", Ok("listeners.list")),
            ("PATCH", "/v1/load-balancers/health-monitors/x", Ok("health-monitors.update")),
            ("PATCH", "/v1/floating-ips/2001:db8::1", Ok("floating-ips.update")),
            ("GET", "/v1/regions", Ok("regions.list")),
            ("POST", "/v1/flavors", Err(405)),
            ("GET", "/v1/flavors/x", Err(404)),
            ("PUT", "/v1/servers/x", Err(405)),
            ("DELETE", "/v1/servers", Err(405)),
            ("GET", "/v1/volumes", Err(404)),
            ("GET", "/v2/servers", Err(404)),
            ("GET", "/", Err(404)),
        ];
        for (method, path, want) in table {
            let got = Route::parse(&Method::from_bytes(method.as_bytes()).unwrap(), path);
            let got = got.map(|route| route.to_string()).map_err(|refusal| refusal.status);
            assert_eq!(got, want.map(str::to_owned), "{method} {path}");
        }
        let encoded = Route::parse(&Method::GET, "/v1/floating-ips/2001%3Adb8%3A%3A1").unwrap();
        assert_eq!(encoded.verb, Verb::Get("2001:db8::1".to_owned()));
    }
}
