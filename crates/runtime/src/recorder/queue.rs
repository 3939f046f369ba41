//! The queue of events that wait to be written.
//!
//! An event that failed goes to the back and waits for its next try, so that a namespace that accepts none (because of a
//! webhook, say) does not block the others. Events about one object are written in order: a later one waits for an
//! earlier one. In each namespace one event is written at a time, so that a write that hangs takes up one writer only.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use cloudberth_core::time::Tick;
use jiff::Timestamp;

use super::{Event, ObjectRef, correlate::Step};

#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) what: Event,
    pub(super) at: Timestamp,
    /// What to write; decided at the first try.
    pub(super) step: Option<Step>,
    pub(super) tries: u32,
    /// The earliest time of the next try.
    pub(super) due: Tick,
    number: u64,
}

#[derive(Debug)]
pub(super) enum Next {
    Write(Box<Entry>),
    /// Nothing before this time; nothing at all if there is none.
    Wait(Option<Tick>),
}

/// Where the first event of an object stands: when it is due, its number, and the object.
type Place = (Tick, u64, ObjectRef);

/// The events of one namespace that could be written next.
#[derive(Debug, Default)]
struct Namespace {
    /// The first event of each object that has no write in flight, by due time.
    heads: BTreeSet<Place>,
    /// The object that the write in flight is about.
    busy: Option<ObjectRef>,
}

impl Namespace {
    /// Which of them is next, while none is being written.
    fn next(&self) -> Option<(Tick, u64)> {
        let first = self.heads.first().filter(|_| self.busy.is_none());
        first.map(|(due, number, _)| (*due, *number))
    }
}

#[derive(Debug)]
pub(super) struct EventQueue {
    /// Waiting events, for each object in the order of publishing.
    objects: BTreeMap<ObjectRef, VecDeque<Entry>>,
    /// The namespaces with a write in flight or something to write.
    namespaces: BTreeMap<String, Namespace>,
    /// The next of each namespace without a write in flight. While thousands of nodes join, all their events are in one
    /// namespace, and whoever looks for the next must not look at each.
    next: BTreeMap<(Tick, u64), String>,
    /// Those first events that have failed before.
    failed: BTreeSet<Place>,
    len: usize,
    added: u64,
    capacity: usize,
}

