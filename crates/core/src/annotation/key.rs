//! One annotation: its spellings, its kind, its default, and how an object's value is judged.

use std::{fmt, iter};

use super::{Annotations, Value, kind::Kind, shape::Shape};
use crate::{
    error::cut,
    lb::{Impact, Notice, Refusal, Severity},
    reason::{self, Reason},
};

/// How much of a wrong value a message quotes: enough to recognise it, little enough for an event.
const SHOWN: usize = 80;

/// How values are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Blanks at both ends do not count.
    pub trim: bool,
    /// An empty text is no text; otherwise it is a value like any other.
    pub empty_is_absent: bool,
}

impl Reading {
    /// The text under `key`, if it counts as set.
    pub fn text<'a>(self, annotations: &'a Annotations, key: &str) -> Option<&'a str> {
        let raw = annotations.get(key)?.as_str();
        let text = if self.trim { raw.trim() } else { raw };
        (!(self.empty_is_absent && text.is_empty())).then_some(text)
    }
}

/// What the default is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// There is none: the cloud decides, or the feature is off.
    None,
    /// As if this text were set.
    Text(&'static str),
    /// It follows from something else; this says from what.
    Derived(&'static str),
}

/// One way to write a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spelling {
    /// The full key.
    pub name: &'static str,
    /// A wrong value is noticed and then treated as not set, instead of being refused.
    pub lenient: bool,
    /// Its use is reported, with the newer name.
    pub deprecated: bool,
}

/// A further spelling of a key. It counts where the spellings before it are not set.
pub type Alias = Spelling;

impl Spelling {
    /// A spelling as good as any other.
    pub const fn new(name: &'static str) -> Self {
        Self { name, lenient: false, deprecated: false }
    }

    /// The same, but a wrong value blocks nothing: it is noticed and treated as not set.
    #[must_use]
    pub const fn lenient(mut self) -> Self {
        self.lenient = true;
        self
    }

    /// The same, but its use is reported, with the newer name.
    #[must_use]
    pub const fn deprecated(mut self) -> Self {
        self.deprecated = true;
        self
    }
}

/// An annotation whose value is of kind `K`.
///
/// Made to be a `static`: the declaration is the only place where its name stands.
#[derive(Clone, Copy, Debug)]
pub struct Key<K> {
    name: Spelling,
    aliases: &'static [Alias],
    kind: K,
    fallback: Fallback,
    impact: Option<Impact>,
    recorded: bool,
    about: &'static str,
}

impl<K> Key<K> {
    /// An annotation without aliases, default or known impact.
    pub const fn new(name: &'static str, kind: K) -> Self {
        let name = Spelling::new(name);
        Self { name, aliases: &[], kind, fallback: Fallback::None, impact: None, recorded: false, about: "" }
    }

    /// Further spellings, the stronger first. The key's own name beats them all.
    #[must_use]
    pub const fn aliases(mut self, aliases: &'static [Alias]) -> Self {
        self.aliases = aliases;
        self
    }

    /// A wrong value under the key's own name is noticed and treated as not set.
    #[must_use]
    pub const fn lenient(mut self) -> Self {
        self.name = self.name.lenient();
        self
    }

    /// Not being set means the same as this text.
    #[must_use]
    pub const fn default(mut self, text: &'static str) -> Self {
        self.fallback = Fallback::Text(text);
        self
    }

    /// Not being set means something that the provider derives; `how` says from what.
    #[must_use]
    pub const fn derived(mut self, how: &'static str) -> Self {
        self.fallback = Fallback::Derived(how);
        self
    }

    /// What a change does to traffic.
    #[must_use]
    pub const fn impact(mut self, impact: Impact) -> Self {
        self.impact = Some(impact);
        self
    }

    /// We write it ourselves; people only read it.
    #[must_use]
    pub const fn recorded(mut self) -> Self {
        self.recorded = true;
        self
    }

    /// One line for the reference documentation.
    #[must_use]
    pub const fn about(mut self, line: &'static str) -> Self {
        self.about = line;
        self
    }

    /// The name under which it is written and documented.
    pub const fn name(&self) -> &'static str {
        self.name.name
    }

    fn spellings(&self) -> impl Iterator<Item = Spelling> {
        iter::once(self.name).chain(self.aliases.iter().copied())
    }
}

