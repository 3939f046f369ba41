//! The functions and types that a file declares, and the words that it uses them by.
//!
//! This reads tokens, not meaning: items of one name are one, so what it calls unused is unused, while something that
//! shares its name with a thing in use may be missed.

use std::ops::Range;

use super::scan::{Scope, code, item_end, marked_items};
use crate::lexer::{Kind, Language, Token};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    Function,
    /// In an `impl` block without a trait. What a trait asks for is called through it and is no item.
    Method,
    Type,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) name: String,
    pub(crate) sort: Sort,
    /// Where among the tokens of its file it is declared, its body included.
    pub(crate) range: Range<usize>,
    pub(crate) in_tests: bool,
}

/// One file of Rust, without its comments.
pub(crate) struct Source<'a> {
    pub(crate) path: String,
    pub(crate) tokens: Vec<Token<'a>>,
    pub(crate) items: Vec<Item>,
    /// The blocks that implement something for a type of this name.
    pub(crate) impls: Vec<(String, Range<usize>)>,
    /// Constants of tests, which hold tables of cases.
    pub(crate) tables: Vec<(String, Range<usize>)>,
    tests: Vec<Range<usize>>,
    imports: Vec<Range<usize>>,
}

impl<'a> Source<'a> {
    pub(crate) fn read(path: &str, text: &'a str, scope: Scope) -> Self {
        let tokens = code(text, Language::Rust);
        let tests = match scope {
            Scope::Whole => std::iter::once(0..tokens.len()).collect(),
            Scope::Marked => marked_items(&tokens).into_iter().map(|(range, _)| range).collect(),
            Scope::Nothing => Vec::new(),
        };
        let mut source = Self {
            path: path.to_owned(),
            tokens,
            items: Vec::new(),
            impls: Vec::new(),
            tables: Vec::new(),
            tests,
            imports: Vec::new(),
        };
        source.declarations();
        source
    }

    fn declarations(&mut self) {
        let mut asked_for_by_traits: Vec<Range<usize>> = Vec::new();
        for at in 0..self.tokens.len() {
            let keyword = self.word(at).unwrap_or_default();
            if !["use", "impl", "trait", "struct", "enum", "type", "fn", "const"].contains(&keyword) {
                continue;
            }
            let range = at..item_end(&self.tokens, at);
            let name = self.word(at + 1).unwrap_or_default().to_owned();
            let in_tests = self.is_test(at);
            match keyword {
                "const" if in_tests => self.tables.push((name, range)),
                "use" if self.begins_item(at) => self.imports.push(range),
                "impl" if self.begins_item(at) => {
                    let (name, of_trait) = self.implemented(at);
                    if of_trait {
                        asked_for_by_traits.push(range.clone());
                    }
                    self.impls.push((name, range));
                }
                "trait" | "struct" | "enum" | "type"
                    if asked_for_by_traits.iter().all(|r| !r.contains(&at)) =>
                {
                    if keyword == "trait" {
                        asked_for_by_traits.push(range.clone());
                    }
                    self.items.push(Item { name, sort: Sort::Type, range, in_tests });
                }
                "fn" if !name.is_empty() && asked_for_by_traits.iter().all(|r| !r.contains(&at)) => {
                    let is_method = self.impls.iter().any(|(_, block)| block.contains(&at));
                    let sort = if is_method { Sort::Method } else { Sort::Function };
                    self.items.push(Item { name, sort, range, in_tests });
                }
                _ => {}
            }
        }
    }

    fn word(&self, at: usize) -> Option<&'a str> {
        self.tokens.get(at).filter(|token| token.kind == Kind::Word).map(|token| token.text)
    }

    fn mark(&self, at: usize) -> Option<char> {
        match self.tokens.get(at)?.kind {
            Kind::Mark(mark) => Some(mark),
            _ => None,
        }
    }

    /// Whether a keyword starts an item here: `impl` is also part of types.
    fn begins_item(&self, at: usize) -> bool {
        let Some(before) = at.checked_sub(1) else { return true };
        matches!(self.mark(before), Some(';' | '}' | ']' | '{' | ')')) || self.word(before) == Some("pub")
    }

    /// The name of the type that an `impl` block is about, and whether it is for a trait.
    fn implemented(&self, at: usize) -> (String, bool) {
        let (mut depth, mut name, mut of_trait) = (0_i32, "", false);
        for at in at + 1..self.tokens.len() {
            match (self.mark(at), self.word(at)) {
                (Some('<'), _) => depth += 1,
                (Some('>'), _) if self.mark(at - 1) != Some('-') => depth -= 1,
                (Some('{'), _) | (_, Some("where")) => break,
                (_, Some("for")) if depth == 0 => of_trait = true,
                (_, Some(word)) if depth == 0 => name = word,
                _ => {}
            }
        }
        (name.to_owned(), of_trait)
    }

    pub(crate) fn is_test(&self, at: usize) -> bool {
        self.tests.iter().any(|range| range.contains(&at))
    }

    pub(crate) fn is_import(&self, at: usize) -> bool {
        self.imports.iter().any(|range| range.contains(&at))
    }

    /// Whether `::` precedes the token.
    pub(crate) fn is_path(&self, at: usize) -> bool {
        let colon = |back: usize| at.checked_sub(back).and_then(|at| self.mark(at)) == Some(':');
        colon(1) && colon(2)
    }

    /// Whether the token could be a use of an item of this sort: called, named in a path, handed on as a value, or
    /// named in the string of an attribute.
    pub(crate) fn uses(&self, at: usize, sort: Sort) -> bool {
        let before = at.checked_sub(1);
        let mark = before.and_then(|before| self.mark(before));
        let declared = before.and_then(|before| self.word(before)).is_some_and(|word| {
            ["fn", "struct", "enum", "trait", "type", "let", "mut", "mod"].contains(&word)
        });
        let is_field = self.mark(at + 1) == Some(':') && self.mark(at + 2) != Some(':');
        let is_path = self.is_path(at);
        match sort {
            _ if declared => false,
            Sort::Type => true,
            Sort::Method => mark == Some('.') || is_path,
            Sort::Function => mark != Some('.') && (is_path || !is_field),
        }
    }

    /// The words of a range with their places, and what strings there hold that looks like a path: `a::b` is `b`.
    pub(crate) fn names(&self, range: Range<usize>) -> impl Iterator<Item = (usize, &'a str)> {
        range.filter_map(|at| {
            let token = self.tokens.get(at)?;
            match token.kind {
                Kind::Word => Some((at, token.text)),
                Kind::Text => Some((at, token.text.trim_matches('"').rsplit("::").next()?)),
                _ => None,
            }
        })
    }

    /// The outermost function, constant or other item of the tests that holds the token.
    pub(crate) fn test_around(&self, at: usize) -> Option<Range<usize>> {
        let functions = self.items.iter().filter(|item| item.in_tests && item.sort != Sort::Type);
        functions.map(|item| item.range.clone()).find(|range| range.contains(&at))
    }

    /// All of the test code that holds the token.
    pub(crate) fn tests_around(&self, at: usize) -> Range<usize> {
        self.tests.iter().find(|range| range.contains(&at)).cloned().unwrap_or(at..at + 1)
    }
}
