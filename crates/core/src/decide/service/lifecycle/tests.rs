use super::*;
use crate::{
    decide::service::{
        FINALIZER, PROVIDER_ANNOTATION,
        assignments::{Assignments, Candidate},
        testing::{CLASS, CLOUD, MARK, annotated, assignments, classy, service, typed},
    },
    lb::INTENT_ANNOTATION,
    view::{Ingress, ServicePort, ServiceProtocol, ServiceType},
};

const FREE: Intent = Intent::Free;
const POLL: Duration = Duration::from_secs(30);
const PENDING: Intent = Intent::Pending(POLL);

fn held(mut view: ServiceView) -> ServiceView {
    view.finalizers = vec![FINALIZER.to_owned()];
    view
}

fn deleting(mut view: ServiceView) -> ServiceView {
    view.deleting = true;
    view
}

fn shown(mut view: ServiceView) -> ServiceView {
    view.ingress = vec![Ingress { ip: Some("192.0.2.1".to_owned()), ..Ingress::default() }];
    view
}

fn protocol(protocol: ServiceProtocol) -> ServiceView {
    ServiceView { ports: vec![ServicePort { port: 80, protocol, ..ServicePort::default() }], ..service() }
}

#[test]
fn how_a_pass_begins() {
    let prepare = Opening::Prepare { provider: CLOUD, intent: true };
    let finalizer_only = Opening::Prepare { provider: CLOUD, intent: false };
    let ensure = Opening::Ensure { provider: CLOUD };
    let cleanup = Opening::Cleanup { provider: CLOUD };
    let if_proven = Opening::CleanupIfProven { provider: CLOUD };
    let orphan = Opening::Orphan { provider: CLOUD };
    let cluster_ip = || typed(ServiceType::ClusterIp);
    let foreign = || classy("example.net/other");
    let unknown_type = || typed(ServiceType::Other("New".to_owned()));
    let recorded = |view| annotated(view, PROVIDER_ANNOTATION, CLOUD);
    let intended = |view| annotated(view, INTENT_ANNOTATION, "2026-03-02T04:05:00Z");
    let table = [
        ("FW-145 ClusterIP", cluster_ip(), FREE, Opening::Nothing),
        ("FW-146 TCP", protocol(ServiceProtocol::Tcp), FREE, prepare.clone()),
        ("FW-146 UDP", protocol(ServiceProtocol::Udp), FREE, prepare.clone()),
        ("FW-146 SCTP", protocol(ServiceProtocol::Sctp), FREE, prepare.clone()),
        ("our class", classy(CLASS), FREE, prepare.clone()),
        ("FW-147 another class", foreign(), FREE, Opening::LeaveAlone),
        ("FW-148 ClusterIP, finalizer, ingress", held(shown(cluster_ip())), FREE, cleanup.clone()),
        ("FW-149 being deleted, finalizer, ingress", held(shown(deleting(service()))), FREE, cleanup.clone()),
        ("FW-150 the finalizer is there", held(service()), FREE, ensure.clone()),
        ("L6-106 an intent pends", held(service()), PENDING, ensure.clone()),
        ("L6-107 stripped while it was being created: not renewed", service(), PENDING, finalizer_only),
        ("L6-109 no finalizer on what is being deleted", deleting(service()), FREE, Opening::Nothing),
        ("L5-111 being deleted, stripped, published", deleting(shown(service())), FREE, orphan.clone()),
        ("L5-112 being deleted, stripped, recorded", deleting(recorded(service())), FREE, orphan.clone()),
        ("L5-113 being deleted, stripped, intended", deleting(intended(service())), PENDING, orphan.clone()),
        ("L5-114 of another type, stripped, recorded", recorded(cluster_ip()), FREE, orphan),
        (
            "held by another finalizer after we let go",
            deleting(annotated(service(), MARK, "7")),
            FREE,
            Opening::Nothing,
        ),
        ("L5-115 a type that we do not know", held(shown(unknown_type())), FREE, Opening::Nothing),
        ("a type that we do not know, being deleted", held(deleting(unknown_type())), FREE, cleanup.clone()),
        (
            "L3-114 another class, its finalizer, being deleted",
            held(deleting(foreign())),
            FREE,
            Opening::LeaveAlone,
        ),
        ("L3-115 another class and its address", shown(foreign()), FREE, Opening::LeaveAlone),
        (
            "FW-194 another class, and an id that may be copied",
            held(annotated(foreign(), MARK, "7")),
            FREE,
            if_proven,
        ),
        ("another class, and our record", held(recorded(foreign())), FREE, cleanup),
        (
            "L3-116 our id beside another class, nothing held",
            annotated(foreign(), MARK, "7"),
            FREE,
            Opening::Nothing,
        ),
    ];
    let assignments = assignments();
    for (case, view, intent, want) in table {
        assert_eq!(open(&view, &assignments.of(&view), intent), want, "{case}");
    }
}

