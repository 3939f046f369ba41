//! Makes the object-safe [`LoadBalancers`] of any [`Balancers`].

use std::{any::Any, sync::Arc, time::Duration};

use crate::{
    annotation,
    call::Call,
    decide::nodeset::Selector,
    error::{Error, Result},
    lb::{
        Balancers, Claim, Executor, Impact, IntentMark, Outcome, Permit, Plan, Publish, Step, Turn, Want,
        drive, rehearse,
    },
    lookup::Lookup,
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

    fn claims(&self, service: &ServiceView, cluster: &str) -> Vec<Claim> {
        self.0.claims(service, cluster)
    }

    fn survey<'a>(&'a self, call: &'a Call) -> Boxed<'a, Result<Survey>> {
        Box::pin(async { self.0.survey(call).await.map(|survey| Arc::new(survey) as Survey) })
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
                Ok(seen) => rehearse(&self.0, want, seen),
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
