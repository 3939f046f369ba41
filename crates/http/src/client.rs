//! The client: questions that have answers, and changes that have outcomes.

use std::{fmt, sync::Arc, time::Duration};

use cloudberth_core::{Call, Clock, Lookup, Random, Result, lb::Outcome};
use http::{StatusCode, header};
use serde::de::{DeserializeOwned, IgnoredAny};

use crate::{
    answer::Answer,
    attempt::{Failure, Said},
    auth::{Anonymous, Authenticator},
    base::Base,
    budget::Budget,
    classify::Dialect,
    observe::{Observer, Unobserved},
    operation::{Operation, Read, Write},
    retry::Policy,
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
}

/// Puts a [`Client`] together.
pub struct Builder(Inner);

impl Builder {
    /// Who we say we are; nobody, unless set.
    #[must_use]
    pub fn authenticator(mut self, authenticator: Arc<dyn Authenticator>) -> Self {
        self.0.auth = authenticator;
        self
    }

    /// How much may be sent: ten requests a second and twenty at once, unless set. Share one among all clients of a
    /// credential.
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

    /// Who sees every attempt.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.0.observer = observer;
        self
    }

    /// The client.
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

/// What a conditional read brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fresh<T> {
    /// The answer with the given entity tag still holds.
    Same,
    /// There is another answer now.
    New {
        /// The answer.
        value: T,
        /// Its entity tag, if it has one.
        tag: Option<String>,
    },
}

impl Client {
    /// Begins a client for the API at `base`. The clock must move with the runtime's time.
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
        })
    }

    /// The budget that this client draws on.
    #[must_use]
    pub fn budget(&self) -> &Budget {
        &self.0.budget
    }

    /// Asks, and gives the answer as it came.
    pub async fn fetch(&self, call: &Call, operation: Operation<Read>) -> Result<Answer> {
        match self.exchange(call, &operation.plan).await {
            Ok(said) => Ok(said.answer),
            Err(failure) => Err(failure.error),
        }
    }

    /// Asks for one thing that must be there.
    pub async fn read<T: DeserializeOwned>(&self, call: &Call, operation: Operation<Read>) -> Result<T> {
        match self.exchange(call, &operation.plan).await {
            Ok(said) => said.json(),
            Err(failure) => Err(failure.error),
        }
    }

    /// Asks whether a thing is there. `Absent` only where the [`Dialect`] takes the answer for the API's own word.
    pub async fn lookup<T: DeserializeOwned>(&self, call: &Call, operation: Operation<Read>) -> Lookup<T> {
        match self.exchange(call, &operation.plan).await {
            Ok(said) => Lookup::from(said.json().map(Some)),
            Err(failure) if failure.absent => Lookup::Absent,
            Err(failure) => Lookup::Unknown(failure.error),
        }
    }

    /// Asks for one thing unless it is still the one with this entity tag.
    pub async fn refresh<T: DeserializeOwned>(
        &self,
        call: &Call,
        operation: Operation<Read>,
        tag: Option<&str>,
    ) -> Result<Fresh<T>> {
        let said = match self.exchange(call, &operation.unless(tag).plan).await {
            Ok(said) => said,
            Err(failure) => return Err(failure.error),
        };
        if said.answer.status() == StatusCode::NOT_MODIFIED {
            return Ok(Fresh::Same);
        }
        let tag = said.answer.header(&header::ETAG).map(str::to_owned);
        Ok(Fresh::New { value: said.json()?, tag })
    }

    /// Changes something; the answer's body tells what came of it.
    pub async fn write<T: DeserializeOwned>(&self, call: &Call, operation: Operation<Write>) -> Outcome<T> {
        self.change(call, &operation, Said::json).await
    }

    /// Changes something where the answer may be empty: 202 or 204, and no other success, without a body is `None`.
    pub async fn write_maybe<T: DeserializeOwned>(
        &self,
        call: &Call,
        operation: Operation<Write>,
    ) -> Outcome<Option<T>> {
        self.change(call, &operation, |said| {
            let status = said.answer.status();
            let silent = matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT);
            if silent && said.answer.is_empty() { Ok(None) } else { said.json().map(Some) }
        })
        .await
    }

    /// Changes something where only the success counts. A body, if there is one, must still be JSON: a success with
    /// a page in it comes from something in between.
    pub async fn write_only(&self, call: &Call, operation: Operation<Write>) -> Outcome<()> {
        self.change(call, &operation, nothing).await
    }

    /// Removes something. What the API says is not there is removed.
    pub async fn remove(&self, call: &Call, operation: Operation<Write>) -> Outcome<()> {
        match self.exchange(call, &operation.plan).await {
            Err(failure) if failure.absent => Outcome::Done(()),
            result => outcome(result, nothing),
        }
    }

    async fn change<T>(
        &self,
        call: &Call,
        operation: &Operation<Write>,
        read: impl FnOnce(&Said) -> Result<T>,
    ) -> Outcome<T> {
        outcome(self.exchange(call, &operation.plan).await, read)
    }
}

impl Said {
    fn json<T: DeserializeOwned>(&self) -> Result<T> {
        self.answer.json().map_err(|error| self.voice.error(&error))
    }
}

fn nothing(said: &Said) -> Result<()> {
    if said.answer.is_empty() { Ok(()) } else { said.json::<IgnoredAny>().map(|_| ()) }
}

/// A success that cannot be read happened all the same, and we do not know what it was.
fn outcome<T>(result: Result<Said, Failure>, read: impl FnOnce(&Said) -> Result<T>) -> Outcome<T> {
    match result.map(|said| read(&said)) {
        Ok(Ok(value)) => Outcome::Done(value),
        Ok(Err(error)) | Err(Failure { error, doubt: true, .. }) => Outcome::Unknown(error),
        Err(Failure { error, doubt: false, .. }) => Outcome::Failed(error),
    }
}
