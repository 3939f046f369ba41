//! Parses paths into resource, namespace and name.

use http::Method;

/// A path that names a resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) namespace: Option<String>,
    pub(crate) plural: String,
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
    /// The old `/watch/` prefix.
    pub(crate) watch: bool,
}

/// Parses a path; `None` when it names no resource.
pub(crate) fn parse(path: &str) -> Option<Target> {
    let decode = |part: &str| percent_encoding::percent_decode_str(part).decode_utf8_lossy().into_owned();
    let parts: Vec<String> = path.split('/').filter(|part| !part.is_empty()).map(decode).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let (group, version, rest) = match parts.as_slice() {
        ["api", version, rest @ ..] => ("", *version, rest),
        ["apis", group, version, rest @ ..] => (*group, *version, rest),
        _ => return None,
    };
    let (watch, rest) = match rest {
        ["watch", rest @ ..] if !rest.is_empty() => (true, rest),
        rest => (false, rest),
    };
    let (namespace, rest) = match rest {
        // A namespace's own parts look like resources within it.
        ["namespaces", _] | ["namespaces", _, "status" | "finalize"] => (None, rest),
        ["namespaces", namespace, rest @ ..] => (Some((*namespace).to_owned()), rest),
        rest => (None, rest),
    };
    let (plural, name, subresource) = match rest {
        [plural] => (plural, None, None),
        [plural, name] => (plural, Some(name), None),
        [plural, name, subresource] => (plural, Some(name), Some(subresource)),
        _ => return None,
    };
    Some(Target {
        group: group.to_owned(),
        version: version.to_owned(),
        namespace,
        plural: (*plural).to_owned(),
        name: name.map(|s| (*s).to_owned()),
        subresource: subresource.map(|s| (*s).to_owned()),
        watch,
    })
}

impl Target {
    /// The verb, in the sense of authorization and of the call log.
    pub(crate) fn verb(&self, method: &Method, watch: bool) -> &'static str {
        match (method.as_str(), self.name.is_some()) {
            ("GET" | "HEAD", _) if self.watch => "watch",
            ("GET" | "HEAD", true) => "get",
            ("GET" | "HEAD", false) if watch => "watch",
            ("GET" | "HEAD", false) => "list",
            ("POST", _) => "create",
            ("PUT", _) => "update",
            ("PATCH", _) => "patch",
            ("DELETE", true) => "delete",
            ("DELETE", false) => "deletecollection",
            _ => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(
        group: &str,
        namespace: Option<&str>,
        plural: &str,
        name: Option<&str>,
        sub: Option<&str>,
    ) -> Target {
        let own = |s: Option<&str>| s.map(str::to_owned);
        Target {
            group: group.to_owned(),
            version: "v1".to_owned(),
            namespace: own(namespace),
            plural: plural.to_owned(),
            name: own(name),
            subresource: own(sub),
            watch: false,
        }
    }

    #[test]
    fn paths_are_taken_apart() {
        let table = [
            ("/api/v1/nodes", Some(target("", None, "nodes", None, None))),
            ("/api/v1/nodes/n1/status", Some(target("", None, "nodes", Some("n1"), Some("status")))),
            ("/api/v1/namespaces", Some(target("", None, "namespaces", None, None))),
            ("/api/v1/namespaces/a", Some(target("", None, "namespaces", Some("a"), None))),
            (
                "/api/v1/namespaces/a/finalize",
                Some(target("", None, "namespaces", Some("a"), Some("finalize"))),
            ),
            ("/api/v1/namespaces/a/services", Some(target("", Some("a"), "services", None, None))),
            (
                "/api/v1/namespaces/a/services/s/status",
                Some(target("", Some("a"), "services", Some("s"), Some("status"))),
            ),
            ("/api/v1/services", Some(target("", None, "services", None, None))),
            (
                "/apis/coordination.k8s.io/v1/namespaces/k/leases/l",
                Some(target("coordination.k8s.io", Some("k"), "leases", Some("l"), None)),
            ),
            ("/api/v1", None),
            ("/apis", None),
            ("/version", None),
            ("/api/v1/a/b/c/d/e", None),
        ];
        for (path, want) in table {
            assert_eq!(parse(path), want, "{path}");
        }
        assert!(parse("/api/v1/watch/nodes").unwrap().watch);
    }

    #[test]
    fn verbs_follow_method_and_name() {
        let (all, one) = (parse("/api/v1/nodes").unwrap(), parse("/api/v1/nodes/a").unwrap());
        assert_eq!(all.verb(&Method::GET, false), "list");
        assert_eq!(all.verb(&Method::GET, true), "watch");
        assert_eq!(one.verb(&Method::GET, false), "get");
        assert_eq!(all.verb(&Method::DELETE, false), "deletecollection");
        assert_eq!(one.verb(&Method::DELETE, false), "delete");
        assert_eq!(one.verb(&Method::PATCH, false), "patch");
    }
}
