//! Finding places in the text of a file: what a span covers, and the body of a function.

use std::ops::Range;

use crate::lexer::{Kind, Language, lex};
use crate::mutants::listed::{Position, Span};

/// The text of a file, and where its lines begin.
pub(crate) struct Source<'a> {
    pub(crate) text: &'a str,
    lines: Vec<usize>,
}

impl<'a> Source<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let lines = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { text, lines }
    }

    /// The bytes that a span covers; `None` if the file has no such place.
    pub(crate) fn range(&self, span: Span) -> Option<Range<usize>> {
        let range = self.offset(span.start)?..self.offset(span.end)?;
        (range.start <= range.end).then_some(range)
    }

    fn offset(&self, position: Position) -> Option<usize> {
        let start = *self.lines.get(position.line.checked_sub(1)?)?;
        let line = self.text.get(start..)?.split('\n').next()?;
        let mut places = line.char_indices().map(|(at, _)| at).chain([line.len()]);
        places.nth(position.column.checked_sub(1)?).map(|at| start + at)
    }

    /// What is between the braces of the body of a function. The body is the block that ends where the function ends:
    /// so blocks in its signature, such as those of constants, need not be understood.
    pub(crate) fn body(&self, function: Span) -> Option<Range<usize>> {
        let whole = self.range(function)?;
        let mut open = Vec::new();
        let mut body = None;
        for token in lex(self.text.get(whole.clone())?, Language::Rust) {
            if token.kind == Kind::Comment {
                continue;
            }
            body = None;
            if token.is('{') {
                open.push(whole.start + token.at + 1);
            } else if token.is('}') {
                body = Some(open.pop()?..whole.start + token.at);
            }
        }
        body.filter(|_| open.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn span(start: (usize, usize), end: (usize, usize)) -> Span {
        let position = |(line, column)| Position { line, column };
        Span { start: position(start), end: position(end) }
    }

    #[test]
    fn columns_count_characters() {
        let source = Source::new("aé\u{1f600}b\n\nlast");
        let table = [
            (span((1, 1), (1, 2)), Some("a")),
            (span((1, 2), (1, 4)), Some("é\u{1f600}")),
            (span((1, 4), (1, 5)), Some("b")),
            (span((1, 4), (3, 3)), Some("b\n\nla")),
            (span((3, 5), (3, 5)), Some("")),
            (span((1, 6), (1, 6)), None),
            (span((4, 1), (4, 1)), None),
            (span((0, 1), (1, 1)), None),
            (span((1, 0), (1, 1)), None),
            (span((1, 3), (1, 2)), None),
        ];
        for (span, want) in table {
            let found = source.range(span).and_then(|range| source.text.get(range));
            assert_eq!(found, want, "{span:?}");
        }
    }

    #[test]
    fn the_body_is_found_behind_any_signature() {
        let table = [
            ("fn f() { 1 }", Some(" 1 ")),
            ("fn f() {}", Some("")),
            ("/// A } brace {\n#[doc = \"{\"] pub(crate) fn f() -> u8 { /* } */ 1 // }\n}", None),
            ("fn f<const N: usize>() -> [u8; { N + 1 }] where [(); { N }]: Sized { a }", Some(" a ")),
            ("fn f<T: Into<A<{ 1 }>>>(t: T) -> B<{ 2 }> where T: Fn() -> u8 { b }", Some(" b ")),
            ("fn f(a: [u8; { 3 }]) { { c } }", Some(" { c } ")),
            ("fn f<'a>() -> &'a str { let x = '}'; r#\"}\"}\"# }", Some(" let x = '}'; r#\"}\"}\"# ")),
            ("fn f() { fn g() { d } g() }", Some(" fn g() { d } g() ")),
            ("fn f();", None),
            ("fn f() { } }", None),
            ("fn f() { { }", None),
            ("fn f() { } x", None),
        ];
        for (text, want) in table {
            let source = Source::new(text);
            let last = text.lines().last().unwrap().chars().count() + 1;
            let body = source.body(span((1, 1), (text.lines().count(), last)));
            let found = body.and_then(|body| source.text.get(body));
            let want = if text.starts_with("///") { Some(" /* } */ 1 // }\n") } else { want };
            assert_eq!(found, want, "{text}");
        }
    }

    #[test]
    fn only_the_function_asked_for_is_looked_at() {
        let source = Source::new("const A: &str = \"é\"; fn f() { 1 } fn g() { 2 }");
        assert_eq!(source.body(span((1, 22), (1, 34))).and_then(|body| source.text.get(body)), Some(" 1 "));
        assert_eq!(source.body(span((1, 35), (1, 47))).and_then(|body| source.text.get(body)), Some(" 2 "));
    }
}
