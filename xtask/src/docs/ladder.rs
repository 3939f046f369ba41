//! The ladder of crates: a lower crate never depends on a higher one. CONTRIBUTING shows it, from the manifests.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use serde::Deserialize;

use super::generated::replace_region;
use crate::Result;
use crate::workspace::Workspace;

const FILE: &str = "CONTRIBUTING.md";
const REGION: &str = "ladder";

/// A place on the ladder: who stands there, and what they never depend on, directly.
struct Rung {
    who: Who,
    never: &'static [&'static str],
}

enum Who {
    Crate(&'static str),
    /// The crates in `clouds/*/sim`.
    SimulatedClouds,
    /// The crates in `clouds/*`. None depends on another.
    Providers,
}

const fn rung(krate: &'static str) -> Rung {
    Rung { who: Who::Crate(krate), never: &[] }
}

/// From the lowest to the highest. A crate that is in the workspace and has no place here is an error.
const LADDER: &[Rung] = &[
    Rung { who: Who::Crate("cloudberth-core"), never: &["tokio", "kube", "k8s-openapi", "hyper", "http"] },
    rung("jsonpath-rust"),
    Rung { who: Who::Crate("cloudberth-http"), never: &["kube", "k8s-openapi"] },
    rung("sim-kit"),
    Rung { who: Who::SimulatedClouds, never: &[] },
    rung("embedded-kube"),
    rung("cloudberth-lycke"),
    // A provider sees plain values, so that it can be tested with plain values.
    Rung { who: Who::Providers, never: &["kube", "k8s-openapi"] },
    rung("cloudberth-runtime"),
    rung("cloudberth-serving"),
    rung("cloudberth-controllers"),
    rung("cloudberth-manager"),
    rung("cloudberth-rancher-fip"),
    rung("cloudberth"),
    rung("testing-kit"),
    rung("kube-assets"),
    rung("simulation"),
    rung("cloudberth-e2e"),
    rung("bench"),
    rung("xtask"),
];

/// What `cargo metadata` says.
#[derive(Debug, Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Clone, Debug, Deserialize)]
struct Package {
    name: String,
    description: Option<String>,
    manifest_path: String,
    dependencies: Vec<Dependency>,
}

#[derive(Clone, Debug, Deserialize)]
struct Dependency {
    name: String,
    /// `dev` or `build`; none for the dependencies of what is shipped.
    kind: Option<String>,
}

impl Package {
    /// Relative to the root, with `/` between.
    fn folder(&self, root: &Path) -> String {
        let folder = Path::new(&self.manifest_path).parent().unwrap_or(root);
        let folder = folder.strip_prefix(root).unwrap_or(folder);
        folder.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("/")
    }

