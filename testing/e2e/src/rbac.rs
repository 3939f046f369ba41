//! Roles and bindings, as a real server reads them. The embedded API enforces them, and a program's calls are checked
//! against them.

use embedded_kube::{Action, User};
use serde_json::{Value, json};

use crate::{Error, Row};

/// The default roles of a real server: for all authenticated users, and those that managers are bound to.
const READY_MADE: &str = include_str!("rbac.yaml");

/// Who may do what, from manifests.
#[derive(Clone, Debug, Default)]
pub struct Rights {
    grants: Vec<Grant>,
}

/// One binding and the rules of its role.
#[derive(Clone, Debug)]
struct Grant {
    /// `ClusterRole x`, for messages.
    role: String,
    subjects: Vec<(String, String)>,
    /// The namespace that it applies to; all if there is none.
    namespace: Option<String>,
    rules: Vec<Rule>,
    ready_made: bool,
}

#[derive(Clone, Debug, Default)]
struct Rule {
    verbs: Vec<String>,
    groups: Vec<String>,
    resources: Vec<String>,
    names: Vec<String>,
    urls: Vec<String>,
}

impl Rights {
    /// Reads the roles and bindings among `documents`; other kinds are passed over. A binding to a role that is
    /// neither among them nor ready-made is an error, since it grants nothing.
    pub fn read(documents: &[Value]) -> Result<Self, Error> {
        let ready = super::manifests::parse(READY_MADE)?;
        let roles: Vec<&Value> = documents.iter().chain(&ready).filter(|one| is_role(one)).collect();
        let mut grants = Vec::new();
        for (bindings, ready_made) in [(documents, false), (ready.as_slice(), true)] {
            for binding in bindings.iter().filter(|one| text(one, "/kind").ends_with("RoleBinding")) {
                grants.push(Grant::read(binding, &roles, &ready, ready_made)?);
            }
        }
        Ok(Self { grants })
    }

    /// Whether a real server would let `user` do this.
    pub fn allow(&self, user: &User, action: &Action) -> bool {
        user.groups.iter().any(|group| group == "system:masters")
            || self.grants.iter().any(|grant| grant.is_for(user) && grant.allows(action))
    }

    /// The rights of `user` under the roles of the manifests (not the ready-made ones) that none of `rows` needed,
    /// in words.
    pub fn unused(&self, user: &User, rows: &[Row]) -> Vec<String> {
        let own = self.grants.iter().filter(|grant| !grant.ready_made && grant.is_for(user));
        let mut unused: Vec<String> = own
            .flat_map(|grant| grant.rules.iter().flat_map(Rule::atoms).map(move |atom| (grant, atom)))
            .filter(|(grant, atom)| {
                let place = |action: &Action| grant.counts_in(&action.namespace);
                !rows
                    .iter()
                    .any(|row| row.user == user.name && place(&row.action()) && atom.allows(&row.action()))
            })
            .map(|(grant, atom)| format!("{}: {}", grant.role, atom.words()))
            .collect();
        unused.sort();
        unused
    }

    /// Questions that a server answers with yes once the rights of `user` are in force: one for each rule, as the spec of a
    /// `SubjectAccessReview`.
    pub(crate) fn questions(&self, user: &User) -> Vec<Value> {
        let own = self.grants.iter().filter(|grant| grant.is_for(user));
        own.flat_map(|grant| grant.rules.iter().filter_map(|rule| grant.question(rule)))
            .map(|attributes| {
                let mut spec = json!({ "user": user.name, "groups": user.groups });
                if let (Some(spec), Some(more)) = (spec.as_object_mut(), attributes.as_object()) {
                    spec.extend(more.clone());
                }
                spec
            })
            .collect()
    }
}

impl Grant {
    fn read(binding: &Value, roles: &[&Value], ready: &[Value], ready_made: bool) -> Result<Self, Error> {
        let (kind, name) = (text(binding, "/roleRef/kind"), text(binding, "/roleRef/name"));
        let home = text(binding, "/metadata/namespace");
        let fits = |role: &&&Value| {
            text(role, "/kind") == kind
                && text(role, "/metadata/name") == name
                && (kind == "ClusterRole" || text(role, "/metadata/namespace") == home)
        };
        let role = roles.iter().find(fits).ok_or_else(|| {
            let who = text(binding, "/metadata/name");
            Error::Manifest(format!(
                "{} {who} refers to {kind} {name}, which is not there",
                text(binding, "/kind")
            ))
        })?;
        let subjects = list(binding, "/subjects").iter().map(|subject| {
            let name = text(subject, "/name");
            match text(subject, "/kind") {
                "ServiceAccount" => {
                    let name = format!("system:serviceaccount:{}:{name}", text(subject, "/namespace"));
                    ("User".to_owned(), name)
                }
                kind => (kind.to_owned(), name.to_owned()),
            }
        });
        Ok(Self {
            role: format!("{kind} {name}"),
            subjects: subjects.collect(),
            namespace: (text(binding, "/kind") == "RoleBinding").then(|| home.to_owned()),
            rules: list(role, "/rules").iter().map(Rule::read).collect(),
            ready_made: ready_made || ready.contains(*role),
        })
    }

