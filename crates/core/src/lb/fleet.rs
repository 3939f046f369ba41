//! The instances that the nodes behind a load balancer run on.
//!
//! The cluster lists the instances of a cloud once for everybody (law 7), so a provider does not list them again for its
//! load balancers. It asks its [`Fleet`], and only when it needs to know.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    call::Call,
    error::{Category, Error, Result},
    instance::{Instance, InstanceListing},
    lb::Backend,
    lookup::{Listing, Lookup},
    provider::Boxed,
    provider_id::{ProviderId, Reading},
    view::NodeView,
};

/// A listing of instances that others use too, or why there is none.
pub type SharedInstances = Arc<dyn AsRef<Result<InstanceListing>> + Send + Sync>;

/// How many instances that a listing lacks are looked up one by one. If all of them are absent, the others are taken to be
/// absent too.
const ASKED: usize = 16;

/// The instances of one cloud, for one survey of its load balancers.
pub trait Fleet: Send + Sync {
    /// A young listing. The cloud is asked only if nobody has listed its instances in the last seconds.
    fn listing(&self) -> Boxed<'_, SharedInstances>;

    /// The newest listing that is known, if it is no older than the addresses of nodes may be; nobody is asked. What it
    /// lacks may be there by now.
    fn recent(&self) -> Option<SharedInstances> {
        None
    }

    /// Asks the source itself about one instance, once for all Services.
    fn ask<'a>(&'a self, call: &'a Call, id: &'a ProviderId) -> Boxed<'a, Lookup<Instance>>;

    /// A number that is another one in each term of leadership. Whoever remembers something of the cloud forgets it when
    /// the number changes: somebody else may have led meanwhile, and changed it.
    fn term(&self) -> u64 {
        0
    }
}

/// What is known of the instances of some nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located<T> {
    /// Those that were found, in the order of the nodes.
    pub found: Vec<T>,
    /// The nodes without an instance, each with the reason.
    pub missing: Vec<(String, String)>,
    /// The nodes whose instance is there and cannot be read, each with the reason. Whatever addresses they have, nobody
    /// knows them: no member is surplus.
    pub unknown: Vec<(String, String)>,
}

impl<T> Default for Located<T> {
    fn default() -> Self {
        Self { found: Vec::new(), missing: Vec::new(), unknown: Vec::new() }
    }
}

/// Finds the instances of the nodes behind a load balancer. `read` reads a provider id, and `take` takes from an instance
/// what the provider needs.
///
/// An instance that the listing lacks is looked up before its node is left out. If none of the nodes has an instance, the
/// listing is probably that of another account: that is an error, and no pool is emptied (law 1).
pub async fn locate<T>(
    fleet: &dyn Fleet,
    call: &Call,
    backends: &[Backend],
    read: impl Fn(&str) -> Reading + Send,
    take: impl Fn(&NodeView, &Instance) -> T + Send,
) -> Result<Located<T>> {
    if backends.is_empty() {
        return Ok(Located::default());
    }
    let shared = fleet.listing().await;
    let listing = (*shared).as_ref().as_ref().map_err(Clone::clone)?;
    let nameless = backends.iter().any(|backend| backend.node.provider_id.is_none());
    if let Some(why) = listing.short.as_ref().filter(|_| nameless) {
        return Err(Error::temporary(format!("the listing of instances is incomplete: {why}")));
    }
    let (known, lacking) = split(backends, listing, &read);
    // A listing that shows none of the nodes is that of another account, so lookups would prove nothing.
    let asked = if known > 0 || listing.short.is_some() {
        confirm(fleet, call, &lacking, listing.short.as_deref()).await?
    } else {
        Vec::new()
    };
    locate_among(backends, &listing.items, &asked, read, take)
}

/// The same from a listing that need not be young; `None` where it does not show the instance of every node, whole and by
/// its id. Nodes have their instances for life, so a listing that shows all of them need not be made again because
/// something else about the Service has changed.
pub fn locate_known<T>(
    shared: &SharedInstances,
    backends: &[Backend],
    read: impl Fn(&str) -> Reading,
    take: impl Fn(&NodeView, &Instance) -> T,
) -> Option<Located<T>> {
    let listing = (**shared).as_ref().as_ref().ok()?;
    let found = backends.iter().map(|backend| {
        let Reading::Mine(id) = read(backend.node.provider_id.as_deref()?) else { return None };
        let instance = listing.by_id(&id).known().ok()??;
        instance.flaw.is_none().then(|| take(&backend.node, instance))
    });
    Some(Located { found: found.collect::<Option<_>>()?, ..Located::default() })
}

