//! One error type, and what follows from its category.
//!
//! The set of categories is closed. From the category alone follow how a failed piece of work is retried, which
//! event a person sees and which label a metric carries, so that no caller ever has to look into a message.

use std::{fmt, time::Duration};

use crate::reason::{self, Reason};

/// What went wrong, in a closed set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Category {
    /// The object asks for something wrong or impossible. Only its author can help.
    UserInput,
    /// A thing that a request needs does not exist.
    NotFound,
    /// Somebody else changed or holds the thing, or several things answer to one name.
    Conflict,
    /// The credential is wrong, expired, or lacks the right.
    Unauthorised,
    /// Too many requests; the server may have said how long to wait.
    Throttled {
        /// The wait that the server asked for.
        retry_after: Option<Duration>,
    },
    /// Time-outs, 5xx, lost connections, incomplete bodies: it may work next time.
    Temporary,
    /// The server refuses for a reason that waiting is unlikely to change.
    Permanent,
    /// We stopped ourselves: shutdown, leadership lost, a deadline of the caller.
    Cancelled,
}

/// How failed work is retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Not before the object changes (apart from a rare safety check).
    OnChange,
    /// With exponential back-off.
    Backoff,
    /// After exactly this long; the failure count stays as it is.
    After(Duration),
    /// After [`SLOW_RETRY`]: somebody has to fix something outside first.
    Slowly,
    /// Not at all: the next leader starts over.
    Never,
}

/// The wait of [`Retry::Slowly`]: long enough not to lock an account out, short enough that a fixed token is noticed while
/// the person who fixed it is still looking.
pub const SLOW_RETRY: Duration = Duration::from_secs(60);

impl Category {
    /// Every category once, for tables and generated documentation.
    pub const ALL: [Self; 8] = [
        Self::UserInput,
        Self::NotFound,
        Self::Conflict,
        Self::Unauthorised,
        Self::Throttled { retry_after: None },
        Self::Temporary,
        Self::Permanent,
        Self::Cancelled,
    ];

    /// How failed work of this category is retried.
    #[must_use]
    pub const fn retry(self) -> Retry {
        match self {
            Self::UserInput => Retry::OnChange,
            Self::NotFound | Self::Conflict | Self::Temporary | Self::Throttled { retry_after: None } => {
                Retry::Backoff
            }
            Self::Throttled { retry_after: Some(wait) } => Retry::After(wait),
            Self::Unauthorised | Self::Permanent => Retry::Slowly,
            Self::Cancelled => Retry::Never,
        }
    }

    /// What it means, in one line, for the reference documentation.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Self::UserInput => "The object asks for something wrong or impossible; only its author can help.",
            Self::NotFound => "A thing that the request needs is not there.",
            Self::Conflict => {
                "Somebody else changed or holds the thing, or several things answer to one name."
            }
            Self::Unauthorised => "The credential is wrong, expired, or lacks the right.",
            Self::Throttled { .. } => "Too many requests; the server may have said how long to stay away.",
            Self::Temporary => "A time-out, a 5xx, a broken connection, half a body: it may work next time.",
            Self::Permanent => "The other side refuses for a reason that waiting is not likely to cure.",
            Self::Cancelled => "cloudberth stopped by itself: shutdown, leadership lost, time over.",
        }
    }

    /// The label value in metrics.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::UserInput => "user_input",
            Self::NotFound => "not_found",
            Self::Conflict => "conflict",
            Self::Unauthorised => "unauthorised",
            Self::Throttled { .. } => "throttled",
            Self::Temporary => "temporary",
            Self::Permanent => "permanent",
            Self::Cancelled => "cancelled",
        }
    }

    /// The reason of the warning about a failed decision on an object where the operation has none of its own (see
    /// [`Doing`]).
    ///
    /// None where the cause lies with the cloud or its credential: then every object has it, nobody who looks at this one
    /// can help, and the log and the metrics say it once for all.
    #[must_use]
    pub const fn event_reason(self) -> Option<Reason> {
        match self {
            Self::UserInput => Some(reason::INVALID_CONFIGURATION),
            Self::NotFound => Some(reason::CLOUD_RESOURCE_NOT_FOUND),
            Self::Conflict => Some(reason::CLOUD_CONFLICT),
            Self::Unauthorised
            | Self::Throttled { .. }
            | Self::Temporary
            | Self::Permanent
            | Self::Cancelled => None,
        }
    }
}

