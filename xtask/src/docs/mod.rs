//! `cargo xtask docs`: documents that are written from the code, so that they cannot lie, and the check that
//! links between files resolve.

mod generated;
mod ladder;
mod links;

use std::fs;

use lexopt::prelude::*;

use crate::workspace::Workspace;
use crate::{Result, Verdict};
use generated::generated;

pub(crate) fn command(workspace: &Workspace, mut args: lexopt::Parser) -> Result<Verdict> {
    let mut check = false;
    while let Some(arg) = args.next().map_err(|why| why.to_string())? {
        match arg {
            Long("check") => check = true,
            other => return Err(other.unexpected().to_string()),
        }
    }
    if check {
        let problems = problems(workspace)?;
        for problem in &problems {
            println!("{problem}");
        }
        return Ok(if problems.is_empty() { Verdict::Good } else { Verdict::Bad });
    }
    for document in generated() {
        let old = workspace.read(&document.file).unwrap_or_default();
        let new = document.apply(&old)?;
        if new != old {
            let path = workspace.path(&document.file);
            fs::write(&path, new).map_err(|why| format!("{}: {why}", path.display()))?;
            println!("wrote {}", document.file);
        }
    }
    ladder::write(workspace)?;
    Ok(Verdict::Good)
}

/// What is wrong, one line each: generated text that is out of date, crates that break the ladder, links that lead
/// nowhere.
pub(crate) fn problems(workspace: &Workspace) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for document in generated() {
        let old = workspace.read(&document.file).unwrap_or_default();
        if document.apply(&old)? != old {
            problems.push(format!("{}: out of date; run `cargo xtask docs`", document.file));
        }
    }
    problems.extend(ladder::problems(workspace)?);
    for file in workspace.files("md")? {
        let text = workspace.read(&file)?;
        for link in links::to_files(&text) {
            let target = links::resolve(&file, &link.target);
            if target.as_ref().is_none_or(|target| !workspace.path(target).exists()) {
                problems.push(format!("{file}:{}: {} leads nowhere", link.line, link.target));
            }
        }
    }
    Ok(problems)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Sample;

    const REGION: &str = "<!-- stages:begin -->\n<!-- stages:end -->\n<!-- ladder:begin -->\n\
                          | crate | folder | holds | uses |\n|---|---|---|---|\n<!-- ladder:end -->\n";
    const NO_CRATES: (&str, &str) = ("Cargo.toml", "[workspace]\nmembers = []\nresolver = \"3\"\n");

    /// These pages, and all others that something is written to, as they are before.
    fn sample(name: &str, pages: &[(&str, &str)]) -> Sample {
        let mut blank = std::collections::BTreeMap::<String, String>::new();
        for document in generated() {
            let part = document.blank();
            let given = pages.iter().any(|(file, _)| *file == document.file);
            if !given && !part.is_empty() {
                blank.entry(document.file).or_default().push_str(&part);
            }
        }
        let blank = blank.iter().map(|(file, text)| (file.as_str(), text.as_str()));
        Sample::new(name, &pages.iter().copied().chain(blank).collect::<Vec<_>>())
    }

    #[test]
    fn stale_text_is_found_then_written_then_gone() {
        let sample =
            sample("stale docs", &[("CONTRIBUTING.md", REGION), ("docs/reference/errors.md", ""), NO_CRATES]);
        let stale = problems(&sample.workspace).unwrap();
        let want: Vec<_> = generated()
            .iter()
            .map(|document| format!("{}: out of date; run `cargo xtask docs`", document.file))
            .collect();
        assert_eq!(stale, want);
        let check = command(&sample.workspace, lexopt::Parser::from_args(["--check"])).unwrap();
        assert_eq!(check, Verdict::Bad);
        assert_eq!(sample.workspace.read("CONTRIBUTING.md").unwrap(), REGION);
        assert_eq!(command(&sample.workspace, lexopt::Parser::from_args([""; 0])).unwrap(), Verdict::Good);
        assert_eq!(problems(&sample.workspace).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn links_that_lead_nowhere_are_found_with_their_line() {
        let pages = [
            ("CONTRIBUTING.md", REGION),
            ("docs/reference/errors.md", ""),
            NO_CRATES,
            ("docs/a.md", "[there](b.md)\n[up](../CONTRIBUTING.md)\n[gone](c.md)\n[out](../../d.md)\n"),
            ("docs/b.md", ""),
        ];
        let sample = sample("links", &pages);
        command(&sample.workspace, lexopt::Parser::from_args([""; 0])).unwrap();
        let want = ["docs/a.md:3: c.md leads nowhere", "docs/a.md:4: ../../d.md leads nowhere"];
        assert_eq!(problems(&sample.workspace).unwrap(), want);
    }
}
