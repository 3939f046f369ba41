//! Which case numbers the tests of a file carry.
//!
//! A number counts only where a test would show it when it fails: in a string or in the name of a function,
//! in test code. In a comment it is a mention; it must exist, but it proves nothing.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::lexer::{Kind, Language, Token, lex};

/// A case number somewhere in a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mention {
    pub(crate) prefix: String,
    pub(crate) number: u32,
    pub(crate) line: u32,
    /// It is where it counts: in test code, in a string or a function's name.
    pub(crate) carried: bool,
}

/// How much of a file is test code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Whole,
    /// Only items marked `#[cfg(test)]`.
    Marked,
    Nothing,
}

/// The scope that follows from a file's path, relative to the root.
/// `test_modules` are the paths that [`test_modules`] found in other files.
pub(crate) fn scope(path: &str, test_modules: &BTreeSet<String>) -> Scope {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    if let Some(stem) = name.strip_suffix(".go") {
        return if stem.ends_with("_test") { Scope::Whole } else { Scope::Nothing };
    }
    let is_test_module = |module: &String| path.strip_prefix(module.as_str()).is_some_and(is_module_file);
    let whole = name == "tests.rs"
        || folder.split('/').any(|part| part == "tests")
        || test_modules.iter().any(is_test_module);
    if whole { Scope::Whole } else { Scope::Marked }
}

fn is_module_file(after_module: &str) -> bool {
    matches!(after_module, "" | ".rs") || after_module.starts_with('/')
}

/// The modules that a file declares for tests only and keeps in other files: each as the path without its
/// ending (`src/node/cases` for `src/node/cases.rs` and all below `src/node/cases/`).
pub(crate) fn test_modules(path: &str, source: &str) -> Vec<String> {
    let tokens = code(source, Language::Rust);
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    let stem = file.trim_end_matches(".rs");
    let inside = if matches!(stem, "mod" | "lib" | "main") { String::new() } else { format!("/{stem}") };
    let mut found = Vec::new();
    for (_, item) in marked_items(&tokens) {
        let words: Vec<_> = item.iter().map(|token| token.text).collect();
        match words.as_slice() {
            ["mod", name, ";"] => found.push(format!("{folder}{inside}/{name}")),
            ["#", "[", "path", "=", file, "]", "mod", _, ";"] => {
                found.push(format!("{folder}/{}", file.trim_matches('"').trim_end_matches(".rs")));
            }
            _ => {}
        }
    }
    found
}

/// Every mention of a case of the lists `prefixes` in a file, in order of place.
pub(crate) fn mentions(source: &str, language: Language, scope: Scope, prefixes: &[&str]) -> Vec<Mention> {
    let code = code(source, language);
    let ranges: Vec<Range<usize>> = match scope {
        Scope::Whole => std::iter::once(0..code.len()).collect(),
        Scope::Marked => marked_items(&code).into_iter().map(|(range, _)| range).collect(),
        Scope::Nothing => Vec::new(),
    };
    let mut found = Vec::new();
    let mut report = |token: &Token<'_>, ids: Vec<(&str, u32)>, carried| {
        found.extend(ids.into_iter().map(|(prefix, number)| Mention {
            prefix: prefix.to_owned(),
            number,
            line: token.line,
            carried,
        }));
    };
    for (at, token) in code.iter().enumerate() {
        let carried = ranges.iter().any(|range| range.contains(&at));
        let before = at.checked_sub(1).and_then(|at| code.get(at));
        match token.kind {
            Kind::Text => report(token, ids(token.text, prefixes), carried),
            Kind::Word if before.is_some_and(|word| word.is_word("fn") || word.is_word("func")) => {
                report(token, name_ids(token.text, prefixes), carried);
            }
            _ => {}
        }
    }
    for token in lex(source, language).iter().filter(|token| token.kind == Kind::Comment) {
        report(token, ids(token.text, prefixes), false);
    }
    found.sort_by_key(|mention| mention.line);
    found
}

pub(super) fn code(source: &str, language: Language) -> Vec<Token<'_>> {
    lex(source, language).into_iter().filter(|token| token.kind != Kind::Comment).collect()
}

