//! The figures, as they are printed.

use std::fmt;
use std::time::Duration;

use super::Load;
use super::work::Counts;

/// How long a list takes, and how long it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Listing {
    pub(crate) median: Duration,
    pub(crate) bytes: usize,
}

/// The results of a run in which nothing was lost.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) load: Load,
    pub(crate) filled_in: Duration,
    /// Of Nodes, and of Services.
    pub(crate) listings: [Listing; 2],
    pub(crate) patched_in: Duration,
    pub(crate) counts: Counts,
    pub(crate) relists: u64,
    pub(crate) filled_kib: Option<u64>,
    pub(crate) loaded_kib: Option<u64>,
}

fn mib(kib: Option<u64>) -> String {
    kib.map_or_else(|| "unknown".to_owned(), |kib| format!("{} MiB", kib / 1024))
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Load { nodes, services, clients, watchers, .. } = self.load;
        let patches = self.counts.nodes + self.counts.services;
        let millis = self.patched_in.as_millis().max(1);
        let rate = u128::from(patches) * 1000 / millis;
        writeln!(f, "cluster    {nodes} Nodes, {services} Services, made in {:.1?}", self.filled_in)?;
        writeln!(f, "load       {clients} clients, {watchers} watchers, {:.1?}", self.patched_in)?;
        writeln!(f, "patches    {patches}, {rate} patches per second")?;
        let (again, lists) = (self.relists, if self.relists == 1 { "list" } else { "lists" });
        writeln!(f, "watchers   in order, complete, equal to a fresh list; overrun: {again} {lists} again")?;
        for (name, listing) in ["Nodes", "Services"].iter().zip(self.listings) {
            writeln!(f, "list       all {name}: {:.1?}, {} KiB", listing.median, listing.bytes / 1024)?;
        }
        let (filled, loaded) = (mib(self.filled_kib), mib(self.loaded_kib));
        writeln!(f, "memory     resident {filled} when filled, {loaded} after the load")
    }
}
