//! Load balancers: what a provider writes to have them.
//!
//! `spec` reads a Service (honour or refuse, field by field), `plan` decides, this file talks to the cloud.

mod plan;
mod spec;

pub use spec::{ALGORITHM, BALANCER_ID, BALANCER_NAME, FLOATING_ADDRESS, NODE_SELECTOR, TABLE};

use std::{collections::BTreeSet, time::Duration};

use cloudberth_core::{
    Call, Category, Error, Listing, Lookup, ProviderId, Result, ServiceView,
    annotation::Table,
    decide::nodeset::Selector,
    lb::{
        Balancers, Candidate, Decision, Desired, Fleet, Identity, LockKey, LockKind, Marked, Name, Outcome,
    },
};
use cloudberth_http::LazyListing;

use crate::cloud::{Balancer, Fault, Kind, Listener, Network, Trouble, outcome};

/// The load balancers of a fake cloud.
#[derive(Debug)]
pub struct Fakes {
    scheme: String,
    network: Network,
}

/// One mutation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are what the names say")]
pub enum Action {
    /// Builds an empty load balancer.
    Create { name: String, algorithm: String },
    /// Changes how it chooses.
    SetAlgorithm { balancer: String, algorithm: String },
    /// Opens a port.
    AddListener { balancer: String, listener: Listener },
    /// Closes a port.
    RemoveListener { balancer: String, listener: String },
    /// Puts an instance behind it.
    AddMember { balancer: String, instance: String },
    /// Takes an instance out.
    RemoveMember { balancer: String, member: String },
    /// Attaches a floating address.
    Attach { balancer: String, address: String },
    /// Deletes it with its parts.
    Delete { balancer: String },
}

/// What the cloud answers.
#[derive(Clone, Debug)]
pub enum Answer {
    /// The new load balancer.
    Built(Box<Balancer>),
    /// The id of the new part.
    Part(String),
    /// The instance that should become a member does not exist: there is nothing to put behind the load balancer.
    NoInstance,
    /// Done.
    Done,
}

/// What there is for one Service.
#[derive(Clone, Debug)]
pub struct Observed {
    there: Balancer,
    /// Instances that turned out not to exist. One dead node must not keep the others out.
    missing: BTreeSet<String>,
}

impl From<Balancer> for Observed {
    fn from(there: Balancer) -> Self {
        Self { there, missing: BTreeSet::new() }
    }
}

impl Fakes {
    pub(crate) fn new(scheme: &str, network: Network) -> Self {
        Self { scheme: scheme.to_owned(), network }
    }

    async fn list(&self, call: &Call) -> Result<Listing<Balancer>> {
        let all = self.network.request(call, Kind::Read, "list balancers", "", |world, now, fault| {
            let mut items = world.list_balancers(now);
            if fault == Some(Fault::PartsMissing) {
                for balancer in &mut items {
                    balancer.address.clear();
                }
            }
            let short = (fault == Some(Fault::ShortPage)).then(|| {
                items.truncate(items.len() / 2);
                "the second page is missing".to_owned()
            });
            Ok(Listing { items, short })
        });
        all.await.map_err(Trouble::error)
    }

    async fn get(&self, call: &Call, id: &str) -> Lookup<Observed> {
        let key = id.to_owned();
        let found = self
            .network
            .request(call, Kind::Read, "get balancer", id, move |world, now, fault| {
                let mut found = world.balancer(&key, now).filter(|_| fault != Some(Fault::Deny));
                if let (Some(balancer), Some(Fault::PartsMissing)) = (&mut found, fault) {
                    balancer.address.clear();
                }
                Ok(found)
            })
            .await;
        match Lookup::from(found.map_err(Trouble::error)).map(Observed::from) {
            // Every load balancer has an address from the start, so this answer is incomplete.
            Lookup::Present(observed) if observed.there.address.is_empty() => {
                Lookup::Unknown(Error::temporary(format!("the address of load balancer {id} was not told")))
            }
            known => known,
        }
    }
}

impl Balancers for Fakes {
    type Survey = LazyListing<Listing<Balancer>>;
    type Observed = Observed;
    type Action = Action;
    type Answer = Answer;

    fn annotations(&self) -> &Table {
        &TABLE
    }

    async fn shows(&self, call: &Call, id: &str) -> Lookup<()> {
        self.get(call, id).await.map(|_| ())
    }

    /// By the generated name, which carries the name of the cluster and the UID of the Service.
    async fn marked(&self, call: &Call, cluster: &str) -> Result<Listing<Marked>> {
        let Listing { items, short } = self.list(call).await?;
        let begins = format!("{cluster}-");
        let of = |one: Balancer| {
            let uid = spec::made_for(&one.name).filter(|uid| one.name == format!("{begins}{uid}"))?;
            let annotations = [(BALANCER_ID.name().to_owned(), one.id.clone())].into();
            let made_for =
                Box::new(ServiceView { uid: uid.to_owned(), annotations, ..ServiceView::default() });
            let id = |instance: &String| ProviderId::new(&self.scheme, instance).ok();
            let instances = one.members.values().filter_map(id).collect();
            Some(Marked { id: one.id, name: one.name, made_for, instances })
        };
        Ok(Listing { items: items.into_iter().filter_map(of).collect(), short })
    }

    fn settle_time(&self) -> Duration {
        Duration::from_secs(60)
    }

