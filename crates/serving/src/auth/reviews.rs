//! Token and access reviews by the Kubernetes API, with a cache.

use std::{fmt::Debug, io, sync::Arc, time::Duration};

use cloudberth_core::{Clock, Random, Secret};
use k8s_openapi::api::{
    authentication::v1::{TokenReview, TokenReviewSpec, TokenReviewStatus},
    authorization::v1::{SubjectAccessReview, SubjectAccessReviewSpec},
};
use kube::{Api, Client, Resource, api::PostParams};
use tokio::{
    sync::Semaphore,
    time::{sleep, timeout},
};

use super::{
    access::{Ruling, ruling},
    cache::{Cache, Key},
    identity::{AuthResult, Identity},
    review_queue::ReviewQueue,
};
use crate::{
    limiter::Peer,
    metrics::{Metrics, Review},
};

const TIMEOUT: Duration = Duration::from_secs(10);
const TRIES: i32 = 5;
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// How many reviews are in flight at once; a flood of made-up tokens waits in the queue instead of reaching the API.
const AT_ONCE: usize = 32;
const REMEMBERED: usize = 4096;

/// Sends reviews of one kind and caches the answers.
pub(crate) struct Reviewer<V> {
    client: Client,
    which: Review,
    clock: Arc<dyn Clock>,
    random: Arc<Random>,
    metrics: Metrics,
    queue: ReviewQueue,
    permits: Semaphore,
    answers: Cache<V>,
}

impl<V: Clone> Reviewer<V> {
    pub(crate) fn new(
        client: Client,
        which: Review,
        clock: Arc<dyn Clock>,
        random: Arc<Random>,
        metrics: Metrics,
    ) -> Self {
        let (queue, permits, answers) =
            (ReviewQueue::default(), Semaphore::new(AT_ONCE), Cache::new(REMEMBERED));
        Self { client, which, clock, random, metrics, queue, permits, answers }
    }

    /// A cached answer, or a new one. `judge` says what a new one means and how long it is cached.
    async fn ask<K>(
        &self,
        peer: Peer,
        key: Key,
        question: &K,
        judge: impl Fn(K) -> (V, Duration),
    ) -> Result<V, String>
    where
        K: Resource<DynamicType = ()> + Clone + Debug + serde::Serialize + serde::de::DeserializeOwned,
    {
        if let Some(answer) = self.answers.get(key, self.clock.now()) {
            return Ok(answer);
        }
        let _queued = self.queue.enter(peer).ok_or("too many reviews are waited for")?;
        let _permit = self.permits.acquire().await.map_err(|error| error.to_string())?;
        // Another request may have asked the same while this one waited.
        if let Some(answer) = self.answers.get(key, self.clock.now()) {
            return Ok(answer);
        }
        let (answer, good_for) = judge(self.post(question).await?);
        let now = self.clock.now();
        self.answers.put(key, answer.clone(), now, now + good_for);
        Ok(answer)
    }

    async fn post<K>(&self, question: &K) -> Result<K, String>
    where
        K: Resource<DynamicType = ()> + Clone + Debug + serde::Serialize + serde::de::DeserializeOwned,
    {
        let api: Api<K> = Api::all(self.client.clone());
        let mut tried = 0;
        loop {
            let began = self.clock.now();
            let result = timeout(TIMEOUT, api.create(&PostParams::default(), question)).await;
            let took = self.clock.now().since(began);
            tried += 1;
            let (code, why, at_least) = match result {
                Ok(Ok(answer)) => {
                    self.metrics.reviewed(self.which, Some(201), took);
                    return Ok(answer);
                }
                Ok(Err(error)) => (code(&error), error.to_string(), worth_repeating(&error)),
                Err(_) => (None, format!("no answer within {} s", TIMEOUT.as_secs()), Some(Duration::ZERO)),
            };
            self.metrics.reviewed(self.which, code, took);
            match at_least {
                Some(at_least) if tried < TRIES => {
                    let wait = self.random.jitter(FIRST_WAIT.mul_f64(1.5_f64.powi(tried - 1)), 0.2);
                    sleep(wait.max(at_least).min(LONGEST_WAIT)).await;
                }
                _ => return Err(why),
            }
        }
    }
}

