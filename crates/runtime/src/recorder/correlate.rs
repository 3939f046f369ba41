//! Which occurrences become events of their own, which raise the count of one, and which are too many.
//!
//! The rules are those that users of events are accustomed to:
//!
//! - The same again raises the count of the event that is there.
//! - Of occurrences that differ in their message only, the first nine get events of their own; all others share one,
//!   until nothing similar has happened for ten minutes.
//! - A component may say 25 things of one type about one object at once, and one more every five minutes.

use std::{collections::BTreeSet, time::Duration};

use cloudberth_core::{
    rate::{Rate, TokenBucket},
    time::Tick,
};
use jiff::Timestamp;

use super::{Event, ObjectRef, recent::Recent};

/// From this many different messages on, they share an event.
const DIFFERENT: usize = 10;
/// After so long without anything similar, the counting begins anew.
const QUIET: Duration = Duration::from_secs(600);
/// How many events one object may get.
const ALLOWED: Rate = Rate { interval: Duration::from_secs(300), burst: 25 };
/// More is never remembered, of each kind.
const REMEMBERED: usize = 4096;

/// In front of a message that stands for several.
pub const COMBINED: &str = "(combined from similar events): ";

/// An event as it is to be from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Its name, for ever.
    pub name: String,
    /// What it tells. The message may stand for several.
    pub what: Event,
    /// Whether it stands for several that differ.
    pub combined: bool,
    /// How often it happened.
    pub count: u64,
    /// When it happened first.
    pub first: Timestamp,
    /// When it happened last.
    pub last: Timestamp,
}

/// What is to be done about an occurrence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Write a new event.
    Create(Note),
    /// Bring the event of this name up to date.
    Patch(Note),
    /// Say nothing: there was too much already.
    Drop,
}

/// Who says it, and about what.
type Subject = (&'static str, ObjectRef, bool);

/// What was said lately.
#[derive(Debug)]
pub struct Memory {
    similar: Recent<(Subject, String), Similar>,
    told: Recent<(Event, bool), Option<Told>>,
    allowance: Recent<Subject, TokenBucket>,
    last_name: i128,
}

#[derive(Debug, Default)]
struct Similar {
    messages: BTreeSet<String>,
    last: Tick,
}

#[derive(Debug)]
struct Told {
    name: String,
    count: u64,
    first: Timestamp,
}

impl Default for Memory {
    fn default() -> Self {
        Self {
            similar: Recent::new(REMEMBERED),
            told: Recent::new(REMEMBERED),
            allowance: Recent::new(REMEMBERED),
            last_name: 0,
        }
    }
}

/// Decides about an occurrence of the time `at`, which is looked at `now`, and remembers it.
pub fn correlate(memory: &mut Memory, what: &Event, at: Timestamp, now: Tick) -> Step {
    let subject = (what.component, what.about.clone(), what.warning);
    let combined =
        memory.similar.of((subject.clone(), what.reason.clone())).is_one_too_many(&what.message, now);
    // What stands for several is the same event whatever its newest message.
    let mut key = (what.clone(), combined);
    let mut what = what.clone();
    if combined {
        key.0.message.clear();
        what.message.insert_str(0, COMBINED);
    }
    let unused = memory.name(&what.about, at);
    let told = memory.told.of(key);
    let known = told.is_some();
    let told = told.get_or_insert_with(|| Told { name: unused, count: 0, first: at });
    told.count += 1;
    let note =
        Note { name: told.name.clone(), what, combined, count: told.count, first: told.first, last: at };
    if !memory.allowance.of(subject).try_take(ALLOWED, now) {
        return Step::Drop;
    }
    if known { Step::Patch(note) } else { Step::Create(note) }
}

impl Memory {
    /// A name that no event had before: the time, and later than any before it.
    fn name(&mut self, about: &ObjectRef, at: Timestamp) -> String {
        self.last_name = at.as_nanosecond().max(self.last_name + 1);
        let suffix = format!(".{:x}", self.last_name);
        let mut name: String = about.name.chars().take(LONGEST_NAME.saturating_sub(suffix.len())).collect();
        // A name may not have a dash in front of a dot.
        name.truncate(name.trim_end_matches(['-', '.']).len());
        name + &suffix
    }
}

/// What the API accepts.
const LONGEST_NAME: usize = 253;

impl Similar {
    fn is_one_too_many(&mut self, message: &str, now: Tick) -> bool {
        if now.since(self.last) > QUIET {
            self.messages.clear();
        }
        self.last = now;
        // The one that was too many is not remembered: what has an event of its own keeps it.
        if !self.messages.contains(message) && self.messages.len() + 1 >= DIFFERENT {
            return true;
        }
        self.messages.insert(message.to_owned());
        false
    }
}

#[cfg(test)]
mod tests;
