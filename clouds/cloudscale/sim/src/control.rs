//! The control port: what a person or a test can ask of the cloud beside the API.

use http::{Method, StatusCode, request::Parts};
use serde_json::{Value, json};
use sim_kit::{Control, read_order};

use super::{
    exchange::base,
    journal::Tally,
    render::View,
    route::Kind,
    shared::{Shared, State},
    tags::TagFilter,
    world::{Moment, list},
};

/// Answers `/_sim/…`. It needs no token.
pub(crate) fn answer(shared: &Shared, control: Control, parts: &Parts, body: &[u8]) -> (StatusCode, Value) {
    let bad_request = |why| (StatusCode::BAD_REQUEST, json!({"detail": why}));
    match control {
        Control::Calls => calls(&shared.lock(), parts.uri.query()),
        Control::Reset => {
            shared.reset();
            (StatusCode::OK, json!({}))
        }
        Control::Faults => (StatusCode::OK, json!({"faults": shared.lock().rules.list()})),
        Control::SetFaults => {
            let rules = &mut shared.lock().rules;
            match read_order(body).and_then(|order| rules.apply(order)) {
                Ok(()) => (StatusCode::OK, json!({"faults": rules.list()})),
                Err(why) => bad_request(why),
            }
        }
        Control::Other if parts.method == Method::GET && parts.uri.path() == "/_sim/state" => {
            (StatusCode::OK, state(&mut shared.lock(), &base(parts), shared.moment()))
        }
        Control::Other => (StatusCode::NOT_FOUND, json!({"detail": "Not found."})),
    }
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

/// All resources, as the API shows them.
fn state(state: &mut State, base: &str, at: Moment) -> Value {
    state.world.advance(at.tick);
    let view = View::new(&state.world.resources, base, at.tick);
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
