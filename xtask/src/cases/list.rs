//! The lists of numbered cases, as they are committed in `cases.toml` beside what they are about.
//!
//! A list names its sections and what is known about single cases; it holds no text of the cases. A case that
//! nothing is said about, in a section that is owned, must be carried by a test.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use serde::Deserialize;

/// The design has this many laws.
pub(crate) const LAWS: u8 = 12;

/// One list, checked: its sections cover 1 to N without gap or overlap.
#[derive(Clone, Debug)]
pub(crate) struct CaseList {
    pub(crate) prefix: String,
    pub(crate) title: String,
    pub(crate) sections: Vec<Section>,
    marks: BTreeMap<u32, Mark>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) cases: RangeInclusive<u32>,
    pub(crate) owned: bool,
}

/// What a list says about a single case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// A law decides otherwise. Tests may carry the case to show what the law makes of it.
    Overridden { law: u8, why: String },
    /// We do better than the case asks for, on purpose. A test must carry it to show what is done instead.
    Bettered(String),
    /// The behaviour lives elsewhere: in a file, or in a test as `path::name`.
    ShownBy(String),
    /// It cannot arise here; a test that claims it is mistaken.
    NotApplicable(String),
    /// Nobody has to show it yet.
    NotYet,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawList {
    prefix: String,
    title: String,
    section: Vec<RawSection>,
    #[serde(default)]
    overridden: BTreeMap<String, RawOverride>,
    #[serde(default)]
    bettered: BTreeMap<String, String>,
    #[serde(default)]
    shown_by: BTreeMap<String, String>,
    #[serde(default)]
    not_applicable: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSection {
    id: String,
    title: String,
    cases: String,
    owned: bool,
    #[serde(default)]
    not_yet: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawOverride {
    law: u8,
    why: String,
}

impl CaseList {
    /// Reads a list; reports every mistake in it at once.
    pub(crate) fn parse(text: &str) -> Result<Self, Vec<String>> {
        let raw: RawList = toml::from_str(text).map_err(|why| vec![why.to_string()])?;
        let mut reader = Reader::default();
        if raw.prefix.is_empty() || !raw.prefix.bytes().all(|byte| byte.is_ascii_uppercase()) {
            reader.mistakes.push(format!("prefix {:?}: use capital letters only", raw.prefix));
        }
        for section in raw.section {
            reader.section(section);
        }
        for (numbers, RawOverride { law, why }) in raw.overridden {
            if !(1..=LAWS).contains(&law) {
                reader.mistakes.push(format!("overridden {numbers}: there is no law {law}"));
            }
            reader.mark("overridden", &numbers, Some(&why), &Mark::Overridden { law, why: why.clone() });
        }
        reader.marks("bettered", raw.bettered, Mark::Bettered);
        reader.marks("shown_by", raw.shown_by, Mark::ShownBy);
        reader.marks("not_applicable", raw.not_applicable, Mark::NotApplicable);
        let Reader { sections, marks, mistakes } = reader;
        if mistakes.is_empty() {
            Ok(Self { prefix: raw.prefix, title: raw.title, sections, marks })
        } else {
            Err(mistakes)
        }
    }

    /// The number of its last case, which is also how many there are.
    pub(crate) fn len(&self) -> u32 {
        self.sections.last().map_or(0, |section| *section.cases.end())
    }

    /// The cases whose behaviour lives elsewhere, and where.
    pub(crate) fn shown_elsewhere(&self) -> impl Iterator<Item = (u32, &str)> {
        self.marks.iter().filter_map(|(case, mark)| match mark {
            Mark::ShownBy(place) => Some((*case, place.as_str())),
            _ => None,
        })
    }

    pub(crate) fn mark(&self, case: u32) -> Option<&Mark> {
        let owned = |section: &Section| section.owned || !section.cases.contains(&case);
        self.marks.get(&case).or_else(|| (!self.sections.iter().all(owned)).then_some(&Mark::NotYet))
    }
}

#[derive(Default)]
struct Reader {
    sections: Vec<Section>,
    marks: BTreeMap<u32, Mark>,
    mistakes: Vec<String>,
}

impl Reader {
    fn section(&mut self, raw: RawSection) {
        let RawSection { id, title, cases, owned, not_yet } = raw;
        let next = self.sections.last().map_or(1, |section| section.cases.end() + 1);
        let Some(cases) = range(&cases) else {
            self.mistakes.push(format!("section {id}: {cases:?} is no range; write \"1-40\""));
            return;
        };
        if *cases.start() != next {
            self.mistakes.push(format!("section {id}: starts at {}, should start at {next}", cases.start()));
        }
        let inside = cases.clone();
        self.sections.push(Section { id: id.clone(), title, cases, owned });
        for numbers in not_yet {
            let fits =
                range(&numbers).is_some_and(|r| inside.contains(r.start()) && inside.contains(r.end()));
            if !fits || !owned {
                self.mistakes
                    .push(format!("section {id}: not_yet {numbers:?} is not in a section that is owned"));
            }
            self.mark("not_yet", &numbers, None, &Mark::NotYet);
        }
    }

    fn marks(&mut self, table: &str, entries: BTreeMap<String, String>, mark: fn(String) -> Mark) {
        for (numbers, text) in entries {
            self.mark(table, &numbers, Some(&text), &mark(text.clone()));
        }
    }

    fn mark(&mut self, table: &str, numbers: &str, why: Option<&str>, mark: &Mark) {
        if why.is_some_and(|why| why.trim().is_empty()) {
            self.mistakes.push(format!("{table} {numbers}: give a reason"));
        }
        let last = self.sections.last().map_or(0, |section| *section.cases.end());
        let Some(cases) = range(numbers).filter(|cases| *cases.end() <= last) else {
            self.mistakes.push(format!("{table} {numbers}: no such case"));
            return;
        };
        for case in cases {
            if self.marks.insert(case, mark.clone()).is_some() {
                self.mistakes.push(format!("{table} {numbers}: case {case} is marked twice"));
            }
        }
    }
}

/// Reads `7` or `7-9`; counting starts at one.
fn range(text: &str) -> Option<RangeInclusive<u32>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    (1 <= first && first <= last).then_some(first..=last)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
        prefix = "ZZ"
        title = "made up"
        section = [
          { id = "1", title = "first", cases = "1-4", owned = true, not_yet = ["2-3"] },
          { id = "2", title = "second", cases = "5", owned = true },
          { id = "3", title = "third", cases = "6-9", owned = false },
        ]
        [overridden]
        4 = { law = 2, why = "nodes are hard to lose" }
        [bettered]
        1 = "one write instead of two"
        [shown_by]
        6 = "crates/a/tests/b.rs::name"
        [not_applicable]
        5 = "no such answer"
        7-8 = "no such provider"
    "#;

    #[test]
    fn every_case_gets_what_the_list_says_about_it() {
        let list = CaseList::parse(GOOD).unwrap();
        assert_eq!((list.prefix.as_str(), list.len()), ("ZZ", 9));
        let na = |why: &str| Some(Mark::NotApplicable(why.to_owned()));
        let table = [
            (1, Some(Mark::Bettered("one write instead of two".to_owned()))),
            (2, Some(Mark::NotYet)),
            (3, Some(Mark::NotYet)),
            (4, Some(Mark::Overridden { law: 2, why: "nodes are hard to lose".to_owned() })),
            (5, na("no such answer")),
            (6, Some(Mark::ShownBy("crates/a/tests/b.rs::name".to_owned()))),
            (7, na("no such provider")),
            (8, na("no such provider")),
            (9, Some(Mark::NotYet)),
        ];
        for (case, want) in table {
            assert_eq!(list.mark(case).cloned(), want, "case {case}");
        }
        assert_eq!(list.shown_elsewhere().collect::<Vec<_>>(), [(6, "crates/a/tests/b.rs::name")]);
    }

    #[test]
    fn mistakes_in_a_list_are_named() {
        let table = [
            ("a gap", r#""5""#, r#""6""#, "section 2: starts at 6, should start at 5"),
            ("an overlap", r#""5""#, r#""4-5""#, "section 2: starts at 4"),
            ("no range", r#""5""#, r#""five""#, "section 2: \"five\" is no range"),
            ("a range backwards", r#""2-3""#, r#""3-2""#, "not_yet \"3-2\""),
            ("not_yet of another section", r#""2-3""#, r#""5""#, "not_yet \"5\" is not in a section"),
            ("an unknown law", "law = 2", "law = 13", "overridden 4: there is no law 13"),
            ("no such case", "7-8 =", "9-10 =", "not_applicable 9-10: no such case"),
            ("case zero", "7-8 =", "0 =", "not_applicable 0: no such case"),
            ("marked twice", "7-8 =", "4 =", "case 4 is marked twice"),
            ("no reason", "\"no such answer\"", "\" \"", "not_applicable 5: give a reason"),
            ("no reason to do better", "\"one write instead of two\"", "\"\"", "bettered 1: give a reason"),
            ("small letters", "\"ZZ\"", "\"Zz\"", "prefix \"Zz\""),
            ("an unknown key", "title = \"made up\"", "tittle = \"made up\"", "tittle"),
        ];
        for (name, old, new, want) in table {
            assert!(GOOD.contains(old), "{name}");
            let mistakes = CaseList::parse(&GOOD.replacen(old, new, 1)).unwrap_err();
            assert!(mistakes.iter().any(|said| said.contains(want)), "{name}: {mistakes:?}");
        }
    }

    #[test]
    fn all_mistakes_are_reported_at_once() {
        let text = GOOD.replace("law = 2", "law = 0").replace("7-8 =", "70 =");
        assert_eq!(CaseList::parse(&text).unwrap_err().len(), 2);
    }
}
