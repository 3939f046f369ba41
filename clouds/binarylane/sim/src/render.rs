//! Resources as the JSON of the API.

use std::net::Ipv4Addr;

use ipnet::Ipv4Net;
use jiff::{Timestamp, tz::TimeZone};
use serde_json::{Value, json};

use crate::{
    resources::{Action, Address, Balancer, Blocked, RouteEntry, Server, Vpc},
    settings::{IMAGES, REGIONS, SIZES, SimSettings},
    switches::Question,
};

pub(crate) fn time(at: Timestamp) -> String {
    at.to_zoned(TimeZone::UTC).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
}

pub(crate) fn region(slug: &str) -> Value {
    let name = REGIONS.iter().find(|(known, _)| *known == slug).map_or(slug, |(_, name)| *name);
    let sizes: Vec<_> = SIZES.iter().map(|(size, ..)| *size).collect();
    json!({
        "slug": slug, "name": name, "sizes": sizes, "available": true, "features": [],
        "name_servers": ["192.0.2.53", "192.0.2.54"],
    })
}

pub(crate) fn size(slug: &str) -> Value {
    // A size that a test made up is a small one.
    let (_, vcpus, memory, disk) =
        SIZES.iter().find(|(known, ..)| *known == slug).copied().unwrap_or(("", 1, 1024, 20));
    let regions: Vec<_> = REGIONS.iter().map(|(region, _)| *region).collect();
    json!({
        "slug": slug, "size_type": {"slug": "std", "name": "Standard"}, "available": true, "regions": regions,
        "price_monthly": 1.0, "price_hourly": 0.01, "disk": disk, "memory": memory, "transfer": 1.0,
        "excess_transfer_cost_per_gigabyte": 0.01, "vcpus": vcpus, "vcpu_units": "core",
        "options": {
            "disk_min": 20, "disk_max": 200, "disk_cost_per_additional_gigabyte": 0.1,
            "memory_max": 8192, "memory_cost_per_additional_megabyte": 0.01,
            "transfer_max": 10.0, "transfer_cost_per_additional_gigabyte": 0.01,
            "ipv4_addresses_max": 4, "ipv4_addresses_cost_per_address": 1.0, "discount_for_no_public_ipv4": 0.5,
            "daily_backups": 0, "weekly_backups": 0, "monthly_backups": 0,
            "backups_cost_per_backup_per_gigabyte": 0.01, "offsite_backups_cost_per_gigabyte": 0.01,
            "offsite_backup_frequency_cost": {
                "daily_per_gigabyte": 0.01, "weekly_per_gigabyte": 0.01, "monthly_per_gigabyte": 0.01,
            },
        },
    })
}

fn image(slug: &str) -> Value {
    let id = IMAGES.iter().find(|(_, known)| *known == slug).map_or(1, |(id, _)| *id);
    let regions: Vec<_> = REGIONS.iter().map(|(region, _)| *region).collect();
    json!({
        "id": id, "name": slug, "type": "custom", "distribution": "Linux", "slug": slug, "public": true,
        "regions": regions, "min_disk_size": 10, "size_gigabytes": 2.5, "status": "available",
        "distribution_info": {"image_id": id, "password_recovery": "online-change", "features": ["ssh", "user-data"]},
    })
}

/// A server, with nothing in its networks while it is being made.
pub(crate) fn server(server: &Server, settings: &SimSettings) -> Value {
    let size = size(&server.size);
    let status = match server.status.as_str() {
        "off" if settings.switches.off_says_active => "active",
        status => status,
    };
    let shown = json!({
        "id": server.id, "name": server.name, "status": status, "created_at": time(server.created_at),
        "memory": size.get("memory"), "vcpus": size.get("vcpus"), "disk": size.get("disk"),
        "vpc_id": server.vpc_id, "backup_ids": [], "features": [],
        "region": region(&server.region), "image": image(&server.image), "size": size, "size_slug": server.size,
        "networks": networks(server, settings),
        "disks": [{"id": server.id, "size_gigabytes": 60.0, "primary": true}],
        "backup_settings": {"backup_hour_of_day": 3, "backup_day_of_week": 0, "backup_day_of_month": 1},
        "cancelled_at": server.cancelled_at.map(time), "failover_ips": [],
        "host": {"display_name": server.host, "uptime_ms": 86_400_000},
        "password_change_supported": true, "permalink": null,
        "advanced_features": {"video_device": "virtio", "enabled_advanced_features": ["cloud-init"]},
    });
    if settings.is_newer() {
        return with(shown, [("is_under_maintenance", Value::Null)]);
    }
    shown
}

/// An object with more fields.
fn with<const N: usize>(mut object: Value, fields: [(&str, Value); N]) -> Value {
    if let Value::Object(object) = &mut object {
        object.extend(fields.map(|(name, value)| (name.to_owned(), value)));
    }
    object
}

