//! The reference program: watch, decide, write. The smallest thing that keeps load balancers in step with Services.
//!
//! It proves the harness before there are controllers, and it is what they will be measured against: every decision is
//! core's, what remains here is plumbing.

use std::{
    collections::BTreeMap,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use cloudberth_core::{
    Clock, Dice, NodeView, ObjectKey, Provider, Result, ServiceView,
    decide::{
        nodeset::trigger::{Trigger, trigger},
        queue::{After, ItemExponential, Taken, WorkQueue},
        service::{
            change::Written,
            roster::{Candidate, Roster},
            wake::{Sighting, wake},
        },
    },
    lb::{ClaimBook, Intents},
};
use cloudberth_runtime::election::Election;
use futures_util::{
    Stream, StreamExt,
    future::join,
    stream::{self, FuturesUnordered},
};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject},
    runtime::watcher::{self, watcher},
};
use serde_json::Value;
use tokio::sync::watch;

use crate::pass::Pass;

/// How a program may be broken on purpose, to show that the harness notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// Law 4: it writes although nothing differs.
    SecondPassWrites,
    /// Law 6: it creates without recording its intent first.
    NoIntent,
    /// Law 9: once it has led, it writes on, whoever leads.
    NeverYields,
}

/// How many Services are worked on at once.
const WORKERS: usize = 4;
/// How often every Service is looked at although nothing happened, at the least.
const DRIFT: Duration = Duration::from_secs(300);
/// How long a broken watch rests before it is tried again, up to twice as long.
const WATCH_REST: Duration = Duration::from_millis(500);

/// One running copy of the program.
pub(crate) struct Program {
    pub client: Client,
    pub provider: Arc<dyn Provider>,
    pub clock: Arc<dyn Clock>,
    pub dice: Arc<Dice>,
    pub election: Arc<Election>,
    pub stop: watch::Receiver<bool>,
    pub broken: Option<Broken>,
}

type Queue = WorkQueue<ObjectKey, ItemExponential<ObjectKey>>;
type Passes<'a> = FuturesUnordered<Pin<Box<dyn Future<Output = (ObjectKey, After)> + Send + 'a>>>;

/// What the program knows. Everything in it can be learnt anew.
pub(crate) struct Known {
    pub(crate) services: BTreeMap<ObjectKey, Arc<ServiceView>>,
    pub(crate) nodes: BTreeMap<String, Arc<NodeView>>,
    pub(crate) written: BTreeMap<ObjectKey, Written>,
    pub(crate) intents: Intents,
    queue: Queue,
    book: ClaimBook,
    warm: (bool, bool),
}

enum News {
    Service(Told<ServiceView>),
    Node(Told<NodeView>),
}

/// What a watch said, in our words.
enum Told<T> {
    Begin,
    There(Box<T>),
    Gone(Box<T>),
    Complete,
    Trouble,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Program {
    /// Runs until it is told to stop. What it was at is finished before others may lead.
    pub(crate) async fn run(self) {
        let Ok(roster) = self.roster() else { return };
        let mut stop = self.stop.clone();
        let work = async {
            while !*self.stop.borrow() {
                let term = tokio::select! {
                    biased;
                    _ = stop.wait_for(|told| *told) => break,
                    term = self.election.led() => term,
                };
                tokio::select! {
                    biased;
                    () = self.election.lost(term), if self.broken != Some(Broken::NeverYields) => {}
                    () = self.lead(&roster) => {}
                }
            }
            self.election.stop();
        };
        join(work, self.election.run()).await;
    }

    /// Works until it is told to stop and nothing is under way any more. Nothing is remembered from an earlier time of
    /// leading: another replica may have led since.
    async fn lead(&self, roster: &Roster) {
        let known = Mutex::new(Known {
            services: BTreeMap::new(),
            nodes: BTreeMap::new(),
            written: BTreeMap::new(),
            intents: Intents::default(),
            queue: WorkQueue::new(
                10_000,
                ItemExponential::new(Duration::from_secs(5), Duration::from_secs(300)),
            ),
            book: ClaimBook::default(),
            warm: (false, false),
        });
        let services = self.watch("Service", "services", ServiceView::from_json).map(News::Service);
        let nodes = self.watch("Node", "nodes", NodeView::from_json).map(News::Node);
        let mut news = Box::pin(stream::select(services, nodes));
        let mut passes = Passes::new();
        let mut drift = Box::pin(tokio::time::sleep(self.dice.jitter(DRIFT, 0.5)));
        let mut stop = self.stop.clone();
        let mut stopping = false;
        while !stopping || !passes.is_empty() {
            if !stopping {
                self.begin_passes(roster, &known, &mut passes);
            }
            // While every worker is busy a delayed key can wait for the next one that is not; at the end, for ever.
            let wakeup = lock(&known).queue.next_wakeup().filter(|_| !stopping && passes.len() < WORKERS);
            let nap = wakeup.map(|at| at.since(self.clock.now()));
            tokio::select! {
                biased;
                _ = stop.wait_for(|told| *told), if !stopping => stopping = true,
                Some(told) = news.next() => self.learn(roster, &mut lock(&known), told),
                Some((key, after)) = passes.next(), if !passes.is_empty() => {
                    let mut known = lock(&known);
                    let now = self.clock.now();
                    known.queue.finish(&key, after, now);
                    for waiting in known.book.release(&key) {
                        known.queue.add(waiting, now);
                    }
                }
                () = &mut drift => {
                    drift = Box::pin(tokio::time::sleep(self.dice.jitter(DRIFT, 0.5)));
                    self.everybody(&mut lock(&known));
                }
                () = tokio::time::sleep(nap.unwrap_or_default()), if nap.is_some() => {}
            }
        }
    }

    fn roster(&self) -> Result<Roster> {
        let name = self.provider.name().to_owned();
        Roster::new(vec![Candidate { name: name.clone(), ..Candidate::default() }], Some(name))
    }

    fn watch<T>(
        &self,
        kind: &str,
        plural: &str,
        read: fn(&Value) -> Result<T>,
    ) -> impl Stream<Item = Told<T>> + Send + use<'_, T>
    where
        T: Send + 'static,
    {
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource(kind, plural));
        watcher(api, watcher::Config::default()).filter_map(move |event| async move {
            let view =
                |object: &DynamicObject| serde_json::to_value(object).ok().and_then(|json| read(&json).ok());
            match event {
                Ok(watcher::Event::Init) => Some(Told::Begin),
                Ok(watcher::Event::Apply(object) | watcher::Event::InitApply(object)) => {
                    view(&object).map(Box::new).map(Told::There)
                }
                Ok(watcher::Event::Delete(object)) => view(&object).map(Box::new).map(Told::Gone),
                Ok(watcher::Event::InitDone) => Some(Told::Complete),
                Err(_) => {
                    tokio::time::sleep(self.dice.jitter(WATCH_REST, 1.0)).await;
                    Some(Told::Trouble)
                }
            }
        })
    }

