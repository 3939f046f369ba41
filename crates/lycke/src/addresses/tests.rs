use proptest::prelude::*;

use super::*;
use crate::inventory::BalancerSettings;

fn key(name: &str) -> BalancerKey {
    BalancerKey { cluster: "c2".into(), namespace: "default".into(), name: name.into() }
}

fn pools(mode: AddressMode, nets: &[&str]) -> Pools {
    let pool = nets.iter().map(|net| net.parse().unwrap()).collect();
    Pools::new(&BalancerSettings { mode, pool, ..BalancerSettings::default() })
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// A cloud of addresses only.
struct Book {
    pools: Pools,
    mode: AddressMode,
    taken: BTreeMap<IpAddr, BalancerKey>,
    released: ReleasedAddresses,
}

impl Book {
    fn new(mode: AddressMode, nets: &[&str]) -> Self {
        Self {
            pools: pools(mode, nets),
            mode,
            taken: BTreeMap::new(),
            released: ReleasedAddresses::default(),
        }
    }

    fn put(&mut self, name: &str, requested: &str) -> Result<String, NoAddress> {
        let key = key(name);
        let current: Vec<_> =
            self.taken.iter().filter(|(_, owner)| **owner == key).map(|(at, _)| *at).collect();
        let request = Request {
            key: &key,
            mode: self.mode,
            families: &[IpFamily::V4],
            requested: (!requested.is_empty()).then(|| ip(requested)),
            current: &current,
        };
        let found = choose(&request, &self.pools, &self.taken, &self.released)?;
        self.taken.retain(|_, owner| *owner != key);
        if self.mode != AddressMode::Shared {
            self.taken.insert(found[0], key);
            self.released.forget(found[0]);
        }
        Ok(found[0].to_string())
    }

    fn delete(&mut self, name: &str) {
        let key = key(name);
        let held: Vec<_> = self.taken.iter().filter(|(_, owner)| **owner == key).map(|(at, _)| *at).collect();
        for address in held {
            self.taken.remove(&address);
            self.released.release(&key, address);
        }
    }
}

#[test]
fn a_key_lands_where_it_always_did() {
    let mut book = Book::new(AddressMode::Loopback, &["127.77.0.0/16"]);
    // If this fails, the hash has changed, and addresses move when a state is lost.
    assert_eq!(book.put("web", "").unwrap(), "127.77.50.67");
    let fresh = Book::new(AddressMode::Loopback, &["127.77.0.0/16"]).put("web", "").unwrap();
    assert_eq!(fresh, "127.77.50.67", "CL-72 a lost state does not move it");
}

#[test]
fn a_deleted_address_waits_for_its_key() {
    let mut book = Book::new(AddressMode::Loopback, &["127.77.0.0/29"]);
    let first = book.put("a", "").unwrap();
    book.delete("a");
    for other in ["b", "c", "d", "e", "f"] {
        assert_ne!(book.put(other, "").unwrap(), first, "CL-40 others are free");
    }
    assert_eq!(book.put("a", "").unwrap(), first, "CL-40");
    assert!(matches!(book.put("g", ""), Err(NoAddress::Exhausted(pool)) if pool == "127.77.0.0/29"), "CL-43");
    let (d, b) = (book.put("d", "").unwrap(), book.put("b", "").unwrap());
    book.delete("d");
    book.delete("b");
    assert_eq!(book.put("g", "").unwrap(), d, "CL-43 the one deleted longest ago is given away");
    assert_eq!(book.put("b", "").unwrap(), b, "CL-40 the other still waits");
    assert!(book.put("d", "").is_err(), "CL-43 all are taken again");
}

#[test]
fn an_address_can_be_asked_for() {
    let mut book = Book::new(AddressMode::Loopback, &["127.77.0.0/24"]);
    assert_eq!(book.put("a", "127.77.0.9").unwrap(), "127.77.0.9", "CL-42");
    assert_eq!(book.put("a", "127.77.0.9").unwrap(), "127.77.0.9", "CL-42 it is its own already");
    assert_eq!(
        book.put("b", "127.77.0.9"),
        Err(NoAddress::Taken(ip("127.77.0.9"), key("a"))),
        "CL-42 the owner is named"
    );
    for outside in ["10.0.0.1", "127.77.0.0", "127.77.0.255", "127.78.0.1", "::1"] {
        let want = NoAddress::NotInPool(ip(outside), "127.77.0.0/24".into());
        assert_eq!(book.put("b", outside), Err(want), "CL-42 the pool is named");
    }
    assert_eq!(book.put("a", "127.77.0.10").unwrap(), "127.77.0.10", "CL-94 it moves");
    assert_eq!(book.put("a", "").unwrap(), "127.77.0.10", "CL-94 and stays");
    assert_eq!(book.put("b", "127.77.0.9").unwrap(), "127.77.0.9", "CL-94 the old one is free");
    book.delete("a");
    assert_eq!(
        book.put("c", "127.77.0.10").unwrap(),
        "127.77.0.10",
        "CL-42 one that is only remembered is free"
    );
    assert_ne!(book.put("a", "").unwrap(), "127.77.0.10", "CL-42");
}

#[test]
fn a_shared_address_is_never_taken() {
    let mut book = Book::new(AddressMode::Shared, &["127.0.0.1/32", "::1/128"]);
    assert_eq!(book.put("a", "").unwrap(), "127.0.0.1");
    assert_eq!(book.put("b", "127.0.0.1").unwrap(), "127.0.0.1");
    assert_eq!(
        book.put("b", "127.0.0.2"),
        Err(NoAddress::NotInPool(ip("127.0.0.2"), "127.0.0.1, ::1".into()))
    );
}

#[test]
fn each_family_has_its_address() {
    let chosen = |pools: &Pools, mode, families: &[IpFamily], requested: Option<&str>| {
        let request = Request { key: &key("a"), mode, families, requested: requested.map(ip), current: &[] };
        choose(&request, pools, &BTreeMap::new(), &ReleasedAddresses::default())
    };
    let both = [IpFamily::V6, IpFamily::V4];
    let shared = pools(AddressMode::Shared, &["127.0.0.1/32", "::1/128"]);
    assert_eq!(
        chosen(&shared, AddressMode::Shared, &both, None).unwrap(),
        [ip("::1"), ip("127.0.0.1")],
        "CL-68"
    );
    let pool = pools(AddressMode::Pool, &["192.168.20.128/25", "2001:db8::/64"]);
    let found = chosen(&pool, AddressMode::Pool, &both, Some("2001:db8::7")).unwrap();
    assert_eq!(found[0], ip("2001:db8::7"));
    assert!(pool.of(AddressMode::Pool).contains(found[1]) && found[1].is_ipv4());
    let wrong = chosen(&pool, AddressMode::Pool, &[IpFamily::V4], Some("2001:db8::7"));
    assert!(matches!(wrong, Err(NoAddress::NotInPool(..))), "an address of another family");
    let lacking = chosen(&pool, AddressMode::Loopback, &[IpFamily::V6], None);
    assert!(matches!(lacking, Err(NoAddress::NoFamily(IpFamily::V6, _))));
}

#[test]
fn some_slots_are_skipped() {
    let table = [
        ("127.77.0.4/30", vec!["127.77.0.5", "127.77.0.6"]),
        ("127.77.0.8/31", vec!["127.77.0.8", "127.77.0.9"]),
        ("127.77.0.255/32", vec!["127.77.0.255"]),
        ("127.77.0.254/30", vec!["127.77.0.253", "127.77.0.254"]),
        ("2001:db8::/126", vec!["2001:db8::1", "2001:db8::2", "2001:db8::3"]),
    ];
    for (net, want) in table {
        let net: ipnet::IpNet = net.parse().unwrap();
        let pool = Pool::new(vec![net.trunc()]);
        let family = IpFamily::of(net.addr());
        let all: Vec<_> = (0..pool.size(family))
            .filter_map(|slot| pool.at(family, slot))
            .map(|at| at.to_string())
            .collect();
        assert_eq!(all, want, "{net}");
        assert!(all.iter().all(|address| pool.contains(ip(address))));
    }
}

proptest! {
    #[test]
    fn no_two_have_one_address(steps in prop::collection::vec((0_u8..2, 0_u8..9), 1..60)) {
        let mut book = Book::new(AddressMode::Loopback, &["127.77.0.0/29"]);
        for (what, name) in steps {
            let name = name.to_string();
            if what == 0 {
                book.delete(&name);
            } else {
                let full = book.taken.len() == 6 && !book.taken.values().any(|owner| *owner == key(&name));
                prop_assert_eq!(book.put(&name, "").is_err(), full, "CL-43");
            }
            let owners: BTreeSet<_> = book.taken.values().collect();
            prop_assert_eq!(owners.len(), book.taken.len());
            let kept: BTreeSet<_> = book.released.iter().map(|entry| entry.address).collect();
            prop_assert_eq!(kept.len(), book.released.iter().count());
            prop_assert!(kept.iter().all(|address| !book.taken.contains_key(address)));
        }
    }
}
