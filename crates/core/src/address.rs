//! Addresses of a node, in the cloud's order and spelling.

use std::{fmt, net::IpAddr, str::FromStr};

use crate::{
    error::{Error, Result},
    net,
};

/// The kinds that Kubernetes knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AddressKind {
    /// The name by which the node calls itself.
    Hostname,
    /// An address inside the cloud's network.
    InternalIp,
    /// An address that the world can reach.
    ExternalIp,
    /// A name inside the cloud's network.
    InternalDns,
    /// A name that the world can resolve.
    ExternalDns,
}

impl AddressKind {
    /// The name in the Kubernetes API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hostname => "Hostname",
            Self::InternalIp => "InternalIP",
            Self::ExternalIp => "ExternalIP",
            Self::InternalDns => "InternalDNS",
            Self::ExternalDns => "ExternalDNS",
        }
    }
}

impl fmt::Display for AddressKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for AddressKind {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        [Self::Hostname, Self::InternalIp, Self::ExternalIp, Self::InternalDns, Self::ExternalDns]
            .into_iter()
            .find(|kind| kind.as_str() == text)
            .ok_or_else(|| Error::user_input(format!("{text:?} is not a kind of node address")))
    }
}

/// One entry of a node's address list. The text is kept as the cloud wrote it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeAddress {
    kind: AddressKind,
    address: String,
}

impl NodeAddress {
    /// An address of `kind`; refused when empty, or when an IP kind does not hold an IP address.
    pub fn new(kind: AddressKind, address: &str) -> Result<Self> {
        let wants_ip = matches!(kind, AddressKind::InternalIp | AddressKind::ExternalIp);
        if address.is_empty() || (wants_ip && net::parse_ip(address).is_none()) {
            return Err(Error::permanent(format!("{address:?} is not an address of kind {kind}")));
        }
        Ok(Self { kind, address: address.to_owned() })
    }

    /// An entry from Kubernetes, taken as it is.
    #[must_use]
    pub fn recorded(kind: AddressKind, address: &str) -> Self {
        Self { kind, address: address.to_owned() }
    }

    /// The kind that it was made with.
    #[must_use]
    pub const fn kind(&self) -> AddressKind {
        self.kind
    }

    /// The address as the cloud wrote it.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Its numeric value, if the text is an IP address (an IP-valued host name counts).
    #[must_use]
    pub fn ip(&self) -> Option<IpAddr> {
        net::parse_ip(&self.address)
    }
}

impl fmt::Display for NodeAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_print_and_parse_as_kubernetes_spells_them() {
        for text in ["Hostname", "InternalIP", "ExternalIP", "InternalDNS", "ExternalDNS"] {
            assert_eq!(text.parse::<AddressKind>().unwrap().to_string(), text);
        }
        assert!("internalip".parse::<AddressKind>().is_err());
    }

    #[test]
    fn an_ip_kind_holds_an_ip_and_keeps_its_spelling() {
        let v6 = NodeAddress::new(AddressKind::InternalIp, "2001:DB8:0::1").unwrap();
        assert_eq!(v6.address(), "2001:DB8:0::1");
        assert_eq!(v6.ip(), Some("2001:db8::1".parse().unwrap()));
        assert_eq!(v6.to_string(), "InternalIP 2001:DB8:0::1");
        assert_eq!(v6.kind(), AddressKind::InternalIp);
        let table = [
            (AddressKind::InternalIp, "node-1", false),
            (AddressKind::ExternalIp, "", false),
            (AddressKind::ExternalIp, "not an ip", false),
            (AddressKind::Hostname, "node-1", true),
            (AddressKind::Hostname, "", false),
            (AddressKind::InternalDns, "node-1.internal", true),
        ];
        for (kind, text, good) in table {
            assert_eq!(NodeAddress::new(kind, text).is_ok(), good, "{kind} {text:?}");
        }
        assert_eq!(NodeAddress::recorded(AddressKind::InternalIp, "odd").ip(), None);
    }
}
