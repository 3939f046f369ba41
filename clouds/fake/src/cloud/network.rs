//! The network between a program and its cloud: latency, faults, and a log of every call.

#![allow(missing_docs, reason = "plain data whose names say what it is")]

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use cloudberth_core::{Call, Category, Clock, Error, Random, Result, Tick, lb::Outcome};
use sim_kit::{CallLog, Planner};
use tokio::{sync::oneshot, time};

use super::world::World;

/// Whether a request changes anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    /// It changes something, and needs the leader's claim.
    Write,
}

/// A request, as a plan of faults sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The operation, such as `create balancer`.
    pub operation: &'static str,
    pub write: bool,
    pub number: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The server answers with an error; nothing happens.
    Refuse(Category),
    /// The connection closes before the request arrives.
    RequestLost,
    /// The request takes effect and the connection closes before the answer.
    AnswerLost,
    /// No answer, ever; the request takes effect after this long.
    Stall(Duration),
    /// A false answer: a listing is empty, or a look-up says that an object does not exist.
    Deny,
    /// A listing lacks its second half, and says so.
    ShortPage,
    /// Instances and load balancers are shown without their addresses.
    PartsMissing,
    /// The credential is that of another account, which has nothing of ours: the request is carried out there.
    OtherAccount,
    /// The credential became another account's while the request was under way: it is carried out there, and the client
    /// notices.
    Swapped,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallRecord {
    pub sent: Tick,
    pub at: Tick,
    /// When the program stops waiting for the answer at the latest.
    pub until: Tick,
    pub who: String,
    /// The operation, such as `create balancer`.
    pub operation: &'static str,
    pub write: bool,
    /// It was carried out in another account.
    pub elsewhere: bool,
    /// The name or id of what it is about.
    pub subject: String,
    /// `ok`, or the label of the error's category.
    pub outcome: &'static str,
}

#[derive(Clone, Debug)]
pub(crate) enum Trouble {
    /// The request was refused, or never left: it did not take effect.
    Refused(Error),
    /// It is unknown whether the request took effect.
    Lost(Error),
}

impl Trouble {
    pub(crate) fn error(self) -> Error {
        match self {
            Self::Refused(error) | Self::Lost(error) => error,
        }
    }
}

/// The result of a write, as the outcome of a step.
pub(crate) fn outcome<R>(result: Result<R, Trouble>) -> Outcome<R> {
    match result {
        Ok(answer) => Outcome::Done(answer),
        Err(Trouble::Refused(error)) => Outcome::Failed(error),
        Err(Trouble::Lost(error)) => Outcome::Unknown(error),
    }
}

pub(crate) struct Shared {
    pub(crate) world: Mutex<World>,
    /// The resources of another account.
    pub(crate) elsewhere: Mutex<World>,
    pub(crate) log: Mutex<CallLog<CallRecord>>,
    pub(crate) planner: Mutex<Planner<Request, Fault>>,
    pub(crate) latency: Mutex<Duration>,
    pub(crate) local_endpoints: bool,
    pub(crate) hides_power: bool,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Random,
}

/// Locks, also after a panic elsewhere: the state is plain and can still be read.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

#[derive(Clone)]
pub(crate) struct Network {
    pub(crate) shared: Arc<Shared>,
    pub(crate) who: String,
    /// The program's own clock, which may be skewed against the cloud's.
    pub(crate) clock: Arc<dyn Clock>,
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Network").field("who", &self.who).finish_non_exhaustive()
    }
}

