//! Whether what a test tests is used by the program. A case that hangs on code that only tests call proves nothing
//! about the program.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::items::{Item, Sort, Source};

/// Items are known by the file and their place in it.
type Id = (usize, usize);

/// All sources, and the items that nothing but tests uses.
pub(crate) struct Program<'a> {
    sources: Vec<Source<'a>>,
    unused: BTreeSet<Id>,
}

impl<'a> Program<'a> {
    pub(crate) fn new(sources: Vec<Source<'a>>) -> Self {
        let mut program = Self { sources, unused: BTreeSet::new() };
        let uses = program.uses();
        // Who is used by unused items alone is unused as well.
        loop {
            let is_used = |id: &Id| {
                uses.get(id)
                    .is_some_and(|users| users.iter().any(|around| around.is_disjoint(&program.unused)))
            };
            let unused: BTreeSet<Id> = program.shipped_items().filter(|id| !is_used(id)).collect();
            if unused == program.unused {
                return program;
            }
            program.unused = unused;
        }
    }

    fn shipped_items(&self) -> impl Iterator<Item = Id> {
        let shipped = self.sources.iter().enumerate().filter(|(_, source)| is_shipped(&source.path));
        shipped.flat_map(|(file, source)| {
            let items =
                source.items.iter().enumerate().filter(|(_, item)| !item.in_tests && item.name != "main");
            items.map(move |(at, _)| (file, at))
        })
    }

    /// For each item, the places outside of tests that name it: each as the items around that place.
    fn uses(&self) -> BTreeMap<Id, Vec<BTreeSet<Id>>> {
        let mut by_name: BTreeMap<&str, Vec<Id>> = BTreeMap::new();
        for id in self.shipped_items() {
            by_name.entry(self.name(id)).or_default().push(id);
        }
        let mut uses: BTreeMap<Id, Vec<BTreeSet<Id>>> = BTreeMap::new();
        for (file, source) in self.sources.iter().enumerate().filter(|(_, source)| may_call(&source.path)) {
            for (at, name) in source.names(0..source.tokens.len()) {
                let Some(named) = by_name.get(name) else { continue };
                if source.is_test(at) || source.is_import(at) {
                    continue;
                }
                let around = self.around(file, at);
                let is_local = |id: &Id| self.same_crate(id.0, file);
                let has_local = !source.is_path(at)
                    && named.iter().any(|id| is_local(id) && self.sort(*id) != Sort::Method);
                for id in named {
                    // A crate that has a function or type of this name means its own, unless it gives a path.
                    let meant = self.sort(*id) == Sort::Method || !has_local || is_local(id);
                    if meant && source.uses(at, self.sort(*id)) && !around.contains(id) {
                        uses.entry(*id).or_default().push(around.clone());
                    }
                }
            }
        }
        uses
    }

    fn same_crate(&self, one: usize, other: usize) -> bool {
        let folder = |file: usize| self.sources.get(file)?.path.split_once("/src/").map(|(folder, _)| folder);
        folder(one) == folder(other)
    }

    /// The items that hold a token; a block that implements a type belongs to the type.
    fn around(&self, file: usize, at: usize) -> BTreeSet<Id> {
        let Some(source) = self.sources.get(file) else { return BTreeSet::new() };
        let blocks: Vec<&str> = source
            .impls
            .iter()
            .filter(|(_, range)| range.contains(&at))
            .map(|(name, _)| name.as_str())
            .collect();
        let holds = |item: &Item| {
            item.range.contains(&at) || item.sort == Sort::Type && blocks.contains(&item.name.as_str())
        };
        let items = source.items.iter().enumerate().filter(|(_, item)| !item.in_tests && holds(item));
        items.map(|(item, _)| (file, item)).collect()
    }

    fn name(&self, (file, item): Id) -> &str {
        self.sources.get(file).and_then(|source| source.items.get(item)).map_or("", |item| item.name.as_str())
    }

    fn sort(&self, (file, item): Id) -> Sort {
        let found = self.sources.get(file).and_then(|source| source.items.get(item));
        found.map_or(Sort::Type, |item| item.sort)
    }

    /// Why the test at this place proves nothing about the program, if it does not: the items under test that only
    /// tests use. A unit test must not touch any in its own module; a test of a crate's public API needs one item
    /// in use. Tests of the whole program and of test tools always count.
    pub(crate) fn hangs_on(&self, path: &str, line: u32) -> Vec<String> {
        let Some(source) = self.sources.iter().find(|source| source.path == path) else { return Vec::new() };
        if !is_shipped(path) && !is_api_test(path) {
            return Vec::new();
        }
        let on_line = |at: &usize| source.tokens.get(*at).is_some_and(|token| token.line == line);
        let Some(at) = (0..source.tokens.len()).find(|at| on_line(at) && source.is_test(*at)) else {
            return Vec::new();
        };
        let named = self.under_test(source, at);
        let (idle, in_use): (Vec<Id>, Vec<Id>) = named.into_iter().partition(|id| self.unused.contains(id));
        if is_api_test(path) && !in_use.is_empty() {
            return Vec::new();
        }
        let idle: BTreeSet<&str> = idle.into_iter().map(|id| self.name(id)).collect();
        idle.into_iter().map(str::to_owned).collect()
    }

