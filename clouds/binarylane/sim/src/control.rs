//! What only this cloud has on its control port: its resources and its switches.

use serde_json::{Value, json};

use crate::{accounts::Accounts, render, world::World};

/// Answers `/_sim/switches`; `None` for what is not there.
pub(crate) fn answer(accounts: &mut Accounts, order: &str, body: &[u8]) -> Option<Result<Value, String>> {
    match order {
        "GET switches" => Some(Ok(json!(accounts.world.settings.switches))),
        "POST switches" => Some(change(accounts, body)),
        _ => None,
    }
}

fn change(accounts: &mut Accounts, body: &[u8]) -> Result<Value, String> {
    let change = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let changed = accounts.world.settings.switches.changed(&change)?;
    accounts.set_switches(&changed);
    Ok(json!(changed))
}

/// All resources, as the API shows them.
pub(crate) fn show(world: &World) -> Value {
    let resources = &world.resources;
    let servers: Vec<_> = resources.servers.values().map(|s| render::server(s, &world.settings)).collect();
    let actions: Vec<_> = resources.actions.values().map(|a| render::action(a, &world.settings)).collect();
    json!({
        "servers": servers,
        "load_balancers": resources.balancers.values().map(render::balancer).collect::<Vec<_>>(),
        "vpcs": resources.vpcs.values().map(render::vpc).collect::<Vec<_>>(),
        "actions": actions,
        "pool_changes": world.history,
    })
}
