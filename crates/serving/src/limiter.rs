//! Which connection is closed when there are too many.
//!
//! We cannot refuse the newest: whoever fills the port with silent connections would lock out the probes, and the
//! kubelet kills what it cannot reach. So the newest is always accepted, and another connection is closed:
//!
//! - One of the same address if that address is at its limit, otherwise one of the addresses with the most
//!   connections. So a stranger only pushes out its own connections.
//! - First those that had time to make a request and did not; those that sent nothing before those that sent something.
//! - A stranger may share the kubelet's address: pods with `hostNetwork` do. So neither kind may push the other out:
//!   new connections are closed while they are more than half, otherwise those that were answered before, the longest
//!   idle first. A connection with a request in flight is closed last.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};

use crate::{
    activity::{Activity, Phase, Timeouts},
    metrics::Metrics,
};

/// An honest client has sent its request by then.
const HESITATION: Duration = Duration::from_secs(1);
/// Evictions are logged at most once in this time.
const LOG_AGAIN: Duration = Duration::from_secs(60);

/// Where a connection comes from: an IPv4 address, or the /64 network of an IPv6 one, which one host controls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Peer(IpAddr);

impl Peer {
    pub(crate) fn of(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(six) => IpAddr::V6(Ipv6Addr::from_bits(six.to_bits() & (u128::MAX << 64))),
            four @ IpAddr::V4(_) => four,
        })
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Capacity {
    pub(crate) total: usize,
    pub(crate) each: usize,
}

/// A connection as the decision sees it.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    number: u64,
    peer: Peer,
    phase: Phase,
}

/// The connection to close so that one more of this peer can be accepted; `None` while there is room.
fn to_evict(candidates: &[Candidate], newest: Peer, space: Capacity, now: Instant) -> Option<Candidate> {
    let mut of_each = BTreeMap::<Peer, usize>::new();
    for one in candidates {
        *of_each.entry(one.peer).or_default() += 1;
    }
    let count = |peer: Peer| of_each.get(&peer).copied().unwrap_or_default();
    let group: Vec<_> = if count(newest) >= space.each {
        candidates.iter().filter(|one| one.peer == newest).collect()
    } else if candidates.len() >= space.total {
        let most = of_each.values().max().copied().unwrap_or_default();
        candidates.iter().filter(|one| count(one.peer) == most).collect()
    } else {
        return None;
    };
    let newcomers = group.iter().filter(|one| matches!(one.phase, Phase::New { .. })).count();
    let crowd = newcomers * 2 > group.len();
    let order = |phase: Phase| match phase {
        Phase::New { sent_bytes, since } if now - since >= HESITATION => (0, sent_bytes, since),
        Phase::New { sent_bytes, since } if crowd => (1, sent_bytes, since),
        Phase::Idle(since) => (2, true, since),
        Phase::Busy(since) => (3, true, since),
        Phase::New { sent_bytes, since } => (4, sent_bytes, since),
    };
    group.into_iter().min_by_key(|one| order(one.phase)).copied()
}

struct OpenConnection {
    peer: Peer,
    activity: Arc<Activity>,
    leave: Arc<Notify>,
}

#[derive(Default)]
struct OpenConnections {
    taken: BTreeMap<u64, OpenConnection>,
    next: u64,
    /// Evictions since the last log line.
    unlogged: u64,
    logged: Option<Instant>,
}

pub(crate) struct ConnectionLimiter {
    space: Capacity,
    timeouts: Timeouts,
    metrics: Metrics,
    open: Mutex<OpenConnections>,
}

impl ConnectionLimiter {
    pub(crate) fn new(space: Capacity, timeouts: Timeouts, metrics: Metrics) -> Arc<Self> {
        Arc::new(Self { space, timeouts, metrics, open: Mutex::default() })
    }

    /// Accepts a connection, and evicts another one if there are too many.
    pub(crate) fn enter(self: &Arc<Self>, from: IpAddr) -> Slot {
        let (peer, activity, leave) = (Peer::of(from), Activity::new(self.timeouts), Arc::new(Notify::new()));
        let mut open = self.lock();
        if open.taken.len() >= self.space.total.min(self.space.each) {
            self.make_room(&mut open, peer);
        }
        let number = open.next;
        open.next += 1;
        open.taken.insert(
            number,
            OpenConnection { peer, activity: Arc::clone(&activity), leave: Arc::clone(&leave) },
        );
        Slot { limiter: Arc::clone(self), number, peer, activity, leave }
    }

    fn make_room(&self, open: &mut OpenConnections, newest: Peer) {
        let now = Instant::now();
        let candidates: Vec<_> = open
            .taken
            .iter()
            .map(|(number, one)| Candidate { number: *number, peer: one.peer, phase: one.activity.phase() })
            .collect();
        let Some(first) = to_evict(&candidates, newest, self.space, now) else { return };
        if let Some(gone) = open.taken.remove(&first.number) {
            gone.leave.notify_one();
        }
        self.metrics.evicted();
        open.unlogged += 1;
        if open.logged.is_none_or(|logged| now - logged >= LOG_AGAIN) {
            let closed = std::mem::take(&mut open.unlogged);
            open.logged = Some(now);
            tracing::warn!(
                closed,
                of = %first.peer.0,
                "connections evicted: too many are open; see who connects from this address"
            );
        }
    }