/// The items that only tests see, with their place among the tokens: what follows `#[cfg(test)]`, up to its
/// closing brace or semicolon, or everything when the file says `#![cfg(test)]`.
pub(super) fn marked_items<'a, 't>(tokens: &'t [Token<'a>]) -> Vec<(Range<usize>, &'t [Token<'a>])> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let Some((end, body, whole_file)) = attribute(tokens, at) else {
            at += 1;
            continue;
        };
        let only_tests = is_cfg_test(body);
        if only_tests && whole_file {
            return vec![(0..tokens.len(), tokens)];
        }
        at = end;
        if only_tests {
            let stop = item_end(tokens, at);
            found.push((at..stop, tokens.get(at..stop).unwrap_or_default()));
            at = stop;
        }
    }
    found
}

/// The attribute that starts at `at`: where it ends, what its brackets hold, whether it is an inner one.
fn attribute<'a, 't>(tokens: &'t [Token<'a>], at: usize) -> Option<(usize, &'t [Token<'a>], bool)> {
    tokens.get(at).filter(|token| token.is('#'))?;
    let inner = tokens.get(at + 1)?.is('!');
    let open = at + 1 + usize::from(inner);
    tokens.get(open).filter(|token| token.is('['))?;
    let end = closing(tokens, open);
    Some((end, tokens.get(open + 1..end.saturating_sub(1))?, inner))
}

/// One past the bracket that closes the one at `open`.
fn closing(tokens: &[Token<'_>], open: usize) -> usize {
    let mut depth = 0_u32;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.kind {
            Kind::Mark('(' | '[' | '{') => depth += 1,
            Kind::Mark(')' | ']' | '}') => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    tokens.len()
}

fn is_cfg_test(body: &[Token<'_>]) -> bool {
    let has = |word| body.iter().any(|token| token.is_word(word));
    body.first().is_some_and(|token| token.is_word("cfg")) && has("test") && !has("not")
}

/// One past the item that starts at `start`, its further attributes included.
pub(super) fn item_end(tokens: &[Token<'_>], start: usize) -> usize {
    let mut at = start;
    while let Some((end, _, _)) = attribute(tokens, at) {
        at = end;
    }
    while let Some(token) = tokens.get(at) {
        match token.kind {
            Kind::Mark(';') => return at + 1,
            Kind::Mark('{') => return closing(tokens, at),
            Kind::Mark('(' | '[') => at = closing(tokens, at),
            _ => at += 1,
        }
    }
    tokens.len()
}

/// The ids in a text: prefix, dash, number. One small letter may follow, for rows that share a case.
pub(crate) fn ids<'p>(text: &str, prefixes: &[&'p str]) -> Vec<(&'p str, u32)> {
    let mut found = Vec::new();
    for prefix in prefixes {
        for (at, _) in text.match_indices(prefix) {
            let before = text.get(..at).and_then(|before| before.chars().next_back());
            let after = text.get(at + prefix.len()..).and_then(|rest| rest.strip_prefix('-'));
            let (Some(after), false) = (after, before.is_some_and(|c| c.is_alphanumeric() || c == '-'))
            else {
                continue;
            };
            let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
            let (number, rest) = after.split_at(digits);
            let tail = rest.strip_prefix(|c: char| c.is_ascii_lowercase()).unwrap_or(rest);
            if let (Ok(number), false) = (number.parse(), tail.starts_with(char::is_alphanumeric)) {
                found.push((*prefix, number));
            }
        }
    }
    found
}

/// The ids in the name of a function: `fw_17_a_node_goes` carries FW-17.
fn name_ids<'p>(name: &str, prefixes: &[&'p str]) -> Vec<(&'p str, u32)> {
    let parts: Vec<&str> = name.split('_').collect();
    let mut found = Vec::new();
    for (first, second) in parts.iter().zip(parts.iter().skip(1)) {
        let prefix = prefixes.iter().find(|prefix| prefix.eq_ignore_ascii_case(first));
        if let (Some(prefix), Ok(number)) = (prefix, second.parse()) {
            found.push((*prefix, number));
        }
    }
    found
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
