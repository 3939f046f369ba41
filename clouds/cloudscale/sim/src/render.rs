//! Resources as the JSON of the API.

use std::{cell::OnceCell, net::IpAddr};

use cloudberth_core::Tick;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    health::Health,
    resources::{
        Address, Balancer, FloatingIp, Interface, Listener, Member, Monitor, Network, Pool, Resources,
        Server, Subnet, Target,
    },
    settings::{BALANCER_FLAVOR, FLAVORS},
};

/// The resources at one moment, as one client sees them.
#[derive(Debug)]
pub(crate) struct View<'a> {
    pub(crate) resources: &'a Resources,
    health: OnceCell<Health>,
    /// The base URL that the client used; links begin with it.
    base: &'a str,
    now: Tick,
}

fn time(at: Timestamp) -> String {
    format!("{at:.6}")
}

fn version(address: IpAddr) -> u8 {
    if address.is_ipv4() { 4 } else { 6 }
}

impl<'a> View<'a> {
    pub(crate) fn new(resources: &'a Resources, base: &'a str, now: Tick) -> Self {
        Self { resources, health: OnceCell::new(), base, now }
    }

    fn health(&self) -> &Health {
        self.health.get_or_init(|| Health::of(self.resources))
    }

    fn href(&self, path: &str, id: &str) -> String {
        format!("{}/v1/{path}/{id}", self.base)
    }

    fn stub(&self, path: &str, id: &str, name: Option<&str>) -> Value {
        json!({"href": self.href(path, id), "uuid": id, "name": name})
    }

    fn balancer_stub(&self, id: &str) -> Value {
        let name = self.resources.balancers.get(id).map(|balancer| balancer.name.as_str());
        self.stub("load-balancers", id, name)
    }

    fn pool_stub(&self, id: &str) -> Value {
        let name = self.resources.pools.get(id).map(|pool| pool.name.as_str());
        self.stub("load-balancers/pools", id, name)
    }

    fn network_stub(&self, id: &str) -> Value {
        let name = self.resources.networks.get(id).map(|network| network.name.as_str());
        self.stub("networks", id, name)
    }

    fn subnet_stub(&self, id: &str) -> Value {
        let cidr = self.resources.subnets.get(id).map(|subnet| subnet.cidr.to_string());
        json!({"href": self.href("subnets", id), "uuid": id, "cidr": cidr})
    }

    fn balancer_of(&self, pool: &str) -> Value {
        self.resources.pools.get(pool).map_or(Value::Null, |pool| self.balancer_stub(&pool.balancer))
    }

    pub(crate) fn server(&self, server: &Server) -> Value {
        let (cpus, memory) =
            FLAVORS.iter().find(|(slug, ..)| *slug == server.flavor).map_or((1, 4), |(_, c, m)| (*c, *m));
        let interfaces: Vec<_> =
            server.interfaces.iter().enumerate().map(|(at, i)| self.interface(&server.uuid, at, i)).collect();
        json!({
            "href": self.href("servers", &server.uuid),
            "uuid": server.uuid,
            "name": server.name,
            "created_at": time(server.created_at),
            "status": server.status,
            "zone": {"slug": server.zone},
            "flavor": {"slug": server.flavor, "name": capitalised(&server.flavor), "vcpu_count": cpus, "memory_gb": memory},
            "image": {"slug": server.image, "name": server.image, "operating_system": "Debian", "default_username": "debian"},
            "volumes": [{"href": null, "uuid": null, "name": "root", "type": "ssd", "size_gb": 50}],
            "interfaces": interfaces,
            "ssh_fingerprints": null,
            "ssh_host_keys": null,
            "server_groups": [],
            "anti_affinity_with": [],
            "tags": server.tags,
        })
    }

    fn interface(&self, server: &str, at: usize, interface: &Interface) -> Value {
        // A locally administered address that no other interface has.
        let digits: Vec<_> = server.bytes().filter(u8::is_ascii_hexdigit).map(char::from).take(8).collect();
        let pairs: Vec<String> = digits.chunks(2).map(|pair| pair.iter().collect()).collect();
        json!({
            "type": if interface.public { "public" } else { "private" },
            "network": self.network_stub(&interface.network),
            "mac_address": format!("02:{}:{at:02x}", pairs.join(":")),
            "addresses": interface.addresses.iter().map(|a| self.address(interface.public, a)).collect::<Vec<_>>(),
        })
    }

    fn address(&self, public: bool, address: &Address) -> Value {
        let subnet = address.subnet.as_ref().and_then(|id| self.resources.subnets.get(id));
        let name = address.address.to_string().replace(['.', ':'], "-");
        json!({
            "version": version(address.address),
            "address": address.address,
            "prefix_length": subnet.map_or(32, |subnet| subnet.cidr.prefix_len()),
            "gateway": subnet.and_then(|subnet| subnet.gateway),
            "reverse_ptr": public.then(|| format!("{name}.example.net")),
            "subnet": address.subnet.as_ref().map(|id| self.subnet_stub(id)),
        })
    }

    pub(crate) fn balancer(&self, balancer: &Balancer) -> Value {
        let vip = |address: IpAddr, subnet: &str| json!({"version": version(address), "address": address, "subnet": self.subnet_stub(subnet)});
        json!({
            "href": self.href("load-balancers", &balancer.uuid),
            "uuid": balancer.uuid,
            "name": balancer.name,
            "created_at": time(balancer.created_at),
            "status": self.health().balancer(balancer, self.now),
            "zone": {"slug": balancer.zone},
            "flavor": {"slug": balancer.flavor, "name": if balancer.flavor == BALANCER_FLAVOR { "LB-Standard" } else { &balancer.flavor }},
            "vip_addresses": balancer.vips.iter().map(|v| vip(v.address, &v.subnet)).collect::<Vec<_>>(),
            "tags": balancer.tags,
        })
    }

