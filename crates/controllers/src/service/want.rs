//! Everything that the wish of a Service consists of. A turn and its dry_run start from the same one.

use std::sync::Arc;

use cloudberth_core::{
    LoadBalancers, NodeView, ServiceView,
    lb::{Backend, Desired, Goal, LockKey},
};

use super::ServiceController;
use crate::lock;

impl ServiceController {
    /// What `service` wants of the cloud called `provider`, with those of `nodes` that belong behind its load balancer.
    pub(super) fn want(
        &self,
        balancers: &dyn LoadBalancers,
        provider: &str,
        goal: Goal,
        service: Arc<ServiceView>,
        keys: &[LockKey],
        nodes: &[Arc<NodeView>],
    ) -> Desired {
        let backend = |node| Backend { node, local_endpoint: None };
        let members = self.members_for(balancers, provider, goal, &service, nodes);
        let rivals = lock(&self.index).rivals(&service.key(), provider, keys);
        Desired {
            service,
            cluster: self.ctx.cluster_name.clone(),
            goal,
            backends: members.into_iter().map(backend).collect(),
            rivals,
        }
    }

    /// Those of `nodes` that a Service wants behind its load balancer; none behind one that has to go.
    pub(super) fn members_for(
        &self,
        balancers: &dyn LoadBalancers,
        provider: &str,
        goal: Goal,
        service: &ServiceView,
        nodes: &[Arc<NodeView>],
    ) -> Vec<Arc<NodeView>> {
        if goal == Goal::Gone {
            return Vec::new();
        }
        // A selector that cannot be read is refused by the plan, which then keeps the nodes that are there.
        let selector = balancers.selector(service).ok().flatten();
        self.members(provider, selector.as_ref(), nodes)
    }
}
