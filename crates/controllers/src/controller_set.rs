//! The controllers of one term of leadership.

use std::{pin::pin, sync::Arc, time::Duration};

use cloudberth_core::Result;
use futures_util::future::{BoxFuture, FutureExt, join_all};

use crate::{
    context::ControllerContext,
    lifecycle::{LifecycleController, LifecycleSettings},
    node::{NodeController, NodeSettings},
    routes::{RouteController, RouteSettings},
    service::{ServiceController, ServiceSettings},
};

/// Which controllers run, and how; `None` for one that was switched off.
#[derive(Clone, Debug, Default)]
pub struct ControllerSettings {
    /// `cloud-node-controller`.
    pub node: Option<NodeSettings>,
    /// `cloud-node-lifecycle-controller`.
    pub lifecycle: Option<LifecycleSettings>,
    /// `service-lb-controller`.
    pub service: Option<ServiceSettings>,
    /// `node-route-controller`.
    pub routes: Option<RouteSettings>,
}

/// A controller that was started.
struct Member {
    /// The name in `running_managed_controllers`.
    name: &'static str,
    run: Box<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>,
    close: Box<dyn Fn() + Send + Sync>,
}

/// The controllers of one term of leadership. Nothing is carried over to the set of the next term.
pub struct ControllerSet {
    ctx: ControllerContext,
    members: Vec<Member>,
}

fn member<C, F>(name: &'static str, controller: Arc<C>, run: fn(Arc<C>) -> F, close: fn(&C)) -> Member
where
    C: Send + Sync + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let closes = Arc::clone(&controller);
    Member {
        name,
        run: Box::new(move || run(Arc::clone(&controller)).boxed()),
        close: Box::new(move || close(&closes)),
    }
}

impl ControllerSet {
    /// A set that does nothing before [`run`](Self::run). A controller for which no cloud has anything to do is left out
    /// with a warning; one whose settings make no sense is an error.
    pub fn new(ctx: &ControllerContext, settings: &ControllerSettings) -> Result<Self> {
        let mut members = Vec::new();
        if let Some(settings) = settings.node {
            match NodeController::new(ctx.clone(), settings) {
                Ok(controller) => {
                    members.push(member(
                        "cloud-node",
                        controller,
                        NodeController::run,
                        NodeController::close,
                    ));
                }
                Err(why) => tracing::warn!(%why, "the node controller does not run"),
            }
        }
        if let Some(settings) = settings.lifecycle {
            let controller = LifecycleController::new(ctx.clone(), settings);
            let (run, close) = (LifecycleController::run, LifecycleController::close);
            members.push(member("cloud-node-lifecycle", controller, run, close));
        }
        if let Some(settings) = settings.service.clone() {
            let controller = ServiceController::new(ctx.clone(), settings);
            members.push(member("service", controller, ServiceController::run, ServiceController::close));
        }
        if let Some(settings) = &settings.routes
            && let Some(controller) = RouteController::new(ctx.clone(), settings)?
        {
            members.push(member("route", controller, RouteController::run, RouteController::close));
        }
        Ok(Self { ctx: ctx.clone(), members })
    }

    /// The names of those that run.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.members.iter().map(|member| member.name)
    }

    /// Works until every controller was closed, or until it is dropped, which is safe at any moment.
    pub async fn run(&self) {
        let _running = Running::new(self);
        self.ctx.clouds.iter().for_each(|cloud| cloud.inventory.forget());
        let members = join_all(self.members.iter().map(|member| (member.run)()));
        let clouds = self.ctx.clouds.with_instances();
        // Where no cloud has instances there is nothing to watch, and that must not end the others.
        let watching = join_all(clouds.map(|cloud| cloud.inventory.watch_over(&self.ctx.random)))
            .then(|_| std::future::pending::<()>());
        tokio::select! {
            biased;
            _ = members => {}
            () = watching => {}
        }
    }

    /// Works until `stop`, then begins nothing more and gives what is under way `grace` to end. Answers whether it did.
    pub async fn run_until(&self, stop: impl Future<Output = ()>, grace: Duration) -> bool {
        let mut run = pin!(self.run());
        tokio::select! {
            biased;
            () = stop => self.close(),
            () = &mut run => return true,
        }
        let ended = tokio::time::timeout(grace, run).await.is_ok();
        if !ended {
            tracing::warn!("work under way did not end in time; it is taken up by the next leader");
        }
        ended
    }

    /// No new work is begun; [`run`](Self::run) ends when what is under way is over.
    pub fn close(&self) {
        self.members.iter().for_each(|member| (member.close)());
    }
}

/// Keeps `running_managed_controllers` true.
struct Running<'a>(&'a ControllerSet);

impl<'a> Running<'a> {
    fn new(controllers: &'a ControllerSet) -> Self {
        controllers.names().for_each(|name| controllers.ctx.metrics.manager.set_running(name, true));
        Self(controllers)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.names().for_each(|name| self.0.ctx.metrics.manager.set_running(name, false));
    }
}

impl std::fmt::Debug for ControllerSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}