/// How many of the nodes a listing shows, and the ids of the others.
fn split(
    backends: &[Backend],
    listing: &Listing<Instance>,
    read: impl Fn(&str) -> Reading,
) -> (usize, Vec<ProviderId>) {
    let there: std::collections::BTreeSet<&ProviderId> = listing.items.iter().map(|one| &one.id).collect();
    let ids = backends.iter().filter_map(|backend| match read(backend.node.provider_id.as_deref()?) {
        Reading::Mine(id) => Some(id),
        Reading::Malformed | Reading::Foreign => None,
    });
    let (known, lacking): (Vec<_>, Vec<_>) = ids.partition(|id| there.contains(id));
    (known.len(), lacking)
}

/// Those of the instances lacking from the listing that exist.
async fn confirm(
    fleet: &dyn Fleet,
    call: &Call,
    lacking: &[ProviderId],
    short: Option<&str>,
) -> Result<Vec<Instance>> {
    let mut found = Vec::new();
    for id in lacking.iter().take(ASKED) {
        match fleet.ask(call, id).await {
            Lookup::Present(instance) => found.push(instance),
            Lookup::Absent => {}
            Lookup::Unknown(why) => return Err(why),
        }
    }
    if lacking.len() > ASKED && (short.is_some() || !found.is_empty()) {
        let why = short.unwrap_or("some of them exist");
        let text = format!("the listing of instances lacks those of {} nodes: {why}", lacking.len());
        return Err(Error::temporary(text));
    }
    Ok(found)
}

/// The instances of the nodes behind a load balancer, from a complete listing and what was `asked` beside it. Pure.
pub fn locate_among<T>(
    backends: &[Backend],
    listed: &[Instance],
    asked: &[Instance],
    read: impl Fn(&str) -> Reading,
    take: impl Fn(&NodeView, &Instance) -> T,
) -> Result<Located<T>> {
    let all = || listed.iter().chain(asked);
    let by_id: BTreeMap<&ProviderId, &Instance> = all().map(|instance| (&instance.id, instance)).collect();
    let mut located = Located::default();
    for node in backends.iter().map(|backend| &*backend.node) {
        let instance = match node.provider_id.as_deref().map(&read) {
            Some(Reading::Mine(id)) => {
                by_id.get(&id).copied().ok_or_else(|| format!("there is no instance {id}"))
            }
            Some(Reading::Malformed) => Err("its provider id cannot be read".to_owned()),
            Some(Reading::Foreign) => Err("its provider id is of another cloud".to_owned()),
            None => by_name(all(), &node.name),
        };
        match instance.map(|instance| (instance, instance.flaw.as_deref())) {
            Ok((instance, None)) => located.found.push(take(node, instance)),
            Ok((_, Some(why))) => located.unknown.push((node.name.clone(), why.to_owned())),
            Err(why) => located.missing.push((node.name.clone(), why)),
        }
    }
    if let ([], Some((node, why))) = (located.found.as_slice(), located.unknown.first()) {
        let text = format!("the instances of the nodes cannot be read; the first: {node}: {why}");
        return Err(Error::temporary(text));
    }
    match (located.found.as_slice(), located.missing.first()) {
        ([], Some((node, why))) => {
            let message = format!(
                "none of {} nodes has an instance that can be seen; is the credential one of another account? \
                 The first: {node}: {why}",
                located.missing.len()
            );
            Err(Error::new(Category::NotFound, message))
        }
        _ => Ok(located),
    }
}

