//! `cargo xtask docs`: documents that are written from the code, so that they cannot lie, and the check that
//! links between files resolve.

pub(crate) mod book;
mod commands;
mod generated;
mod ladder;
pub(crate) mod links;

use std::fs;

use lexopt::prelude::*;

use crate::workspace::{Workspace, has_extension};
use crate::{Result, Verdict};
use generated::{Generated, generated};
use links::Link;

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
    write(workspace, &generated(workspace)?)?;
    Ok(Verdict::Good)
}

fn write(workspace: &Workspace, documents: &[Generated]) -> Result<()> {
    for document in documents {
        let old = workspace.read(&document.file).unwrap_or_default();
        let new = document.apply(&old)?;
        if new != old {
            let path = workspace.path(&document.file);
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder).map_err(|why| format!("{}: {why}", folder.display()))?;
            }
            fs::write(&path, new).map_err(|why| format!("{}: {why}", path.display()))?;
            println!("wrote {}", document.file);
        }
    }
    ladder::write(workspace)
}

/// What is wrong, one line each: generated text that is out of date, crates that break the ladder, links that lead
/// nowhere.
pub(crate) fn problems(workspace: &Workspace) -> Result<Vec<String>> {
    check(workspace, &generated(workspace)?)
}

fn check(workspace: &Workspace, documents: &[Generated]) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for document in documents {
        let old = workspace.read(&document.file).unwrap_or_default();
        if document.apply(&old)? != old {
            problems.push(format!("{}: out of date; run `cargo xtask docs`", document.file));
        }
    }
    problems.extend(ladder::problems(workspace)?);
    for file in workspace.files("md")? {
        let text = workspace.read(&file)?;
        for link in links::all(&text) {
            if let Some(why) = leads_nowhere(workspace, &file, &text, &link) {
                problems.push(format!("{file}:{}: {why}", link.line));
            }
        }
    }
    problems.extend(book::problems(workspace)?);
    problems.extend(commands::problems(workspace)?);
    Ok(problems)
}

/// What is wrong with a link of a document, if anything is.
fn leads_nowhere(workspace: &Workspace, file: &str, text: &str, link: &Link) -> Option<String> {
    let Link { target, place, .. } = link;
    let found = if target.is_empty() { Some(file.to_owned()) } else { links::resolve(file, target) };
    let Some(found) = found.filter(|found| workspace.path(found).exists()) else {
        return Some(format!("{target} leads nowhere"));
    };
    let place = place.as_ref().filter(|_| has_extension(&found, "md"))?;
    let other = if found == file { None } else { workspace.read(&found).ok() };
    let places = links::places(other.as_deref().unwrap_or(text));
    (!places.contains(place)).then(|| format!("{target}#{place} leads nowhere: {found} has no such heading"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::docs::generated::{Part, tests::document};
    use crate::workspace::Sample;

    const REGION: &str = "<!-- x:begin -->\n<!-- x:end -->\n<!-- ladder:begin -->\n\
                          | crate | folder | holds | uses |\n|---|---|---|---|\n<!-- ladder:end -->\n";
    const HOME: (&str, &str) = ("docs/README.md", "- **Reference** [new](reference/new.md)\n");
    const NO_CRATES: (&str, &str) = ("Cargo.toml", "[workspace]\nmembers = []\nresolver = \"3\"\n");

    fn documents() -> [Generated; 2] {
        [
            document("CONTRIBUTING.md", Part::Region("x".to_owned())),
            document("docs/reference/new.md", Part::Whole),
        ]
    }

    #[test]
    fn stale_text_is_found_then_written_then_gone() {
        let sample = Sample::new(
            "stale docs",
            &[("CONTRIBUTING.md", REGION), ("docs/reference/new.md", "old"), HOME, NO_CRATES],
        );
        let stale = check(&sample.workspace, &documents()).unwrap();
        let want = ["CONTRIBUTING.md", "docs/reference/new.md"]
            .map(|file| format!("{file}: out of date; run `cargo xtask docs`"));
        assert_eq!(stale, want);
        assert_eq!(sample.workspace.read("CONTRIBUTING.md").unwrap(), REGION);
        write(&sample.workspace, &documents()).unwrap();
        assert_eq!(sample.workspace.read("docs/reference/new.md").unwrap(), "new\ntext\n");
        assert_eq!(check(&sample.workspace, &documents()).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn our_own_documents_are_in_order() {
        assert_eq!(check(&Workspace::find().unwrap(), &[]).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn links_that_lead_nowhere_are_found_with_their_line() {
        let pages = [
            ("CONTRIBUTING.md", REGION),
            NO_CRATES,
            ("docs/README.md", "- **Guides** [a](how-to/a.md) [b](how-to/b.md#one)\n"),
            (
                "docs/how-to/a.md",
                "[there](b.md)\n[up](../../CONTRIBUTING.md)\n[gone](c.md)\n[out](../../../d.md)\n[two](b.md#two)\n[me](#me)\n## Me\n",
            ),
            ("docs/how-to/b.md", "# One\n"),
        ];
        let sample = Sample::new("links", &pages);
        let want = [
            "docs/how-to/a.md:3: c.md leads nowhere",
            "docs/how-to/a.md:4: ../../../d.md leads nowhere",
            "docs/how-to/a.md:5: b.md#two leads nowhere: docs/how-to/b.md has no such heading",
        ];
        assert_eq!(check(&sample.workspace, &[]).unwrap(), want);
    }
}
