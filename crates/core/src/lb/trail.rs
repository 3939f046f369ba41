//! Which load balancer of a listing is a Service's.

use std::collections::BTreeMap;

use crate::{
    error::{Category, Error, Result},
    lb::intended_name,
    view::ServiceView,
};

/// What a Service's load balancer is found by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trail {
    /// The recorded id, in the form in which listings show it.
    pub id: Option<String>,
    /// The name that a new one would get.
    pub name: String,
    /// The name of a creation that may have been sent, where the name was edited since.
    pub intended: Option<String>,
    /// The annotations that a person can correct: that of the id and that of the name.
    pub annotations: [&'static str; 2],
}

/// What a listing shows of a load balancer.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// Its id.
    pub id: &'a str,
    /// Its name.
    pub name: &'a str,
    /// The name has the form of a generated one, and so says by itself whose it is.
    pub generated: bool,
}

impl Trail {
    /// The trail of a Service, with the name of a pending creation. `annotations` hold the id and the name.
    #[must_use]
    pub fn new(
        service: &ServiceView,
        id: Option<String>,
        name: String,
        annotations: [&'static str; 2],
    ) -> Self {
        let intended = intended_name(service).filter(|intended| *intended != name).map(str::to_owned);
        Self { id, name, intended, annotations }
    }

    /// The one load balancer that has the id or one of the names. Several are an error that names them, and nothing is
    /// touched.
    ///
    /// If a pending creation is among them, one that merely has the name that a user gives now does not count: a given
    /// name does not prove whose it is.
    pub fn follow<'a, B>(
        &self,
        listed: impl IntoIterator<Item = &'a B>,
        shows: impl Fn(&'a B) -> Candidate<'a>,
    ) -> Result<Option<&'a B>> {
        let recorded = |one: &Candidate<'_>| self.id.as_deref() == Some(one.id);
        let intended = |one: &Candidate<'_>| self.intended.as_deref() == Some(one.name);
        let mut found: BTreeMap<&str, (Candidate<'_>, &B)> = BTreeMap::new();
        for balancer in listed {
            let one = shows(balancer);
            if one.name == self.name || recorded(&one) || intended(&one) {
                found.insert(one.id, (one, balancer));
            }
        }
        if found.values().any(|(one, _)| intended(one)) {
            found.retain(|_, (one, _)| recorded(one) || intended(one) || one.generated);
        }
        if found.len() < 2 {
            return Ok(found.into_values().next().map(|(_, balancer)| balancer));
        }
        let named: Vec<_> = found.values().map(|(one, _)| format!("{} ({})", one.id, one.name)).collect();
        let message = format!(
            "found more than one load balancer: {}; rename or delete all but one, or correct {}",
            named.join(", "),
            self.annotations.join(" and ")
        );
        Err(Error::new(Category::Conflict, message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lb::INTENT_ANNOTATION;

    /// An id and a name; one that begins with `gen-` has the form of a generated one.
    type Balancer = (&'static str, &'static str);

    /// An id, or what the error names.
    type Found<'a> = Result<Option<&'a str>, &'a [&'a str]>;

    fn shows(balancer: &Balancer) -> Candidate<'_> {
        Candidate { id: balancer.0, name: balancer.1, generated: balancer.1.starts_with("gen-") }
    }

    #[test]
    fn one_is_found_and_several_are_an_error() {
        let all: [Balancer; 4] = [("1", "a"), ("2", "b"), ("3", "gen-u"), ("4", "b")];
        // The recorded id, the name, the name of a pending creation, and what is found.
        let table: [(Option<&str>, &str, &str, Found<'_>); 8] = [
            (None, "a", "", Ok(Some("1"))),
            (None, "c", "", Ok(None)),
            (None, "b", "", Err(&["2 (b)", "4 (b)"])),
            (Some("1"), "c", "", Ok(Some("1"))),
            (Some("1"), "a", "", Ok(Some("1"))),
            (Some("9"), "c", "", Ok(None)),
            (None, "b", "a", Ok(Some("1"))),
            (None, "gen-u", "a", Err(&["1 (a)", "3 (gen-u)"])),
        ];
        for (id, name, intended, want) in table {
            let mut service = ServiceView::default();
            service
                .annotations
                .insert(INTENT_ANNOTATION.to_owned(), format!("2026-01-01T00:00:00Z {intended}"));
            let trail = Trail::new(&service, id.map(str::to_owned), name.to_owned(), ["x/id", "x/name"]);
            let case = format!("{trail:?}");
            match (trail.follow(&all, shows), want) {
                (Ok(found), Ok(want)) => assert_eq!(found.map(|one| one.0), want, "{case}"),
                (Err(why), Err(want)) => {
                    assert_eq!(why.category(), Category::Conflict, "{case}");
                    assert!(want.iter().all(|one| why.message().contains(one)), "{case}: {why}");
                    assert!(why.message().ends_with("correct x/id and x/name"), "{case}: {why}");
                }
                (found, _) => panic!("{case}: {found:?}"),
            }
        }
    }
}
