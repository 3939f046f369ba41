//! The flows of a UDP listener, by client, in the order of their latest datagrams.

use std::{collections::BTreeMap, net::SocketAddr, time::Duration};

use cloudberth_core::time::Tick;

/// The place of a flow in the table. It stays the same as long as the flow is there.
pub(crate) type Place = usize;

#[derive(Debug)]
struct Entry<F> {
    client: SocketAddr,
    latest: Tick,
    older: Option<Place>,
    newer: Option<Place>,
    flow: F,
}

/// Flows, each known by its client. Finding the one without a datagram for longest takes no search.
#[derive(Debug)]
pub(crate) struct FlowTable<F> {
    entries: slab::Slab<Entry<F>>,
    by_client: BTreeMap<SocketAddr, Place>,
    oldest: Option<Place>,
    newest: Option<Place>,
}

impl<F> Default for FlowTable<F> {
    fn default() -> Self {
        Self { entries: slab::Slab::new(), by_client: BTreeMap::new(), oldest: None, newest: None }
    }
}

impl<F> FlowTable<F> {
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Where the flow of a client is.
    pub(crate) fn find(&self, client: SocketAddr) -> Option<Place> {
        self.by_client.get(&client).copied()
    }

    pub(crate) fn get_mut(&mut self, place: Place) -> Option<(SocketAddr, &mut F)> {
        self.entries.get_mut(place).map(|entry| (entry.client, &mut entry.flow))
    }

    /// Takes in a client that is not there yet, as the newest.
    pub(crate) fn insert(&mut self, client: SocketAddr, flow: F, now: Tick) -> Place {
        let entry = Entry { client, latest: now, older: self.newest, newer: None, flow };
        let place = self.entries.insert(entry);
        self.by_client.insert(client, place);
        self.link_newer(self.newest, Some(place));
        self.newest = Some(place);
        place
    }

    /// A datagram has passed.
    pub(crate) fn touch(&mut self, place: Place, now: Tick) {
        if let Some(entry) = self.entries.get_mut(place) {
            entry.latest = now;
        }
        if self.newest == Some(place) {
            return;
        }
        self.unlink(place);
        if let Some(entry) = self.entries.get_mut(place) {
            (entry.older, entry.newer) = (self.newest, None);
            self.link_newer(self.newest, Some(place));
            self.newest = Some(place);
        }
    }

    pub(crate) fn remove(&mut self, place: Place) -> Option<F> {
        self.unlink(place);
        let entry = self.entries.try_remove(place)?;
        self.by_client.remove(&entry.client);
        Some(entry.flow)
    }

    /// The flow that was quiet for longest, and since when.
    pub(crate) fn oldest(&self) -> Option<(Place, Tick)> {
        let place = self.oldest?;
        self.entries.get(place).map(|entry| (place, entry.latest))
    }

    /// The flow that was quiet for longest, if that is longer than `idle`.
    pub(crate) fn expired(&self, now: Tick, idle: Duration) -> Option<Place> {
        self.oldest().filter(|(_, latest)| now.since(*latest) >= idle).map(|(place, _)| place)
    }

    /// Every flow, in no order.
    pub(crate) fn places(&self) -> Vec<Place> {
        self.entries.iter().map(|(place, _)| place).collect()
    }

    fn unlink(&mut self, place: Place) {
        let Some((older, newer)) = self.entries.get(place).map(|entry| (entry.older, entry.newer)) else {
            return;
        };
        self.link_newer(older, newer);
        match newer.and_then(|newer| self.entries.get_mut(newer)) {
            Some(entry) => entry.older = older,
            None => self.newest = older,
        }
    }

    /// What comes after `older`; the first of all if there is no older one.
    fn link_newer(&mut self, older: Option<Place>, newer: Option<Place>) {
        match older.and_then(|older| self.entries.get_mut(older)) {
            Some(entry) => entry.newer = newer,
            None => self.oldest = newer,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn client(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    #[test]
    fn the_flow_that_is_quiet_for_longest_is_known() {
        let mut table = FlowTable::default();
        for port in 1..=3 {
            table.insert(client(port), port, Tick::from_secs(port.into()));
        }
        table.touch(table.find(client(1)).unwrap(), Tick::from_secs(10));
        let oldest = |table: &mut FlowTable<u16>| {
            let place = table.oldest().unwrap().0;
            *table.get_mut(place).unwrap().1
        };
        assert_eq!(oldest(&mut table), 2, "CL-56 the first has had a datagram since");
        let idle = Duration::from_secs(60);
        assert_eq!(table.expired(Tick::from_secs(61), idle), None, "CL-56 not quiet for long enough");
        let place = table.expired(Tick::from_secs(62), idle).unwrap();
        assert_eq!(table.remove(place), Some(2), "CL-56 quiet for a minute");
        assert_eq!((oldest(&mut table), table.len()), (3, 2), "CL-56 the next one");
        assert_eq!(table.find(client(2)), None, "CL-56 it is forgotten");
    }

    proptest! {
        /// Against a plain list, in which everything is searched for.
        #[test]
        fn it_is_like_a_list_in_order(actions in proptest::collection::vec((0_u8..3, 0_u16..8), 0..200)) {
            let (mut table, mut list) = (FlowTable::default(), Vec::<u16>::new());
            for (now, (action, port)) in actions.into_iter().enumerate() {
                let now = Tick::from_secs(u64::try_from(now).unwrap());
                match (action, table.find(client(port))) {
                    (0, None) => {
                        table.insert(client(port), port, now);
                        list.push(port);
                    }
                    (1, Some(place)) => {
                        table.touch(place, now);
                        list.retain(|other| *other != port);
                        list.push(port);
                    }
                    (2, Some(place)) => {
                        prop_assert_eq!(table.remove(place), Some(port));
                        list.retain(|other| *other != port);
                    }
                    _ => {}
                }
                let oldest = table.oldest().map(|(place, _)| *table.get_mut(place).unwrap().1);
                prop_assert_eq!((oldest, table.len()), (list.first().copied(), list.len()), "CL-56");
                prop_assert_eq!(table.places().len(), list.len());
            }
            let mut order = Vec::new();
            while let Some((place, _)) = table.oldest() {
                order.extend(table.remove(place));
            }
            prop_assert_eq!(order, list, "CL-56 in the order of their latest datagrams");
        }
    }
}
