//! Who may connect.

use std::net::IpAddr;

use ipnet::IpNet;

/// What becomes of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Everybody is let in.
    Open,
    /// Let in by the range at this position.
    By(usize),
    /// Not let in.
    Refused,
}

/// Finds the first range that has the client. An IPv4 client that came over an IPv6 socket is still an IPv4 client.
pub(crate) fn admit<'a>(ranges: impl IntoIterator<Item = &'a IpNet>, client: IpAddr) -> Admission {
    let client = client.to_canonical();
    let mut any = false;
    for (at, range) in ranges.into_iter().enumerate() {
        any = true;
        if range.contains(&client) {
            return Admission::By(at);
        }
    }
    if any { Admission::Refused } else { Admission::Open }
}

#[cfg(test)]
mod tests {
    use super::{Admission::*, *};

    #[test]
    fn the_first_range_that_has_the_client_lets_it_in() {
        let table: [(&str, &[&str], &str, Admission); 7] = [
            ("CL-60 no ranges: everybody", &[], "10.0.0.1", Open),
            ("CL-60 not in the only range", &["10.0.0.0/8"], "127.0.0.1", Refused),
            ("CL-60 in the second", &["10.0.0.0/8", "127.0.0.0/8"], "127.0.0.1", By(1)),
            ("CL-60 in both: the first counts", &["127.0.0.1/32", "127.0.0.0/8"], "127.0.0.1", By(0)),
            ("CL-60 mapped into IPv6", &["127.0.0.0/8"], "::ffff:127.0.0.1", By(0)),
            ("CL-60 of the other family", &["::/0"], "127.0.0.1", Refused),
            ("CL-60 IPv6", &["2001:db8::/32"], "2001:db8::7", By(0)),
        ];
        for (case, ranges, client, want) in table {
            let ranges: Vec<IpNet> = ranges.iter().map(|range| range.parse().unwrap()).collect();
            assert_eq!(admit(&ranges, client.parse().unwrap()), want, "{case}");
        }
    }
}
