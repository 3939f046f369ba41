//! What is written on the Service.

use cloudberth_core::{
    lb::{Desired, Publish},
    view::{Ingress, IpMode},
};

use super::{balancer::Applied, cloud_ip::addresses, domains::canonical};
use crate::{
    annotations::{APPLIED, BALANCER},
    settings::Switches,
    wire::{CloudIp, LoadBalancer},
};

/// The names of the Cloud IP that leads to the load balancer, and what is known to be written. `None` where there is nothing
/// to say.
pub(super) fn publish(
    want: &Desired,
    live: &LoadBalancer,
    mapped: Option<&CloudIp>,
    applied: Applied,
    switches: Switches,
) -> Option<Publish> {
    let mut publish = Publish::default();
    if let Some(cloud_ip) = mapped {
        let wanted = ingress(cloud_ip, switches);
        // A status that says the same in another spelling is left as it is.
        if cleaned(&want.service.ingress) != wanted {
            publish.ingress = Some(wanted);
        }
    }
    if applied.is_ours {
        publish.annotations.insert(BALANCER.name().to_owned(), live.id.clone());
    }
    publish.annotations.extend(applied.digest.map(|digest| (APPLIED.name().to_owned(), digest)));
    (publish != Publish::default()).then_some(publish)
}

/// The reverse name first, then the other one.
fn ingress(cloud_ip: &CloudIp, switches: Switches) -> Vec<Ingress> {
    let mut entries: Vec<Ingress> = Vec::new();
    for name in [&cloud_ip.reverse_dns, &cloud_ip.fqdn].into_iter().flatten() {
        let hostname = canonical(name);
        let known = entries.iter().any(|entry| entry.hostname.as_deref() == Some(&hostname));
        if !known && is_dns_name(&hostname) {
            entries.push(Ingress { hostname: Some(hostname), ..Ingress::default() });
        }
    }
    if switches.publish_addresses {
        entries.extend(addresses(cloud_ip).iter().map(|ip| Ingress {
            ip: Some(ip.to_string()),
            ip_mode: Some(IpMode::Proxy),
            ..Ingress::default()
        }));
    }
    entries
}

/// What a status means, without repetitions and in one spelling.
fn cleaned(ingress: &[Ingress]) -> Vec<Ingress> {
    let mut entries: Vec<Ingress> = Vec::new();
    for entry in ingress {
        let entry = Ingress { hostname: entry.hostname.as_deref().map(canonical), ..entry.clone() };
        if !entries.contains(&entry) {
            entries.push(entry);
        }
    }
    entries
}

/// Whether Kubernetes takes it for a name.
fn is_dns_name(name: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let label = |part: &str| {
        let bytes = part.as_bytes();
        let edges = bytes.first().zip(bytes.last()).is_some_and(|(a, z)| inner(*a) && inner(*z));
        edges && part.len() <= 63 && part.bytes().all(|b| inner(b) || b == b'-')
    };
    name.len() <= 253 && name.split('.').all(label)
}
