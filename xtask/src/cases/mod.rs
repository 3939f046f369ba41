//! `cargo xtask cases`: every numbered case of the lists (`cases.toml`) beside the tests that carry its number.

mod items;
mod list;
mod live;
mod report;
mod scan;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;

use lexopt::prelude::*;

use crate::lexer::Language;
use crate::workspace::Workspace;
use crate::{Result, Verdict};
use items::Source;
use list::{CaseList, LAWS};
use live::Program;
use report::{Carried, Comparison};
use scan::Mention;

#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    list: Option<String>,
    verbose: bool,
}

pub(crate) fn command(workspace: &Workspace, mut args: lexopt::Parser) -> Result<Verdict> {
    let mut options = Options::default();
    while let Some(arg) = args.next().map_err(|why| why.to_string())? {
        match arg {
            Long("list") => {
                let prefix = args.value().and_then(ValueExt::string).map_err(|why| why.to_string())?;
                options.list = Some(prefix.to_uppercase());
            }
            Long("verbose") | Short('v') => options.verbose = true,
            other => return Err(other.unexpected().to_string()),
        }
    }
    report(workspace, &options)
}

pub(crate) fn report(workspace: &Workspace, options: &Options) -> Result<Verdict> {
    let (text, verdict) = compare(workspace, options)?;
    // A reader such as `head` may close the pipe early; the verdict does not change.
    let _ = std::io::stdout().write_all(text.as_bytes());
    Ok(verdict)
}

/// Bad when a case is missing, when a test names a case that does not exist, or when it carries one that is marked as
/// not applicable.
fn compare(workspace: &Workspace, options: &Options) -> Result<(String, Verdict)> {
    let lists = lists(workspace)?;
    let Findings { carried, mut complaints, idle } = findings(workspace, &lists)?;
    let wanted = |list: &&CaseList| options.list.as_ref().is_none_or(|prefix| *prefix == list.prefix);
    let shown: Vec<&CaseList> = lists.iter().filter(wanted).collect();
    if shown.is_empty() {
        let known: Vec<_> = lists.iter().map(|list| list.prefix.as_str()).collect();
        return Err(format!("there is no such list; there are {}", known.join(", ")));
    }
    let mut text = report::header();
    let mut missing = 0;
    for list in shown {
        let comparison = Comparison::new(list, &carried);
        let begun = list.sections.iter().any(|section| section.owned);
        text += &comparison.render(begun || options.list.is_some(), options.verbose);
        complaints.extend(comparison.contradictions());
        missing += comparison.missing().len();
    }
    if options.list.is_none() {
        text += &report::laws(&carried);
    }
    for line in complaints.iter().chain(&idle) {
        let _ = writeln!(text, "{line}");
    }
    let _ = writeln!(text, "missing {missing}, misused {}, not counted {}", complaints.len(), idle.len());
    Ok((text, if missing == 0 && complaints.is_empty() { Verdict::Good } else { Verdict::Bad }))
}

/// A list is in the folder of what it is about: `clouds/binarylane/cases.toml`.
fn is_list(file: &str) -> bool {
    file.ends_with("/cases.toml")
}

fn lists(workspace: &Workspace) -> Result<Vec<CaseList>> {
    let mut lists: Vec<CaseList> = Vec::new();
    for file in workspace.files("toml")?.iter().filter(|name| is_list(name)) {
        let list = CaseList::parse(&workspace.read(file)?)
            .map_err(|mistakes| format!("{file}: {}", mistakes.join(&format!("\n{file}: "))))?;
        if lists.iter().any(|other| other.prefix == list.prefix) {
            return Err(format!("{file}: another list has the prefix {} already", list.prefix));
        }
        lists.push(list);
    }
    Ok(lists)
}

/// What the sources say about the cases.
#[derive(Debug, Default)]
struct Findings {
    carried: Carried,
    /// Numbers that do not exist, and pointers that lead nowhere.
    complaints: Vec<String>,
    /// Numbers on tests of code that only tests use.
    idle: Vec<String>,
}

