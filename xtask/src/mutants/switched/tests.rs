//! The whole way, with a small crate.

use super::*;
use crate::mutants::listed::sample;
use crate::workspace::Sample;

const LIB: &str = r#"#![deny(unused_variables)]
pub fn add(a: u8, b: u8) -> u8 { a + b }
pub fn odd() -> impl Iterator<Item = u8> { [1, 3].into_iter() }
pub fn lonely(a: u8) -> u8 { a + 1 }
pub const fn twice(a: u8) -> u8 { a * 2 }
pub const SIX: u8 = 3 + 3;

#[cfg(test)]
mod tests {
    use super::*;
    #[test] fn adds() { assert_eq!(add(1, 2), 3); }
    #[test] fn counts() { assert_eq!((odd().count(), twice(3), SIX), (2, 6, 6)); }
    #[test] #[ignore] fn broken() { panic!("never runs"); }
}
"#;

const MAIN: &str = "fn word() -> &'static str { \"good\" }\nfn main() { println!(\"{}\", word()); }\n";

const IT: &str = r#"#[test] fn says() {
    let ran = std::process::Command::new(env!("CARGO_BIN_EXE_sample")).env_clear().output().unwrap();
    assert_eq!(ran.stdout, b"good\n");
}
"#;

#[test]
fn every_kind_of_mutant_comes_to_its_end() {
    let lib =
        |first: &str, last: &str, what: &str, with: &str| sample(LIB, Some((first, last)), first, what, with);
    let main = Mutant {
        file: "src/main.rs".to_owned(),
        ..sample(MAIN, Some(("fn word", "}")), "fn word", "\"good\"", "\"bad\"")
    };
    let rows = [
        (lib("pub fn add", "}", "+", "-"), Fate::Caught),
        (lib("pub fn add", "}", "a + b", "b"), Fate::Caught),
        (lib("pub fn add", "}", "a + b", "b + a"), Fate::Missed),
        (lib("pub fn add", "}", "a + b", "()"), Fate::Unviable),
        (lib("pub fn odd", "}", "[1, 3].into_iter()", "std::iter::empty()"), Fate::Caught),
        (lib("pub fn odd", "}", "[1, 3].into_iter()", "1"), Fate::Unviable),
        (lib("pub fn lonely", "}", "+", "*"), Fate::Missed),
        (lib("pub const fn twice", "}", "*", "+"), Fate::Caught),
        (sample(LIB, None, "pub const SIX", "+", "*"), Fate::Caught),
        (main, Fate::Caught),
    ];
    let files = [
        ("Cargo.toml", "[package]\nname = \"sample\"\nedition = \"2024\"\n[workspace]\n"),
        ("src/lib.rs", LIB),
        ("src/main.rs", MAIN),
        ("tests/it.rs", IT),
    ];
    let copy = Sample::new("mutants-switched", &files);
    let into = copy.workspace.path("target/mutants");
    let tree = Tree::of(&copy.workspace, &into, files.iter().map(|(name, _)| *name)).unwrap();
    let compiler =
        Compiler { workspace: &copy.workspace, package: "sample".to_owned(), target: into.join("build") };
    let setting = Setting { environment: environment(), jobs: 2, notes: into.join("reached") };
    let roots = ["src/lib.rs", "src/main.rs"].map(str::to_owned);
    let mutants: BTreeMap<usize, &Mutant> = rows.iter().map(|(mutant, _)| mutant).enumerate().collect();

    let built = compile::all(&compiler, &tree, &roots, &mutants).unwrap();
    assert_eq!(built.kept, BTreeSet::from([0, 1, 2, 6, 9]));
    assert_eq!(built.refused, BTreeSet::from([3]));

    let mut score = Score::default();
    try_package(&compiler, &tree, &roots, &setting, &mutants, &mut score).unwrap();
    let mut want = Score::default();
    for (mutant, fate) in &rows {
        want.put(&mutant.name, *fate);
    }
    score.sort();
    want.sort();
    assert_eq!(score, want);
    assert_eq!(
        tree.original("src/lib.rs").unwrap(),
        std::fs::read_to_string(tree.root.join("src/lib.rs")).unwrap()
    );
}

#[test]
fn what_fails_with_nothing_broken_is_an_error() {
    let table = [
        ("#[test] fn bad() { panic!(\"bad\"); }\n", "fail before anything is broken"),
        ("fn bad() -> u8 { true }\n", "no mutant explains why"),
    ];
    for (lib, want) in table {
        let manifest = "[package]\nname = \"sample\"\nedition = \"2024\"\n[workspace]\n";
        let copy = Sample::new("mutants-failing", &[("Cargo.toml", manifest), ("src/lib.rs", lib)]);
        let into = copy.workspace.path("target/mutants");
        let tree = Tree::of(&copy.workspace, &into, ["Cargo.toml", "src/lib.rs"].into_iter()).unwrap();
        let target = into.join("build");
        let compiler = Compiler { workspace: &copy.workspace, package: "sample".to_owned(), target };
        let setting = Setting { environment: environment(), jobs: 1, notes: into.join("reached") };
        let roots = ["src/lib.rs".to_owned()];
        let tried = try_package(&compiler, &tree, &roots, &setting, &BTreeMap::new(), &mut Score::default());
        let why = tried.unwrap_err();
        assert!(why.contains(want), "{why}");
    }
}
