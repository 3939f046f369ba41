//! The paths below `/_sim/`, with which a person or a test steers a server. They are not in the log, and no fault hits
//! them.

use http::Method;
use serde::{Deserialize, de::DeserializeOwned};

use crate::faults::{Rule, Rules};

/// What is asked of the control port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// The calls so far, from number `?since=N` on.
    Calls,
    /// The faults in force.
    Faults,
    /// A [`FaultOrder`] is in the body.
    SetFaults,
    /// Back to the beginning.
    Reset,
    /// A path that is the server's own, or no path at all.
    Other,
}

impl Control {
    /// What a request asks of the control port; `None` for a request to the API.
    pub fn of(method: &Method, path: &str) -> Option<Self> {
        let control = match (method, path.strip_prefix("/_sim/")?) {
            (&Method::GET, "calls") => Self::Calls,
            (&Method::GET, "faults") => Self::Faults,
            (&Method::POST, "faults") => Self::SetFaults,
            (&Method::POST, "reset") => Self::Reset,
            _ => Self::Other,
        };
        Some(control)
    }
}

/// A change to the faults in force.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct FaultOrder<R> {
    /// Forget earlier faults first.
    clear: bool,
    /// Faults to add.
    faults: Vec<R>,
}

impl<R> Default for FaultOrder<R> {
    fn default() -> Self {
        Self { clear: false, faults: Vec::new() }
    }
}

/// Reads the body of [`Control::SetFaults`]; the error is for people.
pub fn read_order<T: DeserializeOwned>(body: &[u8]) -> Result<T, String> {
    serde_json::from_slice(body).map_err(|error| format!("this is no order for faults: {error}"))
}

impl<R: Rule> Rules<R> {
    /// Carries out an order; one with a harm that this server does not support changes nothing.
    pub fn apply(&mut self, order: FaultOrder<R>) -> Result<(), String> {
        if let Some(rule) = order.faults.iter().find(|rule| !R::supports(rule.harm())) {
            return Err(format!("this server does not support the harm {:?}", rule.harm()));
        }
        if order.clear {
            self.clear();
        }
        order.faults.into_iter().for_each(|rule| self.add(rule));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_paths_are_apart_from_the_api() {
        let table = [
            (Method::GET, "/_sim/calls", Some(Control::Calls)),
            (Method::GET, "/_sim/faults", Some(Control::Faults)),
            (Method::POST, "/_sim/faults", Some(Control::SetFaults)),
            (Method::POST, "/_sim/reset", Some(Control::Reset)),
            (Method::GET, "/_sim/reset", Some(Control::Other)),
            (Method::GET, "/_sim/state", Some(Control::Other)),
            (Method::GET, "/api/v1/nodes", None),
        ];
        for (method, path, want) in table {
            assert_eq!(Control::of(&method, path), want, "{method} {path}");
        }
    }
}
