//! Runs the loop dry: decide, assume, fold, until it rests. Nothing is sent.

use crate::{
    error::Error,
    lb::{
        Balancers, Decision, MAX_ROUNDS, Next, Permit, Plan, PlannedStep, Rest, Turn, Want,
        driver::{circles, forbids, withdraws_nothing},
    },
};

/// What a turn would do about what was seen, if every step were answered as the provider assumes.
pub fn rehearse<B: Balancers>(balancers: &B, want: &Want, mut seen: Option<B::Seen>) -> Plan {
    let mut plan = Plan::resting(Rest::Failed(circles()));
    for _ in 0..MAX_ROUNDS {
        let Decision { next, publish, refused, notices } =
            withdraws_nothing(want, balancers.decide(want, seen.as_ref()));
        plan.publish = publish.or(plan.publish);
        plan.refused = refused;
        plan.notices = notices;
        let steps = match next {
            Next::Converged => return Plan { rest: Rest::Converged, ..plan },
            Next::Wait { on, poll } => return Plan { rest: Rest::Wait { on, poll }, ..plan },
            Next::Act(steps) => steps,
        };
        let so_far = Turn { refused: plan.refused.clone(), ..Turn::new() };
        if let Some(rest) = forbids(&steps, want.goal, &so_far, Permit::Create) {
            return Plan { rest, ..plan };
        }
        for step in steps {
            let answer = balancers.assume(&step.act);
            seen = balancers.fold(seen, &step.act, &answer);
            plan.steps.push(PlannedStep { label: step.label, impact: step.impact });
        }
    }
    plan
}

impl Plan {
    /// Whether the cloud is as it should be.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The plan of a Service whose load balancer could not be looked at.
    #[must_use]
    pub fn unknown(error: Error) -> Self {
        Self::resting(Rest::Unknown(error))
    }

    /// A plan without steps.
    pub(super) const fn resting(rest: Rest) -> Self {
        Self { steps: Vec::new(), rest, publish: None, refused: Vec::new(), notices: Vec::new() }
    }
}
