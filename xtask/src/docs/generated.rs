//! Text that is written from the code: which file, and which part of it.

use std::fmt::Write;
use std::process::Command;

use serde::Deserialize;

use crate::stages::STAGES;
use crate::workspace::Workspace;
use crate::{Result, built, chart, monitoring};

/// A document, or a marked part of one, that is written from the code.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub(crate) struct Generated {
    pub(crate) file: String,
    part: Part,
    text: String,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub(crate) enum Part {
    /// Between `<!-- NAME:begin -->` and `<!-- NAME:end -->`; the rest of the file is written by people.
    Region(String),
    /// All of it.
    Whole,
}

/// What can be written without the program, and all that `examples/reference` writes from it.
pub(crate) fn generated(workspace: &Workspace) -> Result<Vec<Generated>> {
    let document = |file: &str, part, text| Generated { file: file.to_owned(), part, text };
    let rules = workspace.read(monitoring::RULES)?;
    let mut all = vec![
        document("CONTRIBUTING.md", Part::Region("stages".to_owned()), stages()),
        document("docs/reference/chart-values.md", Part::Whole, chart::values::markdown()),
        document("deploy/monitoring/prometheusrule.yaml", Part::Whole, monitoring::as_object(&rules)),
    ];
    all.extend(reference(workspace)?);
    Ok(all)
}

fn reference(workspace: &Workspace) -> Result<Vec<Generated>> {
    let program = built::example(workspace, "reference")?;
    let ran = Command::new(&program).output().map_err(|why| format!("{}: {why}", program.display()))?;
    if !ran.status.success() {
        return Err(format!("{}: {}", program.display(), String::from_utf8_lossy(&ran.stderr)));
    }
    serde_json::from_slice(&ran.stdout).map_err(|why| format!("{}: {why}", program.display()))
}

impl Generated {
    /// The file as it should be, given what it is now.
    pub(crate) fn apply(&self, old: &str) -> Result<String> {
        let text = self.text.trim_end();
        match &self.part {
            Part::Whole => Ok(format!("{text}\n")),
            Part::Region(name) => replace_region(old, name, text)
                .ok_or_else(|| format!("{}: lacks <!-- {name}:begin --> and <!-- {name}:end -->", self.file)),
        }
    }
}

pub(super) fn replace_region(old: &str, name: &str, text: &str) -> Option<String> {
    let (begin, end) = (format!("<!-- {name}:begin -->"), format!("<!-- {name}:end -->"));
    let (before, rest) = old.split_once(&begin)?;
    let (_, after) = rest.split_once(&end)?;
    Some(format!("{before}{begin}\n{text}\n{end}{after}"))
}

fn stages() -> String {
    let mut text = String::from("| stage | checks that | alone |\n|---|---|---|\n");
    for stage in STAGES {
        let _ = writeln!(
            text,
            "| {name} | {checks} | `cargo xtask test --only {name}` |",
            name = stage.name,
            checks = stage.checks
        );
    }
    text
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn document(file: &str, part: Part) -> Generated {
        Generated { file: file.to_owned(), part, text: "new\ntext\n\n".to_owned() }
    }

    fn region() -> Generated {
        document("a.md", Part::Region("x".to_owned()))
    }

    #[test]
    fn only_the_region_changes_and_a_second_time_nothing_does() {
        let old = "# Title\n<!-- x:begin -->\nold\n<!-- x:end -->\nlast\n";
        let new = region().apply(old).unwrap();
        assert_eq!(new, "# Title\n<!-- x:begin -->\nnew\ntext\n<!-- x:end -->\nlast\n");
        assert_eq!(region().apply(&new).unwrap(), new);
    }

    #[test]
    fn a_whole_file_is_replaced() {
        assert_eq!(document("a.md", Part::Whole).apply("anything").unwrap(), "new\ntext\n");
    }

    #[test]
    fn a_file_without_the_marks_is_not_touched_but_named() {
        for old in
            ["", "<!-- x:begin -->", "<!-- x:end --> <!-- x:begin -->", "<!-- y:begin --> <!-- y:end -->"]
        {
            let why = region().apply(old).unwrap_err();
            assert!(why.contains("a.md") && why.contains("x:begin"), "{why}");
        }
    }

    #[test]
    fn what_the_reference_prints_is_understood() {
        let printed = r#"[{"file":"a.md","part":{"Region":"x"},"text":"new\ntext\n\n"},{"file":"b.md","part":"Whole","text":"new\ntext\n\n"}]"#;
        let read: Vec<Generated> = serde_json::from_str(printed).unwrap();
        assert_eq!(read, [region(), document("b.md", Part::Whole)]);
    }

    #[test]
    fn every_stage_has_a_row() {
        let text = stages();
        assert_eq!(text.lines().count(), 2 + STAGES.len());
        assert!(text.contains("| format |") && text.contains("`cargo xtask test --only unit`"));
    }
}
