//! The rules of the chart's roles, from the rights that the program and its clouds ask for.

use std::fmt::Write;

use cloudberth::CLOUDS;
use cloudberth_core::rights::{Right, Scope};
use cloudberth_manager::rights::RIGHTS;

/// One rule of a role.
#[derive(Debug, PartialEq, Eq)]
struct Rule {
    about: Vec<&'static str>,
    group: &'static str,
    resource: &'static str,
    name: &'static str,
    verbs: Vec<&'static str>,
}

/// The file that the chart reads: what every cloud needs, by where it holds, and what single clouds need besides.
pub(super) fn yaml() -> String {
    let mut text = String::from(
        "# Written by `cargo xtask docs` from the code's table of rights; the templates make roles of it.\nevery:\n",
    );
    let scopes =
        [("cluster", Scope::Cluster), ("lease", Scope::LeaseNamespace), ("kubeSystem", Scope::KubeSystem)];
    for (key, scope) in scopes {
        let _ = writeln!(text, "  {key}:");
        list(&mut text, &rules(RIGHTS.iter().filter(|right| right.scope == scope)));
    }
    text.push_str("# In the whole cluster.\nclouds:\n");
    for factory in CLOUDS.iter().filter(|factory| !factory.rights.is_empty()) {
        let _ = writeln!(text, "  {}:", factory.name);
        list(&mut text, &rules(factory.rights.iter().filter(|right| right.scope == Scope::Cluster)));
    }
    text
}

/// Rights on the same objects are one rule.
fn rules<'a>(rights: impl Iterator<Item = &'a Right>) -> Vec<Rule> {
    let mut rules: Vec<Rule> = Vec::new();
    for right in rights {
        let Right { purpose, group, resource, name, verbs, .. } = *right;
        let same = |rule: &&mut Rule| (rule.group, rule.resource, rule.name) == (group, resource, name);
        match rules.iter_mut().find(same) {
            Some(rule) => {
                rule.about.push(purpose);
                rule.verbs.extend(verbs);
            }
            None => rules.push(Rule { about: vec![purpose], group, resource, name, verbs: verbs.to_vec() }),
        }
    }
    rules
}

fn list(text: &mut String, rules: &[Rule]) {
    for Rule { about, group, resource, name, verbs } in rules {
        let _ = writeln!(text, "    # {}", about.join("; "));
        let _ = writeln!(text, "    - apiGroups: [{}]", if group.is_empty() { "\"\"" } else { group });
        let _ = writeln!(text, "      resources: [{resource}]");
        if !name.is_empty() {
            let _ = writeln!(text, "      resourceNames: [{name}]");
        }
        let _ = writeln!(text, "      verbs: [{}]", verbs.join(", "));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_on_the_same_objects_become_one_rule() {
        let right = |resource, name, verbs| Right {
            purpose: "live",
            scope: Scope::Cluster,
            group: "",
            resource,
            name,
            verbs,
            needed: true,
        };
        let rights =
            [right("nodes", "", &["get"]), right("pods", "a", &["get"]), right("nodes", "", &["patch"])];
        let found = rules(rights.iter());
        let found: Vec<_> =
            found.iter().map(|rule| (rule.resource, rule.name, rule.verbs.join(" "))).collect();
        assert_eq!(found, [("nodes", "", "get patch".to_owned()), ("pods", "a", "get".to_owned())]);
        let mut text = String::new();
        list(&mut text, &rules(rights.iter().skip(1).take(1)));
        assert_eq!(
            text,
            "    # live\n    - apiGroups: [\"\"]\n      resources: [pods]\n      resourceNames: [a]\n      verbs: [get]\n"
        );
    }

    #[test]
    fn a_cloud_has_only_rights_that_the_chart_can_grant() {
        for right in CLOUDS.iter().flat_map(|factory| factory.rights) {
            assert_eq!(
                right.scope,
                Scope::Cluster,
                "{right}: the chart has no role of one cloud in a namespace"
            );
        }
    }
}
