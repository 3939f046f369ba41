//! The line in which events wait to be written.
//!
//! An event that could not be written goes to the back, with a time before which it is not tried again, so that a
//! namespace which takes none (a webhook that refuses, say) does not hold up the others. What is told about one object is
//! written in the order in which it was told: a later event waits for an earlier one of the same object. And in each
//! namespace one is written at a time, so that one that hangs takes up one writer only.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use cloudberth_core::time::Tick;
use jiff::Timestamp;

use super::{Event, ObjectRef, correlate::Step};

/// An event that waits.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) what: Event,
    pub(super) at: Timestamp,
    /// What is to be done; decided when it is tried for the first time.
    pub(super) step: Option<Step>,
    pub(super) tries: u32,
    /// It is not tried before this time.
    pub(super) due: Tick,
    number: u64,
}

/// What there is to do.
#[derive(Debug)]
pub(super) enum Next {
    Write(Box<Entry>),
    /// Nothing, before this time or at all.
    Wait(Option<Tick>),
}

#[derive(Debug)]
pub(super) struct Line {
    /// Those that wait, of each object in the order of telling.
    objects: BTreeMap<ObjectRef, VecDeque<Entry>>,
    /// The first of each object that is not being written about, by the time when it is due.
    heads: BTreeSet<(Tick, u64, ObjectRef)>,
    /// The namespaces in which something is being written now, and about what.
    busy: BTreeMap<String, ObjectRef>,
    len: usize,
    told: u64,
    capacity: usize,
}

