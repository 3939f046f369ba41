//! The paths beside the API with which a person or a test steers the simulation.

use http::{Method, StatusCode};
use serde::Deserialize;
use serde_json::json;

use super::faults::Fault;
use super::render::bytes;
use super::router::{Incoming, Reply};
use super::state::State;
use super::status::{Answer, Failure};
use super::users::User;

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
    faults: Vec<Fault>,
    /// End all watches, as a restart does.
    restart: bool,
    /// Forget the past, so that old resource versions are gone.
    compact: bool,
    /// Move the server's clock.
    skew_seconds: Option<i64>,
}

/// Answers `/_sim/…`.
pub(crate) fn answer(state: &mut State, incoming: &Incoming, user: &User) -> Answer<Reply> {
    if user.groups.iter().any(|group| group == "system:unauthenticated") {
        return Err(Failure::unauthorized());
    }
    match (&incoming.method, incoming.path.as_str()) {
        (&Method::GET, "/_sim/calls") => {
            let from = incoming.query.number("since")?.unwrap_or(0);
            let calls = state.calls.since(u64::try_from(from).unwrap_or(0));
            Ok(Reply::json(StatusCode::OK, bytes(&json!({"calls": calls}))))
        }
        (&Method::GET, "/_sim/faults") => {
            let watches = state.watchers.count();
            Ok(Reply::json(
                StatusCode::OK,
                bytes(&json!({"faults": state.faults.list(), "watches": watches})),
            ))
        }
        (&Method::POST, "/_sim/faults") => {
            let order: Order = serde_json::from_slice(&incoming.body)
                .map_err(|error| Failure::bad_request(format!("this is no order for faults: {error}")))?;
            carry_out(state, order);
            Ok(Reply::json(StatusCode::OK, bytes(&json!({"faults": state.faults.list()}))))
        }
        (&Method::POST, "/_sim/reset") => {
            state.reset();
            Ok(Reply::json(StatusCode::OK, bytes(&json!({"revision": state.store.revision()}))))
        }
        _ => Ok(Reply::text(StatusCode::NOT_FOUND, "404 page not found\n")),
    }
}

fn carry_out(state: &mut State, order: Order) {
    if order.clear {
        state.faults.clear();
    }
    for fault in order.faults {
        state.faults.add(fault);
    }
    if let Some(seconds) = order.skew_seconds {
        state.world.set_skew(jiff::SignedDuration::from_secs(seconds));
    }
    if order.compact {
        state.store.compact();
    }
    if order.restart {
        state.watchers.cut_all();
    }
}
