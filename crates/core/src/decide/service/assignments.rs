//! Which provider a Service belongs to (law 3).
//!
//! Two questions with different answers. Who *serves* a Service follows from its class: a class that is claimed leads
//! to the provider that claims it, no class to the default provider, any other class makes the Service invisible.
//! Who *holds* something for it, and so has to clean up, follows from what was recorded:
//!
//! 1. the provider that [`PROVIDER_ANNOTATION`] names;
//! 2. otherwise, where there is no class, the one provider whose id annotation the Service carries (those of the
//!    programs that we replace are the same);
//! 3. otherwise the one that serves it.
//!
//! A Service of a foreign class is ours only by a record that nobody but us writes: the provider, or an intent where there
//! is one provider only. An id annotation is copied around with the rest of a manifest, so beside a foreign class it proves
//! nothing until the cloud itself shows that the load balancer is this Service's. The finalizer says nothing at all
//! there: other programs use the same one. On a Service without a class the finalizer is the default provider's
//! business: its name belongs to the one service controller of a cluster, and nobody else would ever take it off.
//!
//! A Service without a class stays with the provider that holds it, whatever the default is by now: a changed flag is
//! no reason to move a load balancer. A claimed class is a person's word on this very Service; where it differs from
//! the record, the load balancer moves. There the id annotations do not count, because they are copied around with the
//! rest of a manifest.

use std::collections::BTreeSet;

use crate::{
    decide::service::{PROVIDER_ANNOTATION, need::has_finalizer},
    error::{Error, Result},
    lb::INTENT_ANNOTATION,
    view::{ServiceType, ServiceView},
};

/// A provider that has load balancers to offer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Candidate {
    /// Its name.
    pub name: String,
    /// The load-balancer classes that it claims.
    pub classes: BTreeSet<String>,
    /// The annotations whose value names one of its load balancers. Keys that a user might set for other reasons
    /// (a zone, a size) do not belong here.
    pub marks: BTreeSet<String>,
}

/// All providers that have load balancers to offer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assignments {
    candidates: Vec<Candidate>,
    default: Option<String>,
}

/// What a Service is to us.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assignment<'a> {
    /// The provider that serves it if it wants a load balancer.
    pub server: Option<&'a str>,
    /// The provider with which something of it may stand.
    pub holder: Option<&'a str>,
    /// Only an id that may have been copied says so, beside a class that is not ours: the cloud has to prove it before
    /// anything is done, and until then the Service is invisible.
    pub unproven: bool,
    /// Why neither can be told although somebody should be: a person has to look.
    pub doubt: Option<Error>,
}

impl Assignments {
    /// Assignments in which every class leads to one provider. `default` serves Services without a class; with none,
    /// these are invisible.
    pub fn new(candidates: Vec<Candidate>, default: Option<String>) -> Result<Self> {
        let mut names = BTreeSet::new();
        let mut classes = BTreeSet::new();
        for candidate in &candidates {
            if !names.insert(&candidate.name) {
                let message = format!("provider {:?} is configured twice", candidate.name);
                return Err(Error::user_input(message));
            }
            for class in &candidate.classes {
                if !classes.insert(class) {
                    let message = format!("load-balancer class {class:?} is claimed by two providers");
                    return Err(Error::user_input(message));
                }
            }
        }
        if let Some(name) = default.as_ref().filter(|name| !names.contains(name)) {
            return Err(Error::user_input(format!("the default provider {name:?} is not configured")));
        }
        Ok(Self { candidates, default })
    }

