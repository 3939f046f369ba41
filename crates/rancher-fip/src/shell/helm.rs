//! A chart, from what is known about its release to the release as it should be.

use super::{
    Api, Context,
    look::{Release, release},
    memory::Memory,
};
use crate::{
    config::Chart,
    helm::{ChartRef, HelmAction, HelmDecision, HelmError, HelmFailure, decide},
    problem::{Again, Problem},
    reasons::{HELM_FAILED, HELM_WAITING},
};

/// How many decisions one pass takes about a release: a recovery has two or three steps.
const ROUNDS: usize = 6;

/// What became of a chart.
#[derive(Debug)]
pub(super) struct Done {
    /// The release now.
    pub(super) release: Release,
    /// Helm was started.
    pub(super) ran: bool,
}

impl Context {
    /// Brings the release of a chart to what is configured, one decision at a time. `seen` is what was read of it.
    pub(super) async fn chart(
        &self,
        api: &Api,
        kubeconfig: &[u8],
        chart: &Chart,
        seen: Release,
        memory: &Memory,
    ) -> (Done, Option<Problem>) {
        let mut done = Done { release: seen, ran: false };
        let problem = self.rounds(api, kubeconfig, chart, memory, &mut done).await;
        (done, problem.err())
    }

    async fn rounds(
        &self,
        api: &Api,
        kubeconfig: &[u8],
        chart: &Chart,
        memory: &Memory,
        done: &mut Done,
    ) -> Result<(), Problem> {
        let what =
            ChartRef::new(&chart.name, &chart.reference, &chart.version, &chart.namespace, &chart.values);
        let id = format!("{}/{}", chart.namespace, chart.name);
        let mut resolved: Option<String> = None;
        for _ in 0..ROUNDS {
            let state = done.release.clone()?;
            let revision = state.as_ref().map_or(0, |state| state.revision);
            let ours = memory.began(&id, revision);
            let now = self.clock().wall();
            match decide(&what, state.as_ref(), resolved.as_deref(), now, ours, self.delays.helm_stale) {
                HelmDecision::Skip => return Ok(()),
                HelmDecision::Resolve => {
                    let _slot = self.helm_slots.acquire().await;
                    let found = self.helm.resolve(&what, &self.leash).await;
                    resolved = Some(found.map_err(|why| failed(chart, &why))?);
                }
                HelmDecision::Wait { why, .. } => {
                    return Err(Problem::new(HELM_WAITING, Again::Soon, format!("the release {id}: {why}")));
                }
                HelmDecision::Report { why, .. } => {
                    return Err(Problem::new(HELM_WAITING, Again::Slow, format!("the release {id}: {why}")));
                }
                HelmDecision::DeleteRecord { record, uid, resource_version } => {
                    let path = format!("/api/v1/namespaces/{}/secrets", record.namespace);
                    let label = format!("delete the abandoned Helm record {record}");
                    let deleted = api.delete(&label, &path, &record.name, &uid, &resource_version).await;
                    deleted
                        .map_err(|why| Problem::new(HELM_FAILED, super::api::again(&why), why.message()))?;
                    if self.is_dry() {
                        return Ok(());
                    }
                    done.release = release(api, chart).await;
                }
                HelmDecision::Run(action) => {
                    let label = label(action, chart, resolved.as_deref());
                    if !api.effects().step(api.name(), &label) {
                        return Ok(());
                    }
                    memory.begins(&id, revision);
                    done.ran = true;
                    self.run(kubeconfig, &what, action).await.map_err(|why| failed(chart, &why))?;
                    done.release = release(api, chart).await;
                }
            }
        }
        Err(Problem::new(HELM_FAILED, Again::SlowBackoff, format!("the release {id} does not come to rest")))
    }

    async fn run(&self, kubeconfig: &[u8], what: &ChartRef, action: HelmAction) -> Result<(), HelmError> {
        let _slot = self.helm_slots.acquire().await;
        let began = self.clock().now();
        let ended = self.helm.run(kubeconfig, what, &action, &self.leash).await;
        let result = ended.as_ref().err().map_or("ok", |why| why.failure.label());
        self.metrics.helm(action.name(), result, self.clock().now().since(began));
        ended
    }
}

/// The step for people.
fn label(action: HelmAction, chart: &Chart, resolved: Option<&str>) -> String {
    let version = resolved.unwrap_or(&chart.version);
    let version = if version.is_empty() { "newest" } else { version };
    let id = format!("{}/{}", chart.namespace, chart.name);
    match action {
        HelmAction::Install | HelmAction::InstallReplace => {
            format!("install the chart {} {version} as {id}", chart.name)
        }
        HelmAction::Upgrade => format!("upgrade the release {id} to {version}"),
        HelmAction::Rollback { to } => format!("roll the release {id} back to revision {to}"),
        HelmAction::Uninstall => format!("uninstall the release {id}"),
    }
}

fn failed(chart: &Chart, why: &HelmError) -> Problem {
    let again = match why.failure {
        HelmFailure::Unreachable | HelmFailure::Unauthorised => Again::Unreachable,
        // If this program goes on after all, because the claim was renewed late, so does the work.
        HelmFailure::Busy | HelmFailure::Missing | HelmFailure::Stopped => Again::Soon,
        HelmFailure::Rejected => Again::Slow,
        HelmFailure::Fetch | HelmFailure::TimedOut | HelmFailure::Local | HelmFailure::Other => {
            Again::SlowBackoff
        }
    };
    Problem::new(HELM_FAILED, again, format!("the chart {}: {}", chart.name, why.message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_of_helm_is_tried_again_as_it_deserves() {
        let chart = Chart { name: "lb".to_owned(), ..Chart::default() };
        let table = [
            ("RF-48", HelmFailure::Unreachable, Again::Unreachable),
            ("RF-47", HelmFailure::Unauthorised, Again::Unreachable),
            ("RF-72", HelmFailure::Busy, Again::Soon),
            ("RF-71", HelmFailure::Fetch, Again::SlowBackoff),
            ("RF-73", HelmFailure::TimedOut, Again::SlowBackoff),
            ("a mistake in values", HelmFailure::Rejected, Again::Slow),
            ("RF-75", HelmFailure::Stopped, Again::Soon),
        ];
        for (case, failure, want) in table {
            let problem = failed(&chart, &HelmError::new(failure, "why"));
            assert_eq!(problem.again, want, "{case}");
            assert_eq!(problem.message, "the chart lb: why");
        }
    }
}
