//! Writing mutants into a file, each behind a switch.
//!
//! A mutant becomes a copy of the body of its function, with the one change, that returns before the original body
//! begins. Every copy is made of the original text and has lines of its own, so that an error of the compiler leads back
//! to the mutant.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::{Range, RangeInclusive};

use super::source::Source;
use crate::mutants::listed::Mutant;

/// The lines of a rewritten file that one mutant brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    pub(crate) number: usize,
    pub(crate) lines: RangeInclusive<usize>,
    /// The whole function around it.
    pub(crate) function: RangeInclusive<usize>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rewritten {
    pub(crate) text: String,
    pub(crate) regions: Vec<Region>,
    /// Those that are in no function.
    pub(crate) left: Vec<usize>,
}

/// A function and its mutants, with what their bodies become.
struct Switches {
    function: Range<usize>,
    bodies: Vec<(usize, String)>,
}

/// Writes the mutants, each with the number of its switch, into the text of their file.
pub(crate) fn rewrite(text: &str, mutants: &[(usize, &Mutant)]) -> Rewritten {
    let source = Source::new(text);
    let mut done = Rewritten::default();
    // By where the body begins.
    let mut functions: BTreeMap<usize, Switches> = BTreeMap::new();
    for (number, mutant) in mutants {
        let Some((function, body, mutated)) = switched(&source, mutant) else {
            done.left.push(*number);
            continue;
        };
        let switches =
            functions.entry(body.start).or_insert_with(|| Switches { function, bodies: Vec::new() });
        switches.bodies.push((*number, mutated));
    }
    let mut copied = 0;
    let mut added = Vec::new();
    for (at, switches) in &functions {
        done.text.push_str(text.get(copied..*at).unwrap_or_default());
        copied = *at;
        let before = lines(&done.text);
        for (number, body) in &switches.bodies {
            let first = lines(&done.text) + 1;
            let _ = write!(done.text, "\nif crate::mutant_switch::on({number}) {{ return {{\n{body}\n}}; }}");
            let region = Region { number: *number, lines: first..=lines(&done.text), function: 0..=0 };
            done.regions.push(region);
        }
        done.text.push('\n');
        added.push((*at, lines(&done.text) - before));
    }
    done.text.push_str(text.get(copied..).unwrap_or_default());
    let line = |offset: usize| {
        let more: usize = added.iter().filter(|(at, _)| *at <= offset).map(|(_, more)| more).sum();
        lines(text.get(..offset).unwrap_or_default()) + more
    };
    let around = functions.values().flat_map(|switches| {
        switches.bodies.iter().map(|_| line(switches.function.start)..=line(switches.function.end))
    });
    for (region, function) in done.regions.iter_mut().zip(around) {
        region.function = function;
    }
    done
}

/// The whole function, its body, and the text of the body with the mutant in it.
fn switched(source: &Source<'_>, mutant: &Mutant) -> Option<(Range<usize>, Range<usize>, String)> {
    let function = mutant.function.as_ref()?.span;
    let body = source.body(function)?;
    let range = source.range(mutant.span)?;
    if range.start < body.start || body.end < range.end {
        return None;
    }
    let [before, after] = [body.start..range.start, range.end..body.end].map(|part| source.text.get(part));
    // The blank keeps words apart where nothing takes the place of something.
    let mutated = format!("{}{} {}", before?, mutant.replacement, after?);
    Some((source.range(function)?, body, mutated))
}

/// The text of a file with one mutant and no switch.
pub(crate) fn plainly(text: &str, mutant: &Mutant) -> Option<String> {
    let source = Source::new(text);
    let range = source.range(mutant.span)?;
    Some(format!("{}{} {}", text.get(..range.start)?, mutant.replacement, text.get(range.end..)?))
}

/// The number of the line that a text ends in.
fn lines(text: &str) -> usize {
    1 + text.matches('\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutants::listed::sample as mutant;

    const TEXT: &str = "const A: u8 = 1 + 2;\nfn f(a: u8) -> u8 {\n    let é = \"é\"; a + 3 // end\n}\n\
                        fn g() -> bool { fn h() -> bool { !true } // h\n    h() && true }\n";

    #[test]
    fn every_mutant_is_a_copy_of_the_original_body_on_lines_of_its_own() {
        let f = Some(("fn f", "\n}"));
        let [first, second] =
            [("+", "-"), ("+", "*")].map(|(what, with)| mutant(TEXT, f, "fn f", what, with));
        let inner = mutant(TEXT, Some(("fn h", "!true }")), "fn h", "!", "");
        let outer = mutant(TEXT, Some(("fn g", "&& true }")), "fn g", "&&", "||");
        let constant = mutant(TEXT, None, "const", "+", "-");
        let mutants = [(1, &first), (2, &second), (3, &inner), (4, &outer), (5, &constant)];
        let done = rewrite(TEXT, &mutants);
        let want = "const A: u8 = 1 + 2;\nfn f(a: u8) -> u8 {\n\
            if crate::mutant_switch::on(1) { return {\n\n    let é = \"é\"; a -  3 // end\n\n}; }\n\
            if crate::mutant_switch::on(2) { return {\n\n    let é = \"é\"; a *  3 // end\n\n}; }\n\
            \n    let é = \"é\"; a + 3 // end\n}\n\
            fn g() -> bool {\n\
            if crate::mutant_switch::on(4) { return {\n fn h() -> bool { !true } // h\n    h() ||  true \n}; }\n \
            fn h() -> bool {\n\
            if crate::mutant_switch::on(3) { return {\n  true \n}; }\n !true } // h\n    h() && true }\n";
        assert_eq!(done.text, want);
        assert_eq!(done.left, [5]);
        let rows: Vec<_> = done
            .regions
            .iter()
            .map(|region| (region.number, region.lines.clone(), region.function.clone()))
            .collect();
        assert_eq!(
            rows,
            [(1, 3..=7, 2..=15), (2, 8..=12, 2..=15), (4, 17..=20, 16..=26), (3, 22..=24, 21..=25)]
        );
    }

    #[test]
    fn without_a_switch_only_the_span_changes() {
        let changed = plainly(TEXT, &mutant(TEXT, None, "fn f", "a + 3", "Default::default()")).unwrap();
        assert_eq!(changed, TEXT.replace("a + 3", "Default::default() "));
    }

    #[test]
    fn a_span_outside_of_the_body_has_no_switch() {
        let odd = mutant(TEXT, Some(("fn f", "\n}")), "fn g", "&&", "||");
        let done = rewrite(TEXT, &[(1, &odd)]);
        assert_eq!((done.text.as_str(), done.left.as_slice()), (TEXT, &[1][..]));
    }
}
