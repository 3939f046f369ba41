use super::*;

fn occurrence(reason: &str, message: &str) -> Event {
    let about = ObjectRef::core("Service", "default", "web", "u1");
    let (reason, message) = (reason.to_owned(), message.to_owned());
    Event { about, warning: false, reason, message, component: "service-controller" }
}

fn at(seconds: u64) -> (Timestamp, Tick) {
    let wall = Timestamp::from_second(1_700_000_000).unwrap() + Duration::from_secs(seconds);
    (wall, Tick::from_secs(seconds))
}

/// What is done about it, in short: `new 1 x`, `add 2 x`, `drop`.
fn told(memory: &mut Memory, what: &Event, seconds: u64) -> String {
    let (wall, now) = at(seconds);
    match correlate(memory, what, wall, now) {
        Step::Create(note) => format!("new {} {}", note.count, note.what.message),
        Step::Patch(note) => format!("add {} {}", note.count, note.what.message),
        Step::Drop => "drop".to_owned(),
    }
}

#[test]
fn the_same_again_raises_the_count() {
    type Row = (&'static str, fn(&mut Event), &'static str);
    let plain = || occurrence("Ensured", "done");
    let table: [Row; 9] = [
        ("the same", |_| (), "add 2 done"),
        ("another message", |o| o.message = "again".into(), "new 1 again"),
        ("another reason", |o| o.reason = "Deleted".into(), "new 1 done"),
        ("another type", |o| o.warning = true, "new 1 done"),
        ("another component", |o| o.component = "other", "new 1 done"),
        ("another object", |o| o.about.name = "api".into(), "new 1 done"),
        ("another object of that name", |o| o.about.uid = "u2".into(), "new 1 done"),
        ("another kind", |o| o.about.kind = "Node".into(), "new 1 done"),
        ("another namespace", |o| o.about.namespace = "kube-system".into(), "new 1 done"),
    ];
    for (case, change, want) in table {
        let mut memory = Memory::default();
        assert_eq!(told(&mut memory, &plain(), 0), "new 1 done");
        let mut second = plain();
        change(&mut second);
        assert_eq!(told(&mut memory, &second, 5), want, "{case}");
    }
}

#[test]
fn a_repetition_keeps_its_name_and_its_first_time() {
    let (mut memory, what) = (Memory::default(), occurrence("Ensured", "done"));
    let Step::Create(first) = correlate(&mut memory, &what, at(0).0, at(0).1) else { panic!("not created") };
    let Step::Patch(second) = correlate(&mut memory, &what, at(7).0, at(7).1) else { panic!("not patched") };
    assert_eq!((second.first, second.last, second.count), (at(0).0, at(7).0, 2));
    assert_eq!(second.name, first.name);
}

#[test]
fn many_that_differ_in_their_message_only_share_an_event() {
    let mut memory = Memory::default();
    let say =
        |memory: &mut Memory, n: u32, seconds| told(memory, &occurrence("Slow", &format!("m{n}")), seconds);
    for n in 1..10 {
        assert_eq!(say(&mut memory, n, 0), format!("new 1 m{n}"));
    }
    let table = [
        ("the tenth", 10, 0, "new 1 (combined from similar events): m10"),
        ("the eleventh", 11, 0, "add 2 (combined from similar events): m11"),
        ("one that has its own event", 3, 300, "add 2 m3"),
        ("the tenth again", 10, 900, "add 3 (combined from similar events): m10"),
        ("ten minutes and more without anything similar", 12, 1_501, "new 1 m12"),
    ];
    for (case, n, seconds, want) in table {
        assert_eq!(say(&mut memory, n, seconds), want, "{case}");
    }
    assert_eq!(
        told(&mut memory, &occurrence("Other", "m13"), 1_501),
        "new 1 m13",
        "another reason is not similar"
    );
}

#[test]
fn whoever_talks_too_much_is_not_listened_to() {
    let (mut memory, what) = (Memory::default(), occurrence("Ensured", "done"));
    let heard = |memory: &mut Memory, what: &Event, seconds| told(memory, what, seconds) != "drop";
    let burst = (0..30).filter(|_| heard(&mut memory, &what, 0)).count();
    assert_eq!(burst, 25);
    let warning = Event { warning: true, ..occurrence("Failed", "no") };
    assert!(heard(&mut memory, &warning, 0), "warnings have an allowance of their own");
    let other = Event { about: ObjectRef::core("Service", "default", "api", "u9"), ..what.clone() };
    assert!(heard(&mut memory, &other, 0), "and so has every object");
    let table = [(299, false), (300, true), (301, false), (901, true), (901, true), (901, false)];
    for (seconds, want) in table {
        assert_eq!(heard(&mut memory, &what, seconds), want, "after {seconds} s");
    }
    assert_eq!(told(&mut memory, &what, 10_000), "add 37 done", "what was not said was counted");
}

#[test]
fn names_are_unique_and_accepted_by_the_api() {
    let mut memory = Memory::default();
    let mut name = |object: &str, uid: &str| {
        let what = Event { about: ObjectRef::core("Node", "", object, uid), ..occurrence("Synced", "ok") };
        match correlate(&mut memory, &what, at(0).0, at(0).1) {
            Step::Create(note) => note.name,
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
    let mut memory = Memory::default();
    let object = |n: usize| Event {
        about: ObjectRef::core("Node", "", &format!("n{n}"), ""),
        ..occurrence("Synced", "ok")
    };
    for n in 0..REMEMBERED {
        assert_eq!(told(&mut memory, &object(n), 0), "new 1 ok");
    }
    assert_eq!(told(&mut memory, &object(0), 0), "add 2 ok");
    assert_eq!(told(&mut memory, &object(REMEMBERED), 0), "new 1 ok");
    assert_eq!(told(&mut memory, &object(1), 0), "new 1 ok", "L12-24 forgotten for another");
}
