//! What may never happen, whatever fails and whatever people do. It is seen in what the program wrote, call by call, and in
//! what there is.

use std::collections::BTreeMap;

use super::{
    wire::PROGRAM,
    world::{GUEST, PROJECT_SECRET, World},
};
use crate::plan::data;

/// The cluster that may go.
pub(super) const MORTAL: &str = "c-m-guest02";
pub(super) const TOKEN_REPLACED: &str = "a token was replaced while there was one";
pub(super) const TAKEN: &str = "an address was taken from a living cluster";
pub(super) const LEAKED: &str = "an address of a dead cluster was not released";
pub(super) const TWO_BALANCERS: &str = "two load balancers are installed";

/// Watches a life. What it is told are the acts of people, which excuse the program.
pub(super) struct Witness {
    /// Calls before this number were looked at.
    looked: u64,
    /// The token here, which nobody but a person may change.
    token: Option<String>,
    /// A person took the token out: the program may put one in.
    emptied: bool,
    /// The floating IPs in use by something that lives, each since this call.
    used: BTreeMap<&'static str, u64>,
}

impl Witness {
    /// The addresses `living` and `by-hand` stay in use for ever, and `mortal` until its cluster goes.
    pub(super) fn new() -> Self {
        let used = BTreeMap::from([("living", 0), ("by-hand", 0), ("mortal", 0)]);
        Self { looked: 0, token: None, emptied: false, used }
    }

    /// The Secret was deleted by a person.
    pub(super) fn secret_deleted(&mut self) {
        (self.token, self.emptied) = (None, false);
    }

    /// The Secret was made by a person, with this token.
    pub(super) fn secret_made(&mut self, token: &str) {
        (self.token, self.emptied) = (Some(token.to_owned()), false);
    }

    /// The token was taken out of the Secret by a person.
    pub(super) fn token_taken_out(&mut self) {
        (self.token, self.emptied) = (None, true);
    }

    /// The mortal cluster was deleted.
    pub(super) fn died(&mut self) {
        self.used.remove("mortal");
    }

    /// The mortal cluster is there again, and uses its address again since this call.
    pub(super) fn revived(&mut self, since: u64) {
        self.used.insert("mortal", since);
    }

    /// Whether the mortal cluster is dead.
    pub(super) fn is_dead(&self) -> bool {
        !self.used.contains_key("mortal")
    }

    /// Looks at everything since the last look. To be called before each act of a person.
    pub(super) fn look(&mut self, world: &World) -> Result<(), String> {
        let calls = world.local.calls(self.looked);
        self.looked = calls.last().map_or(self.looked, |call| call.number + 1);
        for call in &calls {
            let ours = call.user_agent == PROGRAM && call.is_write() && call.outcome.succeeded();
            let wrong = match call.resource.as_str() {
                // A creation carries no name, and replaces nothing.
                "secrets" if ours && call.name == PROJECT_SECRET && !std::mem::take(&mut self.emptied) => {
                    TOKEN_REPLACED
                }
                "floatingips" if ours => match self.used.get(call.name.as_str()) {
                    Some(since) if call.number >= *since => TAKEN,
                    _ => continue,
                },
                _ => continue,
            };
            return Err(format!("{wrong}: {call:?}"));
        }
        let now = token(world).filter(|token| !token.is_empty());
        if let (Some(known), Some(now)) = (&self.token, &now)
            && known != now
        {
            return Err(TOKEN_REPLACED.to_owned());
        }
        self.token = now.or(self.token.take());
        for name in self.used.keys() {
            if !is_used(world, name) {
                return Err(format!("{TAKEN}: {name}"));
            }
        }
        for host in ["guest01", "guest02"] {
            if installed(world, host).len() > 1 {
                return Err(format!("{TWO_BALANCERS} in {host}"));
            }
        }
        Ok(())
    }

    /// Looks at what must be when everything has been well for long enough.
    pub(super) fn conclude(&self, world: &World) -> Result<(), String> {
        if self.is_dead() && is_used(world, "mortal") {
            return Err(LEAKED.to_owned());
        }
        let Some(token) = token(world).filter(|token| !token.is_empty()) else {
            return Err("there is no token".to_owned());
        };
        let guests: &[_] =
            if self.is_dead() { &[("guest01", GUEST)] } else { &[("guest01", GUEST), ("guest02", MORTAL)] };
        for &(host, id) in guests {
            let api = world.api(host);
            let secrets = api.objects("secrets");
            let delivered = secrets.iter().find(|secret| secret["metadata"]["name"] == PROJECT_SECRET);
            let delivered = delivered.ok_or_else(|| format!("{host} has no Secret"))?;
            let balancers = installed(world, host);
            let want = [
                ("clientSecret", token.as_str()),
                ("cluster", id),
                ("floatingIPPool", "harv01--vlan10"),
                ("loadBalancerType", balancers.first().map_or("", String::as_str)),
            ];
            for (key, want) in want {
                let have = data::text(delivered, key);
                if have != want {
                    return Err(format!("{host}: {key} is {have}, not {want}"));
                }
            }
            let maps = api.objects("configmaps");
            let map = maps.iter().find(|map| map["metadata"]["name"] == "network-interface-mappings");
            let entries = map.map(|map| map["data"].to_string()).unwrap_or_default();
            if entries != r#"{"harv01--vlan10":"eth1"}"# {
                return Err(format!("{host}: the map is {entries}"));
            }
            let controller = releases(world, host, "rancher-fip-lb-controller").pop();
            if !matches!(&controller, Some((_, status)) if status == "deployed") {
                return Err(format!("{host}: the controller is {controller:?}"));
            }
        }
        Ok(())
    }
}

/// The token here, if there is a Secret.
fn token(world: &World) -> Option<String> {
    let local = world.local.objects("secrets");
    let found = local.iter().find(|secret| secret["metadata"]["name"] == PROJECT_SECRET)?;
    Some(data::text(found, "clientSecret"))
}

fn is_used(world: &World, name: &str) -> bool {
    let all = world.local.objects("floatingips.rancher.k8s.binbash.org");
    let found = all.iter().find(|one| one["metadata"]["name"] == name);
    found.is_some_and(|one| one["metadata"]["labels"].get("rancher.k8s.binbash.org/cluster-name").is_some())
}

/// The revisions of a release with their status, the newest last.
fn releases(world: &World, host: &str, name: &str) -> Vec<(u32, String)> {
    let secrets = world.api(host).objects("secrets");
    let ours = secrets.iter().map(|secret| &secret["metadata"]["labels"]);
    let ours = ours.filter(|labels| labels["owner"] == "helm" && labels["name"] == name);
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let mut all: Vec<_> =
        ours.map(|labels| (text(&labels["version"]).parse().unwrap(), text(&labels["status"]))).collect();
    all.sort_unstable();
    all
}

/// The balancers of which there is a release.
fn installed(world: &World, host: &str) -> Vec<String> {
    let there = |name: &&str| !releases(world, host, name).is_empty();
    ["purelb", "metallb"].iter().filter(|name| there(name)).map(|name| (*name).to_owned()).collect()
}
