//! Which parts of a call a fault can name.

use serde::{Deserialize, Serialize};
use sim_kit::{Harm, Rule};

/// Which calls go wrong, and how. Empty fields match everything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Fault {
    /// A part of the `User-Agent` header.
    #[serde(default)]
    pub user_agent: String,
    /// The verb, as in the call log.
    #[serde(default)]
    pub verb: String,
    /// The resource, in the plural.
    #[serde(default)]
    pub resource: String,
    /// The subresource; `-` matches only calls without one.
    #[serde(default)]
    pub subresource: String,
    /// The namespace of the object.
    #[serde(default)]
    pub namespace: String,
    /// The name of the object.
    #[serde(default)]
    pub name: String,
    /// How many matching calls go well first.
    #[serde(default)]
    pub skip: u64,
    /// How many then go wrong; all if it is left out.
    #[serde(default)]
    pub times: Option<u64>,
    /// What happens to them.
    pub harm: Harm,
}

impl Fault {
    /// A fault that hits every call, to be narrowed down.
    pub fn new(harm: Harm) -> Self {
        Self {
            user_agent: String::new(),
            verb: String::new(),
            resource: String::new(),
            subresource: String::new(),
            namespace: String::new(),
            name: String::new(),
            skip: 0,
            times: None,
            harm,
        }
    }

    /// Only calls of this verb and resource (empty: any).
    #[must_use]
    pub fn on(mut self, verb: &str, resource: &str) -> Self {
        verb.clone_into(&mut self.verb);
        resource.clone_into(&mut self.resource);
        self
    }

    /// Only this many times.
    #[must_use]
    pub fn times(mut self, times: u64) -> Self {
        self.times = Some(times);
        self
    }
}

impl Rule for Fault {
    type Request<'a> = Subject<'a>;

    fn matches(&self, call: &Subject<'_>) -> bool {
        let fits = |want: &str, have: &str| want.is_empty() || want == have;
        let part = match self.subresource.as_str() {
            "-" => call.subresource.is_empty(),
            want => fits(want, call.subresource),
        };
        let watch = matches!(self.harm, Harm::DropWatch { .. } | Harm::StallWatch { .. });
        let write = matches!(call.verb, "create" | "update" | "patch" | "delete" | "deletecollection");
        part && (!watch || call.verb == "watch")
            && (self.harm != Harm::Conflict || write)
            && fits(&self.verb, call.verb)
            && fits(&self.resource, call.resource)
            && fits(&self.namespace, call.namespace)
            && fits(&self.name, call.name)
            && call.user_agent.contains(&self.user_agent)
    }

    fn harm(&self) -> &Harm {
        &self.harm
    }

    fn limits(&mut self) -> (&mut u64, &mut Option<u64>) {
        (&mut self.skip, &mut self.times)
    }

    fn supports(harm: &Harm) -> bool {
        !matches!(
            harm,
            Harm::NotFound
                | Harm::Stall { .. }
                | Harm::Truncated
                | Harm::Masked { .. }
                | Harm::EmptyList
                | Harm::ShortList
        )
    }
}

/// The facts of a call that rules look at.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    pub(crate) user_agent: &'a str,
    pub(crate) verb: &'a str,
    pub(crate) resource: &'a str,
    pub(crate) subresource: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call<'a>(verb: &'a str, resource: &'a str, subresource: &'a str) -> Subject<'a> {
        Subject { user_agent: "client/1", verb, resource, subresource, namespace: "d", name: "x" }
    }

    #[test]
    fn harms_hit_only_calls_that_they_make_sense_for() {
        let table = [
            (Fault::new(Harm::Conflict), call("get", "nodes", ""), false),
            (Fault::new(Harm::Conflict), call("update", "nodes", ""), true),
            (Fault::new(Harm::DropWatch { after_events: 0 }), call("list", "nodes", ""), false),
            (Fault::new(Harm::DropWatch { after_events: 0 }), call("watch", "nodes", ""), true),
            (
                Fault { subresource: "-".to_owned(), ..Fault::new(Harm::LostAnswer) },
                call("patch", "nodes", "status"),
                false,
            ),
            (
                Fault { user_agent: "other".to_owned(), ..Fault::new(Harm::LostAnswer) },
                call("patch", "nodes", ""),
                false,
            ),
            (
                Fault { namespace: "e".to_owned(), ..Fault::new(Harm::LostCall) },
                call("patch", "services", ""),
                false,
            ),
        ];
        for (fault, call, want) in table {
            assert_eq!(fault.matches(&call), want, "{fault:?} {call:?}");
        }
    }
}
