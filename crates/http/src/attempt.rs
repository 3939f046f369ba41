//! Sending one request, and sending it again where that is safe.

use std::{pin::pin, time::Duration};

use bytes::Bytes;
use cloudberth_core::{Call, Category, Error, Result as CoreResult, Secret, Tick, call::Write, error::cut};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Uri, header};
use http_body_util::Full;
use tokio::time::{sleep, timeout};
use tracing::debug;

use crate::{
    answer::Answer,
    auth::{Authorization, redact},
    body::{BodyError, collect},
    client::Client,
    explain::explain,
    observe::Attempt,
    operation::Plan,
    retry::{Effect, retry_after},
    transport::{AnswerBody, RequestBody, TransportError},
};

/// Errors are cut to this length: an event has room for 1,024 bytes, and more text goes around the error.
const MESSAGE_LIMIT: usize = 600;

/// Timers fire up to this much late, so a wait that would end this close to the deadline is not begun.
const TIMER_GRAIN: Duration = Duration::from_millis(2);

const USER_AGENT: HeaderValue = HeaderValue::from_static(concat!("cloudberth/", env!("CARGO_PKG_VERSION")));

/// A success, with what is needed to report an unreadable body.
pub(crate) struct Success {
    pub(crate) answer: Answer,
    pub(crate) context: RequestContext,
}

pub(crate) struct Failure {
    pub(crate) error: Error,
    /// At least one attempt may have had an effect.
    pub(crate) doubt: bool,
    /// The API itself answered that the object does not exist.
    pub(crate) absent: bool,
    /// The refusal itself, where there was an answer.
    pub(crate) answer: Option<Answer>,
}

impl Failure {
    fn certain(error: Error) -> Self {
        Self { error, doubt: false, absent: false, answer: None }
    }
}

struct FailedAttempt {
    error: Error,
    effect: Effect,
    asked: Option<Duration>,
    answer: Option<Answer>,
}

impl FailedAttempt {
    fn new(error: Error, effect: Effect) -> Self {
        Self { error, effect, asked: None, answer: None }
    }
}

/// Why a request in flight was given up.
enum Overdue {
    Time,
    Claim(Error),
}

/// Where one request goes, and what errors about it need: what was attempted, which secrets to redact (law 10), which
/// credential was used.
pub(crate) struct RequestContext {
    pub(crate) uri: Uri,
    what: String,
    hidden: Vec<Secret>,
    used: Option<Authorization>,
    swapped: bool,
}

impl RequestContext {
    fn new(plan: &Plan, uri: Uri) -> Self {
        let what = format!("{} {}", plan.method, uri.path());
        Self { uri, what, hidden: plan.hidden.clone(), used: None, swapped: false }
    }

    fn uses(&mut self, authorization: Authorization) {
        self.hidden.extend_from_slice(authorization.hidden());
        self.swapped |= self.used.as_ref().is_some_and(|before| !before.has_account_of(&authorization));
        self.used = Some(authorization);
    }

    /// Records that this request continues an earlier one.
    pub(crate) fn follows(&mut self, earlier: &Self) {
        let same = match (&earlier.used, &self.used) {
            (Some(before), Some(now)) => before.has_account_of(now),
            _ => false,
        };
        self.swapped |= earlier.swapped || !same;
    }

    /// The account of the credential that was used last, where that says one.
    pub(crate) fn account(&self) -> Option<&str> {
        self.used.as_ref()?.account()
    }

    /// Makes the error to return; every error about a request goes through here.
    pub(crate) fn error(&self, error: &Error) -> Error {
        Error::new(error.category(), self.clean(&format!("{}: {}", self.what, error.message())))
    }

    /// Redacts before it cuts, so that no part of a secret is left at the cut.
    pub(crate) fn clean(&self, text: &str) -> String {
        cut(&redact(text, &self.hidden), MESSAGE_LIMIT)
    }
}

impl Plan {
    /// The deadline if it is sent at `now`, or why it may not be sent (law 9).
    fn until(&self, call: &Call, now: Tick) -> CoreResult<Tick> {
        if self.writes { call.write_until(now) } else { call.read_until(now) }
    }
}

