//! The header of the PROXY protocol, which tells a backend who its client is.

use std::net::{IpAddr, SocketAddr};

use super::config::ProxyProtocol;

/// What a v2 header begins with: bytes that no text protocol would accept.
const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";
/// Version 2, command PROXY: on behalf of a client.
const VERSION_AND_COMMAND: u8 = 0x21;
/// A TCP stream over IPv4 or IPv6.
const TCP4: u8 = 0x11;
const TCP6: u8 = 0x21;

/// The header for a client that connected to `destination`; empty if there is none to send.
pub(crate) fn encode(version: ProxyProtocol, client: SocketAddr, destination: SocketAddr) -> Vec<u8> {
    match version {
        ProxyProtocol::None => Vec::new(),
        ProxyProtocol::V1 => text(client, destination),
        ProxyProtocol::V2 => binary(client, destination),
    }
}

fn text(client: SocketAddr, destination: SocketAddr) -> Vec<u8> {
    let (from, to) = (client.ip().to_canonical(), destination.ip().to_canonical());
    let family = match (from, to) {
        (IpAddr::V4(_), IpAddr::V4(_)) => "TCP4",
        (IpAddr::V6(_), IpAddr::V6(_)) => "TCP6",
        // Cannot come from one socket. The protocol has a word for what cannot be said.
        _ => return b"PROXY UNKNOWN\r\n".to_vec(),
    };
    format!("PROXY {family} {from} {to} {} {}\r\n", client.port(), destination.port()).into_bytes()
}

fn binary(client: SocketAddr, destination: SocketAddr) -> Vec<u8> {
    let mut header = SIGNATURE.to_vec();
    header.push(VERSION_AND_COMMAND);
    match (client.ip().to_canonical(), destination.ip().to_canonical()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            header.extend([TCP4, 0, 12]);
            header.extend(from.octets());
            header.extend(to.octets());
        }
        (from, to) => {
            header.extend([TCP6, 0, 36]);
            for address in [from, to] {
                header.extend(match address {
                    IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
                    IpAddr::V6(v6) => v6.octets(),
                });
            }
        }
    }
    header.extend(client.port().to_be_bytes());
    header.extend(destination.port().to_be_bytes());
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(version: ProxyProtocol, client: &str, destination: &str) -> Vec<u8> {
        encode(version, client.parse().unwrap(), destination.parse().unwrap())
    }

    #[test]
    fn the_text_header_names_both_ends() {
        let table = [
            ("CL-62 IPv4", "10.1.2.3:40000", "127.77.0.9:80", "PROXY TCP4 10.1.2.3 127.77.0.9 40000 80\r\n"),
            ("CL-62 IPv6", "[::1]:65535", "[::1]:8080", "PROXY TCP6 ::1 ::1 65535 8080\r\n"),
            ("CL-62 mapped", "[::ffff:10.1.2.3]:1", "127.0.0.1:2", "PROXY TCP4 10.1.2.3 127.0.0.1 1 2\r\n"),
            ("CL-62 mixed", "[::1]:1", "127.0.0.1:2", "PROXY UNKNOWN\r\n"),
        ];
        for (case, client, destination, want) in table {
            assert_eq!(
                String::from_utf8(of(ProxyProtocol::V1, client, destination)).unwrap(),
                want,
                "{case}"
            );
        }
    }

    #[test]
    fn the_binary_header_names_both_ends() {
        let signature = [0x0d, 0x0a, 0x0d, 0x0a, 0, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a];
        let v4 = of(ProxyProtocol::V2, "10.1.2.3:40000", "127.77.0.9:80");
        let rest = [0x21, 0x11, 0, 12, 10, 1, 2, 3, 127, 77, 0, 9, 0x9c, 0x40, 0, 80];
        assert_eq!(v4, [&signature[..], &rest[..]].concat(), "CL-62 IPv4");

        let v6 = of(ProxyProtocol::V2, "[2001:db8::1]:258", "[::1]:8080");
        assert_eq!(v6.len(), 16 + 36, "CL-62 IPv6 is as long as it says");
        assert_eq!(v6[12..16], [0x21, 0x21, 0, 36], "CL-62 IPv6");
        assert_eq!(v6[16..20], [0x20, 0x01, 0x0d, 0xb8], "CL-62 the client comes first");
        assert_eq!(
            v6[47..],
            [1, 1, 2, 0x1f, 0x90],
            "CL-62 the last byte of the destination, then both ports"
        );
    }

    #[test]
    fn nothing_is_sent_unasked() {
        assert!(of(ProxyProtocol::None, "10.1.2.3:40000", "127.77.0.9:80").is_empty(), "CL-62 no header");
    }
}
