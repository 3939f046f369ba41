//! Whatever stands in the annotations: no panic, the same answer twice, each wrong key reported exactly once.

use cloudberth_core::annotation::{Annotations, Table};
use proptest::prelude::*;

use super::ALL;

/// The keys that a table documents: everything between the first pair of backticks and what follows "or".
fn documented(table: &Table) -> Vec<String> {
    let cell = |line: &str| line.split(" | ").next().unwrap_or_default().to_owned();
    let keys = |cell: String| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    table.to_markdown().lines().skip(2).map(cell).flat_map(keys).collect()
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[0-9+\\-]{0,22}",
        "[a-z,/ ]{0,12}",
        "\\[(\"[a-z0-9./]{0,9}\",?){0,3}\\]?",
        "\\{(\"[a-zA-Z]{0,8}\":(null|1|\"x\"),?){0,3}\\}?",
        Just("null".to_owned()),
        Just(String::new()),
    ]
}

/// A declared key, one with a slip, or anything.
fn key(keys: Vec<String>) -> impl Strategy<Value = String> {
    let slip = (proptest::sample::select(keys.clone()), any::<prop::sample::Index>(), any::<char>())
        .prop_map(|(mut key, at, with): (String, prop::sample::Index, char)| {
            let at = at.index(key.len());
            key.replace_range(at..=at, with.encode_utf8(&mut [0; 4]));
            key
        });
    prop_oneof![4 => proptest::sample::select(keys), 2 => slip, 1 => any::<String>()]
}

fn case() -> impl Strategy<Value = (&'static str, &'static Table, Annotations)> {
    proptest::sample::select(ALL.to_vec()).prop_flat_map(|(prefix, table)| {
        let pairs = prop::collection::btree_map(key(documented(table)), text(), 0..12);
        (Just(prefix), Just(table), pairs)
    })
}

/// How often a key is complained about.
fn reports(table: &Table, set: &Annotations, key: &str) -> usize {
    let parsed = table.parse(set);
    let notice = format!("{key}: ");
    parsed.refused.iter().filter(|r| r.field == key).count()
        + parsed.notices.iter().filter(|n| n.message.starts_with(&notice)).count()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn parsing_is_deterministic_and_reports_each_wrong_key_once((prefix, table, set) in case()) {
        let (first, second) = (table.parse(&set), table.parse(&set));
        prop_assert_eq!(&first.refused, &second.refused);
        prop_assert_eq!(&first.notices, &second.notices);
        let known = documented(table);
        let mut total = 0;
        for (key, value) in &set {
            let alone: Annotations = [(key.clone(), value.clone())].into();
            let times = reports(table, &set, key);
            if !known.contains(key) {
                prop_assert_eq!(times, usize::from(key.starts_with(prefix)), "{}: only ours are noticed", key);
            } else if table.parse(&alone).refused.is_empty() {
                prop_assert!(times <= 1, "{} is reported {} times", key, times);
            } else {
                prop_assert_eq!(times, 1, "{}: a wrong value is not hidden by another key", key);
            }
            total += times;
        }
        prop_assert_eq!(total, first.refused.len() + first.notices.len(), "nothing else is reported");
        for refusal in &first.refused {
            prop_assert!(set.contains_key(&refusal.field) && refusal.message.len() < 700, "{}", refusal);
        }
    }
}
