//! Every annotation, declared once: reading, refusals and the reference page follow from this table.

#![allow(missing_docs, reason = "each key states its meaning in its own declaration")]

use cloudberth_core::{
    annotation::{Alias, By, Key, OneOf, Pattern, Table},
    lb::Impact,
};

use crate::id::parse_number;

/// What is forwarded: port 80, port 443, or both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Protocols {
    pub http: bool,
    pub https: bool,
}

impl Protocols {
    fn parse(text: &str) -> Result<Self, String> {
        let mut all = Self::default();
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            match word.to_ascii_lowercase().as_str() {
                "http" => all.http = true,
                "https" => all.https = true,
                _ => return Err(String::new()),
            }
        }
        if all == Self::default() { Err(String::new()) } else { Ok(all) }
    }

    /// The words of the API.
    pub fn words(self) -> Vec<&'static str> {
        [(self.http, "http"), (self.https, "https")]
            .into_iter()
            .filter_map(|(on, word)| on.then_some(word))
            .collect()
    }
}

/// What a path of a health check must be, as messages say it.
pub(crate) const A_PATH: &str =
    "a path that begins with / and holds only letters, digits and / . ? = & + % _ -";

/// Whether the API takes a path for health checks.
pub(crate) fn is_path(text: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b"/.?=&+%_-".contains(&b);
    text.starts_with('/') && text.bytes().all(fits)
}

/// The region of this word; `None` for the one that means everywhere, or none at all.
pub(crate) fn place(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty() && !text.eq_ignore_ascii_case(ANYCAST)).then(|| text.to_owned())
}

/// A load balancer in no region.
pub(crate) const ANYCAST: &str = "anycast";

pub static PROTOCOL: Key<By<Protocols>> = Key::new(
    "service.beta.kubernetes.io/binarylane-loadbalancer-protocol",
    By::new("http, https, or both with a comma between them (in any case)", Protocols::parse),
)
.derived("the ports: 80 is http, 443 is https")
.impact(Impact::Considerable)
.about("What is forwarded. Each protocol needs its port in the Service; a port that is left out is not forwarded.");

pub static HEALTH_CHECK_PROTOCOL: Key<OneOf<&'static str>> = Key::new(
    "service.beta.kubernetes.io/binarylane-loadbalancer-health-check-protocol",
    OneOf::any_case(&[("http", "http"), ("https", "https"), ("both", "both")]),
)
.aliases(&[Alias::new("service.beta.kubernetes.io/binarylane-loadbalancer-healthcheck-protocol")])
.derived("what is forwarded; both, if both are")
.impact(Impact::Minimal)
.about("How nodes are checked, on their own addresses. If http and https are forwarded it has to be both.");

pub static HEALTH_CHECK_PATH: Key<Pattern> = Key::new(
    "service.beta.kubernetes.io/binarylane-loadbalancer-health-check-path",
    Pattern::new(A_PATH, is_path),
)
.aliases(&[Alias::new("service.beta.kubernetes.io/binarylane-loadbalancer-healthcheck-path")])
.derived("`/`, or what the file of `--cloud-config` says")
.impact(Impact::Minimal)
.about("The path that is asked for on every node.");

pub static ID: Key<By<i64>> = Key::new(
    "service.beta.kubernetes.io/binarylane-loadbalancer-id",
    By::new("the id of a load balancer, which is a positive number", |text| {
        parse_number(text).ok_or_else(String::new)
    }),
)
.aliases(&[Alias::new("binarylane.com.au/load-balancer-id").lenient()])
.lenient()
.recorded()
.about("The id of the load balancer. Set it by hand only to adopt one.");

pub static REGION: Key<Pattern> = Key::new(
    "service.beta.kubernetes.io/binarylane-loadbalancer-region",
    Pattern::new("the slug of a region, such as syd, or anycast", |text| {
        text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    }),
)
.derived("`BINARYLANE_REGION`, else anycast")
.impact(Impact::Major)
.about("Where the load balancer is; anycast is everywhere. It cannot be changed: a change is refused.");

/// All of them. An empty value counts as not set.
pub static TABLE: Table = Table::new(&[&PROTOCOL, &HEALTH_CHECK_PROTOCOL, &HEALTH_CHECK_PATH, &ID, &REGION])
    .watching(&["service.beta.kubernetes.io/binarylane-"])
    .empty_is_absent();

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sound() {
        assert_eq!(TABLE.flaws(), [""; 0]);
    }

    #[test]
    fn protocols_are_a_list_in_any_case() {
        let (http, https) = (Protocols { http: true, https: false }, Protocols { http: false, https: true });
        let table = [
            ("BL-59", "HTTPS", Some(https)),
            ("", "http", Some(http)),
            ("", " http , HTTP,", Some(http)),
            ("", "https,http", Some(Protocols { http: true, https: true })),
            ("BL-61", "tcp", None),
            ("BL-61", "http,tcp", None),
            ("", ",", None),
        ];
        for (case, text, want) in table {
            assert_eq!(Protocols::parse(text).ok(), want, "{case} {text:?}");
        }
    }

    #[test]
    fn a_path_is_what_the_api_takes() {
        for good in ["/", "/health", "/a/b.c?d=e&f=%20+g_h-i"] {
            assert!(is_path(good), "{good}");
        }
        for bad in ["", "health", "/a b", "/ä", "/a\n", "/a#b", "http://h/"] {
            assert!(!is_path(bad), "BL-63 {bad:?}");
        }
    }
}
