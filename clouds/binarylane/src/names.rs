//! The generated names of load balancers.
//!
//! The rule is that of the replaced program, `k8s-<cluster>-<namespace>-<name>`, made fit for a host name. It is not
//! unambiguous: `a-b`/`c` and `a`/`b-c` give one name. Where two Services do, both get a name with a hash.

use cloudberth_core::{ServiceView, lb::intended_name};
use ring::digest::{SHA256, digest};

use crate::settings::PREFIX;

/// The longest label of a host name.
const LIMIT: usize = 63;
/// How much of a name stands before its hash.
const HEAD: usize = 54;

/// What the load balancer of a Service may be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Names {
    /// What a new one is called, unless another Service would call its own the same.
    pub(crate) base: String,
    /// What it is called then. No other Service has this name.
    pub(crate) hashed: String,
    /// Other names under which there may be one, which another Service might have too.
    plain: Vec<String>,
    /// Other names that no other Service has.
    unique: Vec<String>,
}

impl Names {
    pub(crate) fn of(service: &ServiceView, cluster: &str, prefix: &str) -> Self {
        let ServiceView { namespace, name, .. } = service;
        let rest = format!("{cluster}-{namespace}-{name}");
        let hash = hash(&format!("{cluster}/{namespace}/{name}"));
        let (base, hashed) = both(&format!("{prefix}-{rest}"), &hash);
        let raw = format!("{PREFIX}-{rest}");
        let (old_base, old_hashed) = both(&raw, &hash);
        let mut names = Self { base, hashed, plain: vec![raw], unique: vec![old_hashed.clone()] };
        if old_base == old_hashed { &mut names.unique } else { &mut names.plain }.push(old_base);
        // A prefix that was changed since the creation was sent.
        let intended = intended_name(service).map(str::to_owned);
        names.plain.extend(intended.filter(|intended| !names.is_unique(intended)));
        names
    }

    /// Whether nobody but this Service has a load balancer of this name.
    pub(crate) fn is_unique(&self, name: &str) -> bool {
        let mut unique = self.unique.iter().chain([&self.hashed]);
        unique.any(|own| own.eq_ignore_ascii_case(name))
    }

    /// Whether the name is one of this Service's, in any case.
    pub(crate) fn fit(&self, name: &str) -> bool {
        let mut plain = self.plain.iter().chain([&self.base]);
        self.is_unique(name) || plain.any(|own| own.eq_ignore_ascii_case(name))
    }

    /// Whether it is exactly what this program would call it.
    pub(crate) fn generated(&self, name: &str) -> bool {
        name == self.base || name == self.hashed
    }
}

/// How the names of all load balancers of a cluster begin, in lower case: as they are now, and as the replaced program made
/// them.
pub(crate) fn beginnings(cluster: &str, prefix: &str) -> [String; 2] {
    [prefix, PREFIX].map(|prefix| format!("{}-", normalise(&format!("{prefix}-{cluster}"))))
}

/// The name, and the name with the hash. One that is too long has the hash anyway.
fn both(full: &str, hash: &str) -> (String, String) {
    let full = normalise(full);
    let head = full.get(..HEAD).unwrap_or(&full).trim_end_matches('-');
    let hashed = format!("{head}-{hash}");
    if full.len() > LIMIT { (hashed.clone(), hashed) } else { (full, hashed) }
}

/// Lower case, and a dash for everything that a host name cannot hold.
fn normalise(text: &str) -> String {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let lower = text.to_lowercase();
    let text: String = lower.chars().map(|c| if fits(c) { c } else { '-' }).collect();
    text.trim_matches('-').to_owned()
}

