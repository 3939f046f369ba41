//! Servers as instances.

use cloudberth_http::{Flawed, Item};

use crate::{
    observed::PrivateAddress,
    uuid::{SCHEME, parse_uuid},
    wire::{Interface, Named, Server},
};
use cloudberth_core::{
    AddressKind, Error, Instance, InstanceState, LabelValue, NodeAddress, ProviderId, Region, Result, Zone,
    error::Context, instance::PrivateFacts,
};

impl Interface {
    /// Whether the world reaches it.
    pub(crate) fn is_public(&self) -> bool {
        self.kind == "public"
    }
}

impl Server {
    fn id(&self) -> Result<String> {
        parse_uuid(&self.uuid).ok_or_else(|| {
            Error::permanent(format!(
                "server {:?} has the id {:?}, which is not a UUID",
                self.name, self.uuid
            ))
        })
    }

    /// The same in the framework's words. Labels and addresses that Kubernetes would not take are left out.
    pub(crate) fn instance(&self) -> Result<Instance> {
        let mut instance = Instance::new(ProviderId::new(SCHEME, &self.id()?)?, &self.name);
        instance.state = match self.status.as_str() {
            "running" => InstanceState::Running,
            // Only this is shut down: a rescue system runs, and `changing` will be another status soon.
            "stopped" => InstanceState::Stopped,
            _ => InstanceState::Other,
        };
        instance.instance_type = self.flavor.as_ref().and_then(|flavor| LabelValue::new(&flavor.slug).ok());
        if let Some(zone) = &self.zone {
            instance.zone = Zone::new(&zone.slug).ok();
            instance.region = Region::new(zone.slug.trim_end_matches(|c: char| c.is_ascii_digit())).ok();
        }
        instance.addresses = self.node_addresses();
        instance.facts = Some(PrivateFacts::new(self.private_addresses()));
        Ok(instance)
    }

    /// The addresses that a pool member can have, in the API's order.
    fn private_addresses(&self) -> Vec<PrivateAddress> {
        let private = self.interfaces.iter().filter(|interface| !interface.is_public());
        let addresses = private.flat_map(|interface| &interface.addresses).filter_map(|address| {
            let subnet = address.subnet.as_ref()?.uuid.clone();
            (!subnet.is_empty()).then(|| PrivateAddress { address: address.address.clone(), subnet })
        });
        addresses.collect()
    }

    /// The host name first, then every address in the API's order.
    fn node_addresses(&self) -> Vec<NodeAddress> {
        let ips = self.interfaces.iter().flat_map(|interface| {
            let kind = if interface.is_public() { AddressKind::ExternalIp } else { AddressKind::InternalIp };
            interface.addresses.iter().map(move |address| NodeAddress::new(kind, &address.address))
        });
        std::iter::once(NodeAddress::new(AddressKind::Hostname, &self.name)).chain(ips).flatten().collect()
    }
}

/// A server as an instance, or why it cannot be one.
pub(crate) struct Read(Result<Instance>);

/// A server that exists, as an instance. Of one that cannot be read, only its existence is known.
pub fn instance(server: Item<Server, Named>) -> Result<Instance> {
    match server {
        Item::Whole(server) => server.instance(),
        Item::Flawed(Flawed { identity, why }) => {
            let name = identity.name.unwrap_or_default();
            let bare = Server { uuid: identity.uuid, name, ..Server::default() };
            Ok(Instance::flawed(ProviderId::new(SCHEME, &bare.id()?)?, &bare.name, &why))
        }
    }
}

impl From<Item<Server, Named>> for Read {
    fn from(server: Item<Server, Named>) -> Self {
        Self(instance(server).context("a server cannot be told apart"))
    }
}

