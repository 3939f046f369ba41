//! The identity of a caller.

use std::collections::BTreeMap;

use crate::tls::clients::VerifiedClient;

const AUTHENTICATED: &str = "system:authenticated";
const UNAUTHENTICATED: &str = "system:unauthenticated";
const ANONYMOUS: &str = "system:anonymous";
/// The key under which the credential itself is named.
const CREDENTIAL: &str = "authentication.kubernetes.io/credential-id";

/// A caller, as authorization sees them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The user name.
    pub name: String,
    /// Tells apart users who had one name at different times; mostly empty.
    pub uid: String,
    /// Groups, in the order they were given.
    pub groups: Vec<String>,
    /// Further attributes given by whoever authenticated the caller.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl Identity {
    /// A caller without credentials.
    pub fn anonymous() -> Self {
        Self { name: ANONYMOUS.to_owned(), groups: vec![UNAUTHENTICATED.to_owned()], ..Self::default() }
    }

    pub(crate) fn in_group(&self, group: &str) -> bool {
        self.groups.iter().any(|g| g == group)
    }
}

/// The result of one way to authenticate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AuthResult {
    NotPresented,
    Accepted(Identity),
    /// The credential was rejected, for this reason.
    Rejected(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    Known(Identity),
    Anonymous,
    /// Credentials were presented and none was accepted.
    Refused(Vec<String>),
}

/// The first accepted credential counts, whatever else was presented. Without one, a rejected credential refuses the
/// request, where none at all would make it anonymous.
pub(crate) fn combine(results: impl IntoIterator<Item = AuthResult>) -> Caller {
    let mut rejected = Vec::new();
    for result in results {
        match result {
            AuthResult::Accepted(mut identity) => {
                if identity.name != ANONYMOUS
                    && ![AUTHENTICATED, UNAUTHENTICATED].iter().any(|g| identity.in_group(g))
                {
                    identity.groups.push(AUTHENTICATED.to_owned());
                }
                return Caller::Known(identity);
            }
            AuthResult::NotPresented => {}
            AuthResult::Rejected(why) => rejected.push(why),
        }
    }
    if rejected.is_empty() { Caller::Anonymous } else { Caller::Refused(rejected) }
}

/// Authenticates by a client certificate. One without a common name identifies nobody.
pub(crate) fn from_certificate(client: Result<VerifiedClient, String>) -> AuthResult {
    match client {
        Err(why) => AuthResult::Rejected(why),
        Ok(VerifiedClient { subject, .. }) if subject.common_name.is_empty() => AuthResult::NotPresented,
        Ok(VerifiedClient { subject, fingerprint }) => AuthResult::Accepted(Identity {
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

    fn holds(name: &str, groups: &[&str]) -> AuthResult {
        AuthResult::Accepted(named(name, groups))
    }

    fn broken(why: &str) -> AuthResult {
        AuthResult::Rejected(why.to_owned())
    }

    #[test]
    fn the_first_proof_that_holds_counts() {
        use AuthResult::NotPresented;
        let known = |name: &str, groups: &[&str]| Caller::Known(named(name, groups));
        let table = [
            ("nothing", [NotPresented, NotPresented, NotPresented], Caller::Anonymous),
            (
                "front proxy first",
                [holds("a", &[]), holds("b", &[]), holds("c", &[])],
                known("a", &["system:authenticated"]),
            ),
            (
                "then the certificate",
                [NotPresented, holds("b", &["g"]), holds("c", &[])],
                known("b", &["g", "system:authenticated"]),
            ),
            (
                "then the token",
                [NotPresented, NotPresented, holds("c", &[])],
                known("c", &["system:authenticated"]),
            ),
            (
                "a broken proof does not spoil a good one",
                [broken("x"), broken("y"), holds("c", &[])],
                known("c", &["system:authenticated"]),
            ),
            (
                "broken and nothing else",
                [broken("x"), NotPresented, broken("z")],
                Caller::Refused(vec!["x".to_owned(), "z".to_owned()]),
            ),
            (
                "a group is not added twice",
                [holds("a", &["system:authenticated"]), NotPresented, NotPresented],
                known("a", &["system:authenticated"]),
            ),
            (
                "nor against its opposite",
                [holds("a", &["system:unauthenticated"]), NotPresented, NotPresented],
                known("a", &["system:unauthenticated"]),
            ),
            (
                "a proxy may pass on anonymity",
                [holds("system:anonymous", &[]), NotPresented, NotPresented],
                known("system:anonymous", &[]),
            ),
        ];
        for (case, results, want) in table {
            assert_eq!(combine(results), want, "{case}");
        }
    }

    #[test]
    fn a_certificate_names_user_and_groups() {
        let client = |name: &str| {
            let subject = Subject { common_name: name.to_owned(), organisations: vec!["ops".to_owned()] };
            Ok(VerifiedClient { subject, fingerprint: "X509SHA256=00".to_owned() })
        };
        let AuthResult::Accepted(identity) = from_certificate(client("bob")) else { panic!("bob is known") };
        assert_eq!((identity.name.as_str(), identity.groups), ("bob", vec!["ops".to_owned()]));
        assert_eq!(identity.extra[CREDENTIAL], ["X509SHA256=00"]);
        assert_eq!(from_certificate(client("")), AuthResult::NotPresented);
        assert_eq!(from_certificate(Err("expired".to_owned())), broken("expired"));
    }
}
