//! Which mutants an error of the compiler is about.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::rewrite::Region;

/// A message of the compiler, as cargo passes it on.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Message {
    pub(crate) level: String,
    #[serde(default)]
    pub(crate) rendered: Option<String>,
    #[serde(default)]
    code: Option<Code>,
    #[serde(default)]
    spans: Vec<Place>,
    #[serde(default)]
    children: Vec<Message>,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct Code {
    code: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct Place {
    /// Relative to the root.
    file_name: String,
    line_start: usize,
    line_end: usize,
    is_primary: bool,
    /// Where the macro is used that the place is in.
    #[serde(default)]
    expansion: Option<Box<Expansion>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct Expansion {
    span: Place,
}

/// The regions of every file that has some.
pub(crate) type Regions = BTreeMap<String, Vec<Region>>;

/// The mutants without which the error might go away; empty if none has to do with it.
pub(crate) fn culprits(error: &Message, regions: &Regions) -> BTreeSet<usize> {
    let all = places(error);
    let primary: Vec<&Place> =
        error.spans.iter().filter(|place| place.is_primary).flat_map(outwards).collect();
    // An error elsewhere in a function comes of what its mutants made the compiler believe, such as a type that it
    // inferred from the first `return`. What the error mentions is a better guess than the whole function.
    [inside(&primary, regions), inside(&all, regions), around(&primary, regions), around(&all, regions)]
        .into_iter()
        .find(|found| !found.is_empty())
        .unwrap_or_default()
}

/// Errors that are about types and patterns alone: the body of a mutant would have them without a switch, too. Others can
/// come of the switch, such as a call in a constant function or an `impl` that is there twice.
const LASTING: [&str; 9] = ["E0004", "E0061", "E0063", "E0277", "E0308", "E0369", "E0599", "E0600", "E0614"];

/// The mutants that do not compile by themselves either, as far as this error shows it. It shows nothing for a function that
/// returns some `impl Trait`: there the switch makes two types of one.
pub(crate) fn refused(error: &Message, regions: &Regions) -> BTreeSet<usize> {
    if !error.code.as_ref().is_some_and(|code| LASTING.contains(&code.code.as_str())) {
        return BTreeSet::new();
    }
    let primary: Vec<&Place> =
        error.spans.iter().filter(|place| place.is_primary).flat_map(outwards).collect();
    inside(&primary, regions)
}

/// A place, and the uses of macros around it.
fn outwards(place: &Place) -> Vec<&Place> {
    std::iter::successors(Some(place), |place| place.expansion.as_deref().map(|expansion| &expansion.span))
        .collect()
}

fn places(message: &Message) -> Vec<&Place> {
    let own = message.spans.iter().flat_map(outwards);
    own.chain(message.children.iter().flat_map(places)).collect()
}

fn inside(places: &[&Place], regions: &Regions) -> BTreeSet<usize> {
    let of = |place: &&Place| {
        let here = regions.get(&place.file_name).map(Vec::as_slice).unwrap_or_default();
        let (first, last) = (place.line_start, place.line_end);
        here.iter().filter(move |region| region.lines.contains(&first) && region.lines.contains(&last))
    };
    places.iter().flat_map(of).map(|region| region.number).collect()
}

/// The mutants of the innermost functions that the places are in.
fn around(places: &[&Place], regions: &Regions) -> BTreeSet<usize> {
    let of = |place: &&Place| {
        let here = regions.get(&place.file_name).map(Vec::as_slice).unwrap_or_default();
        let holding = || here.iter().filter(|region| region.function.contains(&place.line_start));
        let innermost = holding().map(|region| region.function.start()).max();
        holding().filter(move |region| Some(region.function.start()) == innermost).collect::<Vec<_>>()
    };
    places.iter().flat_map(of).map(|region| region.number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two mutants of one function, one of a function in it, one of a function that follows.
    fn regions() -> Regions {
        let rows = [(1, 2..=4, 1..=30), (2, 5..=7, 1..=30), (3, 11..=12, 10..=20), (4, 41..=42, 40..=50)];
        let region = |(number, lines, function)| Region { number, lines, function };
        BTreeMap::from([("src/lib.rs".to_owned(), rows.map(region).to_vec())])
    }

    fn place(file: &str, line: usize, primary: bool) -> String {
        format!(
            "{{\"file_name\":\"{file}\",\"line_start\":{line},\"line_end\":{line},\"is_primary\":{primary},\"expansion\":null}}"
        )
    }

    fn culprits_of(spans: &[String], child: &[String]) -> Vec<usize> {
        let text = format!(
            "{{\"level\":\"error\",\"rendered\":\"x\",\"spans\":[{}],\
             \"children\":[{{\"level\":\"note\",\"spans\":[{}]}}]}}",
            spans.join(","),
            child.join(",")
        );
        culprits(&serde_json::from_str(&text).unwrap(), &regions()).into_iter().collect()
    }

    #[test]
    fn an_error_is_about_the_mutant_that_it_is_in_or_mentions_or_whose_function_it_is_in() {
        type Row<'a> = (&'a str, &'a [String], &'a [String], &'a [usize]);
        let lib = |line, primary| place("src/lib.rs", line, primary);
        let table: &[Row<'_>] = &[
            ("in it", &[lib(3, true), lib(6, false)], &[], &[1]),
            ("in two", &[lib(3, true), lib(42, true)], &[], &[1, 4]),
            ("mentioned", &[lib(25, true), lib(6, false)], &[], &[2]),
            ("mentioned in a note", &[lib(60, true)], &[lib(41, false)], &[4]),
            ("in the function", &[lib(25, true)], &[], &[1, 2]),
            ("in the inner function", &[lib(15, true)], &[], &[3]),
            ("a note in the function", &[lib(60, true)], &[lib(45, true)], &[4]),
            ("elsewhere", &[lib(60, true)], &[], &[]),
            ("in another file", &[place("src/other.rs", 3, true)], &[], &[]),
            ("nowhere", &[], &[], &[]),
        ];
        for (name, spans, child, want) in table {
            assert_eq!(culprits_of(spans, child), *want, "{name}");
        }
    }

    #[test]
    fn only_an_error_of_the_body_itself_is_about_the_mutant_without_its_switch() {
        let refused = |code: &str, line, primary| {
            let span = place("src/lib.rs", line, primary);
            let text = format!("{{\"level\":\"error\",\"code\":{code},\"spans\":[{span}]}}");
            refused(&serde_json::from_str(&text).unwrap(), &regions()).into_iter().collect::<Vec<_>>()
        };
        let none: [usize; 0] = [];
        let types = "{\"code\":\"E0308\",\"explanation\":null}";
        assert_eq!(refused(types, 3, true), [1]);
        assert_eq!(refused(types, 3, false), none);
        assert_eq!(refused(types, 25, true), none);
        assert_eq!(refused("{\"code\":\"E0015\"}", 3, true), none);
        assert_eq!(refused("null", 3, true), none);
    }

    #[test]
    fn an_error_in_a_macro_is_about_who_uses_it() {
        let used = place("src/lib.rs", 42, false);
        let inner = place("/std/macros.rs", 3, true).replace("null", &format!("{{\"span\":{used}}}"));
        assert_eq!(culprits_of(&[inner], &[]), [4]);
    }
}
