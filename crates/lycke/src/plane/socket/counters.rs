//! What is counted while traffic passes.
//!
//! Each worker counts in cells of its own, which no other thread writes: counting a byte costs no more than adding to a plain
//! number. Whoever wants to know adds the cells up.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use ipnet::IpNet;

use crate::plane::report::{BackendCounters, Connections, Counters, PlaneTotals, UdpCounters};

/// What one worker has counted. Cells of two workers never share a line of the processor's cache.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Cell {
    pub(crate) opened: Count,
    pub(crate) closed: Count,
    pub(crate) accepted: Count,
    pub(crate) refused_source: Count,
    pub(crate) refused_limit: Count,
    pub(crate) no_backend: Count,
    pub(crate) failed: Count,
    pub(crate) bytes_in: Count,
    pub(crate) bytes_out: Count,
    pub(crate) datagrams_in: Count,
    pub(crate) datagrams_out: Count,
    pub(crate) dropped: Count,
    pub(crate) flows_opened: Count,
    pub(crate) flows_closed: Count,
    /// Clients that other workers have let in for this one, and that it has not seen yet. Every worker writes it.
    pub(crate) handed: AtomicU64,
}

impl Cell {
    /// TCP connections that this worker has, and those on their way to it.
    pub(crate) fn load(&self) -> u64 {
        let closed = self.closed.0.load(Relaxed);
        let open = self.opened.0.load(Relaxed).saturating_sub(closed);
        open.saturating_add(self.handed.load(Relaxed))
    }
}

/// A number that one thread writes and all may read.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    /// Only the thread that owns the cell may call this.
    pub(crate) fn add(&self, more: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(more), Relaxed);
    }

    pub(crate) fn add_len(&self, length: usize) {
        self.add(u64::try_from(length).unwrap_or(u64::MAX));
    }
}

/// One cell for each worker.
#[derive(Debug)]
pub(crate) struct Cells(Box<[Cell]>);

impl Cells {
    pub(crate) fn new(workers: usize) -> Self {
        Self((0..workers).map(|_| Cell::default()).collect())
    }

    /// How many workers there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The cell of a worker.
    pub(crate) fn of(&self, worker: usize) -> Option<&Cell> {
        self.0.get(worker)
    }

    fn sum(&self, field: impl Fn(&Cell) -> &Count) -> u64 {
        self.0.iter().map(|cell| field(cell).0.load(Relaxed)).fold(0, u64::wrapping_add)
    }

    fn connections(&self) -> Connections {
        let closed = self.sum(|cell| &cell.closed);
        Connections {
            // Read after `closed`: a connection is never counted as closed but not opened.
            open: self.sum(|cell| &cell.opened).saturating_sub(closed),
            accepted: self.sum(|cell| &cell.accepted),
            refused_source: self.sum(|cell| &cell.refused_source),
            refused_limit: self.sum(|cell| &cell.refused_limit),
            no_backend: self.sum(|cell| &cell.no_backend),
            failed: self.sum(|cell| &cell.failed),
        }
    }

    fn flows(&self) -> u64 {
        let closed = self.sum(|cell| &cell.flows_closed);
        self.sum(|cell| &cell.flows_opened).saturating_sub(closed)
    }

    /// All but backends, ranges and time.
    pub(crate) fn counters(&self) -> Counters {
        Counters {
            connections: self.connections(),
            bytes_in: self.sum(|cell| &cell.bytes_in),
            bytes_out: self.sum(|cell| &cell.bytes_out),
            udp: UdpCounters {
                flows: self.flows(),
                datagrams_in: self.sum(|cell| &cell.datagrams_in),
                datagrams_out: self.sum(|cell| &cell.datagrams_out),
                dropped: self.sum(|cell| &cell.dropped),
            },
            ..Counters::default()
        }
    }

    pub(crate) fn totals(&self) -> PlaneTotals {
        let Counters { connections, bytes_in, bytes_out, udp, .. } = self.counters();
        PlaneTotals { connections, bytes_in, bytes_out, udp_flows: udp.flows }
    }
}

/// What was counted since `before`. What is open now is open, whenever it began.
pub(crate) fn since(before: &Counters, now: Counters) -> Counters {
    let (was, is) = (&before.connections, &now.connections);
    let old_backends: BTreeMap<&str, &BackendCounters> =
        before.backends.iter().map(|backend| (backend.machine.as_str(), backend)).collect();
    let old_ranges: BTreeMap<IpNet, u64> = before.source_ranges.iter().copied().collect();
    let backends = now.backends.into_iter().map(|backend| match old_backends.get(backend.machine.as_str()) {
        None => backend,
        Some(old) => BackendCounters {
            connections: backend.connections.saturating_sub(old.connections),
            failures: backend.failures.saturating_sub(old.failures),
            ..backend
        },
    });
    let ranges = now.source_ranges.into_iter().map(|(range, hits)| {
        (range, hits.saturating_sub(old_ranges.get(&range).copied().unwrap_or_default()))
    });
    Counters {
        connections: Connections {
            open: is.open,
            accepted: is.accepted.saturating_sub(was.accepted),
            refused_source: is.refused_source.saturating_sub(was.refused_source),
            refused_limit: is.refused_limit.saturating_sub(was.refused_limit),
            no_backend: is.no_backend.saturating_sub(was.no_backend),
            failed: is.failed.saturating_sub(was.failed),
        },
        bytes_in: now.bytes_in.saturating_sub(before.bytes_in),
        bytes_out: now.bytes_out.saturating_sub(before.bytes_out),
        udp: UdpCounters {
            flows: now.udp.flows,
            datagrams_in: now.udp.datagrams_in.saturating_sub(before.udp.datagrams_in),
            datagrams_out: now.udp.datagrams_out.saturating_sub(before.udp.datagrams_out),
            dropped: now.udp.dropped.saturating_sub(before.udp.dropped),
        },
        backends: backends.collect(),
        source_ranges: ranges.collect(),
        since: now.since,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_added_up() {
        let cells = Cells::new(3);
        for (worker, opened) in [(0, 5), (2, 7)] {
            let cell = cells.of(worker).unwrap();
            cell.opened.add(opened);
            cell.closed.add(1);
            cell.bytes_in.add_len(100);
            cell.flows_opened.add(2);
        }
        let sum = cells.counters();
        assert_eq!((sum.connections.open, sum.bytes_in, sum.udp.flows), (10, 200, 4), "CL-66");
        assert_eq!(cells.totals().connections.open, 10, "CL-66");
        assert!(cells.of(3).is_none(), "CL-66 there are three workers");
    }

    #[test]
    fn counting_starts_again_but_what_is_open_stays_open() {
        let range: IpNet = "127.0.0.0/8".parse().unwrap();
        let counters = |n: u64, machine: &str| Counters {
            connections: Connections { open: 3, accepted: n, failed: n, ..Connections::default() },
            bytes_in: n,
            udp: UdpCounters { flows: 2, datagrams_in: n, ..UdpCounters::default() },
            backends: vec![BackendCounters {
                machine: machine.to_owned(),
                open: 1,
                connections: n,
                failures: n,
            }],
            source_ranges: vec![(range, n)],
            ..Counters::default()
        };
        let rest = since(&counters(10, "a"), counters(14, "a"));
        assert_eq!(rest, counters(4, "a"), "CL-70 what came since, and all that is open");
        let other = since(&counters(10, "a"), counters(14, "b"));
        assert_eq!(other.backends, counters(14, "b").backends, "CL-70 a backend that was not there before");
    }
}
