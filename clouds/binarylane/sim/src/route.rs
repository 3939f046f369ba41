//! Parses method and path into an operation.

use http::Method;
use serde_json::Value;

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    ListServers,
    CreateServer,
    GetServer(i64),
    DeleteServer(i64),
    ActOnServer(i64),
    ListServerActions(i64),
    GetServerAction(i64, i64),
    ListBalancers,
    CreateBalancer,
    Availability,
    GetBalancer(i64),
    UpdateBalancer(i64),
    DeleteBalancer(i64),
    AddServers(i64),
    RemoveServers(i64),
    AddRules(i64),
    RemoveRules(i64),
    ListVpcs,
    CreateVpc,
    GetVpc(i64),
    UpdateVpc(i64),
    PatchVpc(i64),
    DeleteVpc(i64),
    ListMembers(i64),
    ListActions,
    GetAction(i64),
    Proceed(i64),
    ListRegions,
    ListSizes,
    GetAccount,
}

impl Route {
    /// Parses a path; `None` for one that the API does not have, also if an id in it is no number.
    pub(crate) fn parse(method: &Method, path: &str) -> Option<Self> {
        let parts: Vec<_> = path.strip_prefix("/v2/")?.trim_end_matches('/').split('/').collect();
        let id = |text: &str| text.parse::<i64>().ok();
        let route = match (method.as_str(), parts.as_slice()) {
            ("GET", ["servers"]) => Self::ListServers,
            ("POST", ["servers"]) => Self::CreateServer,
            ("GET", ["servers", one]) => Self::GetServer(id(one)?),
            ("DELETE", ["servers", one]) => Self::DeleteServer(id(one)?),
            ("POST", ["servers", one, "actions"]) => Self::ActOnServer(id(one)?),
            ("GET", ["servers", one, "actions"]) => Self::ListServerActions(id(one)?),
            ("GET", ["servers", one, "actions", action]) => Self::GetServerAction(id(one)?, id(action)?),
            ("GET", ["load_balancers"]) => Self::ListBalancers,
            ("POST", ["load_balancers"]) => Self::CreateBalancer,
            ("GET", ["load_balancers", "availability"]) => Self::Availability,
            ("GET", ["load_balancers", one]) => Self::GetBalancer(id(one)?),
            ("PUT", ["load_balancers", one]) => Self::UpdateBalancer(id(one)?),
            ("DELETE", ["load_balancers", one]) => Self::DeleteBalancer(id(one)?),
            ("POST", ["load_balancers", one, "servers"]) => Self::AddServers(id(one)?),
            ("DELETE", ["load_balancers", one, "servers"]) => Self::RemoveServers(id(one)?),
            ("POST", ["load_balancers", one, "forwarding_rules"]) => Self::AddRules(id(one)?),
            ("DELETE", ["load_balancers", one, "forwarding_rules"]) => Self::RemoveRules(id(one)?),
            ("GET", ["vpcs"]) => Self::ListVpcs,
            ("POST", ["vpcs"]) => Self::CreateVpc,
            ("GET", ["vpcs", one]) => Self::GetVpc(id(one)?),
            ("PUT", ["vpcs", one]) => Self::UpdateVpc(id(one)?),
            ("PATCH", ["vpcs", one]) => Self::PatchVpc(id(one)?),
            ("DELETE", ["vpcs", one]) => Self::DeleteVpc(id(one)?),
            ("GET", ["vpcs", one, "members"]) => Self::ListMembers(id(one)?),
            ("GET", ["actions"]) => Self::ListActions,
            ("GET", ["actions", one]) => Self::GetAction(id(one)?),
            ("POST", ["actions", one, "proceed"]) => Self::Proceed(id(one)?),
            ("GET", ["regions"]) => Self::ListRegions,
            ("GET", ["sizes"]) => Self::ListSizes,
            ("GET", ["account"]) => Self::GetAccount,
            _ => return None,
        };
        Some(route)
    }