/// The operation that failed, where its event has a name that users already know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// Building or changing a load balancer.
    SyncLoadBalancer,
    /// Giving a load balancer its new set of nodes.
    UpdateLoadBalancer,
    /// Deleting a node whose instance is gone.
    DeleteNode,
    /// Creating a route to a node's pods.
    CreateRoute,
}

impl Doing {
    /// The event reason for a failure of this operation; none where we stopped ourselves.
    #[must_use]
    pub const fn failed(self, category: Category) -> Option<Reason> {
        match (self, category) {
            (_, Category::Cancelled) => None,
            (Self::SyncLoadBalancer, _) => Some(reason::SYNC_LOAD_BALANCER_FAILED),
            (Self::UpdateLoadBalancer, _) => Some(reason::UPDATE_LOAD_BALANCER_FAILED),
            (Self::DeleteNode, _) => Some(reason::DELETING_NODE_FAILED),
            (Self::CreateRoute, _) => Some(reason::FAILED_TO_CREATE_ROUTE),
        }
    }
}

/// An error with a category and a message that a person can act on.
///
/// The message is plain text and final: nothing is chained behind it, so what a log shows is what an event shows.
/// It never contains a secret: untrusted text is redacted before it becomes an error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    category: Category,
    message: String,
}

/// An error of another crate with its causes: the outermost message alone (`client error (Connect)`) helps nobody.
#[must_use]
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let message = error.to_string();
        // Some errors quote their cause already.
        if !text.contains(&message) {
            text = format!("{text}: {message}");
        }
        cause = error.source();
    }
    text
}

/// The result of anything that can fail in the ways of [`Category`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of `category`; `message` says what was attempted and what happened.
    pub fn new(category: Category, message: impl Into<String>) -> Self {
        Self { category, message: message.into() }
    }

    /// The object asks for something wrong; name the field and the fix.
    pub fn user_input(message: impl Into<String>) -> Self {
        Self::new(Category::UserInput, message)
    }

    /// It may work next time.
    pub fn temporary(message: impl Into<String>) -> Self {
        Self::new(Category::Temporary, message)
    }

    /// A retry will not help.
    pub fn permanent(message: impl Into<String>) -> Self {
        Self::new(Category::Permanent, message)
    }

    /// We stopped ourselves.
    pub fn cancelled(message: impl Into<String>) -> Self {
        Self::new(Category::Cancelled, message)
    }

    /// What went wrong, in the closed set.
    #[must_use]
    pub const fn category(&self) -> Category {
        self.category
    }

    /// The text for people.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The same error, saying what was being attempted: `doing: message`.
    #[must_use]
    pub fn context(self, doing: impl fmt::Display) -> Self {
        Self { category: self.category, message: format!("{doing}: {}", self.message) }
    }
}

/// Adds what was being attempted to the error of a result.
pub trait Context<T> {
    /// See [`Error::context`].
    fn context(self, doing: impl fmt::Display) -> Result<T>;
}

impl<T> Context<T> for Result<T> {
    fn context(self, doing: impl fmt::Display) -> Self {
        self.map_err(|e| e.context(doing))
    }
}

