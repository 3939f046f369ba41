//! Which parts of a request a fault can name.

use serde::{Deserialize, Serialize};
use sim_kit::{Harm, Rule};

/// A request, as a plan of faults sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// How many requests came before it.
    pub number: u64,
    /// Who sent it.
    pub who: String,
    /// Which operation: `load_balancers.create`, `cloud_ips.map`, `token`, …
    pub operation: String,
    /// The HTTP method.
    pub method: String,
    /// The path, without the query.
    pub path: String,
    /// It would change something.
    pub mutation: bool,
}

/// Which requests go wrong, and how. Empty fields match everything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Fault {
    /// The operation, as in the journal.
    #[serde(default)]
    pub operation: String,
    /// The HTTP method.
    #[serde(default)]
    pub method: String,
    /// A part of the path.
    #[serde(default)]
    pub path: String,
    /// A part of the sender's name.
    #[serde(default)]
    pub who: String,
    /// Only requests that would change something, or only those that would not.
    #[serde(default)]
    pub mutation: Option<bool>,
    /// How many matching requests go well first.
    #[serde(default)]
    pub skip: u64,
    /// How many then go wrong; all if it is left out.
    #[serde(default)]
    pub times: Option<u64>,
    /// What happens to them.
    pub harm: Harm,
}

impl Fault {
    /// A fault that hits every request, to be narrowed down.
    pub const fn new(harm: Harm) -> Self {
        Self {
            operation: String::new(),
            method: String::new(),
            path: String::new(),
            who: String::new(),
            mutation: None,
            skip: 0,
            times: None,
            harm,
        }
    }
}

impl Rule for Fault {
    type Request<'a> = Request;

    fn matches(&self, request: &Request) -> bool {
        let fits = |want: &str, have: &str| want.is_empty() || want == have;
        fits(&self.operation, &request.operation)
            && fits(&self.method, &request.method)
            && request.path.contains(&self.path)
            && request.who.contains(&self.who)
            && self.mutation.is_none_or(|mutation| mutation == request.mutation)
    }

    fn harm(&self) -> &Harm {
        &self.harm
    }

    fn limits(&mut self) -> (&mut u64, &mut Option<u64>) {
        (&mut self.skip, &mut self.times)
    }

    fn supports(harm: &Harm) -> bool {
        !matches!(harm, Harm::DropWatch { .. } | Harm::StallWatch { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(operation: &str, mutation: bool) -> Request {
        Request {
            number: 0,
            who: "program/1".to_owned(),
            operation: operation.to_owned(),
            method: if mutation { "POST" } else { "GET" }.to_owned(),
            path: "/1.0/servers/x".to_owned(),
            mutation,
        }
    }

    #[test]
    fn every_field_narrows_a_fault_down() {
        let all = Fault::new(Harm::LostCall);
        let table = [
            (all.clone(), true),
            (Fault { method: "GET".to_owned(), ..all.clone() }, false),
            (Fault { path: "servers".to_owned(), ..all.clone() }, true),
            (Fault { path: "groups".to_owned(), ..all.clone() }, false),
            (Fault { who: "program".to_owned(), ..all.clone() }, true),
            (Fault { who: "other".to_owned(), ..all.clone() }, false),
            (Fault { mutation: Some(true), ..all.clone() }, true),
            (Fault { mutation: Some(false), ..all }, false),
        ];
        for (fault, want) in table {
            assert_eq!(fault.matches(&request("servers.stop", true)), want, "{fault:?}");
        }
    }
}
