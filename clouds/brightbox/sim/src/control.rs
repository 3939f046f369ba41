//! The control port: what a person or a test can ask of the cloud beside the API.

use std::{collections::BTreeMap, net::IpAddr};

use http::{Method, StatusCode, request::Parts};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use sim_kit::{Control, read_order};

use super::{
    exchange::base,
    journal::Tally,
    route::Kind,
    settings::DelayOrder,
    shared::{Shared, State},
    world::Moment,
};

/// Servers to be made.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ServerOrder {
    name: String,
    #[serde(default)]
    zone: Option<String>,
}

/// Answers `/_sim/…`. It needs no token.
pub(crate) fn answer(shared: &Shared, control: Control, parts: &Parts, body: &[u8]) -> (StatusCode, Value) {
    let bad_request = |why| (StatusCode::BAD_REQUEST, json!({"error": why}));
    let (path, at) = (parts.uri.path(), shared.moment());
    let done = match control {
        Control::Calls => calls(&shared.lock(), parts.uri.query()),
        Control::Reset => {
            shared.reset();
            Ok(json!({}))
        }
        Control::Faults => Ok(json!({"faults": shared.lock().rules.list()})),
        Control::SetFaults => {
            let rules = &mut shared.lock().rules;
            read_order(body).and_then(|order| rules.apply(order)).map(|()| json!({"faults": rules.list()}))
        }
        Control::Other => match (&parts.method, path) {
            (&Method::GET, "/_sim/state") => Ok(state(&mut shared.lock(), &base(parts), at)),
            (&Method::DELETE, "/_sim/calls") => {
                shared.lock().journal.clear();
                Ok(json!({}))
            }
            (&Method::POST, "/_sim/delays") => read::<DelayOrder>(body).map(|order| {
                order.apply(&mut shared.lock().world.settings);
                json!({})
            }),
            (&Method::POST, "/_sim/domains") => {
                read(body).map(|table| set_domains(&mut shared.lock(), table, at))
            }
            (&Method::POST, "/_sim/servers") => {
                read(body).map(|order| add_server(&mut shared.lock(), &order, at))
            }
            (&Method::POST, "/_sim/expire-tokens") => {
                shared.lock().access.expire();
                Ok(json!({}))
            }
            _ => return (StatusCode::NOT_FOUND, json!({"error": "there is no such control"})),
        },
    };
    done.map_or_else(bad_request, |answer| (StatusCode::OK, answer))
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, String> {
    serde_json::from_slice(body).map_err(|error| format!("this is no order: {error}"))
}

fn set_domains(state: &mut State, table: BTreeMap<String, Vec<IpAddr>>, at: Moment) -> Value {
    state.world.resources.domains.extend(table);
    state.world.resources.domains.retain(|_, addresses| !addresses.is_empty());
    state.world.advance(at);
    json!(state.world.resources.domains)
}

fn add_server(state: &mut State, order: &ServerOrder, at: Moment) -> Value {
    let zone = order.zone.clone().unwrap_or_else(|| state.world.settings.default_zone.clone());
    let server = state.world.add_server(&order.name, &zone, at);
    json!({"id": server.id})
}

/// All calls, or those from a number on (`?since=N`), and how many there were of each kind.
fn calls(state: &State, query: Option<&str>) -> Result<Value, String> {
    let since = query.unwrap_or_default().split('&').find_map(|pair| pair.strip_prefix("since="));
    let since =
        since.map_or(Ok(0), str::parse::<u64>).map_err(|_| "since must be a whole number".to_owned())?;
    let calls: Vec<_> = state.journal.iter().filter(|entry| entry.number >= since).collect();
    let Tally { calls: total, mutations, operations } = Tally::of(calls.iter().copied());
    Ok(json!({"total": total, "mutations": mutations, "operations": operations, "calls": calls}))
}

/// All resources, as the API shows them.
fn state(state: &mut State, base: &str, at: Moment) -> Value {
    state.world.advance(at);
    let view = state.world.view(base);
    let mut all: serde_json::Map<String, Value> =
        Kind::ALL.into_iter().map(|kind| (kind.plural().to_owned(), Value::Array(view.list(kind)))).collect();
    // They are in their policies.
    all.remove(Kind::Rule.plural());
    all.insert("nodes_changes".to_owned(), json!(state.world.history));
    Value::Object(all)
}