    /// The name of the operation. A server action has its own type as the verb, which is in the body.
    pub(crate) fn operation(self, body: &[u8]) -> String {
        let name = match self {
            Self::ListServers => "servers.list",
            Self::CreateServer => "servers.create",
            Self::GetServer(_) => "servers.get",
            Self::DeleteServer(_) => "servers.delete",
            Self::ActOnServer(_) => {
                let body: Value = serde_json::from_slice(body).unwrap_or_default();
                let kind = body.get("type").and_then(Value::as_str).unwrap_or("act");
                return format!("servers.{kind}");
            }
            Self::ListServerActions(_) => "servers.list_actions",
            Self::GetServerAction(..) => "servers.get_action",
            Self::ListBalancers => "load_balancers.list",
            Self::CreateBalancer => "load_balancers.create",
            Self::Availability => "load_balancers.availability",
            Self::GetBalancer(_) => "load_balancers.get",
            Self::UpdateBalancer(_) => "load_balancers.update",
            Self::DeleteBalancer(_) => "load_balancers.delete",
            Self::AddServers(_) => "load_balancers.add_servers",
            Self::RemoveServers(_) => "load_balancers.remove_servers",
            Self::AddRules(_) => "load_balancers.add_rules",
            Self::RemoveRules(_) => "load_balancers.remove_rules",
            Self::ListVpcs => "vpcs.list",
            Self::CreateVpc => "vpcs.create",
            Self::GetVpc(_) => "vpcs.get",
            Self::UpdateVpc(_) => "vpcs.update",
            Self::PatchVpc(_) => "vpcs.patch",
            Self::DeleteVpc(_) => "vpcs.delete",
            Self::ListMembers(_) => "vpcs.list_members",
            Self::ListActions => "actions.list",
            Self::GetAction(_) => "actions.get",
            Self::Proceed(_) => "actions.proceed",
            Self::ListRegions => "regions.list",
            Self::ListSizes => "sizes.list",
            Self::GetAccount => "account.get",
        };
        name.to_owned()
    }

    /// Whether it needs no token.
    pub(crate) const fn is_open(self) -> bool {
        matches!(self, Self::ListRegions | Self::ListSizes)
    }

    /// Whether it changes a VPC.
    pub(crate) const fn changes_vpc(self) -> bool {
        matches!(self, Self::UpdateVpc(_) | Self::PatchVpc(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_parsed() {
        let table = [
            ("GET", "/v2/servers", Some("servers.list")),
            ("GET", "/v2/servers/7", Some("servers.get")),
            ("GET", "/v2/servers/seven", None),
            ("POST", "/v2/servers/7/actions", Some("servers.is_running")),
            ("GET", "/v2/servers/7/actions/9", Some("servers.get_action")),
            ("PATCH", "/v2/servers/7", None),
            ("GET", "/v2/load_balancers", Some("load_balancers.list")),
            ("GET", "/v2/load_balancers/availability", Some("load_balancers.availability")),
            ("PUT", "/v2/load_balancers/7", Some("load_balancers.update")),
            ("PATCH", "/v2/load_balancers/7", None),
            ("DELETE", "/v2/load_balancers/7/servers", Some("load_balancers.remove_servers")),
            ("POST", "/v2/load_balancers/7/forwarding_rules", Some("load_balancers.add_rules")),
            ("PATCH", "/v2/vpcs/7", Some("vpcs.patch")),
            ("GET", "/v2/vpcs/7/members", Some("vpcs.list_members")),
            ("POST", "/v2/actions/7/proceed", Some("actions.proceed")),
            ("GET", "/v2/regions", Some("regions.list")),
            ("GET", "/v2/images", None),
            ("GET", "/v1/servers", None),
            ("GET", "/", None),
        ];
        for (method, path, want) in table {
            let route = Route::parse(&Method::from_bytes(method.as_bytes()).unwrap(), path);
            let got = route.map(|route| route.operation(br#"{"type": "is_running"}"#));
            assert_eq!(got.as_deref(), want, "{method} {path}");
        }
    }
}