fn networks(server: &Server, settings: &SimSettings) -> Value {
    let built = server.status != "new";
    let v4: Vec<_> = server.v4.iter().filter(|_| built).map(network).collect();
    let v6: Vec<_> = server.v6.iter().filter(|_| built).collect();
    let v6: Vec<_> =
        v6.iter().map(|address| json!({"ip_address": address, "type": "public", "netmask": 64})).collect();
    let shown = json!({
        "v4": v4, "v6": v6, "port_blocking": server.port_blocking, "recent_ddos": false,
        "separate_private_network_interface": false,
        // Only a server in a VPC has such a check.
        "source_and_destination_check": server.vpc_id.map(|_| server.source_and_destination_check),
    });
    if settings.is_newer() {
        let mac = format!(
            "02:00:00:{:02x}:{:02x}:{:02x}",
            server.id >> 16 & 0xff,
            server.id >> 8 & 0xff,
            server.id & 0xff
        );
        return with(shown, [("mac_address", mac.into())]);
    }
    shown
}

fn network(address: &Address) -> Value {
    let net = Ipv4Net::new(address.address, address.prefix).ok();
    let gateway = net.filter(|_| address.public).map(|net| Ipv4Addr::from_bits(net.network().to_bits() + 1));
    json!({
        "ip_address": address.address, "type": if address.public { "public" } else { "private" },
        "netmask": net.map(|net| net.netmask()), "gateway": gateway,
        "reverse_name": null, "nat_target": address.nat_target,
    })
}

pub(crate) fn rules(rules: &[String]) -> Value {
    rules.iter().map(|rule| json!({"entry_protocol": rule})).collect()
}

pub(crate) fn balancer(balancer: &Balancer) -> Value {
    json!({
        "id": balancer.id, "name": balancer.name, "status": balancer.status,
        "ip": balancer.ip.map_or_else(String::new, |ip| ip.to_string()),
        "created_at": time(balancer.created_at), "forwarding_rules": rules(&balancer.rules),
        "health_check": {"protocol": balancer.health_check.protocol, "path": balancer.health_check.path},
        "region": balancer.region.as_deref().map(region), "server_ids": balancer.server_ids,
    })
}

pub(crate) fn availability() -> Value {
    let regions: Vec<_> = REGIONS.iter().map(|(slug, _)| *slug).collect();
    json!({"load_balancer_availability_options": [
        {"anycast": false, "regions": regions, "price_monthly": 1.0, "price_hourly": 0.01},
        {"anycast": true, "regions": null, "price_monthly": 2.0, "price_hourly": 0.02},
    ]})
}

fn entry(entry: &RouteEntry) -> Value {
    json!({"router": entry.router, "destination": entry.destination, "description": entry.description})
}

pub(crate) fn vpc(vpc: &Vpc) -> Value {
    let entries: Vec<_> = vpc.route_entries.iter().map(entry).collect();
    json!({"id": vpc.id, "name": vpc.name, "ip_range": vpc.ip_range.to_string(), "route_entries": entries})
}

/// A member of a VPC, whose id is a text here.
pub(crate) fn member(server: &Server) -> Value {
    json!({
        "name": server.name, "resource_type": "server", "resource_id": server.id.to_string(),
        "created_at": time(server.created_at),
    })
}

pub(crate) fn action(action: &Action, settings: &SimSettings) -> Value {
    let done = action.status != "in-progress";
    let invoice = action.blocked.and_then(|blocked| match blocked {
        Blocked::Invoice(id) => Some(id),
        Blocked::Question(_) => None,
    });
    let question = action.blocked.and_then(|blocked| match blocked {
        Blocked::Question(Question::ContinueAfterPingFailure) => Some("continue-after-ping-failure"),
        Blocked::Question(Question::AllowUncleanPowerOff) => Some("allow-unclean-power-off"),
        Blocked::Invoice(_) => None,
    });
    let shown = json!({
        "id": action.id, "status": action.status, "type": action.kind, "started_at": time(action.started_at),
        "completed_at": action.completed_at.map(time), "resource_type": action.resource_type,
        "resource_id": action.resource_id,
        "region": action.region.as_deref().map(region), "region_slug": action.region,
        "progress": {
            "percent_complete": if done { 100 } else { 40 },
            "current_step": if done { Value::Null } else { "Working".into() },
            "completed_steps": if done { json!(["Queued", "Working"]) } else { json!(["Queued"]) },
        },
        "result_data": null, "blocking_invoice_id": invoice,
        "user_interaction_required": question.map(|question| json!({"interaction_type": question})),
    });
    if settings.is_newer() {
        // The reason tells what was attempted, and never why it failed.
        let reason = format!("Requested: {}", action.kind).into();
        let title = action.kind.clone().into();
        return with(shown, [("title", title), ("reason", reason), ("error_message", Value::Null)]);
    }
    shown
}

pub(crate) fn account() -> Value {
    json!({"account": {
        "email": "someone@example.com", "email_verified": true, "two_factor_authentication_enabled": false,
        "status": "active", "tax_code": {"name": "GST", "type": "scalar", "fixed_percent": 10.0},
        "configured_payment_methods": ["credit-card"], "additional_ipv4_limit": 10,
    }})
}
