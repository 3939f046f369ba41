//! Who may stay when there is no room for everybody.
//!
//! Refusing the newest would be the end of the program: whoever fills the port with silent connections locks the probes
//! out, and the kubelet kills what it cannot reach. So the newest always gets in, and somebody else goes:
//!
//! - Somebody of the same address, if that address has as many connections as one may have; otherwise somebody of the
//!   addresses with the most. A stranger crowds out nobody but itself.
//! - First those that have not made a request although they had time to; silent ones before those that said something.
//! - A stranger may share the kubelet's address: pods with `hostNetwork` do. So neither kind may push the other out:
//!   newcomers go while they are more than half, and only otherwise those that were answered already, the longest idle
//!   first. What is being answered goes last.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};

use crate::{
    metrics::Metrics,
    pulse::{Patience, Pulse, Standing},
};

/// A client that means it has sent its request by then.
const HESITATION: Duration = Duration::from_secs(1);
/// A crowd is told about once in this time.
const TELL_AGAIN: Duration = Duration::from_secs(60);

/// Where a connection comes from: an address, or for IPv6 the network of 64 bits that one host commands.
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

/// How many connections there may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Space {
    pub(crate) total: usize,
    pub(crate) each: usize,
}

/// A connection as the decision sees it.
#[derive(Clone, Copy, Debug)]
struct Sitting {
    number: u64,
    peer: Peer,
    standing: Standing,
}

/// Who has to go so that one more of this peer can come.
fn leaves(sitting: &[Sitting], newest: Peer, space: Space, now: Instant) -> Option<Sitting> {
    let mut of_each = BTreeMap::<Peer, usize>::new();
    for one in sitting {
        *of_each.entry(one.peer).or_default() += 1;
    }
    let count = |peer: Peer| of_each.get(&peer).copied().unwrap_or_default();
    let group: Vec<_> = if count(newest) >= space.each {
        sitting.iter().filter(|one| one.peer == newest).collect()
    } else if sitting.len() >= space.total {
        let most = of_each.values().max().copied().unwrap_or_default();
        sitting.iter().filter(|one| count(one.peer) == most).collect()
    } else {
        return None;
    };
    let newcomers = group.iter().filter(|one| matches!(one.standing, Standing::Newcomer { .. })).count();
    let crowd = newcomers * 2 > group.len();
    let order = |standing: Standing| match standing {
        Standing::Newcomer { spoke, since } if now - since >= HESITATION => (0, spoke, since),
        Standing::Newcomer { spoke, since } if crowd => (1, spoke, since),
        Standing::Idle(since) => (2, true, since),
        Standing::Busy(since) => (3, true, since),
        Standing::Newcomer { spoke, since } => (4, spoke, since),
    };
    group.into_iter().min_by_key(|one| order(one.standing)).copied()
}

struct Taken {
    peer: Peer,
    pulse: Arc<Pulse>,
    leave: Arc<Notify>,
}

#[derive(Default)]
struct Seats {
    taken: BTreeMap<u64, Taken>,
    next: u64,
    /// How many had to go since that was told.
    untold: u64,
    told: Option<Instant>,
}

/// All connections of a server.
pub(crate) struct Room {
    space: Space,
    patience: Patience,
    metrics: Metrics,
    seats: Mutex<Seats>,
}

impl Room {
    pub(crate) fn new(space: Space, patience: Patience, metrics: Metrics) -> Arc<Self> {
        Arc::new(Self { space, patience, metrics, seats: Mutex::default() })
    }

    /// Lets a connection in; if need be, another one is told to go.
    pub(crate) fn enter(self: &Arc<Self>, from: IpAddr) -> Seat {
        let (peer, pulse, leave) = (Peer::of(from), Pulse::new(self.patience), Arc::new(Notify::new()));
        let mut seats = self.lock();
        if seats.taken.len() >= self.space.total.min(self.space.each) {
            self.make_room(&mut seats, peer);
        }
        let number = seats.next;
        seats.next += 1;
        seats.taken.insert(number, Taken { peer, pulse: Arc::clone(&pulse), leave: Arc::clone(&leave) });
        Seat { room: Arc::clone(self), number, peer, pulse, leave }
    }

    fn make_room(&self, seats: &mut Seats, newest: Peer) {
        let now = Instant::now();
        let sitting: Vec<_> = seats
            .taken
            .iter()
            .map(|(number, one)| Sitting { number: *number, peer: one.peer, standing: one.pulse.standing() })
            .collect();
        let Some(first) = leaves(&sitting, newest, self.space, now) else { return };
        if let Some(gone) = seats.taken.remove(&first.number) {
            gone.leave.notify_one();
        }
        self.metrics.evicted();
        seats.untold += 1;
        if seats.told.is_none_or(|told| now - told >= TELL_AGAIN) {
            let closed = std::mem::take(&mut seats.untold);
            seats.told = Some(now);
            tracing::warn!(
                closed,
                of = %first.peer.0,
                "the port is crowded: connections were closed to let others in; see who connects from this address"
            );
        }
    }

    fn lock(&self) -> MutexGuard<'_, Seats> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of one connection; free again when it is dropped.
pub(crate) struct Seat {
    room: Arc<Room>,
    number: u64,
    pub(crate) peer: Peer,
    pub(crate) pulse: Arc<Pulse>,
    leave: Arc<Notify>,
}

impl Seat {
    /// Waits until somebody else needs the place.
    pub(crate) async fn needed(&self) {
        self.leave.notified().await;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.room.lock().taken.remove(&self.number);
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
        let sitting: Vec<_> = text
            .split_whitespace()
            .zip(0..)
            .map(|(one, number)| {
                let mut chars = one.chars();
                let (name, kind) = (chars.next().unwrap(), chars.next().unwrap());
                let since = now - Duration::from_millis(chars.as_str().parse().unwrap());
                let standing = match kind {
                    's' => Standing::Newcomer { spoke: false, since },
                    'n' => Standing::Newcomer { spoke: true, since },
                    'i' => Standing::Idle(since),
                    'b' => Standing::Busy(since),
                    other => panic!("{other}"),
                };
                Sitting { number, peer: peer(name), standing }
            })
            .collect();
        leaves(&sitting, peer(newest), Space { total, each }, now)
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
        for (case, sitting, newest, total, each, want) in table {
            assert_eq!(first(sitting, newest, total, each), want, "{case}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_seat_is_free_again_when_its_connection_ends_or_is_told_to() {
        let metrics = Metrics::register(&mut prometheus_client::registry::Registry::default());
        let second = Duration::from_secs(1);
        let patience = Patience { header: second, idle: second, stall: second };
        let room = Room::new(Space { total: 3, each: 2 }, patience, metrics);
        let (one, two) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
        let first = room.enter(one);
        let second = room.enter(one);
        drop(second);
        let second = room.enter(one);
        let third = room.enter(one);
        first.needed().await;
        drop(first);
        assert_eq!(room.lock().taken.len(), 2, "L11-900: it gave its place away only once");
        let other = room.enter(two);
        assert_eq!(
            room.lock().taken.keys().copied().collect::<Vec<_>>(),
            [2, 3, 4],
            "there is room for both"
        );
        drop((second, third, other));
        assert!(room.lock().taken.is_empty());
    }
}
