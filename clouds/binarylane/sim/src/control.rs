//! The control port: what a person or a test can ask of the cloud beside the API.

use std::time::Duration;

use http::{Method, StatusCode, request::Parts};
use serde_json::{Value, json};
use sim_kit::{Control, read_order};

use crate::{
    journal::Tally,
    render,
    shared::{Shared, State},
    switches::Switches,
};

/// Answers `/_sim/…`. It needs no token.
pub(crate) fn answer(shared: &Shared, control: Control, parts: &Parts, body: &[u8]) -> (StatusCode, Value) {
    let answered = match control {
        Control::Calls => calls(&shared.lock(), parts.uri.query()),
        Control::Reset => {
            shared.reset();
            Ok(json!({}))
        }
        Control::Faults => Ok(json!({"faults": shared.lock().rules.list()})),
        Control::SetFaults => {
            let rules = &mut shared.lock().rules;
            let applied = read_order(body).and_then(|order| rules.apply(order));
            applied.map(|()| json!({"faults": rules.list()}))
        }
        Control::Other => match own(shared, &parts.method, parts.uri.path(), body) {
            None => return (StatusCode::NOT_FOUND, json!({"title": "Not Found"})),
            Some(answered) => answered,
        },
    };
    answered
        .map_or_else(|why| (StatusCode::BAD_REQUEST, json!({"title": why})), |body| (StatusCode::OK, body))
}

/// What only this cloud has: its state, its switches and its clock.
fn own(shared: &Shared, method: &Method, path: &str, body: &[u8]) -> Option<Result<Value, String>> {
    let read = || serde_json::from_slice::<Value>(body).map_err(|error| error.to_string());
    let answered = match (method.as_str(), path) {
        ("GET", "/_sim/state") => {
            let at = shared.moment();
            let mut state = shared.lock();
            state.world.advance(at.tick);
            Ok(show(&state))
        }
        ("GET", "/_sim/switches") => Ok(json!(shared.lock().world.settings.switches)),
        ("POST", "/_sim/switches") => read().and_then(|change| {
            let mut state = shared.lock();
            let changed = state.world.settings.switches.changed(&change)?;
            set_switches(&mut state, &changed);
            Ok(json!(changed))
        }),
        ("POST", "/_sim/advance") => read().and_then(|order| {
            let millis = order.get("millis").and_then(Value::as_u64);
            shared.advance(Duration::from_millis(millis.ok_or("how many millis?")?));
            Ok(json!({}))
        }),
        _ => return None,
    };
    Some(answered)
}

/// Both accounts are in one cloud.
pub(crate) fn set_switches(state: &mut State, switches: &Switches) {
    state.world.settings.switches.clone_from(switches);
    state.elsewhere.settings.switches.clone_from(switches);
}

/// All calls, or those from a number on (`?since=N`), and how many there were of each kind.
fn calls(state: &State, query: Option<&str>) -> Result<Value, String> {
    let since = query.unwrap_or_default().split('&').find_map(|pair| pair.strip_prefix("since="));
    let since: u64 = since.map_or(Ok(0), str::parse).map_err(|_| "since must be a whole number")?;
    let calls: Vec<_> = state.journal.iter().filter(|entry| entry.number >= since).collect();
    let Tally { calls: total, mutations, operations } = Tally::of(calls.iter().copied());
    Ok(json!({"total": total, "mutations": mutations, "operations": operations, "calls": calls}))
}

/// All resources, as the API shows them.
fn show(state: &State) -> Value {
    let world = &state.world;
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
