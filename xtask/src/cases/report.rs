//! What the lists and the tests say together.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::RangeInclusive;

use super::list::{CaseList, LAWS, Mark};

/// Where tests carry a case, as `file:line`, by list prefix and number.
pub(crate) type Carried = BTreeMap<(String, u32), Vec<String>>;

/// The state of one case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Covered,
    Overridden { tested: bool },
    NotApplicable,
    NotYet,
    Missing,
}

/// How many cases are in which state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    covered: u32,
    overridden: u32,
    overridden_tested: u32,
    not_applicable: u32,
    not_yet: u32,
    missing: u32,
}

/// One list beside the tests that carry its cases.
pub(crate) struct Comparison<'a> {
    list: &'a CaseList,
    carried: &'a Carried,
}

impl<'a> Comparison<'a> {
    pub(crate) fn new(list: &'a CaseList, carried: &'a Carried) -> Self {
        Self { list, carried }
    }

    fn places(&self, case: u32) -> &[String] {
        self.carried.get(&(self.list.prefix.clone(), case)).map_or(&[], Vec::as_slice)
    }

    /// A test ahead of its time counts; a case that nobody owns yet and nobody tests is not missing.
    fn state(&self, case: u32) -> State {
        let tested = !self.places(case).is_empty();
        match self.list.mark(case) {
            Some(Mark::Overridden { .. }) => State::Overridden { tested },
            Some(Mark::NotApplicable(_)) => State::NotApplicable,
            _ if tested => State::Covered,
            Some(Mark::NotYet) => State::NotYet,
            None | Some(Mark::Bettered(_) | Mark::ShownBy(_)) => State::Missing,
        }
    }

    fn count(&self, cases: RangeInclusive<u32>) -> Counts {
        let mut counts = Counts::default();
        for case in cases {
            match self.state(case) {
                State::Covered => counts.covered += 1,
                State::Overridden { tested } => {
                    counts.overridden += 1;
                    counts.overridden_tested += u32::from(tested);
                }
                State::NotApplicable => counts.not_applicable += 1,
                State::NotYet => counts.not_yet += 1,
                State::Missing => counts.missing += 1,
            }
        }
        counts
    }

    pub(crate) fn missing(&self) -> Vec<u32> {
        (1..=self.list.len()).filter(|case| self.state(*case) == State::Missing).collect()
    }

    /// Tests that claim what the list calls impossible.
    pub(crate) fn contradictions(&self) -> Vec<String> {
        let prefix = &self.list.prefix;
        (1..=self.list.len())
            .filter(|case| self.state(*case) == State::NotApplicable)
            .flat_map(|case| self.places(case).iter().map(move |place| (case, place)))
            .map(|(case, place)| {
                format!("{place}: {prefix}-{case} is marked not applicable, but this test carries it")
            })
            .collect()
    }

    /// One line for the list; with `sections` one more for each of them and for each reason to leave a case
    /// out; with `verbose` one for each case.
    pub(crate) fn render(&self, sections: bool, verbose: bool) -> String {
        let CaseList { prefix, title, .. } = self.list;
        let mut text =
            row(&format!("{prefix} {title}"), 1..=self.list.len(), self.count(1..=self.list.len()));
        for section in self.list.sections.iter().filter(|_| sections || verbose) {
            let name = format!("   {} {}", section.id, section.title);
            text += &row(&name, section.cases.clone(), self.count(section.cases.clone()));
            for case in section.cases.clone().filter(|_| verbose) {
                let _ = writeln!(text, "      {prefix}-{case:<4} {}", self.describe(case));
            }
        }
        for (reason, cases) in self.reasons().iter().filter(|_| sections && !verbose) {
            let _ = writeln!(text, "   {reason}: {}", spans(prefix, cases));
        }
        let missing = self.missing();
        if !missing.is_empty() {
            let _ = writeln!(text, "   MISSING: {}", spans(prefix, &missing));
        }
        text
    }

    /// The cases that the list says something about, by what it says.
    fn reasons(&self) -> BTreeMap<String, Vec<u32>> {
        let mut reasons: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        for case in 1..=self.list.len() {
            let reason = match self.list.mark(case) {
                Some(Mark::Overridden { law, why }) => format!("overridden by law {law}, {why}"),
                Some(Mark::Bettered(why)) => format!("done better, {why}"),
                Some(Mark::ShownBy(place)) => format!("shown by {place}"),
                Some(Mark::NotApplicable(why)) => format!("not applicable, {why}"),
                _ => continue,
            };
            reasons.entry(reason).or_default().push(case);
        }
        reasons
    }

    fn describe(&self, case: u32) -> String {
        let places = self.places(case).join(" ");
        match (self.state(case), self.list.mark(case)) {
            (State::Covered, Some(Mark::Bettered(why))) => format!("done better: {why}; tested: {places}"),
            (State::Covered, _) => format!("covered: {places}"),
            (State::Overridden { tested: false }, Some(Mark::Overridden { law, why })) => {
                format!("overridden by law {law}: {why}")
            }
            (_, Some(Mark::Overridden { law, why })) => {
                format!("overridden by law {law}: {why}; tested: {places}")
            }
            (_, Some(Mark::NotApplicable(why))) => format!("not applicable: {why}"),
            (State::NotYet, _) => "not yet owned".to_owned(),
            _ => "MISSING".to_owned(),
        }
    }
}

/// The names of the columns that [`Comparison::render`] fills.
pub(crate) fn header() -> String {
    format!(
        "{:<48} {:>8} {:>8} {:>11} {:>7} {:>15} {:>8} {:>8}\n",
        "", "cases", "covered", "overridden", "tested", "not applicable", "not yet", "missing"
    )
}