/// The deadline of a request in flight. A write is counted while it lasts, and ends with the claim unless that is
/// renewed.
struct Grant {
    call: Call,
    write: Option<Write>,
    until: Tick,
    /// The server is done with it: it cannot take effect any more.
    over: bool,
}

impl Grant {
    fn ask(call: &Call, plan: &Plan, now: Tick) -> CoreResult<Self> {
        let write = plan.writes.then(|| call.write(now)).transpose()?;
        let until = write.as_ref().map_or_else(|| call.read_until(now), |write| Ok(write.until()))?;
        Ok(Self { call: call.clone(), write, until, over: false })
    }

    fn renew(&mut self, now: Tick) -> CoreResult<()> {
        self.until = match &mut self.write {
            Some(write) => write.ask(now)?,
            None => self.call.read_until(now)?,
        };
        Ok(())
    }

    fn end(self) {
        if let (Some(write), true) = (self.write, self.over) {
            write.answered();
        }
    }
}

impl Client {
    /// Sends until it succeeds, or until a retry would be unsafe, useless or too late.
    pub(crate) async fn exchange(&self, call: &Call, plan: &Plan) -> Result<Success, Failure> {
        let dialect = plan.dialect.unwrap_or(self.0.dialect);
        let mut context = RequestContext::new(plan, plan.uri(&self.0.base).map_err(Failure::certain)?);
        let (mut sent, mut doubt, mut renewed) = (0_u32, false, false);
        loop {
            sent += 1;
            let failed = match self.attempt(call, plan, &mut context).await {
                Ok(answer) => return Ok(Success { answer, context }),
                Err(failed) => failed,
            };
            doubt |= failed.effect.is_doubtful();
            let status = failed.answer.as_ref().map(Answer::status);
            if status == Some(StatusCode::UNAUTHORIZED) && !renewed && self.renew(call, &context).await {
                renewed = true;
                sent -= 1;
                continue;
            }
            let policy = &self.0.policy;
            let wait = policy.again(plan.repeat, failed.effect, sent, failed.asked, &self.0.random);
            match wait {
                Some(wait) if self.0.clock.now() + wait + TIMER_GRAIN < call.deadline() => sleep(wait).await,
                _ if is_denial(status) && !self.is_steady(call, &context).await => {
                    let text =
                        "the credential was replaced while the call was under way, so this proves nothing";
                    let error = Error::temporary(format!("{}; {text}", failed.error));
                    return Err(Failure {
                        error: context.error(&error),
                        doubt: true,
                        absent: false,
                        answer: None,
                    });
                }
                _ => {
                    let absent = failed.answer.as_ref().is_some_and(|answer| dialect.is_absence(answer));
                    let times = if sent > 1 { format!(" (attempt {sent})") } else { String::new() };
                    let error = Error::new(
                        failed.error.category(),
                        format!("{}{times}", context.error(&failed.error).message()),
                    );
                    return Err(Failure { error, doubt, absent, answer: failed.answer });
                }
            }
        }
    }

    /// Whether all attempts were for one account, and its credential is still in force.
    ///
    /// If not, a 404 may have been about another account (law 1).
    pub(crate) async fn is_steady(&self, call: &Call, context: &RequestContext) -> bool {
        let Some(used) = context.used.as_ref().filter(|_| !context.swapped) else { return false };
        let left = call.deadline().since(self.0.clock.now());
        timeout(left, self.0.auth.is_in_force(used)).await.unwrap_or(false)
    }

    /// Whether a credential that was refused has been replaced by another one.
    async fn renew(&self, call: &Call, context: &RequestContext) -> bool {
        let Some(used) = &context.used else { return false };
        let left = call.deadline().since(self.0.clock.now());
        timeout(left, self.0.auth.refused(used)).await.unwrap_or(false)
    }

