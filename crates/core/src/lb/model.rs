//! The words of the loop.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
    time::Duration,
};

use crate::{
    error::Error,
    reason::{self, Reason},
    view::{Ingress, NodeView, ObjectKey, ServiceView},
};

/// How much a step disturbs traffic that flows now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Impact {
    /// Nothing is noticed.
    None,
    /// Single connections may be cut, or a new setting applies at once.
    Minimal,
    /// Traffic of a port stops for a while (a minute or two).
    Considerable,
    /// The address is lost, or everything stops.
    Major,
}

impl fmt::Display for Impact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Minimal => "minimal",
            Self::Considerable => "considerable",
            Self::Major => "major",
        })
    }
}

/// Something in a cloud that only one Service at a time may lay hands on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockKey {
    /// What kind of thing.
    pub kind: LockKind,
    /// Which one, in canonical form: equal things have equal text.
    pub value: String,
}

/// The kinds of things that can be claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockKind {
    /// The name of a load balancer.
    Name,
    /// The cloud's id of a load balancer.
    Id,
    /// A floating address, or the id of one.
    Address,
    /// An address that the status shows. The framework adds these itself.
    Published,
}

impl LockKey {
    /// A claim on the thing of `kind` called `value`.
    pub fn new(kind: LockKind, value: impl Into<String>) -> Self {
        Self { kind, value: value.into() }
    }
}

/// What a load balancer that is created for a Service is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The name.
    pub text: String,
    /// The provider made it from the Service's identity, so that whatever bears it is this Service's. A name that a user
    /// gives can be anybody's.
    pub generated: bool,
}

/// A load balancer as far as it matters for the question whose it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The cloud's id, in the form of [`LockKind::Id`].
    pub id: String,
    /// Its name.
    pub name: String,
    /// What stands in the place of a Service's UID, where the name has the form of a generated one.
    pub made_for: Option<String>,
    /// The addresses that it has of its own; floating ones are not.
    pub addresses: Vec<String>,
}

/// Another Service that keys the same thing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rival {
    /// Who.
    pub service: ObjectKey,
    /// What.
    pub key: LockKey,
}

/// What should become of the load balancer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// It should be as the Service says.
    Present,
    /// It should be gone.
    Gone,
}

/// A node behind a load balancer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backend {
    /// The node; it belongs to the load balancer's own cloud.
    pub node: Arc<NodeView>,
    /// Whether a ready pod of the Service runs on it; `None` where that does not matter or where nobody looked.
    pub local_endpoint: Option<bool>,
}

/// What the other Services lay claim to at a cloud, as it is when it is asked.
///
/// Asked while the cloud is observed, so that a decision rests on what was observed and on nothing else.
#[derive(Clone, Default)]
pub struct Claims(Option<Arc<Claimants>>);

/// Who lays claim to a thing.
type Claimants = dyn Fn(&LockKey) -> Vec<ObjectKey> + Send + Sync;

impl Claims {
    /// Answered by `claimants`.
    pub fn new(claimants: impl Fn(&LockKey) -> Vec<ObjectKey> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(claimants)))
    }

    /// The other Services that lay claim to this.
    pub fn on(&self, key: &LockKey) -> Vec<ObjectKey> {
        self.0.as_ref().map_or_else(Vec::new, |claimants| claimants(key))
    }
}

impl fmt::Debug for Claims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Claims")
    }
}

/// Everything that the wish for a load balancer consists of.
#[derive(Clone, Debug)]
pub struct Desired {
    /// The Service, in its newest form.
    pub service: Arc<ServiceView>,
    /// The name of the cluster, as the programs that we replace put it into names.
    pub cluster: String,
    /// Whether it should exist at all.
    pub goal: Goal,
    /// The nodes that take traffic, sorted by name.
    pub backends: Vec<Backend>,
    /// All nodes of the cloud, those that take no traffic included, and also if the load balancer has to go.
    pub nodes: Vec<Arc<NodeView>>,
    /// Other Services that claim the same things.
    pub rivals: Vec<Rival>,
    /// What other Services claim besides.
    pub claims: Claims,
}

/// One mutation, described.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step<A> {
    /// What to do.
    pub act: A,
    /// The same in words, for log, event, dry run and test alike.
    pub label: String,
    /// What it does to traffic.
    pub impact: Impact,
    /// It brings something into being that would be paid for twice if its answer were lost and the step repeated.
    /// Such a step is sent only under a recorded intent (law 6).
    pub creates: bool,
}

impl<A> Step<A> {
    /// A step that changes or removes something.
    pub fn new(act: A, impact: Impact, label: impl Into<String>) -> Self {
        Self { act, label: label.into(), impact, creates: false }
    }

