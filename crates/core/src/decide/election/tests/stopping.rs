use super::*;

const RELEASED: Action = Action::Stopped { released: true };
const LEFT: Action = Action::Stopped { released: false };

fn stop(candidate: &mut Candidate, secs: u64) -> Move {
    candidate.step(Input::Stop { release: true }, at(secs))
}

#[test]
fn a_leader_releases_the_lease() {
    let (mut candidate, _) = leader();
    let release = stop(&mut candidate, 1);
    assert_eq!(release.news, Some(News::Lost(Loss::Stopped)));
    assert_eq!(candidate.claim_until(), None, "L9-113 before the release is sent");
    let Action::Update { until, lease, .. } = &release.action else { panic!("{release:?}") };
    let want = Record { acquired: Some(wall(1)), renewed: Some(wall(1)), ..record("", 1, 0) };
    assert_eq!((*until, &lease.record, lease.resource_version.as_str()), (tick(6), &want, "2"));
    assert_eq!(stop(&mut candidate, 2).action, Action::Wait(tick(6)), "said twice is said once");
    let end = store(&mut candidate, &release.action, "3", 3);
    assert_eq!(end, Move { action: RELEASED, news: None });
    for input in [Input::Wake, Input::Stop { release: true }, Input::Noticed(None)] {
        assert_eq!(candidate.step(input, at(99)).action, RELEASED, "for good");
    }
}

#[test]
fn transitions_survive_a_release() {
    let mut candidate = candidate();
    let get = wake(&mut candidate, 0).action;
    let put = hear(&mut candidate, &get, Lookup::Present(held_by("", 1)), 0).action;
    store(&mut candidate, &put, "8", 0);
    let release = stop(&mut candidate, 1).action;
    assert_eq!(sent(&release).record.transitions, 4);
}

#[test]
fn a_release_in_the_way_of_a_renewal_is_tried_again() {
    let (mut candidate, _) = leader();
    let renewal = wake(&mut candidate, 2).action;
    let release = stop(&mut candidate, 3).action;
    assert_eq!(sent(&release).resource_version, "2");
    let ignored = store(&mut candidate, &renewal, "3", 4);
    assert_eq!((ignored.action, candidate.claim_until()), (Action::Wait(tick(8)), None), "L9-114");
    let get = fail(&mut candidate, &release, conflict(), 5).action;
    assert!(is_get(&get));
    assert_eq!(stop(&mut candidate, 5).action, Action::Wait(tick(10)), "said twice is said once");
    let again = hear(&mut candidate, &get, Lookup::Present(stored(record("me", 15, 2), "3")), 6).action;
    let want = Record { acquired: Some(wall(6)), renewed: Some(wall(6)), ..record("", 1, 2) };
    assert_eq!((&sent(&again).record, sent(&again).resource_version.as_str()), (&want, "3"));
    assert_eq!(store(&mut candidate, &again, "4", 7).action, RELEASED);
}

#[test]
fn a_release_that_cannot_be_had_is_let_go() {
    let releasing = || {
        let (mut candidate, _) = leader();
        let release = stop(&mut candidate, 1).action;
        (candidate, release)
    };
    let (mut candidate, release) = releasing();
    assert_eq!(fail(&mut candidate, &release, unavailable(), 2).action, LEFT, "refused");
    let (mut candidate, _) = releasing();
    assert_eq!(wake(&mut candidate, 5).action, Action::Wait(tick(6)));
    assert_eq!(wake(&mut candidate, 6).action, LEFT, "no answer");
    let (mut candidate, release) = releasing();
    assert_eq!(fail(&mut candidate, &release, conflict(), 11).action, LEFT, "the renew deadline is over");

    let table = [
        ("another has it", Lookup::Present(held_by("other", 15))),
        ("nobody has it", Lookup::Present(held_by("", 1))),
        ("it is gone", Lookup::Absent),
        ("it cannot be read", Lookup::Unknown(unavailable())),
    ];
    for (case, found) in table {
        let (mut candidate, release) = releasing();
        let get = fail(&mut candidate, &release, conflict(), 2).action;
        assert_eq!(hear(&mut candidate, &get, found, 3), Move { action: LEFT, news: None }, "{case}");
    }
    let (mut candidate, release) = releasing();
    fail(&mut candidate, &release, conflict(), 10);
    assert_eq!(wake(&mut candidate, 15).action, LEFT, "the read is not answered");
}