impl Reviewer<AuthResult> {
    /// Whose token it is. A review that failed proves nothing and is not cached.
    pub(crate) async fn whose(&self, peer: Peer, token: &Secret, ttl: Duration) -> AuthResult {
        let spec = TokenReviewSpec { token: token.expose().to_owned(), audiences: None };
        let question = TokenReview { spec, ..TokenReview::default() };
        let judge = |answer: TokenReview| (proof(answer.status.unwrap_or_default()), ttl);
        self.ask(peer, Key::of(token.expose().as_bytes()), &question, judge).await.unwrap_or_else(|why| {
            AuthResult::Rejected(format!("the token could not be reviewed: {}", token.redact(&why)))
        })
    }
}

impl Reviewer<Ruling> {
    /// Whether the review allows the request.
    pub(crate) async fn may(
        &self,
        peer: Peer,
        spec: SubjectAccessReviewSpec,
        allowed_ttl: Duration,
        refused_ttl: Duration,
    ) -> Ruling {
        let question = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
        let key = match serde_json::to_vec(&question.spec) {
            Ok(bytes) => Key::of(&bytes),
            Err(error) => return Ruling::Failed(error.to_string()),
        };
        let judge = |answer: SubjectAccessReview| match answer.status.as_ref().map(ruling) {
            Some(Ruling::Allowed) => (Ruling::Allowed, allowed_ttl),
            Some(failed @ Ruling::Failed(_)) => (failed, Duration::ZERO),
            Some(refused) => (refused, refused_ttl),
            None => (Ruling::Failed("the review came back without a status".to_owned()), Duration::ZERO),
        };
        self.ask(peer, key, &question, judge).await.unwrap_or_else(Ruling::Failed)
    }
}

impl<V> Debug for Reviewer<V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reviewer").field("which", &self.which).finish_non_exhaustive()
    }
}

/// What the review of a token means.
fn proof(status: TokenReviewStatus) -> AuthResult {
    let user = status.user.unwrap_or_default();
    match (status.authenticated.unwrap_or_default(), user.username) {
        (true, Some(name)) if !name.is_empty() => AuthResult::Accepted(Identity {
            name,
            uid: user.uid.unwrap_or_default(),
            groups: user.groups.unwrap_or_default(),
            extra: user.extra.unwrap_or_default(),
        }),
        (true, _) => AuthResult::Rejected("the review of the token names no user".to_owned()),
        (false, _) => {
            let said = status.error.filter(|error| !error.is_empty());
            AuthResult::Rejected(said.unwrap_or_else(|| "invalid bearer token".to_owned()))
        }
    }
}

fn code(error: &kube::Error) -> Option<u16> {
    match error {
        kube::Error::Api(status) => Some(status.code),
        _ => None,
    }
}

/// Whether a retry may help, and how long the server asks us to wait first.
fn worth_repeating(error: &kube::Error) -> Option<Duration> {
    match error {
        kube::Error::Api(status) => {
            let wait = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
            (matches!(status.code, 429 | 500 | 504) || wait > 0).then(|| Duration::from_secs(wait.into()))
        }
        other => lost_connection(other).then_some(Duration::ZERO),
    }
}

/// Whether an established connection broke, as opposed to one that could not be made.
fn lost_connection(error: &(dyn std::error::Error + 'static)) -> bool {
    let lost = [io::ErrorKind::ConnectionReset, io::ErrorKind::BrokenPipe, io::ErrorKind::UnexpectedEof];
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.filter_map(|cause| cause.downcast_ref::<io::Error>()).any(|cause| lost.contains(&cause.kind()))
}

#[cfg(test)]
#[path = "reviews_tests.rs"]
mod tests;
