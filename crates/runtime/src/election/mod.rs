//! Stands for election, and tells who asks until when this replica may write.
//!
//! Every move is decided by core's [`Candidate`]; this is its hands, ears and clock.
//!
//! ```text
//!   watch or poll ──┐
//!   answers ────────┼──► Candidate ──► get, create, replace the Lease
//!   time ───────────┘        └───────► the claim (Gate), led and lost, events
//! ```

mod lookout;
mod requests;

use std::{
    fmt,
    future::pending,
    pin::Pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use cloudberth_core::{
    Clock, Gate, Random, Result,
    decide::election::{Action, Candidate, Config, Input, Lease, Moment, Move, News, Writes, may_release},
    lookup::Lookup,
    time::Tick,
};
use futures_util::StreamExt;
use kube::Client;
use serde_json::Value;
use tokio::sync::Notify;

use crate::{
    lock,
    recorder::{Event, ObjectRef},
};
use lookout::notices;
use requests::LeaseApi;

/// How much longer than a lease lasts a leader may go without renewing before it counts as stuck.
pub const HEALTH_TOLERANCE: Duration = Duration::from_secs(20);
/// Who says so in events.
const COMPONENT: &str = "cloud-controller-manager";

/// One time of leading. It does not come back: a replica that leads again has another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Term(u64);

/// The two metrics of an election, as they are now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tally {
    /// `leader_election_master_status`: whether this replica leads.
    pub master: bool,
    /// `leader_election_slowpath_total`: how many renewals needed a read first.
    pub slow_paths: u64,
}

type Tell = Box<dyn Fn(Event) + Send + Sync>;
type Request = Pin<Box<dyn Future<Output = Input> + Send>>;

struct State {
    candidate: Candidate,
    /// Counts the times of leading.
    term: u64,
    leads: bool,
    ending: Ending,
    /// What was sent and may still take effect.
    writes: Writes,
    /// Of candidates before this one.
    slow_paths: u64,
    /// Of the Lease, for events about it.
    uid: String,
}

/// How far a replica that ends has come.
#[derive(Default)]
struct Ending {
    /// No new write is begun, although the claim lasts.
    closed: bool,
    /// Work was given up before it ended.
    cut_short: bool,
    stop: bool,
}

/// One replica's part in an election.
pub struct Election {
    config: Config,
    api: LeaseApi,
    clock: Arc<dyn Clock>,
    random: Arc<Random>,
    tell: Tell,
    state: Mutex<State>,
    changed: Notify,
}

impl Election {
    /// A candidate that does nothing before [`run`](Self::run). `tell` hears `<identity> became leader` and
    /// `<identity> stopped leading`, as events on the Lease; it must not wait.
    ///
    /// Check the configuration's [`mistakes`](Config::mistakes) first.
    pub fn new(
        client: Client,
        config: Config,
        clock: Arc<dyn Clock>,
        random: Arc<Random>,
        tell: impl Fn(Event) + Send + Sync + 'static,
    ) -> Arc<Self> {
        let state = State {
            candidate: Candidate::new(config.clone()),
            term: 0,
            leads: false,
            ending: Ending::default(),
            writes: Writes::default(),
            slow_paths: 0,
            uid: String::new(),
        };
        Arc::new(Self {
            api: LeaseApi::new(client, Arc::clone(&clock), &config),
            config,
            clock,
            random,
            tell: Box::new(tell),
            state: Mutex::new(state),
            changed: Notify::new(),
        })
    }

    /// Stands, leads, loses and stands again, until [`stop`](Self::stop). Answers whether the Lease was let go, so
    /// that others need not wait for its end. Dropping it lets go of nothing, and ends the claim.
    pub async fn run(self: &Arc<Self>) -> bool {
        let _end = EndOfClaim(self);
        let watcher = Arc::clone(self);
        let idle = move || watcher.leads();
        let mut seen = notices(self.api.clone(), &self.config.namespace, Arc::clone(&self.random), idle);
        let mut request: Option<Request> = None;
        let mut told_to_stop = false;
        let mut action = self.step(Input::Wake);
        loop {
            let wake = match action {
                Action::Stopped { released } => return released,
                Action::Wait(until) => until,
                Action::Get { until, .. } | Action::Create { until, .. } | Action::Update { until, .. } => {
                    request = Some(Box::pin(self.api.clone().carry_out(action)));
                    until
                }
            };
            let answer = async {
                match &mut request {
                    Some(request) => request.await,
                    None => pending().await,
                }
            };
            let input = tokio::select! {
                biased;
                () = self.until(|state| state.ending.stop), if !told_to_stop => {
                    told_to_stop = true;
                    Input::Stop { release: self.may_release() }
                }
                input = answer => {
                    request = None;
                    input
                }
                Some(lease) = seen.next() => Input::Noticed(lease),
                () = tokio::time::sleep(wake.since(self.clock.now())) => Input::Wake,
            };
            action = self.step(input);
        }
    }

    /// Begins no more writes. The claim is kept, so that what is under way can end.
    pub fn close(&self) {
        lock(&self.state).ending.closed = true;
    }

