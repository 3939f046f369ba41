//! Authentication and authorization.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::{HeaderMap, header};

use super::status::{Answer, Failure};

/// The sender of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The name that authorization and reviews see.
    pub name: String,
    /// Identity beyond the name.
    pub uid: String,
    /// Groups, such as `system:masters`.
    pub groups: Vec<String>,
}

impl User {
    /// A user of the group that may do everything.
    pub fn admin(name: &str) -> Self {
        let groups = vec!["system:masters".to_owned(), "system:authenticated".to_owned()];
        Self { name: name.to_owned(), uid: String::new(), groups }
    }

    /// A user in no group but that of all authenticated users.
    pub fn plain(name: &str) -> Self {
        Self { name: name.to_owned(), uid: String::new(), groups: vec!["system:authenticated".to_owned()] }
    }

    fn anonymous() -> Self {
        let groups = vec!["system:unauthenticated".to_owned()];
        Self { name: "system:anonymous".to_owned(), uid: String::new(), groups }
    }
}

/// What a request asks to do, as authorization sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Action {
    /// `get`, `list`, `create`, …
    pub verb: String,
    /// API group; empty for the core group.
    pub group: String,
    /// Resource in the plural; empty for a path that is no resource.
    pub resource: String,
    /// `status` and the like.
    pub subresource: String,
    /// Namespace; empty for the cluster as a whole.
    pub namespace: String,
    /// Name of one object; empty for all.
    pub name: String,
    /// The path, when it is no resource.
    pub path: String,
}

/// Decides on actions: `None` allows, a text refuses with that reason.
pub type Policy = Arc<dyn Fn(&User, &Action) -> Option<String> + Send + Sync>;

/// The known tokens and the policy.
#[derive(Clone, Default)]
pub(crate) struct Users {
    /// Tokens handed in from outside: with the first one, requests without a known token are refused.
    tokens: BTreeMap<String, User>,
    /// Tokens that the API gave out itself.
    issued: BTreeMap<String, User>,
    policy: Option<Policy>,
}

impl std::fmt::Debug for Users {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Users").field("known", &self.tokens.len()).finish_non_exhaustive()
    }
}

impl Users {
    pub(crate) fn add(&mut self, token: &str, user: User) {
        self.tokens.insert(token.to_owned(), user);
    }

    pub(crate) fn issue(&mut self, token: &str, user: User) {
        self.issued.insert(token.to_owned(), user);
    }

    pub(crate) fn set_policy(&mut self, policy: Option<Policy>) {
        self.policy = policy;
    }

    pub(crate) fn by_token(&self, token: &str) -> Option<&User> {
        self.tokens.get(token).or_else(|| self.issued.get(token))
    }

    /// Without any known token everyone is the administrator, which suits most tests.
    pub(crate) fn identify(&self, headers: &HeaderMap) -> Answer<User> {
        let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let known =
            given.and_then(|text| text.strip_prefix("Bearer ")).map(|token| self.by_token(token.trim()));
        match (known, self.tokens.is_empty()) {
            (Some(Some(user)), _) => Ok(user.clone()),
            (_, true) => Ok(User::admin("kubernetes-admin")),
            (None, false) => Ok(User::anonymous()),
            (Some(None), false) => Err(Failure::unauthorized()),
        }
    }

    /// Why an action is refused, if it is.
    pub(crate) fn refusal(&self, user: &User, action: &Action) -> Option<String> {
        if user.groups.iter().any(|group| group == "system:unauthenticated") {
            let open = ["/healthz", "/livez", "/readyz", "/version", "/version/"];
            return (!open.iter().any(|path| action.path == *path)).then(String::new);
        }
        match &self.policy {
            Some(policy) => policy(user, action),
            None => (!self.knows(user)).then(String::new),
        }
    }

    /// Whether the user has a token or is in the group that may do everything.
    fn knows(&self, user: &User) -> bool {
        user.groups.iter().any(|group| group == "system:masters")
            || self.tokens.values().chain(self.issued.values()).any(|known| known.name == user.name)
    }

    pub(crate) fn authorize(&self, user: &User, action: &Action) -> Answer<()> {
        let Some(reason) = self.refusal(user, action) else {
            return Ok(());
        };
        let Action { verb, group, resource, subresource, namespace, name, path } = action;
        let who = &user.name;
        let mut why = if resource.is_empty() {
            format!("User {who:?} cannot {verb} path {path:?}")
        } else {
            let part =
                if subresource.is_empty() { resource.clone() } else { format!("{resource}/{subresource}") };
            let place = if namespace.is_empty() {
                "at the cluster scope".to_owned()
            } else {
                format!("in the namespace {namespace:?}")
            };
            format!("User {who:?} cannot {verb} resource {part:?} in API group {group:?} {place}")
        };
        if !reason.is_empty() {
            why = format!("{why}: {reason}");
        }
        Err(Failure::forbidden(group, resource, name, &why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bearer(token: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, format!("Bearer {token}").parse().unwrap());
        headers
    }

    #[test]
    fn tokens_identify_users() {
        let mut users = Users::default();
        assert_eq!(users.identify(&HeaderMap::new()).unwrap().name, "kubernetes-admin");
        users.add("t", User::plain("bob"));
        assert_eq!(users.identify(&bearer("t")).unwrap().name, "bob");
        assert_eq!(users.identify(&bearer("x")).unwrap_err().code.as_u16(), 401);
        assert_eq!(users.identify(&HeaderMap::new()).unwrap().name, "system:anonymous");
    }

    #[test]
    fn a_refusal_says_who_may_not_do_what() {
        let mut users = Users::default();
        users.set_policy(Some(Arc::new(|_, action| (action.verb == "delete").then(|| "no".to_owned()))));
        let mut action = Action {
            verb: "delete".to_owned(),
            resource: "services".to_owned(),
            namespace: "a".to_owned(),
            name: "s".to_owned(),
            ..Action::default()
        };
        let failure = users.authorize(&User::plain("bob"), &action).unwrap_err();
        assert_eq!(
            failure.message,
            "services \"s\" is forbidden: User \"bob\" cannot delete resource \"services\" in API group \"\" in the namespace \"a\": no"
        );
        action.verb = "get".to_owned();
        assert!(users.authorize(&User::plain("bob"), &action).is_ok());
    }
}