    /// Without dev-dependencies, which may be higher on the ladder.
    fn uses(&self) -> impl Iterator<Item = &str> {
        self.dependencies.iter().filter(|used| used.kind.is_none()).map(|used| used.name.as_str())
    }
}

fn packages(workspace: &Workspace) -> Result<Vec<Package>> {
    let mut command = workspace.cargo(&["metadata", "--no-deps", "--format-version", "1"]);
    let output = command.output().map_err(|why| format!("cargo metadata: {why}"))?;
    if !output.status.success() {
        return Err(format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    let metadata: Metadata =
        serde_json::from_slice(&output.stdout).map_err(|why| format!("cargo metadata: {why}"))?;
    Ok(metadata.packages)
}

/// Brings the table up to date.
pub(super) fn write(workspace: &Workspace) -> Result<()> {
    let (old, new) = old_and_new(workspace, &packages(workspace)?)?;
    if new != old {
        fs::write(workspace.path(FILE), new).map_err(|why| format!("{FILE}: {why}"))?;
        println!("wrote {FILE}");
    }
    Ok(())
}

/// A table that is out of date and dependencies that break the rule, one line each.
pub(super) fn problems(workspace: &Workspace) -> Result<Vec<String>> {
    let packages = packages(workspace)?;
    let mut problems = check(&packages, &workspace.path(""));
    let (old, new) = old_and_new(workspace, &packages)?;
    if new != old {
        problems.push(format!("{FILE}: the ladder of crates is out of date; run `cargo xtask docs`"));
    }
    Ok(problems)
}

fn old_and_new(workspace: &Workspace, packages: &[Package]) -> Result<(String, String)> {
    let old = workspace.read(FILE)?;
    let new = replace_region(&old, REGION, table(packages, &workspace.path("")).trim_end());
    let new =
        new.ok_or_else(|| format!("{FILE}: lacks <!-- {REGION}:begin --> and <!-- {REGION}:end -->"))?;
    Ok((old, new))
}

/// The rung of a crate, by its name or by its folder.
fn place(packages: &[Package], root: &Path, name: &str) -> Option<usize> {
    let folder = packages.iter().find(|package| package.name == name).map(|package| package.folder(root));
    let parts: Vec<&str> = folder.as_deref().unwrap_or_default().split('/').collect();
    LADDER.iter().position(|rung| match rung.who {
        Who::Crate(krate) => krate == name,
        Who::SimulatedClouds => matches!(parts[..], ["clouds", _, "sim"]),
        Who::Providers => matches!(parts[..], ["clouds", _]),
    })
}

fn table(packages: &[Package], root: &Path) -> String {
    let place = |name: &str| place(packages, root, name);
    let mut rows: Vec<&Package> = packages.iter().filter(|package| place(&package.name).is_some()).collect();
    rows.sort_by_key(|package| (place(&package.name), package.name.as_str()));
    let mut text = String::from("| crate | folder | holds | uses |\n|---|---|---|---|\n");
    for package in rows {
        let mut uses: Vec<&str> = package.uses().filter(|name| place(name).is_some()).collect();
        uses.sort_by_key(|name| (place(name), *name));
        let uses: Vec<_> = uses.iter().map(|name| name.trim_start_matches("cloudberth-")).collect();
        let _ = writeln!(
            text,
            "| `{}` | `{}` | {} | {} |",
            package.name,
            package.folder(root),
            package.description.as_deref().unwrap_or_default(),
            if uses.is_empty() { "nothing".to_owned() } else { uses.join(", ") },
        );
    }
    text
}

fn check(packages: &[Package], root: &Path) -> Vec<String> {
    let mut broken = Vec::new();
    for package in packages {
        let Some(at) = place(packages, root, &package.name) else {
            broken.push(format!("{}: has no place on the ladder in xtask/src/docs/ladder.rs", package.name));
            continue;
        };
        for used in package.uses() {
            if place(packages, root, used).is_some_and(|used| used >= at) {
                broken.push(format!("{}: depends on {used}, which is not lower on the ladder", package.name));
            }
            if LADDER.get(at).is_some_and(|rung| rung.never.contains(&used)) {
                broken.push(format!("{}: must not depend on {used}", package.name));
            }
        }
        let provider = package.folder(root).strip_suffix("/sim").and_then(|folder| {
            packages.iter().find(|provider| provider.folder(root) == folder).map(|provider| &provider.name)
        });
        if package.dependencies.iter().any(|used| Some(&used.name) == provider) {
            broken.push(format!("{}: a simulated cloud must not know its provider", package.name));
        }
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Sample;

    fn package(name: &str, folder: &str, uses: &[(&str, Option<&str>)]) -> Package {
        let dependencies = uses
            .iter()
            .map(|(name, kind)| Dependency { name: (*name).to_owned(), kind: kind.map(str::to_owned) });
        Package {
            name: name.to_owned(),
            description: Some(format!("about {name}")),
            manifest_path: format!("/root/{folder}/Cargo.toml"),
            dependencies: dependencies.collect(),
        }
    }

    #[test]
    fn the_workspace_keeps_the_ladder() {
        let workspace = Workspace::find().unwrap();
        let packages = packages(&workspace).unwrap();
        assert_eq!(check(&packages, &workspace.path("")), Vec::<String>::new());
        for rung in LADDER {
            if let Who::Crate(krate) = rung.who {
                assert!(packages.iter().any(|package| package.name == krate), "{krate} is gone");
            }
        }
    }

    #[test]
    fn what_breaks_the_ladder_is_named() {
        let table = [
            (package("cloudberth-http", "crates/http", &[("cloudberth-core", None), ("http", None)]), None),
            (package("cloudberth-http", "crates/http", &[("cloudberth-runtime", None)]), Some("not lower")),
            (package("cloudberth-http", "crates/http", &[("cloudberth-runtime", Some("dev"))]), None),
            (package("cloudberth-core", "crates/core", &[("tokio", None)]), Some("not depend on tokio")),
            (package("cloudberth-core", "crates/core", &[("tokio", Some("dev"))]), None),
            (package("stranger", "crates/stranger", &[]), Some("no place")),
            (package("newcomer", "clouds/newcomer", &[("cloudberth-http", None)]), None),
            (package("newcomer", "clouds/newcomer", &[("kube", None)]), Some("not depend on kube")),
            (package("newcomer", "clouds/newcomer", &[("cloudberth-cloudscale", None)]), Some("not lower")),
            (
                package("cloudscale-sim", "clouds/cloudscale/sim", &[("cloudberth-cloudscale", Some("dev"))]),
                Some("must not know its provider"),
            ),
        ];
        let provider = package("cloudberth-cloudscale", "clouds/cloudscale", &[]);
        for (package, want) in table {
            let said = check(&[package, provider.clone()], Path::new("/root")).join("\n");
            assert!(want.map_or(said.is_empty(), |want| said.contains(want)), "{want:?}: {said}");
        }
    }

    #[test]
    fn a_stale_table_is_found_then_written() {
        let file = (FILE, "<!-- ladder:begin -->\nold\n<!-- ladder:end -->\n");
        let sample =
            Sample::new("ladder", &[file, ("Cargo.toml", "[workspace]\nmembers = []\nresolver = \"3\"\n")]);
        assert!(problems(&sample.workspace).unwrap()[0].contains("out of date"));
        write(&sample.workspace).unwrap();
        assert_eq!(problems(&sample.workspace).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn the_table_goes_from_the_lowest_to_the_highest() {
        let packages = [
            package("cloudberth-http", "crates/http", &[("cloudberth-core", None), ("http", None)]),
            package("cloudberth-core", "crates/core", &[]),
        ];
        let want = "| `cloudberth-core` | `crates/core` | about cloudberth-core | nothing |\n\
                    | `cloudberth-http` | `crates/http` | about cloudberth-http | core |\n";
        assert!(table(&packages, Path::new("/root")).ends_with(want));
    }
}
