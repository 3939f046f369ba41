//! The checks that hold for every cloud.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use cloudberth_core::{Clock, Provider, Random, ServiceView};
use cloudberth_fake::{BALANCER_ID, BALANCER_NAME, Cloud, FakeProvider, Fault, Request, SimSettings};
use testing_kit::{PROGRAM, checks::CloudUnderTest};

/// Clones are the same cloud.
#[derive(Clone)]
struct Fake {
    cloud: Cloud,
    faults: Arc<Mutex<Faults>>,
}

/// What goes wrong with the next requests.
#[derive(Default)]
struct Faults {
    instance_addresses: bool,
    balancer_addresses: bool,
    /// The next request of this operation.
    next: Option<(&'static str, Fault)>,
}

impl Faults {
    fn of(&mut self, request: &Request) -> Option<Fault> {
        if let Some((_, fault)) = self.next.take_if(|(operation, _)| *operation == request.operation) {
            return Some(fault);
        }
        let omitted = match request.operation {
            "list instances" | "get instance" => self.instance_addresses,
            "list balancers" | "get balancer" => self.balancer_addresses,
            _ => false,
        };
        omitted.then_some(Fault::PartsMissing)
    }
}

impl CloudUnderTest for Fake {
    fn new(clock: &Arc<dyn Clock>) -> Self {
        let settings = SimSettings {
            latency: Duration::from_millis(20),
            build: Duration::from_secs(1),
            ..SimSettings::default()
        };
        let cloud = Cloud::new(Arc::clone(clock), Random::seeded(7), settings);
        let faults = Arc::new(Mutex::new(Faults::default()));
        let plan = Arc::clone(&faults);
        cloud.plan_faults(move |request| plan.lock().unwrap().of(request));
        Self { cloud, faults }
    }

    fn provider(&self, clock: &Arc<dyn Clock>) -> Arc<dyn Provider> {
        Arc::new(FakeProvider::new("fake", &self.cloud, PROGRAM, Arc::clone(clock)))
    }

    fn id_annotation(&self) -> &'static str {
        BALANCER_ID.name()
    }

    fn name_annotation(&self) -> Option<&'static str> {
        Some(BALANCER_NAME.name())
    }

    fn generated_name(&self, service: &ServiceView) -> String {
        format!("test-{}", service.uid)
    }

    fn add_instance(&self, name: &str) -> String {
        format!("fake://{}", self.cloud.add_instance(name, "north-1").id)
    }

    fn build_by_hand(&self, name: &str) -> String {
        self.cloud.inherit_balancer(name).unwrap().id
    }

    fn balancers(&self) -> Vec<String> {
        self.cloud.balancers().into_iter().map(|balancer| balancer.id).collect()
    }

    fn state_of(&self, id: &str) -> Option<String> {
        let all = self.cloud.balancers();
        all.iter().find(|balancer| balancer.id == id).map(|balancer| format!("{balancer:#?}"))
    }

    fn mutations(&self) -> usize {
        let calls = self.cloud.calls();
        calls.iter().filter(|call| call.write && call.outcome == "ok" && !call.elsewhere).count()
    }

    fn lose_next_creation(&self) {
        self.faults.lock().unwrap().next = Some(("create balancer", Fault::AnswerLost));
    }

    fn swap_credential_during_next_delete(&self) {
        self.faults.lock().unwrap().next = Some(("delete balancer", Fault::Swapped));
    }

    fn send_next_delete_elsewhere(&self) {
        self.faults.lock().unwrap().next = Some(("delete balancer", Fault::OtherAccount));
    }

    fn omit_instance_addresses(&self, omit: bool) {
        self.faults.lock().unwrap().instance_addresses = omit;
    }

    fn omit_balancer_addresses(&self, omit: bool) {
        self.faults.lock().unwrap().balancer_addresses = omit;
    }

    /// The fake cloud shows a load balancer whole or not at all, so the check that needs this is not run.
    fn garble_part_of(&self, _: &str, _: bool) {
        panic!("the fake cloud has no parts that are read by themselves");
    }
}

// Two checks are left out because they need `Balancers::marks`, which the fake cloud does not declare: several fake
// clouds run side by side in one cluster, and they share their annotations.
testing_kit::checks! { Fake;
    answers:
        instances_without_addresses_change_nothing,
        balancers_without_addresses_change_nothing,
        a_denial_to_another_credential_deletes_nothing,
        a_deletion_sent_to_another_account_deletes_nothing;
    ownership:
        a_given_name_is_no_proof_after_a_crash,
        a_copied_id_is_no_proof,
        a_restored_service_waits_for_a_word,
        a_service_of_another_class_is_invisible,
        a_lost_creation_is_found_after_its_name_was_edited;
    refusals:
        a_new_service_that_is_refused_is_not_touched;
}
