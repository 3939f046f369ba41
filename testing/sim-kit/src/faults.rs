//! Faults on demand: what can go wrong with a request, and the rules that decide with which.
//!
//! A server brings its own kind of [`Rule`], because only it knows which parts of a request can be named. What a rule
//! can do to a request and how often it does it are the same for every server.

use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize};

/// What goes wrong with one request. Not every server knows every kind: see [`Rule::supports`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Harm {
    /// The request arrives later. Several of these add up, and go together with one other harm.
    Latency {
        /// How much later.
        millis: u64,
    },
    /// An error is answered; nothing is carried out.
    Status {
        /// 401, 429, 500, 503, …
        code: u16,
        /// Seconds for the `Retry-After` header.
        #[serde(default)]
        retry_after: Option<u32>,
    },
    /// 404, although the object exists; nothing is carried out.
    NotFound,
    /// A write is refused as if someone else had been first.
    Conflict,
    /// The connection breaks before the request arrives.
    LostCall,
    /// The request is carried out, and the connection breaks before the answer.
    LostAnswer,
    /// The request is carried out after this long, and never answered.
    Stall {
        /// How long it takes.
        millis: u64,
    },
    /// The request is carried out, and the connection breaks in the middle of the answer's body.
    Truncated,
    /// The request is carried out, and a gateway answers in place of the server: with this status and a page in HTML, or
    /// without a body.
    Masked {
        /// 504, or 200 for a page that looks like success.
        code: u16,
        /// There is no body at all.
        #[serde(default)]
        empty: bool,
    },
    /// A listing is empty, although there are objects.
    EmptyList,
    /// A listing lacks its second half.
    ShortList,
    /// A watch is cut off after this many events.
    DropWatch {
        /// Events that still get through; with none it ends at once.
        #[serde(default)]
        after_events: u64,
    },
    /// A watch goes silent without ending after this many events.
    StallWatch {
        /// Events that still get through.
        #[serde(default)]
        after_events: u64,
    },
}

impl Harm {
    /// An error answer without `Retry-After`.
    pub const fn status(code: u16) -> Self {
        Self::Status { code, retry_after: None }
    }

    /// Takes from a listing what the client is not to see.
    pub fn shorten<T>(&self, items: &mut Vec<T>) {
        match self {
            Self::EmptyList => items.clear(),
            Self::ShortList => items.truncate(items.len() / 2),
            _ => {}
        }
    }
}

/// One server's kind of rule: which requests go wrong, how, and how often.
pub trait Rule {
    /// The facts of a request that rules look at.
    type Request<'a>;

    /// Whether the rule is about this request.
    fn matches(&self, request: &Self::Request<'_>) -> bool;

    /// What happens to the requests that it is about.
    fn harm(&self) -> &Harm;

    /// How many matching requests go well first, and how many then go wrong (`None`: all).
    fn limits(&mut self) -> (&mut u64, &mut Option<u64>);

    /// Whether this server can do this to a request.
    fn supports(harm: &Harm) -> bool;
}

/// What the rules decided for one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// How much later the request arrives.
    pub delay: Duration,
    /// What else happens to it.
    pub harm: Option<Harm>,
}

impl Decision {
    fn add(&mut self, harm: Harm) {
        match harm {
            Harm::Latency { millis } => self.delay += Duration::from_millis(millis),
            other => self.harm = Some(other),
        }
    }
}

impl From<Harm> for Decision {
    fn from(harm: Harm) -> Self {
        let mut decision = Self::default();
        decision.add(harm);
        decision
    }
}

/// The rules in force, in the order in which they were added.
#[derive(Debug)]
pub struct Rules<R>(Vec<R>);

impl<R> Default for Rules<R> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<R: Rule> Rules<R> {
    /// Adds a rule after the others.
    pub fn add(&mut self, rule: R) {
        self.0.push(rule);
    }

    /// Ends all rules.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// The rules that are not used up.
    pub fn list(&self) -> &[R] {
        &self.0
    }

