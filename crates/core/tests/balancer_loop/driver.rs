//! The rules that the driver keeps for every provider.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use cloudberth_core::{
    Call, Category, Error, Lookup, ObjectKey, Result, ServiceView,
    annotation::Table,
    decide::service::ownership::Ownership,
    lb::{
        Balancers, Creation, Decision, Desired, Fleet, Goal, INTENT_ANNOTATION, Identity, Impact, IntentMark,
        LockKey, LockKind, MAX_ROUNDS, Name, Next, Outcome, Permit, Publish, Refusal, Rival, Step, Turn,
        TurnEnd,
    },
    provider::LoadBalancers,
    reason,
    view::{Ingress, ServicePort, ServiceProtocol},
};

use crate::{
    document::Documents,
    fixture::{
        Dry, ServiceLog, Toy, annotated, call, contested, converge, dry_run, gone, no_annotations, no_fleet,
        now, turn, want,
    },
    six::Six,
};

/// A planner that decides what it is told, and a cloud that answers what it is told.
#[derive(Default)]
struct Script {
    decisions: Mutex<VecDeque<Decision<u32>>>,
    outcomes: Mutex<VecDeque<Outcome<u32>>>,
    sent: Mutex<Vec<u32>>,
    folded: Mutex<Vec<u32>>,
    width: usize,
    unknown: bool,
    found: Option<Identity>,
}

impl Balancers for Script {
    type Survey = ();
    type Observed = ();
    type Action = u32;
    type Answer = u32;

    fn annotations(&self) -> &Table {
        no_annotations()
    }

    fn settle_time(&self) -> Duration {
        Duration::from_secs(7)
    }

    fn width(&self) -> usize {
        self.width
    }

    fn name_for(&self, service: &ServiceView, cluster: &str) -> Name {
        Name { text: format!("{cluster}/{}", service.name), generated: true }
    }

    fn identity(&self, (): &()) -> Option<Identity> {
        self.found.clone()
    }

    fn lock_keys(&self, service: &ServiceView, cluster: &str) -> Vec<LockKey> {
        vec![LockKey::new(LockKind::Name, self.name_for(service, cluster).text)]
    }

    async fn observe(&self, _: &Call, _: &dyn Fleet, (): &(), _: &Desired) -> Lookup<()> {
        if self.unknown { Lookup::Unknown(Error::temporary("401")) } else { Lookup::Present(()) }
    }

    fn decide(&self, _: &Desired, _: Option<&()>) -> Decision<u32> {
        let mut script = self.decisions.lock().unwrap();
        // The last line of the script is repeated for ever.
        if script.len() > 1 { script.pop_front().unwrap() } else { script[0].clone() }
    }

    async fn execute(&self, _: &Call, act: &u32) -> Outcome<u32> {
        self.sent.lock().unwrap().push(*act);
        self.outcomes.lock().unwrap().pop_front().unwrap_or(Outcome::Done(*act))
    }

    fn fold(&self, seen: Option<()>, act: &u32, _: &u32) -> Option<()> {
        self.folded.lock().unwrap().push(*act);
        seen
    }

    fn assume(&self, act: &u32) -> u32 {
        *act
    }
}

fn change(act: u32) -> Step<u32> {
    Step::new(act, Impact::Minimal, format!("change {act}"))
}

fn create(act: u32) -> Step<u32> {
    Step::creating(act, format!("create {act}"))
}

fn act(steps: Vec<Step<u32>>) -> Decision<u32> {
    Decision::new(Next::Act(steps))
}

fn refuse(mut decision: Decision<u32>) -> Decision<u32> {
    decision.refused.push(Refusal {
        reason: reason::UNSUPPORTED_FIELD,
        field: "spec.ports".into(),
        message: "no".into(),
    });
    decision
}

fn publish(mut decision: Decision<u32>, value: &str) -> Decision<u32> {
    let annotations = [("toy/id".to_owned(), value.to_owned())].into();
    decision.publish = Some(Publish { annotations, ..Publish::default() });
    decision
}

fn rests() -> Decision<u32> {
    Decision::new(Next::Converged)
}

fn script(decisions: Vec<Decision<u32>>, outcomes: Vec<Outcome<u32>>) -> Script {
    Script {
        decisions: Mutex::new(decisions.into()),
        outcomes: Mutex::new(outcomes.into()),
        width: 2,
        ..Script::default()
    }
}