#[test]
fn a_service_moves_by_going_first() {
    let candidate = |name: &str| Candidate {
        name: name.to_owned(),
        classes: [name.to_owned()].into(),
        ..Candidate::default()
    };
    let assignments = Assignments::new(vec![candidate("alpha"), candidate("beta")], None).unwrap();
    let moved = annotated(classy("beta"), PROVIDER_ANNOTATION, "alpha");
    let cleanup = Opening::Cleanup { provider: "alpha" };
    let opening = |view: &ServiceView| open(view, &assignments.of(view), FREE);
    assert_eq!(opening(&held(moved.clone())), cleanup);
    assert_eq!(opening(&moved), cleanup, "even if the finalizer was taken away");
    assert_eq!(opening(&classy("beta")), Opening::Prepare { provider: "beta", intent: true });
    let lost = annotated(held(classy("beta")), PROVIDER_ANNOTATION, "gamma");
    assert!(matches!(opening(&lost), Opening::Doubt(_)));
}

#[test]
fn the_turn_that_follows() {
    let table = [
        (Opening::Prepare { provider: CLOUD, intent: true }, Some((CLOUD, Goal::Present, Permit::Create))),
        (Opening::Prepare { provider: CLOUD, intent: false }, Some((CLOUD, Goal::Present, Permit::NoCreate))),
        (Opening::Ensure { provider: CLOUD }, Some((CLOUD, Goal::Present, Permit::NoCreate))),
        (Opening::Cleanup { provider: CLOUD }, Some((CLOUD, Goal::Gone, Permit::NoCreate))),
        (Opening::CleanupIfProven { provider: CLOUD }, Some((CLOUD, Goal::Gone, Permit::NoCreate))),
        (Opening::Orphan { provider: CLOUD }, None),
        (
            Opening::Prepare { provider: CLOUD, intent: true }.look_first(),
            Some((CLOUD, Goal::Present, Permit::NoCreate)),
        ),
        (Opening::Cleanup { provider: CLOUD }.look_first(), Some((CLOUD, Goal::Gone, Permit::NoCreate))),
        (Opening::Nothing, None),
        (Opening::LeaveAlone, None),
    ];
    for (opening, want) in table {
        assert_eq!(opening.turn(), want, "{opening:?}");
    }
}

#[test]
fn a_service_is_new_while_nothing_tells_of_a_load_balancer() {
    let (prepare, ensure) =
        (Opening::Prepare { provider: CLOUD, intent: true }, Opening::Ensure { provider: CLOUD });
    let (name, id) = (LockKey::new(LockKind::Name, "web"), LockKey::new(LockKind::Id, "7"));
    let table = [
        ("L8-1504 new", service(), &prepare, vec![name.clone()], true),
        ("it has the finalizer", held(service()), &ensure, vec![name.clone()], false),
        ("L8-1505 an id is recorded", service(), &prepare, vec![name.clone(), id], false),
        ("L8-1505 an address is published", shown(service()), &prepare, vec![name.clone()], false),
        (
            "L8-1505 a creation may have been sent",
            annotated(service(), INTENT_ANNOTATION, "now"),
            &prepare,
            vec![name],
            false,
        ),
    ];
    let assignments = assignments();
    for (case, service, opening, keys, want) in table {
        assert_eq!(is_new(&service, &assignments.of(&service), opening, &keys), want, "{case}");
    }
}

fn ended(end: TurnEnd, creation: Creation) -> Turn {
    Turn { end, done: vec![], denied: false, creation, refused: vec![], notices: vec![] }
}

