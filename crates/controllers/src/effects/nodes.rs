//! What the controllers of nodes and routes do: live, or only put down in words.

use std::sync::{Arc, Mutex};

use cloudberth_core::{
    Call, Error, Lookup, NodeView, Result, Tick,
    decide::node::{patch::NodePatch, taints},
    lb::{Impact, Notice},
    provider::Routes,
    route::{RouteChange, RouteData},
};
use cloudberth_runtime::{cluster::Cluster, recorder::Event};

use crate::{
    context::ControllerContext,
    dry_run::{DryRun, words},
    lock,
};

/// Everything that a sync of nodes or routes changes or says.
pub(crate) trait Effects: Send + Sync {
    /// The time at which is decided.
    fn now(&self) -> Tick;

    /// The node as it is now, past the store.
    fn read_node(&self, call: &Call, name: &str) -> impl Future<Output = Lookup<NodeView>> + Send;

    /// Writes to a node, and answers with the node as it is then.
    fn patch_node(
        &self,
        call: &Call,
        node: &NodeView,
        patch: &NodePatch,
    ) -> impl Future<Output = Result<Arc<NodeView>>> + Send;

    /// Deletes a node as it was just read.
    fn delete_node(&self, call: &Call, node: &NodeView) -> impl Future<Output = Result<()>> + Send;

    /// Creates and deletes routes; the answers are in the order of the changes.
    fn apply_routes(
        &self,
        call: &Call,
        routes: &dyn Routes,
        listed: Option<&RouteData>,
        changes: &[RouteChange],
    ) -> impl Future<Output = Vec<Result<Vec<Notice>>>> + Send;

    /// Publishes an event about a node, and logs it.
    fn publish(&self, event: Event);

    /// Nothing more is done before something else happens; the event says so to people.
    fn wait(&self, why: &str, event: Option<Event>);

    /// Something that a person who reads a plan should know, and that is not worth an event.
    fn remark(&self, _text: &str) {}

    /// The cloud did not say what it takes to decide.
    fn unknown(&self, _why: &Error) {}
}

/// Carries everything out.
pub(crate) struct Live<'a>(pub(crate) &'a ControllerContext);

impl Effects for Live<'_> {
    fn now(&self) -> Tick {
        self.0.clock().now()
    }

    async fn read_node(&self, call: &Call, name: &str) -> Lookup<NodeView> {
        self.0.cluster.read_node(call, name).await
    }

    async fn patch_node(&self, call: &Call, node: &NodeView, patch: &NodePatch) -> Result<Arc<NodeView>> {
        self.0.cluster.patch_node(call, &node.name, patch).await
    }

    async fn delete_node(&self, call: &Call, node: &NodeView) -> Result<()> {
        self.0.cluster.delete_node(call, node).await
    }

    async fn apply_routes(
        &self,
        call: &Call,
        routes: &dyn Routes,
        listed: Option<&RouteData>,
        changes: &[RouteChange],
    ) -> Vec<Result<Vec<Notice>>> {
        routes.apply(call, listed, changes).await
    }

    fn publish(&self, event: Event) {
        self.0.recorder.publish(event);
    }

    fn wait(&self, _why: &str, event: Option<Event>) {
        if let Some(event) = event {
            self.publish(event);
        }
    }
}

/// Writes nothing: it puts down what would be done about one node, or about the routes of one cloud, and answers as if
/// it had been.
pub(crate) struct Dry<'a> {
    cluster: &'a Cluster,
    now: Tick,
    /// The steps are about one node, so they need not name it.
    one_node: bool,
    run: Mutex<DryRun>,
}

impl<'a> Dry<'a> {
    /// About one node.
    pub(crate) fn node(cluster: &'a Cluster, cloud: Option<&str>, now: Tick) -> Self {
        let run = DryRun { cloud: cloud.map(str::to_owned), ..DryRun::default() };
        Self { cluster, now, one_node: true, run: Mutex::new(run) }
    }

    /// About the routes of a cloud.
    pub(crate) fn routes(cluster: &'a Cluster, cloud: &str) -> Self {
        Self { one_node: false, ..Self::node(cluster, Some(cloud), cluster.clock().now()) }
    }

    /// Time passes, and nothing else happens.
    pub(crate) fn advance(&mut self, to: Tick) {
        self.now = to;
    }

    /// What was put down.
    pub(crate) fn finish(self) -> DryRun {
        self.run.into_inner().unwrap_or_default()
    }
}

impl Effects for Dry<'_> {
    fn now(&self) -> Tick {
        self.now
    }

    async fn read_node(&self, _: &Call, name: &str) -> Lookup<NodeView> {
        let node = self.cluster.nodes.get(&name.to_owned());
        node.map_or(Lookup::Absent, |node| Lookup::Present(NodeView::clone(&node)))
    }

    async fn patch_node(&self, _: &Call, node: &NodeView, patch: &NodePatch) -> Result<Arc<NodeView>> {
        let after = patch.assume(node);
        // Connections may use an address that is replaced; a node that waits for its cloud has none yet.
        let replaces = after.addresses != node.addresses && !node.has_taint(taints::UNINITIALISED);
        let impact = if replaces { Impact::Minimal } else { Impact::None };
        let subject = if self.one_node { String::new() } else { format!("on node {}, ", node.name) };
        lock(&self.run).step(impact, subject + &words::node(node, patch));
        Ok(Arc::new(after))
    }

    async fn delete_node(&self, _: &Call, _: &NodeView) -> Result<()> {
        let label = "delete the node after a second confirmation that its instance is gone";
        lock(&self.run).step(Impact::None, label);
        Ok(())
    }

    async fn apply_routes(
        &self,
        _: &Call,
        _: &dyn Routes,
        _: Option<&RouteData>,
        changes: &[RouteChange],
    ) -> Vec<Result<Vec<Notice>>> {
        for change in changes {
            let (impact, label) = match change {
                RouteChange::Delete(route) => {
                    let target = route.target.as_deref().unwrap_or("nowhere");
                    (Impact::Minimal, format!("delete the route of {} to {target}", route.destination))
                }
                RouteChange::Create(route) => {
                    (Impact::None, format!("create a route of {} to {}", route.destination, route.node))
                }
            };
            lock(&self.run).step(impact, label);
        }
        vec![Ok(Vec::new()); changes.len()]
    }

    /// Warnings are what people would be told; everything else is said by the steps.
    fn publish(&self, event: Event) {
        if event.warning {
            self.remark(&event.message);
        }
    }

    fn wait(&self, why: &str, _: Option<Event>) {
        lock(&self.run).waits = Some(why.to_owned());
    }

    fn remark(&self, text: &str) {
        lock(&self.run).remarks.push(text.to_owned());
    }

    fn unknown(&self, why: &Error) {
        lock(&self.run).unknown = Some(why.clone());
    }
}