fn run(toy: &Script, want: &Desired, permit: Permit) -> Turn {
    let survey = LoadBalancers::survey(toy, &no_fleet()).unwrap();
    now(toy.turn(&call(), &survey, want, permit, &ServiceLog::default()))
}

fn sent(toy: &Script) -> Vec<u32> {
    toy.sent.lock().unwrap().clone()
}

fn failed() -> Outcome<u32> {
    Outcome::Failed(Error::user_input("400 bad port"))
}

fn lost() -> Outcome<u32> {
    Outcome::Unknown(Error::temporary("time-out"))
}

#[test]
fn a_lost_answer_ends_the_turn_and_a_failure_lets_its_batch_finish() {
    let done = |n| Outcome::Done(n);
    let steps = || act(vec![change(1), change(2), change(3)]);
    let unknown = TurnEnd::Unknown(Error::temporary("change 2: time-out"));
    let refused = TurnEnd::Failed(Error::user_input("change 1: 400 bad port"));
    let table = [
        ("all done, then rest", vec![], TurnEnd::Converged, vec![1, 2, 3], vec![1, 2, 3]),
        (
            "L5-1 a failure: its batch is heard out, no other is begun",
            vec![failed()],
            refused,
            vec![1, 2],
            vec![2],
        ),
        ("L1-6 a lost answer", vec![done(1), lost()], unknown.clone(), vec![1, 2], vec![1]),
        ("L1-7 not knowing outranks failing", vec![failed(), lost()], unknown, vec![1, 2], vec![]),
    ];
    for (case, outcomes, rest, sent_acts, folded) in table {
        let toy = script(vec![steps(), rests()], outcomes);
        let account = run(&toy, &want(&[80], &[]), Permit::Create);
        assert_eq!(account.end, rest, "{case}");
        assert_eq!(sent(&toy), sent_acts, "{case}");
        assert_eq!(*toy.folded.lock().unwrap(), folded, "{case}");
        assert_eq!(account.done, folded.iter().map(|n| format!("change {n}")).collect::<Vec<_>>(), "{case}");
    }
}

#[test]
fn what_is_refused_in_part_is_decided_about_again() {
    let refused = |answer| Outcome::Refused { answer, why: Error::user_input("no such address") };
    let toy =
        script(vec![act(vec![create(1)]), act(vec![create(2)]), rests()], vec![refused(7), Outcome::Done(2)]);
    let account = run(&toy, &want(&[80], &[]), Permit::Create);
    assert_eq!((account.end, sent(&toy)), (TurnEnd::Converged, vec![1, 2]), "L8-1805 the turn goes on");
    assert_eq!(*toy.folded.lock().unwrap(), [1, 2], "L8-1805 what was refused is known");
    assert_eq!(account.done, ["create 2"], "L8-1805 nothing was done by the first");
    let toy = script(vec![act(vec![create(1)]), rests()], vec![refused(7)]);
    let account = run(&toy, &want(&[80], &[]), Permit::Create);
    assert_eq!(account.creation, Creation::Nothing, "L6-1805 nothing came into being");
}

#[test]
fn what_was_seen_and_not_there_to_be_removed_is_remembered() {
    let steps = || act(vec![change(1), change(2)]);
    let table = [
        ("all are there", vec![], false),
        ("L1-1013 one is not", vec![Outcome::Done(1), Outcome::NotThere], true),
    ];
    for (case, outcomes, denied) in table {
        let toy = script(vec![steps(), rests()], outcomes);
        let account = run(&toy, &gone(want(&[80], &[])), Permit::NoCreate);
        assert_eq!((account.end, account.denied), (TurnEnd::Converged, denied), "{case}");
        assert_eq!(*toy.folded.lock().unwrap(), [1, 2], "{case}: it goes on as if it were removed");
        assert_eq!(account.done, ["change 1", "change 2"], "{case}");
    }
}

