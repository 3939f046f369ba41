//! Finds retired words in a file: in code, in comments and strings, and in documents.

use super::table::{Form, Retired};
use crate::lexer::{Kind, Language, Token, lex};
use crate::workspace::has_extension;

/// The line, the word and its replacement for every use, once per line.
pub(crate) fn retired(
    path: &str,
    source: &str,
    table: &[Retired],
) -> Vec<(usize, &'static str, &'static str)> {
    let table: Vec<&Retired> = table.iter().filter(|row| row.counts_in(path)).collect();
    let mut found = Vec::new();
    if has_extension(path, "rs") {
        let tokens = lex(source, Language::Rust);
        for (at, token) in tokens.iter().enumerate() {
            let line = usize::try_from(token.line).unwrap_or(usize::MAX);
            if token.kind == Kind::Word {
                let before = at.checked_sub(1).and_then(|at| tokens.get(at));
                let declares = before.is_some_and(declares);
                code(token.text, declares, &table, &mut |hit| found.push((line, hit)));
            } else {
                prose(token.text, line, true, &table, &mut found);
            }
        }
    } else {
        prose(source, 1, false, &table, &mut found);
    }
    found.sort_unstable();
    found.dedup();
    found.into_iter().map(|(line, (word, now))| (line, word, now)).collect()
}

type Hit = (&'static str, &'static str);

/// Whether the next word is the name of a type or a module. Uses cannot be distinguished from enum
/// variants of the same name, which may keep it.
fn declares(token: &Token<'_>) -> bool {
    ["struct", "enum", "trait", "type", "mod", "as"].into_iter().any(|keyword| token.is_word(keyword))
}

/// Text for people. In documents, what is between back quotes is the name of something.
fn prose(text: &str, first_line: usize, in_code: bool, table: &[&Retired], found: &mut Vec<(usize, Hit)>) {
    for (at, line) in text.lines().enumerate() {
        let line = without_allowed(line, table);
        for (part, text) in line.split('`').enumerate() {
            let quoted = part % 2 == 1;
            for name in text.split(|c: char| !c.is_alphanumeric() && c != '_') {
                let is_name = quoted && !in_code && name.starts_with(char::is_uppercase);
                code(name, is_name, table, &mut |hit| found.push((first_line + at, hit)));
            }
        }
    }
}

/// One identifier: as a whole for rows about names, by its parts for rows about words.
fn code(name: &str, is_name: bool, table: &[&Retired], report: &mut dyn FnMut(Hit)) {
    for row in table.iter().filter(|row| row.form == Form::Name && is_name) {
        if let Some(word) = row.words.iter().find(|word| is_named(word, name)) {
            report((word, row.now));
        }
    }
    let rows: Vec<&Retired> = table.iter().copied().filter(|row| !row.except.contains(&name)).collect();
    parts(name, &rows, report);
}

/// A row that says `Seen` is about a type; one that says `stage` is about a module too.
fn is_named(word: &str, name: &str) -> bool {
    word == name || word.starts_with(char::is_lowercase) && name.eq_ignore_ascii_case(word)
}

fn parts(name: &str, table: &[&Retired], report: &mut dyn FnMut(Hit)) {
    let parts = split(name);
    for row in table.iter().filter(|row| row.form == Form::Word) {
        for word in row.words {
            let whole = name.eq_ignore_ascii_case(word);
            if whole || parts.iter().any(|part| is_one_or_several(part, word)) {
                report((word, row.now));
            }
        }
    }
}

fn is_one_or_several(part: &str, word: &str) -> bool {
    let singular = part.strip_suffix('s').unwrap_or(part);
    part.eq_ignore_ascii_case(word) || singular.eq_ignore_ascii_case(word)
}

/// The words in an identifier: `node_crews` and `NodeCrew` hold two each.
fn split(name: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    for part in name.split('_') {
        let mut start = 0;
        let mut small_before = false;
        for (at, c) in part.char_indices() {
            if c.is_uppercase() && small_before {
                parts.extend(part.get(start..at));
                start = at;
            }
            small_before = c.is_lowercase() || c.is_ascii_digit();
        }
        parts.extend(part.get(start..));
    }
    parts
}

