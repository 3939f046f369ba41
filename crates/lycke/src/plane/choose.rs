//! Which backend takes a new client.

use std::net::IpAddr;

use super::config::Policy;

/// What the choice looks at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate<'a> {
    /// The id of its machine.
    pub(crate) machine: &'a str,
    /// Its open connections and flows.
    pub(crate) open: u64,
}

/// The position of the backend for a client, among those that were not tried yet. `None` if all were.
///
/// `turn` is the client's number in the sequence of its listener: over any run of numbers, round-robin gives each candidate
/// the same number of clients, or one more.
pub(crate) fn choose<'a, C, T>(
    policy: Policy,
    client: IpAddr,
    turn: usize,
    candidates: C,
    tried: &T,
) -> Option<usize>
where
    C: ExactSizeIterator<Item = Candidate<'a>>,
    T: Fn(usize) -> bool,
{
    let count = candidates.len();
    let first = turn.checked_rem(count)?;
    let left = candidates.enumerate().filter(|(at, _)| !tried(*at));
    // How many places after the first one, so that ties are dealt out in turn.
    let distance = |at: usize| (at + count - first) % count;
    match policy {
        Policy::RoundRobin => (first..count).chain(0..first).find(|at| !tried(*at)),
        Policy::LeastConnections => {
            left.min_by_key(|(at, candidate)| (candidate.open, distance(*at))).map(|(at, _)| at)
        }
        Policy::SourceHash => left
            .max_by_key(|(_, candidate)| (weight(client, candidate.machine), candidate.machine))
            .map(|(at, _)| at),
    }
}

/// How much a client is drawn to a machine. Each client goes to the heaviest one, so that only the clients of a machine that
/// goes away move.
fn weight(client: IpAddr, machine: &str) -> u64 {
    let address = match client {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    };
    // FNV-1a, then a mix that lets the last byte reach every bit.
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in machine.bytes().chain(address.octets()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use proptest::prelude::*;

    use super::*;

    const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const MACHINES: [&str; 5] = ["a", "b", "c", "d", "e"];

    fn pick(policy: Policy, turn: usize, open: &[u64], tried: &[usize]) -> Option<usize> {
        let candidates = open.iter().zip(MACHINES).map(|(open, machine)| Candidate { machine, open: *open });
        choose(policy, CLIENT, turn, candidates, &|at| tried.contains(&at))
    }

    #[test]
    fn each_policy_chooses_among_those_that_were_not_tried() {
        use Policy::{LeastConnections as Least, RoundRobin as Robin, SourceHash as Hash};
        type Row = (&'static str, Policy, usize, &'static [u64], &'static [usize], Option<usize>);
        let table: [Row; 10] = [
            ("CL-50 the first", Robin, 0, &[9, 0, 0], &[], Some(0)),
            ("CL-50 the next", Robin, 1, &[9, 0, 0], &[], Some(1)),
            ("CL-50 around", Robin, 3, &[9, 0, 0], &[], Some(0)),
            ("CL-51 one that failed is passed over", Robin, 1, &[0, 0, 0], &[1], Some(2)),
            ("CL-51 around to the one that is left", Robin, 2, &[0, 0, 0], &[1, 2], Some(0)),
            ("CL-51 each is tried once", Robin, 2, &[0, 0, 0], &[0, 1, 2], None),
            ("CL-53 nobody is there", Robin, 2, &[], &[], None),
            ("CL-83 the emptier one", Least, 0, &[3, 1, 2], &[], Some(1)),
            ("CL-83 ties are dealt out in turn", Least, 2, &[1, 1, 1], &[], Some(2)),
            ("CL-83 nobody is left", Hash, 0, &[0], &[0], None),
        ];
        for (case, policy, turn, open, tried, want) in table {
            assert_eq!(pick(policy, turn, open, tried), want, "{case}");
        }
    }

    fn hashed(client: u32, machines: &[&'static str]) -> Option<&'static str> {
        let candidates = machines.iter().map(|machine| Candidate { machine, open: 0 });
        let at = choose(Policy::SourceHash, IpAddr::V4(client.into()), 7, candidates, &|_| false)?;
        machines.get(at).copied()
    }

    #[test]
    fn hashed_clients_are_spread_evenly() {
        let mut taken = [0_u32; 5];
        for client in 0..5_000_u32 {
            let machine = hashed(0x7f00_0001 + client, &MACHINES).unwrap();
            taken[MACHINES.iter().position(|m| *m == machine).unwrap()] += 1;
        }
        assert!(taken.iter().all(|n| (850..1150).contains(n)), "CL-83 about a thousand each: {taken:?}");
    }

    proptest! {
        #[test]
        fn round_robin_is_exact_to_one(start in 0_usize..1_000_000, clients in 0_usize..500, count in 1_usize..5) {
            let mut taken = vec![0_usize; count];
            for turn in start..start + clients {
                taken[pick(Policy::RoundRobin, turn, &vec![0; count], &[]).unwrap()] += 1;
            }
            let (least, most) = (taken.iter().min().unwrap(), taken.iter().max().unwrap());
            prop_assert!(most - least <= 1, "CL-50 {taken:?}");
        }

        #[test]
        fn only_clients_of_a_lost_machine_move(client: u32, lost in 0_usize..5) {
            let before = hashed(client, &MACHINES).unwrap();
            let rest: Vec<_> = MACHINES.into_iter().filter(|machine| *machine != MACHINES[lost]).collect();
            let after = hashed(client, &rest).unwrap();
            prop_assert_eq!(before == MACHINES[lost], before != after, "CL-83 from {} to {}", before, after);
        }
    }
}
