//! How many members each pool had over time, for those who watch that traffic never loses its last target.

use cloudberth_core::Tick;
use serde::Serialize;

/// The members of a pool changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PoolChange {
    /// When, in microseconds of the cloud's time.
    #[serde(serialize_with = "micros")]
    pub at: Tick,
    /// The pool's id.
    pub pool: String,
    /// Its name.
    pub name: String,
    /// The balancer's id.
    pub balancer: String,
    /// Members before that took part.
    pub before: usize,
    /// Those of them that were not known to be down.
    pub healthy_before: usize,
    /// Members after that take part.
    pub after: usize,
    /// The pool went, and its members with it.
    pub gone: bool,
}

impl PoolChange {
    /// A pool that stays lost its last member, although traffic still had somewhere to go.
    pub fn emptied(&self) -> bool {
        !self.gone && self.healthy_before > 0 && self.after == 0
    }
}

/// All changes, oldest first.
pub(crate) type History = Vec<PoolChange>;

pub(crate) fn micros<S: serde::Serializer>(at: &Tick, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(at.0.as_micros()).unwrap_or(u64::MAX))
}
