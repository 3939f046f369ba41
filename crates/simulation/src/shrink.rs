//! Makes a failing schedule smaller: drops whatever is not needed for it to fail.

use crate::{broken::Broken, run::run, schedule::Schedule};

/// The smallest schedule found that still fails: no single deed of it can be left out.
pub fn shrink(schedule: &Schedule, broken: Option<Broken>) -> Schedule {
    let mut best = schedule.clone();
    let mut size = best.deeds.len().div_ceil(2).max(1);
    loop {
        let mut at = 0;
        while at < best.deeds.len() {
            let end = (at + size).min(best.deeds.len());
            let mut smaller = best.clone();
            smaller.deeds.drain(at..end);
            if run(&smaller, broken).wrong.is_empty() {
                at = end;
            } else {
                best = smaller;
            }
        }
        if size == 1 {
            return best;
        }
        size = size.div_ceil(2);
    }
}