    /// Decides on a request and uses up the rules that hit it. Delays add up; of the other harms the first one counts,
    /// and the rules behind it wait for their turn.
    pub fn decide(&mut self, request: &R::Request<'_>) -> Decision {
        let mut decision = Decision::default();
        for rule in &mut self.0 {
            let harm = rule.harm().clone();
            let waits = decision.harm.is_some() && !matches!(harm, Harm::Latency { .. });
            if waits || !rule.matches(request) {
                continue;
            }
            let (skip, times) = rule.limits();
            if *skip > 0 {
                *skip -= 1;
            } else if *times != Some(0) {
                *times = times.map(|left| left - 1);
                decision.add(harm);
            }
        }
        self.0.retain_mut(|rule| *rule.limits().1 != Some(0));
        decision
    }
}

type Plan<Q, H> = dyn FnMut(&Q) -> Option<H> + Send;

/// A test's own function that decides for each request what goes wrong with it, if anything.
pub struct Planner<Q, H>(Option<Box<Plan<Q, H>>>);

impl<Q, H> Planner<Q, H> {
    /// Replaces the function that was set before.
    pub fn set(&mut self, plan: impl FnMut(&Q) -> Option<H> + Send + 'static) {
        self.0 = Some(Box::new(plan));
    }

    /// Nothing is planned from now on.
    pub fn clear(&mut self) {
        self.0 = None;
    }

    /// What the function says about this request.
    pub fn decide(&mut self, request: &Q) -> Option<H> {
        self.0.as_mut().and_then(|plan| plan(request))
    }
}

impl<Q, H> Default for Planner<Q, H> {
    fn default() -> Self {
        Self(None)
    }
}

impl<Q, H> fmt::Debug for Planner<Q, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Planner").field(&self.0.is_some()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A rule for requests with one name.
    struct Named(&'static str, u64, Option<u64>, Harm);

    impl Rule for Named {
        type Request<'a> = &'a str;

        fn matches(&self, request: &&str) -> bool {
            self.0 == *request
        }

        fn harm(&self) -> &Harm {
            &self.3
        }

        fn limits(&mut self) -> (&mut u64, &mut Option<u64>) {
            (&mut self.1, &mut self.2)
        }

        fn supports(_: &Harm) -> bool {
            true
        }
    }

    fn harms(rules: &mut Rules<Named>, count: usize) -> Vec<Option<Harm>> {
        (0..count).map(|_| rules.decide(&"get").harm).collect()
    }

    #[test]
    fn a_rule_hits_what_it_names_as_often_as_it_says() {
        let mut rules = Rules::default();
        let harm = Harm::status(503);
        rules.add(Named("get", 1, Some(2), harm.clone()));
        assert_eq!(rules.decide(&"list"), Decision::default());
        assert_eq!(harms(&mut rules, 4), [None, Some(harm.clone()), Some(harm), None]);
        assert!(rules.list().is_empty(), "a rule that is used up is gone");
    }

    #[test]
    fn the_first_rule_decides_and_the_others_wait_for_their_turn() {
        let mut rules = Rules::default();
        rules.add(Named("get", 0, Some(1), Harm::status(500)));
        rules.add(Named("get", 1, Some(1), Harm::LostCall));
        let want = [Some(Harm::status(500)), None, Some(Harm::LostCall), None];
        assert_eq!(harms(&mut rules, 4), want, "`skip` counts requests that go well");
    }

    #[test]
    fn delays_add_up_and_go_together_with_another_harm() {
        let mut rules = Rules::default();
        rules.add(Named("get", 0, None, Harm::Latency { millis: 5 }));
        rules.add(Named("get", 0, Some(1), Harm::LostAnswer));
        rules.add(Named("get", 0, None, Harm::Latency { millis: 7 }));
        let delay = Duration::from_millis(12);
        assert_eq!(rules.decide(&"get"), Decision { delay, harm: Some(Harm::LostAnswer) });
        assert_eq!(rules.decide(&"get"), Decision { delay, harm: None });
    }

    #[test]
    fn a_planner_decides_until_it_is_cleared() {
        let mut planner = Planner::default();
        assert_eq!(planner.decide(&1), None);
        planner.set(|request: &u8| (*request == 1).then_some("lost"));
        assert_eq!((planner.decide(&1), planner.decide(&2)), (Some("lost"), None));
        planner.clear();
        assert_eq!(planner.decide(&1), None);
    }
}
