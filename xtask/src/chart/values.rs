//! The page of the chart's values, from the comments in its `values.yaml`.

use std::fmt::Write;

/// The values with their comments.
const VALUES: &str = include_str!("../../../charts/cloudberth/values.yaml");

/// A value that people can set, or a group of them.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    path: String,
    about: String,
    default: Preset,
}

#[derive(Debug, PartialEq, Eq)]
enum Preset {
    /// It is written behind the name.
    Is(String),
    /// It takes several lines.
    Long,
    /// It has none: its values follow in rows of their own.
    Group,
}

pub(crate) fn markdown() -> String {
    let mut text = String::from(
        "# Values of the chart\n\n\
         What `charts/cloudberth` can be told, with `--values FILE` or `--set NAME=VALUE`. A value that is not listed is refused by\n\
         its name, and so are values that do not go together. [Install](../how-to/install.md) shows the few that are needed.\n\n\
         | value | default | meaning |\n|---|---|---|\n",
    );
    for Row { path, about, default } in rows(VALUES) {
        let default = match default {
            Preset::Is(text) => format!("`{text}`"),
            Preset::Long => "[see there](../../charts/cloudberth/values.yaml)".to_owned(),
            Preset::Group => String::new(),
        };
        let _ = writeln!(text, "| `{path}` | {default} | {about} |");
    }
    text
}

/// Whether the chart can be told a value of this name, such as `clouds.cloudscale.enabled`, or one below it.
pub(crate) fn is_one(path: &str) -> bool {
    rows(VALUES).iter().filter(|row| row.default != Preset::Group).any(|row| {
        path.strip_prefix(&row.path).is_some_and(|below| below.is_empty() || below.starts_with(['.', '[']))
    })
}

/// A line `name: value` with the comment above it.
struct Line<'a> {
    depth: usize,
    name: &'a str,
    value: &'a str,
    about: String,
}

/// The values that have a comment. What has none is a part of the value above it, or a group.
fn rows(values: &str) -> Vec<Row> {
    let lines = lines(values);
    let mut path: Vec<&str> = Vec::new();
    let mut rows = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        path.truncate(line.depth);
        path.push(line.name);
        if line.about.is_empty() {
            continue;
        }
        let mut below = lines.iter().skip(at + 1).take_while(|other| other.depth > line.depth);
        let default = if !line.value.is_empty() {
            Preset::Is(line.value.to_owned())
        } else if below.any(|other| !other.about.is_empty()) {
            Preset::Group
        } else {
            Preset::Long
        };
        rows.push(Row { path: path.join("."), about: line.about.clone(), default });
    }
    rows
}

/// The lines with names; those of lists are left out. A comment ends at an empty line.
fn lines(values: &str) -> Vec<Line<'_>> {
    let mut found = Vec::new();
    let mut about: Vec<&str> = Vec::new();
    let mut list: Option<usize> = None;
    for line in values.lines() {
        let text = line.trim_start();
        let indent = line.len() - text.len();
        // An entry of a list begins with a dash, and its further lines are indented by more.
        list = if text.starts_with("- ") { Some(indent) } else { list.filter(|dash| indent > *dash) };
        if list.is_some() {
            continue;
        }
        if let Some(comment) = text.strip_prefix('#') {
            about.push(comment.trim());
        } else if let Some((name, value)) = text.split_once(':') {
            found.push(Line { depth: indent / 2, name, value: value.trim(), about: about.join(" ") });
            about.clear();
        } else {
            about.clear();
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;

    #[test]
    fn values_are_found_with_their_comments() {
        let values = "# The file.\n\n# A name\n# in two lines.\nname: a\n\n# A group.\ngroup:\n  # In it.\n  deep: {}\n  part:\n    \
                      # At the end.\n    last: []\n# Long.\nlist:\n  - key: b\n    effect: c\n# Map.\nmap:\n  x: y\n";
        let found: Vec<_> = rows(values).into_iter().map(|row| (row.path, row.about, row.default)).collect();
        let row = |path: &str, about: &str, default| (path.to_owned(), about.to_owned(), default);
        let is = |text: &str| Preset::Is(text.to_owned());
        let want = [
            row("name", "A name in two lines.", is("a")),
            row("group", "A group.", Preset::Group),
            row("group.deep", "In it.", is("{}")),
            row("group.part.last", "At the end.", is("[]")),
            row("list", "Long.", Preset::Long),
            row("map", "Map.", Preset::Long),
        ];
        assert_eq!(found, want);
    }

    #[test]
    fn a_value_is_known_by_its_whole_name() {
        for path in ["clouds.cloudscale.enabled", "clouds.binarylane.config.region", "extraArgs[0]", "kind"] {
            assert!(is_one(path), "{path}");
        }
        for path in ["clouds.cloudscale", "clouds.cloudscale.enable", "metrics", "kinds", ""] {
            assert!(!is_one(path), "{path}");
        }
    }

    /// The paths of a schema that have no further properties below them.
    fn leaves(schema: &Value, path: &str, found: &mut BTreeSet<String>) {
        let Some(properties) = schema["properties"].as_object() else {
            found.insert(path.to_owned());
            return;
        };
        assert_eq!(schema["additionalProperties"], false, "{path} takes anything");
        for (name, below) in properties {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            leaves(below, &path, found);
        }
    }

    #[test]
    fn the_schema_knows_the_values_that_there_are_and_no_others() {
        let schema = include_str!("../../../charts/cloudberth/values.schema.json");
        let schema: Value = serde_json::from_str(schema).unwrap();
        let mut known = BTreeSet::new();
        leaves(&schema, "", &mut known);
        // Helm gives it to every chart that is a part of another.
        assert!(known.remove("global"));
        let documented: Vec<String> =
            rows(VALUES).into_iter().filter(|row| row.default != Preset::Group).map(|row| row.path).collect();
        for path in &known {
            let covered = |row: &String| path == row || path.starts_with(&format!("{row}."));
            assert!(
                documented.iter().any(covered),
                "{path} is in the schema and has no comment in values.yaml"
            );
        }
        for path in &documented {
            let covered = |leaf: &String| leaf == path || leaf.starts_with(&format!("{path}."));
            assert!(known.iter().any(covered), "{path} is in values.yaml and not in the schema");
        }
    }
}
