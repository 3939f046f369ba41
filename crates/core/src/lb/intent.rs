//! The mark that keeps a lost answer from becoming a second load balancer (law 6).
//!
//! Before anything is created the Service carries the intent. While it is young and nothing is found, the thing may
//! still be on its way into being: nothing is created a second time, and nothing lets go of the Service.
//!
//! The intent says what is about to be created, by its name: the name that the Service asks for may be edited before the
//! thing shows up, and then nobody would look for the old one. A name that a user gives is recorded only after a look that
//! found nothing of that name, so that the intent is no excuse to take what somebody else made.
//!
//! How old an intent is cannot be read from its value: another replica's clock wrote it. So the settle time counts on
//! this process's own monotonic clock, from when it first saw that very value, and from the end of its own last turn
//! that may have sent a creation, whichever is later. A replica that starts, or that leads again, has seen nothing yet
//! and waits once more; that costs a little time and can never cost a second load balancer.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;

use crate::{
    time::Tick,
    view::{ObjectKey, ServiceView},
};

/// The annotation; its value is the time at which the intent was recorded, which no decision reads, a space, and the name
/// of what is to be created. Older versions wrote the time alone.
pub const INTENT_ANNOTATION: &str = "cloudberth.dev/intent";

/// The value of an intent to create something of this name.
#[must_use]
pub fn intent_value(time: Timestamp, name: &str) -> String {
    format!("{time} {name}")
}

/// The name of what may have been created, as the recorded intent says it; `None` where there is no intent, or one that
/// does not say.
#[must_use]
pub fn intended_name(service: &ServiceView) -> Option<&str> {
    let (_, name) = service.annotations.get(INTENT_ANNOTATION)?.split_once(' ')?;
    Some(name).filter(|name| !name.is_empty())
}

/// What a recorded intent allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intent {
    /// None is pending: whoever wants to create records a new one first; whoever wants to let go may.
    Free,
    /// One is pending: look again after this long. What was created may show up at any time.
    Pending(Duration),
}

/// One intent, as it was first observed.
#[derive(Clone, Debug)]
struct Sight {
    uid: String,
    value: String,
    since: Tick,
}

/// Which intents this process has observed, and since when.
///
/// It begins empty with each term of leadership: what was seen before, another leader may have acted on since.
#[derive(Clone, Debug, Default)]
pub struct Intents(BTreeMap<ObjectKey, Sight>);

impl Intents {
    /// Judges the intent on a version of a Service at `now`, for a cloud that settles within `settle`.
    ///
    /// A value that was not seen before on this very object starts the settle time, whatever it says. A version
    /// without an intent is free, and ends what was remembered.
    pub fn judge(&mut self, service: &ServiceView, now: Tick, settle: Duration) -> Intent {
        let key = service.key();
        let Some(value) = service.annotations.get(INTENT_ANNOTATION) else {
            self.0.remove(&key);
            return Intent::Free;
        };
        let fresh = || Sight { uid: service.uid.clone(), value: value.clone(), since: now };
        let sight = self.0.entry(key).or_insert_with(fresh);
        if (&sight.uid, &sight.value) != (&service.uid, value) {
            *sight = fresh();
        }
        let age = now.since(sight.since);
        match settle.saturating_sub(age) {
            Duration::ZERO => Intent::Free,
            left => Intent::Pending(next_look(age).min(left)),
        }
    }

    /// A turn that may have sent a creation is over, and what it sent may still be on its way: the settle time begins
    /// again. To be said after every turn whose account does not say that nothing was sent, also after one that was
    /// permitted to create and given up.
    pub fn touched(&mut self, key: &ObjectKey, now: Tick) {
        if let Some(sight) = self.0.get_mut(key) {
            sight.since = sight.since.max(now);
        }
    }

    /// The object is gone.
    pub fn forget(&mut self, key: &ObjectKey) {
        self.0.remove(key);
    }

