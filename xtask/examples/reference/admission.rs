//! Policies by which an API server itself refuses annotations that could never work, written from the tables of
//! annotations: no webhook is needed.
//!
//! They are never stricter than the program. What it refuses they deny, as far as a rule can tell; what it only warns of
//! they warn of too. An annotation counts only when it is set or changed, so that a Service from before can still be edited.

use std::fmt::Write;

use cloudberth::CLOUDS;
use cloudberth_core::annotation::{Reading, Shape, Table};
use serde_json::Value;

/// The file of every cloud that has annotations people can set, and its text.
pub(super) fn files() -> impl Iterator<Item = (String, String)> {
    let clouds = CLOUDS.iter().filter(|factory| !factory.replaces.is_empty());
    clouds.map(|factory| {
        (format!("deploy/admission/{}.yaml", factory.name), policies(factory.name, factory.annotations))
    })
}

/// One thing that has to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    /// In CEL.
    expression: String,
    /// What to say otherwise, also in CEL.
    says: String,
    /// What to say where that is too long.
    briefly: String,
}

fn policies(cloud: &str, table: &Table) -> String {
    let (denied, warned) = rules(cloud, table);
    let mut text = format!(
        "# Written by `cargo xtask docs` from the table of annotations of {cloud}. docs/how-to/refuse-bad-annotations.md says how\n\
         # to install it.\n"
    );
    for (name, action, rules) in [("values", "Deny", denied), ("names", "Warn", warned)] {
        let name = format!("cloudberth-{cloud}-{name}");
        let _ = write!(
            text,
            "---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata:\n  name: {name}\n\
             spec:\n  failurePolicy: Ignore\n  matchConstraints:\n    resourceRules:\n      - apiGroups: [\"\"]\n        \
             apiVersions: [v1]\n        operations: [CREATE, UPDATE]\n        resources: [services]\n  matchConditions:\n    \
             - name: a-load-balancer-without-a-class\n      expression: {}\n  variables:\n    - name: now\n      \
             expression: {}\n    - name: before\n      expression: {}\n    - name: changed\n      expression: {}\n  \
             validations:\n",
            quoted(OURS),
            quoted(NOW),
            quoted(BEFORE),
            quoted(CHANGED),
        );
        for Rule { expression, says, briefly } in rules {
            let _ = writeln!(
                text,
                "    - expression: {}\n      messageExpression: {}\n      message: {}",
                quoted(&expression),
                quoted(&says),
                quoted(&briefly),
            );
        }
        let _ = writeln!(
            text,
            "---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata:\n  \
             name: {name}\nspec:\n  policyName: {name}\n  validationActions: [{action}]"
        );
    }
    text
}

/// A Service of another class is nobody's business here, and one that is on its way out is left alone.
const OURS: &str = "has(object.spec.type) && object.spec.type == 'LoadBalancer' && !has(object.spec.loadBalancerClass) && \
                    !has(object.metadata.deletionTimestamp)";
const NOW: &str = "has(object.metadata.annotations) ? object.metadata.annotations : {}";
const BEFORE: &str = "request.operation == 'UPDATE' && has(oldObject.metadata.annotations) ? oldObject.metadata.annotations : {}";
const CHANGED: &str =
    "variables.now.filter(key, !(key in variables.before) || variables.before[key] != variables.now[key])";

/// What is denied, and what is warned of.
fn rules(cloud: &str, table: &Table) -> (Vec<Rule>, Vec<Rule>) {
    let (mut denied, mut warned) = (Vec::new(), Vec::new());
    for row in table.rows() {
        for spelling in row.spellings {
            let Some(good) = condition(&row.shape, table.reading(), spelling.name) else { continue };
            let key = literal(spelling.name);
            let ending = if spelling.lenient { "; it is ignored" } else { "" };
            let rule = Rule {
                expression: format!("!({key} in variables.changed) || {good}"),
                says: format!(
                    "{} + variables.now[{key}] + {}",
                    literal(&format!("annotation {}: \"", spelling.name)),
                    literal(&format!("\" is not {}{ending}", row.expects)),
                ),
                briefly: format!("annotation {} must be {}{ending}", spelling.name, row.expects),
            };
            if spelling.lenient { warned.push(rule) } else { denied.push(rule) }
        }
    }
    for retired in table.without_effect() {
        let key = literal(retired.name);
        let message = format!("annotation {} has no effect: {}", retired.name, retired.why);
        warned.push(Rule {
            expression: format!("!({key} in variables.changed)"),
            says: literal(&message),
            briefly: message,
        });
    }
    if !table.prefixes().is_empty() {
        warned.push(unknown(cloud, table));
    }
    (denied, warned)
}

/// No key with the cloud's prefix is unknown.
fn unknown(cloud: &str, table: &Table) -> Rule {
    let begins: Vec<_> =
        table.prefixes().iter().map(|prefix| format!("key.startsWith({})", literal(prefix))).collect();
    let known = table.rows().flat_map(|row| row.spellings).map(|spelling| spelling.name);
    let known = known.chain(table.without_effect().iter().map(|retired| retired.name));
    let known: Vec<_> = known
        .filter(|name| table.prefixes().iter().any(|prefix| name.starts_with(prefix)))
        .map(literal)
        .collect();
    let stranger = format!("({}) && !(key in [{}])", begins.join(" || "), known.join(", "));
    let see = format!("; those of {cloud} are in docs/reference/{cloud}.md");
    Rule {
        expression: format!("!variables.changed.exists(key, {stranger})"),
        says: format!(
            "'there is no annotation ' + variables.changed.filter(key, {stranger}).join(', ') + {}",
            literal(&see)
        ),
        briefly: format!("an annotation is not known{see}"),
    }
}

