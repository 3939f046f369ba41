//! The control port: what a person or a test can ask of this server beside the API.

use http::StatusCode;
use serde::Deserialize;
use serde_json::json;
use sim_kit::{Control, FaultOrder, read_order};

use super::faults::Fault;
use super::render::bytes;
use super::router::{Incoming, Reply};
use super::state::State;
use super::status::{Answer, Failure};
use super::users::User;

/// A change to the faults, and what else can go wrong with the server itself.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Order {
    #[serde(flatten)]
    faults: FaultOrder<Fault>,
    /// End all watches, as a restart does.
    restart: bool,
    /// Forget the past, so that old resource versions are gone.
    compact: bool,
    /// Move the server's clock.
    skew_seconds: Option<i64>,
}

/// Answers `/_sim/…`.
pub(crate) fn answer(state: &mut State, control: Control, incoming: &Incoming, user: &User) -> Answer<Reply> {
    if user.groups.iter().any(|group| group == "system:unauthenticated") {
        return Err(Failure::unauthorized());
    }
    let shown = match control {
        Control::Calls => {
            let since = incoming.query.number("since")?.unwrap_or(0);
            json!({"calls": state.calls_since(u64::try_from(since).unwrap_or(0))})
        }
        Control::Faults => json!({"faults": state.faults.list(), "watches": state.watchers.count()}),
        Control::SetFaults => {
            let order = read_order(&incoming.body).and_then(|order| carry_out(state, order));
            order.map_err(Failure::bad_request)?;
            json!({"faults": state.faults.list()})
        }
        Control::Reset => {
            state.reset();
            json!({"revision": state.store.revision()})
        }
        Control::Other => return Ok(Reply::text(StatusCode::NOT_FOUND, "404 page not found\n")),
    };
    Ok(Reply::json(StatusCode::OK, bytes(&shown)))
}

fn carry_out(state: &mut State, order: Order) -> Result<(), String> {
    state.faults.apply(order.faults)?;
    if let Some(seconds) = order.skew_seconds {
        state.world.set_skew(jiff::SignedDuration::from_secs(seconds));
    }
    if order.compact {
        state.store.compact();
    }
    if order.restart {
        state.watchers.cut_all();
    }
    Ok(())
}
