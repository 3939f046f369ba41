//! Faults on demand: rules that say which calls go wrong, how, and how often.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What goes wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Harm {
    /// The call is carried out later.
    Latency {
        /// How much later.
        millis: u64,
    },
    /// An error is answered; nothing is carried out.
    Status {
        /// 429, 500, 503, …
        code: u16,
        /// For the `Retry-After` header.
        #[serde(default)]
        retry_after: Option<u32>,
    },
    /// A write is refused as if someone else had been first.
    Conflict,
    /// The call is carried out, the connection breaks before the answer arrives.
    LostAnswer,
    /// The connection breaks before the call arrives.
    LostCall,
    /// A watch is cut off after so many events (none: at once).
    DropWatch {
        /// Events that still get through.
        #[serde(default)]
        after_events: u64,
    },
    /// A watch goes silent without ending after so many events.
    StallWatch {
        /// Events that still get through.
        #[serde(default)]
        after_events: u64,
    },
}

/// Which calls go wrong, and how. Empty fields match everything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Fault {
    /// A part of the client's name for itself.
    #[serde(default)]
    pub user_agent: String,
    /// Verb, as in the call log.
    #[serde(default)]
    pub verb: String,
    /// Resource in the plural.
    #[serde(default)]
    pub resource: String,
    /// Subresource; `-` matches only calls without one.
    #[serde(default)]
    pub subresource: String,
    /// Namespace.
    #[serde(default)]
    pub namespace: String,
    /// Name.
    #[serde(default)]
    pub name: String,
    /// So many matching calls go well first.
    #[serde(default)]
    pub skip: u64,
    /// Then so many go wrong; none means all.
    #[serde(default)]
    pub times: Option<u64>,
    /// How.
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

    /// Only so often.
    #[must_use]
    pub fn times(mut self, times: u64) -> Self {
        self.times = Some(times);
        self
    }

    fn hits(&self, call: &Subject<'_>) -> bool {
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
}

/// The facts of a call that rules look at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject<'a> {
    pub(crate) user_agent: &'a str,
    pub(crate) verb: &'a str,
    pub(crate) resource: &'a str,
    pub(crate) subresource: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
}

/// What one call is in for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fate {
    pub(crate) delay: Duration,
    /// The first harm that is no delay.
    pub(crate) harm: Option<Harm>,
}

/// The rules in force.
#[derive(Debug, Default)]
pub(crate) struct Faults(Vec<Fault>);

impl Faults {
    pub(crate) fn add(&mut self, fault: Fault) {
        self.0.push(fault);
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    pub(crate) fn list(&self) -> &[Fault] {
        &self.0
    }

    /// Decides on a call and uses up the rules that hit it.
    pub(crate) fn fate(&mut self, call: &Subject<'_>) -> Fate {
        let mut fate = Fate::default();
        for fault in &mut self.0 {
            if !fault.hits(call) || (fate.harm.is_some() && !matches!(fault.harm, Harm::Latency { .. })) {
                continue;
            }
            if fault.skip > 0 {
                fault.skip -= 1;
                continue;
            }
            match &mut fault.times {
                Some(0) => continue,
                Some(left) => *left -= 1,
                None => {}
            }
            match &fault.harm {
                Harm::Latency { millis } => fate.delay += Duration::from_millis(*millis),
                other => fate.harm = Some(other.clone()),
            }
        }
        self.0.retain(|fault| fault.times != Some(0));
        fate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call<'a>(verb: &'a str, resource: &'a str, subresource: &'a str) -> Subject<'a> {
        Subject { user_agent: "client/1", verb, resource, subresource, namespace: "d", name: "x" }
    }

    #[test]
    fn rules_hit_what_they_name_as_often_as_they_say() {
        let mut faults = Faults::default();
        let harm = Harm::Status { code: 503, retry_after: None };
        faults.add(Fault { skip: 1, ..Fault::new(harm.clone()).on("patch", "nodes").times(2) });
        faults.add(Fault::new(Harm::Latency { millis: 5 }));
        let node = call("patch", "nodes", "status");
        let fates: Vec<_> = (0..4).map(|_| faults.fate(&node).harm).collect();
        assert_eq!(fates, [None, Some(harm.clone()), Some(harm), None]);
        let other = faults.fate(&call("get", "nodes", ""));
        assert_eq!((other.harm, other.delay), (None, Duration::from_millis(5)));
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
            let mut faults = Faults::default();
            faults.add(fault.clone());
            assert_eq!(faults.fate(&call).harm.is_some(), want, "{fault:?} {call:?}");
        }
    }
}
