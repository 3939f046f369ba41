use cloudberth_core::reason::{
    DELETED_LOAD_BALANCER, ENSURED_LOAD_BALANCER, SYNC_LOAD_BALANCER_FAILED, SYNCED, UPDATED_LOAD_BALANCER,
};

use super::*;

fn occurrence(reason: Reason, message: &str) -> Event {
    let about = ObjectRef::core("Service", "default", "web", "u1");
    let (reason, message) = (reason, message.to_owned());
    Event { about, warning: false, reason, message, component: "service-controller" }
}

fn at(seconds: u64) -> (Timestamp, Tick) {
    let wall = Timestamp::from_second(1_700_000_000).unwrap() + Duration::from_secs(seconds);
    (wall, Tick::from_secs(seconds))
}

/// What is done about it, in short: `new 1 x`, `add 2 x`, `drop`.
fn recorded(history: &mut History, what: &Event, seconds: u64) -> String {
    let (wall, now) = at(seconds);
    match correlate(history, what, wall, now) {
        Step::Create(record) => format!("new {} {}", record.count, record.what.message),
        Step::Patch(record) => format!("add {} {}", record.count, record.what.message),
        Step::Drop => "drop".to_owned(),
    }
}

#[test]
fn the_same_again_raises_the_count() {
    type Row = (&'static str, fn(&mut Event), &'static str);
    let plain = || occurrence(ENSURED_LOAD_BALANCER, "done");
    let table: [Row; 9] = [
        ("the same", |_| (), "add 2 done"),
        ("another message", |o| o.message = "again".into(), "new 1 again"),
        ("another reason", |o| o.reason = DELETED_LOAD_BALANCER, "new 1 done"),
        ("another type", |o| o.warning = true, "new 1 done"),
        ("another component", |o| o.component = "other", "new 1 done"),
        ("another object", |o| o.about.name = "api".into(), "new 1 done"),
        ("another object of that name", |o| o.about.uid = "u2".into(), "new 1 done"),
        ("another kind", |o| o.about.kind = "Node".into(), "new 1 done"),
        ("another namespace", |o| o.about.namespace = "kube-system".into(), "new 1 done"),
    ];
    for (case, change, want) in table {
        let mut history = History::default();
        assert_eq!(recorded(&mut history, &plain(), 0), "new 1 done");
        let mut second = plain();
        change(&mut second);
        assert_eq!(recorded(&mut history, &second, 5), want, "{case}");
    }
}

#[test]
fn a_repetition_keeps_its_name_and_its_first_time() {
    let (mut history, what) = (History::default(), occurrence(ENSURED_LOAD_BALANCER, "done"));
    let Step::Create(first) = correlate(&mut history, &what, at(0).0, at(0).1) else { panic!("not created") };
    let Step::Patch(second) = correlate(&mut history, &what, at(7).0, at(7).1) else { panic!("not patched") };
    assert_eq!((second.first, second.last, second.count), (at(0).0, at(7).0, 2));
    assert_eq!(second.name, first.name);
}

#[test]
fn many_that_differ_in_their_message_only_share_an_event() {
    let mut history = History::default();
    let say = |history: &mut History, n: u32, seconds| {
        recorded(history, &occurrence(ENSURED_LOAD_BALANCER, &format!("m{n}")), seconds)
    };
    for n in 1..10 {
        assert_eq!(say(&mut history, n, 0), format!("new 1 m{n}"));
    }
    let table = [
        ("the tenth", 10, 0, "new 1 (combined from similar events): m10"),
        ("the eleventh", 11, 0, "add 2 (combined from similar events): m11"),
        ("one that has its own event", 3, 300, "add 2 m3"),
        ("the tenth again", 10, 900, "add 3 (combined from similar events): m10"),
        ("ten minutes and more without anything similar", 12, 1_501, "new 1 m12"),
    ];
    for (case, n, seconds, want) in table {
        assert_eq!(say(&mut history, n, seconds), want, "{case}");
    }
    assert_eq!(
        recorded(&mut history, &occurrence(UPDATED_LOAD_BALANCER, "m13"), 1_501),
        "new 1 m13",
        "another reason is not similar"
    );
}

#[test]
fn whoever_talks_too_much_is_not_listened_to() {
    let (mut history, what) = (History::default(), occurrence(ENSURED_LOAD_BALANCER, "done"));
    let heard = |history: &mut History, what: &Event, seconds| recorded(history, what, seconds) != "drop";
    let burst = (0..30).filter(|_| heard(&mut history, &what, 0)).count();
    assert_eq!(burst, 25);
    let warning = Event { warning: true, ..occurrence(SYNC_LOAD_BALANCER_FAILED, "no") };
    assert!(heard(&mut history, &warning, 0), "warnings have an allowance of their own");
    let other = Event { about: ObjectRef::core("Service", "default", "api", "u9"), ..what.clone() };
    assert!(heard(&mut history, &other, 0), "and so has every object");
    let table = [(299, false), (300, true), (301, false), (901, true), (901, true), (901, false)];
    for (seconds, want) in table {
        assert_eq!(heard(&mut history, &what, seconds), want, "after {seconds} s");
    }
    assert_eq!(recorded(&mut history, &what, 10_000), "add 37 done", "what was not said was counted");
}

#[test]
fn names_are_unique_and_accepted_by_the_api() {
    let mut history = History::default();
    let mut name = |object: &str, uid: &str| {
        let what = Event { about: ObjectRef::core("Node", "", object, uid), ..occurrence(SYNCED, "ok") };
        match correlate(&mut history, &what, at(0).0, at(0).1) {
            Step::Create(record) => record.name,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(name("web", "u1"), "web.17979cfe362a0000");
    assert_eq!(name("web", "u2"), "web.17979cfe362a0001", "in the same moment");
    let long = name(&format!("{}-x{}", "a".repeat(235), "b".repeat(16)), "u3");
    assert_eq!((long.len(), long.contains("-.")), (252, false), "{long}");
}

#[test]
fn what_is_remembered_is_bounded() {
    let mut history = History::default();
    let object = |n: usize| Event {
        about: ObjectRef::core("Node", "", &format!("n{n}"), ""),
        ..occurrence(SYNCED, "ok")
    };
    for n in 0..REMEMBERED {
        assert_eq!(recorded(&mut history, &object(n), 0), "new 1 ok");
    }
    assert_eq!(recorded(&mut history, &object(0), 0), "add 2 ok");
    assert_eq!(recorded(&mut history, &object(REMEMBERED), 0), "new 1 ok");
    assert_eq!(recorded(&mut history, &object(1), 0), "new 1 ok", "L12-24 forgotten for another");
}
