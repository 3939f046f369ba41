//! Addresses in Services: reading, families, ranges.

use std::net::IpAddr;

use super::super::field::FieldErrors;

/// The family of an address, as Services name it.
pub(crate) fn family(ip: &str) -> &'static str {
    if ip.contains(':') { "IPv6" } else { "IPv4" }
}

pub(crate) fn other_family(family: &str) -> &'static str {
    if family == "IPv4" { "IPv6" } else { "IPv4" }
}

/// Complains about a text that is no address, unless it was accepted before.
pub(super) fn check_ip(path: &str, text: &str, known: &[String], errors: &mut FieldErrors) -> bool {
    if known.iter().any(|old| old == text) {
        return true;
    }
    match text.parse::<IpAddr>() {
        Ok(IpAddr::V6(six)) if six.to_ipv4_mapped().is_some() => {
            errors.invalid(path, text, "must not be an IPv4-mapped IPv6 address");
            false
        }
        Ok(_) => true,
        Err(_) if without_leading_zeros(text).parse::<IpAddr>().is_ok() => {
            errors.invalid(path, text, "must not have leading 0s");
            false
        }
        Err(_) => {
            errors.invalid(path, text, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
            false
        }
    }
}

fn without_leading_zeros(text: &str) -> String {
    let trim = |part: &str| match part.trim_start_matches('0') {
        "" if !part.is_empty() => "0".to_owned(),
        rest => rest.to_owned(),
    };
    text.split('.').map(trim).collect::<Vec<_>>().join(".")
}

/// Complains about a text that is no range, unless it was accepted before.
pub(super) fn check_cidr(path: &str, text: &str, known: &[String], errors: &mut FieldErrors) {
    if known.iter().any(|old| old == text) {
        return;
    }
    match text.parse::<ipnet::IpNet>() {
        Err(_) => {
            errors.invalid(path, text, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)");
        }
        Ok(range) if range.trunc() != range => {
            errors.invalid(path, text, "must not have bits set beyond the prefix length");
        }
        Ok(_) => {}
    }
}

/// Complains about addresses that no outside traffic can have.
pub(super) fn check_external(path: &str, text: &str, errors: &mut FieldErrors) {
    let Ok(ip) = text.parse::<IpAddr>() else {
        return;
    };
    let link_local = match ip {
        IpAddr::V4(four) => four.is_link_local(),
        IpAddr::V6(six) => six.is_unicast_link_local(),
    };
    if ip.is_unspecified() {
        errors.invalid(path, text, &format!("may not be unspecified ({text})"));
    }
    if ip.is_loopback() {
        errors.invalid(path, text, "may not be in the loopback range (127.0.0.0/8, ::1/128)");
    }
    if link_local {
        errors.invalid(path, text, "may not be in the link-local range (169.254.0.0/16, fe80::/10)");
    }
}

/// IPv6 addresses are better written in their one short form.
pub(super) fn ip_warning(path: &str, text: &str) -> Option<String> {
    match text.parse::<IpAddr>() {
        Ok(IpAddr::V6(six)) if six.to_string() != text => {
            Some(format!("{path}: IPv6 address {text:?} should be in RFC 5952 canonical format (\"{six}\")"))
        }
        _ => None,
    }
}

/// The same for ranges.
pub(super) fn cidr_warning(path: &str, text: &str) -> Option<String> {
    match text.parse::<ipnet::IpNet>() {
        Ok(range) if range.addr().is_ipv6() && range.to_string() != text => Some(format!(
            "{path}: IPv6 CIDR value {text:?} should be in RFC 5952 canonical format (\"{range}\")"
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_checked() {
        let table = [
            ("10.0.0.1", ""),
            ("2001:db8::1", ""),
            ("10.0.0.01", "must not have leading 0s"),
            ("::ffff:1.2.3.4", "IPv4-mapped"),
            ("x", "must be a valid IP address"),
        ];
        for (text, want) in table {
            let mut errors = FieldErrors::default();
            check_ip("p", text, &[], &mut errors);
            let found = errors.summary().unwrap_or_default();
            assert!(if want.is_empty() { found.is_empty() } else { found.contains(want) }, "{text}: {found}");
        }
        let mut errors = FieldErrors::default();
        assert!(check_ip("p", "odd", &["odd".to_owned()], &mut errors), "accepted before");
        check_cidr("p", "10.0.0.1/8", &[], &mut errors);
        check_external("p", "127.0.0.1", &mut errors);
        let found = errors.summary().unwrap();
        assert!(found.contains("beyond the prefix") && found.contains("loopback"), "{found}");
    }
}