#[test]
fn nothing_is_created_without_intent_against_a_refusal_or_on_the_way_out() {
    let present = want(&[80], &[]);
    let out = TurnEnd::Failed(Error::permanent(
        "internal error: the plan to remove a load balancer would create 1",
    ));
    let table = [
        (
            "L6-11 no intent is recorded",
            &present,
            Permit::NoCreate,
            act(vec![create(1)]),
            TurnEnd::NeedsIntent,
            0,
        ),
        (
            "L6-12 the intent is recorded",
            &present,
            Permit::Create,
            act(vec![create(1)]),
            TurnEnd::Converged,
            1,
        ),
        (
            "L6-13 a change needs none",
            &present,
            Permit::NoCreate,
            act(vec![change(1)]),
            TurnEnd::Converged,
            1,
        ),
        (
            "L6-14 nor may it go along",
            &present,
            Permit::NoCreate,
            act(vec![change(1), create(2)]),
            TurnEnd::NeedsIntent,
            0,
        ),
        (
            "L8-1 a refusal blocks creation",
            &present,
            Permit::Create,
            refuse(act(vec![create(1)])),
            TurnEnd::Refused,
            0,
        ),
        (
            "L8-2 and only creation",
            &present,
            Permit::Create,
            refuse(act(vec![change(1)])),
            TurnEnd::Converged,
            1,
        ),
        (
            "L5-2 nothing is built on the way out",
            &gone(want(&[80], &[])),
            Permit::Create,
            act(vec![create(1)]),
            out,
            0,
        ),
    ];
    for (case, want, permit, decision, rest, count) in table {
        let toy = script(vec![decision, rests()], vec![]);
        let account = run(&toy, want, permit);
        assert_eq!(account.end, rest, "{case}");
        assert_eq!(sent(&toy).len(), count, "{case}");
    }
    let dry = script(vec![refuse(act(vec![create(1)]))], vec![]);
    let (plan, _) = dry_run(&dry, &present, None);
    assert_eq!((plan.done, plan.end), (vec![], TurnEnd::Refused), "L8-10 a dry run stops there too");
}

#[test]
fn the_account_says_what_became_of_creations() {
    let table = [
        ("nothing was to be created", act(vec![change(1)]), vec![], Creation::Nothing),
        ("L6-15 created", act(vec![create(1)]), vec![], Creation::Known),
        ("L6-16 refused: nothing came into being", act(vec![create(1)]), vec![failed()], Creation::Nothing),
        ("L6-17 the answer was lost", act(vec![create(1)]), vec![lost()], Creation::Unsure),
        ("L6-18 one known, one lost", act(vec![create(1), create(2)]), vec![lost()], Creation::Unsure),
        ("a lost change is no lost creation", act(vec![change(1)]), vec![lost()], Creation::Nothing),
    ];
    for (case, decision, outcomes, want_creation) in table {
        let toy = script(vec![decision, rests()], outcomes);
        assert_eq!(run(&toy, &want(&[80], &[]), Permit::Create).creation, want_creation, "{case}");
    }
}

#[test]
fn a_planner_that_goes_in_circles_or_says_nothing_is_stopped() {
    let circles = script(vec![act(vec![change(1)])], vec![]);
    let account = run(&circles, &want(&[80], &[]), Permit::Create);
    let TurnEnd::Failed(error) = &account.end else { panic!("{account:?}") };
    assert!(error.message().contains("did not come to rest"), "L11-1");
    assert_eq!((sent(&circles).len(), error.category()), (MAX_ROUNDS, Category::Permanent));
    let (plan, _) = dry_run(&circles, &want(&[80], &[]), None);
    assert_eq!((plan.done.len(), &plan.end), (MAX_ROUNDS, &account.end), "a dry run is stopped too");

    let silent = script(vec![act(vec![])], vec![]);
    let TurnEnd::Failed(error) = run(&silent, &want(&[80], &[]), Permit::Create).end else { panic!() };
    assert!(error.message().contains("a round without steps"), "L11-2");
}

#[test]
fn waiting_frees_the_worker() {
    let wait = Next::Wait { on: "paint to dry".into(), poll: Duration::from_secs(3) };
    let toy = script(vec![act(vec![change(1)]), Decision::new(wait)], vec![]);
    let rest = TurnEnd::Wait { on: "paint to dry".into(), poll: Duration::from_secs(3) };
    assert_eq!(run(&toy, &want(&[80], &[]), Permit::NoCreate).end, rest);
    assert_eq!(dry_run(&toy, &want(&[80], &[]), None).0.end, rest);
}

#[test]
fn what_could_not_be_looked_at_is_left_alone() {
    let mut toy = script(vec![act(vec![change(1)])], vec![]);
    toy.unknown = true;
    let unknown = TurnEnd::Unknown(Error::temporary("401"));
    assert_eq!(run(&toy, &want(&[80], &[]), Permit::Create).end, unknown, "L1-8");
    let survey = LoadBalancers::survey(&toy, &no_fleet()).unwrap();
    let dry = now(toy.turn(&call(), &survey, &want(&[80], &[]), Permit::Create, &Dry::default()));
    assert_eq!((dry.done, dry.end), (vec![], unknown), "L1-9");
    assert_eq!(sent(&toy), Vec::<u32>::new());

    let foreign = LoadBalancers::survey(&Six::empty(), &no_fleet()).unwrap();
    toy.unknown = false;
    let account = now(toy.turn(&call(), &foreign, &want(&[80], &[]), Permit::Create, &ServiceLog::default()));
    assert!(matches!(&account.end, TurnEnd::Unknown(e) if e.message().contains("another cloud")), "L3-1");
}

