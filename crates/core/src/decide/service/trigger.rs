//! Which watch events put a Service into the queue, and what a vanished Service leaves behind.

use crate::{
    decide::service::{
        PROVIDER_ANNOTATION,
        assignments::{Assignment, Assignments},
        change::{Change, Written, needs_update},
        need::{has_finalizer, needs_cleanup, wants},
    },
    lb::INTENT_ANNOTATION,
    view::ServiceView,
};

/// A watch event about a Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchEvent<'a> {
    /// It is there, and was not known before.
    Added(&'a ServiceView),
    /// It was known; perhaps nothing changed.
    Updated {
        /// As it was known.
        old: &'a ServiceView,
        /// As it is.
        new: &'a ServiceView,
    },
}

/// Why a Service is put into the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// It is new to us.
    Appeared,
    /// Something changed.
    Changed(Change),
    /// Its load balancer has to go.
    Cleanup,
    /// It cannot be told who it belongs to.
    Doubt,
}

/// Whether a watch event is work. `now` is what the Service is to us by now.
///
/// A resync of a Service that is as it should be is none; one that needs cleaning up is, every time, so that the
/// cleanup does not hang on a single event.
#[must_use]
pub fn trigger(
    assignments: &Assignments,
    event: WatchEvent<'_>,
    now: &Assignment<'_>,
    written: &Written,
) -> Option<Trigger> {
    let (old, new) = match event {
        WatchEvent::Added(new) => (None, new),
        WatchEvent::Updated { old, new } => (Some(old), new),
    };
    let old = old.map(|old| (old, assignments.of(old)));
    let change = old.as_ref().and_then(|(old, before)| needs_update((old, before), (new, now), written));
    if let Some(change) = change {
        Some(Trigger::Changed(change))
    } else if needs_cleanup(new, now) {
        Some(Trigger::Cleanup)
    } else if old.is_none() && wants(new, now) {
        Some(Trigger::Appeared)
    } else {
        let news = old.is_none_or(|(_, before)| before.doubt != now.doubt);
        (now.doubt.is_some() && news).then_some(Trigger::Doubt)
    }
}

/// Whether a load balancer may still stand for a Service that nothing holds any more, and with whom.
///
/// What we let go of ourselves has lost these traces in the same write as the finalizer.
#[must_use]
pub fn traces<'a>(service: &ServiceView, assignment: &Assignment<'a>) -> Option<&'a str> {
    let has = |key| service.annotations.contains_key(key);
    let published = wants(service, assignment) && !service.ingress.is_empty();
    assignment.holder.filter(|_| has(PROVIDER_ANNOTATION) || has(INTENT_ANNOTATION) || published)
}