impl<K: Kind> Key<K> {
    /// The default as a value; `None` where there is none or where it is derived.
    pub fn default_value(&self) -> Option<K::Value> {
        match self.fallback {
            Fallback::Text(text) => self.kind.read(text).ok(),
            Fallback::None | Fallback::Derived(_) => None,
        }
    }

    /// The object's value, its spelling, and what to report.
    ///
    /// Each spelling that is set is judged by itself and reported at most once. The first one that is good or strict
    /// decides.
    pub(super) fn judge(&self, reading: Reading, annotations: &Annotations) -> Judged<K::Value> {
        let mut judged = Judged { value: Value::Unset, decider: None, report: Report::default() };
        for spelling in self.spellings() {
            let Some(text) = reading.text(annotations, spelling.name) else { continue };
            match (self.kind.read(text), judged.decider) {
                (Err(detail), _) if spelling.lenient => {
                    judged.report.warn(
                        reason::INVALID_ANNOTATION,
                        spelling.name,
                        &format!("{}; it is ignored", self.flaw(text, &detail)),
                    );
                }
                (Err(detail), decider) => {
                    judged.report.refuse(spelling.name, self.flaw(text, &detail));
                    if decider.is_none() {
                        judged.value = Value::Wrong;
                        judged.decider = Some(spelling.name);
                    }
                }
                (Ok(value), None) => {
                    if spelling.deprecated {
                        judged.report.warn(
                            reason::DEPRECATED_ANNOTATION,
                            spelling.name,
                            &format!("the name is now {}", self.name.name),
                        );
                    }
                    judged.value = Value::Set(value);
                    judged.decider = Some(spelling.name);
                }
                (Ok(value), Some(decider)) => {
                    if judged.value != Value::Set(value) {
                        let text = format!("ignored, because {decider} is set too and says something else");
                        judged.report.warn(reason::CONFLICTING_ANNOTATIONS, spelling.name, &text);
                    }
                }
            }
        }
        judged
    }

    fn flaw(&self, text: &str, detail: &str) -> String {
        let detail = if detail.is_empty() { String::new() } else { format!(" ({})", cut(detail, 2 * SHOWN)) };
        format!("{:?} is not {}{detail}", cut(text, SHOWN), self.kind.expects())
    }
}

/// What an object says about one key.
pub(super) struct Judged<T> {
    pub(super) value: Value<T>,
    pub(super) decider: Option<&'static str>,
    pub(super) report: Report,
}

/// What to report about the annotations of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Wrong values, which block a creation.
    pub refused: Vec<Refusal>,
    /// Remarks, which block nothing.
    pub notices: Vec<Notice>,
}

impl Report {
    fn refuse(&mut self, key: &str, message: String) {
        self.refused.push(Refusal { reason: reason::INVALID_ANNOTATION, field: key.to_owned(), message });
    }

    pub(super) fn warn(&mut self, reason: Reason, key: &str, text: &str) {
        let message = format!("{key}: {text}");
        self.notices.push(Notice { severity: Severity::Warning, reason, message });
    }

    pub(super) fn append(&mut self, mut other: Self) {
        self.refused.append(&mut other.refused);
        self.notices.append(&mut other.notices);
    }
}

/// A line of the reference documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The name, then the aliases, the stronger first.
    pub spellings: Vec<Spelling>,
    /// What a good value is.
    pub expects: String,
    /// What a good value looks like to somebody who cannot read it.
    pub shape: Shape,
    /// What not being set means.
    pub fallback: Fallback,
    /// What a change does to traffic, where that is known.
    pub impact: Option<Impact>,
    /// We write it ourselves.
    pub recorded: bool,
    /// What the annotation does, in one line.
    pub about: &'static str,
}

/// A key of any kind, as a table keeps it.
pub trait Entry: fmt::Debug + Sync {
    /// Its line of the documentation.
    fn row(&self) -> Row;

    /// What to report about it.
    fn report(&self, reading: Reading, annotations: &Annotations) -> Report;

    /// Whether its default, if it is a text, can be read as a value.
    fn default_is_sound(&self) -> bool;
}

