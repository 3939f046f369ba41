//! The fake cloud, as the checks that hold for every cloud want it.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use cloudberth_core::{Category, Clock, Provider, Random, ServiceView};
use cloudberth_fake::{BALANCER_ID, BALANCER_NAME, Cloud, FakeProvider, Fault, Request, SimSettings};
use sim_kit::Harm;
use testing_kit::{PROGRAM, checks::CloudUnderTest, seeded::FaultPlan};

/// Clones are the same cloud.
#[derive(Clone)]
pub(crate) struct Fake {
    pub(crate) cloud: Cloud,
    pub(crate) faults: Arc<Mutex<Faults>>,
}

/// What goes wrong with the next requests.
#[derive(Default)]
pub(crate) struct Faults {
    instance_addresses: bool,
    balancer_addresses: bool,
    /// The next request of this operation.
    next: Option<(&'static str, Fault)>,
    /// What a test has planned for all requests.
    pub(crate) plan: Option<FaultPlan>,
}

/// What this cloud can do that comes nearest to a harm.
fn fault(harm: &Harm) -> Fault {
    match *harm {
        Harm::Latency { millis } | Harm::Stall { millis } => Fault::Stall(Duration::from_millis(millis)),
        Harm::Status { code: 401 | 403, .. } => Fault::Refuse(Category::Unauthorised),
        Harm::Status { code: 429, retry_after } => {
            let retry_after = retry_after.map(|seconds| Duration::from_secs(seconds.into()));
            Fault::Refuse(Category::Throttled { retry_after })
        }
        Harm::Status { .. } => Fault::Refuse(Category::Temporary),
        Harm::LostCall => Fault::RequestLost,
        Harm::LostAnswer | Harm::Truncated => Fault::AnswerLost,
        Harm::ShortList => Fault::ShortPage,
        _ => Fault::Deny,
    }
}

impl Faults {
    fn of(&mut self, request: &Request) -> Option<Fault> {
        if let Some((_, fault)) = self.next.take_if(|(operation, _)| *operation == request.operation) {
            return Some(fault);
        }
        let seen = sim_kit::Request {
            number: request.number,
            who: PROGRAM.to_owned(),
            operation: request.operation.to_owned(),
            method: String::new(),
            path: String::new(),
            mutation: request.write,
        };
        if let Some(harm) = self.plan.as_mut().and_then(|plan| plan(&seen)) {
            return Some(fault(&harm));
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