/// Remembers every write on the Service.
#[derive(Default)]
struct Ledger {
    writes: Mutex<Vec<(String, IntentMark)>>,
}

impl cloudberth_core::lb::Effects for Ledger {
    fn record<'a>(
        &'a self,
        publish: &'a Publish,
        intent: IntentMark,
    ) -> cloudberth_core::provider::Boxed<'a, Result<()>> {
        self.writes.lock().unwrap().push((publish.annotations["toy/id"].clone(), intent));
        Box::pin(async { Ok(()) })
    }
}

#[test]
fn what_is_published_is_written_once_and_the_intent_goes_with_the_last_creation() {
    let decisions = vec![
        publish(act(vec![create(1)]), "address"),
        publish(act(vec![change(2)]), "address"),
        publish(act(vec![change(3)]), "balancer"),
        publish(rests(), "balancer"),
    ];
    let toy = script(decisions, vec![]);
    let survey = LoadBalancers::survey(&toy, &no_fleet()).unwrap();
    let ledger = Ledger::default();
    let account = now(toy.turn(&call(), &survey, &want(&[80], &[]), Permit::Create, &ledger));
    assert_eq!(account.end, TurnEnd::Converged);
    let writes = ledger.writes.lock().unwrap().clone();
    let want_writes = [("address".to_owned(), IntentMark::Keep), ("balancer".to_owned(), IntentMark::Clear)];
    assert_eq!(writes, want_writes, "L6-19");
    let (_, published) =
        dry_run(&script(vec![publish(act(vec![change(1)]), "x"), rests()], vec![]), &want(&[80], &[]), None);
    assert_eq!(published.unwrap().annotations["toy/id"], "x", "a dry run shows what would be written");
}

#[test]
fn published_addresses_are_never_replaced_by_none() {
    let shown = |ip: &str| Ingress { ip: Some(ip.to_owned()), ..Ingress::default() };
    let table = [
        ("L1-427 none over some", vec![shown("192.0.2.1")], vec![], None, 1),
        ("none over none", vec![], vec![], None, 0),
        ("another", vec![shown("192.0.2.1")], vec![shown("192.0.2.2")], Some(vec![shown("192.0.2.2")]), 0),
        ("the first", vec![], vec![shown("192.0.2.1")], Some(vec![shown("192.0.2.1")]), 0),
    ];
    for (case, now_shown, ingress, written, warnings) in table {
        let mut want = want(&[80], &[]);
        Arc::make_mut(&mut want.service).ingress = now_shown;
        let decision = || {
            let publish = Publish { ingress: Some(ingress.clone()), ..Publish::default() };
            Decision { publish: Some(publish), ..rests() }
        };
        let toy = script(vec![decision()], vec![]);
        let survey = LoadBalancers::survey(&toy, &no_fleet()).unwrap();
        let log = ServiceLog::default();
        let turn = now(toy.turn(&call(), &survey, &want, Permit::NoCreate, &log));
        let published = log.published.lock().unwrap().clone();
        assert_eq!(published.and_then(|publish| publish.ingress), written, "{case}");
        let reasons: Vec<_> = turn.notices.iter().map(|notice| notice.reason).collect();
        assert_eq!(reasons, vec!["NoAddressShown"; warnings], "{case}");
        let (_, published) = dry_run(&script(vec![decision()], vec![]), &want, None);
        assert_eq!(published.and_then(|publish| publish.ingress), written, "{case}, dry");
    }
}

#[test]
fn a_failed_write_on_the_service_stops_the_turn_and_is_made_up_for() {
    let toy = Documents::empty();
    let log = ServiceLog::default();
    *log.fail_records.lock().unwrap() = 1;
    let first = turn(&toy, &want(&[80], &["a"]), &log, Permit::Create);
    assert!(matches!(&first.end, TurnEnd::Failed(e) if e.message() == "the API server is away"), "{first:?}");
    assert_eq!(converge(&toy, &want(&[80], &["a"]), &log), TurnEnd::Converged);
    assert_eq!(toy.describe().len(), 1, "L6-20 it is found again, not built again");
    assert!(log.published.lock().unwrap().as_ref().unwrap().ingress.is_some());
}

