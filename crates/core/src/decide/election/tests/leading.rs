use super::*;

#[test]
fn a_leader_renews_without_reading() {
    let (mut candidate, _) = leader();
    for turn in 1..=20_u64 {
        let secs = turn * 2;
        let put = wake(&mut candidate, secs);
        let Action::Update { until, lease, .. } = &put.action else { panic!("FW-352 {put:?}") };
        let want = Record { acquired: Some(wall(0)), renewed: Some(wall(secs)), ..record("me", 15, 0) };
        assert_eq!((*until, &lease.record), (tick(secs + 5), &want), "FW-351 FW-352");
        assert_eq!(lease.resource_version, (turn + 1).to_string());
        let rest = store(&mut candidate, &put.action, &(turn + 2).to_string(), secs);
        assert_eq!(rest, Move { action: Action::Wait(tick(secs + 2)), news: None });
        assert_eq!(candidate.claim_until(), Some(claim(secs)), "L9-104");
    }
    assert_eq!(candidate.slow_paths(), 0, "FW-352");
}

#[test]
fn the_first_renewal_follows_at_once() {
    let mut candidate = candidate();
    let get = wake(&mut candidate, 0).action;
    let create = hear(&mut candidate, &get, Lookup::Absent, 0).action;
    let next = store(&mut candidate, &create, "1", 1);
    let want = Record { acquired: Some(wall(0)), renewed: Some(wall(1)), ..record("me", 15, 0) };
    assert_eq!(sent(&next.action).record, want);
    assert_eq!(sent(&next.action).resource_version, "1");
}

#[test]
fn a_claim_counts_from_the_sending_and_a_lost_answer_lengthens_nothing() {
    let (mut candidate, _) = leader();
    assert_eq!(candidate.claim_until(), Some(claim(0)));
    let put = wake(&mut candidate, 2).action;
    assert_eq!(candidate.claim_until(), Some(claim(0)), "L9-105 not by sending alone");
    let mut heard = candidate.clone();
    store(&mut heard, &put, "3", 6);
    assert_eq!(heard.claim_until(), Some(claim(2)), "L9-106 from the sending, not from the answer");
    wake(&mut candidate, 7);
    store(&mut candidate, &put, "3", 8);
    assert_eq!(candidate.claim_until(), Some(claim(0)), "L9-107 given up, so not heard");
}

#[test]
fn whole_seconds_are_what_others_see() {
    let config = Config { lease_duration: Duration::from_millis(15_900), ..Config::with_defaults("me") };
    let mut candidate = Candidate::new(config);
    let get = wake(&mut candidate, 0).action;
    let create = hear(&mut candidate, &get, Lookup::Absent, 0).action;
    assert_eq!(sent(&create).record.duration_seconds, Some(15));
    store(&mut candidate, &create, "1", 0);
    assert_eq!(candidate.claim_until(), Some(claim(0)), "L9-108");
}

#[test]
fn an_optimistic_renewal_that_fails_is_followed_by_a_read() {
    for answered in [true, false] {
        let (mut candidate, _) = leader();
        let put = wake(&mut candidate, 2).action;
        let get = if answered { fail(&mut candidate, &put, conflict(), 3) } else { wake(&mut candidate, 7) };
        assert!(is_get(&get.action), "FW-353 {get:?}");
        assert_eq!(get.news, None);
        let read =
            hear(&mut candidate, &get.action, Lookup::Present(stored(record("me", 15, 6), "9")), 8).action;
        let want = Record { acquired: Some(wall(0)), renewed: Some(wall(8)), ..record("me", 15, 6) };
        assert_eq!(
            (&sent(&read).record, sent(&read).resource_version.as_str()),
            (&want, "9"),
            "FW-351 FW-353"
        );
        assert_eq!(candidate.slow_paths(), 1, "FW-353");
        let rest = store(&mut candidate, &read, "10", 9);
        assert_eq!(rest.action, Action::Wait(tick(11)));
        assert_eq!(candidate.claim_until(), Some(claim(8)));
    }
}

