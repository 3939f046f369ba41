//! Strict YAML for settings: every mistake at once, each with its line and field, and never a secret in a message.
//!
//! ```
//! use cloudberth_http::yaml;
//!
//! let text = "apiToken: [s3cr3t]\nregoin: syd\nvpcId: many\n";
//! let read = yaml::read(text, |file| {
//!     let token = file.required("apiToken").secret();
//!     let region = file.optional("region").text();
//!     let vpc = file.optional("vpcId").integer(1..=u64::MAX);
//!     Some((token, region, vpc))
//! });
//! let mistakes: Vec<_> = read.unwrap_err().iter().map(ToString::to_string).collect();
//! assert_eq!(mistakes, [
//!     "line 1, field apiToken: it must be text",
//!     "line 2, field regoin: there is no such field; did you mean region?",
//!     "line 3, field vpcId: it must be a whole number from 1 to 18446744073709551615, not many",
//! ]);
//! ```

mod documents;
mod node;
mod value;

use std::{cell::RefCell, fmt};

pub use documents::{Document, documents};
pub use value::{Fields, Value};

/// Something in a file that is not as it must be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mistake {
    /// The line, from 1: that of the value, or of the mapping that lacks it.
    pub line: usize,
    /// The path of the field, such as `instances[3].id`; empty if it is about the whole file.
    pub field: String,
    /// What is wrong, without the value of any field that is read as a secret.
    pub text: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, field, text } = self;
        if field.is_empty() {
            write!(f, "line {line}: {text}")
        } else {
            write!(f, "line {line}, field {field}: {text}")
        }
    }
}

/// Reads a file whose outermost part is a mapping, as [`Value::fields`] does. Gives every mistake, in the order of the
/// file.
pub fn read<T>(
    text: &str,
    read: impl for<'a> FnOnce(&mut Fields<'a>) -> Option<T>,
) -> Result<T, Vec<Mistake>> {
    let root = node::parse(text).map_err(|mistake| vec![mistake])?;
    let mistakes = RefCell::default();
    let made = Value::root(&root, &mistakes).fields(read);
    let mut mistakes = mistakes.into_inner();
    mistakes.sort();
    match made {
        Some(made) if mistakes.is_empty() => Ok(made),
        _ => Err(mistakes),
    }
}