    fn is_for(&self, user: &User) -> bool {
        self.subjects.iter().any(|(kind, name)| match kind.as_str() {
            "Group" => user.groups.contains(name),
            _ => user.name == *name,
        })
    }

    fn counts_in(&self, namespace: &str) -> bool {
        self.namespace.as_ref().is_none_or(|own| own == namespace)
    }

    fn allows(&self, action: &Action) -> bool {
        let cluster = self.namespace.is_none();
        (cluster || (self.counts_in(&action.namespace) && !action.resource.is_empty()))
            && self.rules.iter().any(|rule| rule.allows(action))
    }

    /// A rule of wildcards, or an empty one, has no question.
    fn question(&self, rule: &Rule) -> Option<Value> {
        let verb = rule.verbs.first()?;
        if let Some(path) = rule.urls.first() {
            let path = path.trim_end_matches('*');
            return Some(json!({ "nonResourceAttributes": { "verb": verb, "path": path } }));
        }
        let (resource, part) = split(rule.resources.first()?);
        Some(json!({ "resourceAttributes": {
            "verb": verb, "group": rule.groups.first()?, "resource": resource, "subresource": part,
            "namespace": self.namespace.as_deref().unwrap_or_default(),
            "name": rule.names.first().map_or("", String::as_str),
        } }))
    }
}

impl Rule {
    fn read(rule: &Value) -> Self {
        let all = |key: &str| {
            let texts = list(rule, key).iter().filter_map(Value::as_str);
            texts.map(str::to_owned).collect()
        };
        Self {
            verbs: all("/verbs"),
            groups: all("/apiGroups"),
            resources: all("/resources"),
            names: all("/resourceNames"),
            urls: all("/nonResourceURLs"),
        }
    }

    fn allows(&self, action: &Action) -> bool {
        let one_of = |all: &[String], want: &str| all.iter().any(|have| have == "*" || have == want);
        if !one_of(&self.verbs, &action.verb) {
            return false;
        }
        if action.resource.is_empty() {
            return self.urls.iter().any(|url| match url.strip_suffix('*') {
                Some(start) => action.path.starts_with(start),
                None => action.path == *url,
            });
        }
        let whole = if action.subresource.is_empty() {
            action.resource.clone()
        } else {
            format!("{}/{}", action.resource, action.subresource)
        };
        let any_with_part = format!("*/{}", action.subresource);
        one_of(&self.groups, &action.group)
            && (one_of(&self.resources, &whole)
                || (!action.subresource.is_empty() && self.resources.contains(&any_with_part)))
            && (self.names.is_empty() || self.names.contains(&action.name))
    }

    /// The rule, cut into rules of one verb, one group, one resource and one name each.
    fn atoms(&self) -> Vec<Self> {
        let or_nothing = |all: &[String]| -> Vec<Vec<String>> {
            if all.is_empty() { vec![Vec::new()] } else { all.iter().map(|one| vec![one.clone()]).collect() }
        };
        let mut atoms = Vec::new();
        for verbs in or_nothing(&self.verbs) {
            for groups in or_nothing(&self.groups) {
                for resources in or_nothing(&self.resources) {
                    for names in or_nothing(&self.names) {
                        for urls in or_nothing(&self.urls) {
                            let (verbs, groups) = (verbs.clone(), groups.clone());
                            let (resources, names) = (resources.clone(), names.clone());
                            atoms.push(Self { verbs, groups, resources, names, urls });
                        }
                    }
                }
            }
        }
        atoms
    }

    fn words(&self) -> String {
        let mut words = vec![self.verbs.join(","), self.resources.join(","), self.urls.join(",")];
        if self.groups.iter().any(|group| !group.is_empty()) {
            words.push(format!("of {}", self.groups.join(",")));
        }
        if !self.names.is_empty() {
            words.push(format!("named {}", self.names.join(",")));
        }
        words.retain(|word| !word.is_empty());
        words.join(" ")
    }
}

fn is_role(document: &Value) -> bool {
    matches!(text(document, "/kind"), "Role" | "ClusterRole")
}

