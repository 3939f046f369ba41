//! Load balancers. Their names are not unique, and what a PUT leaves out goes back to its default.

use serde_json::{Map, Value, json};

use super::{Call, Moment, Reply, World, actions::Subject, next, servers::no_choice};
use crate::{
    fields::Fields,
    history::PoolChange,
    refusal::Refusal,
    render,
    resources::{Balancer, Effect, HealthCheck},
    settings::{REGIONS, is_region},
};

/// The protocols of rules.
const RULES: [&str; 2] = ["http", "https"];
/// The protocols of health checks.
const CHECKS: [&str; 3] = ["http", "https", "both"];

/// What a body asks of a balancer, with defaults for what it leaves out.
#[derive(Debug)]
struct Wanted {
    name: String,
    rules: Vec<String>,
    health_check: HealthCheck,
    server_ids: Vec<i64>,
}

impl World {
    /// A balancer that can be read already.
    pub(super) fn balancer(&self, id: i64, at: Moment) -> Result<&Balancer, Refusal> {
        let balancer = self.resources.balancers.get(&id).filter(|balancer| balancer.visible <= at.tick);
        balancer.ok_or_else(Refusal::not_found)
    }

    pub(super) fn create_balancer(&mut self, call: Call<'_>) -> Result<Reply, Refusal> {
        let at = call.at;
        let mut fields = Fields::new(call.body)?;
        let region = fields.text("region");
        if let Some(region) = region.as_deref().filter(|region| !is_region(region)) {
            fields.mistake("region", no_choice(region, REGIONS.iter().map(|(slug, _)| *slug)));
        }
        if self.resources.balancers.len() >= self.settings.limits.balancers {
            fields.mistake("name", "The limit of load balancers of your account is reached.");
        }
        let Wanted { name, rules, health_check, server_ids } = self.wanted(&mut fields, region.as_deref());
        fields.finish()?;
        let id = next(&mut self.ids.balancer);
        let switches = &self.settings.switches;
        let balancer = Balancer {
            id,
            name,
            ip: (!switches.ip_when_active).then(|| self.free_balancer_address()),
            status: "new".to_owned(),
            created_at: at.wall,
            rules,
            health_check,
            region: region.clone(),
            server_ids,
            visible: at.tick + switches.visible_after,
        };
        let takes = (self.settings.build, switches.build_fails);
        let shown = render::balancer(&balancer);
        self.note_pool(&balancer, 0, false, at);
        if self.resources.balancers.values().any(|other| other.name == balancer.name) {
            self.doubled.push(balancer.name.clone());
        }
        self.resources.balancers.insert(id, balancer);
        let subject = Subject { kind: "load-balancer", id, region };
        let action = self.start("create_load_balancer", subject, Effect::BalancerBuilt, takes, at);
        let links = Self::action_links(call.base, "create_load_balancer", action);
        Ok(Reply::ok(json!({"load_balancer": shown, "links": links})))
    }

    pub(super) fn update_balancer(&mut self, id: i64, call: Call<'_>) -> Result<Reply, Refusal> {
        let at = call.at;
        let mut balancer = self.balancer(id, at)?.clone();
        let mut fields = Fields::new(call.body)?;
        let wanted = self.wanted(&mut fields, balancer.region.as_deref());
        fields.finish()?;
        let before = balancer.server_ids.len();
        let Wanted { name, rules, health_check, server_ids } = wanted;
        (balancer.name, balancer.rules) = (name, rules);
        (balancer.health_check, balancer.server_ids) = (health_check, server_ids);
        let (shown, region) = (render::balancer(&balancer), balancer.region.clone());
        self.note_pool(&balancer, before, false, at);
        self.resources.balancers.insert(id, balancer);
        let links = if self.settings.switches.no_update_link {
            Value::Null
        } else {
            let subject = Subject { kind: "load-balancer", id, region };
            let takes = (self.settings.boot, false);
            let action = self.start("update_load_balancer", subject, Effect::Nothing, takes, at);
            Self::action_links(call.base, "update_load_balancer", action)
        };
        Ok(Reply::ok(json!({"load_balancer": shown, "links": links})))
    }

    pub(super) fn delete_balancer(&mut self, id: i64, at: Moment) -> Result<Reply, Refusal> {
        self.balancer(id, at)?;
        self.remove_balancer(id, at);
        Ok(Reply::done())
    }

    /// Servers stay as they are; a list may show the balancer for a while.
    pub(crate) fn remove_balancer(&mut self, id: i64, at: Moment) {
        let Some(mut balancer) = self.resources.balancers.remove(&id) else { return };
        let listed = self.settings.switches.listed_after_delete;
        if !listed.is_zero() {
            self.resources.ghosts.push((at.tick + listed, balancer.clone()));
        }
        let before = std::mem::take(&mut balancer.server_ids).len();
        self.note_pool(&balancer, before, true, at);
    }

    pub(super) fn change_servers(
        &mut self,
        id: i64,
        body: &[u8],
        add: bool,
        at: Moment,
    ) -> Result<Reply, Refusal> {
        let mut balancer = self.balancer(id, at)?.clone();
        let before = balancer.server_ids.len();
        let mut fields = Fields::new(body)?;
        fields.require("server_ids");
        let ids = if add {
            self.wanted_servers(&mut fields, balancer.region.as_deref())
        } else {
            fields.integers("server_ids").unwrap_or_default()
        };
        let odd: Vec<_> = ids.iter().filter(|id| balancer.server_ids.contains(id) == add).collect();
        if self.settings.switches.strict_members && !odd.is_empty() {
            let why = if add { "in the pool already" } else { "not in the pool" };
            fields.mistake("server_ids", format!("Servers {odd:?} are {why}."));
        }
        fields.finish()?;
        if add {
            balancer.server_ids.extend(ids);
            balancer.server_ids = once(balancer.server_ids);
        } else {
            balancer.server_ids.retain(|member| !ids.contains(member));
        }
        self.note_pool(&balancer, before, false, at);
        self.resources.balancers.insert(id, balancer);
        Ok(Reply::done())
    }

