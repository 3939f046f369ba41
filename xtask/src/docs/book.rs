//! The pages of `docs/` as a book: what `docs/README.md` lists, in its order and its four kinds.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::links;
use crate::Result;
use crate::workspace::Workspace;

pub(crate) const HOME: &str = "docs/README.md";
/// Where that page is in the book.
pub(crate) const FIRST: &str = "index.md";

/// The four kinds: the word that begins a list of the home page, and the folder of its pages.
const KINDS: [(&str, &str); 4] = [
    ("Tutorials", "docs/tutorials/"),
    ("Guides", "docs/how-to/"),
    ("Reference", "docs/reference/"),
    ("Explanation", "docs/explanation/"),
];

/// A page that the home page links to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) kind: &'static str,
    /// Relative to the root.
    pub(crate) file: String,
}

/// The pages in the order of the home page, each as often as it is linked there.
pub(crate) fn entries(home: &str) -> Vec<Entry> {
    let mut kind = None;
    let mut found = Vec::new();
    let mut lines = Vec::new();
    for line in home.lines() {
        if let Some(rest) = line.strip_prefix("- **") {
            kind = KINDS.iter().find(|(word, _)| rest.starts_with(word)).map(|(word, _)| *word);
        }
        lines.push(kind);
    }
    for link in links::to_files(home) {
        let kind = lines.get(link.line - 1).copied().flatten();
        let file = links::resolve(HOME, &link.target);
        if let (Some(kind), Some(file)) = (kind, file.filter(|file| file.starts_with("docs/"))) {
            found.push(Entry { kind, file });
        }
    }
    found
}

/// Pages that the home page does not list exactly once, under the kind whose folder they are in.
pub(super) fn problems(workspace: &Workspace) -> Result<Vec<String>> {
    let pages = pages(workspace)?;
    if pages.is_empty() {
        return Ok(Vec::new());
    }
    let listed = entries(&workspace.read(HOME)?);
    let mut problems = Vec::new();
    for page in &pages {
        let kinds: Vec<&str> =
            listed.iter().filter(|entry| entry.file == *page).map(|entry| entry.kind).collect();
        let home = KINDS.iter().find(|(_, folder)| page.starts_with(folder)).map(|(kind, _)| *kind);
        match (kinds.as_slice(), home) {
            (_, None) => problems.push(format!("{page}: is in none of the folders of the four kinds")),
            ([one], Some(kind)) if *one == kind => {}
            ([], Some(kind)) => {
                problems.push(format!("{page}: {HOME} does not list it; it belongs to {kind}"));
            }
            (kinds, Some(kind)) => {
                let under = kinds.join(" and ");
                problems.push(format!("{page}: {HOME} lists it under {under}; once under {kind} is right"));
            }
        }
    }
    Ok(problems)
}

/// All pages but the home page.
fn pages(workspace: &Workspace) -> Result<Vec<String>> {
    let files = workspace.files("md")?;
    Ok(files.into_iter().filter(|file| file.starts_with("docs/") && file != HOME).collect())
}

/// mdBook's `SUMMARY.md`. `titles` has the first heading of each page, by its file; `more` are pages of the project that are
/// not in `docs/`, with where they are in the book.
pub(crate) fn summary(home: &str, titles: &BTreeMap<String, String>, more: &[(String, String)]) -> String {
    let mut text = format!("# Summary\n\n[cloudberth]({FIRST})\n");
    let listed = entries(home);
    for (kind, _) in KINDS {
        let _ = write!(text, "\n# {kind}\n\n");
        for entry in listed.iter().filter(|entry| entry.kind == kind) {
            let title = titles.get(&entry.file).map_or(entry.file.as_str(), String::as_str);
            let _ = writeln!(text, "- [{title}]({})", entry.file.trim_start_matches("docs/"));
        }
    }
    if !more.is_empty() {
        text.push_str("\n# Project\n\n");
        for (title, place) in more {
            let _ = writeln!(text, "- [{title}]({place})");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Sample;

    const LISTING: &str = "# Documentation\n\n- **Tutorials**, to learn: [one](tutorials/one.md);\n  [two](tutorials/two.md).\n\
                           - **Guides**: [contributing](../CONTRIBUTING.md), [do](how-to/do.md).\n- **Reference**: the\n  [flags](reference/flags.md#all).\n";

    #[test]
    fn every_page_is_listed_once_under_its_kind() {
        let pages = [
            (HOME, LISTING),
            ("docs/tutorials/one.md", ""),
            ("docs/tutorials/two.md", ""),
            ("docs/how-to/do.md", ""),
            ("docs/reference/flags.md", ""),
        ];
        let sample = Sample::new("book good", &pages);
        assert_eq!(problems(&sample.workspace), Ok(vec![]));
        let more = [
            (
                HOME,
                "- **Tutorials** [one](tutorials/one.md) [do](how-to/do.md)\n- **Guides** [do](how-to/do.md)\n",
            ),
            ("docs/tutorials/one.md", ""),
            ("docs/how-to/do.md", ""),
            ("docs/how-to/lost.md", ""),
            ("docs/stray.md", ""),
        ];
        let sample = Sample::new("book bad", &more);
        let want = [
            "docs/how-to/do.md: docs/README.md lists it under Tutorials and Guides; once under Guides is right",
            "docs/how-to/lost.md: docs/README.md does not list it; it belongs to Guides",
            "docs/stray.md: is in none of the folders of the four kinds",
        ];
        assert_eq!(problems(&sample.workspace).unwrap(), want);
    }

    #[test]
    fn the_summary_keeps_the_order_of_the_home_page() {
        let titles = BTreeMap::from([
            ("docs/tutorials/one.md".to_owned(), "One".to_owned()),
            ("docs/how-to/do.md".to_owned(), "Do it".to_owned()),
        ]);
        let more = [("Changelog".to_owned(), "project/changelog.md".to_owned())];
        let want = "# Summary\n\n[cloudberth](index.md)\n\n# Tutorials\n\n- [One](tutorials/one.md)\n\
                    - [docs/tutorials/two.md](tutorials/two.md)\n\n# Guides\n\n- [Do it](how-to/do.md)\n\n# Reference\n\n\
                    - [docs/reference/flags.md](reference/flags.md)\n\n# Explanation\n\n\n# Project\n\n\
                    - [Changelog](project/changelog.md)\n";
        assert_eq!(summary(LISTING, &titles, &more), want);
    }
}