    fn learn(&self, roster: &Roster, known: &mut Known, news: News) {
        let now = self.clock.now();
        let mut everybody = false;
        match news {
            News::Service(Told::Begin) => known.services.clear(),
            News::Service(Told::There(new)) => {
                let key = new.key();
                let old = known.services.insert(key.clone(), Arc::from(new));
                let Some(new) = known.services.get(&key) else { return };
                let sighting = match &old {
                    Some(old) => Sighting::Updated { old, new },
                    None => Sighting::Added(new),
                };
                let written = known.written.entry(key.clone()).or_default();
                if wake(roster, sighting, written).is_some() {
                    known.queue.add(key, now);
                }
            }
            News::Service(Told::Gone(old)) => {
                known.services.remove(&old.key());
                known.written.remove(&old.key());
                known.intents.forget(&old.key());
            }
            News::Service(Told::Complete) => known.warm.0 = true,
            News::Node(Told::Begin) => known.nodes.clear(),
            News::Node(Told::There(node)) => {
                let old = known.nodes.insert(node.name.clone(), Arc::from(node.clone()));
                everybody = trigger(old.as_deref(), Some(&node)) != Trigger::None;
            }
            News::Node(Told::Gone(node)) => everybody = known.nodes.remove(&node.name).is_some(),
            News::Node(Told::Complete) => {
                known.warm.1 = true;
                everybody = true;
            }
            News::Service(Told::Trouble) | News::Node(Told::Trouble) => {}
        }
        if everybody {
            self.everybody(known);
        }
    }

    /// Every Service is looked at again: the nodes changed, or it is time to look for what was edited by hand.
    fn everybody(&self, known: &mut Known) {
        let now = self.clock.now();
        let keys: Vec<_> = known.services.keys().cloned().collect();
        for key in keys {
            known.queue.add(key, now);
        }
    }

    fn begin_passes<'a>(&'a self, roster: &'a Roster, known: &'a Mutex<Known>, passes: &mut Passes<'a>) {
        let mut state = lock(known);
        while state.warm == (true, true) && passes.len() < WORKERS {
            let now = self.clock.now();
            let Taken::Work { key, .. } = state.queue.get(now) else { return };
            let Some(service) = state.services.get(&key).cloned() else {
                state.queue.finish(&key, After::Forget, now);
                continue;
            };
            let claims =
                self.provider.load_balancers().map(|b| b.claims(&service, CLUSTER)).unwrap_or_default();
            if !state.book.acquire(&key, &claims) {
                // Whoever holds the claim names us when it lets go.
                state.queue.finish(&key, After::Forget, now);
                continue;
            }
            passes.push(Box::pin(async move {
                let pass = Pass { program: self, roster, known };
                (key, pass.run(service).await)
            }));
        }
    }
}

/// The name that the simulated cluster has.
pub(crate) const CLUSTER: &str = "sim";

pub(crate) fn resource(kind: &str, plural: &str) -> ApiResource {
    ApiResource {
        group: String::new(),
        version: "v1".to_owned(),
        api_version: "v1".to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    }
}