#[test]
fn a_renewal_is_tried_every_period_until_the_deadline() {
    let (mut candidate, _) = leader();
    let mut action = wake(&mut candidate, 2).action;
    for secs in [2, 4, 6, 8, 10] {
        let get = fail(&mut candidate, &action, unavailable(), secs).action;
        let rest = hear(&mut candidate, &get, Lookup::Unknown(unavailable()), secs);
        assert_eq!(rest, Move { action: Action::Wait(tick(secs + 2)), news: None });
        action = wake(&mut candidate, secs + 2).action;
        if secs < 10 {
            assert!(matches!(action, Action::Update { .. }), "{secs} {action:?}");
        }
    }
    // Second 12: ten seconds after the renewal began.
    assert_eq!(action, Action::Wait(tick(12) + Duration::from_millis(3_200)));
    assert_eq!(candidate.claim_until(), None);
}

#[test]
fn a_slow_failure_leaves_no_further_pause() {
    let (mut candidate, _) = leader();
    wake(&mut candidate, 2);
    let get = wake(&mut candidate, 7).action;
    let rest = hear(&mut candidate, &get, Lookup::Unknown(unavailable()), 9).action;
    assert_eq!(rest, Action::Wait(tick(9)));
    assert!(matches!(wake(&mut candidate, 9).action, Action::Update { .. }));
}

#[test]
fn a_leader_that_cannot_renew_stops_and_stands_again() {
    let (mut candidate, _) = leader();
    wake(&mut candidate, 2);
    assert_eq!(wake(&mut candidate, 6).action, Action::Wait(tick(7)));
    let get = wake(&mut candidate, 7).action;
    assert_eq!(wake(&mut candidate, 11), Move { action: Action::Wait(tick(12)), news: None });
    let lost = wake(&mut candidate, 12);
    let pause = tick(12) + Duration::from_millis(3_200);
    assert_eq!(lost, Move { action: Action::Wait(pause), news: Some(News::Lost(Loss::Expired)) });
    assert_eq!(candidate.claim_until(), None, "L9-109");
    let late = hear(&mut candidate, &get, Lookup::Present(stored(record("me", 15, 0), "2")), 13);
    assert_eq!(late, Move { action: Action::Wait(pause), news: None });
    // Nobody took it meanwhile: it is ours again, with one read.
    let get = wake(&mut candidate, 16).action;
    assert!(is_get(&get), "{get:?}");
    let put = hear(&mut candidate, &get, Lookup::Present(stored(record("me", 15, 0), "2")), 16).action;
    assert_eq!(sent(&put).record.transitions, 0);
    let again = store(&mut candidate, &put, "3", 16);
    assert_eq!((again.news, candidate.claim_until()), (Some(News::Leads), Some(claim(16))));
}

#[test]
fn a_claim_that_runs_out_ends_even_within_the_renew_deadline() {
    let config = Config { renew_deadline: Duration::from_secs(14), ..Config::with_defaults("me") };
    let mut candidate = Candidate::new(config);
    let get = wake(&mut candidate, 0).action;
    let create = hear(&mut candidate, &get, Lookup::Absent, 0).action;
    let put = store(&mut candidate, &create, "1", 0).action;
    store(&mut candidate, &put, "2", 0);
    wake(&mut candidate, 2);
    wake(&mut candidate, 9);
    assert_eq!(wake(&mut candidate, 14).action, Action::Wait(claim(0)), "not until second 16");
    assert_eq!(wake(&mut candidate, 15).news, Some(News::Lost(Loss::Expired)), "L9-110");
}

#[test]
fn a_leader_waits_no_longer_than_its_claim() {
    let config = Config {
        lease_duration: Duration::from_secs(4),
        renew_deadline: Duration::from_millis(3_900),
        retry_period: Duration::from_secs(3),
        ..Config::with_defaults("me")
    };
    let mut candidate = Candidate::new(config);
    let get = wake(&mut candidate, 0).action;
    let create = hear(&mut candidate, &get, Lookup::Absent, 0).action;
    let put = store(&mut candidate, &create, "1", 0).action;
    let rest = store(&mut candidate, &put, "2", 2).action;
    let ends = tick(0) + Duration::from_millis(3_996);
    assert_eq!(rest, Action::Wait(ends), "the claim of second 0 ends before the next renewal");
}

