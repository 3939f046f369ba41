//! Pools.

use serde_json::{Map, Value};

use super::{Moment, World};
use crate::{
    fields::{Fields, patch_labels},
    health::Health,
    history::PoolChange,
    refusal::Refusal,
    resources::Pool,
};

const ALGORITHMS: [&str; 3] = ["round_robin", "least_connections", "source_ip"];
const PROTOCOLS: [&str; 4] = ["tcp", "udp", "proxy", "proxyv2"];

impl World {
    pub(super) fn create_pool(&mut self, body: &Map<String, Value>, at: Moment) -> Result<String, Refusal> {
        let mut fields = Fields::new(body);
        let name = fields.required_text("name").to_owned();
        let balancer = fields.required_text("load_balancer").to_owned();
        let algorithm = fields.required_word("algorithm", &ALGORITHMS).to_owned();
        let protocol = fields.required_word("protocol", &PROTOCOLS).to_owned();
        let tags = fields.tags();
        fields.finish()?;
        self.built(&balancer, "load_balancer", at)?;
        let uuid = self.draw_id();
        self.touched(&balancer, at);
        let pool =
            Pool { uuid: uuid.clone(), name, created_at: at.wall, balancer, algorithm, protocol, tags };
        self.resources.pools.insert(uuid.clone(), pool);
        Ok(uuid)
    }

    /// The balancer of a pool that can have children.
    pub(super) fn balancer_of_built_pool(&self, pool: &str, at: Moment) -> Result<String, Refusal> {
        let Pool { balancer, .. } =
            self.resources.pools.get(pool).ok_or_else(|| Refusal::dangling("pool", pool))?;
        self.built(balancer, "pool", at)?;
        Ok(balancer.clone())
    }

    pub(super) fn update_pool(
        &mut self,
        id: &str,
        attribute: &str,
        value: &Value,
        at: Moment,
    ) -> Result<(), Refusal> {
        let pool = self.resources.pools.get_mut(id).ok_or_else(Refusal::not_found)?;
        patch_labels(attribute, value, Some(&mut pool.name), &mut pool.tags)?;
        self.touched_by_pool(id, at);
        Ok(())
    }

    pub(super) fn delete_pool(&mut self, id: &str, at: Moment) {
        self.touched_by_pool(id, at);
        self.remove_pool(id, at);
    }

    pub(super) fn touched_by_pool(&mut self, pool: &str, at: Moment) {
        if let Some(balancer) = self.resources.pools.get(pool).map(|pool| pool.balancer.clone()) {
            self.touched(&balancer, at);
        }
    }

    /// Deletes a pool with its members, its listeners and its monitor.
    pub(super) fn remove_pool(&mut self, id: &str, at: Moment) {
        self.with_members(id, true, at, |resources| {
            resources.members.retain(|_, member| member.pool != id);
            resources.listeners.retain(|_, listener| listener.pool.as_deref() != Some(id));
            resources.monitors.retain(|_, monitor| monitor.pool != id);
        });
        self.resources.pools.remove(id);
    }

    /// Changes the members of a pool and records how many there were before and after.
    pub(super) fn with_members(
        &mut self,
        pool: &str,
        gone: bool,
        at: Moment,
        change: impl FnOnce(&mut crate::Resources),
    ) {
        let health = Health::of(&self.resources);
        let serving = self.resources.members_of(pool).filter(|member| member.enabled);
        let (before, healthy_before) = serving.fold((0, 0), |(all, healthy), member| {
            (all + 1, healthy + usize::from(health.member(member) != "down"))
        });
        change(&mut self.resources);
        let after = self.resources.members_of(pool).filter(|member| member.enabled).count();
        let Some(Pool { name, balancer, .. }) = self.resources.pools.get(pool) else { return };
        if before == after && !gone {
            return;
        }
        let (pool, name, balancer) = (pool.to_owned(), name.clone(), balancer.clone());
        self.history.push(PoolChange {
            at: at.tick,
            pool,
            name,
            balancer,
            before,
            healthy_before,
            after,
            gone,
        });
    }
}