/// The line with the phrases left out in which a retired word is right.
fn without_allowed(line: &str, table: &[&Retired]) -> String {
    let phrases = table.iter().flat_map(|row| row.except);
    phrases.fold(line.to_owned(), |line, phrase| line.replace(phrase, " "))
}

impl Retired {
    fn counts_in(&self, path: &str) -> bool {
        let has = |parts: &[&str]| parts.iter().any(|part| path.contains(part));
        (self.only.is_empty() || has(self.only)) && !has(self.not_in)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[Retired] = &[
        Retired {
            words: &["Crew"],
            now: "WorkerPool",
            form: Form::Word,
            only: &[],
            not_in: &[],
            except: &[],
        },
        Retired {
            words: &["Seen"],
            now: "Observed",
            form: Form::Name,
            only: &["clouds/"],
            not_in: &[],
            except: &[],
        },
        Retired {
            words: &["stage"],
            now: "fixture",
            form: Form::Name,
            only: &["/tests/"],
            not_in: &[],
            except: &[],
        },
        Retired {
            words: &["machine"],
            now: "instance",
            form: Form::Word,
            only: &[],
            not_in: &["own-words/"],
            except: &["state machine", "MachineDoubt"],
        },
    ];

    fn lines(path: &str, source: &str) -> Vec<(usize, &'static str)> {
        retired(path, source, TABLE).into_iter().map(|(line, word, _)| (line, word)).collect()
    }

    #[test]
    fn words_are_found_wherever_people_read_them() {
        let table = [
            ("a type", "struct Crew;", 1),
            ("part of a type", "struct NodeCrewList;", 1),
            ("part of a name in snake case", "let node_crews = 1;", 1),
            ("a constant", "const CREW: u8 = 1;", 1),
            ("a comment", "// the crew works", 1),
            ("a doc comment with a link", "/// See [`Crew`].\nstruct A;", 1),
            ("a string", r#"info!("crew ended")"#, 1),
            ("another word", "let screw = crewed; struct Crewman;", 0),
            ("the new word", "struct WorkerPool;", 0),
            ("twice in a line is one place", "fn crew(crew: Crew) {}", 1),
        ];
        for (name, source, want) in table {
            assert_eq!(lines("crates/a/src/lib.rs", source).len(), want, "{name}");
        }
    }

    #[test]
    fn names_are_retired_where_they_are_declared_and_not_in_prose() {
        let source = "// Seen from here\nstruct Seen;\nlet seen = \"Seen\";\nstruct SeenBy;\nuse a::B as Seen;\n\
                      type Seen = u8;\nenum A { Seen }\nEvidence::Seen\nmod seen;\n";
        assert_eq!(lines("clouds/a/src/lib.rs", source), [(2, "Seen"), (5, "Seen"), (6, "Seen")]);
        assert_eq!(lines("clouds/a/README.md", "Seen from `here`\nas `Seen` says, `seen`\n"), [(2, "Seen")]);
    }

    #[test]
    fn a_row_counts_only_in_its_folders() {
        assert_eq!(lines("crates/a/src/lib.rs", "struct Seen;"), []);
        assert_eq!(lines("crates/a/src/lib.rs", "mod stage; struct Stage;"), []);
        let helper = "mod stage;\nstruct Stage;\nlet stage = 1;";
        assert_eq!(lines("crates/a/tests/main.rs", helper), [(1, "stage"), (2, "stage")]);
        assert_eq!(lines("crates/a/src/lib.rs", "// a machine"), [(1, "machine")]);
        assert_eq!(lines("own-words/src/lib.rs", "// a machine"), []);
    }

    #[test]
    fn allowed_phrases_are_no_use() {
        let source = "// the state machine of a machine\n\"MachineDoubt\"\nMachineDoubt\n`MachineDoubt`\n";
        assert_eq!(lines("crates/a/src/lib.rs", source), [(1, "machine")]);
        assert_eq!(
            lines("docs/a.md", "a state machine\nmachines\n`a_machine`"),
            [(2, "machine"), (3, "machine")]
        );
    }

    #[test]
    fn lines_are_counted_inside_long_tokens() {
        assert_eq!(lines("crates/a/src/lib.rs", "/* a\ncrew */\n\"b\n crew\""), [(2, "Crew"), (4, "Crew")]);
    }
}
