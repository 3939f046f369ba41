//! Links in Markdown that point at files of the repository.

use std::fmt::Write;

/// A link within the repository, as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    /// The file; empty for a place in the same document.
    pub(crate) target: String,
    /// What is behind the `#`.
    pub(crate) place: Option<String>,
    pub(crate) line: usize,
}

/// The links of a document that point at files: `[a](b.md)` and `[a]: b.md`, outside of code.
pub(crate) fn to_files(text: &str) -> Vec<Link> {
    all(text).into_iter().filter(|link| !link.target.is_empty()).collect()
}

/// The same, and those to places in the same document.
pub(crate) fn all(text: &str) -> Vec<Link> {
    let mut found = Vec::new();
    for (at, line) in prose(text) {
        let links = targets(&without_code(line)).into_iter();
        found.extend(links.map(|(target, place)| Link { target, place, line: at + 1 }));
    }
    found
}

/// The lines outside of code blocks, counted from 0.
fn prose(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut fence: Option<&str> = None;
    for (at, line) in text.lines().enumerate() {
        let start = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| start.starts_with(mark));
        match (fence, mark) {
            (Some(open), Some(mark)) if open == mark => fence = None,
            (None, Some(mark)) => fence = Some(mark),
            (Some(_), _) => {}
            (None, None) => found.push((at, line)),
        }
    }
    found
}

/// The line with everything between back quotes left out.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join(" ")
}

fn targets(line: &str) -> Vec<(String, Option<String>)> {
    let inline = line.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
    let defined = line.strip_prefix('[').and_then(|rest| rest.split_once("]: ")).map(|(_, target)| target);
    inline.chain(defined).filter_map(parts).collect()
}

/// File and place of a target; `None` for other sites.
fn parts(target: &str) -> Option<(String, Option<String>)> {
    let target = target.split_whitespace().next()?.trim_start_matches('<').trim_end_matches('>');
    let (file, place) = target.split_once('#').map_or((target, None), |(file, place)| (file, Some(place)));
    let elsewhere = file.contains("://") || file.starts_with("mailto:");
    let empty = file.is_empty() && place.is_none();
    (!empty && !elsewhere).then(|| (file.to_owned(), place.map(str::to_owned)))
}

/// The text with each target outside of code replaced by what `change` makes of it.
pub(crate) fn relink(text: &str, change: &dyn Fn(&str) -> String) -> String {
    let prose: std::collections::BTreeSet<usize> = prose(text).into_iter().map(|(at, _)| at).collect();
    let mut out = String::new();
    for (at, line) in text.lines().enumerate() {
        if prose.contains(&at) {
            relink_line(line, change, &mut out);
        } else {
            out.push_str(line);
        }
        out.push('\n');
    }
    out
}

fn relink_line(line: &str, change: &dyn Fn(&str) -> String, out: &mut String) {
    if let Some((name, target)) = line.strip_prefix('[').and_then(|rest| rest.split_once("]: ")) {
        let _ = write!(out, "[{name}]: {}", change(target));
        return;
    }
    // Within back quotes nothing is a link, but a link's text may have some.
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("](") {
        out.push_str(before);
        out.push_str("](");
        rest = after;
        let in_code = line.get(..line.len() - rest.len()).unwrap_or_default().matches('`').count() % 2 == 1;
        if let Some((target, after)) = after.split_once(')').filter(|_| !in_code) {
            out.push_str(&change(target));
            rest = after;
            out.push(')');
        }
    }
    out.push_str(rest);
}

/// The first heading of a page.
pub(crate) fn title(text: &str) -> Option<String> {
    prose(text).into_iter().find_map(|(_, line)| line.strip_prefix("# ")).map(|title| title.trim().to_owned())
}

/// The places of a document that a link can name: its headings, as GitHub and mdBook call them.
pub(crate) fn places(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for (_, line) in prose(text) {
        let heading = line.trim_start_matches('#');
        let level = line.len() - heading.len();
        if !(1..=6).contains(&level) || !heading.starts_with(' ') {
            continue;
        }
        let name = slug(heading.trim());
        let same = found.iter().filter(|known| {
            **known == name
                || known.rsplit_once('-').is_some_and(|(stem, n)| stem == name && n.parse::<u32>().is_ok())
        });
        let same = same.count();
        found.push(if same == 0 { name } else { format!("{name}-{same}") });
    }
    found
}

fn slug(heading: &str) -> String {
    // Of a link, the text is what is seen.
    let mut seen = String::new();
    let mut rest = heading;
    while let Some((before, after)) = rest.split_once("](") {
        seen.push_str(before);
        rest = after.split_once(')').map_or("", |(_, after)| after);
    }
    seen.push_str(rest);
    let kept = seen.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).flat_map(char::to_lowercase).collect()
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
    fn a_link_may_name_a_place() {
        let found = all("[a](b.md#one) [c](#two)\n");
        let want = [("b.md", Some("one")), ("", Some("two"))];
        let got: Vec<_> = found.iter().map(|link| (link.target.as_str(), link.place.as_deref())).collect();
        assert_eq!(got, want);
    }

    #[test]
    fn places_are_called_as_a_reader_finds_them() {
        let text = "# The `a` of [b](c.md), now!\n```sh\n# no heading\n```\n## Law 1: unknown\n## Same\n### Same\n#no\n";
        assert_eq!(places(text), ["the-a-of-b-now", "law-1-unknown", "same", "same-1"]);
        assert_eq!(title(text).as_deref(), Some("The `a` of [b](c.md), now!"));
    }

    #[test]
    fn targets_are_replaced_outside_of_code_only() {
        let text = "[a](x.md) `[b](x.md)` [`c`](y.md#z)\n```\n[d](x.md)\n```\n[e]: x.md\n";
        let want = "[a](<x.md>) `[b](x.md)` [`c`](<y.md#z>)\n```\n[d](x.md)\n```\n[e]: <x.md>\n";
        assert_eq!(relink(text, &|target| format!("<{target}>")), want);
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
