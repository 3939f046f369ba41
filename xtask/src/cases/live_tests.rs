use super::*;
use crate::cases::scan::Scope;

/// The names that keep the test in `test` (a file and the text on the line in question) from counting.
fn hangs(files: &[(&str, &str)], path: &str, text: &str) -> Vec<String> {
    let scope = |path: &str| if path.contains("/tests") { Scope::Whole } else { Scope::Marked };
    let sources = files.iter().map(|(path, source)| Source::read(path, source, scope(path))).collect();
    let (_, source) = files.iter().find(|(name, _)| *name == path).unwrap();
    let line = source.lines().position(|line| line.contains(text)).unwrap() + 1;
    Program::new(sources).hangs_on(path, u32::try_from(line).unwrap())
}

/// A module with one unit test, and a program beside it.
fn unit(module: &str, test: &str, program: &str) -> Vec<String> {
    let module = format!("{module}\n#[cfg(test)]\nmod tests {{\n{test}\n}}\n");
    hangs(&[("crates/a/src/m.rs", &module), ("crates/a/src/lib.rs", program)], "crates/a/src/m.rs", "CASE")
}

#[test]
fn what_the_program_calls_counts() {
    let module = "pub fn f() {}";
    let test = "fn t() { f(); /* */ \"CASE\" }";
    let programs = [
        ("called", "fn g() { m::f() }", true),
        ("handed on as a value", "fn g() { list.map(f) }", true),
        ("named in an attribute", "#[serde(default = \"m::f\")] fn g() {}", true),
        ("only imported", "pub use m::f;", false),
        ("only in a comment", "// f() is fine", false),
        ("a variable", "fn g() { let f = 1; }", false),
        ("a field", "struct S { f: u8 }", false),
        ("a method of another type", "fn g() { x.f() }", false),
        ("only in tests", "#[cfg(test)] mod tests { fn g() { f() } }", false),
    ];
    for (name, program, used) in programs {
        let program = format!("{program}\nfn main() {{ g(); }}");
        assert_eq!(unit(module, test, &program).is_empty(), used, "{name}");
    }
}

#[test]
fn what_unused_code_calls_is_unused() {
    let module = "pub fn f() { deep() }\nfn deep() {}\nfn again() { again() }";
    assert_eq!(unit(module, "fn t() { deep(); \"CASE\" }", ""), ["deep"]);
    assert_eq!(unit(module, "fn t() { again(); \"CASE\" }", ""), ["again"]);
    assert!(unit(module, "fn t() { deep(); \"CASE\" }", "fn main() { m::f() }").is_empty());
}

#[test]
fn types_and_methods_count_too() {
    let module = "pub struct S;\nimpl S { pub fn new() -> S { S } pub fn seldom(&self) {} }\n\
                  impl Clone for S { fn clone(&self) -> S { S } }";
    let test = "fn t() { S::new(); \"CASE\" }";
    assert_eq!(unit(module, test, ""), ["S", "new"]);
    assert!(unit(module, test, "fn main() { m::S::new(); }").is_empty());
    let seldom = "fn t() { S::new().seldom(); \"CASE\" }";
    assert_eq!(unit(module, seldom, "fn main() { m::S::new(); }"), ["seldom"]);
    assert!(unit(module, "fn t(s: S) { s.clone(); \"CASE\" }", "fn main() { m::S::new(); }").is_empty());
}

#[test]
fn a_test_is_followed_into_its_helpers_and_tables() {
    let module = "pub fn f() {}\npub fn g() {}";
    let program = "fn main() { m::g() }";
    assert_eq!(unit(module, "fn help() { f() }\nfn t() { help(); \"CASE\" }", program), ["f"]);
    assert_eq!(unit(module, "const T: &[&str] = &[\"CASE\"];\nfn t() { f(); T }", program), ["f"]);
    assert!(unit(module, "fn other() { f() }\nfn t() { g(); \"CASE\" }", program).is_empty());
}

#[test]
fn tests_of_a_public_api_need_one_thing_in_use() {
    let lib = ("crates/a/src/lib.rs", "pub fn f() {}\npub fn g() {}\n");
    let user = ("crates/b/src/main.rs", "fn main() { a::g() }");
    let both = ("crates/a/tests/t.rs", "fn t() { f(); g(); \"CASE\" }");
    assert!(hangs(&[lib, user, both], "crates/a/tests/t.rs", "CASE").is_empty());
    let one = ("crates/a/tests/t.rs", "fn t() { f(); \"CASE\" }");
    assert_eq!(hangs(&[lib, user, one], "crates/a/tests/t.rs", "CASE"), ["f"]);
    let whole = ("testing/e2e/tests/t.rs", "fn t() { f(); \"CASE\" }");
    assert!(hangs(&[lib, user, whole], "testing/e2e/tests/t.rs", "CASE").is_empty());
}

#[test]
fn calls_from_simulations_do_not_count_and_a_crate_means_its_own() {
    let lib = ("crates/a/src/m.rs", "pub fn f() {}\n#[cfg(test)]\nmod tests { fn t() { f(); \"CASE\" } }\n");
    let path = "crates/a/src/m.rs";
    for user in ["testing/simulation/src/lib.rs", "clouds/c/sim/src/lib.rs"] {
        assert_eq!(hangs(&[lib, (user, "fn main() { a::f() }")], path, "CASE"), ["f"], "{user}");
    }
    assert!(hangs(&[lib, ("xtask/src/main.rs", "fn main() { a::f() }")], path, "CASE").is_empty());
    let own = ("clouds/c/src/lib.rs", "fn f() {}\nfn main() { f() }");
    assert_eq!(hangs(&[lib, own], path, "CASE"), ["f"]);
}

#[test]
fn the_module_under_test_is_found_from_the_path() {
    let table = [
        ("crates/a/src/m.rs", "crates/a/src/m.rs"),
        ("crates/a/src/m/tests.rs", "crates/a/src/m.rs crates/a/src/m/"),
        ("crates/a/src/m/tests/x.rs", "crates/a/src/m.rs crates/a/src/m/"),
        ("crates/a/src/m_tests.rs", "crates/a/src/m.rs crates/a/src/m_tests.rs"),
        ("crates/a/tests/x/main.rs", "crates/a/src/"),
    ];
    for (path, want) in table {
        assert_eq!(module_of(path).join(" "), want, "{path}");
    }
}