/// Cuts `text` to at most `limit` bytes on a character boundary, marking the cut with `…`.
///
/// Kubernetes refuses events whose message is longer than 1,024 bytes, and a cloud's error page can be any length.
#[must_use]
pub fn cut(text: &str, limit: usize) -> String {
    const MARK: &str = "…";
    if text.len() <= limit {
        return text.to_owned();
    }
    let room = limit.saturating_sub(MARK.len());
    let end = (0..=room).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0);
    let mut out = text.get(..end).unwrap_or_default().to_owned();
    if limit >= MARK.len() {
        out.push_str(MARK);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Layer {
        text: &'static str,
        source: Option<Box<Layer>>,
    }

    #[test]
    fn an_error_is_told_with_its_causes_each_once() {
        let layer = |text, source: Option<Layer>| Layer { text, source: source.map(Box::new) };
        let refused = || layer("connection refused", None);
        let table = [
            (refused(), "connection refused"),
            (layer("client error", Some(refused())), "client error: connection refused"),
            (
                layer("no answer", Some(layer("connect", Some(refused())))),
                "no answer: connect: connection refused",
            ),
            (layer("failed: connection refused", Some(refused())), "failed: connection refused"),
        ];
        for (error, want) in table {
            assert_eq!(with_causes(&error), want);
        }
    }

    #[test]
    fn the_category_alone_decides_retry_event_and_label() {
        let after = Duration::from_secs(42);
        let throttled = |retry_after| Category::Throttled { retry_after };
        let table = [
            (Category::UserInput, Retry::OnChange, "user_input", Some("InvalidConfiguration")),
            (Category::NotFound, Retry::Backoff, "not_found", Some("CloudResourceNotFound")),
            (Category::Conflict, Retry::Backoff, "conflict", Some("CloudConflict")),
            (Category::Unauthorised, Retry::Slowly, "unauthorised", None),
            (throttled(None), Retry::Backoff, "throttled", None),
            (throttled(Some(after)), Retry::After(after), "throttled", None),
            (Category::Temporary, Retry::Backoff, "temporary", None),
            (Category::Permanent, Retry::Slowly, "permanent", None),
            (Category::Cancelled, Retry::Never, "cancelled", None),
        ];
        for (category, retry, label, reason) in table {
            assert_eq!(category.retry(), retry, "{category:?}");
            assert_eq!(category.label(), label, "{category:?}");
            assert_eq!(category.event_reason().map(Reason::name), reason, "{category:?}");
        }
    }

    #[test]
    fn every_category_is_explained_in_words_of_its_own() {
        let words: std::collections::BTreeSet<_> = Category::ALL.map(Category::about).into();
        assert_eq!(words.len(), Category::ALL.len());
        assert!(words.iter().all(|line| line.len() > 20 && line.ends_with('.')));
    }

    #[test]
    fn known_operations_keep_the_reasons_that_alerts_look_for() {
        let table = [
            (Doing::SyncLoadBalancer, "SyncLoadBalancerFailed"),
            (Doing::UpdateLoadBalancer, "UpdateLoadBalancerFailed"),
            (Doing::DeleteNode, "DeletingNodeFailed"),
            (Doing::CreateRoute, "FailedToCreateRoute"),
        ];
        for (doing, reason) in table {
            for category in Category::ALL {
                let want = (category != Category::Cancelled).then_some(reason);
                assert_eq!(doing.failed(category).map(Reason::name), want, "{doing:?} {category:?}");
            }
        }
    }

    #[test]
    fn context_goes_in_front_and_keeps_the_category() {
        let inner: Result<()> = Err(Error::temporary("503 from the cloud"));
        let error = inner.context("listing servers").unwrap_err();
        assert_eq!(error.to_string(), "listing servers: 503 from the cloud");
        assert_eq!(error.message(), "listing servers: 503 from the cloud");
        assert_eq!(error.category(), Category::Temporary);
    }

    #[test]
    fn constructors_choose_their_category() {
        assert_eq!(Error::user_input("x").category(), Category::UserInput);
        assert_eq!(Error::permanent("x").category(), Category::Permanent);
        assert_eq!(Error::cancelled("x").category(), Category::Cancelled);
    }

    #[test]
    fn a_cut_never_splits_a_character() {
        let table = [
            ("short", 10, "short"),
            ("exactly ten", 11, "exactly ten"),
            ("exactly ten", 10, "exactly…"),
            ("ünder", 4, "…"),
            ("ünder", 5, "ü…"),
            ("abcd", 3, "…"),
            ("abc", 2, ""),
            ("abc", 0, ""),
        ];
        for (text, limit, want) in table {
            assert_eq!(cut(text, limit), want, "{text} {limit}");
            assert!(cut(text, limit).len() <= limit, "{text} {limit}");
        }
    }
}