fn findings(workspace: &Workspace, lists: &[CaseList]) -> Result<Findings> {
    let mut files = Vec::new();
    let mut test_modules = BTreeSet::new();
    for (extension, language) in [("rs", Language::Rust), ("go", Language::Go)] {
        for path in workspace.files(extension)? {
            let source = workspace.read(&path)?;
            if language == Language::Rust {
                test_modules.extend(scan::test_modules(&path, &source));
            }
            files.push((path, source, language));
        }
    }
    let rust = files.iter().filter(|(_, _, language)| *language == Language::Rust);
    let program = Program::new(
        rust.map(|(path, source, _)| Source::read(path, source, scan::scope(path, &test_modules))).collect(),
    );
    let laws: Vec<String> = (1..=LAWS).map(|law| format!("L{law}")).collect();
    let prefixes: Vec<&str> =
        lists.iter().map(|list| &list.prefix).chain(&laws).map(String::as_str).collect();
    let mut findings = Findings::default();
    for (path, source, language) in &files {
        for found in scan::mentions(source, *language, scan::scope(path, &test_modules), &prefixes) {
            let known = laws.contains(&found.prefix)
                || lists
                    .iter()
                    .any(|list| list.prefix == found.prefix && (1..=list.len()).contains(&found.number));
            findings.note(&program, path, found, known);
        }
    }
    for list in lists {
        for (case, place) in list.shown_elsewhere() {
            if program.has_test(place) {
                findings.carried.entry((list.prefix.clone(), case)).or_default().push(place.to_owned());
            } else {
                findings.complaints.push(format!("{}-{case}: shown_by {place:?} leads nowhere", list.prefix));
            }
        }
    }
    Ok(findings)
}