impl Line {
    pub(super) const fn new(capacity: usize) -> Self {
        Self {
            objects: BTreeMap::new(),
            heads: BTreeSet::new(),
            busy: BTreeMap::new(),
            len: 0,
            told: 0,
            capacity,
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Adds what was told. If there is no room, something is dropped, and that is false: one that has failed before, or
    /// the new one.
    pub(super) fn add(&mut self, what: Event, at: Timestamp, now: Tick) -> bool {
        let room = self.len < self.capacity;
        if !room && !self.drop_a_failed_one() {
            return false;
        }
        self.told += 1;
        self.put(Entry { what, at, step: None, tries: 0, due: now, number: self.told }, false);
        room
    }

    /// Takes the next one that is due. It has to be [given back](Self::done), whatever becomes of it.
    pub(super) fn take(&mut self, now: Tick) -> Next {
        let free = |(_, _, about): &&(Tick, u64, ObjectRef)| !self.busy.contains_key(namespace(about));
        let Some((due, number, about)) = self.heads.iter().find(free).cloned() else {
            return Next::Wait(None);
        };
        if due > now {
            return Next::Wait(Some(due));
        }
        self.heads.remove(&(due, number, about.clone()));
        let entry = self.pop(&about);
        self.busy.insert(namespace(&about).to_owned(), about);
        entry.map_or(Next::Wait(None), |entry| Next::Write(Box::new(entry)))
    }

    /// One that was taken is done with, or goes back into the line.
    pub(super) fn done(&mut self, about: &ObjectRef, again: Option<Entry>) {
        self.busy.remove(namespace(about));
        match again {
            Some(entry) => self.put(entry, true),
            None => self.show_head(about),
        }
    }

    /// Nothing is being written: whoever wrote was stopped.
    pub(super) fn begin(&mut self) {
        let busy = std::mem::take(&mut self.busy);
        for about in busy.values() {
            self.show_head(about);
        }
    }

    fn put(&mut self, entry: Entry, first: bool) {
        let about = entry.what.about.clone();
        let entries = self.objects.entry(about.clone()).or_default();
        if first {
            entries.push_front(entry);
        } else {
            entries.push_back(entry);
        }
        self.len += 1;
        self.show_head(&about);
    }

    /// Lets the first entry of an object be taken, unless the one before it is being written.
    fn show_head(&mut self, about: &ObjectRef) {
        let Some(head) = self.objects.get(about).and_then(VecDeque::front) else { return };
        if self.busy.get(namespace(about)) != Some(about) {
            self.heads.insert((head.due, head.number, about.clone()));
        }
    }

    fn pop(&mut self, about: &ObjectRef) -> Option<Entry> {
        let entries = self.objects.get_mut(about)?;
        let entry = entries.pop_front();
        if entries.is_empty() {
            self.objects.remove(about);
        }
        self.len -= usize::from(entry.is_some());
        entry
    }

    /// Drops the one that failed and is tried last of all.
    fn drop_a_failed_one(&mut self) -> bool {
        let failed = |(_, _, about): &&(Tick, u64, ObjectRef)| {
            self.objects.get(about).and_then(VecDeque::front).is_some_and(|head| head.tries > 0)
        };
        let Some(place) = self.heads.iter().rev().find(failed).cloned() else { return false };
        self.heads.remove(&place);
        self.pop(&place.2);
        self.show_head(&place.2);
        true
    }
}

/// Where events about an object are written. What has no namespace is talked about in the default one.
pub(super) fn namespace(about: &ObjectRef) -> &str {
    if about.namespace.is_empty() { "default" } else { &about.namespace }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(line: &mut Line, namespace: &str, name: &str, message: &str) -> bool {
        let about = ObjectRef::core("Service", namespace, name, "");
        let (reason, message) = ("R".to_owned(), message.to_owned());
        let what = Event { about, warning: false, reason, message, component: "c" };
        line.add(what, Timestamp::UNIX_EPOCH, Tick::ZERO)
    }

    fn take(line: &mut Line, now: u64) -> Option<Entry> {
        match line.take(Tick::from_secs(now)) {
            Next::Write(entry) => Some(*entry),
            Next::Wait(_) => None,
        }
    }

    fn message(entry: Option<&Entry>) -> &str {
        entry.map_or("-", |entry| entry.what.message.as_str())
    }

    fn fails(line: &mut Line, mut entry: Entry, due: u64) {
        (entry.tries, entry.due) = (entry.tries + 1, Tick::from_secs(due));
        let about = entry.what.about.clone();
        line.done(&about, Some(entry));
    }

    #[test]
    fn one_that_failed_lets_the_others_pass_but_not_those_of_its_object() {
        let mut line = Line::new(10);
        for (namespace, name, text) in
            [("bad", "x", "x1"), ("bad", "x", "x2"), ("bad", "y", "y1"), ("good", "z", "z1")]
        {
            told(&mut line, namespace, name, text);
        }
        let x1 = take(&mut line, 0).unwrap();
        assert_eq!(x1.what.message, "x1");
        let z1 = take(&mut line, 0);
        assert_eq!(message(z1.as_ref()), "z1", "L11-610 one at a time in a namespace");
        assert_eq!(message(take(&mut line, 0).as_ref()), "-");
        fails(&mut line, x1, 10);
        line.done(&z1.unwrap().what.about, None);
        let y1 = take(&mut line, 1);
        assert_eq!(message(y1.as_ref()), "y1", "L11-611 x2 waits for x1");
        line.done(&y1.unwrap().what.about, None);
        assert!(matches!(line.take(Tick::from_secs(1)), Next::Wait(Some(at)) if at == Tick::from_secs(10)));
        let x1 = take(&mut line, 10);
        assert_eq!(message(x1.as_ref()), "x1");
        assert_eq!(message(take(&mut line, 10).as_ref()), "-");
        line.done(&x1.unwrap().what.about, None);
        assert_eq!(message(take(&mut line, 10).as_ref()), "x2", "L4-702 in the order of telling");
        assert_eq!(line.len(), 0);
    }

    #[test]
    fn a_full_line_drops_what_failed_before_it_drops_what_is_new() {
        let mut line = Line::new(2);
        assert!(told(&mut line, "bad", "x", "x1") && told(&mut line, "bad", "y", "y1"));
        assert!(!told(&mut line, "good", "z", "z1"), "L12-606");
        let x1 = take(&mut line, 0).unwrap();
        fails(&mut line, x1, 10);
        assert!(!told(&mut line, "good", "z", "z2"), "one is dropped");
        assert_eq!(line.len(), 2);
        let both = [take(&mut line, 20), take(&mut line, 20)];
        assert_eq!(
            both.each_ref().map(|entry| message(entry.as_ref())),
            ["y1", "z2"],
            "L12-607 and it is x1"
        );
    }

    #[test]
    fn who_begins_anew_finds_everything_free() {
        let mut line = Line::new(10);
        told(&mut line, "a", "x", "x1");
        told(&mut line, "a", "x", "x2");
        assert!(take(&mut line, 0).is_some() && take(&mut line, 0).is_none());
        line.begin();
        assert_eq!(message(take(&mut line, 0).as_ref()), "x2");
    }
}