fn row(name: &str, cases: RangeInclusive<u32>, counts: Counts) -> String {
    let Counts { covered, overridden, overridden_tested, not_applicable, not_yet, missing } = counts;
    let cases = format!("{}-{}", cases.start(), cases.end());
    format!(
        "{name:<48} {cases:>8} {covered:>8} {overridden:>11} {overridden_tested:>7} {not_applicable:>15} {not_yet:>8} \
         {missing:>8}\n"
    )
}

/// Which laws have tests, and by how many ids; the ids of a law have no list that they could miss.
pub(crate) fn laws(carried: &Carried) -> String {
    let count = |law: u8| carried.keys().filter(|(prefix, _)| *prefix == format!("L{law}")).count();
    let (with, without): (Vec<u8>, Vec<u8>) = (1..=LAWS).partition(|law| count(*law) > 0);
    let with: Vec<String> = with.into_iter().map(|law| format!("L{law} ({})", count(law))).collect();
    let without: Vec<String> = without.into_iter().map(|law| format!("L{law}")).collect();
    format!("laws with tests: {}\nlaws without: {}\n", with.join(" "), without.join(" "))
}

/// Numbers in short: `ZZ-1..3 ZZ-7`.
fn spans(prefix: &str, numbers: &[u32]) -> String {
    let mut spans: Vec<(u32, u32)> = Vec::new();
    for &number in numbers {
        match spans.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => spans.push((number, number)),
        }
    }
    let show = |(first, last)| {
        if first == last { format!("{prefix}-{first}") } else { format!("{prefix}-{first}..{last}") }
    };
    spans.into_iter().map(show).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = r#"
        prefix = "ZZ"
        title = "made up"
        section = [
          { id = "a", title = "first", cases = "1-5", owned = true, not_yet = ["4-5"] },
          { id = "b", title = "second", cases = "6-9", owned = false },
        ]
        overridden.2 = { law = 4, why = "it writes twice" }
        overridden.3 = { law = 2, why = "too hasty" }
        bettered.1 = "in one write"
        not_applicable.6 = "cannot be asked"
    "#;

    fn tests_carry(cases: &[u32]) -> Carried {
        cases.iter().map(|case| (("ZZ".to_owned(), *case), vec![format!("a.rs:{case}")])).collect()
    }

    #[test]
    fn every_case_has_a_state() {
        let list = CaseList::parse(LIST).unwrap();
        let counts = |cases: &[u32]| {
            let c = Comparison::new(&list, &tests_carry(cases)).count(1..=list.len());
            (c.covered, c.overridden, c.overridden_tested, c.not_applicable, c.not_yet, c.missing)
        };
        let table: &[(&str, &[u32], _)] = &[
            ("no tests", &[], (0, 2, 0, 1, 5, 1)),
            ("the missing one is found", &[1], (1, 2, 0, 1, 5, 0)),
            ("an overridden one is tested", &[1, 3], (1, 2, 1, 1, 5, 0)),
            ("tests ahead of their time", &[1, 5, 9], (3, 2, 0, 1, 3, 0)),
            ("a test of another list", &[77], (0, 2, 0, 1, 5, 1)),
        ];
        for (name, cases, want) in table {
            assert_eq!(counts(cases), *want, "{name}");
        }
    }

    #[test]
    fn a_test_for_a_case_that_cannot_arise_is_pointed_at() {
        let list = CaseList::parse(LIST).unwrap();
        assert!(Comparison::new(&list, &tests_carry(&[1])).contradictions().is_empty());
        let carried = tests_carry(&[1, 6]);
        let said = Comparison::new(&list, &carried).contradictions();
        assert_eq!(said.len(), 1);
        assert!(said[0].starts_with("a.rs:6: ZZ-6"), "{said:?}");
    }

    #[test]
    fn the_report_names_reasons_places_and_what_is_missing() {
        let list = CaseList::parse(LIST).unwrap();
        let carried = tests_carry(&[3]);
        let comparison = Comparison::new(&list, &carried);
        let short = comparison.render(false, false);
        let width = |text: &str| text.lines().next().map(|line| line.chars().count());
        assert!(width(&short) == width(&header()) && header().ends_with(" missing\n"), "{}{short}", header());
        assert!(short.starts_with("ZZ made up ") && short.contains("MISSING: ZZ-1\n"), "{short}");
        assert!(!short.contains("first"), "{short}");
        let sections = comparison.render(true, false);
        assert!(
            sections.contains("a first") && sections.contains("overridden by law 4, it writes twice: ZZ-2\n")
        );
        assert!(sections.contains("not applicable, cannot be asked: ZZ-6\n"), "{sections}");
        assert!(sections.contains("done better, in one write: ZZ-1\n"), "{sections}");
        let long = comparison.render(true, true);
        for line in [
            "ZZ-1    MISSING",
            "ZZ-2    overridden by law 4: it writes twice\n",
            "ZZ-3    overridden by law 2: too hasty; tested: a.rs:3\n",
            "ZZ-4    not yet owned",
            "ZZ-6    not applicable: cannot be asked",
        ] {
            assert!(long.contains(line), "{line} in {long}");
        }
    }

    #[test]
    fn neighbours_are_shown_as_spans() {
        let table: &[(&[u32], &str)] =
            &[(&[], ""), (&[4], "ZZ-4"), (&[1, 2, 3, 7, 9, 10], "ZZ-1..3 ZZ-7 ZZ-9..10")];
        for (numbers, want) in table {
            assert_eq!(spans("ZZ", numbers), *want);
        }
    }
}