/// The only instance with this name. One whose name cannot be read counts as one of them.
fn by_name<'a>(all: impl Iterator<Item = &'a Instance>, name: &str) -> Result<&'a Instance, String> {
    let nameless = |instance: &Instance| instance.flaw.is_some() && instance.name.is_empty();
    let mut named = all.filter(|instance| instance.name == name || nameless(instance));
    match (named.next(), named.next()) {
        (Some(instance), None) => Ok(instance),
        (None, _) => Err(format!("there is no instance called {name}")),
        (Some(_), Some(_)) => Err(format!("there are several instances called {name}")),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        sync::Mutex,
        task::{Context, Poll, Waker},
    };

    use super::*;
    use crate::{call::ReadOnly, time::Tick};

    fn id(number: usize) -> ProviderId {
        ProviderId::new("fake", &number.to_string()).unwrap()
    }

    fn instance(number: usize) -> Instance {
        Instance::new(id(number), &format!("node{number}"))
    }

    fn backend(name: &str, provider_id: Option<String>) -> Backend {
        let node = NodeView { name: name.to_owned(), provider_id, ..NodeView::default() };
        Backend { node: Arc::new(node), local_endpoint: None }
    }

    fn backends(numbers: impl IntoIterator<Item = usize>) -> Vec<Backend> {
        numbers.into_iter().map(|n| backend(&format!("node{n}"), Some(id(n).to_string()))).collect()
    }

    struct Scripted(Result<InstanceListing>);

    impl AsRef<Result<InstanceListing>> for Scripted {
        fn as_ref(&self) -> &Result<InstanceListing> {
            &self.0
        }
    }

    /// A cloud that lists these, and shows those beside them when it is asked.
    struct Script {
        listing: Arc<Scripted>,
        beside: Vec<usize>,
        error: Option<Error>,
        asked: Mutex<usize>,
    }

    impl Script {
        fn new(listing: Result<Listing<Instance>>, beside: &[usize]) -> Self {
            let listing = Arc::new(Scripted(listing.map(InstanceListing::from)));
            Self { listing, beside: beside.to_vec(), error: None, asked: Mutex::default() }
        }
    }

    impl Fleet for Script {
        fn listing(&self) -> Boxed<'_, SharedInstances> {
            let listing: SharedInstances = Arc::clone(&self.listing) as _;
            Box::pin(std::future::ready(listing))
        }

        fn ask<'a>(&'a self, _: &'a Call, asked: &'a ProviderId) -> Boxed<'a, Lookup<Instance>> {
            *self.asked.lock().unwrap() += 1;
            let found = self.beside.iter().find(|&&number| id(number) == *asked);
            let answer = match (&self.error, found) {
                (Some(why), _) => Lookup::Unknown(why.clone()),
                (None, Some(&number)) => Lookup::Present(instance(number)),
                (None, None) => Lookup::Absent,
            };
            Box::pin(std::future::ready(answer))
        }
    }

    fn read(text: &str) -> Reading {
        Reading::plain(text, |id| id.scheme() == "fake")
    }

    fn run(fleet: &Script, backends: &[Backend]) -> Result<Located<String>> {
        let call = Call::new(Tick::from_secs(60), Arc::new(ReadOnly));
        let located = locate(fleet, &call, backends, read, |node, _| node.name.clone());
        match pin!(located).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(located) => located,
            Poll::Pending => panic!("the script never waits"),
        }
    }

    fn listed(numbers: impl IntoIterator<Item = usize>) -> Vec<Instance> {
        numbers.into_iter().map(instance).collect()
    }

    #[test]
    fn a_listing_that_shows_every_node_serves_although_it_is_old() {
        let flawed = Instance::flawed(id(2), "node2", "no addresses");
        let complete = || Ok(Listing::complete(listed([1, 2, 3])));
        let nameless = backend("node1", None);
        let foreign = backend("node1", Some("other://1".to_owned()));
        let table = [
            ("all are shown", complete(), backends([1, 3]), Some(2)),
            ("no node", complete(), vec![], Some(0)),
            (
                "what a short one shows is there",
                Ok(Listing::short(listed([1]), "page 2")),
                backends([1]),
                Some(1),
            ),
            ("L1-1613 one may have come since", complete(), backends([1, 4]), None),
            ("L1-1614 one is not described", Ok(Listing::complete(vec![flawed])), backends([2]), None),
            ("L1-1615 a name proves nothing", complete(), vec![nameless], None),
            ("another cloud's", complete(), vec![foreign], None),
            ("L1-1616 it failed", Err(Error::temporary("503")), backends([1]), None),
        ];
        for (case, listing, backends, want) in table {
            let listing: SharedInstances = Script::new(listing, &[]).listing;
            let found = locate_known(&listing, &backends, read, |node, _| node.name.clone());
            let found = found.map(|located| {
                assert!(located.missing.is_empty() && located.unknown.is_empty(), "{case}");
                located.found.len()
            });
            assert_eq!(found, want, "{case}");
        }
    }

    #[test]
    fn an_instance_that_the_listing_lacks_is_looked_up() {
        let complete = |numbers: &[usize]| Ok(Listing::complete(listed(numbers.iter().copied())));
        let short = |numbers: &[usize]| Ok(Listing::short(listed(numbers.iter().copied()), "page 2"));
        // The listing, what the source shows beside it, the nodes; how many are found, missing, asked about.
        let table = [
            ("all are listed", complete(&[1, 2]), &[][..], 2, Ok((2, 0, 0))),
            ("L1-1510 one is not listed and there", complete(&[1]), &[2][..], 2, Ok((2, 0, 1))),
            ("one is gone", complete(&[1]), &[], 2, Ok((1, 1, 1))),
            ("L7-1510 many are gone", complete(&[1]), &[], 100, Ok((1, 99, ASKED))),
            ("L1-1511 many are not listed and one is there", complete(&[1]), &[2], 100, Err(ASKED)),
            ("L1-1512 the listing is short and shows one", short(&[1]), &[2], 2, Ok((2, 0, 1))),
            ("L1-1513 it is short and lacks many", short(&[1]), &[], 100, Err(ASKED)),
            ("L1-1514 it shows none: another account", complete(&[7]), &[1, 2], 2, Err(0)),
            ("L1-1514 it is empty", complete(&[]), &[1, 2], 2, Err(0)),
            ("it failed", Err(Error::temporary("503")), &[], 2, Err(0)),
        ];
        for (case, listing, beside, nodes, want) in table {
            let fleet = Script::new(listing, beside);
            let got = run(&fleet, &backends(1..=nodes));
            let asked = *fleet.asked.lock().unwrap();
            let counts = got.as_ref().map(|l| (l.found.len(), l.missing.len(), asked)).map_err(|_| asked);
            assert_eq!(counts, want, "{case}: {got:?}");
        }
    }

    #[test]
    fn a_lookup_that_fails_leaves_no_node_out() {
        let fleet = Script {
            error: Some(Error::temporary("503")),
            ..Script::new(Ok(Listing::complete(listed([1]))), &[])
        };
        assert_eq!(run(&fleet, &backends([1, 2])).unwrap_err().message(), "503", "L1-1515");
    }

    #[test]
    fn without_nodes_nobody_is_asked() {
        let fleet = Script::new(Err(Error::temporary("503")), &[]);
        assert_eq!(run(&fleet, &[]), Ok(Located::default()), "L7-1511");
    }

    #[test]
    fn a_node_without_an_id_needs_the_whole_listing() {
        let nodes = [backend("node1", None), backend("node2", Some(id(2).to_string()))];
        let fleet = Script::new(Ok(Listing::short(listed([1, 2]), "page 2")), &[]);
        let why = run(&fleet, &nodes).unwrap_err();
        assert!(why.message().contains("page 2"), "L1-1516 a namesake may be on it: {why}");
        let fleet = Script::new(Ok(Listing::complete(listed([1, 2]))), &[]);
        assert_eq!(run(&fleet, &nodes).unwrap().found, ["node1", "node2"]);
    }

    #[test]
    fn one_odd_instance_concerns_its_own_node_only() {
        let named = |name: &str| vec![backend("node1", Some(id(1).to_string())), backend(name, None)];
        let by_id = |text: &str| backends([1]).into_iter().chain([backend("x", Some(text.into()))]).collect();
        let odd = |number, name: &str| Instance::flawed(id(number), name, "no addresses");
        let table = [
            ("L1-1517 flawed, by id", by_id("fake://2"), odd(2, "node2"), (1, 0, 1)),
            ("L1-1517 flawed, by name", named("node2"), odd(2, "node2"), (1, 0, 1)),
            ("L1-1518 a namesake", named("node3"), odd(6, "node3"), (1, 1, 0)),
            ("L1-1518 one of any name", named("node3"), odd(6, ""), (1, 1, 0)),
            ("one of any name may be it", named("node4"), odd(6, ""), (1, 0, 1)),
            ("another's", by_id("fake://3"), odd(2, "node2"), (2, 0, 0)),
            ("a foreign id", by_id("other://3"), odd(2, "node2"), (1, 1, 0)),
            ("an id that is none", by_id("fake"), odd(2, "node2"), (1, 1, 0)),
        ];
        for (case, backends, odd, want) in table {
            let backends: Vec<Backend> = backends;
            let all = [listed([1, 3]), vec![odd]].concat();
            let got = locate_among(&backends, &all, &[], read, |node, _| node.name.clone()).unwrap();
            assert_eq!((got.found.len(), got.missing.len(), got.unknown.len()), want, "{case}: {got:?}");
        }
        let none = locate_among(&backends([2]), &[odd(2, "node2")], &[], read, |_, _| ()).unwrap_err();
        assert_eq!(none.category(), Category::Temporary, "L1-1519 nothing is known of any: {none}");
    }
}
