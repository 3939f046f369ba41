//! One pass over one cluster.
//!
//! ```text
//!   select ─► kubeconfig ─► chain, Secrets here ─► as before? one read in turn
//!                                               └► no: look ─► namespace, CA, map, Secrets ─► charts ─► label ─► restart
//! ```
//!
//! A failure of one part does not stop the others, unless they need it.

use std::time::Duration;

use cloudberth_core::Error;
use serde_json::{Value, json};

use super::{
    Api, Context,
    api::again,
    helm::Done,
    inputs::{Desired, Way},
    look::{self, Observed, PARTS, Part},
    memory::{Memory, Settled},
};
use crate::{
    config::{Chart, Config, Good},
    names::{CA_SECRET, INTERFACE_MAP, PROJECT_NAME, project_secret},
    plan::{
        Change, balancer, ca, map, restart, secret,
        select::{Selection, select},
    },
    problem::{Again, Problem, next_run},
    reasons::{CA_LEFT, CLUSTER_READY, OPTED_OUT, WRITE_FAILED},
    view::{ClusterView, text},
};

/// How a pass ended.
#[derive(Debug, Default)]
pub(super) struct Passed {
    /// What stands in the way.
    pub(super) problems: Vec<Problem>,
    /// Something was written.
    pub(super) wrote: bool,
}

impl Context {
    /// Works on a cluster; returns when it is to be worked on again, if it is.
    pub(super) async fn cluster_pass(&self, name: &str) -> Option<Duration> {
        let Some(cluster) = self.stores.cluster(name) else {
            let problem = self.gone(name).await;
            self.metrics.passed("cluster", if problem.is_some() { "error" } else { "gone" });
            let failures = self.memory(name).count(problem.is_some());
            let Some(problem) = problem else {
                self.forget(name);
                return None;
            };
            return Some(next_run(&[problem], &self.delays, self.delays.resync, failures));
        };
        let selection = select(&cluster);
        if selection != Selection::Enabled {
            if self.memory(name).take_part(false) && selection == Selection::NotEnabled {
                let text = "the label rancher-fip is no longer enabled; charts, secrets and floating IPs stay as they are";
                self.tell_cluster(&cluster, OPTED_OUT, text);
            }
            self.forget(name);
            return None;
        }
        let memory = self.memory(name);
        memory.take_part(true);
        let passed = match self.good() {
            Some(good) => self.enabled_pass(&cluster, &good, &memory).await,
            // Nobody leads without a configuration.
            None => return Some(self.delays.soon),
        };
        Some(self.conclude(&cluster, &memory, &passed))
    }

    /// Tells what is new, and says when the next pass is.
    fn conclude(&self, cluster: &ClusterView, memory: &Memory, passed: &Passed) -> Duration {
        let Passed { problems, wrote } = passed;
        let failing: Vec<_> = problems.iter().filter(|problem| problem.again != Again::Never).collect();
        let (phase, error) =
            failing.first().map_or(("ready", ""), |problem| ("failing", problem.reason.name()));
        self.metrics.phase(cluster.name(), phase, error);
        self.metrics.passed("cluster", if failing.is_empty() { "ok" } else { "error" });
        let recovered = memory.had_problems();
        self.tell_news(cluster, memory, problems);
        if failing.is_empty() && (*wrote || recovered) {
            self.tell_cluster(cluster, CLUSTER_READY, "charts, secrets and the interface map are in place");
        }
        let failures = memory.count(!failing.is_empty());
        let resync = self.random.jitter(self.delays.resync, 0.1);
        next_run(problems, &self.delays, resync, failures)
    }