fn hash(text: &str) -> String {
    let digest = digest(&SHA256, text.as_bytes());
    let first = digest.as_ref().iter().take(4).fold(0_u32, |number, byte| number << 8 | u32::from(*byte));
    format!("{first:08x}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(cluster: &str, namespace: &str, name: &str) -> Names {
        let service =
            ServiceView { namespace: namespace.to_owned(), name: name.to_owned(), ..ServiceView::default() };
        Names::of(&service, cluster, "k8s")
    }

    #[test]
    fn the_rule_is_that_of_the_replaced_program() {
        let base = |cluster: &str, namespace: &str, name: &str| names(cluster, namespace, name).base;
        assert_eq!(
            base("test-cluster", "default", "test-service"),
            "k8s-test-cluster-default-test-service",
            "BL-65"
        );
        assert_eq!(base("My_Cluster", "default", "web"), "k8s-my-cluster-default-web", "BL-66");
        assert_eq!(base("", "default", "web"), "k8s--default-web");
        let own = names("Prod", "default", "web");
        for name in ["k8s-prod-default-web", "k8s-Prod-default-web", &own.hashed] {
            assert!(own.fit(name), "BL-139 {name}");
        }
        assert!(!own.fit("k8s-default-web") && !own.fit("k8s-prod-default-web2"), "BL-139");
        let raw = names("my_cluster", "default", "web");
        assert!(raw.fit("k8s-my_cluster-default-web"), "BL-139");
    }

    #[test]
    fn a_long_name_is_cut_and_stays_what_it_is() {
        let long = "x".repeat(63);
        let first = names("prod", &long, &long);
        assert_eq!(first.base, first.hashed, "BL-67");
        assert_eq!(first.base.len(), 63, "BL-67");
        assert_eq!(
            first.base,
            format!("k8s-prod-{}-{}", "x".repeat(45), hash(&format!("prod/{long}/{long}"))),
            "BL-67"
        );
        assert_eq!(hash("prod/shop/web"), "63bb647e", "BL-67 in every release");
        let other = names("prod", &long, &format!("{}y", "x".repeat(62)));
        assert_ne!(first.base, other.base, "BL-67");
    }

    #[test]
    fn two_services_of_one_name_have_different_hashes() {
        let (one, two) = (names("prod", "a-b", "c"), names("prod", "a", "b-c"));
        assert_eq!(one.base, two.base, "BL-68");
        assert_ne!(one.hashed, two.hashed, "BL-68");
        assert!(one.is_unique(&one.hashed) && !one.is_unique(&one.base) && !one.fit(&two.hashed), "BL-68");
    }

    #[test]
    fn all_names_of_a_cluster_begin_alike() {
        for (cluster, namespace, name) in
            [("Prod", "default", "web"), ("my_cluster", "a-b", "c"), ("", "n", "x")]
        {
            let long = "y".repeat(63);
            let begins = beginnings(cluster, "k8s");
            for names in [names(cluster, namespace, name), names(cluster, namespace, &long)] {
                for name in [&names.base, &names.hashed] {
                    assert!(begins.iter().any(|begin| name.starts_with(begin.as_str())), "{name} {begins:?}");
                }
            }
        }
        assert_eq!(beginnings("prod", "lb"), ["lb-prod-", "k8s-prod-"]);
    }

    #[test]
    fn another_prefix_is_for_new_ones_and_the_old_one_is_still_found() {
        let service =
            ServiceView { namespace: "shop".to_owned(), name: "web".to_owned(), ..ServiceView::default() };
        let own = Names::of(&service, "prod", "lb");
        assert_eq!(own.base, "lb-prod-shop-web");
        assert!(own.fit("k8s-prod-shop-web") && !own.generated("k8s-prod-shop-web"));
        assert!(own.generated(&own.base) && own.generated(&own.hashed));
    }

    proptest! {
        #[test]
        fn every_name_is_a_host_name(cluster in "\\PC{0,40}", namespace in "[a-z0-9-]{1,63}", name in "[a-z0-9-]{1,63}") {
            let names = names(&cluster, &namespace, &name);
            for text in [&names.base, &names.hashed] {
                prop_assert!(text.len() <= LIMIT, "{text}");
                prop_assert!(text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'), "{text}");
                prop_assert!(!text.starts_with('-') && !text.ends_with('-'), "{text}");
            }
        }
    }
}