    /// What a Service is to us.
    #[must_use]
    pub fn of(&self, service: &ServiceView) -> Assignment<'_> {
        let record = service.annotations.get(PROVIDER_ANNOTATION);
        let recorded = record.and_then(|name| self.named(name));
        let server = match &service.class {
            Some(class) => self.candidates.iter().find(|c| c.classes.contains(class)).map(Candidate::name),
            None => self.default.as_deref(),
        };
        match (&service.class, server) {
            (Some(_), None) => {
                let (holder, unproven) = match (record, self.marked(service).as_slice()) {
                    (Some(_), _) => (recorded, false),
                    (None, _) if service.annotations.contains_key(INTENT_ANNOTATION) => (self.only(), false),
                    (None, [one]) => (Some(*one), true),
                    (None, _) => (None, false),
                };
                Assignment { server: None, holder, unproven, doubt: None }
            }
            (Some(_), Some(server)) => match (record, recorded) {
                (Some(name), None) => Assignment::doubtful(service, unknown_record(name)),
                (_, recorded) => Assignment {
                    server: Some(server),
                    holder: recorded.or(Some(server)),
                    ..Assignment::default()
                },
            },
            (None, default) => match (record, recorded, self.marked(service).as_slice()) {
                (_, Some(name), _) => Assignment::with(Some(name)),
                (Some(name), None, _) => Assignment::doubtful(service, unknown_record(name)),
                (None, None, []) => Assignment::with(default),
                (None, None, [one]) => Assignment::with(Some(one)),
                (None, None, many) => Assignment::doubtful(service, several_marks(many)),
            },
        }
    }

    /// Whether the provider has to be recorded on a Service that it serves: only where it could not be told without.
    #[must_use]
    pub fn needs_record(&self, server: &str) -> bool {
        self.candidates.len() > 1 || self.default.as_deref() != Some(server)
    }

    /// The provider, where there is only one: then its name is not recorded.
    fn only(&self) -> Option<&str> {
        match self.candidates.as_slice() {
            [only] => Some(only.name()),
            _ => None,
        }
    }

    fn named(&self, name: &str) -> Option<&str> {
        self.candidates.iter().map(Candidate::name).find(|known| *known == name)
    }

    /// The providers whose id annotation the Service carries.
    fn marked(&self, service: &ServiceView) -> Vec<&str> {
        let carries = |c: &&Candidate| c.marks.iter().any(|key| service.annotations.contains_key(key));
        self.candidates.iter().filter(carries).map(Candidate::name).collect()
    }
}

impl Candidate {
    fn name(&self) -> &str {
        &self.name
    }
}

impl<'a> Assignment<'a> {
    fn with(provider: Option<&'a str>) -> Self {
        Self { server: provider, holder: provider, ..Self::default() }
    }

    /// A doubt that matters only where there is something to serve or to clean up.
    fn doubtful(service: &ServiceView, why: String) -> Self {
        let matters = service.service_type == ServiceType::LoadBalancer || has_finalizer(service);
        Self { doubt: matters.then(|| Error::user_input(why)), ..Self::default() }
    }
}

fn unknown_record(name: &str) -> String {
    format!(
        "annotation {PROVIDER_ANNOTATION}: the load balancer stands with {name:?}, which is not configured; \
         configure it, or remove the annotation once nothing is left there"
    )
}

