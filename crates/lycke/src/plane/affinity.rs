//! Which backend a client came to last.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    time::Duration,
};

use cloudberth_core::time::Tick;

/// A client beyond this number takes the place of the one that was away longest.
const MOST_CLIENTS: usize = 65_536;

/// Clients and their backends, for one listener.
#[derive(Debug)]
pub(crate) struct AffinityTable<B> {
    clients: BTreeMap<IpAddr, (Tick, B)>,
    /// The same clients by the time of their latest connection.
    by_age: BTreeSet<(Tick, IpAddr)>,
    most: usize,
}

impl<B> Default for AffinityTable<B> {
    fn default() -> Self {
        Self::holding(MOST_CLIENTS)
    }
}

impl<B> AffinityTable<B> {
    fn holding(most: usize) -> Self {
        Self { clients: BTreeMap::new(), by_age: BTreeSet::new(), most }
    }

    /// The backend that a client is bound to, if its time is not over.
    pub(crate) fn backend_of(&self, client: IpAddr, now: Tick, timeout: Duration) -> Option<&B> {
        let (latest, backend) = self.clients.get(&client)?;
        (now.since(*latest) < timeout).then_some(backend)
    }

    /// Binds a client to a backend; its time begins anew.
    pub(crate) fn bind(&mut self, client: IpAddr, backend: B, now: Tick) {
        if let Some((latest, _)) = self.clients.insert(client, (now, backend)) {
            self.by_age.remove(&(latest, client));
        }
        self.by_age.insert((now, client));
        if self.clients.len() > self.most
            && let Some((_, oldest)) = self.by_age.pop_first()
        {
            self.clients.remove(&oldest);
        }
    }

    /// Forgets clients whose time is over.
    pub(crate) fn expire(&mut self, now: Tick, timeout: Duration) {
        while let Some((latest, client)) = self.by_age.first().copied() {
            if now.since(latest) < timeout {
                return;
            }
            self.by_age.pop_first();
            self.clients.remove(&client);
        }
    }

    /// Forgets everybody.
    pub(crate) fn clear(&mut self) {
        self.clients.clear();
        self.by_age.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const FIVE: Duration = Duration::from_secs(5);

    fn client(last: u8) -> IpAddr {
        Ipv4Addr::new(127, 0, 0, last).into()
    }

    fn at(seconds: u64) -> Tick {
        Tick::from_secs(seconds)
    }

    #[test]
    fn a_client_keeps_its_backend_from_its_latest_connection_on() {
        let mut table = AffinityTable::default();
        table.bind(client(1), "a", at(100));
        table.bind(client(2), "b", at(101));
        assert_eq!(table.backend_of(client(1), at(104), FIVE), Some(&"a"), "CL-59 within its time");
        assert_eq!(table.backend_of(client(1), at(105), FIVE), None, "CL-59 after its time");
        table.bind(client(1), "a", at(104));
        assert_eq!(table.backend_of(client(1), at(108), FIVE), Some(&"a"), "CL-59 a connection renews it");
        table.bind(client(1), "c", at(108));
        assert_eq!(table.backend_of(client(1), at(109), FIVE), Some(&"c"), "CL-59 bound to another one");
        assert_eq!(table.backend_of(client(3), at(109), FIVE), None, "CL-59 a client that was never here");

        table.expire(at(110), FIVE);
        assert_eq!(
            (table.clients.len(), table.by_age.len()),
            (1, 1),
            "CL-59 one whose time is over is forgotten"
        );
        table.clear();
        assert_eq!(table.backend_of(client(1), at(109), FIVE), None, "CL-59 forgotten with all others");
    }

    #[test]
    fn the_table_is_bounded() {
        let mut table = AffinityTable::holding(3);
        for n in 1..=3 {
            table.bind(client(n), n, at(n.into()));
        }
        table.bind(client(1), 1, at(4));
        table.bind(client(4), 4, at(5));
        let there =
            [1, 2, 3, 4].map(|n| table.backend_of(client(n), at(6), Duration::from_secs(60)).is_some());
        assert_eq!(there, [true, false, true, true], "CL-59 the one that was away longest gives way");
        assert_eq!(table.by_age.len(), 3, "CL-59 and leaves nothing behind");
    }
}
