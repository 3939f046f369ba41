//! The paths beside the API with which a person or a test steers the simulation.

use http::{Method, StatusCode, request::Parts};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    exchange::base,
    faults::Rule,
    journal::Tally,
    render::View,
    route::Kind,
    shared::{Shared, State},
    tags::TagFilter,
    world::{Moment, list},
};

/// Whether a path is one of these.
pub(crate) fn is_control(path: &str) -> bool {
    path.starts_with("/_sim/")
}

/// What can be asked of the faults.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Order {
    /// Forget earlier faults first.
    clear: bool,
    /// Faults to add.
    faults: Vec<Rule>,
}

/// Answers `/_sim/…`. No token is needed, nothing is written down, nothing takes time or goes wrong.
pub(crate) fn answer(shared: &Shared, parts: &Parts, body: &[u8]) -> (StatusCode, Value) {
    match (&parts.method, parts.uri.path()) {
        (&Method::GET, "/_sim/calls") => calls(&shared.lock(), parts.uri.query()),
        (&Method::GET, "/_sim/state") => {
            (StatusCode::OK, state(&mut shared.lock(), &base(parts), shared.moment()))
        }
        (&Method::POST, "/_sim/reset") => {
            shared.reset();
            (StatusCode::OK, json!({}))
        }
        (&Method::GET, "/_sim/faults") => (StatusCode::OK, json!({"faults": shared.lock().rules.list()})),
        (&Method::POST, "/_sim/faults") => match serde_json::from_slice::<Order>(body) {
            Ok(order) => (StatusCode::OK, set_faults(&mut shared.lock(), order)),
            Err(error) => {
                let why = format!("this is no order for faults: {error}");
                (StatusCode::BAD_REQUEST, json!({"detail": why}))
            }
        },
        _ => (StatusCode::NOT_FOUND, json!({"detail": "Not found."})),
    }
}

fn set_faults(state: &mut State, order: Order) -> Value {
    if order.clear {
        state.rules.clear();
    }
    order.faults.into_iter().for_each(|rule| state.rules.add(rule));
    json!({"faults": state.rules.list()})
}

/// All calls, or those from a number on (`?since=N`), and how many there were of each kind.
fn calls(state: &State, query: Option<&str>) -> (StatusCode, Value) {
    let since = query.unwrap_or_default().split('&').find_map(|pair| pair.strip_prefix("since="));
    let Ok(since) = since.map_or(Ok(0), str::parse::<u64>) else {
        return (StatusCode::BAD_REQUEST, json!({"detail": "since must be a whole number"}));
    };
    let calls: Vec<_> = state.journal.iter().filter(|entry| entry.number >= since).collect();
    let Tally { calls: total, mutations, operations } = Tally::of(calls.iter().copied());
    let answer = json!({"total": total, "mutations": mutations, "operations": operations, "calls": calls});
    (StatusCode::OK, answer)
}

/// Everything that there is, in the form in which the API shows it.
fn state(state: &mut State, base: &str, at: Moment) -> Value {
    state.world.advance(at.tick);
    let view = View::new(&state.world.stock, base, at.tick);
    let all = |kind| list(&view, kind, None, &TagFilter::default());
    json!({
        "servers": all(Kind::Server),
        "load_balancers": all(Kind::Balancer),
        "pools": all(Kind::Pool),
        "members": all(Kind::Member),
        "listeners": all(Kind::Listener),
        "health_monitors": all(Kind::Monitor),
        "floating_ips": all(Kind::FloatingIp),
        "networks": all(Kind::Network),
        "subnets": all(Kind::Subnet),
        "pool_changes": state.world.history,
    })
}