#[test]
fn a_refusal_blocks_creation_but_an_existing_load_balancer_is_kept_and_served() {
    let udp = |nodes: &[&str]| {
        let mut wish = want(&[80], nodes);
        let odd = ServicePort { port: 53, protocol: ServiceProtocol::Udp, ..ServicePort::default() };
        Arc::make_mut(&mut wish.service).ports.push(odd);
        wish
    };
    let fresh = Documents::empty();
    assert_eq!(converge(&fresh, &udp(&["a"]), &ServiceLog::default()), TurnEnd::Refused, "L8-3");
    assert_eq!(fresh.describe(), Vec::<String>::new());

    let (old, log) = (Documents::empty(), ServiceLog::default());
    converge(&old, &want(&[80], &["a"]), &log);
    assert_eq!(converge(&old, &udp(&["a", "b"]), &log), TurnEnd::Converged);
    let account = turn(&old, &udp(&["a", "b"]), &log, Permit::NoCreate);
    assert_eq!(
        account.refused[0].to_string(),
        "spec.ports[].protocol: UDP 53 cannot be forwarded; use TCP",
        "L8-4"
    );
    let kept = &old.describe()[0];
    assert!(kept.contains("ports: {80}") && kept.contains("toy://b"), "L8-5 members go on: {kept}");
    assert_eq!(converge(&old, &gone(udp(&["a"])), &log), TurnEnd::Converged, "L8-6 and so does deletion");
    assert_eq!(old.describe(), Vec::<String>::new());
}

#[test]
fn a_change_that_the_cloud_cannot_make_is_noticed_and_nothing_is_rebuilt() {
    let (toy, log) = (Documents::empty(), ServiceLog::default());
    converge(&toy, &want(&[80], &["a"]), &log);
    let before = toy.describe();
    let account = turn(&toy, &annotated(want(&[80], &["a"]), "toy/region", "per"), &log, Permit::NoCreate);
    assert_eq!(account.end, TurnEnd::Converged);
    assert_eq!((account.notices[0].reason.name(), toy.describe()), ("RegionImmutable", before));
}

#[test]
fn several_of_one_name_are_named_and_left_alone() {
    let (toy, log) = (Six::empty(), ServiceLog::default());
    let wish = want(&[80], &["a"]);
    for _ in 0..2 {
        let twin = dry_run(&toy, &wish, None).0.done.len();
        assert!(twin > 1);
        let create = toy.decide(&wish, None);
        let Next::Act(steps) = create.next else { panic!() };
        let _ = now(toy.execute(&call(), &steps[0].act));
    }
    let account = turn(&toy, &wish, &log, Permit::Create);
    let TurnEnd::Unknown(error) = account.end else { panic!("{account:?}") };
    assert_eq!(error.message(), "several load balancers are called k8s-service-u-1: id-1, id-2", "L3-2");
}

#[test]
fn a_contested_address_is_refused_and_the_rest_goes_on() {
    let (toy, log) = (Six::empty(), ServiceLog::default());
    let wish = annotated(want(&[80], &["a"]), "toy/floating-ip", "192.0.2.9");
    let key = toy.lock_keys(&wish.service, "kubernetes").remove(1);
    let rival = Rival { service: ObjectKey::new("default", "other"), key };
    assert_eq!(converge(&toy, &contested(wish.clone(), rival.clone()), &log), TurnEnd::Converged);
    assert!(!toy.describe().join(" ").contains("192.0.2.9"));
    let account = turn(&toy, &contested(wish.clone(), rival), &log, Permit::NoCreate);
    assert!(account.refused[0].message.contains("assigned to another service: default/other"), "L8-7");
    converge(&toy, &wish, &log);
    assert!(toy.describe().join(" ").contains("192.0.2.9"), "it is assigned once the rival is gone");
}

#[test]
fn the_object_safe_side_hands_everything_through() {
    let toy = script(vec![rests()], vec![]);
    let behind: &dyn LoadBalancers = &toy;
    assert_eq!(behind.profile().settle_time, Duration::from_secs(7));
    assert_eq!(behind.read(&want(&[], &[]).service, "c1").keys, [LockKey::new(LockKind::Name, "c1/web")]);
    assert!(std::ptr::eq(behind.profile().annotations, no_annotations()));
    assert_eq!(Goal::Present, want(&[], &[]).goal);
}

