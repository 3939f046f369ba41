//! All annotations of one cloud, and the reading of an object through them.

use super::{
    Annotations, Value,
    key::{Entry, Key, Reading, Report, Row},
    kind::Kind,
    typo,
};
use crate::{
    error::{Error, Result},
    label::LabelKey,
    lb::{Notice, Refusal},
    reason,
};

/// A key that once did something, or that people believe does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retired {
    /// The full key.
    pub name: &'static str,
    /// Why it does nothing, in a sentence that can stand behind "it has no effect: ".
    pub why: &'static str,
}

/// Every annotation that a provider reads or writes.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    pub(super) entries: &'static [&'static dyn Entry],
    pub(super) retired: &'static [Retired],
    prefixes: &'static [&'static str],
    reading: Reading,
}

impl Table {
    /// A table of these keys. Values are taken as they are: an empty one is a value, blanks count.
    pub const fn new(entries: &'static [&'static dyn Entry]) -> Self {
        let reading = Reading { trim: false, empty_is_absent: false };
        Self { entries, retired: &[], prefixes: &[], reading }
    }

    /// Undeclared keys that begin with one of these are noticed, with the nearest declared one as a hint. All other
    /// undeclared keys are somebody else's.
    #[must_use]
    pub const fn watching(mut self, prefixes: &'static [&'static str]) -> Self {
        self.prefixes = prefixes;
        self
    }

    /// Keys that do nothing; their use is reported.
    #[must_use]
    pub const fn retired(mut self, retired: &'static [Retired]) -> Self {
        self.retired = retired;
        self
    }

    /// Blanks at both ends of a value do not count.
    #[must_use]
    pub const fn trimmed(mut self) -> Self {
        self.reading.trim = true;
        self
    }

    /// An empty value counts as not set.
    #[must_use]
    pub const fn empty_is_absent(mut self) -> Self {
        self.reading.empty_is_absent = true;
        self
    }

    /// Reads an object. All mistakes are reported at once, each key's once: refusals and notices in the order of the
    /// table, then retired and unknown keys.
    pub fn parse<'a>(&self, annotations: &'a Annotations) -> Parsed<'a> {
        let mut report = Report::default();
        for entry in self.entries {
            report.append(entry.report(self.reading, annotations));
        }
        for retired in self.retired {
            if self.reading.text(annotations, retired.name).is_some() {
                report.warn(
                    reason::ANNOTATION_WITHOUT_EFFECT,
                    retired.name,
                    &format!("it has no effect: {}", retired.why),
                );
            }
        }
        let spellings = self.spellings();
        for key in annotations.keys() {
            let declared = spellings.iter().any(|(spelling, _)| spelling == key)
                || self.retired.iter().any(|retired| retired.name == key);
            let prefix = self.prefixes.iter().find(|prefix| key.starts_with(**prefix));
            if let (false, Some(prefix)) = (declared, prefix) {
                let hint = typo::nearest(key, prefix, &spellings)
                    .map_or_else(String::new, |name| format!("; did you mean {name}?"));
                report.warn(
                    reason::UNKNOWN_ANNOTATION,
                    key,
                    &format!("there is no such annotation, so it is ignored{hint}"),
                );
            }
        }
        let Report { refused, notices } = report;
        Parsed { reading: self.reading, annotations, refused, notices }
    }

    /// Every spelling with the name that should be used instead.
    fn spellings(&self) -> Vec<(&'static str, &'static str)> {
        let names = |entry: &&dyn Entry| {
            let spellings = entry.row().spellings;
            let name = spellings.first().map_or("", |own| own.name);
            spellings.into_iter().map(move |spelling| (spelling.name, name)).collect::<Vec<_>>()
        };
        self.entries.iter().flat_map(names).collect()
    }

    /// What every annotation is, in the order of declaration.
    pub fn rows(&self) -> impl Iterator<Item = Row> {
        self.entries.iter().map(|entry| entry.row())
    }

    /// The keys that do nothing.
    pub const fn without_effect(&self) -> &'static [Retired] {
        self.retired
    }

    /// The beginnings of keys of which none may be unknown.
    pub const fn prefixes(&self) -> &'static [&'static str] {
        self.prefixes
    }

    /// How values are read.
    pub const fn reading(&self) -> Reading {
        self.reading
    }

    /// Whether a key is this provider's: declared, retired, or beginning as its keys do.
    pub fn knows(&self, key: &str) -> bool {
        self.spellings().iter().any(|(spelling, _)| *spelling == key)
            || self.retired.iter().any(|retired| retired.name == key)
            || self.prefixes.iter().any(|prefix| key.starts_with(prefix))
    }

    /// The keys that we write ourselves, in all their spellings.
    pub fn recorded(&self) -> impl Iterator<Item = &'static str> {
        let rows = self.entries.iter().map(|entry| entry.row()).filter(|row| row.recorded);
        rows.flat_map(|row| row.spellings).map(|spelling| spelling.name)
    }

    /// What is wrong with the declaration itself: a key that Kubernetes would not take, one that is declared twice, a
    /// default that its own kind refuses, a prefix that would watch everything. A provider's test asserts that there
    /// is nothing.
    pub fn flaws(&self) -> Vec<String> {
        let mut flaws = Vec::new();
        let mut seen = Vec::new();
        let spellings = self.spellings();
        for name in spellings.iter().map(|(spelling, _)| *spelling).chain(self.retired.iter().map(|r| r.name))
        {
            if LabelKey::new(name).is_err() {
                flaws.push(format!("{name:?} is not a key"));
            }
            if seen.contains(&name) {
                flaws.push(format!("{name} is declared twice"));
            }
            seen.push(name);
        }
        for entry in self.entries.iter().filter(|entry| !entry.default_is_sound()) {
            let row = entry.row();
            let name = row.spellings.first().map_or("", |own| own.name);
            flaws.push(format!("{name}: the default {:?} is not {}", row.fallback, row.expects));
        }
        if self.prefixes.iter().any(|prefix| !prefix.contains('/')) {
            flaws.push(
                "a watched prefix needs a slash, or it would reach into other people's keys".to_owned(),
            );
        }
        flaws
    }
}

