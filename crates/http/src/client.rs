//! The client: reads and writes.

use std::{fmt, sync::Arc, time::Duration};

use cloudberth_core::{Call, Clock, Error, Lookup, Random, Result, lb::Outcome};
use serde::de::{DeserializeOwned, IgnoredAny};

use crate::{
    answer::Answer,
    attempt::{Failure, Success},
    auth::{Anonymous, Authenticator},
    base::Base,
    budget::Budget,
    classify::Dialect,
    observe::{Observer, Unobserved},
    operation::{Operation, Read, Write},
    retry::Policy,
    tags::TaggedAnswers,
    transport::Transport,
};

/// A REST client for one API and one credential. Clones are cheap and share everything.
#[derive(Clone)]
pub struct Client(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) base: Base,
    pub(crate) transport: Transport,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<Random>,
    pub(crate) auth: Arc<dyn Authenticator>,
    pub(crate) budget: Budget,
    pub(crate) policy: Policy,
    pub(crate) dialect: Dialect,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) tags: TaggedAnswers,
}

/// Builds a [`Client`].
pub struct Builder(Inner);

impl Builder {
    /// Where credentials come from; none are sent unless this is set.
    #[must_use]
    pub fn authenticator(mut self, authenticator: Arc<dyn Authenticator>) -> Self {
        self.0.auth = authenticator;
        self
    }

    /// The rate limit: ten requests a second and bursts of twenty unless set. Share one among all clients of a credential.
    #[must_use]
    pub fn budget(mut self, budget: Budget) -> Self {
        self.0.budget = budget;
        self
    }

    /// Limits of attempts, waits and sizes.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.0.policy = policy;
        self
    }

    /// How this cloud's answers are read.
    #[must_use]
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.0.dialect = dialect;
        self
    }

    /// Is told about every attempt.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.0.observer = observer;
        self
    }

    /// A client with these settings.
    #[must_use]
    pub fn build(self) -> Client {
        Client(Arc::new(self.0))
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Builder({})", self.0.base)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({})", self.0.base)
    }
}

impl Client {
    /// A builder of a client for the API at `base`. The clock must move with the runtime's time.
    pub fn builder(base: Base, transport: Transport, clock: Arc<dyn Clock>, random: Arc<Random>) -> Builder {
        let budget = Budget::new(Duration::from_millis(100), 20, Arc::clone(&clock));
        Builder(Inner {
            base,
            transport,
            clock,
            random,
            budget,
            auth: Arc::new(Anonymous),
            policy: Policy::default(),
            dialect: Dialect::default(),
            observer: Arc::new(Unobserved),
            tags: TaggedAnswers::default(),
        })
    }

    /// The budget that this client draws on.
    pub fn budget(&self) -> &Budget {
        &self.0.budget
    }

    /// Reads one thing that must exist.
    pub async fn read<T: DeserializeOwned>(&self, call: &Call, operation: Operation<Read>) -> Result<T> {
        match self.exchange(call, &operation.plan).await {
            Ok(success) => success.json(),
            Err(failure) => Err(failure.error),
        }
    }

    /// Looks a thing up. `Absent` only if the [`Dialect`] takes the answer for the API's own statement.
    pub async fn lookup<T: DeserializeOwned>(&self, call: &Call, operation: Operation<Read>) -> Lookup<T> {
        match self.exchange(call, &operation.plan).await {
            Ok(success) => Lookup::from(success.json().map(Some)),
            Err(failure) if failure.absent => Lookup::Absent,
            Err(failure) => Lookup::Unknown(failure.error),
        }
    }

    /// Changes something and decodes the answer.
    pub async fn write<T: DeserializeOwned>(&self, call: &Call, operation: Operation<Write>) -> Outcome<T> {
        outcome(self.exchange(call, &operation.plan).await, Success::json)
    }

    /// Changes something, and tells a refusal apart that the caller can decide about: where it certainly had no effect and
    /// `refused` can read the answer, that is [`Outcome::Refused`]. The error beside it is fit to be shown.
    pub async fn write_or<T: DeserializeOwned, R>(
        &self,
        call: &Call,
        operation: Operation<Write>,
        done: impl FnOnce(T) -> R,
        refused: impl FnOnce(&Answer, &Error) -> Option<R>,
    ) -> Outcome<R> {
        match self.exchange(call, &operation.plan).await {
            Err(Failure { error, doubt: false, answer: Some(answer), .. }) => {
                match refused(&answer, &error) {
                    Some(answer) => Outcome::Refused { answer, why: error },
                    None => Outcome::Failed(error),
                }
            }
            result => outcome(result, Success::json).map(done),
        }
    }

    /// Changes something and ignores the answer's content. A body, if there is one, must still be JSON: a success with an
    /// HTML page comes from a proxy.
    pub async fn write_only(&self, call: &Call, operation: Operation<Write>) -> Outcome<()> {
        outcome(self.exchange(call, &operation.plan).await, nothing)
    }

    /// Removes something. `NotThere` only if the [`Dialect`] takes the answer for the API's own statement.
    pub async fn remove(&self, call: &Call, operation: Operation<Write>) -> Outcome<()> {
        match self.exchange(call, &operation.plan).await {
            Err(failure) if failure.absent => Outcome::NotThere,
            result => outcome(result, nothing),
        }
    }
}

impl Success {
    fn json<T: DeserializeOwned>(&self) -> Result<T> {
        self.answer.json().map_err(|error| self.context.error(&error))
    }
}

fn nothing(success: &Success) -> Result<()> {
    if success.answer.is_empty() { Ok(()) } else { success.json::<IgnoredAny>().map(|_| ()) }
}

/// A success that cannot be decoded took effect all the same, so it is unknown and not failed.
fn outcome<T>(result: Result<Success, Failure>, read: impl FnOnce(&Success) -> Result<T>) -> Outcome<T> {
    match result.map(|success| read(&success)) {
        Ok(Ok(value)) => Outcome::Done(value),
        Ok(Err(error)) | Err(Failure { error, doubt: true, .. }) => Outcome::Unknown(error),
        Err(Failure { error, doubt: false, .. }) => Outcome::Failed(error),
    }
}
