//! Which Services lack the present set of nodes.
//!
//! The set is recorded when a Service is handed to the loop, before the outcome is known: a failed pass comes back through
//! the queue by itself, and a second pass over all Services must not double it. The real members are always read from the
//! cloud, so a wrong record costs one pass and nothing else.

use std::collections::BTreeMap;

use crate::{lb::Backend, view::ObjectKey};

/// A set of nodes as far as load balancers care: by name, the provider id and whether pods of the Service are there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fleet(BTreeMap<String, (Option<String>, Option<bool>)>);

impl Fleet {
    /// The set of these nodes, in whatever order.
    pub fn of(backends: &[Backend]) -> Self {
        let facts = |backend: &Backend| (backend.node.provider_id.clone(), backend.local_endpoint);
        Self(backends.iter().map(|backend| (backend.node.name.clone(), facts(backend))).collect())
    }
}

/// The sets that Services were given last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Synced(BTreeMap<ObjectKey, Fleet>);

impl Synced {
    /// Notes the set that a Service is given now.
    pub fn note(&mut self, service: &ObjectKey, fleet: Fleet) {
        self.0.insert(service.clone(), fleet);
    }

    /// Forgets a Service that is gone or wants no load balancer any more.
    pub fn forget(&mut self, service: &ObjectKey) {
        self.0.remove(service);
    }

