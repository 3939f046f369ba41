//! A load balancer that is one document: created, replaced and deleted whole. It takes a moment to become active,
//! and it is found by its name.

use std::{
    collections::BTreeSet,
    sync::{Mutex, MutexGuard, OnceLock},
    time::Duration,
};

use cloudberth_core::{
    Call, Lookup, ServiceView,
    annotation::Table,
    lb::{
        Balancers, Decision, Desired, Fleet, Goal, Identity, Impact, LockKey, LockKind, Name, Next, Notice,
        Outcome, Publish, Refusal, Severity, Step,
    },
    view::{Ingress, ServiceProtocol},
};

use crate::fixture::{Toy, Wire, no_annotations};

const REGION: &str = "toy/region";

cloudberth_core::reasons! {
    /// What only this cloud has to say.
    pub REASONS;

    UNSUPPORTED_SERVICE_PORT = Warning, Service, "UnsupportedServicePort",
        when: "A port is not TCP.",
        advice: "Use TCP.";
    REGION_IMMUTABLE = Warning, Service, "RegionImmutable",
        when: "The region of an existing load balancer was changed.",
        advice: "Set it back.";
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    name: String,
    ports: BTreeSet<i64>,
    servers: BTreeSet<String>,
    region: String,
}

#[derive(Clone, Debug)]
pub struct Document {
    id: String,
    active: bool,
    body: Body,
}

#[derive(Default)]
pub struct Documents {
    wire: Mutex<Wire>,
    stored: Mutex<Vec<Document>>,
}

#[derive(Clone, Debug)]
pub enum Action {
    Create(Body),
    Replace(String, Body),
    Delete(String),
}

impl Documents {
    fn stored(&self) -> MutexGuard<'_, Vec<Document>> {
        self.stored.lock().unwrap()
    }

    fn body(want: &Desired, region: &str) -> Body {
        Body {
            name: format!("k8s-{}-{}-{}", want.cluster, want.service.namespace, want.service.name),
            ports: want.service.ports.iter().map(|p| p.port).collect(),
            servers: want.backends.iter().filter_map(|b| b.node.provider_id.clone()).collect(),
            region: region.to_owned(),
        }
    }

    fn refusals(want: &Desired) -> Vec<Refusal> {
        let bad = want.service.ports.iter().filter(|p| p.protocol != ServiceProtocol::Tcp);
        bad.map(|p| Refusal {
            reason: UNSUPPORTED_SERVICE_PORT,
            field: "spec.ports[].protocol".into(),
            message: format!("{} {} cannot be forwarded; use TCP", p.protocol.as_str(), p.port),
        })
        .collect()
    }
}

impl Balancers for Documents {
    type Survey = OnceLock<Vec<Document>>;
    type Observed = Document;
    type Action = Action;
    type Answer = Option<Document>;

    fn annotations(&self) -> &Table {
        no_annotations()
    }

    fn settle_time(&self) -> Duration {
        Duration::from_secs(120)
    }

    fn name_for(&self, s: &ServiceView, cluster: &str) -> Name {
        Name { text: format!("k8s-{cluster}-{}-{}", s.namespace, s.name), generated: true }
    }

    fn identity(&self, seen: &Document) -> Option<Identity> {
        Some(Identity { id: seen.id.clone(), name: seen.body.name.clone(), ..Identity::default() })
    }

    fn lock_keys(&self, s: &ServiceView, cluster: &str) -> Vec<LockKey> {
        vec![LockKey::new(LockKind::Name, self.name_for(s, cluster).text)]
    }

    async fn observe(
        &self,
        _: &Call,
        _: &dyn Fleet,
        survey: &OnceLock<Vec<Document>>,
        want: &Desired,
    ) -> Lookup<Document> {
        let all = survey.get_or_init(|| self.stored().clone());
        let name = Self::body(want, "").name;
        all.iter().find(|d| d.body.name == name).cloned().map_or(Lookup::Absent, Lookup::Present)
    }

    fn decide(&self, want: &Desired, seen: Option<&Document>) -> Decision<Action> {
        let region = want.service.annotations.get(REGION).map_or("syd", String::as_str);
        let act = |step| Decision::new(Next::Act(vec![step]));
        let (Goal::Present, seen) = (want.goal, seen) else {
            return seen.map_or(Decision::new(Next::Converged), |d| {
                act(Step::new(Action::Delete(d.id.clone()), Impact::Major, format!("delete {}", d.body.name)))
            });
        };
        let refused = Self::refusals(want);
        let Some(there) = seen else {
            let body = Self::body(want, region);
            let label = format!("create {}", body.name);
            return Decision { refused, ..act(Step::creating(Action::Create(body), label)) };
        };
        let mut wanted = Self::body(want, &there.body.region);
        if !refused.is_empty() {
            wanted.ports.clone_from(&there.body.ports); // a refusal keeps the observed value
        }
        let mut decision = if wanted != there.body {
            let label = format!("replace {}", wanted.name);
            act(Step::new(Action::Replace(there.id.clone(), wanted), Impact::Minimal, label))
        } else if there.active {
            Decision::new(Next::Converged)
        } else {
            Decision::new(Next::Wait {
                on: "the load balancer to become active".into(),
                poll: Duration::from_secs(5),
            })
        };
        let ingress = Ingress { ip: Some("192.0.2.1".into()), ..Ingress::default() };
        decision.publish = Some(Publish {
            ingress: there.active.then(|| vec![ingress]),
            annotations: [("toy/id".to_owned(), there.id.clone())].into(),
            ..Publish::default()
        });
        decision.refused = refused;
        if region != there.body.region {
            decision.notices.push(Notice {
                severity: Severity::Warning,
                reason: REGION_IMMUTABLE,
                message: format!("{REGION}: the load balancer stays in {}", there.body.region),
            });
        }
        decision
    }

    async fn execute(&self, _: &Call, act: &Action) -> Outcome<Option<Document>> {
        self.wire.lock().unwrap().send(|wire| {
            let mut stored = self.stored();
            Ok(match act {
                Action::Create(body) => {
                    let document = Document { id: wire.id("lb"), active: false, body: body.clone() };
                    stored.push(document.clone());
                    Some(document)
                }
                Action::Replace(id, body) => {
                    let document = stored.iter_mut().find(|d| d.id == *id).unwrap();
                    document.body = body.clone();
                    Some(document.clone())
                }
                Action::Delete(id) => {
                    stored.retain(|d| d.id != *id);
                    None
                }
            })
        })
    }

    fn fold(&self, _: Option<Document>, _: &Action, answer: &Option<Document>) -> Option<Document> {
        answer.clone()
    }

    fn assume(&self, act: &Action) -> Option<Document> {
        match act {
            Action::Create(body) => Some(Document { id: "new".into(), active: true, body: body.clone() }),
            Action::Replace(id, body) => Some(Document { id: id.clone(), active: true, body: body.clone() }),
            Action::Delete(_) => None,
        }
    }
}

impl Toy for Documents {
    fn empty() -> Self {
        Self::default()
    }

    fn wire(&self) -> &Mutex<Wire> {
        &self.wire
    }

    fn settle(&self) {
        self.stored().iter_mut().for_each(|d| d.active = true);
    }

    fn describe(&self) -> Vec<String> {
        let mut all: Vec<_> = self.stored().iter().map(|d| format!("{:?}", d.body)).collect();
        all.sort();
        all
    }
}
