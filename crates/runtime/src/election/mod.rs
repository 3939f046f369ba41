//! Leader election, and until when this replica may write.
//!
//! core's [`Candidate`] decides every move; this sends its requests and feeds it answers and time.
//!
//! ```text
//!   watch or poll ──┐
//!   answers ────────┼──► Candidate ──► get, create, replace the Lease
//!   time ───────────┘        └───────► the claim (Gate), led and lost, events
//! ```

mod lease_watch;
mod requests;

use std::{
    fmt,
    future::pending,
    pin::Pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use cloudberth_core::{
    Clock, Gate, Random, Reason, Result,
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
use lease_watch::lease_changes;
use requests::LeaseApi;

/// How much longer than a lease lasts a leader may go without renewing before it counts as stuck.
pub const HEALTH_TOLERANCE: Duration = Duration::from_secs(20);

/// A term of leading. A replica that leads again has a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Term(u64);

/// The current values of the two election metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tally {
    /// `leader_election_master_status`: whether this replica leads.
    pub master: bool,
    /// `leader_election_slowpath_total`: how many renewals needed a read first.
    pub slow_paths: u64,
}

type Publish = Box<dyn Fn(Event) + Send + Sync>;
type Request = Pin<Box<dyn Future<Output = Input> + Send>>;

struct State {
    candidate: Candidate,
    /// The number of the current or last term.
    term: u64,
    leads: bool,
    ending: Ending,
    writes: Writes,
    slow_paths: u64,
    /// The UID of the Lease, for events about it.
    uid: String,
}

#[derive(Default)]
struct Ending {
    /// No new write may begin, although the claim lasts.
    closed: bool,
    cut_short: bool,
    stop: bool,
}

/// One replica's part in an election.
pub struct Election {
    config: Config,
    api: LeaseApi,
    clock: Arc<dyn Clock>,
    random: Arc<Random>,
    reason: Reason,
    publish: Publish,
    state: Mutex<State>,
    changed: Notify,
}

impl Election {
    /// A candidate that does nothing before [`run`](Self::run). `publish` gets `<identity> became leader` and
    /// `<identity> stopped leading` as events on the Lease, with this reason and from its source; it must not wait.
    ///
    /// Check the configuration's [`mistakes`](Config::mistakes) first.
    pub fn new(
        client: Client,
        config: Config,
        clock: Arc<dyn Clock>,
        random: Arc<Random>,
        reason: Reason,
        publish: impl Fn(Event) + Send + Sync + 'static,
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
            reason,
            publish: Box::new(publish),
            state: Mutex::new(state),
            changed: Notify::new(),
        })
    }

    /// Takes part in the election until [`stop`](Self::stop). Returns whether the Lease was released, so that others need
    /// not wait for its expiry. Dropping it ends the claim and releases nothing.
    pub async fn run(self: &Arc<Self>) -> bool {
        let _end = EndOfClaim(self);
        let watcher = Arc::clone(self);
        let idle = move || watcher.leads();
        let mut seen =
            lease_changes(self.api.clone(), &self.config.namespace, Arc::clone(&self.random), idle);
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

    /// Begins no more writes. The claim is kept, so that writes in flight can end.
    pub fn close(&self) {
        lock(&self.state).ending.closed = true;
    }

    /// Waits until every write that was sent has been answered or given up.
    pub async fn settled(&self) {
        self.until(|state| !state.writes.are_under_way()).await;
    }

    /// Work was abandoned before it ended, so the Lease is not released: the next leader waits until it expires.
    pub fn cut_short(&self) {
        lock(&self.state).ending.cut_short = true;
    }

    /// Leaves the election, and releases the Lease if no write can still take effect: another replica may lead a moment
    /// later.
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

    /// Waits until this term is over. Nothing is written from then on.
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

    /// The check `leaderElection`: fails only for a leader that has not renewed for far too long, never for a standby.
    pub fn health(&self) -> Result<()> {
        lock(&self.state).candidate.health(self.clock.now(), HEALTH_TOLERANCE)
    }

    /// The current values of the metrics.
    pub fn tally(&self) -> Tally {
        let state = lock(&self.state);
        Tally { master: state.leads, slow_paths: state.slow_paths + state.candidate.slow_paths() }
    }

    /// Waits until the state fulfils `condition`.
    async fn until(&self, condition: impl Fn(&State) -> bool) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if condition(&lock(&self.state)) {
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
        (self.publish)(Event {
            about,
            warning: false,
            reason: self.reason,
            message: format!("{identity} {what}"),
            component: self.reason.row().source.component(),
        });
        self.changed.notify_waiters();
    }
}

/// Ends the claim when a running election is dropped: nothing renews it any more.
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

/// The UID of the Lease in this input.
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
