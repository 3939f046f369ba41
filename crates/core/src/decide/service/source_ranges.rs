//! From where a load balancer takes traffic.

use std::{collections::BTreeSet, net::Ipv4Addr};

use ipnet::{IpNet, Ipv4Net};

use crate::{
    error::{Error, Result},
    net::parse_cidr,
    view::ServiceView,
};

/// The annotation that is read where the field is empty.
pub const SOURCE_RANGES_ANNOTATION: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";

const FIELD: &str = "spec.loadBalancerSourceRanges";

/// All of IPv4: what is meant where nothing is said.
const EVERYWHERE: IpNet = IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::UNSPECIFIED, 0));

/// The networks that may reach the load balancer, without host bits and without repetitions.
///
/// The field alone counts if it has entries, then the annotation, then everybody may. The error names every entry
/// that is no network.
pub fn source_ranges(service: &ServiceView) -> Result<BTreeSet<IpNet>> {
    if let Some(entries) = service.source_ranges.as_deref().filter(|list| !list.is_empty()) {
        return networks(FIELD, entries.iter().map(String::as_str));
    }
    match service.annotations.get(SOURCE_RANGES_ANNOTATION).map(|text| text.trim()) {
        None | Some("") => Ok([EVERYWHERE].into()),
        Some(text) => networks(SOURCE_RANGES_ANNOTATION, text.split(',')),
    }
}

fn networks<'a>(field: &str, entries: impl Iterator<Item = &'a str>) -> Result<BTreeSet<IpNet>> {
    let (mut good, mut bad) = (BTreeSet::new(), Vec::new());
    for entry in entries {
        match parse_cidr(entry.trim()) {
            Some(network) => _ = good.insert(network),
            None => bad.push(format!("{entry:?}")),
        }
    }
    if bad.is_empty() {
        return Ok(good);
    }
    let bad = bad.join(", ");
    Err(Error::user_input(format!("{field}: {bad}: not a network; write it like 192.0.2.0/24")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::service::testing::{annotated, service};

    fn by_annotation(text: &str) -> ServiceView {
        annotated(service(), SOURCE_RANGES_ANNOTATION, text)
    }

    fn by_field(text: &str) -> ServiceView {
        ServiceView { source_ranges: Some(text.split(',').map(str::to_owned).collect()), ..service() }
    }

    fn read(view: &ServiceView) -> Option<Vec<String>> {
        source_ranges(view).ok().map(|set| set.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn ranges_by_annotation_and_by_field() {
        let table = [
            ("FW-256", "10.0.0.1/33", None),
            ("FW-256", "foo.bar", None),
            ("FW-256", "10.0.0.1/32,*", None),
            ("FW-256", "10.0.0.1/32,", None),
            ("FW-256", "10.0.0.1/32, ", None),
            ("FW-256", "10.0.0.1", None),
            ("FW-257 one", "192.168.0.1/32", Some(vec!["192.168.0.1/32"])),
            ("FW-257 the same twice", "192.168.0.1/32,192.168.0.1/32", Some(vec!["192.168.0.1/32"])),
            ("the same network twice", "10.1.2.3/8,10.0.0.0/8", Some(vec!["10.0.0.0/8"])),
            ("FW-258 two", "10.0.0.1/32,10.0.0.2/32", Some(vec!["10.0.0.1/32", "10.0.0.2/32"])),
            ("FW-258 padded", "  10.0.0.1/32 , 10.0.0.2/32 ", Some(vec!["10.0.0.1/32", "10.0.0.2/32"])),
        ];
        for (case, text, want) in table {
            let want = want.map(|list| list.into_iter().map(str::to_owned).collect::<Vec<_>>());
            assert_eq!(read(&by_annotation(text)), want, "{case} annotation {text:?}");
            assert_eq!(read(&by_field(text)), want, "{case} field {text:?}");
        }
    }

    #[test]
    fn nothing_said_means_everybody() {
        let empty = ServiceView { source_ranges: Some(vec![]), ..service() };
        for (case, view) in [
            ("FW-259 nothing set", service()),
            ("FW-259 empty annotation", by_annotation("")),
            ("FW-259 blank annotation", by_annotation("  ")),
            ("an empty list", empty.clone()),
        ] {
            assert_eq!(source_ranges(&view), Ok([EVERYWHERE].into()), "{case}");
        }
        let fallback = annotated(empty, SOURCE_RANGES_ANNOTATION, "10.0.0.0/8");
        assert_eq!(read(&fallback), Some(vec!["10.0.0.0/8".to_owned()]));
        let both = annotated(by_field("10.0.0.0/8"), SOURCE_RANGES_ANNOTATION, "foo.bar");
        assert_eq!(read(&both), Some(vec!["10.0.0.0/8".to_owned()]), "the field alone counts");
    }

    #[test]
    fn when_everybody_may() {
        let table = [
            ("FW-260 only single addresses", "192.168.0.1/32,192.168.0.2/32", false),
            ("FW-261", "0.0.0.0/0", true),
            ("FW-261 with host bits", "192.168.0.0/0", true),
            ("FW-261 a mix", "192.168.0.1/32,0.0.0.0/0", true),
            ("all of IPv6 does not count", "::/0", false),
        ];
        for (case, text, want) in table {
            assert_eq!(source_ranges(&by_annotation(text)).unwrap().contains(&EVERYWHERE), want, "{case}");
        }
    }

    #[test]
    fn all_mistakes_are_named_at_once() {
        let error = source_ranges(&by_field("a,10.0.0.0/8,b")).unwrap_err();
        assert_eq!(
            error.message(),
            "spec.loadBalancerSourceRanges: \"a\", \"b\": not a network; write it like 192.0.2.0/24",
            "L8-103"
        );
        let error = source_ranges(&by_annotation("a")).unwrap_err();
        assert!(error.message().starts_with(SOURCE_RANGES_ANNOTATION), "L8-104");
    }
}
