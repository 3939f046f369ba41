//! Actions: what takes time, and what may wait for people.

use serde_json::{Value, json};

use super::{Moment, Reply, World, next};
use crate::{
    fields::Fields,
    refusal::Refusal,
    render,
    resources::{Action, Blocked, Effect},
};

/// What an action is about.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    pub(super) kind: &'static str,
    pub(super) id: i64,
    pub(super) region: Option<String>,
}

impl World {
    /// Starts an action that takes so long. What builds something can be blocked by a switch.
    pub(super) fn start(
        &mut self,
        kind: &str,
        subject: Subject,
        effect: Effect,
        (takes, fails): (std::time::Duration, bool),
        at: Moment,
    ) -> i64 {
        let switches = &self.settings.switches;
        let builds = matches!(kind, "create" | "create_load_balancer");
        let blocked =
            switches.blocking_invoice.map(Blocked::Invoice).or(switches.question.map(Blocked::Question));
        let id = next(&mut self.ids.action);
        let action = Action {
            id,
            kind: kind.to_owned(),
            status: "in-progress".to_owned(),
            started_at: at.wall,
            completed_at: None,
            resource_type: subject.kind.to_owned(),
            resource_id: subject.id,
            region: subject.region,
            started: at.tick,
            due: at.tick + takes,
            fails,
            blocked: blocked.filter(|_| builds),
            effect,
        };
        self.resources.actions.insert(id, action);
        id
    }

    /// Ends the actions that are due and not blocked.
    pub(super) fn finish_actions(&mut self, due: impl Fn(&Action) -> bool) {
        let ended: Vec<_> = self
            .resources
            .actions
            .values_mut()
            .filter(|action| action.status == "in-progress" && action.blocked.is_none() && due(action))
            .map(|action| {
                if action.fails { "errored" } else { "completed" }.clone_into(&mut action.status);
                let took = action.due.since(action.started);
                action.completed_at = Some(action.started_at.checked_add(took).unwrap_or(action.started_at));
                (action.effect, action.resource_id, action.fails)
            })
            .collect();
        for (effect, id, failed) in ended {
            self.take_effect(effect, id, failed);
        }
    }

    fn take_effect(&mut self, effect: Effect, id: i64, failed: bool) {
        match effect {
            Effect::Nothing => {}
            Effect::BalancerBuilt => {
                let ip = self.free_balancer_address();
                if let Some(balancer) = self.resources.balancers.get_mut(&id) {
                    if failed { "errored" } else { "active" }.clone_into(&mut balancer.status);
                    if !failed {
                        balancer.ip.get_or_insert(ip);
                    }
                }
            }
            Effect::ServerOn | Effect::ServerOff => {
                if let Some(server) = self.resources.servers.get_mut(&id).filter(|s| s.status != "archive") {
                    server.running = effect == Effect::ServerOn;
                    if server.running { "active" } else { "off" }.clone_into(&mut server.status);
                }
            }
        }
    }

    pub(super) fn action_links(base: &str, rel: &str, id: i64) -> Value {
        json!({"actions": [{"id": id, "rel": rel, "href": format!("{base}/v2/actions/{id}")}]})
    }

    /// One action; under a server only if it is about that.
    pub(super) fn show_action(&self, id: i64, server: Option<i64>) -> Result<Reply, Refusal> {
        let of_it = |action: &&Action| {
            server.is_none_or(|server| action.resource_type == "server" && action.resource_id == server)
        };
        let action = self.resources.actions.get(&id).filter(of_it).ok_or_else(Refusal::not_found)?;
        Ok(Reply::ok(json!({"action": render::action(action, &self.settings)})))
    }

    /// Answers the question that an action waits for.
    pub(super) fn proceed(&mut self, id: i64, body: &[u8], at: Moment) -> Result<Reply, Refusal> {
        let action = self.resources.actions.get_mut(&id).ok_or_else(Refusal::not_found)?;
        let mut fields = Fields::new(body)?;
        fields.require("proceed");
        let proceed = fields.flag("proceed").unwrap_or_default();
        fields.finish()?;
        if let Some(Blocked::Question(_)) = action.blocked {
            action.blocked = None;
            action.fails |= !proceed;
            action.due = action.due.max(at.tick);
        }
        Ok(Reply::done())
    }

    /// Lets everything go on that waits for people.
    pub(crate) fn unblock(&mut self, at: Moment) {
        for action in self.resources.actions.values_mut() {
            if action.blocked.take().is_some() {
                action.due = action.due.max(at.tick);
            }
        }
        self.advance(at.tick);
    }
}