    /// The Services that have to be worked on because of their nodes, in the order given; their sets are noted.
    ///
    /// `wanting` are the Services that want a load balancer, each with the nodes that it should have by now.
    pub fn lacking(&mut self, wanting: impl IntoIterator<Item = (ObjectKey, Fleet)>) -> Vec<ObjectKey> {
        let mut out = Vec::new();
        for (service, fleet) in wanting {
            if self.0.get(&service) != Some(&fleet) {
                self.note(&service, fleet);
                out.push(service);
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        decide::{
            nodeset::{
                eligible::members,
                fixture::{edited, excluded, node, taint, tainted},
            },
            service::{
                assignments::{Assignments, Candidate},
                need::wants,
            },
        },
        view::{ExternalTrafficPolicy, NodeView, Ready, ServiceType, ServiceView},
    };

    fn service(name: &str, service_type: ServiceType) -> ServiceView {
        ServiceView { name: name.to_owned(), service_type, ..ServiceView::default() }
    }

    fn balanced(names: &[&str]) -> Vec<ServiceView> {
        names.iter().map(|name| service(name, ServiceType::LoadBalancer)).collect()
    }

    fn fleet(nodes: impl IntoIterator<Item = Arc<NodeView>>) -> Fleet {
        let backends = nodes.into_iter().map(|node| Backend { node, local_endpoint: None });
        Fleet::of(&backends.collect::<Vec<_>>())
    }

    /// The names of the Services that a pass over all of them works on.
    fn pass(synced: &mut Synced, services: &[ServiceView], nodes: &[NodeView]) -> Vec<String> {
        let candidate = Candidate { name: "cloud".to_owned(), ..Candidate::default() };
        let assignments = Assignments::new(vec![candidate], Some("cloud".to_owned())).unwrap();
        let nodes: Vec<_> = nodes.iter().cloned().map(Arc::new).collect();
        let fleet = fleet(members(&nodes, |_| true, None));
        let wanting = services.iter().filter(|s| wants(s, &assignments.of(s)));
        let lacking = synced.lacking(wanting.map(|s| (s.key(), fleet.clone())));
        lacking.into_iter().map(|key| key.name).collect()
    }

    #[test]
    fn every_service_that_wants_a_load_balancer_is_worked_on() {
        use ServiceType::{ClusterIp, LoadBalancer, NodePort};
        let plain = vec![service("c", ClusterIp), service("n", NodePort)];
        let mixed = vec![
            service("c", ClusterIp),
            service("a", LoadBalancer),
            service("n", NodePort),
            service("b", LoadBalancer),
        ];
        let table = [
            ("FW-207 no services", vec![], vec![]),
            ("FW-207 only ClusterIP and NodePort", plain, vec![]),
            ("FW-208 one", balanced(&["a"]), vec!["a"]),
            ("FW-209 three", balanced(&["a", "b", "c"]), vec!["a", "b", "c"]),
            ("FW-210 two among four", mixed, vec!["a", "b"]),
        ];
        for (case, services, want) in table {
            assert_eq!(pass(&mut Synced::default(), &services, &[node("n1"), node("n2")]), want, "{case}");
        }
    }

    #[test]
    fn a_second_pass_works_on_those_whose_nodes_differ() {
        let anonymous = |name: &str| NodeView { provider_id: None, ..node(name) };
        let (n1, n2) = (|| node("n1"), || node("n2"));
        let table = [
            ("FW-213 no change", vec![n1(), n2()], vec![n1(), n2()], false),
            ("another order", vec![n1(), n2()], vec![n2(), n1()], false),
            ("FW-214 a node comes", vec![n1()], vec![n1(), n2()], true),
            ("FW-216 not Ready", vec![n1()], vec![edited(|n| n.ready = Ready::False)], false),
            ("FW-216 Ready again", vec![edited(|n| n.ready = Ready::False)], vec![n1()], false),
            ("FW-217 the autoscaler removes it", vec![n1(), n2()], vec![n1(), tainted(n2())], true),
            ("FW-218 excluded", vec![n1(), n2()], vec![n1(), excluded(n2())], true),
            ("FW-219 a node goes", vec![n1(), n2()], vec![n1()], true),
            ("FW-220 being deleted", vec![n1()], vec![edited(|n| n.deleting = true)], true),
            ("FW-221 an unrelated taint", vec![n1()], vec![edited(|n| n.taints.push(taint("x")))], false),
            ("FW-223 ids appear", vec![anonymous("n1")], vec![n1()], true),
            ("FW-224 one without an id", vec![anonymous("n1"), n2()], vec![anonymous("n1"), n2()], false),
            ("FW-225 one without an id for another", vec![anonymous("n1")], vec![anonymous("n2")], true),
        ];
        let mut services = balanced(&["a", "b"]);
        services[1].external_traffic_policy = ExternalTrafficPolicy::Local;
        for (case, before, after, touched) in table {
            let mut synced = Synced::default();
            pass(&mut synced, &services, &before);
            let want: &[&str] = if touched { &["a", "b"] } else { &[] };
            assert_eq!(pass(&mut synced, &services, &after), want, "{case}");
        }
    }

    #[test]
    fn a_failed_pass_is_not_doubled_by_the_next_one() {
        let (mut synced, services) = (Synced::default(), balanced(&["a", "b"]));
        assert_eq!(pass(&mut synced, &services, &[node("n1")]), ["a", "b"]);
        assert_eq!(pass(&mut synced, &services, &[node("n1")]), [""; 0], "FW-215");
    }

    #[test]
    fn a_service_that_got_its_nodes_meanwhile_is_left_in_peace() {
        let (mut synced, services) = (Synced::default(), balanced(&["a", "b"]));
        pass(&mut synced, &services, &[node("n1")]);
        let newer = [node("n1"), node("n2")].map(Arc::new);
        synced.note(&services[1].key(), fleet(newer));
        assert_eq!(pass(&mut synced, &services, &[node("n1"), node("n2")]), ["a"], "FW-230");
    }

    #[test]
    fn pods_that_move_make_another_set() {
        let with = |local_endpoint| Fleet::of(&[Backend { node: Arc::new(node("n1")), local_endpoint }]);
        let (mut synced, key) = (Synced::default(), ObjectKey::new("default", "a"));
        let steps = [(Some(false), true), (Some(false), false), (Some(true), true), (None, true)];
        for (local, lacks) in steps {
            let lacking = synced.lacking([(key.clone(), with(local))]);
            assert_eq!(!lacking.is_empty(), lacks, "BL-102 {local:?}");
        }
    }

    #[test]
    fn a_forgotten_service_starts_anew() {
        let (mut synced, services) = (Synced::default(), balanced(&["a", "b"]));
        pass(&mut synced, &services, &[]);
        synced.forget(&services[0].key());
        assert_eq!(pass(&mut synced, &services, &[]), ["a"]);
    }
}
