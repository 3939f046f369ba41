use super::*;

/// A candidate that has just read `lease`.
fn after_reading(lease: Lookup<Lease>) -> (Candidate, Move) {
    let mut candidate = candidate();
    let get = wake(&mut candidate, 0);
    assert_eq!(get.action, Action::Get { ticket: ticket(&get.action), until: tick(5) });
    let next = hear(&mut candidate, &get.action, lease, 1);
    assert_eq!(next.news, None);
    (candidate, next)
}

fn ours(transitions: u32) -> Record {
    Record { acquired: Some(wall(1)), renewed: Some(wall(1)), ..record("me", 15, transitions) }
}

#[test]
fn a_lease_that_does_not_exist_is_created() {
    let (mut candidate, next) = after_reading(Lookup::Absent);
    let Action::Create { until, lease, .. } = &next.action else { panic!("{next:?}") };
    assert_eq!((*until, &lease.record, lease.resource_version.as_str()), (tick(6), &ours(0), ""), "FW-346");
    assert_eq!(
        lease.object()["metadata"],
        json!({ "namespace": "kube-system", "name": "cloud-controller-manager" }),
        "FW-346"
    );
    assert_eq!(candidate.claim_until(), None, "not before the answer");
    let first = store(&mut candidate, &next.action, "1", 2);
    assert_eq!(
        (first.news, candidate.claim_until()),
        (Some(News::Leads), Some(claim(1))),
        "L9-101 from the sending"
    );
    assert_eq!(candidate.holder(), Some("me"));
}

#[test]
fn a_free_lease_is_taken() {
    let unset = Lease::decode(json!({ "metadata": { "resourceVersion": "7" } })).unwrap();
    let table = [
        ("FW-347 no record", unset, ours(1)),
        ("FW-347 an empty holder", stored(record("", 1, 3), "7"), ours(4)),
        ("as many transitions as can be", stored(record("", 1, u32::MAX), "7"), ours(u32::MAX)),
    ];
    for (case, lease, want) in table {
        let (_, next) = after_reading(Lookup::Present(lease));
        let Action::Update { until, lease, .. } = &next.action else { panic!("{case} {next:?}") };
        assert_eq!((*until, &lease.record, lease.resource_version.as_str()), (tick(6), &want, "7"), "{case}");
    }
}

#[test]
fn a_held_lease_is_taken_when_it_has_stood_still_for_its_time() {
    let (mut candidate, next) = after_reading(Lookup::Present(held_by("other", 3)));
    let pause = Action::Wait(Tick(Duration::from_millis((BASE + 1) * 1_000 + 3_200)));
    assert_eq!(next.action, pause, "FW-348 FW-350 the first try fails");
    assert_eq!((candidate.holder(), candidate.claim_until()), (Some("other"), None));
    for (case, renewed_at, read_at, takes) in [
        ("FW-350 seen for less than its time", 0, 4, false),
        ("FW-348 FW-349 seen for its whole time", 0, 5, true),
        ("renewed meanwhile", 2, 5, false),
    ] {
        let (mut candidate, _) = after_reading(Lookup::Present(held_by("other", 4)));
        let get = wake(&mut candidate, 5).action;
        let renewed = Record { renewed: Some(wall(renewed_at)), ..record("other", 4, 3) };
        let next = hear(&mut candidate, &get, Lookup::Present(stored(renewed, "7")), read_at);
        match next.action {
            Action::Update { lease, .. } if takes => {
                let want = Record { acquired: Some(wall(5)), renewed: Some(wall(5)), ..record("me", 15, 4) };
                assert_eq!(lease.record, want, "{case}");
            }
            Action::Wait(_) if !takes => {}
            other => panic!("{case}: {other:?}"),
        }
    }
    let get = wake(&mut candidate, 4 + 1).action;
    let next = hear(&mut candidate, &get, Lookup::Present(held_by("other", 3)), 5);
    assert_eq!(sent(&next.action).record.transitions, 4, "FW-349");
}

#[test]
fn a_standby_comes_back_within_half_a_retry_period_of_the_end_of_a_lease() {
    // The pause alone would be 2 s to 4.4 s.
    for (fraction, held_for, millis) in [(0.0, 1, 1_000), (0.5, 2, 2_500), (0.999, 3, 3_999), (0.5, 9, 3_200)]
    {
        let mut candidate = candidate();
        let get = wake(&mut candidate, 0).action;
        let answer = Input::Read(ticket(&get), Lookup::Present(held_by("other", held_for)));
        let Action::Wait(until) = candidate.step(answer, Moment { fraction, ..at(1) }).action else {
            panic!()
        };
        assert_eq!(until.since(tick(1)), Duration::from_millis(millis), "{fraction} {held_for}");
    }
}

