//! Does a Service want a load balancer, and does it need cleaning up?

use crate::{
    decide::service::{FINALIZER, assignments::Assignment},
    view::{ServiceType, ServiceView},
};

/// Whether the Service wants a load balancer from one of our providers.
#[must_use]
pub fn wants(service: &ServiceView, assignment: &Assignment<'_>) -> bool {
    service.service_type == ServiceType::LoadBalancer && assignment.server.is_some()
}

/// Whether the Service carries [`FINALIZER`].
#[must_use]
pub fn has_finalizer(service: &ServiceView) -> bool {
    service.finalizers.iter().any(|name| name == FINALIZER)
}

/// Whether the load balancer of the Service has to go.
///
/// Only where one of our providers holds something for it, or is suspected to, and only on a positive word: the Service
/// is being deleted, is of another type now, or is served by somebody else now. A type that we do not know is no such
/// word (law 5).
#[must_use]
pub fn needs_cleanup(service: &ServiceView, assignment: &Assignment<'_>) -> bool {
    let unwanted = match service.service_type {
        ServiceType::LoadBalancer => assignment.server != assignment.holder,
        ServiceType::ClusterIp | ServiceType::NodePort | ServiceType::ExternalName => true,
        ServiceType::Other(_) => false,
    };
    assignment.holder.is_some() && has_finalizer(service) && (service.deleting || unwanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::service::testing::{
        CLASS, CLOUD, MARK, annotated, assignments, classy, service, typed,
    };

    fn held(mut view: ServiceView) -> ServiceView {
        view.finalizers = vec!["other".to_owned(), FINALIZER.to_owned()];
        view
    }

    fn deleting(mut view: ServiceView) -> ServiceView {
        view.deleting = true;
        view
    }

    #[test]
    fn only_a_load_balancer_of_our_class_is_wanted() {
        let table = [
            ("FW-146 no class", service(), true),
            ("our class", classy(CLASS), true),
            ("FW-147 another class", classy("example.net/other"), false),
            ("FW-145 ClusterIP", typed(ServiceType::ClusterIp), false),
            ("NodePort", typed(ServiceType::NodePort), false),
            ("a type that we do not know", typed(ServiceType::Other("New".to_owned())), false),
        ];
        let assignments = assignments();
        for (case, view, want) in table {
            assert_eq!(wants(&view, &assignments.of(&view)), want, "{case}");
        }
    }

    #[test]
    fn the_finalizer_is_found_among_others() {
        let table = [
            ("FW-201 none", vec![], false),
            ("FW-201 only unrelated ones", vec!["a", "service.kubernetes.io/load-balancer"], false),
            ("FW-202 alone", vec![FINALIZER], true),
            ("FW-202 among others", vec!["a", FINALIZER, "b"], true),
        ];
        for (case, names, want) in table {
            let mut view = service();
            view.finalizers = names.into_iter().map(str::to_owned).collect();
            assert_eq!(has_finalizer(&view), want, "{case}");
        }
    }

    #[test]
    fn cleanup_needs_the_finalizer_a_holder_and_a_reason() {
        let other = || classy("example.net/other");
        let table = [
            ("FW-168 no finalizer", deleting(typed(ServiceType::NodePort)), false),
            ("FW-169 finalizer, NodePort", held(typed(ServiceType::NodePort)), true),
            ("finalizer, ClusterIP", held(typed(ServiceType::ClusterIp)), true),
            ("finalizer, ExternalName", held(typed(ServiceType::ExternalName)), true),
            ("FW-170 finalizer, LoadBalancer", held(service()), false),
            ("FW-171 finalizer, being deleted", held(deleting(service())), true),
            ("L5-106 a type that we do not know", held(typed(ServiceType::Other("New".into()))), false),
            ("the same, being deleted", held(deleting(typed(ServiceType::Other("New".into())))), true),
            ("L3-109 another class, nothing of ours, being deleted", held(deleting(other())), false),
            ("L3-110 another class, nothing of ours", held(other()), false),
            (
                "another class, a suspicious id, being deleted",
                held(deleting(annotated(other(), MARK, "7"))),
                true,
            ),
            ("FW-194 another class and a suspicious id", held(annotated(other(), MARK, "7")), true),
            ("our class", held(classy(CLASS)), false),
        ];
        let assignments = assignments();
        for (case, view, want) in table {
            assert_eq!(needs_cleanup(&view, &assignments.of(&view)), want, "{case}");
        }
    }

    #[test]
    fn a_service_that_moves_is_cleaned_up_where_it_was() {
        let assignment = Assignment { server: Some("new"), holder: Some(CLOUD), ..Assignment::default() };
        assert!(needs_cleanup(&held(service()), &assignment));
        assert!(!needs_cleanup(&service(), &assignment), "not without the finalizer");
    }
}
