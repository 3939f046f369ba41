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
        Balancers, Desired, Executor, Goal, Impact, IntentMark, LockKey, LockKind, Name, Outcome, Permit,
        Plan, Publish, Refusal, Step, Turn, TurnEnd, drive, dry_run, intended_name,
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
pub trait ServiceRecorder: Send + Sync {
    /// Writes `publish` on the Service where it differs from what is there.
    fn record<'a>(&'a self, publish: &'a Publish, intent: IntentMark) -> Boxed<'a, Result<()>>;

    /// Hears of every step that was sent, once its outcome is known.
    fn step(&self, _report: StepReport) {}
}

/// A [`Balancers`] behind the object-safe trait.
#[derive(Debug)]
pub struct Erased<B>(pub B);

impl<B: Balancers> Erased<B> {
    async fn look(&self, call: &Call, survey: &Survey, want: &Desired) -> Lookup<B::Observed> {
        match survey.downcast_ref::<B::Survey>() {
            Some(survey) => self.0.observe(call, survey, want).await,
            None => Lookup::Unknown(Error::permanent("internal error: the survey is of another cloud")),
        }
    }

    /// Whose it is that was observed, and why nothing is done about it where it is not this Service's.
    fn judge(&self, want: &Desired, observed: &B::Observed) -> Option<(Ownership, Option<Refusal>)> {
        let Desired { service, cluster, goal, .. } = want;
        let found = self.0.identity(observed)?;
        let keys = self.0.lock_keys(service, cluster);
        let verdict = ownership::judge(service, &keys, &self.0.name_for(service, cluster), &found);
        let refusal = ownership::refusal(&verdict, &found, *goal, self.0.marks().first().copied());
        Some((verdict, refusal))
    }

    /// Why nothing is done about what was observed, if it is not this Service's.
    fn refusal(&self, want: &Desired, observed: Option<&B::Observed>) -> Option<Refusal> {
        self.judge(want, observed?)?.1
    }
}

/// How it ends where what is there is not this Service's: nothing is created beside it, and nobody has to wait for it to
/// go.
const fn left_alone(goal: Goal) -> TurnEnd {
    match goal {
        Goal::Present => TurnEnd::Refused,
        Goal::Gone => TurnEnd::Converged,
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
    fn lock_keys(&self, service: &ServiceView, cluster: &str) -> Vec<LockKey> {
        let mut keys = self.0.lock_keys(service, cluster);
        let intended = intended_name(service).map(|name| LockKey::new(LockKind::Name, name));
        let published = service.ingress.iter().filter_map(|entry| parse_ip(entry.ip.as_deref()?));
        let published = published.map(|ip| LockKey::new(LockKind::Published, ip.to_string()));
        for key in intended.into_iter().chain(published) {
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        keys
    }

    fn survey<'a>(&'a self, call: &'a Call) -> Boxed<'a, Result<Survey>> {
        Box::pin(async { self.0.survey(call).await.map(|survey| Arc::new(survey) as Survey) })
    }

    fn owner<'a>(
        &'a self,
        call: &'a Call,
        survey: &'a Survey,
        want: &'a Desired,
    ) -> Boxed<'a, Lookup<Ownership>> {
        Box::pin(async move {
            match self.look(call, survey, want).await {
                Lookup::Present(observed) => match self.judge(want, &observed) {
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
        want: &'a Desired,
        permit: Permit,
        recorder: &'a dyn ServiceRecorder,
    ) -> Boxed<'a, Turn> {
        Box::pin(async move {
            match self.look(call, survey, want).await.known() {
                Ok(observed) => {
                    if let Some(refusal) = self.refusal(want, observed.as_ref()) {
                        return Turn { refused: vec![refusal], ..Turn::new().end(left_alone(want.goal)) };
                    }
                    let live = Live { balancers: &self.0, call, recorder };
                    drive(&self.0, &live, want, observed, permit).await
                }
                Err(why) => Turn::unknown(why),
            }
        })
    }

    fn dry_run<'a>(&'a self, call: &'a Call, survey: &'a Survey, want: &'a Desired) -> Boxed<'a, Plan> {
        Box::pin(async move {
            match self.look(call, survey, want).await.known() {
                Ok(observed) => match self.refusal(want, observed.as_ref()) {
                    Some(refusal) => Plan { refused: vec![refusal], ..Plan::resting(left_alone(want.goal)) },
                    None => dry_run(&self.0, want, observed),
                },
                Err(why) => Plan::unknown(why),
            }
        })
    }
}

/// The hands in production: the cloud, and a recorder.
struct Live<'a, B> {
    balancers: &'a B,
    call: &'a Call,
    recorder: &'a dyn ServiceRecorder,
}

impl<B: Balancers> Executor<B> for Live<'_, B> {
    async fn execute(&self, step: &Step<B::Action>) -> Outcome<B::Answer> {
        let outcome = self.balancers.execute(self.call, &step.act).await;
        let result = match &outcome {
            Outcome::Done(_) => Ok(()),
            Outcome::Failed(error) | Outcome::Unknown(error) => Err(error.clone()),
        };
        self.recorder.step(StepReport { label: step.label.clone(), impact: step.impact, result });
        outcome
    }

    async fn record(&self, publish: &Publish, intent: IntentMark) -> Result<()> {
        self.recorder.record(publish, intent).await
    }
}
