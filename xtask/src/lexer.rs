//! Just enough of a lexer for Rust and Go to tell code, strings and comments apart.
//!
//! It never fails: what it does not understand becomes punctuation, and a string or comment that does not end
//! runs to the end of the file, as it would for the compiler.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    Rust,
    Go,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Comment,
    Text,
    Word,
    Mark(char),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) kind: Kind,
    pub(crate) text: &'a str,
    pub(crate) line: u32,
    /// Where it begins, in bytes.
    pub(crate) at: usize,
}

impl Token<'_> {
    pub(crate) fn is(&self, mark: char) -> bool {
        self.kind == Kind::Mark(mark)
    }

    pub(crate) fn is_word(&self, word: &str) -> bool {
        self.kind == Kind::Word && self.text == word
    }
}

pub(crate) fn lex(source: &str, language: Language) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = source;
    let mut line = 1;
    while let Some(first) = rest.chars().next() {
        let (kind, length) = next(rest, first, language);
        let (text, after) = rest.split_at(length.min(rest.len()));
        if let Some(kind) = kind {
            tokens.push(Token { kind, text, line, at: source.len() - rest.len() });
        }
        line += u32::try_from(text.matches('\n').count()).unwrap_or(u32::MAX);
        rest = after;
    }
    tokens
}

/// The kind of the token at the start of `rest` and its length in bytes, never 0. Blanks have no kind.
fn next(rest: &str, first: char, language: Language) -> (Option<Kind>, usize) {
    let in_rust = language == Language::Rust;
    if first.is_whitespace() {
        (None, first.len_utf8())
    } else if rest.starts_with("//") {
        (Some(Kind::Comment), rest.find('\n').unwrap_or(rest.len()))
    } else if rest.starts_with("/*") {
        (Some(Kind::Comment), block_comment(rest, in_rust))
    } else if let Some(length) = raw_text(rest, in_rust) {
        (Some(Kind::Text), length)
    } else if let Some(prefix) = text_prefix(rest, in_rust) {
        (Some(Kind::Text), prefix + quoted(rest.get(prefix..).unwrap_or_default(), '"'))
    } else if first == '\'' {
        apostrophe(rest, in_rust)
    } else if first.is_alphanumeric() || first == '_' {
        (Some(Kind::Word), rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len()))
    } else {
        (Some(Kind::Mark(first)), first.len_utf8())
    }
}

fn block_comment(rest: &str, nests: bool) -> usize {
    let (mut at, mut depth) = (2, 1);
    while depth > 0 {
        let Some(tail) = rest.get(at..) else { return rest.len() };
        let Some(close) = tail.find("*/") else { return rest.len() };
        (at, depth) = match tail.find("/*").filter(|open| nests && *open < close) {
            Some(open) => (at + open + 2, depth + 1),
            None => (at + close + 2, depth - 1),
        };
    }
    at
}

/// A literal without escapes: `r"…"`, `br#"…"#` and the like, or a Go text in back quotes.
fn raw_text(rest: &str, in_rust: bool) -> Option<usize> {
    let (body, end, opened) = if in_rust {
        let after = ["r", "br", "cr"].into_iter().find_map(|prefix| rest.strip_prefix(prefix))?;
        let body = after.trim_start_matches('#');
        let end = format!("\"{}", "#".repeat(after.len() - body.len()));
        (body.strip_prefix('"')?, end, rest.len())
    } else {
        (rest.strip_prefix('`')?, "`".to_owned(), rest.len())
    };
    Some(body.find(&end).map_or(opened, |at| opened - body.len() + at + end.len()))
}

/// The position of the opening quote of an ordinary literal: `"`, `b"`, `c"`.
fn text_prefix(rest: &str, in_rust: bool) -> Option<usize> {
    match rest.as_bytes() {
        [b'"', ..] => Some(0),
        [b'b' | b'c', b'"', ..] if in_rust => Some(1),
        _ => None,
    }
}

/// The length of a literal with escapes, its quotes included.
fn quoted(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    rest.len()
}

/// A character, or in Rust the mark of a lifetime.
fn apostrophe(rest: &str, in_rust: bool) -> (Option<Kind>, usize) {
    let mut inside = rest.chars().skip(1);
    let is_char = !in_rust || inside.next() == Some('\\') || inside.next() == Some('\'');
    if is_char { (Some(Kind::Text), quoted(rest, '\'')) } else { (Some(Kind::Mark('\'')), 1) }
}

#[cfg(test)]
mod tests {
    use super::{Kind::*, Language::*, *};

    fn kinds(source: &str, language: Language) -> Vec<(Kind, &str)> {
        lex(source, language).iter().map(|token| (token.kind, token.text)).collect()
    }

    #[test]
    fn code_strings_and_comments_are_told_apart() {
        type Row<'a> = (Language, &'a str, &'a [(Kind, &'a str)]);
        let table: &[Row<'_>] = &[
            (Rust, "a // b \"c\"\nd", &[(Word, "a"), (Comment, "// b \"c\""), (Word, "d")]),
            (Rust, "/* a /* b */ c */ d", &[(Comment, "/* a /* b */ c */"), (Word, "d")]),
            (Go, "/* a /* b */ c", &[(Comment, "/* a /* b */"), (Word, "c")]),
            (Rust, r#""a \" // b" c"#, &[(Text, r#""a \" // b""#), (Word, "c")]),
            (Rust, r##"r#"a " \"# b"##, &[(Text, r##"r#"a " \"#"##), (Word, "b")]),
            (Rust, r#"b"a" br"b\" c"#, &[(Text, r#"b"a""#), (Text, r#"br"b\""#), (Word, "c")]),
            (Rust, "r#type", &[(Word, "r"), (Mark('#'), "#"), (Word, "type")]),
            (Rust, "&'a str", &[(Mark('&'), "&"), (Mark('\''), "'"), (Word, "a"), (Word, "str")]),
            (Rust, r#"'"' '\'' 'é' x"#, &[(Text, "'\"'"), (Text, r"'\''"), (Text, "'é'"), (Word, "x")]),
            (Go, "`a \\` 'b' \"c\"", &[(Text, "`a \\`"), (Text, "'b'"), (Text, "\"c\"")]),
            (Go, "b\"c\"", &[(Word, "b"), (Text, "\"c\"")]),
            (Rust, "break_1 rb", &[(Word, "break_1"), (Word, "rb")]),
            (Rust, "\"open", &[(Text, "\"open")]),
            (Rust, "r#\"open\"", &[(Text, "r#\"open\"")]),
            (Rust, "/* open /* */", &[(Comment, "/* open /* */")]),
            (Rust, "\"\\", &[(Text, "\"\\")]),
        ];
        for (language, source, want) in table {
            assert_eq!(kinds(source, *language), *want, "{source}");
        }
    }

    #[test]
    fn lines_are_counted_through_long_tokens() {
        let tokens = lex("a\n\"b\nc\" d /*\n*/\ne", Rust);
        let lines: Vec<_> = tokens.iter().map(|token| (token.text.len(), token.line, token.at)).collect();
        assert_eq!(lines, [(1, 1, 0), (5, 2, 2), (1, 3, 8), (5, 3, 10), (1, 5, 16)]);
    }

    #[test]
    fn nothing_is_lost_and_nothing_hangs_on_odd_input() {
        for source in ["'", "'\\", "r", "r#", "b", "\u{1f600}'\u{1f600}", "/*", "/", "\"", "`", "''"] {
            for language in [Rust, Go] {
                let text: String = lex(source, language).iter().map(|token| token.text).collect();
                assert_eq!(text, source, "{language:?}");
            }
        }
    }
}