    /// A step that brings something into being.
    pub fn creating(act: A, label: impl Into<String>) -> Self {
        Self { act, label: label.into(), impact: Impact::None, creates: true }
    }
}

/// What comes next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next<A> {
    /// Everything is as it should be, as far as it can be.
    Converged,
    /// Do these, which do not depend on each other. Never empty.
    Act(Vec<Step<A>>),
    /// The cloud is busy; look again after `poll`.
    Wait {
        /// What is being waited for, in words.
        on: Cow<'static, str>,
        /// When to look again.
        poll: Duration,
    },
}

/// A field or annotation that is not carried out, and what to do about it (law 8).
///
/// It blocks the creation of a load balancer; on an existing one it blocks only the field.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Refusal {
    /// The reason of the event.
    pub reason: Reason,
    /// The field or annotation by its full name.
    pub field: String,
    /// What is wrong with it and what would be right.
    pub message: String,
}

impl Refusal {
    /// A refusal of `field` whose event has this reason.
    pub fn new(reason: Reason, field: &str, message: impl Into<String>) -> Self {
        Self { reason, field: field.to_owned(), message: message.into() }
    }

    /// A refusal of a field that the cloud cannot carry out.
    pub fn unsupported(field: &str, message: impl Into<String>) -> Self {
        Self::new(reason::UNSUPPORTED_FIELD, field, message)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

/// How loud a notice is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// For information.
    Normal,
    /// Somebody should look.
    Warning,
}

/// Something that a person should be told and that blocks nothing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Notice {
    /// How loud.
    pub severity: Severity,
    /// The reason of the event.
    pub reason: Reason,
    /// The text of the event.
    pub message: String,
}

impl Notice {
    /// A notice that somebody should look at.
    pub fn warning(reason: Reason, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, reason, message: message.into() }
    }
}

/// What the framework writes on the Service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Publish {
    /// The ingress list; `None` leaves the one that is there.
    pub ingress: Option<Vec<Ingress>>,
    /// Annotations to record.
    pub annotations: BTreeMap<String, String>,
    /// Annotations to remove, where they are set.
    pub removed: BTreeSet<&'static str>,
}

/// A verdict of the planner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision<A> {
    /// What comes next.
    pub next: Next<A>,
    /// What to write on the Service now, whatever comes next.
    pub publish: Option<Publish>,
    /// What is not carried out.
    pub refused: Vec<Refusal>,
    /// What people should be told besides.
    pub notices: Vec<Notice>,
}

impl<A> Decision<A> {
    /// A verdict that refuses, publishes and says nothing.
    pub const fn new(next: Next<A>) -> Self {
        Self { next, publish: None, refused: Vec::new(), notices: Vec::new() }
    }
}

/// Whether creating steps may be sent in this turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permit {
    /// The intent was recorded in this turn, before it.
    Create,
    /// No intent is recorded for this turn: a turn that needs to create ends with [`TurnEnd::NeedsIntent`].
    NoCreate,
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TurnEnd {
    /// Nothing is left to do.
    Converged,
    /// Look again after `poll`; the worker is free until then.
    Wait {
        /// What is being waited for.
        on: Cow<'static, str>,
        /// When to look again.
        poll: Duration,
    },
    /// Something has to be created and no intent is recorded yet. Nothing of that decision was sent.
    NeedsIntent,
    /// Something would have to be created, and the Service asks for what cannot be done: see the refusals. Nothing
    /// is sent until it changes (law 8).
    Refused,
    /// A step was refused, or a write to Kubernetes failed. What was done before it stays done.
    Failed(Error),
    /// It is not known whether a step took effect, or what there is. Only a fresh observation can tell.
    Unknown(Error),
}

/// What became of the creating steps of a turn, for the intent (law 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Creation {
    /// None was sent, or each was refused: nothing came into being.
    Nothing,
    /// What was sent was answered: it exists and its id is known.
    Known,
    /// At least one answer was lost: something may exist that nobody has observed.
    Unsure,
}

/// The account of one turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// How it ended.
    pub end: TurnEnd,
    /// The labels of the steps that were done, in order.
    pub done: Vec<String>,
    /// Something that was to be removed had been seen, and was not there when the removal arrived.
    pub denied: bool,
    /// What became of creating steps.
    pub creation: Creation,
    /// Refusals of the last decision.
    pub refused: Vec<Refusal>,
    /// Notices of the last decision.
    pub notices: Vec<Notice>,
}

/// A step of a dry run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedStep {
    /// In words.
    pub label: String,
    /// What it would do to traffic.
    pub impact: Impact,
}
