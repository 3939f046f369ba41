//! What would be done about an object, found out without doing it.

pub(crate) mod words;

use cloudberth_core::{
    Error,
    lb::{Impact, PlannedStep},
};

/// What would be done about one object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DryRun {
    /// The cloud that is concerned, where it is known.
    pub cloud: Option<String>,
    /// What would be done, in order.
    pub steps: Vec<PlannedStep>,
    /// What has to happen first, or to end, before anything else is done.
    pub waits: Option<String>,
    /// What people would be told, refusals included. It changes nothing.
    pub remarks: Vec<String>,
    /// Why it could not be told, or not to the end.
    pub unknown: Option<Error>,
}

impl DryRun {
    /// Whether there is nothing to be said about the object.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.waits.is_none() && self.remarks.is_empty() && self.unknown.is_none()
    }

    /// Adds what another controller would do about the same object.
    pub fn extend(&mut self, more: Self) {
        self.cloud = self.cloud.take().or(more.cloud);
        self.steps.extend(more.steps);
        self.waits = self.waits.take().or(more.waits);
        self.remarks.extend(more.remarks);
        self.unknown = self.unknown.take().or(more.unknown);
    }

    pub(crate) fn of(cloud: &str) -> Self {
        Self { cloud: Some(cloud.to_owned()), ..Self::default() }
    }

    pub(crate) fn unknown(cloud: &str, why: Error) -> Self {
        Self { unknown: Some(why), ..Self::of(cloud) }
    }

    /// What is told about an object on which the decision panicked.
    pub(crate) fn bug() -> Self {
        let bug = Error::permanent("internal error: the decision panicked; see the log");
        Self { unknown: Some(bug), ..Self::default() }
    }

    pub(crate) fn step(&mut self, impact: Impact, label: impl Into<String>) {
        self.steps.push(PlannedStep { label: label.into(), impact });
    }
}
