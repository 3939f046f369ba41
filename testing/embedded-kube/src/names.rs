//! Rules for names, labels and other short texts, with the complaints of the API server.

/// Which rule an object's name follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameRule {
    Label,
    Subdomain,
    /// Anything that can stand in a path.
    PathSegment,
}

impl NameRule {
    /// What is wrong with a name; `prefix` if characters will be appended to it.
    pub(crate) fn problems(self, name: &str, prefix: bool) -> Vec<String> {
        let masked = match name.strip_suffix('-') {
            Some(rest) if prefix && !rest.is_empty() => {
                format!("{}a", rest.get(..rest.len() - 1).unwrap_or(rest))
            }
            _ => name.to_owned(),
        };
        match self {
            Self::Label => dns_label(&masked),
            Self::Subdomain => dns_subdomain(&masked),
            Self::PathSegment => path_segment(name, prefix),
        }
    }
}

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const LABEL_1035: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const KEY: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const MIDDLE_RULE: &str =
    "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";

/// Names are said to be measured in characters, labels in bytes; both are ASCII where they are valid.
fn too_long(limit: usize, unit: &str) -> String {
    format!("must be no more than {limit} {unit}")
}

fn broken(rule: &str, examples: &[&str], regex: &str) -> String {
    let examples: Vec<String> = examples.iter().map(|e| format!("'{e}', ")).collect();
    format!("{rule} (e.g. {}regex used for validation is '{regex}')", examples.join(" or "))
}