    /// The pass over a cluster that takes part.
    pub(super) async fn enabled_pass(&self, cluster: &ClusterView, good: &Good, memory: &Memory) -> Passed {
        let mut passed = Passed::default();
        let provisioning = self.provisioning(cluster);
        let way = match self.way(cluster, provisioning.as_ref()).await {
            Ok(way) => way,
            Err(problem) => return Passed { problems: vec![problem], wrote: false },
        };
        let desired = self.desired(cluster, provisioning.as_ref(), good, memory, &mut passed.problems).await;
        let fingerprint = desired.fingerprint(cluster, &way);
        let api = match self.api_of(cluster.name(), &way, memory).await {
            Ok(api) => api,
            Err(problem) => {
                passed.problems.push(problem);
                return passed;
            }
        };
        match memory.settled().filter(|settled| settled.fingerprint == fingerprint) {
            Some(settled) => match self.glance(&api, &good.config, memory, settled).await {
                Ok(true) => return passed,
                Ok(false) => {}
                Err(problem) => {
                    passed.problems.push(problem);
                    return passed;
                }
            },
            None if memory.settled().is_some() => {
                // Something changed: what was remembered of Harvester may be old too.
                memory.forget_harvester();
            }
            None => {}
        }
        memory.settle(None);
        self.full_pass(cluster, &api, &way, &desired, memory, &mut passed).await;
        passed
    }

    /// Looks at the part whose turn it is, if it is time. False if it is not as it was.
    async fn glance(
        &self,
        api: &Api,
        config: &Config,
        memory: &Memory,
        settled: Settled,
    ) -> Result<bool, Problem> {
        let now = self.clock().now();
        // Jitter only adds to the wait between two passes, so every pass for want of others comes late enough.
        if now.since(settled.looked) < self.delays.resync {
            return Ok(true);
        }
        let Some((part, mark)) = settled.marks.get(settled.turn) else { return Ok(false) };
        let turn = (settled.turn + 1) % settled.marks.len().max(1);
        if *part == Part::Harvester {
            // It is read in the next pass, as a part of the chain.
            memory.forget_harvester();
            memory.settle(Some(Settled { turn, looked: now, ..settled }));
            return Ok(true);
        }
        let seen = Observed::look_at(*part, api, config).await?;
        if seen.as_deref() != Some(mark) {
            tracing::debug!(cluster = api.name(), ?part, "not as it was; looking at everything");
            return Ok(false);
        }
        memory.settle(Some(Settled { turn, looked: now, ..settled }));
        Ok(true)
    }

    /// Looks at everything, and brings it to what it should be.
    async fn full_pass(
        &self,
        cluster: &ClusterView,
        api: &Api,
        way: &Way,
        desired: &Desired,
        memory: &Memory,
        passed: &mut Passed,
    ) {
        let config = &desired.good.config;
        let seen = match Observed::look(api, config).await {
            Ok(seen) => seen,
            Err(problem) => return passed.problems.push(problem),
        };
        let before = passed.problems.len();
        let mut work = Work { ctx: self, api, desired, memory, seen, passed };
        if work.record_if_new().await {
            work.deliver(cluster).await;
            work.charts(cluster, &way.bytes).await;
            work.label().await;
            work.restart().await;
        }
        let Work { seen, .. } = work;
        let settled = passed.problems.iter().skip(before).all(|problem| problem.again == Again::Never);
        if settled && !self.is_dry() {
            let marks = PARTS.iter().filter_map(|part| match part {
                Part::Harvester => desired.label.as_ref().map(|_| (*part, String::new())),
                _ => seen.mark(*part, &config.controller.name).map(|mark| (*part, mark)),
            });
            memory.settle(Some(Settled {
                fingerprint: desired.fingerprint(cluster, way),
                marks: marks.collect(),
                turn: 0,
                looked: self.clock().now(),
            }));
        }
    }
}

/// The writing part of a pass.
struct Work<'a> {
    ctx: &'a Context,
    api: &'a Api,
    desired: &'a Desired,
    memory: &'a Memory,
    seen: Observed,
    passed: &'a mut Passed,
}

