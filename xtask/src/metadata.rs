//! What cargo knows about the packages: `cargo metadata` for the facts, `cargo tree` for what a program is built from.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::Result;
use crate::workspace::Workspace;

/// What `cargo metadata` says.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Metadata {
    pub(crate) packages: Vec<Package>,
    #[serde(default)]
    pub(crate) target_directory: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Package {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) license: Option<String>,
    #[serde(default)]
    pub(crate) manifest_path: String,
    #[serde(default)]
    pub(crate) description: Option<String>,
    #[serde(default)]
    pub(crate) repository: Option<String>,
    /// None for what is in the checkout.
    pub(crate) source: Option<String>,
    #[serde(default)]
    pub(crate) dependencies: Vec<Wanted>,
    #[serde(default)]
    pub(crate) targets: Vec<Target>,
}

/// A library, program, test or example of a package.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Target {
    pub(crate) kind: Vec<String>,
    /// Its first file.
    pub(crate) src_path: String,
}

/// What a manifest asks for.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Wanted {
    pub(crate) name: String,
    pub(crate) req: String,
    pub(crate) kind: Option<String>,
    pub(crate) path: Option<String>,
}

impl Metadata {
    /// `more` are further arguments, such as those that choose features and targets.
    pub(crate) fn load(workspace: &Workspace, more: &[&str]) -> Result<Self> {
        let args = [&["metadata", "--format-version=1", "--locked"], more].concat();
        let text = output(workspace, &args)?;
        serde_json::from_str(&text).map_err(|why| format!("cargo metadata: {why}"))
    }

    pub(crate) fn package(&self, name: &str, version: &str) -> Option<&Package> {
        self.packages.iter().find(|package| package.name == name && package.version == version)
    }
}

/// What cargo prints, or why it did not.
pub(crate) fn output(workspace: &Workspace, args: &[&str]) -> Result<String> {
    let shown = format!("cargo {}", args.join(" "));
    let ran = workspace.cargo(args).output().map_err(|why| format!("{shown}: {why}"))?;
    if !ran.status.success() {
        return Err(format!("{shown} failed:\n{}", String::from_utf8_lossy(&ran.stderr)));
    }
    String::from_utf8(ran.stdout).map_err(|why| format!("{shown}: {why}"))
}

/// A package by name and version.
pub(crate) type Key = (String, String);

/// What is linked into a program: every package, with those that it uses itself.
pub(crate) type Graph = BTreeMap<Key, BTreeSet<Key>>;

/// Asks for what is linked into a package for a target. Macros and build scripts run on the build machine only, and
/// are left out.
pub(crate) fn linked(workspace: &Workspace, package: &str, target: &str, features: &[&str]) -> Result<Graph> {
    let args = ["--package", package, "--target", target, "--edges=normal,no-proc-macro"];
    graph(workspace, &[&args, features].concat())
}

/// What `cargo tree` shows; `args` choose packages, targets, features and kinds of edges.
pub(crate) fn graph(workspace: &Workspace, args: &[&str]) -> Result<Graph> {
    parse_tree(&output(workspace, &[&["tree", "--locked", "--format={p}", "--prefix=depth"], args].concat())?)
}

/// A package that was shown before comes again without what is below it, so every edge is there once.
fn parse_tree(text: &str) -> Result<Graph> {
    let mut graph = Graph::new();
    let mut above: Vec<Key> = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let unread = || format!("cargo tree printed a line that is not understood: {line}");
        let digits = line.bytes().take_while(u8::is_ascii_digit).count();
        let (depth, rest) = line.split_at(digits);
        let depth: usize = depth.parse().map_err(|_| unread())?;
        let mut words = rest.split_whitespace();
        let name = words.next().ok_or_else(unread)?;
        let version = words.next().and_then(|word| word.strip_prefix('v')).ok_or_else(unread)?;
        let key = (name.to_owned(), version.to_owned());
        above.truncate(depth);
        if let Some(user) = above.last() {
            graph.entry(user.clone()).or_default().insert(key.clone());
        }
        graph.entry(key.clone()).or_default();
        above.push(key);
    }
    Ok(graph)
}

/// The digests of the packages as `Cargo.lock` has them.
pub(crate) fn checksums(lock: &str) -> Result<BTreeMap<Key, String>> {
    #[derive(Deserialize)]
    struct Lock {
        package: Vec<Locked>,
    }
    #[derive(Deserialize)]
    struct Locked {
        name: String,
        version: String,
        checksum: Option<String>,
    }
    let lock: Lock = toml::from_str(lock).map_err(|why| format!("Cargo.lock: {why}"))?;
    let with_sum = |package: Locked| Some(((package.name, package.version), package.checksum?));
    Ok(lock.package.into_iter().filter_map(with_sum).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        (name.to_owned(), "1.0.0".to_owned())
    }

    #[test]
    fn a_tree_is_read_with_its_edges() {
        let text = "0a v1.0.0 (/some where/a)\n1b v1.0.0\n2c v1.0.0\n1d v1.0.0\n2b v1.0.0 (*)\n2c v1.0.0\n";
        let graph = parse_tree(text).unwrap();
        let uses = |name: &str| graph[&key(name)].iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>();
        assert_eq!(graph.len(), 4);
        assert_eq!((uses("a"), uses("b"), uses("d")), (vec!["b", "d"], vec!["c"], vec!["b", "c"]));
        for bad in ["a v1.0.0", "0a", "0a 1.0.0"] {
            assert!(parse_tree(bad).unwrap_err().contains(bad));
        }
    }

    #[test]
    fn checksums_come_from_the_lock_file() {
        let lock = "[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nchecksum = \"00ff\"\n\
                    [[package]]\nname = \"ours\"\nversion = \"1.0.0\"\n";
        assert_eq!(checksums(lock).unwrap(), BTreeMap::from([(key("a"), "00ff".to_owned())]));
    }
}
