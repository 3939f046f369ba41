//! Who a request comes from.

use std::collections::BTreeMap;

use crate::tls::clients::Vouched;

/// The group of everyone who proved who they are.
const AUTHENTICATED: &str = "system:authenticated";
/// The group of everyone else.
const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The name of everyone else.
const ANONYMOUS: &str = "system:anonymous";
/// Under this key the proof itself is named.
const CREDENTIAL: &str = "authentication.kubernetes.io/credential-id";

/// Somebody, as authorization sees them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The name.
    pub name: String,
    /// Tells apart people who had one name at different times; mostly empty.
    pub uid: String,
    /// Groups, in the order they were given.
    pub groups: Vec<String>,
    /// Whatever else the one who vouches had to say.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl Identity {
    /// Nobody in particular.
    #[must_use]
    pub fn anonymous() -> Self {
        Self { name: ANONYMOUS.to_owned(), groups: vec![UNAUTHENTICATED.to_owned()], ..Self::default() }
    }

    pub(crate) fn in_group(&self, group: &str) -> bool {
        self.groups.iter().any(|g| g == group)
    }
}

/// What one way of proving who one is came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Proof {
    /// Nothing of the kind was presented.
    Nothing,
    /// It was, and it holds.
    Holds(Identity),
    /// It was, and it does not hold.
    Broken(String),
}

/// Who it is, all proofs taken together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// This one.
    Known(Identity),
    /// Nobody in particular: nothing was presented.
    Anonymous,
    /// Something was presented and nothing held.
    Refused(Vec<String>),
}

/// The first proof that holds counts, whatever else was presented. Without one, a broken proof is worse than none.
pub(crate) fn unite(proofs: impl IntoIterator<Item = Proof>) -> Who {
    let mut broken = Vec::new();
    for proof in proofs {
        match proof {
            Proof::Holds(mut identity) => {
                if identity.name != ANONYMOUS
                    && ![AUTHENTICATED, UNAUTHENTICATED].iter().any(|g| identity.in_group(g))
                {
                    identity.groups.push(AUTHENTICATED.to_owned());
                }
                return Who::Known(identity);
            }
            Proof::Nothing => {}
            Proof::Broken(why) => broken.push(why),
        }
    }
    if broken.is_empty() { Who::Anonymous } else { Who::Refused(broken) }
}

/// A client's certificate as a proof. One without a common name is about nobody.
pub(crate) fn from_certificate(vouched: Result<Vouched, String>) -> Proof {
    match vouched {
        Err(why) => Proof::Broken(why),
        Ok(Vouched { subject, .. }) if subject.common_name.is_empty() => Proof::Nothing,
        Ok(Vouched { subject, fingerprint }) => Proof::Holds(Identity {
            name: subject.common_name,
            uid: String::new(),
            groups: subject.organisations,
            extra: BTreeMap::from([(CREDENTIAL.to_owned(), vec![fingerprint])]),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::subject::Subject;

    fn named(name: &str, groups: &[&str]) -> Identity {
        let groups = groups.iter().map(|g| (*g).to_owned()).collect();
        Identity { name: name.to_owned(), groups, ..Identity::default() }
    }

    fn holds(name: &str, groups: &[&str]) -> Proof {
        Proof::Holds(named(name, groups))
    }

    fn broken(why: &str) -> Proof {
        Proof::Broken(why.to_owned())
    }

    #[test]
    fn the_first_proof_that_holds_counts() {
        use Proof::Nothing;
        let known = |name: &str, groups: &[&str]| Who::Known(named(name, groups));
        let table = [
            ("nothing", [Nothing, Nothing, Nothing], Who::Anonymous),
            (
                "front proxy first",
                [holds("a", &[]), holds("b", &[]), holds("c", &[])],
                known("a", &["system:authenticated"]),
            ),
            (
                "then the certificate",
                [Nothing, holds("b", &["g"]), holds("c", &[])],
                known("b", &["g", "system:authenticated"]),
            ),
            ("then the token", [Nothing, Nothing, holds("c", &[])], known("c", &["system:authenticated"])),
            (
                "a broken proof does not spoil a good one",
                [broken("x"), broken("y"), holds("c", &[])],
                known("c", &["system:authenticated"]),
            ),
            (
                "broken and nothing else",
                [broken("x"), Nothing, broken("z")],
                Who::Refused(vec!["x".to_owned(), "z".to_owned()]),
            ),
            (
                "a group is not added twice",
                [holds("a", &["system:authenticated"]), Nothing, Nothing],
                known("a", &["system:authenticated"]),
            ),
            (
                "nor against its opposite",
                [holds("a", &["system:unauthenticated"]), Nothing, Nothing],
                known("a", &["system:unauthenticated"]),
            ),
            (
                "a proxy may pass on anonymity",
                [holds("system:anonymous", &[]), Nothing, Nothing],
                known("system:anonymous", &[]),
            ),
        ];
        for (case, proofs, want) in table {
            assert_eq!(unite(proofs), want, "{case}");
        }
    }

    #[test]
    fn a_certificate_names_user_and_groups() {
        let vouched = |name: &str| {
            let subject = Subject { common_name: name.to_owned(), organisations: vec!["ops".to_owned()] };
            Ok(Vouched { subject, fingerprint: "X509SHA256=00".to_owned() })
        };
        let Proof::Holds(identity) = from_certificate(vouched("bob")) else { panic!("bob is known") };
        assert_eq!((identity.name.as_str(), identity.groups), ("bob", vec!["ops".to_owned()]));
        assert_eq!(identity.extra[CREDENTIAL], ["X509SHA256=00"]);
        assert_eq!(from_certificate(vouched("")), Proof::Nothing);
        assert_eq!(from_certificate(Err("expired".to_owned())), broken("expired"));
    }
}
