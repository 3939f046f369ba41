//! A [`Helm`] that starts no process: it does to an API what Helm does, in virtual time.
//!
//! It writes the same release Secrets in the same order, one Deployment per release in place of a chart's objects, refuses
//! what Helm refuses, and leaves behind what Helm leaves when it is killed in the middle. Charts do not exist: every
//! version can be had, and [`publish`](StandInHelm::publish) says which is the newest.

mod record;
mod store;

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use cloudberth_core::{Clock, provider::Boxed};
use kube::Client;
use serde_json::Value;
use tokio::{sync::Notify, time::sleep};

pub use record::{Planted, record};

use super::{
    ChartRef, Helm, HelmAction, HelmError, HelmFailure, Leash, ReleaseStatus,
    leash::{Ended, Life},
    values, version,
};
use store::{Revision, Store};

/// As many revisions as Helm is told to keep.
const HISTORY: usize = 10;
const GRACE: Duration = Duration::from_secs(20);

/// One call, as it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The release.
    pub release: String,
    /// Its namespace.
    pub namespace: String,
    /// What was to be done; `None` if a version was asked for.
    pub action: Option<HelmAction>,
}

#[derive(Default)]
struct State {
    takes: Duration,
    limit: Duration,
    newest: BTreeMap<String, String>,
    deployments: BTreeMap<String, String>,
    source_down: bool,
    failures: VecDeque<HelmFailure>,
    asked: Vec<Asked>,
}

type Clients = dyn Fn(&[u8]) -> Option<Client> + Send + Sync;

/// The stand-in. One serves any number of clusters.
pub struct StandInHelm {
    clock: Arc<dyn Clock>,
    clients: Box<Clients>,
    state: Mutex<State>,
}

impl StandInHelm {
    /// A stand-in that finds the API of a kubeconfig with `clients`; without one, the cluster is unreachable.
    pub fn new(
        clock: Arc<dyn Clock>,
        clients: impl Fn(&[u8]) -> Option<Client> + Send + Sync + 'static,
    ) -> Self {
        let state =
            State { takes: Duration::from_secs(20), limit: Duration::from_secs(720), ..State::default() };
        Self { clock, clients: Box::new(clients), state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long what is installed takes to become ready. Longer than `limit`, and it is given up.
    pub fn takes(&self, takes: Duration, limit: Duration) {
        let mut state = self.state();
        (state.takes, state.limit) = (takes, limit);
    }

    /// The newest version of a chart.
    pub fn publish(&self, release: &str, version: &str) {
        self.state().newest.insert(release.to_owned(), version.to_owned());
    }

    /// The name of a release's Deployment, if it is another than the release's.
    pub fn deployment(&self, release: &str, name: &str) {
        self.state().deployments.insert(release.to_owned(), name.to_owned());
    }

    /// Whether charts can be fetched.
    pub fn source_is_down(&self, down: bool) {
        self.state().source_down = down;
    }

    /// The next calls that change something fail like this, one each, before they do anything.
    pub fn fail(&self, failures: impl IntoIterator<Item = HelmFailure>) {
        self.state().failures.extend(failures);
    }

    /// What was asked since the last time, in order.
    pub fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut self.state().asked)
    }

    fn note(&self, chart: &ChartRef, action: Option<HelmAction>) {
        let (release, namespace) = (chart.release.clone(), chart.namespace.clone());
        self.state().asked.push(Asked { release, namespace, action });
    }

    /// The version that the chart's source has.
    fn fetch(&self, chart: &ChartRef) -> Result<String, HelmError> {
        let state = self.state();
        if state.source_down {
            return Err(HelmError::new(HelmFailure::Fetch, "the chart cannot be fetched"));
        }
        if version::is_exact(&chart.version) {
            return Ok(chart.version.clone());
        }
        let newest = state.newest.get(&chart.release).cloned();
        newest.ok_or_else(|| HelmError::new(HelmFailure::Fetch, "there is no such chart"))
    }

    async fn work(
        &self,
        kubeconfig: &[u8],
        chart: &ChartRef,
        action: HelmAction,
        told: &Notify,
    ) -> Result<(), HelmError> {
        let unreachable = || HelmError::new(HelmFailure::Unreachable, "the cluster is unreachable");
        let client = (self.clients)(kubeconfig).ok_or_else(unreachable)?;
        let deployment = self.state().deployments.get(&chart.release).cloned();
        let deployment = deployment.unwrap_or_else(|| chart.release.clone());
        let store = Store::new(client, chart, deployment);
        let version = match action {
            HelmAction::Rollback { .. } | HelmAction::Uninstall => String::new(),
            _ => self.fetch(chart)?,
        };
        let revisions = store.list().await?;
        match action {
            HelmAction::Uninstall => self.uninstall(&store, revisions, told).await,
            HelmAction::Rollback { to } => {
                let goal = revisions.iter().find(|revision| revision.number == to);
                let missing = || HelmError::new(HelmFailure::Other, "there is no such revision");
                let goal = goal.ok_or_else(missing)?.planted.clone();
                let planted = Planted { description: format!("Rollback to {to}"), ..goal };
                self.change(&store, &revisions, planted, ReleaseStatus::PendingRollback, told).await
            }
            HelmAction::Install | HelmAction::Upgrade | HelmAction::InstallReplace => {
                let status = may_change(action, revisions.last())?;
                let kept = revisions.last().map_or(Value::Null, |newest| newest.planted.config.clone());
                let config = if values::is_blank(&chart.values) {
                    kept
                } else {
                    serde_saphyr::from_str(&chart.values)
                        .map_err(|_| HelmError::new(HelmFailure::Rejected, "the values cannot be read"))?
                };
                let description = chart.values_hash().map(|hash| values::description(&hash));
                let description = description.unwrap_or_else(|| "Upgrade complete".to_owned());
                let planted = Planted { version, config, description, ..Planted::default() };
                self.change(&store, &revisions, planted, status, told).await
            }
        }
    }

