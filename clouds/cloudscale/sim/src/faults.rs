//! Faults on demand: what can go wrong with a request, and rules that say with which.

use serde::{Deserialize, Serialize};

/// What goes wrong with one request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Fault {
    /// An error is answered (502 as a page for people, as gateways do); nothing is carried out.
    Status {
        /// 401, 429, 500, 502, 503, …
        code: u16,
        /// Seconds for the `Retry-After` header.
        #[serde(default)]
        retry_after: Option<u64>,
    },
    /// The connection breaks before the request arrives.
    LostCall,
    /// The request is carried out, and the connection breaks before the answer.
    LostAnswer,
    /// The request is carried out after this long, and nothing is ever answered.
    Stall {
        /// How long, in milliseconds.
        millis: u64,
    },
    /// The request arrives so much later.
    Latency {
        /// How much, in milliseconds.
        millis: u64,
    },
    /// The request is carried out, and the connection breaks in the middle of the answer's body.
    Truncated,
    /// A listing is empty, although there are things.
    EmptyList,
    /// A listing lacks its second half.
    ShortList,
    /// 404, although the thing exists; nothing is carried out.
    NotFound,
}

impl Fault {
    /// An answer with this status.
    pub const fn status(code: u16) -> Self {
        Self::Status { code, retry_after: None }
    }
}

/// A request, as whoever plans faults sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// How many requests came before it.
    pub number: u64,
    /// Who sent it.
    pub who: String,
    /// Which operation: `members.create`, `load-balancers.list`, `servers.stop`, …
    pub operation: String,
    /// The method.
    pub method: String,
    /// The path, without the query.
    pub path: String,
    /// It would change something.
    pub mutation: bool,
}

/// Which requests go wrong, and how. Empty fields fit everything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rule {
    /// The operation.
    #[serde(default)]
    pub operation: String,
    /// The method.
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
    /// So many fitting requests go well first.
    #[serde(default)]
    pub skip: u64,
    /// Then so many go wrong; none means all.
    #[serde(default)]
    pub times: Option<u64>,
    /// How.
    pub harm: Fault,
}

impl Rule {
    /// A rule for every request, to be narrowed down.
    pub const fn new(harm: Fault) -> Self {
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

    fn fits(&self, request: &Request) -> bool {
        let fits = |want: &str, have: &str| want.is_empty() || want == have;
        fits(&self.operation, &request.operation)
            && fits(&self.method, &request.method)
            && request.path.contains(&self.path)
            && request.who.contains(&self.who)
            && self.mutation.is_none_or(|mutation| mutation == request.mutation)
    }
}

/// The rules in force.
#[derive(Debug, Default)]
pub(crate) struct Rules(Vec<Rule>);

impl Rules {
    pub(crate) fn add(&mut self, rule: Rule) {
        self.0.push(rule);
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    pub(crate) fn list(&self) -> &[Rule] {
        &self.0
    }

    /// Decides on a request by the first rule that hits it, and uses that rule up.
    pub(crate) fn decide(&mut self, request: &Request) -> Option<Fault> {
        let mut hit = None;
        for rule in self.0.iter_mut().filter(|rule| rule.fits(request)) {
            if rule.skip > 0 {
                rule.skip -= 1;
            } else if hit.is_none() && rule.times != Some(0) {
                rule.times = rule.times.map(|left| left - 1);
                hit = Some(rule.harm.clone());
            }
        }
        self.0.retain(|rule| rule.times != Some(0));
        hit
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
            path: "/v1/servers/x".to_owned(),
            mutation,
        }
    }

    #[test]
    fn rules_hit_what_they_name_as_often_as_they_say() {
        let mut rules = Rules::default();
        let harm = Fault::status(503);
        let operation = "servers.get".to_owned();
        rules.add(Rule { operation, skip: 1, times: Some(2), ..Rule::new(harm.clone()) });
        let get = request("servers.get", false);
        assert_eq!(rules.decide(&request("servers.list", false)), None);
        let fates: Vec<_> = (0..4).map(|_| rules.decide(&get)).collect();
        assert_eq!(fates, [None, Some(harm.clone()), Some(harm), None]);
        assert!(rules.list().is_empty(), "what is used up is gone");
    }

    #[test]
    fn one_rule_decides_and_the_others_wait_for_their_turn() {
        let mut rules = Rules::default();
        for code in [500, 503] {
            rules.add(Rule { times: Some(1), ..Rule::new(Fault::status(code)) });
        }
        let fates: Vec<_> = (0..3).map(|_| rules.decide(&request("servers.get", false))).collect();
        assert_eq!(fates, [Some(Fault::status(500)), Some(Fault::status(503)), None]);
    }

    #[test]
    fn every_field_narrows_a_rule_down() {
        let all = Rule::new(Fault::LostCall);
        let table = [
            (all.clone(), true),
            (Rule { method: "GET".to_owned(), ..all.clone() }, false),
            (Rule { path: "servers".to_owned(), ..all.clone() }, true),
            (Rule { path: "pools".to_owned(), ..all.clone() }, false),
            (Rule { who: "program".to_owned(), ..all.clone() }, true),
            (Rule { who: "other".to_owned(), ..all.clone() }, false),
            (Rule { mutation: Some(true), ..all.clone() }, true),
            (Rule { mutation: Some(false), ..all }, false),
        ];
        for (rule, want) in table {
            assert_eq!(rule.fits(&request("servers.stop", true)), want, "{rule:?}");
        }
    }
}