/// The instances, and why one may be missing: a server without a readable id, or one whose name cannot be read.
pub(crate) fn instances(servers: Vec<Read>) -> (Vec<Instance>, Option<String>) {
    let mut instances = Vec::with_capacity(servers.len());
    let mut flaw = None;
    for Read(server) in servers {
        match server {
            Ok(instance) => {
                if let Some(why) = instance.flaw.as_deref().filter(|_| instance.name.is_empty()) {
                    flaw.get_or_insert_with(|| {
                        format!("the name of server {} is not known: {why}", instance.id)
                    });
                }
                instances.push(instance);
            }
            Err(why) => drop(flaw.get_or_insert_with(|| why.message().to_owned())),
        }
    }
    (instances, flaw)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const UUID: &str = "3b1d8a52-6f0e-4c1b-9a57-5d0c2f4e7a10";

    fn server(body: Value) -> Server {
        serde_json::from_value(body).unwrap()
    }

    fn worker() -> Value {
        json!({
            "href": "https://api.cloudscale.ch/v1/servers/3b1d8a52-6f0e-4c1b-9a57-5d0c2f4e7a10",
            "uuid": UUID, "name": "worker-7", "status": "running", "unheard_of": [1],
            "zone": {"slug": "rma1"}, "flavor": {"slug": "flex-4-2", "name": "Flex-4-2", "vcpu_count": 2},
            "interfaces": [
                {"type": "public", "network": null, "addresses": [
                    {"version": 4, "address": "203.0.113.27", "subnet": {"uuid": "22bb", "cidr": "203.0.113.0/24"}},
                    {"version": 6, "address": "2001:db8:10::27", "subnet": null}]},
                {"type": "private", "addresses": [{"version": 4, "address": "10.20.0.17", "subnet": {"uuid": "55ee"}}]},
            ],
        })
    }

    #[test]
    fn a_server_becomes_an_instance() {
        let instance = server(worker()).instance().unwrap();
        assert_eq!(instance.id.to_string(), format!("cloudscale://{UUID}"), "CS-23");
        assert_eq!(instance.name, "worker-7", "CS-23");
        assert_eq!(instance.instance_type, LabelValue::new("flex-4-2").ok(), "CS-23");
        assert_eq!(instance.zone, Zone::new("rma1").ok(), "CS-23");
        assert_eq!(instance.region, Region::new("rma").ok(), "CS-23");
        let addresses: Vec<_> = instance.addresses.iter().map(ToString::to_string).collect();
        let want = [
            "Hostname worker-7",
            "ExternalIP 203.0.113.27",
            "ExternalIP 2001:db8:10::27",
            "InternalIP 10.20.0.17",
        ];
        assert_eq!(addresses, want, "CS-24");
    }

    #[test]
    fn only_stopped_is_shut_down() {
        use InstanceState::{Other, Running, Stopped};
        let table = [
            ("CS-20", "stopped", Stopped),
            ("CS-21", "running", Running),
            ("CS-21", "started", Other),
            ("CS-21", "changing", Other),
            ("paused", "paused", Other),
            ("error", "error", Other),
            ("a rescue system", "rescue_stopped", Other),
            ("another case", "Stopped", Other),
        ];
        for (case, status, want) in table {
            let mut body = worker();
            body["status"] = json!(status);
            assert_eq!(server(body).instance().unwrap().state, want, "{case} {status}");
        }
    }

    #[test]
    fn what_is_missing_or_wrong_is_left_out() {
        let mut bare = worker();
        bare["status"] = json!(null);
        bare["flavor"] = json!(null);
        let bare = server(bare).instance().unwrap();
        assert_eq!((bare.state, bare.instance_type), (InstanceState::Other, None));
        let mut odd = worker();
        odd["zone"]["slug"] = json!("12");
        odd["flavor"]["slug"] = json!("not a label");
        odd["interfaces"][0]["addresses"][0]["address"] = json!("somewhere");
        odd["interfaces"][1] = json!({"type": "private", "addresses": []});
        let odd = server(odd).instance().unwrap();
        assert_eq!((odd.zone, odd.region, odd.instance_type), (Zone::new("12").ok(), None, None));
        assert_eq!(odd.addresses.len(), 2);
    }

    #[test]
    fn what_is_not_told_makes_the_instance_unknown_and_not_absent() {
        type Spoil = fn(&mut Value);
        let table: [(&str, Spoil, &str); 8] = [
            (
                "interfaces",
                |s| drop(s.as_object_mut().unwrap().remove("interfaces")),
                "interfaces is missing",
            ),
            ("interfaces", |s| s["interfaces"] = json!(null), "interfaces is null"),
            ("zone", |s| s["zone"] = json!(null), "zone is null"),
            ("type", |s| s["interfaces"][0]["type"] = json!(null), "interfaces[0].type is null"),
            (
                "addresses",
                |s| s["interfaces"][1]["addresses"] = json!(null),
                "interfaces[1].addresses is null",
            ),
            (
                "address",
                |s| s["interfaces"][1]["addresses"][0]["address"] = json!(null),
                "interfaces[1].addresses[0].address is null",
            ),
            (
                "subnet",
                |s| s["interfaces"][1]["addresses"][0] = json!({"address": "10.20.0.17"}),
                "interfaces[1].addresses[0].subnet is missing",
            ),
            ("name", |s| s["name"] = json!(null), "name is null"),
        ];
        for (case, spoil, why) in table {
            let mut body = worker();
            spoil(&mut body);
            let item: Item<Server, Named> = serde_json::from_value(body).unwrap();
            let instance = instance(item.clone()).unwrap();
            assert_eq!(instance.flaw.as_deref(), Some(why), "L1-428 {case}");
            assert_eq!(instance.id.to_string(), format!("cloudscale://{UUID}"), "L1-428 {case}");
            assert_eq!((instance.state, instance.addresses), (InstanceState::Other, vec![]), "L1-428 {case}");
            let (instances, short) = instances(vec![item.into(), Item::Whole(server(worker())).into()]);
            assert_eq!(instances.len(), 2, "L1-429 {case}: it is there");
            assert_eq!(short.is_some(), case == "name", "L1-430 {case}: only a name could be anybody's");
        }
    }

    #[test]
    fn an_id_that_is_no_uuid_hides_no_other_server() {
        let good = server(worker());
        let bad = Server { uuid: "7".to_owned(), ..good.clone() };
        let upper = Server { uuid: UUID.to_uppercase(), ..good.clone() };
        assert_eq!(upper.instance().unwrap().id, good.instance().unwrap().id);
        let (instances, flaw) = instances(vec![Item::Whole(bad).into(), Item::Whole(good).into()]);
        assert_eq!(instances.len(), 1, "L11-801");
        assert!(flaw.unwrap().contains("\"7\""), "L1-801");
    }
}