    fn selector(&self, service: &ServiceView) -> Result<Option<Selector>> {
        TABLE.parse(&service.annotations).try_get(&NODE_SELECTOR)
    }

    fn needs_endpoints(&self) -> bool {
        self.network.shared.local_endpoints
    }

    fn width(&self) -> usize {
        4
    }

    fn name_for(&self, service: &ServiceView, cluster: &str) -> Name {
        let generated = TABLE.parse(&service.annotations).get(&BALANCER_NAME).set().is_none();
        Name { text: spec::name(service, cluster), generated }
    }

    fn identity(&self, observed: &Observed) -> Option<Identity> {
        let Balancer { id, name, address, .. } = &observed.there;
        Some(Identity {
            id: id.clone(),
            name: name.clone(),
            made_for: spec::made_for(name).map(str::to_owned),
            addresses: vec![address.clone()],
        })
    }

    fn lock_keys(&self, service: &ServiceView, cluster: &str) -> Vec<LockKey> {
        let parsed = TABLE.parse(&service.annotations);
        let name = LockKey::new(LockKind::Name, spec::name(service, cluster));
        let id = parsed.get(&BALANCER_ID).set().map(|id| LockKey::new(LockKind::Id, id));
        let address = parsed.get(&FLOATING_ADDRESS).set().map(|ip| LockKey::new(LockKind::Address, ip));
        [Some(name), id, address].into_iter().flatten().collect()
    }

    /// The listing that all share is fetched even where a lookup of the recorded id answers: tests count by it who looked.
    /// The lookup is newer, so its answer goes first.
    async fn observe(
        &self,
        call: &Call,
        _: &dyn Fleet,
        survey: &LazyListing<Listing<Balancer>>,
        want: &Desired,
    ) -> Lookup<Observed> {
        let all = match survey.get(self.list(call)).await {
            Ok(all) => all,
            Err(why) => return Lookup::Unknown(why),
        };
        let mut trail = spec::trail(&want.service, &want.cluster);
        if let Some(id) = trail.id.take() {
            match self.get(call, &id).await {
                Lookup::Absent => {}
                known => return known,
            }
        }
        match (trail.follow(&all.items, candidate), &all.short) {
            // The listing may be old, so the source is asked about the one that it shows.
            (Ok(Some(one)), _) => self.get(call, &one.id).await,
            (Ok(None), None) => Lookup::Absent,
            (Ok(None), Some(why)) => Lookup::Unknown(Error::temporary(format!("list balancers: {why}"))),
            (Err(several), _) => Lookup::Unknown(several),
        }
    }

    fn decide(&self, want: &Desired, observed: Option<&Observed>) -> Decision<Action> {
        plan::decide(&self.scheme, want, observed)
    }

    async fn execute(&self, call: &Call, act: &Action) -> Outcome<Answer> {
        let removes = matches!(act, Action::Delete { .. });
        let act = act.clone();
        let (operation, subject) = name_of(&act);
        let subject = subject.to_owned();
        let result = self.network.request(call, Kind::Write, operation, &subject, move |world, now, _| {
            Ok(match &act {
                Action::Create { name, algorithm } => {
                    Answer::Built(Box::new(world.create_balancer(name, algorithm, now)?))
                }
                Action::SetAlgorithm { balancer, algorithm } => {
                    world.set_algorithm(balancer, algorithm, now)?;
                    Answer::Done
                }
                Action::AddListener { balancer, listener } => {
                    Answer::Part(world.add_listener(balancer, listener, now)?)
                }
                Action::RemoveListener { balancer, listener } => {
                    world.remove_listener(balancer, listener, now)?;
                    Answer::Done
                }
                Action::AddMember { instance, .. } if world.instance(instance).is_none() => {
                    Answer::NoInstance
                }
                Action::AddMember { balancer, instance } => {
                    Answer::Part(world.add_member(balancer, instance, now)?)
                }
                Action::RemoveMember { balancer, member } => {
                    world.remove_member(balancer, member, now)?;
                    Answer::Done
                }
                Action::Attach { balancer, address } => {
                    world.attach(balancer, address, now)?;
                    Answer::Done
                }
                Action::Delete { balancer } => {
                    world.delete_balancer(balancer, now)?;
                    Answer::Done
                }
            })
        });
        match outcome(result.await) {
            Outcome::Failed(why) if removes && why.category() == Category::NotFound => Outcome::NotThere,
            outcome => outcome,
        }
    }

    fn fold(&self, observed: Option<Observed>, act: &Action, answer: &Answer) -> Option<Observed> {
        plan::fold(observed, act, answer)
    }

    fn assume(&self, act: &Action) -> Answer {
        plan::assume(act)
    }
}

fn candidate(Balancer { id, name, .. }: &Balancer) -> Candidate<'_> {
    Candidate { id, name, generated: spec::made_for(name).is_some() }
}

fn name_of(act: &Action) -> (&'static str, &str) {
    match act {
        Action::Create { name, .. } => ("create balancer", name),
        Action::SetAlgorithm { balancer, .. } => ("set algorithm", balancer),
        Action::AddListener { balancer, .. } => ("add listener", balancer),
        Action::RemoveListener { balancer, .. } => ("remove listener", balancer),
        Action::AddMember { balancer, .. } => ("add member", balancer),
        Action::RemoveMember { balancer, .. } => ("remove member", balancer),
        Action::Attach { balancer, .. } => ("attach address", balancer),
        Action::Delete { balancer } => ("delete balancer", balancer),
    }
}
