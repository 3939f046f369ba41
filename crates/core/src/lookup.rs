//! Present, absent or unknown (law 1).

use crate::error::{Error, Result};

/// The answer to "does it exist?".
///
/// `Absent` is a positive statement by an authenticated, complete answer. Everything else that is not `Present` is
/// `Unknown`, and `Unknown` changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Lookup<T> {
    /// It exists.
    Present(T),
    /// A complete answer of the source itself says that it does not exist.
    Absent,
    /// There is no reliable answer, for this reason.
    Unknown(Error),
}

impl<T> Lookup<T> {
    /// Applies `f` to what was found.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Lookup<U> {
        match self {
            Self::Present(t) => Lookup::Present(f(t)),
            Self::Absent => Lookup::Absent,
            Self::Unknown(why) => Lookup::Unknown(why),
        }
    }

    /// What was found, if anything; an error if it is unknown.
    pub fn known(self) -> Result<Option<T>> {
        match self {
            Self::Present(t) => Ok(Some(t)),
            Self::Absent => Ok(None),
            Self::Unknown(why) => Err(why),
        }
    }

    /// The same answer by reference.
    pub fn as_ref(&self) -> Lookup<&T> {
        match self {
            Self::Present(t) => Lookup::Present(t),
            Self::Absent => Lookup::Absent,
            Self::Unknown(why) => Lookup::Unknown(why.clone()),
        }
    }

    /// True only for `Present`.
    pub const fn is_present(&self) -> bool {
        matches!(self, Self::Present(_))
    }

    /// True only for `Absent`: the one answer on which something may be removed.
    pub const fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }
}

impl<T> From<Result<Option<T>>> for Lookup<T> {
    fn from(result: Result<Option<T>>) -> Self {
        match result {
            Ok(Some(t)) => Self::Present(t),
            Ok(None) => Self::Absent,
            Err(why) => Self::Unknown(why),
        }
    }
}

/// A listing, and whether it can prove that something does *not* exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing<T> {
    /// What was listed, without repetitions.
    pub items: Vec<T>,
    /// Why the listing may lack something; `None` for a complete one.
    pub short: Option<String>,
}

impl<T> Listing<T> {
    /// A listing that shows everything there is.
    pub const fn complete(items: Vec<T>) -> Self {
        Self { items, short: None }
    }

    /// A listing that may lack something.
    pub fn short(items: Vec<T>, why: impl Into<String>) -> Self {
        Self { items, short: Some(why.into()) }
    }

    /// Whether absence from this listing means anything.
    pub const fn is_complete(&self) -> bool {
        self.short.is_none()
    }

    /// All items of a complete listing. A short one is an error: what it lacks might be taken for absent.
    pub fn all(self) -> Result<Vec<T>> {
        match self.short {
            None => Ok(self.items),
            Some(why) => Err(incomplete(&why)),
        }
    }

    /// The first item that fits. A short listing can prove that a thing exists, never that it does not.
    pub fn find(&self, fits: impl FnMut(&&T) -> bool) -> Lookup<&T> {
        match (self.items.iter().find(fits), &self.short) {
            (Some(item), _) => Lookup::Present(item),
            (None, None) => Lookup::Absent,
            (None, Some(why)) => Lookup::Unknown(incomplete(why)),
        }
    }
}

fn incomplete(why: &str) -> Error {
    Error::temporary(format!("the listing is incomplete: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_complete_listing_can_deny() {
        let complete = Listing::complete(vec![1, 2]);
        let short = Listing::short(vec![1, 2], "page 2 is missing");
        assert!(complete.is_complete());
        assert!(!short.is_complete());
        assert_eq!(complete.find(|n| **n == 2), Lookup::Present(&2), "L1-1");
        assert_eq!(short.find(|n| **n == 2), Lookup::Present(&2), "L1-2");
        assert_eq!(complete.find(|n| **n == 3), Lookup::Absent, "L1-3");
        let why = short.find(|n| **n == 3).known().unwrap_err();
        assert_eq!(why.message(), "the listing is incomplete: page 2 is missing", "L1-4");
        assert_eq!((complete.all(), short.all()), (Ok(vec![1, 2]), Err(why)));
    }

    #[test]
    fn an_error_is_never_an_absence() {
        let error = Error::temporary("503");
        let table = [
            ("present", Lookup::from(Ok(Some(7))), true, false),
            ("absent", Lookup::from(Ok(None)), false, true),
            ("L1-5 unknown", Lookup::from(Err(error.clone())), false, false),
        ];
        for (case, lookup, present, absent) in table {
            assert_eq!((lookup.is_present(), lookup.is_absent()), (present, absent), "{case}");
            assert_eq!(lookup.as_ref().map(|n| *n), lookup, "{case}");
            assert_eq!(Lookup::from(lookup.clone().known()), lookup, "{case}");
        }
        assert_eq!(Lookup::Present(3).map(|n| n + 1), Lookup::Present(4));
        assert_eq!(Lookup::<i32>::Unknown(error.clone()).known(), Err(error));
    }
}