    pub(super) fn change_rules(
        &mut self,
        id: i64,
        body: &[u8],
        add: bool,
        at: Moment,
    ) -> Result<Reply, Refusal> {
        let mut balancer = self.balancer(id, at)?.clone();
        let mut fields = Fields::new(body)?;
        fields.require("forwarding_rules");
        let rules = wanted_rules(&mut fields).unwrap_or_default();
        if add {
            balancer.rules.extend(rules);
            balancer.rules = once(balancer.rules);
        } else {
            balancer.rules.retain(|rule| !rules.contains(rule));
        }
        check_both(&mut fields, &balancer.rules, &balancer.health_check.protocol);
        fields.finish()?;
        self.resources.balancers.insert(id, balancer);
        Ok(Reply::done())
    }

    fn wanted(&self, fields: &mut Fields, region: Option<&str>) -> Wanted {
        fields.required_text("name");
        let name = fields.host_name("name").unwrap_or_default();
        let rules = wanted_rules(fields).unwrap_or_else(|| vec!["http".to_owned()]);
        let health_check = wanted_check(fields, &rules);
        check_both(fields, &rules, &health_check.protocol);
        Wanted { name, rules, health_check, server_ids: self.wanted_servers(fields, region) }
    }

    /// The servers that a body names, each once.
    fn wanted_servers(&self, fields: &mut Fields, region: Option<&str>) -> Vec<i64> {
        let ids = once(fields.integers("server_ids").unwrap_or_default());
        for id in &ids {
            match self.resources.servers.get(id) {
                None => fields.mistake("server_ids", format!("There is no server {id}.")),
                Some(server)
                    if !self.settings.switches.any_region
                        && region.is_some_and(|region| region != server.region) =>
                {
                    fields.mistake("server_ids", format!("Server {id} is in another region."));
                }
                Some(_) => {}
            }
        }
        ids
    }

    fn note_pool(&mut self, balancer: &Balancer, before: usize, gone: bool, at: Moment) {
        let after = balancer.server_ids.len();
        if before != after {
            let (at, name) = (at.tick, balancer.name.clone());
            self.history.push(PoolChange { at, balancer: balancer.id, name, before, after, gone });
        }
    }
}

/// The protocols of the rules that a body names, each once.
fn wanted_rules(fields: &mut Fields) -> Option<Vec<String>> {
    let objects = fields.objects("forwarding_rules")?;
    let rules = objects.iter().map(|rule| {
        word(fields, rule, "entry_protocol", &RULES).unwrap_or_else(|| {
            if rule.get("entry_protocol").is_none_or(Value::is_null) {
                fields.mistake("entry_protocol", "The entry_protocol field is required.");
            }
            String::new()
        })
    });
    Some(once(rules.collect()))
}

/// The check that a body asks for; one that it leaves out is chosen by the rules.
fn wanted_check(fields: &mut Fields, rules: &[String]) -> HealthCheck {
    let Some(check) = fields.object("health_check") else {
        let has = |protocol: &str| rules.iter().any(|rule| rule == protocol);
        let protocol = match (has("http"), has("https")) {
            (true, true) => "both",
            (false, true) => "https",
            (_, false) => "http",
        };
        return HealthCheck { protocol: protocol.to_owned(), path: "/".to_owned() };
    };
    let protocol = word(fields, &check, "protocol", &CHECKS).unwrap_or_else(|| "http".to_owned());
    let path = match check.get("path").filter(|path| !path.is_null()) {
        None => "/".to_owned(),
        Some(path) => {
            let path = path.as_str().unwrap_or_default();
            if !is_path(path) {
                fields.mistake("path", "The path must match the pattern '/[A-Za-z0-9/.?=&+%_-]*'.");
            }
            path.to_owned()
        }
    };
    HealthCheck { protocol, path }
}

/// One of these words in an object within the body.
fn word(fields: &mut Fields, object: &Map<String, Value>, field: &str, words: &[&str]) -> Option<String> {
    let value = object.get(field).filter(|value| !value.is_null())?;
    let text = value.as_str().unwrap_or_default();
    if !words.contains(&text) {
        let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        fields.mistake(field, no_choice(&shown, words.iter().copied()));
    }
    Some(text.to_owned())
}

fn is_path(path: &str) -> bool {
    let fits = |char: char| char.is_ascii_alphanumeric() || "/.?=&+%_-".contains(char);
    path.starts_with('/') && path.chars().all(fits)
}

/// Two rules are only possible with a check of both protocols.
fn check_both(fields: &mut Fields, rules: &[String], protocol: &str) {
    if rules.len() > 1 && protocol != "both" {
        fields.mistake("protocol", "The health check of HTTP and HTTPS rules must be 'both'.");
    }
}

/// Each item once, in the order in which they came.
fn once<T: PartialEq>(items: Vec<T>) -> Vec<T> {
    let mut kept = Vec::with_capacity(items.len());
    for item in items {
        if !kept.contains(&item) {
            kept.push(item);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_matches_as_a_whole() {
        let table =
            [("/", true), ("/a?b=c&d=%20", true), ("", false), ("a", false), ("/a b", false), ("/ä", false)];
        for (path, want) in table {
            assert_eq!(is_path(path), want, "{path}");
        }
    }
}
