use super::*;

const LISTS: &[&str] = &["ZZ", "YY"];

fn carried(source: &str, scope: Scope) -> Vec<u32> {
    let found = mentions(source, Language::Rust, scope, LISTS);
    found.into_iter().filter(|mention| mention.carried).map(|mention| mention.number).collect()
}

#[test]
fn ids_stand_alone_in_a_text() {
    let table: &[(&str, &[u32])] = &[
        ("ZZ-17 a node goes", &[17]),
        ("ZZ-17a and ZZ-17b, rows of one case", &[17, 17]),
        ("(ZZ-1), ZZ-2/ZZ-3: \"ZZ-4\"", &[1, 2, 3, 4]),
        ("AZZ-17 ZZ-17th ZZ-x ZZ- ZZ17 zz-17 A-ZZ-17", &[]),
        ("ZZ-99999999999999999999", &[]),
    ];
    for (text, want) in table {
        let got: Vec<u32> = ids(text, LISTS).into_iter().map(|(_, number)| number).collect();
        assert_eq!(got, *want, "{text}");
    }
}

#[test]
fn ids_in_names_of_functions_count_and_other_words_do_not() {
    let source = "fn zz_17_a_node_goes() { let zz_18 = 0; } fn a_zz_19() {} fn buzz_20() {} fn zz_x_21() {}";
    assert_eq!(carried(source, Scope::Whole), [17, 19]);
}

#[test]
fn only_test_code_carries() {
    let table: &[(&str, Scope, &str, &[u32])] = &[
        ("a file of tests", Scope::Whole, r#"const A: &str = "ZZ-1";"#, &[1]),
        ("a comment proves nothing", Scope::Whole, "// ZZ-1\n/* ZZ-2 */ /// ZZ-3\n", &[]),
        ("library code", Scope::Marked, r#"const A: &str = "ZZ-1";"#, &[]),
        ("a marked module", Scope::Marked, r#"#[cfg(test)] mod tests { fn a() { "ZZ-1" } }"#, &[1]),
        (
            "before and after the marked module",
            Scope::Marked,
            r#"const A: &str = "ZZ-1"; #[cfg(test)] mod tests { "ZZ-2" } const B: &str = "ZZ-3";"#,
            &[2],
        ),
        (
            "other attributes between",
            Scope::Marked,
            r#"#[cfg(test)] #[allow(dead_code)] mod tests { "ZZ-1" } fn f() { "ZZ-2" }"#,
            &[1],
        ),
        (
            "a marked constant with brackets",
            Scope::Marked,
            r#"#[cfg(test)] const A: [&str; 2] = ["ZZ-1", "ZZ-2"]; const B: &str = "ZZ-3";"#,
            &[1, 2],
        ),
        ("the whole file is marked", Scope::Marked, r#"#![cfg(test)] const A: &str = "ZZ-1";"#, &[1]),
        ("tests of one feature", Scope::Marked, r#"#[cfg(all(test, unix))] mod t { "ZZ-1" }"#, &[1]),
        ("not in tests", Scope::Marked, r#"#[cfg(not(test))] mod t { "ZZ-1" }"#, &[]),
        ("another attribute", Scope::Marked, r#"#[derive(test)] mod t { "ZZ-1" }"#, &[]),
        ("a brace in a string", Scope::Marked, r#"#[cfg(test)] mod t { "}" ; "ZZ-1" } "ZZ-2""#, &[1]),
        (
            "two marked items",
            Scope::Marked,
            r#"#[cfg(test)] fn a() { "ZZ-1" } #[cfg(test)] fn b() { "YY-2" }"#,
            &[1, 2],
        ),
        ("no test file at all", Scope::Nothing, r#""ZZ-1""#, &[]),
        ("a module that never ends", Scope::Marked, r#"#[cfg(test)] mod t { "ZZ-1" "#, &[1]),
    ];
    for (name, scope, source, want) in table {
        assert_eq!(carried(source, *scope), *want, "{name}");
    }
}

#[test]
fn mentions_keep_their_line_and_comments_are_mentions() {
    let source = "// see ZZ-9\n#[cfg(test)]\nmod t {\n    fn zz_2() { \"YY-3\" }\n}\n";
    let got: Vec<_> = mentions(source, Language::Rust, Scope::Marked, LISTS)
        .into_iter()
        .map(|mention| (mention.prefix, mention.number, mention.line, mention.carried))
        .collect();
    let want = [("ZZ", 9, 1, false), ("ZZ", 2, 4, true), ("YY", 3, 4, true)];
    assert_eq!(got, want.map(|(prefix, number, line, carried)| (prefix.to_owned(), number, line, carried)));
}

#[test]
fn go_tests_carry_numbers_too() {
    let source =
        "package e2e\n// ZZ-1\nfunc Test_ZZ_2(t *testing.T) { t.Run(`ZZ-3`, f); t.Run(\"ZZ-4\", f) }";
    let found = mentions(source, Language::Go, Scope::Whole, LISTS);
    let got: Vec<_> = found.iter().map(|mention| (mention.number, mention.carried)).collect();
    assert_eq!(got, [(1, false), (2, true), (3, true), (4, true)]);
}

#[test]
fn the_place_of_a_file_says_how_much_of_it_is_tests() {
    let modules = BTreeSet::from(["crates/a/src/node/cases".to_owned()]);
    let table = [
        ("crates/a/tests/node.rs", Scope::Whole),
        ("crates/a/tests/node/mod.rs", Scope::Whole),
        ("crates/a/src/node/tests.rs", Scope::Whole),
        ("crates/a/src/node/tests/labels.rs", Scope::Whole),
        ("crates/a/src/node/cases.rs", Scope::Whole),
        ("crates/a/src/node/cases/labels.rs", Scope::Whole),
        ("crates/a/src/node/cases_of_law.rs", Scope::Marked),
        ("crates/a/src/node.rs", Scope::Marked),
        ("crates/tests_of_a/src/node.rs", Scope::Marked),
        ("e2e/node_test.go", Scope::Whole),
        ("e2e/tests/main.go", Scope::Nothing),
        ("build.rs", Scope::Marked),
    ];
    for (path, want) in table {
        assert_eq!(scope(path, &modules), want, "{path}");
    }
}

#[test]
fn test_modules_in_files_of_their_own_are_found() {
    let table: &[(&str, &str, &[&str])] = &[
        ("src/node.rs", "#[cfg(test)] mod cases;", &["src/node/cases"]),
        ("src/lib.rs", "#[cfg(test)]\nmod cases;", &["src/cases"]),
        ("src/node/mod.rs", "#[cfg(test)] mod cases;", &["src/node/cases"]),
        ("src/node.rs", "#[cfg(test)] #[path = \"node_tests.rs\"] mod tests;", &["src/node_tests"]),
        ("src/node.rs", "mod cases; #[cfg(test)] mod tests { mod deeper; }", &[]),
    ];
    for (path, source, want) in table {
        assert_eq!(test_modules(path, source), *want, "{path}: {source}");
    }
}
