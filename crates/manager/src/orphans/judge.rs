//! Which load balancers have no Service. Pure.

use std::{collections::BTreeSet, sync::Arc};

use cloudberth_core::{
    Error, Listing, NodeView, Provider, ServiceView,
    lb::{LoadBalancers, Marked},
    provider_id::Reading,
};
use cloudberth_runtime::bug::caught;

use super::{Orphan, Orphans, Unknown};

/// What a cloud has with our mark.
pub struct Listed<'a> {
    pub provider: &'a dyn Provider,
    pub balancers: &'a dyn LoadBalancers,
    pub marked: Result<Listing<Marked>, Error>,
}

impl std::fmt::Debug for Listed<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listed").field("cloud", &self.provider.name()).finish_non_exhaustive()
    }
}

/// What is left over. `services` and `nodes` are all that the cluster has; a cloud that showed only a part of its load
/// balancers is unknown besides.
pub fn judge(
    services: &[Arc<ServiceView>],
    nodes: &[NodeView],
    cluster: &str,
    clouds: &[Listed<'_>],
) -> Orphans {
    let mut found = Orphans::default();
    for cloud in clouds {
        let name = cloud.provider.name();
        let unknown = |why: &str| Unknown { what: name.to_owned(), why: why.to_owned() };
        let listing = match &cloud.marked {
            Ok(listing) => listing,
            Err(why) => {
                found.unknown.push(unknown(why.message()));
                continue;
            }
        };
        found.unknown.extend(listing.short.as_deref().map(unknown));
        let own = instances(nodes, cloud.provider);
        for marked in &listing.items {
            if services.iter().any(|service| cloud.balancers.may_own(service, cluster, marked)) {
                continue;
            }
            let ours = marked.instances.iter().find(|id| own.contains(&id.to_string()));
            let because = match ours {
                Some(id) => format!("{id}, an instance of this cluster, stands behind it"),
                None => {
                    "no instance of this cluster stands behind it, so it may be another cluster's".to_owned()
                }
            };
            found.orphans.push(Orphan {
                cloud: name.to_owned(),
                id: marked.id.clone(),
                name: marked.name.clone(),
                certain: ours.is_some(),
                because,
            });
        }
    }
    found
}

/// The ids of the instances under the cluster's nodes.
fn instances(nodes: &[NodeView], provider: &dyn Provider) -> BTreeSet<String> {
    let ids = nodes.iter().filter_map(|node| node.provider_id.as_deref());
    let mine = ids.filter_map(|id| match caught(|| provider.read_id(id)) {
        Ok(Reading::Mine(id)) => Some(id.to_string()),
        _ => None,
    });
    mine.collect()
}

/// The one load balancer of this name that may be deleted, or why none may. A name is the whole name, or the id.
pub fn may_delete<'a>(found: &'a Orphans, name: &str) -> Result<&'a Orphan, String> {
    if let Some(unknown) = found.unknown.first() {
        return Err(format!("{} could not be looked at as a whole: {}", unknown.what, unknown.why));
    }
    let named: Vec<_> = found.orphans.iter().filter(|one| one.name == name || one.id == name).collect();
    match named.as_slice() {
        [] => Err("it is not among what is left over; a Service may have it".to_owned()),
        [one] if one.certain => Ok(one),
        [one] => Err(format!("{}; delete it in the cloud's console if it is not", one.because)),
        _ => Err("several have this name; give the id".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use cloudberth_core::Random;
    use cloudberth_http::{
        Env, GivenFlags, NoResolver, Notes, ProviderContext, Unobserved, surroundings::SystemClock,
    };

    use super::*;

    fn orphan(name: &str, id: &str, certain: bool) -> Orphan {
        let because = "nobody knows".to_owned();
        Orphan { cloud: "alpha".to_owned(), id: id.to_owned(), name: name.to_owned(), certain, because }
    }

    fn fake() -> Arc<dyn Provider> {
        let opened = (cloudberth_fake::FACTORY.open)(&ProviderContext {
            env: &Env::default(),
            config: None,
            given: &GivenFlags::default(),
            cluster_name: "kubernetes",
            observer: Arc::new(Unobserved),
            clock: Arc::new(SystemClock::new()),
            random: Arc::new(Random::seeded(1)),
            resolver: Arc::new(NoResolver),
            notes: &Notes::default(),
        });
        opened.unwrap()
    }

    fn balancer(id: &str, name: &str, instance: &str) -> Marked {
        let instances = vec![instance.parse().unwrap()];
        Marked { id: id.to_owned(), name: name.to_owned(), made_for: Box::default(), instances }
    }

    #[tokio::test]
    async fn what_no_service_has_is_left_over_and_certain_by_its_instances() {
        let service = |uid: &str, id: Option<&str>| {
            let annotations = id.map(|id| ("fake.cloudberth.dev/balancer-id".to_owned(), id.to_owned()));
            let annotations = annotations.into_iter().collect();
            Arc::new(ServiceView {
                name: "s".to_owned(),
                uid: uid.to_owned(),
                annotations,
                ..ServiceView::default()
            })
        };
        let node = NodeView { provider_id: Some("fake://m-1".to_owned()), ..NodeView::default() };
        let fake = fake();
        let judged = |services: &[Arc<ServiceView>], marked| {
            let cloud = Listed { provider: &*fake, balancers: fake.load_balancers().unwrap(), marked };
            judge(services, std::slice::from_ref(&node), "kubernetes", &[cloud])
        };
        let listed = |one: Marked| Ok(Listing::complete(vec![one]));
        let ours = || balancer("b-1", "kubernetes-u-1", "fake://m-1");
        let table = [
            ("L3-2109 its Service is there", vec![service("u-1", None)], ours(), None),
            ("L3-2110 its id is recorded", vec![service("u-2", Some("b-1"))], ours(), None),
            ("no Service at all", vec![], ours(), Some(true)),
            ("another Service only", vec![service("u-2", None)], ours(), Some(true)),
            ("L3-2111 other instances", vec![], balancer("b-1", "kubernetes-u-1", "fake://m-9"), Some(false)),
        ];
        for (case, services, marked, want) in table {
            let found = judged(&services, listed(marked));
            assert_eq!(found.orphans.first().map(|one| one.certain), want, "{case}");
            assert_eq!(found.exit_code(), u8::from(want.is_some()), "{case}");
        }
        let short = judged(&[], Ok(Listing::short(vec![ours()], "a page is missing")));
        assert_eq!((short.orphans.len(), short.exit_code()), (1, 3), "L1-2111");
        assert!(may_delete(&short, "b-1").is_err(), "L1-2112");
        let failed = judged(&[], Err(Error::temporary("503")));
        assert_eq!((failed.orphans.len(), failed.exit_code()), (0, 3), "L1-2113");
    }

    #[test]
    fn only_what_is_certain_and_named_once_may_be_deleted() {
        let orphans = vec![
            orphan("web", "1", true),
            orphan("two", "2", true),
            orphan("two", "3", true),
            orphan("x", "4", false),
        ];
        let found = Orphans { orphans, ..Orphans::default() };
        let table = [
            ("by its name", "web", Ok("1")),
            ("by its id", "3", Ok("3")),
            ("L3-2101 a part of a name", "we", Err("not among what is left over")),
            ("several of one name", "two", Err("give the id")),
            ("L3-2102 perhaps another cluster's", "x", Err("nobody knows")),
        ];
        for (case, name, want) in table {
            match (may_delete(&found, name), want) {
                (Ok(one), Ok(id)) => assert_eq!(one.id, id, "{case}"),
                (Err(why), Err(part)) => assert!(why.contains(part), "{case}: {why}"),
                (found, want) => panic!("{case}: {found:?} {want:?}"),
            }
        }
        let unknown = vec![Unknown { what: "alpha".to_owned(), why: "a page is missing".to_owned() }];
        let why = may_delete(&Orphans { unknown, ..found }, "web").unwrap_err();
        assert!(why.contains("a page is missing"), "L1-2107 {why}");
    }
}