fn split(resource: &str) -> (&str, &str) {
    resource.split_once('/').unwrap_or((resource, ""))
}

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn list<'v>(value: &'v Value, pointer: &str) -> &'v [Value] {
    value.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifests;

    const MANIFESTS: &str = r#"
kind: ClusterRole
metadata: {name: manager}
rules:
- {apiGroups: [""], resources: [nodes], verbs: [get, list]}
- {apiGroups: [""], resources: [services/status], verbs: [patch]}
- {apiGroups: [coordination.k8s.io], resources: [leases], resourceNames: [lead], verbs: [get, watch]}
- {nonResourceURLs: ["/logs/*"], verbs: [get]}
---
kind: ClusterRoleBinding
metadata: {name: manager}
roleRef: {kind: ClusterRole, name: manager}
subjects: [{kind: ServiceAccount, namespace: kube-system, name: manager}]
---
kind: RoleBinding
metadata: {name: reader, namespace: kube-system}
roleRef: {kind: Role, name: extension-apiserver-authentication-reader}
subjects: [{kind: ServiceAccount, namespace: kube-system, name: manager}]
"#;

    fn manager() -> User {
        let mut user = User::plain("system:serviceaccount:kube-system:manager");
        user.groups.push("system:serviceaccounts".into());
        user
    }

    /// `verb group resource/part namespace name`; `-` stands for nothing.
    fn action(text: &str) -> Action {
        let parts: Vec<_> = text.split(' ').map(|part| if part == "-" { "" } else { part }).collect();
        if parts[1].starts_with('/') {
            return Action { verb: parts[0].into(), path: parts[1].into(), ..Action::default() };
        }
        let (resource, part) = split(parts[2]);
        Action {
            verb: parts[0].into(),
            group: parts[1].into(),
            resource: resource.into(),
            subresource: part.into(),
            namespace: parts[3].into(),
            name: parts[4].into(),
            path: String::new(),
        }
    }

    #[test]
    fn rules_are_read_as_a_real_server_reads_them() {
        let rights = Rights::read(&manifests::parse(MANIFESTS).unwrap()).unwrap();
        let table = [
            ("get - nodes - n1", true),
            ("list - nodes - -", true),
            ("watch - nodes - -", false),
            ("get - nodes/status - n1", false),
            ("get apps nodes - n1", false),
            ("patch - services/status a s", true),
            ("patch - services a s", false),
            ("get coordination.k8s.io leases kube-system lead", true),
            ("get coordination.k8s.io leases kube-system other", false),
            ("watch coordination.k8s.io leases kube-system -", false),
            ("get - configmaps kube-system extension-apiserver-authentication", true),
            ("get - configmaps default extension-apiserver-authentication", false),
            ("create authorization.k8s.io selfsubjectaccessreviews - -", true),
            ("create authorization.k8s.io subjectaccessreviews - -", false),
            ("get /logs/x", true),
            ("get /apis/apps/v1", true),
            ("get /metrics", false),
        ];
        for (text, want) in table {
            assert_eq!(rights.allow(&manager(), &action(text)), want, "{text}");
            assert!(rights.allow(&User::admin("root"), &action(text)), "{text}");
        }
        assert!(!rights.allow(&User::plain("stranger"), &action("get - nodes - n1")));
    }

    #[test]
    fn a_binding_without_its_role_is_an_error() {
        let text = MANIFESTS.replace("{name: manager}\nrules", "{name: manger}\nrules");
        let said = Rights::read(&manifests::parse(&text).unwrap()).unwrap_err().to_string();
        assert!(said.contains("refers to ClusterRole manager, which is not there"), "{said}");
    }

    #[test]
    fn unused_rights_are_named() {
        let rights = Rights::read(&manifests::parse(MANIFESTS).unwrap()).unwrap();
        let row = |verb: &str, group: &str, resource: &str, part: &str, name: &str| Row {
            user: manager().name,
            verb: verb.into(),
            group: group.into(),
            resource: resource.into(),
            subresource: part.into(),
            name: name.into(),
            ..Row::default()
        };
        let rows = [
            row("get", "", "nodes", "", "n1"),
            row("patch", "", "services", "status", "s"),
            row("get", "coordination.k8s.io", "leases", "", "lead"),
            Row { user: "other".into(), ..row("list", "", "nodes", "", "") },
        ];
        assert_eq!(
            rights.unused(&manager(), &rows),
            [
                "ClusterRole manager: get /logs/*",
                "ClusterRole manager: list nodes",
                "ClusterRole manager: watch leases of coordination.k8s.io named lead",
            ]
        );
    }
}