    /// Whether `place` is a file with tests, or as `path::name` a test below that path.
    pub(crate) fn has_test(&self, place: &str) -> bool {
        let (path, name) = place.split_once("::").map_or((place, None), |(path, name)| (path, Some(name)));
        let below = self.sources.iter().filter(|source| source.path.starts_with(path));
        let mut tests = below.flat_map(|source| &source.items).filter(|item| item.in_tests);
        tests.any(|item| name.is_none_or(|name| item.name == name))
    }

    /// The items that the test at a token names, itself or through helpers in its file.
    fn under_test(&self, source: &Source<'a>, at: usize) -> BTreeSet<Id> {
        let words = reached(source, at);
        let module = module_of(&source.path);
        let mut found = BTreeSet::new();
        for (file, other) in self.sources.iter().enumerate() {
            if !is_shipped(&other.path) || !is_in(&other.path, &module) {
                continue;
            }
            for (at, item) in other.items.iter().enumerate().filter(|(_, item)| !item.in_tests) {
                let places = words.get(item.name.as_str()).map_or(&[][..], Vec::as_slice);
                if places.iter().any(|place| source.uses(*place, item.sort)) {
                    found.insert((file, at));
                }
            }
        }
        found
    }
}

/// The words of a test and of every helper and table of its file that it leads to, with their places.
fn reached<'a>(source: &Source<'a>, at: usize) -> BTreeMap<&'a str, Vec<usize>> {
    let items = source.items.iter().filter(|item| item.in_tests);
    let mut helpers: BTreeMap<&str, Vec<&Range<usize>>> = BTreeMap::new();
    for (name, range) in items
        .map(|item| (&item.name, &item.range))
        .chain(source.tables.iter().map(|(name, range)| (name, range)))
    {
        helpers.entry(name).or_default().push(range);
    }
    let mut waiting = vec![source.test_around(at).unwrap_or_else(|| source.tests_around(at))];
    let mut seen: BTreeSet<usize> = waiting.iter().map(|range| range.start).collect();
    let mut words: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    while let Some(range) = waiting.pop() {
        for (place, word) in source.names(range) {
            words.entry(word).or_default().push(place);
            let led_to = helpers.get(word).into_iter().flatten().filter(|range| seen.insert(range.start));
            waiting.extend(led_to.map(|range| (*range).clone()));
        }
    }
    words
}

/// What runs in production: the sources of `crates/` and of `clouds/` without their simulated APIs.
fn is_shipped(path: &str) -> bool {
    is_in_production(path) && path.contains("/src/")
}

fn is_in_production(path: &str) -> bool {
    let simulates = path.starts_with("clouds/") && path.contains("/sim/");
    (path.starts_with("crates/") || path.starts_with("clouds/")) && !simulates
}

/// Calls from tests' own tools do not make code live; xtask writes the documents of what is shipped.
fn may_call(path: &str) -> bool {
    is_shipped(path) || path.starts_with("xtask/")
}

/// Tests that use the public API of a crate that is shipped.
fn is_api_test(path: &str) -> bool {
    // The tests of the binary start the program.
    let starts_program = path.starts_with("crates/cloudberth/");
    is_in_production(path) && path.contains("/tests/") && !path.contains("/src/") && !starts_program
}

/// What a test file tests, as the start of paths: the file itself, the module above `tests.rs` or `tests/`, or the
/// sources of the crate.
fn module_of(path: &str) -> Vec<String> {
    if is_api_test(path) {
        let (krate, _) = path.split_once("/tests/").unwrap_or((path, ""));
        return vec![format!("{krate}/src/")];
    }
    let above = path.split_once("/tests/").map(|(above, _)| above).or_else(|| path.strip_suffix("/tests.rs"));
    let beside = path.strip_suffix("_tests.rs");
    match (above, beside) {
        (Some(module), _) => vec![format!("{module}.rs"), format!("{module}/")],
        (None, Some(module)) => vec![format!("{module}.rs"), path.to_owned()],
        (None, None) => vec![path.to_owned()],
    }
}

fn is_in(path: &str, module: &[String]) -> bool {
    module.iter().any(|start| path.starts_with(start.as_str()))
}

#[cfg(test)]
#[path = "live_tests.rs"]
mod tests;