    async fn attempt(
        &self,
        call: &Call,
        plan: &Plan,
        context: &mut RequestContext,
    ) -> Result<Answer, FailedAttempt> {
        let nothing = |error| FailedAttempt::new(error, Effect::None);
        // A replica that may not write fetches no token and uses no budget.
        plan.until(call, self.0.clock.now()).map_err(nothing)?;
        let left = call.deadline().since(self.0.clock.now());
        let authorization = timeout(left, self.0.auth.authorization(call))
            .await
            .unwrap_or_else(|_| Err(Error::temporary("no credential could be had in time")))
            .map_err(nothing)?;
        let mut request = request(plan, &context.uri, &authorization);
        let asks_for_news = plan.tagged && !plan.secret_answer;
        let known = asks_for_news.then(|| self.0.tags.known(&context.uri, &authorization)).flatten();
        let known = known.map(|(tag, answer)| {
            request.headers_mut().insert(header::IF_NONE_MATCH, tag);
            answer
        });
        context.uses(authorization.clone());

        let asked_at = self.0.clock.now();
        let permit = self.0.budget.take(call.deadline()).await.map_err(nothing)?;
        let left = call.deadline().since(self.0.clock.now());
        let line = timeout(left, self.0.transport.ready())
            .await
            .unwrap_or_else(|_| Err(TransportError::not_sent("no way out in time")))
            .map_err(|error| broken(&error).1)?;
        let start = self.0.clock.now();
        if start > asked_at {
            self.0.observer.waited(plan.name, start.since(asked_at));
        }

        // The claim is checked again after the waits above. Nothing may come between this and `send`.
        let mut grant = Grant::ask(call, plan, start).map_err(nothing)?;
        permit.used();
        let result = self.converse(plan, line.send(request), start, &mut grant, known).await;
        grant.end();
        if let (true, Ok(answer)) = (asks_for_news, &result)
            && answer.status() != StatusCode::NOT_MODIFIED
        {
            self.0.tags.heard(&context.uri, answer, &authorization);
        }
        let took = self.0.clock.now().since(start);
        let (outcome, status) = match &result {
            Ok(answer) => ("answered", Some(answer.status().as_u16())),
            Err((outcome, failed)) => {
                (*outcome, failed.answer.as_ref().map(|answer| answer.status().as_u16()))
            }
        };
        let server_time = result.as_ref().ok().and_then(Answer::server_time);
        self.0.observer.attempted(Attempt { operation: plan.name, status, outcome, took, server_time });
        debug!(
            operation = plan.name,
            request = context.what,
            status,
            outcome,
            took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            "cloud call"
        );
        result.map_err(|(_, failed)| failed)
    }