#[cfg(test)]
mod tests {
    use cloudberth_core::Secret;
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Default, PartialEq, Eq)]
    struct Settings {
        token: Option<Secret>,
        region: Option<String>,
        vpc: Option<u32>,
        enabled: Option<bool>,
        seconds: Option<u64>,
        names: Vec<String>,
        /// Key, line and name of each cluster.
        clusters: Vec<(String, usize, Option<String>)>,
    }

    fn read_settings(text: &str) -> Result<Settings, Vec<String>> {
        let settings = read(text, |file| {
            Some(Settings {
                token: file.optional("token").secret(),
                region: file.optional("region").text(),
                vpc: file.optional("vpc").integer(1..=9_999),
                enabled: file
                    .optional("routes")
                    .fields(|routes| Some(routes.optional("enabled").boolean()))
                    .flatten(),
                seconds: file.optional("drain").parse(|text| {
                    text.strip_suffix('s')
                        .and_then(|text| text.parse().ok())
                        .ok_or("it must be seconds, such as 30s")
                }),
                names: file.optional("names").items(|name| name.text()),
                clusters: file.optional("clusters").entries(|key, cluster| {
                    let line = cluster.line();
                    let name = cluster.fields(|cluster| Some(cluster.required("name").text()))?;
                    Some((key.to_owned(), line, name))
                }),
            })
        });
        settings.map_err(|mistakes| mistakes.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn everything_is_read_as_what_it_is_meant_to_be() {
        let text = "\
token: 'abc'   # a comment
region: 012
vpc: 4021
routes: { enabled: true }
drain: 30s
names: [a, \"b\", true]
clusters:
  c1: { name: one }
  c2:
    name: two
";
        let want = Settings {
            token: Some(Secret::new("abc").unwrap()),
            region: Some("012".to_owned()),
            vpc: Some(4_021),
            enabled: Some(true),
            seconds: Some(30),
            names: ["a", "b", "true"].map(str::to_owned).into(),
            clusters: vec![
                ("c1".to_owned(), 8, Some("one".to_owned())),
                ("c2".to_owned(), 10, Some("two".to_owned())),
            ],
        };
        assert_eq!(read_settings(text), Ok(want));
        let json = "{\"region\": \"syd\", \"vpc\": 7}";
        let want = Settings { region: Some("syd".to_owned()), vpc: Some(7), ..Settings::default() };
        assert_eq!(read_settings(json), Ok(want), "JSON is YAML");
        let blanks =
            ["", "\n", "# nothing\n", "---\n", "token:\nroutes: ~\nnames: null\nclusters:\n  # none\n"];
        for text in blanks {
            assert_eq!(read_settings(text), Ok(Settings::default()), "{text:?}");
        }
    }

    #[test]
    fn every_mistake_has_its_line_and_field() {
        let number = "it must be a whole number from 1 to 9999";
        let table: &[(&str, &str, &[&str])] = &[
            ("a slip", "regoin: x", &["line 1, field regoin: there is no such field; did you mean region?"]),
            ("no slip", "\n\nflavour: x", &["line 3, field flavour: there is no such field"]),
            (
                "a nested slip",
                "routes:\n  enabeld: true",
                &["line 2, field routes.enabeld: there is no such field; did you mean enabled?"],
            ),
            ("twice", "vpc: 1\nregion: a\nvpc: 2", &["line 3, field vpc: it is given already on line 1"]),
            ("a word", "vpc: many", &[&format!("line 1, field vpc: {number}, not many")]),
            ("quotes", "vpc: \"7\"", &[&format!("line 1, field vpc: {number}, not the text \"7\"")]),
            ("too large", "vpc: 10000", &[&format!("line 1, field vpc: {number}, not 10000")]),
            ("a fraction", "vpc: 1.0", &[&format!("line 1, field vpc: {number}, not 1.0")]),
            ("a list", "vpc: [1]", &[&format!("line 1, field vpc: {number}")]),
            (
                "long",
                &format!("vpc: {}", "x".repeat(99)),
                &[&format!("line 1, field vpc: {number}, not {}…", "x".repeat(40))],
            ),
            (
                "yes",
                "routes: {enabled: yes}",
                &["line 1, field routes.enabled: it must be true or false, not yes"],
            ),
            ("its own", "drain: soon", &["line 1, field drain: it must be seconds, such as 30s"]),
            ("no text", "region:\n  - a", &["line 2, field region: it must be text"]),
            ("no list", "names: a", &["line 1, field names: it must be a list"]),
            ("an item", "names:\n- a\n- {b: c}", &["line 3, field names[1]: it must be text"]),
            ("no mapping", "routes: on", &["line 1, field routes: it must be a mapping of fields to values"]),
            ("missing", "clusters:\n  c1: {}", &["line 2, field clusters.c1.name: it is missing"]),
            ("empty", "clusters:\n  c1:\n    name:\n", &["line 3, field clusters.c1.name: it is missing"]),
            (
                "an alias",
                "region: &a x\nnames: [*a]",
                &["line 2, field names[0]: aliases such as *name are not read here; write the value out"],
            ),
            (
                "a tag",
                "region: !!str x",
                &["line 1, field region: tags such as !!str are not read here; leave the tag out"],
            ),
            ("an odd key", "[a]: x", &["line 1: the name of a field must be text"]),
            ("no fields", "- a", &["line 1: it must be a mapping of fields to values"]),
            (
                "two files",
                "vpc: 1\n---\nvpc: 2",
                &["line 3: a second document begins here; there may be one only"],
            ),
            ("no YAML", "vpc: 1\nnames: [a", &["line 2: this is not YAML: unclosed bracket '['"]),
            (
                "a special character",
                "token: @x",
                &["line 1: this is not YAML: text that begins with a special character needs quotes"],
            ),
            (
                "all at once",
                "vpc: x\nzone: y\ntoken: []\n",
                &[
                    &format!("line 1, field vpc: {number}, not x"),
                    "line 2, field zone: there is no such field",
                    "line 3, field token: it must be text",
                ],
            ),
        ];
        for (case, text, want) in table {
            assert_eq!(read_settings(text).unwrap_err(), *want, "{case}");
        }
    }

    #[test]
    fn who_gives_up_early_hears_of_no_field_that_was_not_asked_for() {
        let early = read("region: syd\n", |file| {
            let token = file.required("token").secret()?;
            Some((token, file.optional("region").text()))
        });
        let mistakes: Vec<_> = early.unwrap_err().iter().map(ToString::to_string).collect();
        assert_eq!(mistakes, ["line 1, field token: it is missing"]);
    }

    #[test]
    fn a_secret_that_means_something_in_yaml_is_not_quoted_either() {
        // What stands before a secret without quotes makes it an alias, an anchor, a tag, a directive or a block.
        for before in [
            "*", "&", "!", "!!", "!<", "%", "@", "`", "|", ">", "? ", "- ", "{", "[", "\"", "'", "x: ", "}",
            "\t", "\\",
        ] {
            for behind in ["", ":", ": x", "}", "]", ", y", "#", " #", "\"", "\n- z"] {
                let text = format!("token: {before}s3cr3t{behind}\n");
                let mistakes = read_settings(&text).err().unwrap_or_default();
                assert!(
                    !mistakes.iter().any(|text| text.contains("s3cr3t")),
                    "L10-1506 {text:?}: {mistakes:?}"
                );
            }
        }
    }

    proptest! {
        #[test]
        fn no_message_quotes_a_secret(
            before in "[-a-z:{}\\[\\]&*!@%|>'\"#, \n\t]{0,12}",
            behind in "[-a-z:{}\\[\\]&*!@%|>'\"#, \n\t]{0,12}",
        ) {
            // Anything around it may make it a key, an item or no YAML at all, but it stays in the secret field.
            let text = format!("region: x\ntoken: {}\n", format!("{before}s3cr3t{behind}").replace('\n', "\n  "));
            if let Err(mistakes) = read_settings(&text) {
                prop_assert!(!mistakes.is_empty());
                prop_assert!(!mistakes.iter().any(|text| text.contains("s3cr3t")), "L10-1506 {mistakes:?}");
            }
        }

        #[test]
        fn any_text_is_read_or_refused(text in "(?s).{0,200}") {
            if let Err(mistakes) = read_settings(&text) {
                prop_assert!(!mistakes.is_empty());
                prop_assert!(mistakes.iter().all(|text| text.starts_with("line ")), "{mistakes:?}");
            }
        }
    }
}