#[test]
fn impacts_are_ordered_and_have_words() {
    let all = [Impact::None, Impact::Minimal, Impact::Considerable, Impact::Major];
    assert!(all.is_sorted());
    assert_eq!(all.map(|i| i.to_string()), ["none", "minimal", "considerable", "major"]);
}

#[test]
fn steps_are_reported_with_their_outcome() {
    let toy = script(vec![act(vec![change(1), change(2)]), rests()], vec![Outcome::Done(1), failed()]);
    let survey = LoadBalancers::survey(&toy, &no_fleet()).unwrap();
    let log = ServiceLog::default();
    let _ = now(toy.turn(&call(), &survey, &want(&[80], &[]), Permit::NoCreate, &log));
    let heard: Vec<_> =
        log.steps.lock().unwrap().iter().map(|s| (s.label.clone(), s.impact, s.result.is_ok())).collect();
    assert_eq!(
        heard,
        [("change 1".into(), Impact::Minimal, true), ("change 2".into(), Impact::Minimal, false)]
    );
}

#[test]
fn what_is_not_this_services_is_not_touched_whatever_the_plan_says() {
    let stranger = Identity { id: "7".to_owned(), name: "prod".to_owned(), ..Identity::default() };
    let found = |found: Option<Identity>, decision: Decision<u32>| {
        let mut toy = script(vec![decision, rests()], vec![]);
        toy.found = found;
        toy
    };
    let present = want(&[80], &[]);
    for (want, rest) in [(present.clone(), TurnEnd::Refused), (gone(present.clone()), TurnEnd::Converged)] {
        let toy = found(Some(stranger.clone()), act(vec![change(1)]));
        let account = run(&toy, &want, Permit::Create);
        assert_eq!((account.end, sent(&toy)), (rest.clone(), vec![]), "L3-316");
        assert_eq!(account.refused.len(), 1, "L3-316 and it is said why");
        let survey = LoadBalancers::survey(&toy, &no_fleet()).unwrap();
        let dry = now(toy.turn(&call(), &survey, &want, Permit::Create, &Dry::default()));
        assert_eq!((dry.done, dry.end, dry.refused.len()), (vec![], rest, 1), "L3-317");
        assert_eq!(now(toy.owner(&call(), &survey, &want)), Lookup::Present(Ownership::NotProven));
    }
    let own = Identity { name: toy_name(&present), ..stranger };
    let toy = found(Some(own), act(vec![change(1)]));
    assert_eq!((run(&toy, &present, Permit::Create).end, sent(&toy)), (TurnEnd::Converged, vec![1]));
    let nothing = found(None, rests());
    let survey = LoadBalancers::survey(&nothing, &no_fleet()).unwrap();
    assert_eq!(now(nothing.owner(&call(), &survey, &present)), Lookup::Absent);
}

fn toy_name(want: &Desired) -> String {
    script(vec![], vec![]).name_for(&want.service, &want.cluster).text
}

#[test]
fn nothing_is_created_under_another_name_than_the_recorded_one() {
    let present = want(&[80], &[]);
    let name = toy_name(&present);
    for (intent, sent_, rest) in [
        (format!("2026-03-02T04:05:00Z {name}"), vec![1], TurnEnd::Converged),
        ("2026-03-02T04:05:00Z another".to_owned(), vec![], TurnEnd::NeedsIntent),
        ("2026-03-02T04:05:00Z".to_owned(), vec![1], TurnEnd::Converged),
    ] {
        let toy = script(vec![act(vec![create(1)]), rests()], vec![]);
        let wish = annotated(present.clone(), INTENT_ANNOTATION, &intent);
        let account = run(&toy, &wish, Permit::Create);
        assert_eq!((account.end, sent(&toy)), (rest, sent_), "L6-308 {intent}");
    }
}

#[test]
fn the_framework_claims_what_was_intended_and_what_is_published() {
    let toy = script(vec![], vec![]);
    let mut service = annotated(want(&[80], &[]), INTENT_ANNOTATION, "2026-03-02T04:05:00Z old").service;
    let of = |service: &ServiceView| -> Vec<String> {
        toy.read(service, "c").keys.iter().map(|claim| format!("{:?} {}", claim.kind, claim.value)).collect()
    };
    assert_eq!(of(&service).last().unwrap(), "Name old", "L6-309");
    let shown = Ingress { ip: Some("2001:DB8::0001".to_owned()), ..Ingress::default() };
    Arc::make_mut(&mut service).ingress = vec![shown, Ingress::default()];
    assert_eq!(of(&service).last().unwrap(), "Published 2001:db8::1", "L3-318");
}
