//! Makes the object-safe [`LoadBalancers`] of any [`Balancers`].

use std::{any::Any, sync::Arc, time::Duration};

use crate::{
    annotation,
    call::Call,
    decide::{
        nodeset::Selector,
        service::ownership::{self, Ownership},
    },
    error::{Error, Result},
    lb::{
        Balancers, Claim, ClaimKind, Executor, Goal, Impact, IntentMark, Name, Outcome, Permit, Plan,
        Publish, Refusal, Rest, Step, Turn, Want, drive, intended_name, rehearse,
    },
    lookup::Lookup,
    net::parse_ip,
    provider::{Boxed, LoadBalancers},
    view::ServiceView,
};

/// A survey of any cloud, shared by all Services of a pass. Only the provider that made it can read it.
pub type Survey = Arc<dyn Any + Send + Sync>;

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

/// Writes down what happens to a Service.
pub trait Scribe: Send + Sync {
    /// Writes `publish` on the Service where it differs from what is there.
    fn record<'a>(&'a self, publish: &'a Publish, intent: IntentMark) -> Boxed<'a, Result<()>>;

    /// Hears of every step that was sent, once its outcome is known.
    fn step(&self, _report: StepReport) {}
}

/// A [`Balancers`] behind the object-safe trait.
#[derive(Debug)]
pub struct Erased<B>(pub B);

impl<B: Balancers> Erased<B> {
    async fn look(&self, call: &Call, survey: &Survey, want: &Want) -> Lookup<B::Seen> {
        match survey.downcast_ref::<B::Survey>() {
            Some(survey) => self.0.observe(call, survey, want).await,
            None => Lookup::Unknown(Error::permanent("internal error: the survey is of another cloud")),
        }
    }

    /// Whose it is that was seen, and why nothing is done about it where it is not this Service's.
    fn judge(&self, want: &Want, seen: &B::Seen) -> Option<(Ownership, Option<Refusal>)> {
        let Want { service, cluster, goal, .. } = want;
        let found = self.0.identity(seen)?;
        let claims = self.0.claims(service, cluster);
        let verdict = ownership::judge(service, &claims, &self.0.name_for(service, cluster), &found);
        let refusal = ownership::refusal(&verdict, &found, *goal, self.0.marks().first().copied());
        Some((verdict, refusal))
    }

    /// Why nothing is done about what was seen, if it is not this Service's.
    fn refusal(&self, want: &Want, seen: Option<&B::Seen>) -> Option<Refusal> {
        self.judge(want, seen?)?.1
    }
}

/// How it ends where what is there is not this Service's: nothing is created beside it, and nobody has to wait for it to
/// go.
const fn left_alone(goal: Goal) -> Rest {
    match goal {
        Goal::Present => Rest::Refused,
        Goal::Gone => Rest::Converged,
    }
}

impl<B: Balancers> LoadBalancers for Erased<B> {
    fn annotations(&self) -> &annotation::Table {
        self.0.annotations()
    }

    fn marks(&self) -> &[&'static str] {
        self.0.marks()
    }

    fn shows<'a>(&'a self, call: &'a Call, id: &'a str) -> Boxed<'a, Lookup<()>> {
        Box::pin(self.0.shows(call, id))
    }

    fn settle_time(&self) -> Duration {
        self.0.settle_time()
    }

    fn selector(&self, service: &ServiceView) -> Result<Option<Selector>> {
        self.0.selector(service)
    }

    fn name_for(&self, service: &ServiceView, cluster: &str) -> Name {
        self.0.name_for(service, cluster)
    }

    /// What the provider says, what an intent says, and what the status shows.
    fn claims(&self, service: &ServiceView, cluster: &str) -> Vec<Claim> {
        let mut claims = self.0.claims(service, cluster);
        let intended = intended_name(service).map(|name| Claim::new(ClaimKind::Name, name));
        let published = service.ingress.iter().filter_map(|entry| parse_ip(entry.ip.as_deref()?));
        let published = published.map(|ip| Claim::new(ClaimKind::Published, ip.to_string()));
        for claim in intended.into_iter().chain(published) {
            if !claims.contains(&claim) {
                claims.push(claim);
            }
        }
        claims
    }

    fn survey<'a>(&'a self, call: &'a Call) -> Boxed<'a, Result<Survey>> {
        Box::pin(async { self.0.survey(call).await.map(|survey| Arc::new(survey) as Survey) })
    }

    fn owner<'a>(
        &'a self,
        call: &'a Call,
        survey: &'a Survey,
        want: &'a Want,
    ) -> Boxed<'a, Lookup<Ownership>> {
        Box::pin(async move {
            match self.look(call, survey, want).await {
                Lookup::Present(seen) => match self.judge(want, &seen) {
                    Some((verdict, _)) => Lookup::Present(verdict),
                    None => Lookup::Absent,
                },
                Lookup::Absent => Lookup::Absent,
                Lookup::Unknown(why) => Lookup::Unknown(why),
            }
        })
    }

    fn turn<'a>(
        &'a self,
        call: &'a Call,
        survey: &'a Survey,
        want: &'a Want,
        permit: Permit,
        scribe: &'a dyn Scribe,
    ) -> Boxed<'a, Turn> {
        Box::pin(async move {
            match self.look(call, survey, want).await.known() {
                Ok(seen) => {
                    if let Some(refusal) = self.refusal(want, seen.as_ref()) {
                        return Turn { refused: vec![refusal], ..Turn::new().end(left_alone(want.goal)) };
                    }
                    let live = Live { balancers: &self.0, call, scribe };
                    drive(&self.0, &live, want, seen, permit).await
                }
                Err(why) => Turn::unknown(why),
            }
        })
    }

    fn rehearse<'a>(&'a self, call: &'a Call, survey: &'a Survey, want: &'a Want) -> Boxed<'a, Plan> {
        Box::pin(async move {
            match self.look(call, survey, want).await.known() {
                Ok(seen) => match self.refusal(want, seen.as_ref()) {
                    Some(refusal) => Plan { refused: vec![refusal], ..Plan::resting(left_alone(want.goal)) },
                    None => rehearse(&self.0, want, seen),
                },
                Err(why) => Plan::unknown(why),
            }
        })
    }
}

/// The hands in production: the cloud, and a scribe.
struct Live<'a, B> {
    balancers: &'a B,
    call: &'a Call,
    scribe: &'a dyn Scribe,
}

impl<B: Balancers> Executor<B> for Live<'_, B> {
    async fn execute(&self, step: &Step<B::Act>) -> Outcome<B::Answer> {
        let outcome = self.balancers.execute(self.call, &step.act).await;
        let result = match &outcome {
            Outcome::Done(_) => Ok(()),
            Outcome::Failed(error) | Outcome::Unknown(error) => Err(error.clone()),
        };
        self.scribe.step(StepReport { label: step.label.clone(), impact: step.impact, result });
        outcome
    }

    async fn record(&self, publish: &Publish, intent: IntentMark) -> Result<()> {
        self.scribe.record(publish, intent).await
    }
}
