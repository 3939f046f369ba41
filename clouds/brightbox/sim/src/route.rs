//! Parses method and path into an operation on a resource.

use std::fmt;

use http::Method;
use percent_encoding::percent_decode_str;

use super::refusal::Refusal;

/// The kinds of resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Account,
    Server,
    ServerType,
    Zone,
    Group,
    Policy,
    Rule,
    Balancer,
    CloudIp,
}

impl Kind {
    pub(crate) const ALL: [Self; 9] = [
        Self::Account,
        Self::Server,
        Self::ServerType,
        Self::Zone,
        Self::Group,
        Self::Policy,
        Self::Rule,
        Self::Balancer,
        Self::CloudIp,
    ];

    /// The name of its collection, in paths and in the names of operations.
    pub(crate) const fn plural(self) -> &'static str {
        match self {
            Self::Account => "accounts",
            Self::Server => "servers",
            Self::ServerType => "server_types",
            Self::Zone => "zones",
            Self::Group => "server_groups",
            Self::Policy => "firewall_policies",
            Self::Rule => "firewall_rules",
            Self::Balancer => "load_balancers",
            Self::CloudIp => "cloud_ips",
        }
    }

    /// What can be done to one of them, beside reading it.
    const fn actions(self) -> &'static [&'static str] {
        match self {
            Self::Server => &["start", "stop", "shutdown"],
            Self::Group => &["add_servers", "remove_servers"],
            Self::Policy => &["apply_to", "remove"],
            Self::Balancer => &["add_nodes", "remove_nodes", "add_listeners", "remove_listeners"],
            Self::CloudIp => &["map", "unmap"],
            Self::Account | Self::ServerType | Self::Zone | Self::Rule => &[],
        }
    }

    const fn locks(self) -> bool {
        matches!(self, Self::Server | Self::Balancer)
    }

    const fn read_only(self) -> bool {
        matches!(self, Self::Account | Self::ServerType | Self::Zone)
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
    /// One of [`Kind::actions`], or `lock_resource` or `unlock_resource`.
    Action(String, String),
}

impl Verb {
    fn word(&self) -> &str {
        match self {
            Self::List => "list",
            Self::Get(_) => "get",
            Self::Create => "create",
            Self::Update(_) => "update",
            Self::Delete(_) => "delete",
            Self::Action(_, word) => word,
        }
    }
}

/// A parsed request line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// A token is asked for.
    Token,
    /// A call to the API.
    Api(Kind, Verb),
}

/// The name of an operation: `load_balancers.create`.
impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Token => f.write_str("token"),
            Self::Api(kind, verb) => write!(f, "{}.{}", kind.plural(), verb.word()),
        }
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
        match parts.as_slice() {
            ["token"] if method == Method::POST => Ok(Self::Token),
            ["token"] => Err(Self::not_allowed(method)),
            ["1.0", collection, rest @ ..] => {
                let kind = Kind::ALL.into_iter().find(|kind| kind.plural() == *collection);
                let kind = kind.ok_or_else(|| Refusal::not_found(path))?;
                Ok(Self::Api(kind, Self::verb(kind, method, rest, path)?))
            }
            _ => Err(Refusal::not_found(path)),
        }
    }

    fn verb(kind: Kind, method: &Method, rest: &[&str], path: &str) -> Result<Verb, Refusal> {
        let verb = match (method, rest) {
            (&Method::GET, []) if kind != Kind::Rule => Verb::List,
            (&Method::POST, []) if kind != Kind::Server => Verb::Create,
            (&Method::GET, [id]) => Verb::Get((*id).to_owned()),
            (&Method::PUT, [id]) if kind != Kind::Server => Verb::Update((*id).to_owned()),
            (&Method::DELETE, [id]) => Verb::Delete((*id).to_owned()),
            (&Method::POST, [id, word]) if kind.actions().contains(word) => {
                Verb::Action((*id).to_owned(), (*word).to_owned())
            }
            (&Method::PUT, [id, word @ ("lock_resource" | "unlock_resource")]) if kind.locks() => {
                Verb::Action((*id).to_owned(), (*word).to_owned())
            }
            (_, [] | [_]) => return Err(Self::not_allowed(method)),
            _ => return Err(Refusal::not_found(path)),
        };
        if kind.read_only() && !matches!(verb, Verb::List | Verb::Get(_)) {
            return Err(Self::not_allowed(method));
        }
        Ok(verb)
    }

    fn not_allowed(method: &Method) -> Refusal {
        Refusal::named(405, "method_not_allowed", &[format!("{method} is not allowed here")])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_parsed() {
        let table = [
            ("POST", "/token/", Ok("token")),
            ("POST", "/token", Ok("token")),
            ("GET", "/token/", Err(405)),
            ("GET", "/1.0/accounts", Ok("accounts.list")),
            ("GET", "/1.0/servers", Ok("servers.list")),
            ("GET", "/1.0/servers/", Ok("servers.list")),
            ("GET", "/1.0/servers/srv-1", Ok("servers.get")),
            ("POST", "/1.0/servers/srv-1/stop", Ok("servers.stop")),
            ("POST", "/1.0/servers/srv-1/explode", Err(404)),
            ("GET", "/1.0/servers/aws:/i-1", Err(404)),
            ("POST", "/1.0/servers", Err(405)),
            ("POST", "/1.0/load_balancers", Ok("load_balancers.create")),
            ("PUT", "/1.0/load_balancers/x", Ok("load_balancers.update")),
            ("DELETE", "/1.0/load_balancers/x", Ok("load_balancers.delete")),
            ("PATCH", "/1.0/load_balancers/x", Err(405)),
            ("POST", "/1.0/load_balancers/x/add_nodes", Ok("load_balancers.add_nodes")),
            ("PUT", "/1.0/load_balancers/x/lock_resource", Ok("load_balancers.lock_resource")),
            ("PUT", "/1.0/cloud_ips/x/lock_resource", Err(404)),
            ("POST", "/1.0/cloud_ips/x/unmap", Ok("cloud_ips.unmap")),
            ("POST", "/1.0/server_groups/x/remove_servers", Ok("server_groups.remove_servers")),
            ("POST", "/1.0/firewall_policies/x/apply_to", Ok("firewall_policies.apply_to")),
            ("GET", "/1.0/firewall_rules", Err(405)),
            ("POST", "/1.0/firewall_rules", Ok("firewall_rules.create")),
            ("DELETE", "/1.0/zones/x", Err(405)),
            ("GET", "/1.0/volumes", Err(404)),
            ("GET", "/2.0/servers", Err(404)),
            ("GET", "/", Err(404)),
        ];
        for (method, path, want) in table {
            let got = Route::parse(&Method::from_bytes(method.as_bytes()).unwrap(), path);
            let got = got.map(|route| route.to_string()).map_err(|refusal| refusal.status);
            assert_eq!(got, want.map(str::to_owned), "{method} {path}");
        }
    }
}
