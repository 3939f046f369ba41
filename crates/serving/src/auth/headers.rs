//! The caller, as the headers of a request name them.

use std::collections::BTreeMap;

use cloudberth_core::Secret;
use http::{HeaderMap, header::AUTHORIZATION};
use percent_encoding::percent_decode_str;

use super::identity::Identity;

/// Which headers a front proxy uses, and which proxies may. Names of headers are compared without regard to case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProxyHeaders {
    /// Common names of proxies; empty means any that the authority has signed.
    pub allowed_names: Vec<String>,
    /// Headers with the user's name; the first that has one counts.
    pub username: Vec<String>,
    /// Headers with the user's uid; the first that has one counts.
    pub uid: Vec<String>,
    /// Headers with groups; all of them count.
    pub group: Vec<String>,
    /// Prefixes of headers with further attributes.
    pub extra_prefix: Vec<String>,
}

impl ProxyHeaders {
    /// The default headers.
    pub fn usual() -> Self {
        Self {
            username: vec!["x-remote-user".to_owned()],
            group: vec!["x-remote-group".to_owned()],
            extra_prefix: vec!["x-remote-extra-".to_owned()],
            ..Self::default()
        }
    }

    /// The user that a proxy names; `None` if it names none.
    pub(crate) fn user(&self, headers: &HeaderMap) -> Option<Identity> {
        let name = first(headers, &self.username)?;
        let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (header, value) in headers {
            // Names are in lower case here.
            let mut prefixes = self.extra_prefix.iter().map(|prefix| prefix.to_ascii_lowercase());
            let Some(key) = prefixes.find_map(|prefix| header.as_str().strip_prefix(&prefix)) else {
                continue;
            };
            let key = percent_decode_str(key).decode_utf8().map_or_else(|_| key.to_owned(), Into::into);
            if let Ok(value) = value.to_str() {
                extra.entry(key).or_default().push(value.to_owned());
            }
        }
        let groups = self.group.iter().flat_map(|header| texts(headers, header)).map(str::to_owned).collect();
        let uid = first(headers, &self.uid).unwrap_or_default();
        Some(Identity { name, uid, groups, extra })
    }

    /// Whether a proxy of this name may name users.
    pub(crate) fn allows(&self, common_name: &str) -> bool {
        self.allowed_names.is_empty() || self.allowed_names.iter().any(|name| name == common_name)
    }
}

fn texts<'a>(headers: &'a HeaderMap, name: &str) -> impl Iterator<Item = &'a str> + use<'a> {
    headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok())
}

fn first(headers: &HeaderMap, names: &[String]) -> Option<String> {
    names
        .iter()
        .find_map(|name| texts(headers, name).next().filter(|text| !text.is_empty()))
        .map(str::to_owned)
}

/// The bearer token, if there is one. Other schemes are ignored.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<Secret> {
    let given = headers.get(AUTHORIZATION)?.to_str().ok()?.trim();
    let (scheme, token) = given.split_once(' ')?;
    let token = token.split(' ').next()?;
    scheme.eq_ignore_ascii_case("bearer").then(|| Secret::new(token).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap());
        }
        map
    }

    fn list(items: &[&str]) -> Vec<String> {
        items.iter().map(|item| (*item).to_owned()).collect()
    }

    #[test]
    fn a_proxy_passes_on_a_user() {
        let names = ProxyHeaders {
            username: list(&["X-Remote-User", "X-Other-User"]),
            uid: list(&["X-Remote-Uid"]),
            group: list(&["X-Remote-Group", "X-Teams"]),
            extra_prefix: list(&["X-Remote-Extra-"]),
            ..ProxyHeaders::default()
        };
        let given = headers(&[
            ("x-remote-user", "bob"),
            ("x-other-user", "eve"),
            ("x-remote-uid", "7"),
            ("x-remote-group", "a"),
            ("x-remote-group", "b"),
            ("x-teams", "c"),
            ("x-remote-extra-Scopes%2fAll", "r"),
            ("x-remote-extra-scopes%2Fall", "w"),
        ]);
        let want = Identity {
            name: "bob".to_owned(),
            uid: "7".to_owned(),
            groups: list(&["a", "b", "c"]),
            extra: BTreeMap::from([("scopes/all".to_owned(), list(&["r", "w"]))]),
        };
        assert_eq!(names.user(&given), Some(want));
        assert_eq!(
            names.user(&headers(&[("x-other-user", "eve")])).unwrap().name,
            "eve",
            "the second header"
        );
        assert_eq!(
            names.user(&headers(&[("x-remote-user", ""), ("x-remote-group", "a")])),
            None,
            "no user, no groups"
        );
    }

    #[test]
    fn only_allowed_proxies_speak_for_others() {
        let any = ProxyHeaders::default();
        let some = ProxyHeaders { allowed_names: list(&["front"]), ..ProxyHeaders::default() };
        assert_eq!([any.allows("x"), some.allows("front"), some.allows("x")], [true, true, false]);
    }

    #[test]
    fn a_bearer_token_is_found_in_its_forms() {
        let table = [
            ("plain", Some("Bearer abc"), Some("abc")),
            ("any case, spaces around", Some("  bEaReR abc  "), Some("abc")),
            ("words after it are not part of it", Some("Bearer abc def"), Some("abc")),
            ("no header", None, None),
            ("no token", Some("Bearer"), None),
            ("an empty token", Some("Bearer  abc"), None),
            ("another scheme", Some("Basic abc"), None),
        ];
        for (case, given, want) in table {
            let given = given.map_or_else(HeaderMap::new, |value| headers(&[("authorization", value)]));
            assert_eq!(bearer(&given).as_ref().map(Secret::expose), want, "{case}");
        }
    }
}
