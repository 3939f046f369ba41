//! Which events are created, which raise the count of an earlier one, and which are dropped.
//!
//! The rules are those of client-go:
//!
//! - A repeated event raises the count of the first.
//! - Of events that differ in their message only, the first nine are created; all others share one, until nothing similar
//!   has happened for ten minutes.
//! - A component may publish 25 events of one type about one object at once, and one more every five minutes.

#![allow(missing_docs, reason = "plain data whose names say what it is")]

use std::{collections::BTreeSet, time::Duration};

use cloudberth_core::{
    Reason,
    rate::{Rate, TokenBucket},
    time::Tick,
};
use jiff::Timestamp;

use super::{Event, ObjectRef, recent::Recent};

/// From this many different messages on, events are combined.
const DIFFERENT: usize = 10;
/// After this long without a similar event, counting starts over.
const QUIET: Duration = Duration::from_secs(600);
/// How many events of one type a component may publish about one object.
const ALLOWED: Rate = Rate { interval: Duration::from_secs(300), burst: 25 };
/// How many entries of each kind are remembered.
const REMEMBERED: usize = 4096;

/// The prefix of the message of a combined event.
pub const COMBINED: &str = "(combined from similar events): ";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventRecord {
    pub name: String,
    /// The published event; with [`COMBINED`] in its message if it is combined.
    pub what: Event,
    /// Whether it stands for several events with different messages.
    pub combined: bool,
    pub count: u64,
    pub first: Timestamp,
    pub last: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Create(EventRecord),
    Patch(EventRecord),
    /// Drop it: there were too many.
    Drop,
}

/// The component, the object and the type of an event.
type Subject = (&'static str, ObjectRef, bool);

#[derive(Debug)]
pub struct History {
    similar: Recent<(Subject, Reason), Similar>,
    recorded: Recent<(Event, bool), Option<Recorded>>,
    allowance: Recent<Subject, TokenBucket>,
    last_name: i128,
}

#[derive(Debug, Default)]
struct Similar {
    messages: BTreeSet<String>,
    last: Tick,
}

#[derive(Debug)]
struct Recorded {
    name: String,
    count: u64,
    first: Timestamp,
}

impl Default for History {
    fn default() -> Self {
        Self {
            similar: Recent::new(REMEMBERED),
            recorded: Recent::new(REMEMBERED),
            allowance: Recent::new(REMEMBERED),
            last_name: 0,
        }
    }
}

/// Decides what to do with an event of the time `at`, and remembers it.
pub fn correlate(history: &mut History, what: &Event, at: Timestamp, now: Tick) -> Step {
    let subject = (what.component, what.about.clone(), what.warning);
    let combined = history.similar.of((subject.clone(), what.reason)).is_one_too_many(&what.message, now);
    // A combined event stays the same event whatever its newest message.
    let mut key = (what.clone(), combined);
    let mut what = what.clone();
    if combined {
        key.0.message.clear();
        what.message.insert_str(0, COMBINED);
    }
    let unused = history.name(&what.about, at);
    let recorded = history.recorded.of(key);
    let known = recorded.is_some();
    let recorded = recorded.get_or_insert_with(|| Recorded { name: unused, count: 0, first: at });
    recorded.count += 1;
    let record = EventRecord {
        name: recorded.name.clone(),
        what,
        combined,
        count: recorded.count,
        first: recorded.first,
        last: at,
    };
    if !history.allowance.of(subject).try_take(ALLOWED, now) {
        return Step::Drop;
    }
    if known { Step::Patch(record) } else { Step::Create(record) }
}

impl History {
    /// A name that no event had before: the time, later than in any name before.
    fn name(&mut self, about: &ObjectRef, at: Timestamp) -> String {
        self.last_name = at.as_nanosecond().max(self.last_name + 1);
        let suffix = format!(".{:x}", self.last_name);
        let mut name: String = about.name.chars().take(LONGEST_NAME.saturating_sub(suffix.len())).collect();
        // A dash in front of a dot is not allowed.
        name.truncate(name.trim_end_matches(['-', '.']).len());
        name + &suffix
    }
}

/// The longest name that the API accepts.
const LONGEST_NAME: usize = 253;

impl Similar {
    fn is_one_too_many(&mut self, message: &str, now: Tick) -> bool {
        if now.since(self.last) > QUIET {
            self.messages.clear();
        }
        self.last = now;
        // The extra message is not remembered, so that the first nine keep their own events.
        if !self.messages.contains(message) && self.messages.len() + 1 >= DIFFERENT {
            return true;
        }
        self.messages.insert(message.to_owned());
        false
    }
}

#[cfg(test)]
mod tests;
