//! Runs the loop for one Service: decide, execute, fold, again.
//!
//! The rules that no provider may get wrong live here:
//! - a lost answer ends the turn; only a fresh observation may go on from there;
//! - what the cloud refuses in part is decided about again, and never counted as done;
//! - a refusal blocks creation and nothing else (law 8);
//! - nothing is created without a recorded intent (law 6), and nothing at all while a load balancer is to go;
//! - published addresses are never replaced by none (law 1);
//! - what was seen and then not there to be removed is remembered: it may have been another account that answered;
//! - a planner that does not come to rest is stopped.

use futures_util::future::join_all;

use crate::{
    call::Call,
    error::{Error, Result},
    lb::{
        Balancers, Creation, Decision, Desired, Goal, Impact, Next, Notice, Outcome, Permit, Publish,
        Refusal, Severity, Step, Turn, TurnEnd, intended_name,
    },
    provider::Boxed,
    reason,
};

/// More decisions than any honest load balancer needs in one turn; a planner that takes more goes in circles.
pub const MAX_ROUNDS: usize = 64;

/// What happens to a recorded intent when something is written on the Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntentMark {
    /// More is about to be created: it stays.
    Keep,
    /// What was created is known and about to be recorded: it goes, in the same write.
    Clear,
}

/// What is said about a step: the same words in log, event and dry run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepReport {
    /// The step in words.
    pub label: String,
    /// What it does to traffic.
    pub impact: Impact,
    /// What became of it: `Ok`, or the error with which it failed or was lost.
    pub result: Result<()>,
}

/// What a turn does beside deciding. A live one writes on the Service and its steps are sent; a dry one only notes both.
pub trait Effects: Send + Sync {
    /// Whether this is a dry run: no step is sent, [`Balancers::assume`] answers each.
    fn is_dry(&self) -> bool {
        false
    }

    /// Writes `publish` on the Service where it differs from what is there.
    fn record<'a>(&'a self, publish: &'a Publish, intent: IntentMark) -> Boxed<'a, Result<()>>;

    /// Hears of every step once its outcome is known.
    fn step(&self, _report: StepReport) {}
}

/// Takes one Service as far as it goes without waiting, from what was observed.
pub async fn drive<B: Balancers>(
    balancers: &B,
    call: &Call,
    effects: &dyn Effects,
    want: &Desired,
    mut observed: Option<B::Observed>,
    permit: Permit,
) -> Turn {
    let mut turn = Turn::new();
    let mut recorded = None;
    for _ in 0..MAX_ROUNDS {
        let Decision { next, publish, refused, notices } =
            withdraws_nothing(want, balancers.decide(want, observed.as_ref()));
        turn.refused = refused;
        turn.notices = notices;
        if let Some(publish) = publish.filter(|new| recorded.as_ref() != Some(new)) {
            let mark = if creates(&next) { IntentMark::Keep } else { IntentMark::Clear };
            if let Err(error) = effects.record(&publish, mark).await {
                return turn.end(TurnEnd::Failed(error));
            }
            recorded = Some(publish);
        }
        let steps = match next {
            Next::Converged => return turn.end(TurnEnd::Converged),
            Next::Wait { on, poll } => return turn.end(TurnEnd::Wait { on, poll }),
            Next::Act(steps) => steps,
        };
        if let Some(end) = forbids(balancers, &steps, want, &turn, permit) {
            return turn.end(end);
        }
        observed = match carry_out(balancers, call, effects, &steps, observed, &mut turn).await {
            Ok(observed) => observed,
            Err(rest) => return turn.end(rest),
        };
    }
    let circles = format!("internal error: the plan did not come to rest after {MAX_ROUNDS} rounds");
    turn.end(TurnEnd::Failed(Error::permanent(circles)))
}

/// Takes an empty list of addresses out of a decision where the Service shows some, and says so: a load balancer that is
/// there has an address, so nobody told.
fn withdraws_nothing<A>(want: &Desired, mut decision: Decision<A>) -> Decision<A> {
    let ingress = decision.publish.as_mut().map(|publish| &mut publish.ingress);
    let Some(list) = ingress.filter(|list| list.as_ref().is_some_and(Vec::is_empty)) else { return decision };
    *list = None;
    if !want.service.ingress.is_empty() {
        decision.notices.push(Notice {
            severity: Severity::Warning,
            reason: reason::NO_ADDRESS_SHOWN,
            message: "the cloud shows no address of the load balancer; what is published stays".to_owned(),
        });
    }
    decision
}

fn creates<A>(next: &Next<A>) -> bool {
    matches!(next, Next::Act(steps) if steps.iter().any(|step| step.creates))
}