impl EventQueue {
    pub(super) const fn new(capacity: usize) -> Self {
        Self {
            objects: BTreeMap::new(),
            namespaces: BTreeMap::new(),
            next: BTreeMap::new(),
            failed: BTreeSet::new(),
            len: 0,
            added: 0,
            capacity,
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Adds an event. If the queue is full, one that has failed before is dropped, or the new one; returns whether nothing
    /// was dropped.
    pub(super) fn add(&mut self, what: Event, at: Timestamp, now: Tick) -> bool {
        let room = self.len < self.capacity;
        if !room && !self.drop_a_failed_one() {
            return false;
        }
        self.added += 1;
        self.put(Entry { what, at, step: None, tries: 0, due: now, number: self.added }, false);
        room
    }

    /// Takes the next event that is due. [`done`](Self::done) must follow, whether the write succeeds or not.
    pub(super) fn take(&mut self, now: Tick) -> Next {
        let Some(((due, _), name)) = self.next.first_key_value() else { return Next::Wait(None) };
        if *due > now {
            return Next::Wait(Some(*due));
        }
        let name = name.clone();
        let Some(place) = self.within(&name, |namespace| {
            let place = namespace.heads.pop_first();
            namespace.busy = place.as_ref().map(|(_, _, about)| about.clone());
            place
        }) else {
            return Next::Wait(None);
        };
        self.failed.remove(&place);
        self.pop(&place.2).map_or(Next::Wait(None), |entry| Next::Write(Box::new(entry)))
    }

    /// The write about this object ended; `again` goes back into the queue.
    pub(super) fn done(&mut self, about: &ObjectRef, again: Option<Entry>) {
        self.within(namespace(about), |namespace| namespace.busy = None);
        match again {
            Some(entry) => self.put(entry, true),
            None => self.show_head(about),
        }
    }

    /// Starts over: no write is in flight.
    pub(super) fn begin(&mut self) {
        let busy: Vec<_> = self.namespaces.values().filter_map(|namespace| namespace.busy.clone()).collect();
        for about in busy {
            self.done(&about, None);
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
        let (place, has_failed) = ((head.due, head.number, about.clone()), head.tries > 0);
        let shown = self.within(namespace(about), |namespace| {
            let free = namespace.busy.as_ref() != Some(about);
            if free {
                namespace.heads.insert(place.clone());
            }
            free
        });
        if shown && has_failed {
            self.failed.insert(place);
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

    /// Drops the failed event that is due last.
    fn drop_a_failed_one(&mut self) -> bool {
        let Some(place) = self.failed.pop_last() else { return false };
        self.within(namespace(&place.2), |namespace| namespace.heads.remove(&place));
        self.pop(&place.2);
        self.show_head(&place.2);
        true
    }

    /// Changes a namespace, and notes which of its events is next then.
    fn within<T>(&mut self, name: &str, change: impl FnOnce(&mut Namespace) -> T) -> T {
        let namespace = match self.namespaces.get_mut(name) {
            Some(namespace) => namespace,
            None => self.namespaces.entry(name.to_owned()).or_default(),
        };
        let before = namespace.next();
        let changed = change(namespace);
        let after = namespace.next();
        let is_over = namespace.heads.is_empty() && namespace.busy.is_none();
        if before != after {
            before.map(|place| self.next.remove(&place));
            after.map(|place| self.next.insert(place, name.to_owned()));
        }
        if is_over {
            self.namespaces.remove(name);
        }
        changed
    }
}

/// The namespace of events about an object; the default one if it has none.
pub(super) fn namespace(about: &ObjectRef) -> &str {
    if about.namespace.is_empty() { "default" } else { &about.namespace }
}

#[cfg(test)]
mod tests {
    use cloudberth_core::reason::SYNCED;

    use super::*;

    fn added(queue: &mut EventQueue, namespace: &str, name: &str, message: &str) -> bool {
        let about = ObjectRef::core("Service", namespace, name, "");
        let (reason, message) = (SYNCED, message.to_owned());
        let what = Event { about, warning: false, reason, message, component: "c" };
        queue.add(what, Timestamp::UNIX_EPOCH, Tick::ZERO)
    }

    fn take(queue: &mut EventQueue, now: u64) -> Option<Entry> {
        match queue.take(Tick::from_secs(now)) {
            Next::Write(entry) => Some(*entry),
            Next::Wait(_) => None,
        }
    }

    fn message(entry: Option<&Entry>) -> &str {
        entry.map_or("-", |entry| entry.what.message.as_str())
    }

    fn fails(queue: &mut EventQueue, mut entry: Entry, due: u64) {
        (entry.tries, entry.due) = (entry.tries + 1, Tick::from_secs(due));
        let about = entry.what.about.clone();
        queue.done(&about, Some(entry));
    }

    #[test]
    fn one_that_failed_lets_the_others_pass_but_not_those_of_its_object() {
        let mut queue = EventQueue::new(10);
        for (namespace, name, text) in
            [("bad", "x", "x1"), ("bad", "x", "x2"), ("bad", "y", "y1"), ("good", "z", "z1")]
        {
            added(&mut queue, namespace, name, text);
        }
        let x1 = take(&mut queue, 0).unwrap();
        assert_eq!(x1.what.message, "x1");
        let z1 = take(&mut queue, 0);
        assert_eq!(message(z1.as_ref()), "z1", "L11-610 one at a time in a namespace");
        assert_eq!(message(take(&mut queue, 0).as_ref()), "-");
        fails(&mut queue, x1, 10);
        queue.done(&z1.unwrap().what.about, None);
        let y1 = take(&mut queue, 1);
        assert_eq!(message(y1.as_ref()), "y1", "L11-611 x2 waits for x1");
        queue.done(&y1.unwrap().what.about, None);
        assert!(matches!(queue.take(Tick::from_secs(1)), Next::Wait(Some(at)) if at == Tick::from_secs(10)));
        let x1 = take(&mut queue, 10);
        assert_eq!(message(x1.as_ref()), "x1");
        assert_eq!(message(take(&mut queue, 10).as_ref()), "-");
        queue.done(&x1.unwrap().what.about, None);
        assert_eq!(message(take(&mut queue, 10).as_ref()), "x2", "L4-702 in the order of telling");
        assert_eq!(queue.len(), 0);
    }

    #[test]
    fn a_full_line_drops_what_failed_before_it_drops_what_is_new() {
        let mut queue = EventQueue::new(2);
        assert!(added(&mut queue, "bad", "x", "x1") && added(&mut queue, "bad", "y", "y1"));
        assert!(!added(&mut queue, "good", "z", "z1"), "L12-606");
        let x1 = take(&mut queue, 0).unwrap();
        fails(&mut queue, x1, 10);
        assert!(!added(&mut queue, "good", "z", "z2"), "one is dropped");
        assert_eq!(queue.len(), 2);
        let both = [take(&mut queue, 20), take(&mut queue, 20)];
        assert_eq!(
            both.each_ref().map(|entry| message(entry.as_ref())),
            ["y1", "z2"],
            "L12-607 and it is x1"
        );
    }

    /// A thousand nodes join at once: all their events are in one namespace, where one is written at a time.
    #[test]
    fn the_next_event_is_found_without_looking_at_those_that_wait() {
        let mut queue = EventQueue::new(1_000);
        for number in 0..1_000 {
            added(&mut queue, "default", &format!("node-{number}"), "joined");
        }
        assert_eq!(queue.next.len(), 1, "L12-1610 one candidate for each namespace");
        let first = take(&mut queue, 0).unwrap();
        assert_eq!((first.what.about.name.as_str(), queue.next.len()), ("node-0", 0), "L12-1610 it is busy");
        assert!(take(&mut queue, 0).is_none());
        added(&mut queue, "default", "node-1000", "joined");
        assert!(!added(&mut queue, "default", "node-1001", "joined"), "L12-606");
        assert_eq!(queue.failed.len(), 0, "L12-1611 there is nothing to look through for room");
        fails(&mut queue, first, 9);
        assert_eq!((queue.failed.len(), queue.next.len()), (1, 1));
        let second = take(&mut queue, 0).unwrap();
        queue.done(&second.what.about, None);
        assert_eq!(message(take(&mut queue, 0).as_ref()), "joined");
        queue.begin();
        while let Some(entry) = take(&mut queue, 9) {
            queue.done(&entry.what.about, None);
        }
        assert!(queue.namespaces.is_empty() && queue.next.is_empty() && queue.failed.is_empty(), "L12-1612");
        assert_eq!((queue.len(), queue.objects.len()), (0, 0));
    }

    #[test]
    fn who_begins_anew_finds_everything_free() {
        let mut queue = EventQueue::new(10);
        added(&mut queue, "a", "x", "x1");
        added(&mut queue, "a", "x", "x2");
        assert!(take(&mut queue, 0).is_some() && take(&mut queue, 0).is_none());
        queue.begin();
        assert_eq!(message(take(&mut queue, 0).as_ref()), "x2");
    }
}