#[test]
fn whoever_sees_that_the_lease_is_not_his_stops_at_once() {
    let table = [
        ("another holds it", Lookup::Present(held_by("other", 15)), "wait"),
        ("nobody holds it", Lookup::Present(held_by("", 1)), "update"),
        ("it is gone", Lookup::Absent, "create"),
    ];
    for (case, found, then) in table {
        let (mut candidate, _) = leader();
        let put = wake(&mut candidate, 2).action;
        let get = fail(&mut candidate, &put, conflict(), 2).action;
        let next = hear(&mut candidate, &get, found, 3);
        assert_eq!(next.news, Some(News::Lost(Loss::Taken)), "L9-111 {case}");
        assert_eq!(candidate.claim_until(), None, "L9-111 {case}");
        let does = match next.action {
            Action::Wait(_) => "wait",
            Action::Update { .. } => "update",
            Action::Create { .. } => "create",
            other => panic!("{other:?}"),
        };
        assert_eq!(does, then, "{case}: it stands again");
    }
}

#[test]
fn a_read_that_is_not_answered_takes_nothing_away() {
    let (mut candidate, _) = leader();
    let put = wake(&mut candidate, 2).action;
    let get = fail(&mut candidate, &put, unavailable(), 2).action;
    let next = hear(&mut candidate, &get, Lookup::Unknown(unavailable()), 3);
    assert_eq!((next.news, candidate.claim_until()), (None, Some(claim(0))));
}

#[test]
fn a_leader_checks_what_a_watch_shows() {
    let table = [
        ("another holds it", Some(held_by("other", 15)), true),
        ("nobody holds it", Some(held_by("", 1)), true),
        ("it is gone", None, true),
        ("our own renewal", Some(held_by("me", 15)), false),
    ];
    for (case, noticed, checks) in table {
        let (mut candidate, _) = leader();
        let next = candidate.step(Input::Noticed(noticed), at(1));
        assert_eq!(
            (next.news, candidate.claim_until()),
            (None, Some(claim(0))),
            "{case}: it may be old news"
        );
        assert_eq!(candidate.holder(), Some("me"), "{case}");
        if checks {
            assert_eq!(sent(&next.action).resource_version, "2", "{case}: a renewal tells");
        } else {
            assert_eq!(next.action, Action::Wait(tick(2)), "{case}");
        }
    }
}

#[test]
fn a_stored_lease_without_a_version_is_read_before_it_is_renewed() {
    let mut candidate = candidate();
    let get = wake(&mut candidate, 0).action;
    let create = hear(&mut candidate, &get, Lookup::Absent, 0).action;
    let next = store(&mut candidate, &create, "", 0);
    assert_eq!(next.news, Some(News::Leads));
    assert!(is_get(&next.action), "L9-112 {next:?}");
}

#[test]
fn a_lease_that_is_ours_but_stale_is_read_before_it_is_renewed() {
    let mut candidate = candidate();
    let get = wake(&mut candidate, 0).action;
    hear(&mut candidate, &get, Lookup::Present(stored(record("me", 3, 0), "")), 0);
    assert!(is_get(&wake(&mut candidate, 4).action));
}

#[test]
fn only_a_stuck_leader_is_unhealthy() {
    let tolerance = Duration::from_secs(20);
    let (leader, _) = leader();
    let mut standby = candidate();
    let get = wake(&mut standby, 0).action;
    hear(&mut standby, &get, Lookup::Present(held_by("other", 15)), 0);
    let mut lost = leader.clone();
    wake(&mut lost, 16);
    let table = [
        ("FW-355 not started", candidate(), 9_999, true),
        ("FW-355 valid", leader.clone(), 14, true),
        ("FW-355 expired by less than the tolerance", leader.clone(), 35, true),
        ("FW-355 held by another", standby, 9_999, true),
        ("it knows that it lost", lost, 9_999, true),
        ("FW-356 far expired and ours", leader, 36, false),
    ];
    for (case, candidate, secs, healthy) in table {
        let said = candidate.health(tick(secs), tolerance).map_err(|why| why.to_string());
        let text = "failed election to renew leadership on lease cloud-controller-manager".to_owned();
        assert_eq!(said, if healthy { Ok(()) } else { Err(text) }, "{case}");
    }
}

#[test]
fn nobody_is_known_before_anything_was_read() {
    assert_eq!(candidate().holder(), None);
    let mut candidate = candidate();
    let get = wake(&mut candidate, 0).action;
    hear(&mut candidate, &get, Lookup::Present(held_by("", 1)), 0);
    assert_eq!(candidate.holder(), None);
}