/// When the value of a key is good, in CEL; `None` where nothing can be told.
fn condition(shape: &Shape, reading: Reading, key: &str) -> Option<String> {
    let raw = format!("variables.now[{}]", literal(key));
    let value = if reading.trim { format!("{raw}.trim()") } else { raw };
    let good = match shape {
        Shape::Any => return None,
        Shape::Word { words, any_case } => {
            let spelled = |word: &&str| {
                literal(&if *any_case { word.to_ascii_lowercase() } else { (*word).to_owned() })
            };
            let words: Vec<_> = words.iter().map(spelled).collect();
            let lower = if *any_case { ".lowerAscii()" } else { "" };
            format!("{value}{lower} in [{}]", words.join(", "))
        }
        Shape::Number { min, max, signed } => {
            let sign = if *signed { "[+-]?" } else { "" };
            let (plain, short) = (format!("^{sign}[0-9]+$"), format!("^{sign}0*[0-9]{{1,18}}$"));
            // A limit that nothing can exceed is left out: some of them cannot be written in CEL.
            let within = format!("int({value}) >= {min} && int({value}) <= {max}");
            if shape.admits_huge() {
                format!("{value}.matches({})", literal(&plain))
            } else {
                format!("{value}.matches({}) && {within}", literal(&short))
            }
        }
        Shape::JsonList => {
            let blank = "[ \\t\\r\\n]*";
            format!("{value}.matches({})", literal(&format!("^{blank}(\\[(?s:.*)\\]|null)?{blank}$")))
        }
    };
    Some(if reading.empty_is_absent { format!("{value} == '' || {good}") } else { good })
}

/// A string in CEL.
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'").replace('\n', "\\n"))
}

/// A string in YAML: one in JSON is one.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cloudberth_core::annotation::Annotations;

    /// Texts of all sorts; with the words that a table expects they reach every kind.
    const TEXTS: [&str; 22] = [
        "",
        " ",
        "0",
        "1",
        "-1",
        "+1",
        "007",
        "65536",
        "2147483648",
        "99999999999999999999",
        "1.5",
        "true",
        "True",
        "x",
        "a b",
        "tcp",
        "TCP",
        "[]",
        " [\"a\"] ",
        "[",
        "null",
        "{}",
    ];

    #[test]
    fn no_policy_is_stricter_than_the_program() {
        let mut refused = 0;
        for factory in CLOUDS {
            let (table, reading) = (factory.annotations, factory.annotations.reading());
            for row in table.rows() {
                let words = match &row.shape {
                    Shape::Word { words, .. } => words.clone(),
                    _ => Vec::new(),
                };
                for (spelling, text) in
                    row.spellings.iter().flat_map(|s| TEXTS.iter().chain(&words).map(move |text| (s, *text)))
                {
                    let set = Annotations::from([(spelling.name.to_owned(), text.to_owned())]);
                    let good = reading.text(&set, spelling.name).is_none_or(|text| row.shape.admits(text));
                    let parsed = table.parse(&set);
                    let complains = if spelling.lenient {
                        !parsed.notices.is_empty()
                    } else {
                        !parsed.refused.is_empty()
                    };
                    assert!(good || complains, "{} takes {text:?}", spelling.name);
                    refused += usize::from(!good);
                }
            }
        }
        assert!(refused > 100, "the rules are of some use: {refused}");
    }

    #[test]
    fn a_condition_says_what_the_shape_does() {
        let as_is = Reading { trim: false, empty_is_absent: false };
        let loose = Reading { trim: true, empty_is_absent: true };
        let word = |any_case| Shape::Word { words: vec!["tcp", "it's"], any_case };
        let number = |min, max| Shape::Number { min, max, signed: false };
        let table = [
            (Shape::Any, as_is, None),
            (word(false), as_is, Some("variables.now['k'] in ['tcp', 'it\\'s']")),
            (
                word(true),
                loose,
                Some(
                    "variables.now['k'].trim() == '' || variables.now['k'].trim().lowerAscii() in ['tcp', 'it\\'s']",
                ),
            ),
            (
                number(1, 5),
                as_is,
                Some(
                    "variables.now['k'].matches('^0*[0-9]{1,18}$') && int(variables.now['k']) >= 1 && \
                     int(variables.now['k']) <= 5",
                ),
            ),
            (number(0, i64::MAX), as_is, Some("variables.now['k'].matches('^[0-9]+$')")),
        ];
        for (shape, reading, want) in table {
            assert_eq!(condition(&shape, reading, "k").as_deref(), want, "{shape:?}");
        }
    }

    #[test]
    fn every_cloud_that_replaces_a_program_has_a_file_in_yaml() {
        let all: Vec<_> = files().collect();
        let names: Vec<_> = all.iter().map(|(file, _)| file.as_str()).collect();
        let want = ["binarylane", "brightbox", "cloudlycke", "cloudscale"];
        assert_eq!(names, want.map(|cloud| format!("deploy/admission/{cloud}.yaml")));
        for (file, text) in all {
            let objects: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
            let kinds: Vec<_> = objects.iter().map(|object| object["kind"].as_str().unwrap()).collect();
            let pair = ["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"];
            assert_eq!(kinds, [pair, pair].concat(), "{file}");
            for rule in objects.iter().filter_map(|object| object["spec"]["validations"].as_array()) {
                assert!(!rule.is_empty(), "{file}: a policy without rules is not accepted");
            }
        }
    }
}