impl Work<'_> {
    fn target(&self) -> &str {
        &self.desired.good.config.controller.namespace
    }

    fn failed(&mut self, why: &Error) {
        let problem = Problem::new(WRITE_FAILED, again(why), why.message());
        self.passed.problems.push(problem);
    }

    /// Where nothing is recorded on the Deployment, its pods have read what is there now: that is recorded before anything
    /// of it changes. False if that failed; then nothing may be changed.
    async fn record_if_new(&mut self) -> bool {
        let name = self.desired.good.config.controller.name.clone();
        let Some(found) =
            self.seen.deployment(&name).filter(|found| restart::recorded(found).is_none()).cloned()
        else {
            return true;
        };
        let patch = restart::record(&found, &self.seen.read_hash());
        let label =
            format!("record on the Deployment {} what its pods have read", text(&found, "/metadata/name"));
        self.patch_deployment(&label, &found, &patch).await
    }

    async fn patch_deployment(&mut self, label: &str, found: &Value, patch: &Value) -> bool {
        let all = format!("/apis/apps/v1/namespaces/{}/deployments", self.target());
        match self.api.merge(label, &all, found, patch).await {
            Ok(written) => {
                self.passed.wrote = true;
                self.seen.put_deployment(written);
                true
            }
            Err(why) => {
                self.failed(&why);
                false
            }
        }
    }

    /// Makes sure that a namespace exists. It may have been made by somebody else meanwhile.
    async fn ensure_namespace(&mut self, name: &str) -> Result<Option<Value>, Error> {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        let change = Change::Create(namespace);
        let label = format!("create the namespace {name}");
        match self.api.apply(&label, "/api/v1/namespaces", &change).await {
            Err(why) if why.category() == cloudberth_core::Category::Conflict => {
                self.api.get("/api/v1/namespaces", name).await.known()
            }
            Ok(made) => {
                self.passed.wrote = true;
                Ok(made)
            }
            Err(why) => Err(why),
        }
    }

    /// The namespace, the CA, the interface map and the Secrets.
    async fn deliver(&mut self, cluster: &ClusterView) {
        let target = self.target().to_owned();
        if self.seen.namespace.is_none() {
            match self.ensure_namespace(&target).await {
                Ok(made) => self.seen.namespace = made,
                Err(why) => return self.failed(&why),
            }
        }
        let authority = self.desired.good.ca.as_deref();
        let existing = self.seen.secret(CA_SECRET);
        if ca::is_left(existing, authority) {
            let text = "there is no CA here any more; the copy in the cluster stays";
            self.passed.problems.push(Problem::new(CA_LEFT, Again::Never, text));
        }
        let change = ca::plan(existing, &target, authority);
        self.write_secret(CA_SECRET, &change).await;
        self.deliver_map(&target).await;
        let config = &self.desired.good.config;
        let label = cluster.body.balancer.as_deref();
        let choice = balancer::choose(label, config, self.seen.installed());
        for delivery in &self.desired.deliveries {
            let name = project_secret(&delivery.project);
            let exists = |pool: &str| self.desired.pools.iter().any(|known| known == pool);
            let change =
                secret::downstream(self.seen.secret(&name), &target, delivery, choice.secret, exists);
            self.write_secret(&name, &change).await;
        }
    }

    async fn write_secret(&mut self, name: &str, change: &Change) {
        let target = self.target().to_owned();
        let path = format!("/api/v1/namespaces/{target}/secrets");
        match self.api.apply(&label(change, "Secret", &target, name), &path, change).await {
            Ok(Some(written)) => {
                self.passed.wrote = true;
                self.seen.put_secret(written);
            }
            Ok(None) => {}
            Err(why) => self.failed(&why),
        }
    }

    async fn deliver_map(&mut self, target: &str) {
        let Some(wanted) = &self.desired.map else { return };
        let exists = |pool: &str| self.desired.pools.iter().any(|known| known == pool);
        let entries = map::entries(wanted, self.seen.map.as_ref(), exists);
        let pools: Vec<_> = self.desired.deliveries.iter().map(|delivery| delivery.pool.clone()).collect();
        self.passed.problems.extend(map::oddities(&entries, &pools));
        let change = map::plan(self.seen.map.as_ref(), target, &entries);
        let path = format!("/api/v1/namespaces/{target}/configmaps");
        match self.api.apply(&label(&change, "ConfigMap", target, INTERFACE_MAP), &path, &change).await {
            Ok(Some(written)) => {
                self.passed.wrote = true;
                self.seen.map = Some(written);
            }
            Ok(None) => {}
            Err(why) => self.failed(&why),
        }
    }

    /// The controller's chart first, then that of the balancer.
    async fn charts(&mut self, cluster: &ClusterView, kubeconfig: &[u8]) {
        if self.seen.namespace.is_none() {
            return;
        }
        let Config { controller, .. } = &self.desired.good.config;
        let seen = self.seen.controller.clone();
        let (done, problem) = self.chart(kubeconfig, controller, seen).await;
        self.seen.controller = done.release;
        if done.ran {
            self.look_at_deployments().await;
            // Its pods have started with what is there now.
            self.record_if_new().await;
        }
        let choice = balancer::choose(
            cluster.body.balancer.as_deref(),
            &self.desired.good.config,
            self.seen.installed(),
        );
        self.passed.problems.extend(choice.problem);
        for unknown in [&self.seen.purelb, &self.seen.metallb] {
            self.passed.problems.extend(unknown.as_ref().err().cloned());
        }
        if let Some(problem) = problem {
            return self.passed.problems.push(problem);
        }
        let Some(kind) = choice.install else { return };
        let chart = kind.chart(&self.desired.good.config);
        if chart.namespace != *self.target()
            && let Err(why) = self.ensure_other_namespace(&chart.namespace).await
        {
            return self.failed(&why);
        }
        let seen = self.seen.balancer(kind).clone();
        let (done, problem) = self.chart(kubeconfig, chart, seen).await;
        match kind {
            balancer::Kind::PureLb => self.seen.purelb = done.release,
            balancer::Kind::MetalLb => self.seen.metallb = done.release,
        }
        self.passed.problems.extend(problem);
    }

    async fn ensure_other_namespace(&mut self, name: &str) -> Result<(), Error> {
        if self.api.get("/api/v1/namespaces", name).await.known()?.is_none() {
            self.ensure_namespace(name).await?;
        }
        Ok(())
    }

    async fn chart(
        &mut self,
        kubeconfig: &[u8],
        chart: &Chart,
        seen: look::Release,
    ) -> (Done, Option<Problem>) {
        let (done, problem) = self.ctx.chart(self.api, kubeconfig, chart, seen, self.memory).await;
        self.passed.wrote |= done.ran;
        (done, problem)
    }

    async fn look_at_deployments(&mut self) {
        match look::deployments(self.api, self.target()).await {
            Ok(found) => self.seen.deployments = found,
            Err(problem) => self.passed.problems.push(problem),
        }
    }

    /// The project label of the namespace, for a cluster on Harvester.
    async fn label(&mut self) {
        let Some(project) =
            self.desired.label.as_deref().filter(|project| self.seen.label() != Some(*project))
        else {
            return;
        };
        // Whoever reads the label finds the Secret of the project.
        if self.seen.secret(&project_secret(project)).is_none() {
            return;
        }
        let Some(namespace) = self.seen.namespace.clone() else { return };
        let metadata = json!({"uid": text(&namespace, "/metadata/uid"),
            "resourceVersion": text(&namespace, "/metadata/resourceVersion"), "labels": {PROJECT_NAME: project}});
        let label = format!("label the namespace {} with the project {project}", self.target());
        match self.api.merge(&label, "/api/v1/namespaces", &namespace, &json!({"metadata": metadata})).await {
            Ok(written) => {
                self.passed.wrote = true;
                self.seen.namespace = Some(written);
            }
            Err(why) => self.failed(&why),
        }
    }

    /// Restarts the controller if its pods have read something else.
    async fn restart(&mut self) {
        let name = self.desired.good.config.controller.name.clone();
        let Some(found) = self.seen.deployment(&name).cloned() else {
            tracing::debug!(
                cluster = self.api.name(),
                "there is no Deployment of the load-balancer controller to restart"
            );
            return;
        };
        let hash = self.seen.read_hash();
        if restart::recorded(&found).is_none_or(|recorded| recorded == hash) {
            return;
        }
        let now = self.ctx.clock().wall();
        let now = jiff::Timestamp::from_second(now.as_second()).unwrap_or(now).to_string();
        let label = format!(
            "restart the Deployment {}: what it reads at its start has changed",
            text(&found, "/metadata/name")
        );
        self.patch_deployment(&label, &found, &restart::restart(&found, &hash, &now)).await;
    }
}

fn label(change: &Change, kind: &str, namespace: &str, name: &str) -> String {
    let verb = if matches!(change, Change::Create(_)) { "create" } else { "correct" };
    format!("{verb} the {kind} {namespace}/{name}")
}