    /// Waits until every write that was sent has been answered or given up.
    pub async fn settled(&self) {
        self.until(|state| !state.writes.are_under_way()).await;
    }

    /// Work was given up before it ended, so the Lease is not let go of: who takes over waits until it runs out.
    pub fn cut_short(&self) {
        lock(&self.state).ending.cut_short = true;
    }

    /// Ends leading and standing, and lets go of the Lease if nothing that was sent can still take effect: another may
    /// lead a moment later.
    pub fn stop(&self) {
        lock(&self.state).ending.stop = true;
        self.changed.notify_waiters();
    }

    fn may_release(&self) -> bool {
        let state = lock(&self.state);
        may_release(!state.ending.cut_short, &state.writes, self.clock.now())
    }

    /// The name of the Lease.
    pub fn lease(&self) -> &str {
        &self.config.name
    }

    /// Waits until this replica leads.
    pub async fn led(&self) -> Term {
        self.until(|state| state.leads).await;
        Term(lock(&self.state).term)
    }

    /// Waits until this time of leading is over. Nothing is written from then on, whoever still tries.
    pub async fn lost(&self, term: Term) {
        self.until(|state| !state.leads || state.term != term.0).await;
    }

    /// Whether this replica leads.
    pub fn leads(&self) -> bool {
        lock(&self.state).leads
    }

    /// Who leads, as far as is known here.
    pub fn leader(&self) -> Option<String> {
        lock(&self.state).candidate.holder().map(str::to_owned)
    }

    /// The check `leaderElection`: fails only for a leader that has not renewed for far too long. A standby is well.
    pub fn health(&self) -> Result<()> {
        lock(&self.state).candidate.health(self.clock.now(), HEALTH_TOLERANCE)
    }

    /// The metrics.
    pub fn tally(&self) -> Tally {
        let state = lock(&self.state);
        Tally { master: state.leads, slow_paths: state.slow_paths + state.candidate.slow_paths() }
    }

    /// Waits until the state is so.
    async fn until(&self, so: impl Fn(&State) -> bool) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if so(&lock(&self.state)) {
                return;
            }
            changed.await;
        }
    }

    fn step(&self, input: Input) -> Action {
        let (action, news, uid) = {
            let mut state = lock(&self.state);
            if let Some(uid) = uid_in(&input) {
                uid.clone_into(&mut state.uid);
            }
            let at =
                Moment { now: self.clock.now(), wall: self.clock.wall(), fraction: self.random.fraction() };
            let Move { action, news } = state.candidate.step(input, at);
            match news {
                Some(News::Leads) => {
                    state.leads = true;
                    state.term += 1;
                }
                Some(News::Lost(_)) => state.leads = false,
                None => {}
            }
            (action, news, state.uid.clone())
        };
        if let Some(news) = news {
            self.announce(news, &uid);
        }
        action
    }

    fn announce(&self, news: News, uid: &str) {
        let Config { identity, namespace, name, .. } = &self.config;
        let what = match news {
            News::Leads => "became leader",
            News::Lost(_) => "stopped leading",
        };
        match news {
            News::Leads => tracing::info!(identity, lease = name, "became leader"),
            News::Lost(why) => tracing::warn!(identity, lease = name, ?why, "stopped leading"),
        }
        let about = ObjectRef {
            api_version: "coordination.k8s.io/v1".to_owned(),
            ..ObjectRef::core("Lease", namespace, name, uid)
        };
        (self.tell)(Event {
            about,
            warning: false,
            reason: "LeaderElection".to_owned(),
            message: format!("{identity} {what}"),
            component: COMPONENT,
        });
        self.changed.notify_waiters();
    }
}

/// Whoever drops a running election drops its claim: nothing renews it any more.
struct EndOfClaim<'a>(&'a Election);

impl Drop for EndOfClaim<'_> {
    fn drop(&mut self) {
        let election = self.0;
        {
            let mut state = lock(&election.state);
            state.slow_paths += state.candidate.slow_paths();
            state.candidate = Candidate::new(election.config.clone());
            state.leads = false;
        }
        election.changed.notify_waiters();
    }
}

impl Gate for Election {
    fn claim_until(&self) -> Option<Tick> {
        let state = lock(&self.state);
        state.candidate.claim_until().filter(|_| !state.ending.closed)
    }

    fn write_began(&self) {
        lock(&self.state).writes.began();
    }

    fn write_ended(&self, in_doubt_until: Option<Tick>) {
        lock(&self.state).writes.ended(in_doubt_until);
        self.changed.notify_waiters();
    }
}

/// The UID of a Lease that was heard of.
fn uid_in(input: &Input) -> Option<&str> {
    let lease: &Lease = match input {
        Input::Read(_, Lookup::Present(lease)) | Input::Wrote(_, Ok(lease)) | Input::Noticed(Some(lease)) => {
            lease
        }
        _ => return None,
    };
    lease.object().pointer("/metadata/uid").and_then(Value::as_str)
}

impl fmt::Debug for Election {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Election")
            .field("identity", &self.config.identity)
            .field("leads", &self.leads())
            .finish_non_exhaustive()
    }
}