    /// A new revision: pending first, then whatever came of it.
    async fn change(
        &self,
        store: &Store,
        before: &[Revision],
        planted: Planted,
        pending: ReleaseStatus,
        told: &Notify,
    ) -> Result<(), HelmError> {
        let number = before.last().map_or(0, |newest| newest.number) + 1;
        let begun = Planted { updated: Some(self.clock.wall()), ..planted };
        let mut revision = store.create(number, &begun, pending).await?;
        store.apply(&begun.version).await?;
        let takes = self.state().takes;
        let ready = tokio::select! {
            biased;
            () = told.notified() => false,
            () = sleep(takes) => true,
        };
        if !ready {
            if pending != ReleaseStatus::PendingRollback {
                "the operation was cancelled".clone_into(&mut revision.planted.description);
                store.update(&mut revision, ReleaseStatus::Failed).await?;
            }
            return Err(HelmError::new(HelmFailure::Stopped, "it was told to end"));
        }
        for old in before {
            if matches!(old.status, ReleaseStatus::Deployed | ReleaseStatus::Uninstalled) {
                store.update(&mut old.clone(), ReleaseStatus::Superseded).await?;
            }
        }
        store.update(&mut revision, ReleaseStatus::Deployed).await?;
        let surplus = (before.len() + 1).saturating_sub(HISTORY);
        for old in before.iter().take(surplus) {
            store.delete(old).await?;
        }
        Ok(())
    }

    async fn uninstall(&self, store: &Store, before: Vec<Revision>, told: &Notify) -> Result<(), HelmError> {
        let Some(newest) = before.last() else { return Ok(()) };
        let mut newest = newest.clone();
        newest.planted.deleted = Some(self.clock.wall());
        store.update(&mut newest, ReleaseStatus::Uninstalling).await?;
        let takes = self.state().takes;
        tokio::select! {
            biased;
            () = told.notified() => return Err(HelmError::new(HelmFailure::Stopped, "it was told to end")),
            () = sleep(takes) => {}
        }
        store.remove().await?;
        for revision in &before {
            store.delete(revision).await?;
        }
        Ok(())
    }
}

/// What Helm makes of a new revision on top of this one, if it does not refuse.
fn may_change(action: HelmAction, newest: Option<&Revision>) -> Result<ReleaseStatus, HelmError> {
    let other = |text: &str| Err(HelmError::new(HelmFailure::Other, text));
    match (action, newest.map(|newest| newest.status)) {
        (_, None) => Ok(ReleaseStatus::PendingInstall),
        (_, Some(status)) if status.is_under_way() && status != ReleaseStatus::Uninstalling => {
            let text = "another operation (install/upgrade/rollback) is in progress";
            Err(HelmError::new(HelmFailure::Busy, text))
        }
        (HelmAction::InstallReplace, Some(ReleaseStatus::Uninstalled | ReleaseStatus::Failed)) => {
            Ok(ReleaseStatus::PendingInstall)
        }
        (HelmAction::InstallReplace, Some(_)) => other("cannot re-use a name that is still in use"),
        (_, Some(ReleaseStatus::Deployed | ReleaseStatus::Failed | ReleaseStatus::Superseded)) => {
            Ok(ReleaseStatus::PendingUpgrade)
        }
        (_, Some(_)) => other("the release has no deployed releases"),
    }
}

impl Helm for StandInHelm {
    fn resolve<'a>(&'a self, chart: &'a ChartRef, _: &'a Leash) -> Boxed<'a, Result<String, HelmError>> {
        Box::pin(async move {
            self.note(chart, None);
            self.fetch(chart)
        })
    }

    fn run<'a>(
        &'a self,
        kubeconfig: &'a [u8],
        chart: &'a ChartRef,
        action: &'a HelmAction,
        leash: &'a Leash,
    ) -> Boxed<'a, Result<(), HelmError>> {
        Box::pin(async move {
            let Some(claim) = leash.may_begin() else {
                return Err(HelmError::new(
                    HelmFailure::Stopped,
                    "this replica does not lead, or is about to stop",
                ));
            };
            self.note(chart, Some(*action));
            if let Some(failure) = self.state().failures.pop_front() {
                return Err(HelmError::new(failure, "helm failed as it was told to"));
            }
            let limit = self.state().limit;
            let life = Life::new(claim, leash.now() + limit, GRACE, leash.spare());
            let told = Notify::new();
            let work = pin!(self.work(kubeconfig, chart, *action, &told));
            // Whoever is killed leaves everything as it is.
            match leash.hold(life, true, work, || told.notify_one()).await {
                (Some(Ok(())), _) => Ok(()),
                (Some(Err(why)), None) => Err(why),
                (_, why) => Err(why.unwrap_or(Ended::Lost).failure(action.name())),
            }
        })
    }

    fn check(&self) -> Boxed<'_, Result<String, HelmError>> {
        Box::pin(std::future::ready(Ok("stand-in".to_owned())))
    }
}

impl fmt::Debug for StandInHelm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StandInHelm").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