#[test]
fn a_lease_without_a_version_is_read_before_it_is_released() {
    let mut candidate = candidate();
    let get = wake(&mut candidate, 0).action;
    let create = hear(&mut candidate, &get, Lookup::Absent, 0).action;
    store(&mut candidate, &create, "", 0);
    let get = stop(&mut candidate, 1).action;
    assert!(is_get(&get), "L9-115 {get:?}");
    let release = hear(&mut candidate, &get, Lookup::Present(held_by("me", 15)), 2).action;
    assert_eq!(sent(&release).resource_version, "7");
}

#[test]
fn a_standby_just_stops() {
    let mut fresh = candidate();
    assert_eq!(stop(&mut fresh, 0), Move { action: LEFT, news: None });
    let mut reading = candidate();
    wake(&mut reading, 0);
    assert_eq!(stop(&mut reading, 1).action, LEFT);
    let (mut lost, _) = leader();
    let late = stop(&mut lost, 15);
    assert_eq!(late, Move { action: LEFT, news: Some(News::Lost(Loss::Expired)) });
}

#[test]
fn a_candidate_about_to_lead_waits_for_the_answer() {
    let taking = || {
        let mut candidate = candidate();
        let get = wake(&mut candidate, 0).action;
        let create = hear(&mut candidate, &get, Lookup::Absent, 0).action;
        assert_eq!(stop(&mut candidate, 1), Move { action: Action::Wait(tick(5)), news: None });
        (candidate, create)
    };
    let (mut candidate, create) = taking();
    let release = store(&mut candidate, &create, "1", 2);
    assert_eq!((release.news, candidate.claim_until()), (None, None), "L9-116 it never leads");
    assert_eq!(
        (sent(&release.action).record.holder.as_str(), sent(&release.action).resource_version.as_str()),
        ("", "1")
    );
    assert_eq!(store(&mut candidate, &release.action, "2", 3).action, RELEASED);
    let (mut candidate, create) = taking();
    assert_eq!(fail(&mut candidate, &create, conflict(), 2).action, LEFT);
    let (mut candidate, _) = taking();
    assert_eq!(wake(&mut candidate, 5).action, LEFT);
}

#[test]
fn the_answer_to_an_earlier_release_is_not_taken_for_a_later_ones() {
    let (mut candidate, _) = leader();
    let first = stop(&mut candidate, 1).action;
    let get = fail(&mut candidate, &first, conflict(), 2).action;
    hear(&mut candidate, &get, Lookup::Present(stored(record("me", 15, 2), "3")), 3);
    assert_eq!(fail(&mut candidate, &first, unavailable(), 4).action, Action::Wait(tick(8)));
}

#[test]
fn a_lease_that_may_not_be_let_go_of_is_left_to_run_out() {
    let leave = |candidate: &mut Candidate, secs| candidate.step(Input::Stop { release: false }, at(secs));
    let (mut leading, _) = leader();
    let end = leave(&mut leading, 1);
    assert_eq!(end, Move { action: LEFT, news: Some(News::Lost(Loss::Stopped)) }, "L9-512 nothing is sent");
    assert_eq!(leading.claim_until(), None, "L9-512 and nothing is written any more");

    let (mut renewing, _) = leader();
    wake(&mut renewing, 2);
    assert_eq!(leave(&mut renewing, 3).action, LEFT, "L9-513 a renewal under way does not matter");

    let mut taking = candidate();
    let get = wake(&mut taking, 0).action;
    let create = hear(&mut taking, &get, Lookup::Absent, 0).action;
    assert_eq!(leave(&mut taking, 1).action, Action::Wait(tick(5)));
    assert_eq!(stop(&mut taking, 2).action, Action::Wait(tick(5)), "the first word counts");
    assert_eq!(store(&mut taking, &create, "1", 3).action, LEFT, "L9-514 nor is one that was just taken");
}