#[test]
fn times_reach_the_record_in_whole_microseconds() {
    let mut candidate = candidate();
    let wall: Timestamp = "2026-08-01T10:00:00.123456789Z".parse().unwrap();
    let get = wake(&mut candidate, 0).action;
    let moment = Moment { wall, ..at(0) };
    let create = candidate.step(Input::Read(ticket(&get), Lookup::Absent), moment).action;
    let cut = "2026-08-01T10:00:00.123456Z".parse().ok();
    assert_eq!((sent(&create).record.renewed, sent(&create).record.acquired), (cut, cut));
    assert_eq!(
        Lease::decode(sent(&create).object().clone()).unwrap(),
        *sent(&create),
        "it reads back the same"
    );
}

#[test]
fn a_renewal_is_seen_even_if_the_wall_clock_stands_still_or_goes_back() {
    let (mut candidate, _) = leader();
    for (turn, back) in [(1, 0), (2, 0), (3, 3_600)] {
        let moment = Moment { wall: wall(0) - Duration::from_secs(back), ..at(turn * 2) };
        let put = candidate.step(Input::Wake, moment).action;
        // In another second, since some compare no more than that.
        assert_eq!(sent(&put).record.renewed, Some(wall(turn)), "L9-118");
        assert_eq!(sent(&put).record.acquired, Some(wall(0)));
        store(&mut candidate, &put, &turn.to_string(), turn * 2);
        assert_eq!(candidate.claim_until(), Some(claim(turn * 2)), "L9-118");
    }
}

#[test]
fn a_renewal_that_others_cannot_tell_from_the_one_before_lengthens_nothing() {
    let config = Config { retry_period: Duration::from_millis(400), ..Config::with_defaults("me") };
    let mut candidate = Candidate::new(config);
    let at = |millis: u64| Moment {
        now: tick(0) + Duration::from_millis(millis),
        wall: wall(0) + Duration::from_millis(millis),
        fraction: 0.5,
    };
    let write = |candidate: &mut Candidate, put: Action, moment| {
        let lease = stored(sent(&put).record.clone(), "1");
        candidate.step(Input::Wrote(ticket(&put), Ok(lease)), moment).action
    };
    let get = candidate.step(Input::Wake, at(100)).action;
    let create = candidate.step(Input::Read(ticket(&get), Lookup::Absent), at(100)).action;
    let first = write(&mut candidate, create, at(100));
    write(&mut candidate, first, at(100));
    // When it is sent, what the record says then, and from when the claim counts: all in milliseconds.
    let table = [
        (500, 500, 100),
        (900, 900, 100),
        (1_300, 1_300, 1_300),
        (1_700, 1_700, 1_300),
        // Long enough after the last that counted; the clock has just been set back.
        (2_350, 2_000, 2_350),
    ];
    for (when, says, since) in table {
        let moment = if says < when { Moment { wall: wall(0), ..at(when) } } else { at(when) };
        let put = candidate.step(Input::Wake, moment).action;
        assert_eq!(sent(&put).record.renewed, Some(at(says).wall), "L9-317 at {when}");
        write(&mut candidate, put, moment);
        let claim = at(since).now + Duration::from_millis(14_985);
        assert_eq!(candidate.claim_until(), Some(claim), "L9-317 at {when}");
    }
}

#[test]
fn the_answer_to_an_earlier_request_is_not_taken_for_a_later_ones() {
    let (mut candidate, _) = leader();
    let first = wake(&mut candidate, 2).action;
    let early = wake(&mut candidate, 7).action;
    let second = hear(&mut candidate, &early, Lookup::Present(stored(record("me", 15, 0), "2")), 7).action;
    let late = store(&mut candidate, &first, "3", 8);
    assert_eq!((late.action, candidate.claim_until()), (Action::Wait(tick(12)), Some(claim(0))), "L9-119");
    assert_eq!(fail(&mut candidate, &second, conflict(), 8).action, Action::Wait(tick(8)));
    let put = wake(&mut candidate, 9).action;
    let get = fail(&mut candidate, &put, conflict(), 9).action;
    let stale = hear(&mut candidate, &early, Lookup::Present(held_by("other", 15)), 10);
    assert_eq!(stale, Move { action: Action::Wait(tick(12)), news: None }, "L9-119 {get:?}");
}
