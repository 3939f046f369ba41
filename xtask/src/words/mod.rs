//! `cargo xtask words`: one noun for one thing. Lists where a retired word is still used.

mod scan;
mod table;

use std::collections::BTreeMap;

use crate::workspace::Workspace;
use crate::{Result, Verdict};
use table::{RETIRED, Retired};

/// Files that may name retired words: this program, and the record of what changed.
const MAY_NAME_THEM: &[&str] = &["xtask/", "CHANGELOG.md"];

pub(crate) fn command(workspace: &Workspace, mut args: lexopt::Parser) -> Result<Verdict> {
    if let Some(arg) = args.next().map_err(|why| why.to_string())? {
        return Err(arg.unexpected().to_string());
    }
    let problems = problems(workspace)?;
    for problem in &problems {
        println!("{problem}");
    }
    println!("{} retired words in use", problems.len());
    Ok(if problems.is_empty() { Verdict::Good } else { Verdict::Bad })
}

/// The retired words in use, one line each: the word, its replacement and every place.
pub(crate) fn problems(workspace: &Workspace) -> Result<Vec<String>> {
    Ok(places(workspace, RETIRED)?
        .into_iter()
        .map(|((word, now), places)| format!("{word}: say {now}: {}", places.join(" ")))
        .collect())
}

type Places = BTreeMap<(&'static str, &'static str), Vec<String>>;

fn places(workspace: &Workspace, table: &[Retired]) -> Result<Places> {
    let mut found = Places::new();
    for extension in ["md", "rs"] {
        for path in workspace.files(extension)? {
            if MAY_NAME_THEM.iter().any(|prefix| path.starts_with(prefix)) {
                continue;
            }
            for (line, word, now) in scan::retired(&path, &workspace.read(&path)?, table) {
                found.entry((word, now)).or_default().push(format!("{path}:{line}"));
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Sample;

    #[test]
    fn every_place_is_named_and_some_files_may_name_retired_words() {
        let files = [
            ("crates/a/src/lib.rs", "/// The herald.\nstruct Herald;\n"),
            ("docs/a.md", "A clean page.\n"),
            ("xtask/src/words.rs", "struct Herald;\n"),
            ("CHANGELOG.md", "Herald is EventRecorder now.\n"),
        ];
        let sample = Sample::new("words", &files);
        let want = ["Herald: say EventRecorder: crates/a/src/lib.rs:1 crates/a/src/lib.rs:2"];
        assert_eq!(problems(&sample.workspace).unwrap(), want);
        let run = |sample: &Sample| command(&sample.workspace, lexopt::Parser::from_args([""; 0])).unwrap();
        assert_eq!(run(&sample), Verdict::Bad);
        assert_eq!(run(&Sample::new("good words", &files[1..])), Verdict::Good);
    }

    #[test]
    fn a_word_is_retired_once_for_one_place() {
        for (at, row) in RETIRED.iter().enumerate() {
            assert!(!row.words.is_empty() && !row.now.is_empty());
            for other in &RETIRED[..at] {
                let same = row.words.iter().any(|word| other.words.contains(word));
                assert!(!same || row.only != other.only, "{:?}", row.words);
            }
        }
    }
}
