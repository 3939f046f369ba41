//! Samples that break each rule, and the project itself, which breaks none.

use super::*;
use crate::metadata::Wanted;
use crate::workspace::Workspace;

const RULES: &str = r#"
[graph]
all-features = true
targets = []
[licenses]
version = 2
confidence-threshold = 0.9
allow = ["MIT"]
unused-allowed-license = "allow"
private = { ignore = false }
[bans]
multiple-versions = "deny"
multiple-versions-include-dev = false
wildcards = "deny"
allow-wildcard-paths = true
skip = []
deny = [{ crate = "openssl-sys", reason = "one TLS stack" }]
[sources]
unknown-registry = "deny"
unknown-git = "deny"
"#;

fn package(name: &str, version: &str) -> Package {
    Package {
        id: format!("{name}@{version}"),
        name: name.to_owned(),
        version: version.to_owned(),
        license: Some("MIT".to_owned()),
        source: Some(PUBLIC.to_owned()),
        ..Package::default()
    }
}

/// A program that uses these, the last of them in its tests only.
fn sample(mut packages: Vec<Package>) -> (Metadata, Graph) {
    let key = |package: &Package| (package.name.clone(), package.version.clone());
    let root = Package { source: None, ..package("program", "1.0.0") };
    let used = packages.iter().take(packages.len().saturating_sub(1)).map(key).collect::<BTreeSet<_>>();
    let mut graph: Graph = used.iter().map(|key| (key.clone(), BTreeSet::new())).collect();
    graph.insert(key(&root), used);
    packages.push(root);
    (Metadata { packages, ..Metadata::default() }, graph)
}

fn check(rules: &str, packages: Vec<Package>) -> Vec<String> {
    let (metadata, graph) = sample(packages);
    problems(&Rules::parse(rules).unwrap(), &metadata, &used(&metadata, &graph).unwrap())
}

#[test]
fn each_rule_names_the_crate_and_what_to_do() {
    let gpl = Package { license: Some("GPL-3.0".to_owned()), ..package("a", "1.0.0") };
    let without = Package { license: None, ..package("a", "1.0.0") };
    let git = Package { source: Some("git+https://example.com/a".to_owned()), ..package("a", "1.0.0") };
    let test_only = || package("t", "1.0.0");
    let table: Vec<(&str, Vec<Package>, Option<&str>)> = vec![
        ("fine", vec![package("a", "1.0.0"), test_only()], None),
        ("licence", vec![gpl.clone(), test_only()], Some("a 1.0.0 (by program) is under GPL-3.0")),
        ("no licence", vec![without, test_only()], Some("a 1.0.0 (by program) names no licence")),
        ("source", vec![git, test_only()], Some("comes from git+https://example.com/a")),
        ("banned", vec![package("openssl-sys", "0.9.1"), test_only()], Some("is banned: one TLS stack")),
        (
            "twice",
            vec![package("a", "1.0.0"), package("a", "2.1.0"), test_only()],
            Some("a is there in several versions (1.0.0 by program; 2.1.0 by program)"),
        ),
        ("of tests only", vec![package("a", "1.0.0"), package("a", "2.1.0")], None),
        ("a test may have any licence", vec![package("b", "1.0.0"), gpl], None),
    ];
    for (name, packages, expected) in table {
        let found = check(RULES, packages);
        match expected {
            None => assert_eq!(found, Vec::<String>::new(), "{name}"),
            Some(text) => assert!(found.len() == 1 && found[0].contains(text), "{name}: {found:?}"),
        }
    }
}

#[test]
fn an_exception_holds_while_it_is_needed() {
    let rules = RULES.replace("skip = []", "skip = [{ crate = \"a@1\", reason = \"b\" }]");
    let twice = vec![package("a", "1.0.0"), package("a", "2.1.0"), package("t", "1.0.0")];
    assert_eq!(check(&rules, twice), Vec::<String>::new());
    let three = ["1.0.0", "2.1.0", "11.0.0"].map(|version| package("a", version));
    let found = check(&rules, three.into_iter().chain([package("t", "1.0.0")]).collect());
    assert!(found.len() == 1 && found[0].contains("2.1.0") && found[0].contains("11.0.0"), "{found:?}");
    let over = check(&rules, vec![package("a", "1.0.0"), package("t", "1.0.0")]);
    assert!(over.len() == 1 && over[0].contains("the exception for a@1 in [bans] skip"), "{over:?}");
}

#[test]
fn any_version_is_not_a_version() {
    let (mut metadata, _) = sample(vec![]);
    let wanted = |name: &str, path: Option<&str>| Wanted {
        name: name.to_owned(),
        req: "*".to_owned(),
        path: path.map(str::to_owned),
        kind: None,
    };
    metadata.packages[0].dependencies = vec![wanted("any", None), wanted("ours", Some("/ours"))];
    assert_eq!(wildcards(&metadata), ["program takes any version of any: name one"]);
}

#[test]
fn a_setting_that_is_not_honoured_is_refused() {
    for (from, to) in [
        ("wildcards = \"deny\"", "wildcards = \"warn\""),
        ("skip = []", "skip = []\nskip-tree = []"),
        ("ignore = false", "ignore = true"),
        ("unknown-git = \"deny\"", "unknown-git = \"deny\"\nallow-git = []"),
    ] {
        assert!(RULES.contains(from), "{from}");
        let why = Rules::parse(&RULES.replace(from, to)).unwrap_err();
        assert!(why.starts_with("deny.toml: "), "{why}");
    }
}

#[test]
fn this_project_keeps_its_rules() {
    assert_eq!(stage(&Workspace::find().unwrap()).unwrap().problems, Vec::<String>::new());
}
