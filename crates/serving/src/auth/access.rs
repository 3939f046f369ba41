//! Authorization: what is allowed without a review, and what a review's answer means.

use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, SubjectAccessReviewSpec, SubjectAccessReviewStatus,
};

use super::identity::Identity;

const MASTERS: &str = "system:masters";

/// Paths that everybody may see: exact ones, and prefixes that end in `*`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AlwaysAllow {
    exact: Vec<String>,
    prefixes: Vec<String>,
}

impl AlwaysAllow {
    /// Reads the values of `--authorization-always-allow-paths`. All mistakes are named at once.
    pub fn parse(paths: &[String]) -> Result<Self, Vec<String>> {
        let (mut allowed, mut mistakes) = (Self::default(), Vec::new());
        for path in paths {
            let bare = path.trim_start_matches('/');
            match bare.strip_suffix('*') {
                _ if bare.trim_end_matches('*').contains('*') || bare.ends_with("**") => mistakes
                    .push(format!("--authorization-always-allow-paths: only trailing * allowed in {path:?}")),
                Some(prefix) => allowed.prefixes.push(prefix.to_owned()),
                None => allowed.exact.push(bare.to_owned()),
            }
        }
        if mistakes.is_empty() { Ok(allowed) } else { Err(mistakes) }
    }

    /// The default: the health pages.
    pub fn usual() -> Self {
        Self { exact: ["healthz", "readyz", "livez"].map(str::to_owned).to_vec(), prefixes: Vec::new() }
    }

    fn covers(&self, path: &str) -> bool {
        let bare = path.trim_start_matches('/');
        self.exact.iter().any(|exact| exact == bare)
            || self.prefixes.iter().any(|prefix| bare.starts_with(prefix))
    }
}

/// The page that is asked for, by method and path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AccessRequest<'a> {
    /// The method in lower case.
    pub(crate) verb: &'a str,
    pub(crate) path: &'a str,
}

/// Whether a request is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ruling {
    Allowed,
    /// Nothing allows it and nothing denies it; the reason may be empty.
    NoOpinion(String),
    /// The review denies it, for this reason.
    Denied(String),
    Failed(String),
}

/// Whether the request is allowed without a review.
pub(crate) fn granted(identity: &Identity, request: AccessRequest<'_>, open: &AlwaysAllow) -> bool {
    identity.in_group(MASTERS) || open.covers(request.path)
}

pub(crate) fn question(identity: &Identity, request: AccessRequest<'_>) -> SubjectAccessReviewSpec {
    SubjectAccessReviewSpec {
        extra: (!identity.extra.is_empty()).then(|| identity.extra.clone()),
        groups: Some(identity.groups.clone()),
        non_resource_attributes: Some(NonResourceAttributes {
            path: Some(request.path.to_owned()),
            verb: Some(request.verb.to_owned()),
        }),
        resource_attributes: None,
        uid: (!identity.uid.is_empty()).then(|| identity.uid.clone()),
        user: Some(identity.name.clone()),
    }
}

/// What the answer of a review means.
pub(crate) fn ruling(status: &SubjectAccessReviewStatus) -> Ruling {
    let reason = status.reason.clone().unwrap_or_default();
    match (status.allowed, status.denied.unwrap_or_default()) {
        (true, true) => Ruling::Failed("the review answered both allowed and denied".to_owned()),
        (true, false) => Ruling::Allowed,
        (false, true) => Ruling::Denied(reason),
        (false, false) => Ruling::NoOpinion(reason),
    }
}

pub(crate) fn refusal(identity: &Identity, request: AccessRequest<'_>, reason: &str) -> String {
    let said = format!("User {:?} cannot {} path {:?}", identity.name, request.verb, request.path);
    let safe = said.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    if reason.is_empty() { format!("forbidden: {safe}") } else { format!("forbidden: {safe}: {reason}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(items: &[&str]) -> Vec<String> {
        items.iter().map(|item| (*item).to_owned()).collect()
    }

    fn get(path: &str) -> AccessRequest<'_> {
        AccessRequest { verb: "get", path }
    }

    #[test]
    fn some_wishes_need_no_question() {
        let defaults = AlwaysAllow::parse(&list(&["/healthz", "/readyz", "/livez"])).unwrap();
        assert_eq!(defaults, AlwaysAllow::usual());
        let wide = AlwaysAllow::parse(&list(&["metrics*"])).unwrap();
        let master = Identity { groups: list(&["system:masters"]), ..Identity::default() };
        let nobody = Identity::anonymous();
        let table = [
            ("healthz is open", &nobody, "/healthz", &defaults, true),
            ("livez is open", &nobody, "/livez", &defaults, true),
            ("metrics is not", &nobody, "/metrics", &defaults, false),
            ("one check is another path", &nobody, "/healthz/leaderElection", &defaults, false),
            ("masters see everything", &master, "/metrics", &defaults, true),
            ("a beginning", &nobody, "/metrics/slis", &wide, true),
            ("a cleared list opens nothing", &nobody, "/healthz", &AlwaysAllow::default(), false),
        ];
        for (case, who, path, open, want) in table {
            assert_eq!(granted(who, get(path), open), want, "{case}");
        }
        let mistakes = AlwaysAllow::parse(&list(&["/a*b", "/ok*", "/c**"])).unwrap_err();
        assert_eq!(mistakes.len(), 2, "{mistakes:?}");
        assert!(mistakes[0].ends_with("only trailing * allowed in \"/a*b\""), "{mistakes:?}");
    }

    #[test]
    fn an_answer_allows_refuses_or_says_nothing() {
        let status = |allowed, denied, reason: &str| SubjectAccessReviewStatus {
            allowed,
            denied,
            reason: Some(reason.to_owned()),
            evaluation_error: None,
        };
        let table = [
            ("allowed", status(true, None, ""), Ruling::Allowed),
            ("no opinion", status(false, None, "why"), Ruling::NoOpinion("why".to_owned())),
            ("denied", status(false, Some(true), ""), Ruling::Denied(String::new())),
        ];
        for (case, status, want) in table {
            assert_eq!(ruling(&status), want, "{case}");
        }
        assert!(
            matches!(ruling(&status(true, Some(true), "")), Ruling::Failed(_)),
            "both at once is an error"
        );
    }

    #[test]
    fn a_refusal_says_who_may_not_do_what() {
        let nobody = Identity::anonymous();
        assert_eq!(
            refusal(&nobody, get("/metrics"), ""),
            "forbidden: User \"system:anonymous\" cannot get path \"/metrics\""
        );
        assert_eq!(
            refusal(&Identity { name: "<b>".to_owned(), ..nobody }, get("/x"), "no rule"),
            "forbidden: User \"&lt;b&gt;\" cannot get path \"/x\": no rule"
        );
    }

    #[test]
    fn a_question_carries_the_whole_identity() {
        let mut bob = Identity {
            name: "bob".to_owned(),
            uid: "7".to_owned(),
            groups: list(&["g"]),
            ..Identity::default()
        };
        bob.extra.insert("k".to_owned(), list(&["v"]));
        let asked = serde_json::to_value(question(&bob, get("/metrics"))).unwrap();
        let want = serde_json::json!({
            "user": "bob", "uid": "7", "groups": ["g"], "extra": {"k": ["v"]},
            "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
        });
        assert_eq!(asked, want);
    }
}
