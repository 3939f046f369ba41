//! What a firewall rule may say.

use ipnet::IpNet;

use super::World;
use crate::{fields::Fields, resources::FirewallRule};

/// How many entries a list of ports may have.
const PORTS: usize = 15;

impl World {
    /// Puts what is given into a rule, and checks the whole of it.
    pub(super) fn read_rule(&self, rule: &mut FirewallRule, fields: &mut Fields<'_>) {
        fields.set_text("source", &mut rule.source);
        fields.set_text("source_port", &mut rule.source_port);
        fields.set_text("destination", &mut rule.destination);
        fields.set_text("destination_port", &mut rule.destination_port);
        fields.set_text("protocol", &mut rule.protocol);
        fields.set_text("icmp_type_name", &mut rule.icmp_type_name);
        fields.set_text("description", &mut rule.description);
        if rule.source.is_some() == rule.destination.is_some() {
            fields.mistake("exactly one of source and destination must be given");
        }
        for (name, address) in [("source", &rule.source), ("destination", &rule.destination)] {
            if address.as_ref().is_some_and(|address| !self.is_address(address)) {
                fields.mistake(&format!("{name} must be any, an address, a network or the id of something"));
            }
        }
        let protocol = rule.protocol.as_deref();
        let known = |protocol| matches!(protocol, "tcp" | "udp" | "icmp") || protocol.parse::<u8>().is_ok();
        if protocol.is_some_and(|protocol| !known(protocol)) {
            fields.mistake("protocol must be tcp, udp, icmp or a number");
        }
        for (name, ports) in
            [("source_port", &rule.source_port), ("destination_port", &rule.destination_port)]
        {
            let Some(ports) = ports else { continue };
            if !matches!(protocol, Some("tcp" | "udp")) {
                fields.mistake(&format!("{name} is only for tcp and udp"));
            }
            if let Err(why) = check_ports(ports) {
                fields.mistake(&format!("{name} {why}"));
            }
        }
        if rule.icmp_type_name.is_some() && protocol != Some("icmp") {
            fields.mistake("icmp_type_name is only for icmp");
        }
    }

    fn is_address(&self, text: &str) -> bool {
        let resources = &self.resources;
        text == "any"
            || text.parse::<std::net::IpAddr>().is_ok()
            || text.parse::<IpNet>().is_ok()
            || self.has_server(text)
            || resources.groups.contains_key(text)
            || resources.balancers.contains_key(text)
    }
}

/// A port, a range of ports, or a list of ports.
fn check_ports(text: &str) -> Result<(), String> {
    let port = |text: &str| text.parse::<u16>().ok().filter(|port| *port > 0);
    let range = |text: &str| {
        let (first, last) = text.split_once(['-', ':'])?;
        Some((port(first)?, port(last)?)).filter(|(first, last)| first <= last)
    };
    if range(text).is_some() {
        return Ok(());
    }
    let entries: Vec<_> = text.split(',').collect();
    match entries.len() {
        count if count > PORTS => Err(format!("has {count} entries, and {PORTS} are allowed")),
        _ if entries.iter().all(|entry| port(entry).is_some()) => Ok(()),
        _ => Err("must be a port, a list of ports or a range of ports".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_one_several_or_a_range() {
        let many = |count: usize| vec!["30000"; count].join(",");
        let table = [
            ("80".to_owned(), true),
            ("80,443".to_owned(), true),
            ("31347,31348,8080".to_owned(), true),
            ("1024-65535".to_owned(), true),
            (many(15), true),
            (many(16), false),
            (String::new(), false),
            ("0".to_owned(), false),
            ("80, 443".to_owned(), false),
            ("443-80".to_owned(), false),
            ("65536".to_owned(), false),
            ("http".to_owned(), false),
        ];
        for (text, good) in table {
            assert_eq!(check_ports(&text).is_ok(), good, "{text:?}");
        }
    }
}