/// Why these steps may not be sent, if they may not.
///
/// A Service that was edited after the intent was decided on may ask for another name than the recorded one. What is
/// created under a name that stands nowhere would not be found again if its answer were lost.
fn forbids<B: Balancers>(
    balancers: &B,
    steps: &[Step<B::Action>],
    want: &Desired,
    turn: &Turn,
    permit: Permit,
) -> Option<TurnEnd> {
    if steps.is_empty() {
        return Some(TurnEnd::Failed(Error::permanent("internal error: the plan has a round without steps")));
    }
    let creating = steps.iter().find(|step| step.creates)?;
    if want.goal == Goal::Gone {
        let message = format!("internal error: the plan to remove a load balancer would {}", creating.label);
        return Some(TurnEnd::Failed(Error::permanent(message)));
    }
    if !turn.refused.is_empty() {
        return Some(TurnEnd::Refused);
    }
    let name = || balancers.name_for(&want.service, &want.cluster).text;
    let names_another = intended_name(&want.service).is_some_and(|intended| intended != name());
    (permit == Permit::NoCreate || names_another).then_some(TurnEnd::NeedsIntent)
}

/// Sends independent steps, as many at once as the cloud bears, and folds their answers in. After a failure those
/// already under way are heard out, and no more are begun.
async fn carry_out<B: Balancers>(
    balancers: &B,
    call: &Call,
    effects: &dyn Effects,
    steps: &[Step<B::Action>],
    mut observed: Option<B::Observed>,
    turn: &mut Turn,
) -> Result<Option<B::Observed>, TurnEnd> {
    let execute = async |step: &Step<B::Action>| {
        let outcome = if effects.is_dry() {
            Outcome::Done(balancers.assume(&step.act))
        } else {
            balancers.execute(call, &step.act).await
        };
        let result = match &outcome {
            Outcome::Done(_) | Outcome::NotThere => Ok(()),
            Outcome::Failed(error) | Outcome::Unknown(error) | Outcome::Refused { why: error, .. } => {
                Err(error.clone())
            }
        };
        effects.step(StepReport { label: step.label.clone(), impact: step.impact, result });
        outcome
    };
    for batch in steps.chunks(balancers.width().max(1)) {
        let outcomes = join_all(batch.iter().map(&execute)).await;
        let mut stop = None;
        for (step, outcome) in batch.iter().zip(outcomes) {
            match outcome {
                Outcome::Done(answer) => {
                    observed = balancers.fold(observed, &step.act, &answer);
                    turn.did(step);
                }
                Outcome::NotThere => {
                    observed = balancers.fold(observed, &step.act, &balancers.assume(&step.act));
                    turn.did(step);
                    turn.denied = true;
                }
                // Nothing was done, so nothing is counted as done; the next decision knows why.
                Outcome::Refused { answer, .. } => observed = balancers.fold(observed, &step.act, &answer),
                Outcome::Failed(error) => {
                    stop.get_or_insert(TurnEnd::Failed(error.context(&step.label)));
                }
                Outcome::Unknown(error) => {
                    turn.lost(step);
                    // Not knowing outranks knowing of a failure: it forbids to go on from what was observed.
                    stop = Some(TurnEnd::Unknown(error.context(&step.label)));
                }
            }
        }
        if let Some(rest) = stop {
            return Err(rest);
        }
    }
    Ok(observed)
}

impl Turn {
    /// A turn in which nothing happened yet.
    pub(super) const fn new() -> Self {
        Self {
            end: TurnEnd::Converged,
            done: Vec::new(),
            denied: false,
            creation: Creation::Nothing,
            refused: Vec::new(),
            notices: Vec::new(),
        }
    }

    /// A turn that could not begin, because it could not be found out what there is.
    #[must_use]
    pub fn unknown(why: Error) -> Self {
        Self::new().end(TurnEnd::Unknown(why))
    }

    /// A turn that did not begin, because the Service asks for what cannot be done.
    #[must_use]
    pub fn screened(refused: Vec<Refusal>) -> Self {
        Self { refused, ..Self::new().end(TurnEnd::Refused) }
    }

    pub(super) fn end(mut self, end: TurnEnd) -> Self {
        self.end = end;
        self
    }

    fn did<A>(&mut self, step: &Step<A>) {
        self.done.push(step.label.clone());
        if step.creates {
            self.creation = self.creation.max(Creation::Known);
        }
    }

    fn lost<A>(&mut self, step: &Step<A>) {
        if step.creates {
            self.creation = Creation::Unsure;
        }
    }
}
