//! Runs the loop dry: decide, assume, fold, until it rests. Nothing is sent.

use crate::{
    error::Error,
    lb::{
        Balancers, Decision, Desired, MAX_ROUNDS, Next, Permit, Plan, PlannedStep, Turn, TurnEnd,
        driver::{circles, forbids, withdraws_nothing},
    },
};

/// What a turn would do about what was observed, if every step were answered as the provider assumes.
pub fn dry_run<B: Balancers>(balancers: &B, want: &Desired, mut observed: Option<B::Observed>) -> Plan {
    let mut plan = Plan::resting(TurnEnd::Failed(circles()));
    for _ in 0..MAX_ROUNDS {
        let Decision { next, publish, refused, notices } =
            withdraws_nothing(want, balancers.decide(want, observed.as_ref()));
        plan.publish = publish.or(plan.publish);
        plan.refused = refused;
        plan.notices = notices;
        let steps = match next {
            Next::Converged => return Plan { end: TurnEnd::Converged, ..plan },
            Next::Wait { on, poll } => return Plan { end: TurnEnd::Wait { on, poll }, ..plan },
            Next::Act(steps) => steps,
        };
        let so_far = Turn { refused: plan.refused.clone(), ..Turn::new() };
        if let Some(end) = forbids(&steps, want.goal, &so_far, Permit::Create) {
            return Plan { end, ..plan };
        }
        for step in steps {
            let answer = balancers.assume(&step.act);
            observed = balancers.fold(observed, &step.act, &answer);
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
        Self::resting(TurnEnd::Unknown(error))
    }

    /// A plan without steps.
    pub(super) const fn resting(end: TurnEnd) -> Self {
        Self { steps: Vec::new(), end, publish: None, refused: Vec::new(), notices: Vec::new() }
    }
}
