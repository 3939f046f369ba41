//! The stage that holds dependencies to `deny.toml`: licences, versions and sources.
//!
//! It reads the file of cargo-deny and decides as cargo-deny does about what the file uses, from `cargo metadata` and `cargo tree`.
//! A setting that it does not know is an error, so that none is passed over in silence.

mod licence;
mod rules;

use std::collections::{BTreeMap, BTreeSet};

use crate::Result;
use crate::metadata::{Graph, Key, Metadata, Package, graph};
use crate::stages::Outcome;
use crate::workspace::Workspace;
use rules::Rules;

const FILE: &str = "deny.toml";
/// What cargo calls the public registry.
const PUBLIC: &str = "registry+https://github.com/rust-lang/crates.io-index";

pub(crate) fn stage(workspace: &Workspace) -> Result<Outcome> {
    let rules = Rules::parse(&workspace.read(FILE)?)?;
    let features: &[&str] = if rules.graph.all_features { &["--all-features"] } else { &[] };
    let for_targets = |option| rules.graph.targets.iter().flat_map(move |target| [option, target.as_str()]);
    let args: Vec<&str> = features.iter().copied().chain(for_targets("--filter-platform")).collect();
    let metadata = Metadata::load(workspace, &args)?;
    // What cargo metadata connects, features may leave out: cargo tree knows.
    let mut args = vec!["--workspace", "--edges=normal,build"];
    args.extend(features.iter().copied().chain(for_targets("--target")));
    let graph = graph(workspace, &args)?;
    let used = used(&metadata, &graph)?;
    println!(
        "   {} crates; advisories are for `cargo deny check advisories`, which needs a network",
        used.len()
    );
    Ok(Outcome { problems: problems(&rules, &metadata, &used), ..Outcome::default() })
}

/// A package that counts, with the names of those that brought it in.
type Used<'a> = BTreeMap<&'a Key, (&'a Package, BTreeSet<&'a str>)>;

fn used<'a>(metadata: &'a Metadata, graph: &'a Graph) -> Result<Used<'a>> {
    let mut used = Used::new();
    for key in graph.keys() {
        let (name, version) = key;
        let package = metadata.package(name, version);
        let package = package.ok_or_else(|| format!("cargo metadata does not know {name} {version}"))?;
        used.insert(key, (package, BTreeSet::new()));
    }
    for ((user, _), uses) in graph {
        for key in uses {
            if let Some((_, by)) = used.get_mut(key) {
                by.insert(user);
            }
        }
    }
    Ok(used)
}

fn problems(rules: &Rules, metadata: &Metadata, used: &Used<'_>) -> Vec<String> {
    let mut problems = Vec::new();
    for (package, by) in used.values() {
        let name = format!("{} {} (by {})", package.name, package.version, listed(by));
        match package.license.as_deref() {
            None => problems.push(format!("{name} names no licence: {FILE} has no rule for that")),
            Some(text) => match licence::allowed(text, &rules.licenses.allow) {
                Ok(true) => {}
                Ok(false) => problems.push(format!(
                    "{name} is under {text}, which {FILE} does not allow: use another crate, or decide for it in [licenses] allow"
                )),
                Err(why) => problems.push(format!("{name}: its licence {text} cannot be read: {why}")),
            },
        }
        if let Some(banned) = rules.bans.deny.iter().find(|spec| spec.matches(package)) {
            problems.push(format!("{name} is banned: {}", banned.reason));
        }
        if package.source.as_deref().is_some_and(|source| source != PUBLIC) {
            let source = package.source.as_deref().unwrap_or_default();
            problems.push(format!("{name} comes from {source}: only the public registry is allowed"));
        }
    }
    problems.extend(twice(rules, used));
    problems.extend(wildcards(metadata));
    problems
}

/// Crates in several versions, and exceptions for such that are over.
fn twice(rules: &Rules, used: &Used<'_>) -> Vec<String> {
    let mut problems = Vec::new();
    let mut by_name: BTreeMap<&str, Vec<&(&Package, BTreeSet<&str>)>> = BTreeMap::new();
    for entry in used.values() {
        by_name.entry(&entry.0.name).or_default().push(entry);
    }
    for (name, all) in &by_name {
        let skipped = |package: &Package| rules.bans.skip.iter().any(|spec| spec.matches(package));
        let left: Vec<_> = all.iter().filter(|(package, _)| !skipped(package)).collect();
        if left.len() > 1 {
            let versions: Vec<_> =
                left.iter().map(|(package, by)| format!("{} by {}", package.version, listed(by))).collect();
            problems.push(format!(
                "{name} is there in several versions ({}): bring its users together, or make an exception in [bans] skip of {FILE}, with the reason",
                versions.join("; ")
            ));
        }
    }
    for spec in &rules.bans.skip {
        let several = by_name.get(spec.name()).is_some_and(|all| all.len() > 1);
        if !several || !used.values().any(|(package, _)| spec.matches(package)) {
            problems.push(format!(
                "the exception for {} in [bans] skip of {FILE} is over: remove it",
                spec.krate
            ));
        }
    }
    problems
}

fn wildcards(metadata: &Metadata) -> Vec<String> {
    let ours = metadata.packages.iter().filter(|package| package.source.is_none());
    let wanted = ours.flat_map(|package| package.dependencies.iter().map(move |wanted| (package, wanted)));
    wanted
        .filter(|(_, wanted)| {
            wanted.req == "*" && wanted.path.is_none() && wanted.kind.as_deref() != Some("dev")
        })
        .map(|(package, wanted)| format!("{} takes any version of {}: name one", package.name, wanted.name))
        .collect()
}

fn listed(names: &BTreeSet<&str>) -> String {
    if names.is_empty() {
        "the workspace".to_owned()
    } else {
        names.iter().copied().collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests;