impl Findings {
    fn note(&mut self, program: &Program<'_>, path: &str, found: Mention, known: bool) {
        let Mention { prefix, number, line, carried } = found;
        let place = format!("{path}:{line}");
        if !known {
            self.complaints.push(format!("{place}: there is no case {prefix}-{number}"));
        } else if carried {
            let unused = program.hangs_on(path, line);
            if unused.is_empty() {
                let places = self.carried.entry((prefix, number)).or_default();
                if !places.contains(&place) {
                    places.push(place);
                }
            } else {
                let unused = unused.join(", ");
                self.idle.push(format!("{place}: {prefix}-{number} does not count: only tests use {unused}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Sample;

    #[test]
    fn the_committed_lists_are_sound() {
        let lists = lists(&Workspace::find().unwrap()).unwrap();
        let sizes: Vec<_> = lists.iter().map(|list| (list.prefix.as_str(), list.len())).collect();
        let want = [("BL", 154), ("BB", 185), ("CL", 99), ("CS", 160), ("FW", 358), ("RF", 227)];
        assert_eq!(sizes, want);
    }

    const LIST: &str = r#"
        prefix = "ZZ"
        title = "made up"
        section = [{ id = "1", title = "all", cases = "1-3", owned = true }]
        not_applicable.3 = "cannot arise"
    "#;

    #[test]
    fn the_verdict_follows_from_the_tests_of_the_tree() {
        let table = [
            ("good", "tests/a.rs", r#"#[test] fn zz_1() { assert!(f(), "ZZ-2") }"#, Verdict::Good),
            ("a case is missing", "tests/a.rs", r#""ZZ-1""#, Verdict::Bad),
            ("only a comment", "tests/a.rs", "/* ZZ-1 ZZ-2 */", Verdict::Bad),
            ("no test code", "src/a.rs", r#""ZZ-1" "ZZ-2""#, Verdict::Bad),
            ("no such case", "tests/a.rs", r#""ZZ-1" "ZZ-2" "ZZ-4""#, Verdict::Bad),
            ("no such case, in a comment", "tests/a.rs", "\"ZZ-1\" \"ZZ-2\" // ZZ-4", Verdict::Bad),
            ("it cannot arise", "tests/a.rs", r#""ZZ-1" "ZZ-2" "ZZ-3""#, Verdict::Bad),
            ("a Go test", "e2e/a_test.go", "`ZZ-1 ZZ-2`", Verdict::Good),
        ];
        for (name, file, text, want) in table {
            let sample = Sample::new(&format!("cases {name}"), &[("zz/cases.toml", LIST), (file, text)]);
            let (text, verdict) = compare(&sample.workspace, &Options::default()).unwrap();
            assert_eq!(verdict, want, "{name}: {text}");
        }
    }

    #[test]
    fn a_test_module_in_a_file_of_its_own_counts() {
        // The id of the law is put together, or else this very test would carry it.
        let tests = format!("\"ZZ-1 ZZ-2 L{}-7\"", 2);
        let files = [
            ("zz/cases.toml", LIST),
            ("src/node.rs", "#[cfg(test)] mod cases;"),
            ("src/node/cases.rs", tests.as_str()),
        ];
        let sample = Sample::new("own file", &files);
        let (text, verdict) = compare(&sample.workspace, &Options::default()).unwrap();
        assert_eq!(verdict, Verdict::Good, "{text}");
        assert!(text.contains("laws with tests: L2 (1)\nlaws without: L1 L3 "), "{text}");
        assert!(text.ends_with("missing 0, misused 0, not counted 0\n"), "{text}");
    }

    #[test]
    fn a_case_counts_only_if_the_program_uses_what_is_tested() {
        let tests = "#[cfg(test)] mod tests { use super::*; fn t() { assert!(f(), \"ZZ-1 ZZ-2\") } }";
        let lib = format!("pub fn f() -> bool {{ true }}\n{tests}");
        let user = "use crate::a::f;\npub fn main() { f(); }";
        let run = |name: &str, files: &[(&str, &str)]| {
            compare(&Sample::new(name, files).workspace, &Options::default()).unwrap()
        };
        let module = ("crates/a/src/a.rs", lib.as_str());
        let (_, verdict) = run("used", &[("zz/cases.toml", LIST), module, ("crates/a/src/main.rs", user)]);
        assert_eq!(verdict, Verdict::Good);
        let (text, verdict) = run("unused", &[("zz/cases.toml", LIST), module]);
        assert_eq!(verdict, Verdict::Bad);
        assert!(text.contains("crates/a/src/a.rs:2: ZZ-1 does not count: only tests use f\n"), "{text}");
        assert!(text.ends_with("missing 2, misused 0, not counted 2\n"), "{text}");
    }

    #[test]
    fn a_case_that_is_shown_elsewhere_points_at_a_test() {
        let list = format!("{LIST}\n[shown_by]\n1-2 = \"tests/a.rs::the_whole_program_starts\"\n");
        let run = |name: &str, test: &str| {
            let sample = Sample::new(name, &[("zz/cases.toml", list.as_str()), ("tests/a.rs", test)]);
            compare(&sample.workspace, &Options::default()).unwrap()
        };
        let (text, verdict) = run("shown", "#[test] fn the_whole_program_starts() {}");
        assert_eq!(verdict, Verdict::Good, "{text}");
        let (text, verdict) = run("not shown", "#[test] fn something_else() {}");
        assert_eq!(verdict, Verdict::Bad);
        assert!(
            text.contains("ZZ-1: shown_by \"tests/a.rs::the_whole_program_starts\" leads nowhere"),
            "{text}"
        );
    }

    #[test]
    fn lists_that_clash_and_lists_that_are_not_there_are_named() {
        let sample = Sample::new("twice", &[("a/cases.toml", LIST), ("b/cases.toml", LIST)]);
        let why = compare(&sample.workspace, &Options::default()).unwrap_err();
        assert!(why.contains("b/cases.toml") && why.contains("ZZ"), "{why}");
        let sample = Sample::new("other list", &[("a/cases.toml", LIST)]);
        let other = Options { list: Some("YY".to_owned()), verbose: false };
        let why = compare(&sample.workspace, &other).unwrap_err();
        assert!(why.contains("there are ZZ"), "{why}");
    }

    #[test]
    fn no_test_or_comment_names_a_case_that_does_not_exist() {
        let workspace = Workspace::find().unwrap();
        let findings = findings(&workspace, &lists(&workspace).unwrap()).unwrap();
        assert_eq!(findings.complaints, Vec::<String>::new());
    }
}