    /// One exchange: the head of the answer, then its body, both in time.
    async fn converse(
        &self,
        plan: &Plan,
        sending: impl Future<Output = Result<Response<AnswerBody>, TransportError>>,
        start: Tick,
        grant: &mut Grant,
        known: Option<Answer>,
    ) -> Result<Answer, (&'static str, FailedAttempt)> {
        let usual = if plan.writes { self.0.policy.write_attempt } else { self.0.policy.read_attempt };
        let end = (start + plan.patience.unwrap_or(usual)).min(grant.call.deadline());
        let response = match self.within(end, grant, sending).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => {
                grant.over = !error.may_have_been_sent();
                return Err(broken(&error));
            }
            Err(overdue) => return Err(given_up(overdue, end.since(start))),
        };
        let (head, body) = response.into_parts();
        if let (StatusCode::NOT_MODIFIED, Some(known)) = (head.status, known) {
            return Ok(known);
        }
        // The server may still carry out what its gateway gave up on.
        grant.over = !matches!(head.status, StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT);
        let body = self.within(end, grant, collect(body, self.0.policy.body_limit)).await;
        match (head.status.is_success(), body) {
            (true, Ok(Ok(body))) => {
                Ok(Answer::new(head.status, head.headers, body).kept_secret(plan.secret_answer))
            }
            (true, Ok(Err(BodyError::Lost(why)))) => Err(("cut", cut_off(head.status, head.headers, &why))),
            (true, Ok(Err(BodyError::TooLong))) => {
                let limit = self.0.policy.body_limit;
                let error =
                    Error::permanent(format!("answered {} with more than {limit} bytes", head.status));
                Err(("cut", FailedAttempt::new(error, Effect::DoubtfulForGood)))
            }
            (true, Err(overdue)) => Err(given_up(overdue, end.since(start))),
            // The status of a refusal is enough; it counts even if its body is missing.
            (false, body) => {
                let body = body.ok().and_then(Result::ok).unwrap_or_default();
                Err(("answered", self.refusal(plan, Answer::new(head.status, head.headers, body))))
            }
        }
    }

    /// Runs `work` until `end` at most, and a write only while the claim is renewed in time.
    async fn within<F: Future>(&self, end: Tick, grant: &mut Grant, work: F) -> Result<F::Output, Overdue> {
        let mut work = pin!(work);
        loop {
            let now = self.0.clock.now();
            if now >= end {
                return Err(Overdue::Time);
            }
            if now >= grant.until {
                grant.renew(now).map_err(Overdue::Claim)?;
            }
            if let Ok(done) = timeout(end.min(grant.until).since(now), work.as_mut()).await {
                return Ok(done);
            }
        }
    }

    /// What an answer that is not a success means.
    fn refusal(&self, plan: &Plan, answer: Answer) -> FailedAttempt {
        let asked = answer.header(&header::RETRY_AFTER).and_then(|h| retry_after(h, self.0.clock.wall()));
        let (category, effect) = plan.dialect.unwrap_or(self.0.dialect).read(&answer, asked);
        if answer.status() == StatusCode::TOO_MANY_REQUESTS {
            self.0.budget.throttled(asked);
        }
        let asked = match category {
            Category::Throttled { retry_after } => retry_after,
            _ => None,
        };
        let mut message = format!("answered {}", answer.status());
        let said = explain(answer.body());
        if !said.is_empty() {
            message = format!("{message}: {said}");
        }
        if let Some(place) = answer.header(&header::LOCATION).filter(|_| answer.status().is_redirection()) {
            message = format!("{message}; redirects are not followed, and this one leads to {place}");
        }
        FailedAttempt { error: Error::new(category, message), effect, asked, answer: Some(answer) }
    }
}

/// Whether a status says that something does not exist.
const fn is_denial(status: Option<StatusCode>) -> bool {
    matches!(status, Some(StatusCode::NOT_FOUND | StatusCode::GONE))
}

fn request(plan: &Plan, uri: &Uri, authorization: &Authorization) -> Request<RequestBody> {
    let mut request = Request::new(Full::default());
    *request.method_mut() = plan.method.clone();
    *request.uri_mut() = uri.clone();
    let headers = request.headers_mut();
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    headers.insert(header::USER_AGENT, USER_AGENT);
    if let Some(value) = authorization.header() {
        headers.insert(header::AUTHORIZATION, value.clone());
    }
    if let Some(body) = &plan.body {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(body.media_type));
        *request.body_mut() = Full::new(body.bytes.clone());
    }
    request
}

fn broken(error: &TransportError) -> (&'static str, FailedAttempt) {
    if error.may_have_been_sent() {
        let lost = Error::temporary(format!("the connection was lost before the answer: {error}"));
        ("lost", FailedAttempt::new(lost, Effect::Doubtful))
    } else {
        let unreached = Error::temporary(format!("no connection: {error}"));
        ("not_sent", FailedAttempt::new(unreached, Effect::NotSent))
    }
}

fn cut_off(status: StatusCode, headers: HeaderMap, why: &str) -> FailedAttempt {
    let error = Error::temporary(format!("answered {status}, but the body did not arrive whole: {why}"));
    let answer = Some(Answer::new(status, headers, Bytes::new()));
    FailedAttempt { answer, ..FailedAttempt::new(error, Effect::Doubtful) }
}

fn given_up(overdue: Overdue, limit: Duration) -> (&'static str, FailedAttempt) {
    match overdue {
        Overdue::Time => {
            let error = Error::temporary(format!("no complete answer within {limit:?}"));
            ("timeout", FailedAttempt::new(error, Effect::Doubtful))
        }
        Overdue::Claim(why) => {
            let error = why.context("given up without an answer");
            ("claim_ended", FailedAttempt::new(error, Effect::DoubtfulForGood))
        }
    }
}
