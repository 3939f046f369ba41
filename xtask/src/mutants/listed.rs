//! The mutants that `cargo-mutants` would try: what `cargo mutants --list --json` says of them.

use std::process::Command;

use serde::Deserialize;

use crate::Result;
use crate::workspace::Workspace;

/// One entry of the list, as far as it matters here.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Mutant {
    /// Where it is and what it does, in words; no two have the same name.
    pub(crate) name: String,
    pub(crate) package: String,
    /// Relative to the root.
    pub(crate) file: String,
    /// The innermost function around it; a constant has none.
    pub(crate) function: Option<Function>,
    /// What is replaced.
    pub(crate) span: Span,
    pub(crate) replacement: String,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Function {
    /// With the arrow, or empty.
    pub(crate) return_type: String,
    /// The whole function, from its comments and attributes to its last brace.
    pub(crate) span: Span,
}

/// A part of a file; `end` is no longer in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Span {
    pub(crate) start: Position,
    pub(crate) end: Position,
}

/// Counted from 1, and columns in characters, not bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Position {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

pub(crate) fn list(workspace: &Workspace, packages: &[String]) -> Result<Vec<Mutant>> {
    let mut command = workspace.cargo(&["mutants", "--list", "--json"]);
    let listed = select(&mut command, packages).output().map_err(|why| format!("cargo mutants: {why}"))?;
    if !listed.status.success() {
        return Err(format!("cargo mutants --list: {}", String::from_utf8_lossy(&listed.stderr).trim()));
    }
    serde_json::from_slice(&listed.stdout).map_err(|why| format!("cargo mutants --list --json: {why}"))
}

pub(crate) fn select<'c>(command: &'c mut Command, packages: &[String]) -> &'c mut Command {
    command.args(packages.iter().flat_map(|package| ["--package", package.as_str()]))
}

/// A mutant of a text: it replaces the first `what` after the first `within`, in the function that begins and ends with
/// the words given.
#[cfg(test)]
pub(crate) fn sample(
    text: &str,
    function: Option<(&str, &str)>,
    within: &str,
    what: &str,
    with: &str,
) -> Mutant {
    let position = |at: usize| {
        let before = &text[..at];
        let column = before.rsplit('\n').next().unwrap().chars().count() + 1;
        Position { line: before.matches('\n').count() + 1, column }
    };
    let after = |from: usize, word: &str| from + text[from..].find(word).unwrap();
    let start = after(after(0, within), what);
    let span = Span { start: position(start), end: position(start + what.len()) };
    let function = function.map(|(first, last)| {
        let start = after(0, first);
        let end = after(start, last) + last.len();
        let signature = text[start..end].split('{').next().unwrap();
        let return_type = signature.find("->").map_or("", |at| &signature[at..]).to_owned();
        Function { return_type, span: Span { start: position(start), end: position(end) } }
    });
    Mutant {
        name: format!("{within}: {what} with {with}"),
        package: "sample".to_owned(),
        file: "src/lib.rs".to_owned(),
        function,
        span,
        replacement: with.to_owned(),
    }
}