    pub(crate) fn pool(&self, pool: &Pool) -> Value {
        json!({
            "href": self.href("load-balancers/pools", &pool.uuid),
            "uuid": pool.uuid,
            "name": pool.name,
            "created_at": time(pool.created_at),
            "load_balancer": self.balancer_stub(&pool.balancer),
            "algorithm": pool.algorithm,
            "protocol": pool.protocol,
            "tags": pool.tags,
        })
    }

    pub(crate) fn member(&self, member: &Member) -> Value {
        json!({
            "href": self.href(&format!("load-balancers/pools/{}/members", member.pool), &member.uuid),
            "uuid": member.uuid,
            "name": member.name,
            "created_at": time(member.created_at),
            "enabled": member.enabled,
            "pool": self.pool_stub(&member.pool),
            "load_balancer": self.balancer_of(&member.pool),
            "subnet": self.subnet_stub(&member.subnet),
            "address": member.address,
            "protocol_port": member.protocol_port,
            "monitor_port": member.monitor_port,
            "monitor_status": self.health().member(member),
            "tags": member.tags,
        })
    }

    pub(crate) fn listener(&self, listener: &Listener) -> Value {
        json!({
            "href": self.href("load-balancers/listeners", &listener.uuid),
            "uuid": listener.uuid,
            "name": listener.name,
            "created_at": time(listener.created_at),
            "pool": listener.pool.as_ref().map(|pool| self.pool_stub(pool)),
            "load_balancer": self.balancer_stub(&listener.balancer),
            "protocol": listener.protocol,
            "protocol_port": listener.protocol_port,
            "allowed_cidrs": listener.allowed_cidrs,
            "timeout_client_data_ms": listener.timeout_client_data_ms,
            "timeout_member_connect_ms": listener.timeout_member_connect_ms,
            "timeout_member_data_ms": listener.timeout_member_data_ms,
            "tags": listener.tags,
        })
    }

    pub(crate) fn monitor(&self, monitor: &Monitor) -> Value {
        let http = monitor.http.as_ref().map(|http| {
            json!({
                "expected_codes": http.expected_codes,
                "method": http.method,
                "url_path": http.url_path,
                "version": http.version,
                "host": http.host,
            })
        });
        json!({
            "href": self.href("load-balancers/health-monitors", &monitor.uuid),
            "uuid": monitor.uuid,
            "created_at": time(monitor.created_at),
            "pool": self.pool_stub(&monitor.pool),
            "load_balancer": self.balancer_of(&monitor.pool),
            "type": monitor.kind,
            "delay_s": monitor.delay_s,
            "timeout_s": monitor.timeout_s,
            "up_threshold": monitor.up_threshold,
            "down_threshold": monitor.down_threshold,
            "http": http,
            "tags": monitor.tags,
        })
    }

    pub(crate) fn floating_ip(&self, ip: &FloatingIp) -> Value {
        let address = ip.network.addr();
        let same_family = |other: IpAddr| other.is_ipv4() == address.is_ipv4();
        let (server, balancer, next_hop) = match &ip.target {
            None => (None, None, None),
            Some(Target::Server(id)) => {
                let server = self.resources.servers.get(id);
                let public = server.into_iter().flat_map(|s| s.interfaces.iter().filter(|i| i.public));
                let mut addresses = public.flat_map(|i| i.addresses.iter().map(|a| a.address));
                let stub = json!({"href": self.href("servers", id), "uuid": id});
                (Some(stub), None, addresses.find(|address| same_family(*address)))
            }
            Some(Target::Balancer(id)) => {
                let vips = self.resources.balancers.get(id).map(|balancer| balancer.vips.as_slice());
                let mut addresses = vips.unwrap_or_default().iter().map(|vip| vip.address);
                (None, Some(self.balancer_stub(id)), addresses.find(|address| same_family(*address)))
            }
        };
        json!({
            "href": self.href("floating-ips", &address.to_string()),
            "created_at": time(ip.created_at),
            "network": ip.network.to_string(),
            "ip_version": version(address),
            "type": if ip.region.is_some() { "regional" } else { "global" },
            "region": ip.region.as_ref().map(|slug| json!({"slug": slug})),
            "next_hop": next_hop,
            "server": server,
            "load_balancer": balancer,
            "reverse_ptr": ip.reverse_ptr,
            "tags": ip.tags,
        })
    }

    pub(crate) fn network(&self, network: &Network) -> Value {
        let subnets = self.resources.subnets.values().filter(|subnet| subnet.network == network.uuid);
        json!({
            "href": self.href("networks", &network.uuid),
            "uuid": network.uuid,
            "name": network.name,
            "created_at": time(network.created_at),
            "zone": {"slug": network.zone},
            "mtu": network.mtu,
            "subnets": subnets.map(|subnet| self.subnet_stub(&subnet.uuid)).collect::<Vec<_>>(),
            "tags": network.tags,
        })
    }

    pub(crate) fn subnet(&self, subnet: &Subnet) -> Value {
        json!({
            "href": self.href("subnets", &subnet.uuid),
            "uuid": subnet.uuid,
            "cidr": subnet.cidr.to_string(),
            "network": self.network_stub(&subnet.network),
            "gateway_address": subnet.gateway,
            "dns_servers": subnet.dns_servers,
            "tags": subnet.tags,
        })
    }
}

/// `flex-4-1` is called `Flex-4-1`.
pub(crate) fn capitalised(slug: &str) -> String {
    let mut letters = slug.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