#[test]
fn how_a_pass_towards_presence_ends() {
    use Creation::{Known, Nothing, Unsure};
    use Permit::{Create, NoCreate};
    let poll = Duration::from_secs(5);
    let error = Error::temporary("503");
    let rest = |clear_intent| Closing::TurnEnd { clear_intent };
    let waiting = |clear_intent| Closing::Wait { poll, clear_intent };
    let retry = |clear_intent| Closing::Retry { error: error.clone(), clear_intent };
    let busy = || TurnEnd::Wait { on: "building".into(), poll };
    let failed = || TurnEnd::Failed(error.clone());
    let unknown = || TurnEnd::Unknown(error.clone());
    let hold = || Closing::Hold { poll: POLL };
    let table = [
        ("FW-160 all is well", NoCreate, ended(TurnEnd::Converged, Nothing), FREE, rest(true)),
        ("created, and its id recorded", Create, ended(TurnEnd::Converged, Known), PENDING, rest(true)),
        ("L6-110 it showed up after all", NoCreate, ended(TurnEnd::Converged, Nothing), PENDING, rest(true)),
        ("refused, nothing was sent", Create, ended(TurnEnd::Refused, Nothing), PENDING, rest(true)),
        (
            "L6-111 refused, an older one pends",
            NoCreate,
            ended(TurnEnd::Refused, Nothing),
            PENDING,
            rest(false),
        ),
        (
            "L6-130 refused, an older one is over",
            NoCreate,
            ended(TurnEnd::Refused, Nothing),
            FREE,
            rest(true),
        ),
        ("building, its id known", Create, ended(busy(), Known), PENDING, waiting(true)),
        ("waiting before anything was sent", Create, ended(busy(), Nothing), PENDING, waiting(true)),
        ("L6-112 waiting, an older one pends", NoCreate, ended(busy(), Nothing), PENDING, waiting(false)),
        ("L6-113 an answer was lost", Create, ended(unknown(), Unsure), PENDING, retry(false)),
        ("L6-114 lost, and then a wait", Create, ended(busy(), Unsure), PENDING, waiting(false)),
        ("L6-115 lost, and then rest", Create, ended(TurnEnd::Converged, Unsure), PENDING, rest(false)),
        ("L5-116 the cloud does not answer", Create, ended(unknown(), Nothing), PENDING, retry(false)),
        ("the creation was refused by the cloud", Create, ended(failed(), Nothing), PENDING, retry(true)),
        ("L6-116 created, perhaps not recorded", Create, ended(failed(), Known), PENDING, retry(false)),
        ("L6-117 a failure, an older one pends", NoCreate, ended(failed(), Nothing), PENDING, retry(false)),
        ("to be created", NoCreate, ended(TurnEnd::NeedsIntent, Nothing), FREE, Closing::RecordIntent),
        (
            "L6-118 to be created, an older one pends",
            NoCreate,
            ended(TurnEnd::NeedsIntent, Nothing),
            PENDING,
            hold(),
        ),
    ];
    for (case, permit, turn, intent, want) in table {
        assert_eq!(close(Goal::Present, permit, &turn, intent), want, "{case}");
    }
    let overtaken = |creation| close(Goal::Present, Create, &ended(TurnEnd::NeedsIntent, creation), PENDING);
    let again = |clear_intent| Closing::Wait { poll: AGAIN, clear_intent };
    assert_eq!(overtaken(Nothing), again(true), "L6-304 the name was edited after it was recorded");
    assert_eq!(overtaken(Known), again(false), "L6-305 the intent covers what was created before");
}

#[test]
fn how_a_pass_towards_absence_ends() {
    use Creation::Nothing;
    let poll = Duration::from_secs(5);
    let error = Error::temporary("503");
    let retry = || Closing::Retry { error: error.clone(), clear_intent: false };
    let table = [
        ("FW-148 FW-149 it is gone", TurnEnd::Converged, FREE, Closing::Release),
        ("FW-151 nobody knows whether it is there", TurnEnd::Unknown(error.clone()), FREE, retry()),
        ("FW-152 the deletion fails", TurnEnd::Failed(error.clone()), FREE, retry()),
        (
            "it is going",
            TurnEnd::Wait { on: "deleting".into(), poll },
            FREE,
            Closing::Wait { poll, clear_intent: false },
        ),
        (
            "L6-120 absent, but a creation may be on its way",
            TurnEnd::Converged,
            PENDING,
            Closing::Hold { poll: POLL },
        ),
    ];
    for (case, rest, intent, want) in table {
        assert_eq!(close(Goal::Gone, Permit::NoCreate, &ended(rest, Nothing), intent), want, "{case}");
    }
    for rest in [TurnEnd::NeedsIntent, TurnEnd::Refused] {
        let closing = close(Goal::Gone, Permit::NoCreate, &ended(rest, Nothing), FREE);
        assert!(matches!(closing, Closing::Retry { .. }), "L5-117 {closing:?}");
    }
}