#[test]
fn a_record_without_a_time_is_left_alone_for_ours() {
    let silent = || stored(Record { duration_seconds: None, ..record("other", 1, 3) }, "7");
    for (read_at, takes) in [(15, false), (16, true)] {
        let (mut candidate, _) = after_reading(Lookup::Present(silent()));
        let get = wake(&mut candidate, 15).action;
        let next = hear(&mut candidate, &get, Lookup::Present(silent()), read_at);
        assert_eq!(matches!(next.action, Action::Update { .. }), takes, "{read_at}");
    }
}

#[test]
fn every_failure_is_followed_by_a_pause_that_chance_lengthens() {
    for (fraction, millis) in [(0.0, 2_000), (0.25, 2_600), (0.999, 4_397)] {
        let mut candidate = candidate();
        let get = wake(&mut candidate, 0).action;
        let answer = Input::Read(ticket(&get), Lookup::Unknown(unavailable()));
        let next = candidate.step(answer, Moment { fraction, ..at(1) });
        let Action::Wait(until) = next.action else { panic!("{next:?}") };
        let paused = until.since(tick(1));
        assert!(
            paused.abs_diff(Duration::from_millis(millis)) < Duration::from_millis(1),
            "{fraction} {paused:?}"
        );
        let early = Moment { now: until - Duration::from_millis(1), ..at(0) };
        assert_eq!(candidate.step(Input::Wake, early).action, Action::Wait(until));
        assert!(is_get(&candidate.step(Input::Wake, Moment { now: until, ..at(0) }).action));
    }
}

#[test]
fn what_fails_or_gets_no_answer_is_tried_again() {
    let paused = |from: u64| Action::Wait(tick(from) + Duration::from_millis(3_200));
    // A read that is never answered.
    let mut candidate = candidate();
    let get = wake(&mut candidate, 0).action;
    assert_eq!(wake(&mut candidate, 4).action, Action::Wait(tick(5)));
    assert_eq!(wake(&mut candidate, 5).action, paused(5));
    let late = hear(&mut candidate, &get, Lookup::Absent, 6).action;
    assert_eq!(late, paused(5), "an answer to what was given up is not listened to");
    // Somebody else created it, or the write is never answered.
    for answered in [true, false] {
        let (mut candidate, create) = after_reading(Lookup::Absent);
        let next = if answered {
            fail(&mut candidate, &create.action, conflict(), 6)
        } else {
            wake(&mut candidate, 6)
        };
        assert_eq!((next.action, candidate.claim_until()), (paused(6), None));
        let late = store(&mut candidate, &create.action, "1", 7);
        assert_eq!((late.action, late.news, candidate.claim_until()), (paused(6), None, None));
    }
}

#[test]
fn a_write_without_a_version_is_never_sent() {
    let (_, next) = after_reading(Lookup::Present(stored(record("", 1, 3), "")));
    assert_eq!(next.action, Action::Wait(tick(1) + Duration::from_millis(3_200)), "L9-102");
}

#[test]
fn an_answer_that_comes_too_late_gives_no_claim() {
    let (mut candidate, create) = after_reading(Lookup::Absent);
    let next = store(&mut candidate.clone(), &create.action, "1", 15);
    assert_eq!(next.news, Some(News::Leads), "one second of claim is left");
    let next = store(&mut candidate, &create.action, "1", 16);
    assert_eq!((next.news, candidate.claim_until()), (None, None), "L9-103");
    assert!(matches!(next.action, Action::Wait(_)));
}

#[test]
fn a_watch_shows_a_free_lease_at_once() {
    let free = Some(stored(record("", 1, 4), "8"));
    for (case, noticed, looks) in [
        ("released", free.clone(), true),
        ("deleted", None, true),
        ("renewed by another", Some(held_by("other", 15)), false),
    ] {
        let (mut candidate, _) = after_reading(Lookup::Present(held_by("other", 15)));
        let next = candidate.step(Input::Noticed(noticed), at(2)).action;
        assert_eq!(is_get(&next), looks, "{case}");
    }
    // Not while something is asked already.
    let mut candidate = candidate();
    wake(&mut candidate, 0);
    assert_eq!(candidate.step(Input::Noticed(free), at(1)).action, Action::Wait(tick(5)));
}

#[test]
fn what_a_watch_shows_counts_from_when_it_is_shown() {
    let (mut candidate, _) = after_reading(Lookup::Present(held_by("other", 4)));
    let renewed = || stored(Record { renewed: Some(wall(3)), ..record("other", 4, 3) }, "8");
    candidate.step(Input::Noticed(Some(renewed())), at(3));
    for (read_at, takes) in [(6, false), (7, true)] {
        let mut candidate = candidate.clone();
        let get = wake(&mut candidate, 6).action;
        let next = hear(&mut candidate, &get, Lookup::Present(renewed()), read_at);
        assert_eq!(matches!(next.action, Action::Update { .. }), takes, "{read_at}");
    }
}