    fn lock(&self) -> MutexGuard<'_, OpenConnections> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The slot of one connection; dropping it frees the slot.
pub(crate) struct Slot {
    limiter: Arc<ConnectionLimiter>,
    number: u64,
    pub(crate) peer: Peer,
    pub(crate) activity: Arc<Activity>,
    leave: Arc<Notify>,
}

impl Slot {
    /// Waits until the connection is evicted.
    pub(crate) async fn evicted(&self) {
        self.leave.notified().await;
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.limiter.lock().taken.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_one_peer_however_many_addresses_it_has() {
        let table = [
            ("the same address", "192.0.2.7", "192.0.2.7", true),
            ("another", "192.0.2.7", "192.0.2.8", false),
            ("mapped into IPv6", "192.0.2.7", "::ffff:192.0.2.7", true),
            ("mapped ones stay apart", "::ffff:192.0.2.8", "::ffff:192.0.2.7", false),
            ("one network", "2001:db8::1", "2001:db8:0:0:ffff::2", true),
            ("the network beside it", "2001:db8::1", "2001:db8:0:1::1", false),
        ];
        for (case, one, two, want) in table {
            let [one, two] = [one, two].map(|text| Peer::of(text.parse().unwrap()));
            assert_eq!(one == two, want, "{case}");
        }
    }

    /// Who leaves, of connections that are written as peer, kind and age in milliseconds: `s` silent, `n` a newcomer
    /// that spoke, `i` idle, `b` busy.
    fn first(text: &str, newest: char, total: usize, each: usize) -> Option<usize> {
        let now = Instant::now() + Duration::from_secs(1000);
        let peer = |name: char| Peer::of(IpAddr::from([192, 0, 2, u8::try_from(name).unwrap()]));
        let candidates: Vec<_> = text
            .split_whitespace()
            .zip(0..)
            .map(|(one, number)| {
                let mut chars = one.chars();
                let (name, kind) = (chars.next().unwrap(), chars.next().unwrap());
                let since = now - Duration::from_millis(chars.as_str().parse().unwrap());
                let phase = match kind {
                    's' => Phase::New { sent_bytes: false, since },
                    'n' => Phase::New { sent_bytes: true, since },
                    'i' => Phase::Idle(since),
                    'b' => Phase::Busy(since),
                    other => panic!("{other}"),
                };
                Candidate { number, peer: peer(name), phase }
            })
            .collect();
        to_evict(&candidates, peer(newest), Capacity { total, each }, now)
            .map(|one| usize::try_from(one.number).unwrap())
    }

    #[test]
    fn the_newest_gets_in_and_the_right_one_goes() {
        let table = [
            ("there is room", "xs9 xs8 ys7", 'x', 4, 3, None),
            ("L11-900 its own peer's cap: the oldest silent one", "xs9 xs8 ys7000", 'x', 9, 2, Some(0)),
            ("L11-900 the total: of whom there are most", "xs9 xs8 ys7000", 'y', 3, 3, Some(0)),
            ("L11-900 also if the newest is a third", "xs9 xs8 ys7000", 'z', 3, 3, Some(0)),
            ("L11-900 all have as many: the longest silent", "xs9 zs70 ys60", 'k', 3, 3, Some(1)),
            ("L11-901 who said something stays longer", "xn9 xs8", 'x', 9, 2, Some(1)),
            ("L11-901 also among those with time enough", "xn9000 xs8000", 'x', 9, 2, Some(1)),
            ("L11-901 but not for ever", "xn1000 xs8", 'x', 9, 2, Some(0)),
            ("L11-902 silent before answered and busy ones", "xi90 xb80 xs2000", 'x', 9, 3, Some(2)),
            ("L11-902 also fresh ones, when they crowd", "xi9000 xs8 xs7", 'x', 9, 3, Some(1)),
            ("L11-903 answered ones do not crowd out newcomers", "xi900 xi800 xi700 xn8", 'x', 9, 4, Some(0)),
            ("L11-903 nor do busy ones", "xb700 xb900 xb800 xn8", 'x', 9, 4, Some(1)),
            ("L11-902 idle before busy", "xb900 xi8 xb700", 'x', 9, 3, Some(1)),
            ("L11-904 the kubelet beside a host full of idlers", "xi9 xi8 xi7 xi6 kn100", 'z', 5, 5, Some(0)),
        ];
        for (case, candidates, newest, total, each, want) in table {
            assert_eq!(first(candidates, newest, total, each), want, "{case}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_seat_is_free_again_when_its_connection_ends_or_is_told_to() {
        let metrics = Metrics::register(&mut prometheus_client::registry::Registry::default());
        let second = Duration::from_secs(1);
        let timeouts = Timeouts { header: second, idle: second, stall: second };
        let limiter = ConnectionLimiter::new(Capacity { total: 3, each: 2 }, timeouts, metrics);
        let (one, two) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
        let first = limiter.enter(one);
        let second = limiter.enter(one);
        drop(second);
        let second = limiter.enter(one);
        let third = limiter.enter(one);
        first.evicted().await;
        drop(first);
        assert_eq!(limiter.lock().taken.len(), 2, "L11-900: it gave its place away only once");
        let other = limiter.enter(two);
        assert_eq!(
            limiter.lock().taken.keys().copied().collect::<Vec<_>>(),
            [2, 3, 4],
            "there is room for both"
        );
        drop((second, third, other));
        assert!(limiter.lock().taken.is_empty());
    }
}