impl<K: Kind> Entry for Key<K> {
    fn row(&self) -> Row {
        Row {
            spellings: self.spellings().collect(),
            expects: self.kind.expects(),
            shape: self.kind.shape(),
            fallback: self.fallback,
            impact: self.impact,
            recorded: self.recorded,
            about: self.about,
        }
    }

    fn report(&self, reading: Reading, annotations: &Annotations) -> Report {
        self.judge(reading, annotations).report
    }

    fn default_is_sound(&self) -> bool {
        !matches!(self.fallback, Fallback::Text(_)) || self.default_value().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::{super::kind::Unsigned, *};

    const AS_IS: Reading = Reading { trim: false, empty_is_absent: false };
    static STRICT: Key<Unsigned> = Key::new("x/new", Unsigned::ANY).aliases(&[Spelling::new("x/old")]);
    static LENIENT_FIRST: Key<Unsigned> =
        Key::new("x/new", Unsigned::ANY).lenient().aliases(&[Alias::new("x/old")]);
    static LENIENT_ALIAS: Key<Unsigned> =
        Key::new("x/new", Unsigned::ANY).aliases(&[Alias::new("x/old").lenient().deprecated()]);

    fn annotations(pairs: &[(&str, &str)]) -> Annotations {
        pairs.iter().map(|&(k, v)| (k.to_owned(), v.to_owned())).collect()
    }

    #[test]
    fn texts_are_taken_as_the_table_says() {
        let table = [
            (AS_IS, "", Some("")),
            (AS_IS, " a ", Some(" a ")),
            (Reading { trim: true, ..AS_IS }, " a ", Some("a")),
            (Reading { trim: true, ..AS_IS }, "  ", Some("")),
            (Reading { empty_is_absent: true, ..AS_IS }, "", None),
            (Reading { empty_is_absent: true, ..AS_IS }, "  ", Some("  ")),
            (Reading { trim: true, empty_is_absent: true }, "  ", None),
        ];
        for (reading, raw, want) in table {
            assert_eq!(reading.text(&annotations(&[("k", raw)]), "k"), want, "{reading:?} {raw:?}");
        }
        assert_eq!(AS_IS.text(&annotations(&[]), "k"), None);
    }

    /// The value, who decided, which keys were refused, and which were noticed with which reason.
    #[test]
    fn the_first_spelling_that_is_good_or_strict_decides() {
        use Value::{Set, Unset, Wrong};
        const BAD: &str = "bad";
        let (new, old) = (Some("x/new"), Some("x/old"));
        let table = [
            ("nothing set", &STRICT, None, None, Unset, None, &[][..], &[][..]),
            ("own name", &STRICT, Some("1"), None, Set(1), new, &[], &[]),
            ("alias", &STRICT, None, Some("2"), Set(2), old, &[], &[]),
            ("both agree in value", &STRICT, Some("1"), Some("01"), Set(1), new, &[], &[]),
            (
                "both differ",
                &STRICT,
                Some("1"),
                Some("2"),
                Set(1),
                new,
                &[],
                &[("x/old", "ConflictingAnnotations")],
            ),
            ("wrong", &STRICT, Some(BAD), None, Wrong, new, &["x/new"], &[]),
            ("wrong alias", &STRICT, None, Some(BAD), Wrong, old, &["x/old"], &[]),
            (
                "the good loser changes nothing",
                &STRICT,
                Some(BAD),
                Some("2"),
                Wrong,
                new,
                &["x/new"],
                &[("x/old", "ConflictingAnnotations")],
            ),
            ("a wrong loser is reported", &STRICT, Some("1"), Some(BAD), Set(1), new, &["x/old"], &[]),
            ("both wrong", &STRICT, Some(BAD), Some(BAD), Wrong, new, &["x/new", "x/old"], &[]),
            (
                "lenient, wrong",
                &LENIENT_FIRST,
                Some(BAD),
                None,
                Unset,
                None,
                &[],
                &[("x/new", "InvalidAnnotation")],
            ),
            (
                "lenient, wrong, alias good",
                &LENIENT_FIRST,
                Some(BAD),
                Some("2"),
                Set(2),
                old,
                &[],
                &[("x/new", "InvalidAnnotation")],
            ),
            (
                "lenient, good",
                &LENIENT_FIRST,
                Some("1"),
                Some("2"),
                Set(1),
                new,
                &[],
                &[("x/old", "ConflictingAnnotations")],
            ),
            (
                "old name",
                &LENIENT_ALIAS,
                None,
                Some("2"),
                Set(2),
                old,
                &[],
                &[("x/old", "DeprecatedAnnotation")],
            ),
            (
                "old name, wrong",
                &LENIENT_ALIAS,
                None,
                Some(BAD),
                Unset,
                None,
                &[],
                &[("x/old", "InvalidAnnotation")],
            ),
            ("old name repeats the new", &LENIENT_ALIAS, Some("2"), Some("2"), Set(2), new, &[], &[]),
        ];
        for (case, key, new, old, value, decider, refused, noticed) in table {
            let set: Vec<_> =
                [("x/new", new), ("x/old", old)].iter().filter_map(|&(k, v)| v.map(|v| (k, v))).collect();
            let judged = key.judge(AS_IS, &annotations(&set));
            assert_eq!((judged.value, judged.decider), (value, decider), "{case}");
            let fields: Vec<_> = judged.report.refused.iter().map(|r| r.field.as_str()).collect();
            assert_eq!(fields, refused, "{case}");
            let told =
                |n: &Notice| (n.message.split(':').next().unwrap_or_default().to_owned(), n.reason.name());
            let told: Vec<_> = judged.report.notices.iter().map(told).collect();
            let noticed: Vec<_> = noticed.iter().map(|&(key, reason)| (key.to_owned(), reason)).collect();
            assert_eq!(told, noticed, "{case}");
            assert!(judged.report.refused.iter().all(|r| r.reason == reason::INVALID_ANNOTATION), "{case}");
            assert!(judged.report.notices.iter().all(|n| n.severity == Severity::Warning), "{case}");
        }
    }

    #[test]
    fn messages_name_the_value_and_what_would_be_right() {
        let refusal =
            |text: &str| STRICT.judge(AS_IS, &annotations(&[("x/new", text)])).report.refused.remove(0);
        let right = "a number from 0 to 4294967295, digits only";
        assert_eq!(refusal("-1").to_string(), format!("x/new: \"-1\" is not {right} (not a number)"));
        let long = refusal(&"y".repeat(5_000)).message;
        assert!(long.starts_with("\"yyyy") && long.len() < 300, "{long}");
        let told = |key: &Key<Unsigned>, set: &[(&str, &str)]| {
            key.judge(AS_IS, &annotations(set)).report.notices.remove(0).message
        };
        assert_eq!(told(&LENIENT_ALIAS, &[("x/old", "1")]), "x/old: the name is now x/new");
        assert!(told(&LENIENT_FIRST, &[("x/new", "a")]).ends_with("(not a number); it is ignored"));
        assert!(told(&STRICT, &[("x/new", "1"), ("x/old", "2")]).contains("because x/new is set too"));
    }

    #[test]
    fn a_default_is_a_text_of_the_same_kind() {
        let key = Key::new("x/k", Unsigned::ANY);
        let table = [
            (key, None, true),
            (key.default("7"), Some(7), true),
            (key.default("seven"), None, false),
            (key.derived("from the ports"), None, true),
        ];
        for (key, value, sound) in table {
            assert_eq!((key.default_value(), key.default_is_sound()), (value, sound), "{key:?}");
        }
        assert_eq!(key.name(), "x/k");
    }

    #[test]
    fn a_row_repeats_the_declaration() {
        let key = LENIENT_ALIAS.default("7").impact(Impact::Major).recorded().about("What it does.");
        let row = key.row();
        assert_eq!(row.spellings, [Spelling::new("x/new"), Spelling::new("x/old").lenient().deprecated()]);
        assert_eq!((row.expects, row.fallback), (Unsigned::ANY.expects(), Fallback::Text("7")));
        assert_eq!((row.impact, row.recorded, row.about), (Some(Impact::Major), true, "What it does."));
        assert_eq!(Key::new("x/k", Unsigned::ANY).derived("d").row().fallback, Fallback::Derived("d"));
    }
}