    /// How many are remembered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing is remembered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The ages of an intent at which it is looked for what was created; after the last, one every [`LATE_LOOKS`]. Most
/// clouds show a new load balancer within seconds, and a user waits for its address.
const EARLY_LOOKS: [Duration; 3] = [Duration::from_secs(2), Duration::from_secs(5), Duration::from_secs(10)];
const LATE_LOOKS: Duration = Duration::from_secs(15);

fn next_look(age: Duration) -> Duration {
    EARLY_LOOKS.into_iter().find(|&look| look > age).map_or(LATE_LOOKS, |look| look.saturating_sub(age))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTLE: Duration = Duration::from_secs(120);
    const NOON: &str = "2026-03-02T12:00:00Z";
    const LATER: &str = "2026-03-02T12:01:00Z";

    fn service(uid: &str, value: Option<&str>) -> ServiceView {
        let value = value.map(|value| (INTENT_ANNOTATION.to_owned(), value.to_owned()));
        ServiceView {
            namespace: "default".to_owned(),
            name: "web".to_owned(),
            uid: uid.to_owned(),
            annotations: value.into_iter().collect(),
            ..ServiceView::default()
        }
    }

    fn judge(intents: &mut Intents, secs: u64, uid: &str, value: Option<&str>) -> Intent {
        intents.judge(&service(uid, value), Tick::from_secs(secs), SETTLE)
    }

    const fn pending(secs: u64) -> Intent {
        Intent::Pending(Duration::from_secs(secs))
    }

    /// One process that looks at these times, and what it says.
    type Looks<'a> = &'a [(u64, &'a str, Option<&'a str>, Intent)];

    #[test]
    fn the_settle_time_counts_from_the_first_sight_of_that_very_intent() {
        let table: [(&str, Looks<'_>); 6] = [
            ("L6-1 none", &[(5, "u", None, Intent::Free)]),
            (
                "L6-2 L6-3 L6-4 L6-5 from the first sight, however late that is",
                &[
                    (900, "u", Some(NOON), pending(2)),
                    (1_015, "u", Some(NOON), pending(5)),
                    (1_019, "u", Some(NOON), pending(1)),
                    (1_020, "u", Some(NOON), Intent::Free),
                    (9_999, "u", Some(NOON), Intent::Free),
                ],
            ),
            (
                "L6-6 another value is another intent",
                &[
                    (0, "u", Some(NOON), pending(2)),
                    (119, "u", Some(LATER), pending(2)),
                    (238, "u", Some(LATER), pending(1)),
                    (238, "u", Some(NOON), pending(2)),
                ],
            ),
            (
                "L6-7 another object of the same name",
                &[(0, "u", Some(NOON), pending(2)), (200, "v", Some(NOON), pending(2))],
            ),
            (
                "L6-8 a value that is no time pends like any other",
                &[(0, "u", Some("yes"), pending(2)), (120, "u", Some("yes"), Intent::Free)],
            ),
            (
                "L6-140 it was cleared, and the same value came back",
                &[
                    (0, "u", Some(NOON), pending(2)),
                    (119, "u", None, Intent::Free),
                    (121, "u", Some(NOON), pending(2)),
                ],
            ),
        ];
        for (case, looks) in table {
            let mut intents = Intents::default();
            for (secs, uid, value, want) in looks {
                assert_eq!(judge(&mut intents, *secs, uid, *value), *want, "{case}: at {secs}");
            }
        }
    }

    #[test]
    fn a_young_intent_is_looked_after_often() {
        let (mut intents, mut now, mut looks) = (Intents::default(), 0, vec![]);
        while let Intent::Pending(poll) = judge(&mut intents, now, "u", Some(NOON)) {
            now += poll.as_secs();
            looks.push(now);
        }
        assert_eq!(looks, [2, 5, 10, 25, 40, 55, 70, 85, 100, 115, 120], "L6-310");
    }

    #[test]
    fn a_clock_that_is_ahead_or_behind_makes_no_difference() {
        for (case, value) in [
            ("L6-141 written by a clock that is far behind", "1970-01-01T00:00:00Z"),
            ("L6-142 written by a clock that is far ahead", "2999-01-01T00:00:00Z"),
        ] {
            let mut intents = Intents::default();
            assert_eq!(judge(&mut intents, 7, "u", Some(value)), pending(2), "{case}");
            assert_eq!(judge(&mut intents, 126, "u", Some(value)), pending(1), "{case}");
            assert_eq!(judge(&mut intents, 127, "u", Some(value)), Intent::Free, "{case}");
        }
    }

    #[test]
    fn an_intent_says_what_is_to_be_created() {
        let time: Timestamp = NOON.parse().unwrap();
        let table = [
            ("none", None, None),
            ("L6-300 one of an older version", Some(NOON.to_owned()), None),
            ("L6-301 a name", Some(intent_value(time, "web")), Some("web")),
            ("L6-302 a name with spaces", Some(intent_value(time, "front door ")), Some("front door ")),
            ("no name", Some(intent_value(time, "")), None),
        ];
        for (case, value, want) in table {
            let service = service("u", value.as_deref());
            assert_eq!(intended_name(&service), want, "{case}");
        }
    }

    #[test]
    fn a_restart_starts_the_count_anew() {
        let (mut first, mut second) = (Intents::default(), Intents::default());
        assert_eq!(judge(&mut first, 0, "u", Some(NOON)), pending(2));
        assert_eq!(judge(&mut first, 120, "u", Some(NOON)), Intent::Free);
        assert_eq!(judge(&mut second, 120, "u", Some(NOON)), pending(2), "L6-143");
    }

    #[test]
    fn the_end_of_a_turn_that_may_have_created_starts_the_count_anew() {
        let key = service("u", None).key();
        let mut intents = Intents::default();
        intents.touched(&key, Tick::from_secs(1));
        assert!(intents.is_empty(), "nothing was recorded, nothing pends");
        judge(&mut intents, 0, "u", Some(NOON));
        intents.touched(&key, Tick::from_secs(30));
        assert_eq!(judge(&mut intents, 149, "u", Some(NOON)), pending(1), "L6-144");
        intents.touched(&key, Tick::from_secs(10));
        assert_eq!(judge(&mut intents, 149, "u", Some(NOON)), pending(1), "L6-145 time does not go back");
        intents.touched(&ObjectKey::new("default", "other"), Tick::from_secs(100));
        assert_eq!(
            judge(&mut intents, 150, "u", Some(NOON)),
            Intent::Free,
            "L6-146 one's turn is not another's"
        );
    }

    #[test]
    fn what_is_gone_is_forgotten() {
        let key = service("u", None).key();
        let mut intents = Intents::default();
        judge(&mut intents, 0, "u", Some(NOON));
        assert_eq!(intents.len(), 1);
        intents.forget(&key);
        assert!(intents.is_empty());
        assert_eq!(
            judge(&mut intents, 500, "u", Some(NOON)),
            pending(2),
            "L6-147 it is seen for the first time"
        );
    }
}