fn is_label(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let ends = |b: Option<&u8>| b.is_some_and(|b| inner(*b));
    let bytes = text.as_bytes();
    ends(bytes.first()) && ends(bytes.last()) && bytes.iter().all(|b| inner(*b) || *b == b'-')
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

fn is_key(text: &str) -> bool {
    let ends = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    ends(bytes.first())
        && ends(bytes.last())
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

/// A DNS label (RFC 1123): namespaces, services.
pub(crate) fn dns_label(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if text.len() > 63 {
        problems.push(too_long(63, "characters"));
    }
    if !is_label(text) {
        problems.push(if is_subdomain(text) {
            "must not contain dots".to_owned()
        } else {
            let rule = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', \
                        and must start and end with an alphanumeric character";
            broken(rule, &["my-name", "123-abc"], LABEL)
        });
    }
    problems
}

/// A DNS label (RFC 1035): names of custom kinds and their versions. It begins with a letter.
pub(crate) fn label_1035(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if text.len() > 63 {
        problems.push(too_long(63, "characters"));
    }
    if !is_label(text) || text.starts_with(|c: char| c.is_ascii_digit()) {
        let rule = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
                    alphabetic character, and end with an alphanumeric character";
        problems.push(broken(rule, &["my-name", "abc-123"], LABEL_1035));
    }
    problems
}

/// A DNS subdomain (RFC 1123): nodes and most other things.
pub(crate) fn dns_subdomain(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if text.len() > 253 {
        problems.push(too_long(253, "characters"));
    }
    if !is_subdomain(text) {
        let rule = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
                    and must start and end with an alphanumeric character";
        problems.push(broken(rule, &["example.com"], SUBDOMAIN));
    }
    problems
}

fn path_segment(name: &str, prefix: bool) -> Vec<String> {
    if !prefix && matches!(name, "." | "..") {
        return vec![format!("may not be '{name}'")];
    }
    ["/", "%"]
        .iter()
        .filter(|bad| name.contains(**bad))
        .map(|bad| format!("may not contain '{bad}'"))
        .collect()
}

/// A key of a label, an annotation or a finalizer: `example.com/name`.
pub(crate) fn qualified_name(text: &str) -> Vec<String> {
    let rule = format!("must consist of {MIDDLE_RULE}");
    let examples = ["MyName", "my.name", "123-abc"];
    let mut problems = Vec::new();
    let parts: Vec<&str> = text.split('/').collect();
    let name = match parts.as_slice() {
        [name] => name,
        [prefix, name] => {
            if prefix.is_empty() {
                problems.push("prefix part must be non-empty".to_owned());
            } else {
                problems.extend(dns_subdomain(prefix).into_iter().map(|p| format!("prefix part {p}")));
            }
            name
        }
        _ => {
            return vec![format!(
                "a valid label key {} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
                broken(&rule, &examples, KEY)
            )];
        }
    };
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        problems.push(format!("name part {}", too_long(63, "bytes")));
    }
    if !is_key(name) {
        problems.push(format!("name part {}", broken(&rule, &examples, KEY)));
    }
    problems
}

/// The value of a label.
pub(crate) fn label_value(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if text.len() > 63 {
        problems.push(too_long(63, "bytes"));
    }
    if !text.is_empty() && !is_key(text) {
        let rule = format!("a valid label must be an empty string or consist of {MIDDLE_RULE}");
        problems.push(broken(&rule, &["MyValue", "my_value", "12345"], &format!("({KEY})?")));
    }
    problems
}

/// A key in the data of a config map or a secret.
pub(crate) fn config_key(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if text.len() > 253 {
        problems.push(too_long(253, "characters"));
    }
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
    {
        let rule = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'";
        problems.push(broken(rule, &["key.name", "KEY_NAME", "key-name"], "[-._a-zA-Z0-9]+"));
    }
    match text {
        "." => problems.push("must not be '.'".to_owned()),
        ".." => problems.push("must not be '..'".to_owned()),
        _ if text.starts_with("..") => problems.push("must not start with '..'".to_owned()),
        _ => {}
    }
    problems
}

/// The name of a container port.
pub(crate) fn port_name(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let mut check = |bad: bool, problem: &str| {
        if bad {
            problems.push(problem.to_owned());
        }
    };
    let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    check(text.len() > 15, "must be no more than 15 characters");
    check(
        text.is_empty() || !text.bytes().all(allowed),
        "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
    );
    check(!text.bytes().any(|b| b.is_ascii_lowercase()), "must contain at least one letter (a-z)");
    check(text.contains("--"), "must not contain consecutive hyphens");
    check(text.starts_with('-') || text.ends_with('-'), "must not begin or end with a hyphen");
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A rule, texts that it lets pass, and texts that it does not.
    type Row<'a> = (&'a str, fn(&str) -> Vec<String>, &'a [&'a str], &'a [&'a str]);

    #[test]
    fn good_names_pass_and_bad_ones_are_explained() {
        let long = "a".repeat(64);
        let table: [Row<'_>; 7] = [
            ("label of a kind", label_1035, &["a", "floatingips"], &["", "1a", "A", "a.b", &long]),
            ("label", dns_label, &["a", "my-name", "1a"], &["", "A", "a.b", "-a", "a-", "a_b", &long]),
            ("subdomain", dns_subdomain, &["a.b-c.d", "n1"], &["", "a..b", "a.", "A.b"]),
            ("key", qualified_name, &["a", "a.b/C_d", "x-y.z"], &["", "/a", "a/", "a/b/c", "A.b/c", "-a"]),
            ("value", label_value, &["", "a_B.c", "1"], &["-", "a ", "é", &long]),
            ("config key", config_key, &["a.b", "A_b"], &["", "..", "..a", "a/b"]),
            ("port", port_name, &["http", "a-1"], &["", "1", "HTTP", "a--b", "-a", "averylongportname"]),
        ];
        for (what, rule, good, bad) in table {
            for text in good {
                assert_eq!(rule(text), Vec::<String>::new(), "{what} {text:?}");
            }
            for text in bad {
                assert!(!rule(text).is_empty(), "{what} {text:?}");
            }
        }
    }

    #[test]
    fn a_prefix_may_end_with_a_dash() {
        assert!(NameRule::Label.problems("web-", true).is_empty());
        assert!(!NameRule::Label.problems("web-", false).is_empty());
        assert!(!NameRule::Label.problems("-", true).is_empty());
    }

    #[test]
    fn the_words_are_those_of_the_api_server() {
        assert_eq!(
            dns_label("Bad_Name"),
            [
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and \
              end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
              '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
            ]
        );
        assert_eq!(dns_label("a.b"), ["must not contain dots"]);
    }
}
