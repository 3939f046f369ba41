//! Names that are looked up beside the cloud (DNS), by a resolver that is handed in like the clock.
//!
//! Whether a domain leads to a load balancer is observed, not decided: a provider asks in `observe`, and its decision
//! sees plain addresses. [`SystemResolver`](crate::surroundings::SystemResolver) asks the system; the two here ask nobody.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::{Mutex, PoisonError},
};

use cloudberth_core::{Call, Error, Lookup, provider::Boxed};

/// The source of the addresses that belong to names.
pub trait Resolver: Send + Sync {
    /// The addresses of `name`, in order, each once and at least one. `Absent` only if the source says that there is no
    /// such name. The answer, or `Unknown`, is there by the deadline of the call.
    fn resolve<'a>(&'a self, call: &'a Call, name: &'a str) -> Boxed<'a, Lookup<Vec<IpAddr>>>;
}

/// Looks no name up. Its `Unknown` is [permanent](cloudberth_core::Category::Permanent), so that a check that is switched
/// off can be told from one that failed.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoResolver;

impl Resolver for NoResolver {
    fn resolve<'a>(&'a self, _call: &'a Call, name: &'a str) -> Boxed<'a, Lookup<Vec<IpAddr>>> {
        let off =
            Error::permanent(format!("the addresses of {name} are not known: look-ups of names are off"));
        Box::pin(std::future::ready(Lookup::Unknown(off)))
    }
}

/// Names and their addresses from a table, for tests and demos. A name that is not in it does not exist.
#[derive(Debug, Default)]
pub struct StaticResolver(Mutex<BTreeMap<String, Lookup<Vec<IpAddr>>>>);

impl StaticResolver {
    /// Answers this to questions about `name` from now on.
    pub fn set(&self, name: &str, answer: Lookup<Vec<IpAddr>>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key(name), answer.map(in_order));
    }
}

impl Resolver for StaticResolver {
    fn resolve<'a>(&'a self, _call: &'a Call, name: &'a str) -> Boxed<'a, Lookup<Vec<IpAddr>>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&key(name)).cloned();
        Box::pin(std::future::ready(known.unwrap_or(Lookup::Absent)))
    }
}

/// Case means nothing in DNS, and neither does the dot at the end.
fn key(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

pub(crate) fn in_order(mut addresses: Vec<IpAddr>) -> Vec<IpAddr> {
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cloudberth_core::{Category, Tick, call::ReadOnly};

    use super::*;

    fn call() -> Call {
        Call::new(Tick::from_secs(60), Arc::new(ReadOnly))
    }

    #[tokio::test]
    async fn a_table_knows_every_name_that_exists() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let table = StaticResolver::default();
        assert_eq!(table.resolve(&call(), "shop.example.org").await, Lookup::Absent);
        table.set(
            "Shop.example.org",
            Lookup::Present(vec![ip("2001:db8::1"), ip("192.0.2.1"), ip("192.0.2.1")]),
        );
        let want = Lookup::Present(vec![ip("192.0.2.1"), ip("2001:db8::1")]);
        for name in ["shop.example.org", "SHOP.example.org."] {
            assert_eq!(table.resolve(&call(), name).await, want, "{name}");
        }
        let away = Lookup::Unknown(Error::temporary("SERVFAIL"));
        table.set("shop.example.org.", away.clone());
        assert_eq!(table.resolve(&call(), "shop.example.org").await, away);
    }

    #[tokio::test]
    async fn what_is_switched_off_knows_nothing_and_says_so() {
        let why = NoResolver.resolve(&call(), "shop.example.org").await.known().unwrap_err();
        assert_eq!(why.category(), Category::Permanent, "L1-1522 {why}");
        assert!(why.message().contains("shop.example.org") && why.message().contains("off"), "{why}");
    }
}