impl Network {
    /// Sends a request and waits for its answer, at most until the call's deadline.
    ///
    /// `apply` runs in a task of the cloud, so a program that stops waiting loses only the answer.
    pub(crate) async fn request<R: Send + 'static>(
        &self,
        call: &Call,
        kind: Kind,
        operation: &'static str,
        subject: &str,
        apply: impl FnOnce(&mut World, Tick, Option<Fault>) -> Result<R> + Send + 'static,
    ) -> Result<R, Trouble> {
        let now = self.clock.now();
        let refused = |e: Error| Trouble::Refused(e.context(operation));
        let write = (kind == Kind::Write).then(|| call.write(now)).transpose().map_err(refused)?;
        let until = write.as_ref().map_or_else(|| call.read_until(now), |write| Ok(write.until()));
        let patience = until.map_err(refused)?.since(now);
        let fault = self.shared.next_fault(operation, kind);
        let (there, back) = (self.shared.leg(), self.shared.leg());
        let (answer, waiting) = oneshot::channel();
        let (shared, subject) = (Arc::clone(&self.shared), subject.to_owned());
        let sent = shared.clock.now();
        let sender = Sender { who: self.who.clone(), sent, until: sent + patience };
        tokio::spawn(async move {
            time::sleep(there).await;
            if let Some(Fault::Stall(wait)) = fault {
                time::sleep(wait).await;
            }
            if fault == Some(Fault::RequestLost) {
                return;
            }
            let result = shared.handle(sender, kind, operation, subject, fault, apply);
            if let Some(Fault::Stall(_)) = fault {
                // The connection stays open; the program has to give up by itself.
                time::sleep(patience).await;
                return;
            }
            time::sleep(back).await;
            if fault != Some(Fault::AnswerLost) {
                // The program may have stopped waiting, which changes nothing.
                let _ = answer.send(result);
            }
        });
        match time::timeout(patience, waiting).await {
            // It is unclear which account answered, so the answer proves nothing (law 1).
            Ok(Ok(_)) if fault == Some(Fault::Swapped) => {
                Err(lost(operation, "the credential was replaced while the call was under way"))
            }
            Ok(Ok(result)) => {
                if let Some(write) = write {
                    write.answered();
                }
                result.map_err(refused)
            }
            Ok(Err(_)) => Err(lost(operation, "the connection was closed before the answer")),
            Err(_) => Err(lost(operation, "no answer in time")),
        }
    }
}

/// Who sent a request, when, and until when it waits, by the cloud's clock.
struct Sender {
    who: String,
    sent: Tick,
    until: Tick,
}

fn lost(operation: &str, why: &str) -> Trouble {
    Trouble::Lost(Error::temporary(format!("{operation}: {why}")))
}

impl Shared {
    fn next_fault(&self, operation: &'static str, kind: Kind) -> Option<Fault> {
        let number = lock(&self.log).take_number();
        lock(&self.planner).decide(&Request { operation, write: kind == Kind::Write, number })
    }

    /// How long a request or an answer is on its way: between half of the latency and all of it.
    fn leg(&self) -> Duration {
        let latency = *lock(&self.latency);
        if latency.is_zero() { Duration::ZERO } else { latency.mul_f64(0.5 + self.random.fraction() / 2.0) }
    }

    fn handle<R>(
        &self,
        sender: Sender,
        kind: Kind,
        operation: &'static str,
        subject: String,
        fault: Option<Fault>,
        apply: impl FnOnce(&mut World, Tick, Option<Fault>) -> Result<R>,
    ) -> Result<R> {
        let at = self.clock.now();
        let elsewhere = matches!(fault, Some(Fault::OtherAccount | Fault::Swapped));
        let result = match fault {
            Some(Fault::Refuse(category)) => {
                Err(Error::new(category, format!("the cloud says {}", category.label())))
            }
            _ if elsewhere => apply(&mut lock(&self.elsewhere), at, fault),
            _ => apply(&mut lock(&self.world), at, fault),
        };
        let outcome = result.as_ref().map_or_else(|e| e.category().label(), |_| "ok");
        let write = kind == Kind::Write;
        let Sender { who, sent, until } = sender;
        lock(&self.log).push(CallRecord {
            sent,
            at,
            until,
            who,
            operation,
            write,
            elsewhere,
            subject,
            outcome,
        });
        result
    }
}