/// The annotations of one object, read through a table.
#[derive(Clone, Debug)]
pub struct Parsed<'a> {
    reading: Reading,
    annotations: &'a Annotations,
    /// Values that cannot be carried out; each names its key.
    pub refused: Vec<Refusal>,
    /// What else to report.
    pub notices: Vec<Notice>,
}

impl Parsed<'_> {
    /// What the object says about `key`.
    pub fn get<K: Kind>(&self, key: &Key<K>) -> Value<K::Value> {
        key.judge(self.reading, self.annotations).value
    }

    /// What the object says about `key`, for callers that cannot go on with a wrong value: the refusal is the error.
    pub fn try_get<K: Kind>(&self, key: &Key<K>) -> Result<Option<K::Value>> {
        match self.get(key) {
            Value::Set(value) => Ok(Some(value)),
            Value::Unset => Ok(None),
            Value::Wrong => {
                let field = self.spelling(key).unwrap_or(key.name());
                let refusal = self.refused.iter().find(|refusal| refusal.field == field);
                Err(Error::user_input(refusal.map_or_else(|| field.to_owned(), ToString::to_string)))
            }
        }
    }

    /// Under which spelling the value of [`get`](Self::get) stands, if any.
    pub fn spelling<K: Kind>(&self, key: &Key<K>) -> Option<&'static str> {
        key.judge(self.reading, self.annotations).decider
    }

    /// The value to use for `key`: the one that is set; the key's default if none is; the observed one if a wrong one is set
    /// (law 8). `None` if the key has no default and nothing better is known.
    pub fn settle<K: Kind>(&self, key: &Key<K>, observed: Option<K::Value>) -> Option<K::Value> {
        match self.get(key) {
            Value::Set(value) => Some(value),
            Value::Unset => key.default_value(),
            Value::Wrong => observed.or_else(|| key.default_value()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{Alias, Text, Unsigned},
        *,
    };

    static COUNT: Key<Unsigned> = Key::new("x.io/count", Unsigned::ANY).default("3");
    static NAME: Key<Text> = Key::new("x.io/name", Text).aliases(&[Alias::new("x.io/title")]);
    static TABLE: Table = Table::new(&[&COUNT, &NAME])
        .watching(&["x.io/"])
        .retired(&[Retired { name: "x.io/buffer", why: "the cloud sizes buffers itself." }]);

    fn annotations(pairs: &[(&str, &str)]) -> Annotations {
        pairs.iter().map(|&(k, v)| (k.to_owned(), v.to_owned())).collect()
    }

    #[test]
    fn values_come_out_by_type_with_their_spelling() {
        let set = annotations(&[("x.io/count", "7"), ("x.io/title", "t"), ("other.io/count", "?")]);
        let parsed = TABLE.parse(&set);
        assert_eq!(parsed.get(&COUNT), Value::Set(7));
        assert_eq!(parsed.get(&NAME), Value::Set("t".to_owned()));
        assert_eq!(parsed.spelling(&NAME), Some("x.io/title"));
        assert_eq!(
            (parsed.refused, parsed.notices),
            (vec![], vec![]),
            "other people's keys are not ours to judge"
        );
        let nothing = annotations(&[]);
        assert_eq!(TABLE.parse(&nothing).get(&COUNT), Value::Unset);
        assert_eq!(TABLE.parse(&nothing).spelling(&COUNT), None);
    }

    #[test]
    fn what_goes_is_the_value_the_default_or_what_is_there() {
        let table = [
            ("L8-25 set", &[("x.io/count", "7")][..], Some(9), Some(7)),
            ("L8-26 not set", &[], Some(9), Some(3)),
            ("L8-27 wrong, something runs", &[("x.io/count", "x")], Some(9), Some(9)),
            ("L8-28 wrong, nothing runs", &[("x.io/count", "x")], None, Some(3)),
        ];
        for (case, set, observed, want) in table {
            assert_eq!(TABLE.parse(&annotations(set)).settle(&COUNT, observed), want, "{case}");
        }
        assert_eq!(TABLE.parse(&annotations(&[])).settle(&NAME, Some("seen".to_owned())), None, "no default");
    }

    #[test]
    fn all_mistakes_are_reported_at_once_in_a_fixed_order() {
        let set = annotations(&[
            ("x.io/zzzzzzzzzzzzzz", "1"),
            ("x.io/coumt", "1"),
            ("x.io/tittle", "1"),
            ("x.io/buffer", "1"),
            ("x.io/count", "x"),
            ("x.io/name", "a"),
            ("x.io/title", "b"),
        ]);
        let parsed = TABLE.parse(&set);
        assert_eq!(parsed.refused.len(), 1, "L8-29");
        assert_eq!(parsed.refused[0].field, "x.io/count");
        let told: Vec<_> = parsed.notices.iter().map(|n| (n.reason, n.message.as_str())).collect();
        let unknown = |hint| format!("there is no such annotation, so it is ignored{hint}");
        assert_eq!(
            told,
            [
                (
                    reason::CONFLICTING_ANNOTATIONS,
                    "x.io/title: ignored, because x.io/name is set too and says something else"
                ),
                (
                    reason::ANNOTATION_WITHOUT_EFFECT,
                    "x.io/buffer: it has no effect: the cloud sizes buffers itself."
                ),
                (
                    reason::UNKNOWN_ANNOTATION,
                    format!("x.io/coumt: {}", unknown("; did you mean x.io/count?")).as_str()
                ),
                (
                    reason::UNKNOWN_ANNOTATION,
                    format!("x.io/tittle: {}", unknown("; did you mean x.io/name?")).as_str()
                ),
                (reason::UNKNOWN_ANNOTATION, format!("x.io/zzzzzzzzzzzzzz: {}", unknown("")).as_str()),
            ]
        );
    }

    #[test]
    fn a_key_is_known_by_its_name_or_its_beginning() {
        static QUIET: Table = Table::new(&[&COUNT]);
        let table = [
            ("x.io/count", true),
            ("x.io/title", true),
            ("x.io/buffer", true),
            ("x.io/anything", true),
            ("y.io/count", false),
        ];
        for (key, want) in table {
            assert_eq!(TABLE.knows(key), want, "{key}");
        }
        assert_eq!((QUIET.knows("x.io/count"), QUIET.knows("x.io/coumt")), (true, false));
    }

    #[test]
    fn empty_and_blank_values_follow_the_table() {
        let table = [
            ("as they are", TABLE, "", Value::Wrong),
            ("empty is absent", TABLE.empty_is_absent(), "", Value::Unset),
            ("blank is not empty", TABLE.empty_is_absent(), " ", Value::Wrong),
            ("trimmed", TABLE.trimmed(), " 1 ", Value::Set(1)),
            ("trimmed and then empty", TABLE.trimmed().empty_is_absent(), " ", Value::Unset),
        ];
        for (case, table, text, want) in table {
            assert_eq!(table.parse(&annotations(&[("x.io/count", text)])).get(&COUNT), want, "{case}");
        }
        let silent = TABLE.empty_is_absent().parse(&annotations(&[("x.io/buffer", "")])).notices;
        assert_eq!(silent, []);
        assert_eq!(TABLE.parse(&annotations(&[("x.io/buffer", "")])).notices.len(), 1);
    }

    #[test]
    fn without_a_watched_prefix_unknown_keys_are_left_alone() {
        static QUIET: Table = Table::new(&[&COUNT]);
        let set = annotations(&[("x.io/coumt", "1")]);
        assert_eq!(QUIET.parse(&set).notices, []);
        assert_eq!(Table::new(&[]).parse(&set).notices, []);
    }

    #[test]
    fn a_bad_declaration_is_found() {
        static BAD_DEFAULT: Key<Unsigned> = Key::new("x.io/bad", Unsigned::ANY).default("many");
        static BAD_KEY: Key<Text> = Key::new("x.io/no spaces", Text);
        static TWICE: Key<Text> = Key::new("x.io/other", Text).aliases(&[Alias::new("x.io/count")]);
        static RETIRED: &[Retired] = &[Retired { name: "x.io/name", why: "" }];
        static CASES: [(Table, Option<&str>); 7] = [
            (TABLE, None),
            (Table::new(&[]), None),
            (Table::new(&[&BAD_DEFAULT]), Some("x.io/bad: the default Text(\"many\") is not a number from")),
            (Table::new(&[&BAD_KEY]), Some("\"x.io/no spaces\" is not a key")),
            (Table::new(&[&COUNT, &TWICE]), Some("x.io/count is declared twice")),
            (Table::new(&[&NAME]).retired(RETIRED), Some("x.io/name is declared twice")),
            (Table::new(&[]).watching(&["x"]), Some("a watched prefix needs a slash")),
        ];
        for (table, want) in CASES {
            let flaws = table.flaws();
            match want {
                None => assert_eq!(flaws, [""; 0]),
                Some(want) => assert!(flaws.len() == 1 && flaws[0].starts_with(want), "{want}: {flaws:?}"),
            }
        }
    }
}
