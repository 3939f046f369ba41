//! Clients that begin a TCP handshake and never end it, in a network that has nothing but loopback.
//!
//! The kernel answers them, nobody answers the kernel, and it keeps them as half-open connections. Sending such segments
//! takes rights that every user has in a network of their own, where the kernel lets users have one.

use std::{
    ffi::OsStr,
    io,
    net::{Ipv4Addr, SocketAddrV4},
    process::Command,
};

use socket2::{Domain, Protocol, SockAddr, Socket, Type};

/// The network for measurements of RFC 2544. What is sent there goes to loopback, and nobody is there to take it.
const NOBODY: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 0);
/// How many of its addresses are used.
const CLIENTS: u32 = 100_000;
const SETUP: &str = "ip link set lo up && ip route add 198.18.0.0/15 dev lo && exec \"$@\"";
const SYN: u8 = 2;
/// The number of TCP in IP headers.
const TCP: u8 = 6;

/// Starts a program in a network of its own, whose addresses are those of loopback.
pub fn in_a_network_of_its_own(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--net", "sh", "-c", SETUP, "sh"]).arg(program);
    command
}

/// Why there can be no such network here, if so.
pub fn why_no_network() -> Option<String> {
    match in_a_network_of_its_own("true").output() {
        Err(why) => Some(format!("unshare: {why}")),
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}

/// Sends the first segment of handshakes.
#[derive(Debug)]
pub struct HalfOpen {
    socket: Socket,
    sent: u32,
}

impl HalfOpen {
    /// Fails without the right to send what one likes.
    pub fn new() -> io::Result<Self> {
        let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::TCP))?;
        socket.set_header_included_v4(true)?;
        Ok(Self { socket, sent: 0 })
    }

    /// Begins so many handshakes, each from another address.
    pub fn begin(&mut self, to: SocketAddrV4, count: u32) -> io::Result<()> {
        for _ in 0..count {
            self.sent = self.sent % CLIENTS + 1;
            let from = SocketAddrV4::new(Ipv4Addr::from_bits(NOBODY.to_bits() + self.sent), 40_000);
            self.socket.send_to(&packet(from, to), &SockAddr::from(to))?;
        }
        Ok(())
    }

    /// How many half-open connections the kernel holds at an address.
    pub fn held(at: SocketAddrV4) -> io::Result<usize> {
        let table = std::fs::read_to_string("/proc/self/net/tcp")?;
        Ok(table.lines().filter(|line| is_half_open(line, at)).count())
    }
}

/// A line: number, local address, remote address, state; 03 is a handshake that the other side has begun.
fn is_half_open(line: &str, at: SocketAddrV4) -> bool {
    let local = format!("{:08X}:{:04X}", u32::from_ne_bytes(at.ip().octets()), at.port());
    let mut words = line.split_whitespace().skip(1);
    words.next() == Some(local.as_str()) && words.nth(1) == Some("03")
}

fn packet(from: SocketAddrV4, to: SocketAddrV4) -> Vec<u8> {
    let addresses = [from.ip().octets(), to.ip().octets()].concat();
    let header = |checksum: u16| {
        let mut tcp = Vec::with_capacity(20);
        tcp.extend(from.port().to_be_bytes());
        tcp.extend(to.port().to_be_bytes());
        // Sequence number, nothing acknowledged, five words of header, the window.
        tcp.extend([0, 0, 0, 1, 0, 0, 0, 0, 5 << 4, SYN, 0xff, 0xff]);
        tcp.extend(checksum.to_be_bytes());
        tcp.extend([0, 0]);
        tcp
    };
    let pseudo = [addresses.as_slice(), &[0, TCP, 0, 20], &header(0)].concat();
    // Version and length, 40 bytes in all, 64 hops; the kernel fills in the checksum of this part.
    let ip = [0x45, 0, 0, 40, 0, 0, 0, 0, 64, TCP, 0, 0];
    [ip.as_slice(), &addresses, &header(checksum(&pseudo))].concat()
}

/// The checksum of the internet protocols.
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| match *pair {
        [high, low] => u16::from_be_bytes([high, low]),
        [high] => u16::from_be_bytes([high, 0]),
        _ => 0,
    });
    // The carry of each addition is added at the other end.
    !words.fold(0_u16, |sum, word| {
        let (sum, carried) = sum.overflowing_add(word);
        sum.wrapping_add(u16::from(carried))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_have_the_checksum_that_receivers_compute() {
        // The example of RFC 1071.
        assert_eq!(checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
        assert_eq!(checksum(&[0xff, 0xff, 0x01]), !0x0100, "an odd byte, and a carry");
        let (from, to) = ("198.18.0.7:40000".parse().unwrap(), "127.77.0.9:8080".parse().unwrap());
        let packet = packet(from, to);
        let received = [&packet[12..20], &[0, TCP, 0, 20], &packet[20..]].concat();
        assert_eq!((packet.len(), checksum(&received)), (40, 0), "{packet:?}");
    }

    #[test]
    fn half_open_connections_are_told_from_others() {
        let at = "127.77.0.9:8080".parse().unwrap();
        let local = format!("{:08X}:1F90", u32::from_ne_bytes([127, 77, 0, 9]));
        let line = |local: &str, state: &str| format!("  0: {local} 010012C6:9C40 {state} 00000000:00000000");
        assert!(is_half_open(&line(&local, "03"), at));
        assert!(!is_half_open(&line(&local, "01"), at), "established");
        assert!(!is_half_open(&line("0900007F:1F90", "03"), at), "elsewhere");
        assert!(!is_half_open("  sl  local_address rem_address   st", at));
    }
}
