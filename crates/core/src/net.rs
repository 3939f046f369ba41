//! Reading addresses, networks and ports the way Kubernetes does: leniently in, canonically compared.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr},
    num::NonZeroU16,
};

use ipnet::IpNet;

use crate::error::{Error, Result};

/// Reads an IP address. Leading zeros in IPv4 parts are decimal, and an IPv4 address mapped into IPv6 is IPv4:
/// both as the Go programs that we replace read them.
#[must_use]
pub fn parse_ip(text: &str) -> Option<IpAddr> {
    if text.contains(':') {
        return match text.parse::<IpAddr>().ok()? {
            IpAddr::V6(v6) => Some(v6.to_ipv4_mapped().map_or(IpAddr::V6(v6), IpAddr::V4)),
            v4 @ IpAddr::V4(_) => Some(v4),
        };
    }
    let mut octets = [0_u8; 4];
    let mut parts = text.split('.');
    for octet in &mut octets {
        *octet = parse_octet(parts.next()?)?;
    }
    parts.next().is_none().then(|| IpAddr::V4(Ipv4Addr::from(octets)))
}

fn parse_octet(text: &str) -> Option<u8> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let significant = text.trim_start_matches('0');
    if !digits || significant.len() > 3 {
        return None;
    }
    if significant.is_empty() { Some(0) } else { significant.parse().ok() }
}

/// Reads a network, masking host bits away: `10.1.2.3/24` is `10.1.2.0/24`. `None` if it is not one.
#[must_use]
pub fn parse_cidr(text: &str) -> Option<IpNet> {
    let (address, length) = text.split_once('/')?;
    let plain = !length.is_empty() && length.len() <= 3 && length.bytes().all(|b| b.is_ascii_digit());
    let ip = parse_ip(address)?;
    IpNet::new(ip, plain.then(|| length.parse().ok())??).ok().map(|net| net.trunc())
}

/// Which of the two families an address belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IpFamily {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl IpFamily {
    /// The family of `ip`.
    #[must_use]
    pub const fn of(ip: IpAddr) -> Self {
        match ip {
            IpAddr::V4(_) => Self::V4,
            IpAddr::V6(_) => Self::V6,
        }
    }

    /// The name in the Kubernetes API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }
}

/// A valid port: 1 to 65,535.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port(NonZeroU16);

impl Port {
    /// Checks a number from Kubernetes or a cloud; the error names `field`.
    pub fn new(number: i64, field: &str) -> Result<Self> {
        u16::try_from(number)
            .ok()
            .and_then(NonZeroU16::new)
            .map(Self)
            .ok_or_else(|| Error::user_input(format!("{field}: {number} is not a port (1 to 65535)")))
    }

    /// The number, from 1 to 65,535.
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0.get()
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_leniently() {
        let table = [
            ("1.2.3.4", Some("1.2.3.4")),
            ("01.2.3.004", Some("1.2.3.4")),
            ("0000.0.0.0", Some("0.0.0.0")),
            ("255.255.255.255", Some("255.255.255.255")),
            ("256.0.0.1", None),
            ("1.2.3", None),
            ("1.2.3.4.5", None),
            ("1.2.3.", None),
            ("1.2.3.+4", None),
            ("1.2.3.4 ", None),
            ("", None),
            ("::ffff:1.2.3.4", Some("1.2.3.4")),
            ("abcd:0abc:00ab:0000:0000::1", Some("abcd:abc:ab::1")),
            ("::", Some("::")),
            ("fe80::1%eth0", None),
            ("abcd", None),
        ];
        for (text, want) in table {
            assert_eq!(parse_ip(text), want.map(|w| w.parse().unwrap()), "{text:?}");
        }
    }

    #[test]
    fn networks_lose_their_host_bits() {
        let table = [
            ("10.1.2.3/24", Some("10.1.2.0/24")),
            ("010.1.2.3/24", Some("10.1.2.0/24")),
            ("0.0.0.0/0", Some("0.0.0.0/0")),
            ("192.168.0.0/0", Some("0.0.0.0/0")),
            ("10.0.0.1/32", Some("10.0.0.1/32")),
            ("10.0.0.1/33", None),
            ("10.0.0.1/+8", None),
            ("10.0.0.1/", None),
            ("10.0.0.1/0032", None),
            ("10.0.0.1", None),
            ("foo/8", None),
            ("2001:db8::1/64", Some("2001:db8::/64")),
            ("2001:db8::1/129", None),
        ];
        for (text, want) in table {
            assert_eq!(parse_cidr(text), want.map(|w| w.parse().unwrap()), "{text:?}");
        }
    }

    #[test]
    fn ports_name_the_field_when_they_are_wrong() {
        assert_eq!(Port::new(443, "p").unwrap().get(), 443);
        assert_eq!(Port::new(65_535, "p").unwrap().to_string(), "65535");
        for bad in [0, -1, 65_536, i64::MAX] {
            let error = Port::new(bad, "spec.ports[0].port").unwrap_err();
            assert!(
                error.message().contains("spec.ports[0].port") && error.message().contains(&bad.to_string())
            );
        }
    }

    #[test]
    fn families_have_their_kubernetes_names() {
        assert_eq!(IpFamily::of("1.2.3.4".parse().unwrap()).as_str(), "IPv4");
        assert_eq!(IpFamily::of("::1".parse().unwrap()).as_str(), "IPv6");
    }
}
