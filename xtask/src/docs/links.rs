//! Links in Markdown that point at files of the repository.

/// A link to a file, as written, without its `#` part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) target: String,
    pub(crate) line: usize,
}

/// The links of a document that point at files: `[a](b.md)` and `[a]: b.md`, outside of code.
pub(crate) fn to_files(text: &str) -> Vec<Link> {
    let mut found = Vec::new();
    let mut fence: Option<&str> = None;
    for (at, line) in text.lines().enumerate() {
        let start = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| start.starts_with(mark));
        match (fence, mark) {
            (Some(open), Some(mark)) if open == mark => fence = None,
            (None, Some(mark)) => fence = Some(mark),
            (Some(_), _) => {}
            (None, None) => {
                let targets = targets(&without_code(line));
                found.extend(targets.into_iter().map(|target| Link { target, line: at + 1 }));
            }
        }
    }
    found
}

/// The line with everything between back quotes left out.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join(" ")
}

fn targets(line: &str) -> Vec<String> {
    let inline = line.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
    let defined = line.strip_prefix('[').and_then(|rest| rest.split_once("]: ")).map(|(_, target)| target);
    inline.chain(defined).filter_map(file_of).collect()
}

/// The file that a target names; `None` for other sites and for places in the same document.
fn file_of(target: &str) -> Option<String> {
    let target = target.split_whitespace().next()?.trim_start_matches('<').trim_end_matches('>');
    let file = target.split('#').next()?;
    let elsewhere = file.contains("://") || file.starts_with("mailto:");
    (!file.is_empty() && !elsewhere).then(|| file.to_owned())
}

/// The target relative to the root, for a link in `document`; `None` when it leaves the repository.
pub(crate) fn resolve(document: &str, target: &str) -> Option<String> {
    let folder = document.rsplit_once('/').map_or("", |(folder, _)| folder);
    let start = if target.starts_with('/') { "" } else { folder };
    let mut parts: Vec<&str> = Vec::new();
    for part in start.split('/').chain(target.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_files_are_found_and_others_are_not() {
        let table: &[(&str, &[&str])] = &[
            ("see [a](docs/a.md) and [b](../b.md#part \"title\")", &["docs/a.md", "../b.md"]),
            ("![picture](a.png)", &["a.png"]),
            ("[a]: <docs/a.md>", &["docs/a.md"]),
            ("[a](https://example.com/a.md) [b](mailto:a@example.com) [c](#part)", &[]),
            ("`[a](b.md)` is how, [c](d.md) is what", &["d.md"]),
            ("[a]() [b](", &[]),
        ];
        for (line, want) in table {
            let got: Vec<_> = to_files(line).into_iter().map(|link| link.target).collect();
            assert_eq!(got, *want, "{line}");
        }
    }

    #[test]
    fn code_blocks_hold_no_links() {
        let text = "[a](a.md)\n```\n[b](b.md)\n~~~\n[c](c.md)\n```\n[d](d.md)\n";
        let got: Vec<_> = to_files(text).into_iter().map(|link| (link.target, link.line)).collect();
        assert_eq!(got, [("a.md".to_owned(), 1), ("d.md".to_owned(), 7)]);
    }

    #[test]
    fn targets_are_relative_to_their_document() {
        let table = [
            ("README.md", "docs/a.md", Some("docs/a.md")),
            ("docs/README.md", "a.md", Some("docs/a.md")),
            ("docs/a/b.md", "../c.md", Some("docs/c.md")),
            ("docs/a/b.md", "/LICENSE", Some("LICENSE")),
            ("docs/a.md", "./", Some("docs")),
            ("README.md", "../outside.md", None),
        ];
        for (document, target, want) in table {
            assert_eq!(resolve(document, target).as_deref(), want, "{document} {target}");
        }
    }
}