/// Whether a Service that is gone from Kubernetes left a load balancer behind, and with whom.
///
/// It is reported and never deleted: a Service that is no longer there cannot say what it wants (law 5). `released`
/// says that we ourselves took the finalizer off this very object; the last version that a watch shows may be the one
/// before that.
#[must_use]
pub fn orphaned<'a>(assignments: &'a Assignments, last: &ServiceView, released: bool) -> Option<&'a str> {
    let assignment = assignments.of(last);
    let holder = assignment.holder.filter(|_| has_finalizer(last) && !assignment.unproven);
    if released { None } else { holder.or_else(|| traces(last, &assignment)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        decide::service::{
            FINALIZER,
            testing::{CLOUD, MARK, annotated, assignments, classy, service, typed},
        },
        view::{Ingress, ServiceType},
    };

    fn held(mut view: ServiceView) -> ServiceView {
        view.finalizers = vec![FINALIZER.to_owned()];
        view
    }

    fn published(mut view: ServiceView) -> ServiceView {
        view.ingress = vec![Ingress { ip: Some("192.0.2.1".to_owned()), ..Ingress::default() }];
        view
    }

    fn deleting(mut view: ServiceView) -> ServiceView {
        view.deleting = true;
        view
    }

    fn lost() -> ServiceView {
        annotated(service(), PROVIDER_ANNOTATION, "gamma")
    }

    #[test]
    fn what_is_work_and_what_is_not() {
        let cluster_ip = || typed(ServiceType::ClusterIp);
        let renamed = annotated(service(), "note", "1");
        let annotated_and_going = held(deleting(annotated(service(), "note", "1")));
        let table = [
            ("a new Service that wants a load balancer", None, service(), Some(Trigger::Appeared)),
            ("one of our own at start-up", None, held(published(service())), Some(Trigger::Appeared)),
            ("FW-174 a new ClusterIP without the finalizer", None, cluster_ip(), None),
            ("FW-175 a new ClusterIP with the finalizer", None, held(cluster_ip()), Some(Trigger::Cleanup)),
            ("L3-111 a new Service of another class", None, classy("example.net/other"), None),
            ("a new Service whose owner is unclear", None, lost(), Some(Trigger::Doubt)),
            ("FW-172 resync of a healthy one", Some(held(service())), held(service()), None),
            (
                "FW-173 resync of one that needs cleaning up",
                Some(held(cluster_ip())),
                held(cluster_ip()),
                Some(Trigger::Cleanup),
            ),
            ("deletion begins", Some(held(service())), held(deleting(service())), Some(Trigger::Cleanup)),
            (
                "an edit",
                Some(service()),
                renamed,
                Some(Trigger::Changed(Change::Annotation("note".to_owned()))),
            ),
            (
                "a change is named before the cleanup",
                Some(held(service())),
                annotated_and_going,
                Some(Trigger::Changed(Change::Annotation("note".to_owned()))),
            ),
            ("resync of one whose owner is unclear", Some(lost()), lost(), None),
            ("the owner becomes unclear", Some(cluster_ip()), lost(), Some(Trigger::Doubt)),
        ];
        let assignments = assignments();
        for (case, old, new, want) in table {
            let event =
                old.as_ref().map_or(WatchEvent::Added(&new), |old| WatchEvent::Updated { old, new: &new });
            assert_eq!(trigger(&assignments, event, &assignments.of(&new), &Written::new()), want, "{case}");
        }
    }

    #[test]
    fn our_own_writes_wake_nobody() {
        let written: Written = [("cloud.example/id".to_owned(), Some("7".to_owned()))].into();
        let new = held(published(annotated(service(), "cloud.example/id", "7")));
        let event = WatchEvent::Updated { old: &service(), new: &new };
        let assignments = assignments();
        let why = |written| trigger(&assignments, event, &assignments.of(&new), written);
        assert_eq!(why(&written), None, "L4-105");
        assert!(why(&Written::new()).is_some());
    }

    #[test]
    fn a_vanished_service_is_reported_if_it_may_leave_something() {
        let intent = |view| annotated(view, INTENT_ANNOTATION, "2026-03-02T04:05:00Z");
        let record = |view| annotated(view, PROVIDER_ANNOTATION, CLOUD);
        let foreign = || classy("example.net/other");
        let table = [
            ("FW-164 nobody ever worked on it", service(), false, None),
            ("L5-107 the finalizer was stripped", held(service()), false, Some(CLOUD)),
            ("L5-108 stripped, an address is published", published(service()), false, Some(CLOUD)),
            ("L5-109 stripped while it was being created", intent(service()), false, Some(CLOUD)),
            ("L5-110 stripped, the provider is recorded", record(service()), false, Some(CLOUD)),
            ("stripped after the type changed", record(typed(ServiceType::ClusterIp)), false, Some(CLOUD)),
            ("we let go of it ourselves", held(record(published(service()))), true, None),
            ("a ClusterIP with an address of whoever", published(typed(ServiceType::ClusterIp)), false, None),
            ("L3-112 another class", held(published(foreign())), false, None),
            ("L3-314 another class and an id", held(annotated(foreign(), MARK, "7")), false, None),
        ];
        let assignments = assignments();
        for (case, last, released, want) in table {
            assert_eq!(orphaned(&assignments, &last, released), want, "{case}");
        }
    }
}