fn several_marks(names: &[&str]) -> String {
    format!(
        "the Service carries load-balancer ids of several providers ({}); remove those that are not its own",
        names.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::service::testing::{CLOUD, assignments, service};

    fn candidate(name: &str, classes: &[&str]) -> Candidate {
        Candidate {
            name: name.to_owned(),
            classes: classes.iter().map(|&c| c.to_owned()).collect(),
            marks: [format!("{name}.example/id")].into(),
        }
    }

    fn two(default: Option<&str>) -> Assignments {
        let candidates =
            vec![candidate("alpha", &["a.example/lb", "a.example/two"]), candidate("beta", &["b"])];
        Assignments::new(candidates, default.map(str::to_owned)).unwrap()
    }

    fn lb(class: Option<&str>, annotations: &[(&str, &str)]) -> ServiceView {
        let mut view = service();
        view.class = class.map(str::to_owned);
        view.annotations = annotations.iter().map(|&(k, v)| (k.to_owned(), v.to_owned())).collect();
        view
    }

    #[test]
    fn the_class_says_who_serves_and_the_record_who_holds() {
        const RECORD: &str = PROVIDER_ANNOTATION;
        let (alpha, beta) = (Some("alpha"), Some("beta"));
        let (a_id, b_id) = (("alpha.example/id", "1"), ("beta.example/id", "2"));
        let table = [
            ("no class: the default provider's", alpha, lb(None, &[]), alpha, alpha),
            ("L3-103 no class and no default: invisible", None, lb(None, &[]), None, None),
            ("a claimed class", alpha, lb(Some("b"), &[]), beta, beta),
            ("a second claimed class", beta, lb(Some("a.example/two"), &[]), alpha, alpha),
            ("L3-104 another class: invisible", alpha, lb(Some("c"), &[]), None, None),
            ("L3-105 an empty class is a class", alpha, lb(Some(""), &[]), None, None),
            ("no class: the record wins over the default", alpha, lb(None, &[(RECORD, "beta")]), beta, beta),
            ("no class: the id wins over the default", alpha, lb(None, &[b_id]), beta, beta),
            ("no class, no default, but an id", None, lb(None, &[b_id]), beta, beta),
            (
                "no class: the record wins over the id",
                alpha,
                lb(None, &[(RECORD, "alpha"), b_id]),
                alpha,
                alpha,
            ),
            (
                "a record settles what ids leave open",
                beta,
                lb(None, &[(RECORD, "alpha"), a_id, b_id]),
                alpha,
                alpha,
            ),
            ("a claimed class moves the Service", alpha, lb(Some("b"), &[(RECORD, "alpha")]), beta, alpha),
            ("L3-106 a copied id does not count beside a class", alpha, lb(Some("b"), &[a_id]), beta, beta),
            ("another class, held by record", alpha, lb(Some("c"), &[(RECORD, "beta")]), None, beta),
            (
                "L3-315 another class: an intent of one of several",
                alpha,
                lb(Some("c"), &[(INTENT_ANNOTATION, "x")]),
                None,
                None,
            ),
            ("L3-107 another class, ids of two", alpha, lb(Some("c"), &[a_id, b_id]), None, None),
            (
                "L3-108 another class, another program's record",
                alpha,
                lb(Some("c"), &[(RECORD, "x"), a_id]),
                None,
                None,
            ),
        ];
        for (case, default, view, server, holder) in table {
            let assignments = two(default);
            let want = Assignment { server, holder, ..Assignment::default() };
            assert_eq!(assignments.of(&view), want, "{case}");
        }
    }

    #[test]
    fn beside_a_foreign_class_an_id_is_only_a_suspicion() {
        let assignments = two(Some("alpha"));
        let facts = |view: &ServiceView| {
            let Assignment { server, holder, unproven, .. } = assignments.of(view);
            (server, holder.map(str::to_owned), unproven)
        };
        let id = ("beta.example/id", "2");
        let beta = || Some("beta".to_owned());
        assert_eq!(facts(&lb(Some("c"), &[id])), (None, beta(), true), "L3-313");
        let recorded = lb(Some("c"), &[(PROVIDER_ANNOTATION, "beta"), id]);
        assert_eq!(facts(&recorded), (None, beta(), false), "what we recorded is no suspicion");
        let alone = Assignments::new(vec![candidate("beta", &[])], Some("beta".to_owned())).unwrap();
        let intended = lb(Some("c"), &[(INTENT_ANNOTATION, "2026-03-02T04:05:00Z web")]);
        let want = Assignment { holder: Some("beta"), ..Assignment::default() };
        assert_eq!(alone.of(&intended), want, "L6-303 a creation may be on its way");
    }

    #[test]
    fn contradicting_marks_are_for_a_person() {
        let unknown = [(PROVIDER_ANNOTATION, "gamma")];
        let ids = [("alpha.example/id", "1"), ("beta.example/id", "2")];
        let table = [
            ("L5-103 no class, held by a provider that is not configured", lb(None, &unknown), "\"gamma\""),
            ("L5-104 the same with a claimed class", lb(Some("b"), &unknown), "\"gamma\""),
            ("L5-105 ids of two", lb(None, &ids), "(alpha, beta)"),
        ];
        let assignments = two(Some("alpha"));
        for (case, view, text) in table {
            let assignment = assignments.of(&view);
            assert_eq!((assignment.server, assignment.holder), (None, None), "{case}");
            let doubt = assignment.doubt.unwrap();
            assert!(doubt.message().contains(text), "{case}: {doubt}");
        }
    }

    #[test]
    fn a_doubt_about_nothing_is_not_raised() {
        let assignments = two(Some("alpha"));
        let mut plain = lb(None, &[(PROVIDER_ANNOTATION, "gamma")]);
        plain.service_type = ServiceType::ClusterIp;
        assert_eq!(assignments.of(&plain), Assignment::default());
        plain.finalizers = vec![crate::decide::service::FINALIZER.to_owned()];
        assert!(assignments.of(&plain).doubt.is_some());
    }

    #[test]
    fn the_record_is_written_only_where_it_is_needed() {
        assert!(!assignments().needs_record(CLOUD), "one provider, and the default");
        let by_class_only = Assignments::new(vec![candidate("alpha", &["a"])], None).unwrap();
        assert!(by_class_only.needs_record("alpha"), "the class goes with the type");
        assert!(two(Some("alpha")).needs_record("alpha"), "the default may change");
    }

    #[test]
    fn assignments_that_contradict_each_other_are_refused() {
        let table = [
            (vec![candidate("a", &[]), candidate("a", &[])], None, "provider \"a\" is configured twice"),
            (vec![candidate("a", &["x"]), candidate("b", &["x"])], None, "class \"x\" is claimed by two"),
            (vec![candidate("a", &[])], Some("b"), "default provider \"b\" is not configured"),
        ];
        for (candidates, default, text) in table {
            let error = Assignments::new(candidates, default.map(str::to_owned)).unwrap_err();
            assert!(error.message().contains(text), "{error}");
        }
    }
}
