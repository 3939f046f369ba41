//! The bill of materials of an image, as `CycloneDX`: every crate that is linked in, and what else lies in the image.
//!
//! It follows from `Cargo.lock` and the features: no time and no random number is in it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::Result;
use crate::archive::Sha256;
use crate::metadata::{Graph, Key, Metadata, Package};

/// A part that cargo knows nothing about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) kind: &'static str,
    pub(crate) name: String,
    pub(crate) version: Option<String>,
    pub(crate) purl: String,
    pub(crate) licence: Option<&'static str>,
    pub(crate) about: String,
}

/// What a bill is written from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Materials<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) root: &'a Key,
    pub(crate) metadata: &'a Metadata,
    pub(crate) checksums: &'a BTreeMap<Key, String>,
    /// Besides crates.
    pub(crate) parts: &'a [Part],
    pub(crate) program: &'a Sha256,
}

pub(crate) fn bill(materials: &Materials<'_>) -> Result<Value> {
    let root = package(materials, materials.root)?;
    let mut components = Vec::new();
    for key in materials.graph.keys().filter(|key| *key != materials.root) {
        components.push(component(materials, package(materials, key)?));
    }
    for part in materials.parts {
        components.push(part_component(part));
    }
    let mut dependencies = Vec::new();
    for (key, uses) in materials.graph {
        let mut uses: BTreeSet<String> = uses.iter().map(purl).collect();
        if key == materials.root {
            uses.extend(materials.parts.iter().map(|part| part.purl.clone()));
        }
        dependencies.push(json!({"ref": purl(key), "dependsOn": uses}));
    }
    dependencies.extend(materials.parts.iter().map(|part| json!({"ref": part.purl, "dependsOn": []})));
    let mut subject = component(materials, root);
    set(&mut subject, "type", json!("application"));
    set(&mut subject, "hashes", json!([{"alg": "SHA-256", "content": materials.program.hex()}]));
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": serial(materials),
        "version": 1,
        "metadata": {
            "component": subject,
            "tools": {"components": [{"type": "application", "name": "cargo xtask image"}]},
        },
        "components": components,
        "dependencies": dependencies,
    }))
}

fn package<'a>(materials: &Materials<'a>, (name, version): &Key) -> Result<&'a Package> {
    let found = materials.metadata.package(name, version);
    found.ok_or_else(|| format!("cargo metadata does not know {name} {version}, which cargo tree lists"))
}

fn component(materials: &Materials<'_>, package: &Package) -> Value {
    let key = (package.name.clone(), package.version.clone());
    let mut component = json!({
        "type": "library",
        "bom-ref": purl(&key),
        "name": package.name,
        "version": package.version,
        "purl": purl(&key),
        "scope": "required",
    });
    if let Some(text) = &package.description {
        set(&mut component, "description", json!(text.split_whitespace().collect::<Vec<_>>().join(" ")));
    }
    if let Some(licence) = &package.license {
        // Before SPDX had an operator for it, people wrote a slash.
        let expression = licence.replace('/', " OR ").split_whitespace().collect::<Vec<_>>().join(" ");
        set(&mut component, "licenses", json!([{"expression": expression}]));
    }
    if let Some(sum) = materials.checksums.get(&key) {
        set(&mut component, "hashes", json!([{"alg": "SHA-256", "content": sum}]));
    }
    if let Some(repository) = &package.repository {
        set(&mut component, "externalReferences", json!([{"type": "vcs", "url": repository}]));
    }
    component
}

fn part_component(part: &Part) -> Value {
    let mut component = json!({
        "type": part.kind,
        "bom-ref": part.purl,
        "name": part.name,
        "purl": part.purl,
        "description": part.about,
        "scope": "required",
    });
    if let Some(version) = &part.version {
        set(&mut component, "version", json!(version));
    }
    if let Some(licence) = part.licence {
        set(&mut component, "licenses", json!([{"expression": licence}]));
    }
    component
}

fn set(component: &mut Value, name: &str, value: Value) {
    if let Some(fields) = component.as_object_mut() {
        fields.insert(name.to_owned(), value);
    }
}

/// The name by which scanners know a crate.
fn purl((name, version): &Key) -> String {
    format!("pkg:cargo/{name}@{}", version.replace('+', "%2B"))
}

/// A number of the form that is asked for, from what the bill is about.
fn serial(materials: &Materials<'_>) -> String {
    let crates = materials.graph.keys().map(purl);
    let parts = materials.parts.iter().map(|part| part.purl.clone());
    let all: Vec<_> = crates.chain(parts).chain([materials.program.hex().to_owned()]).collect();
    let digest = Sha256::of(all.join("\n").as_bytes());
    let digits = |from, to| digest.hex().get(from..to).unwrap_or_default();
    // The digits 8 and 8 say that it is made in a way of one's own.
    format!(
        "urn:uuid:{}-{}-8{}-8{}-{}",
        digits(0, 8),
        digits(8, 12),
        digits(12, 15),
        digits(15, 18),
        digits(18, 30)
    )
}

/// The crates of a bill, by name and version.
pub(crate) fn crates(bill: &Value) -> BTreeSet<Key> {
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let listed = bill.get("components").and_then(Value::as_array).into_iter().flatten();
    listed
        .chain(bill.pointer("/metadata/component"))
        .filter(|component| text(component, "purl").is_some_and(|purl| purl.starts_with("pkg:cargo/")))
        .filter_map(|component| Some((text(component, "name")?, text(component, "version")?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::variant::{Arch, Variant};
    use crate::metadata::{checksums, linked, output};
    use crate::workspace::Workspace;

    fn sample(variant: Variant, arch: Arch) -> Value {
        let workspace = Workspace::find().unwrap();
        let metadata = Metadata::load(&workspace, &["--all-features"]).unwrap();
        let graph = linked(&workspace, "cloudberth", arch.target(), variant.features()).unwrap();
        let root = graph.keys().find(|(name, _)| name == "cloudberth").unwrap().clone();
        let parts = [Part {
            kind: "library",
            name: "musl".to_owned(),
            version: None,
            purl: "pkg:generic/musl".to_owned(),
            licence: Some("MIT"),
            about: "libc".to_owned(),
        }];
        let checksums = checksums(&workspace.read("Cargo.lock").unwrap()).unwrap();
        let program = Sha256::of(b"program");
        bill(&Materials {
            graph: &graph,
            root: &root,
            metadata: &metadata,
            checksums: &checksums,
            parts: &parts,
            program: &program,
        })
        .unwrap()
    }

    /// The list is taken in another form than the one that the bill is written from, and read in another way.
    #[test]
    fn the_bill_lists_what_cargo_tree_lists() {
        let args = ["tree", "-p", "cloudberth", "--no-default-features", "-e", "normal,no-proc-macro"];
        let args =
            [&args[..], &["--target", Arch::Arm64.target(), "--prefix", "none", "--no-dedupe"]].concat();
        let text = output(&Workspace::find().unwrap(), &args).unwrap();
        let expected: BTreeSet<Key> = text
            .lines()
            .map(|line| line.split(' ').collect::<Vec<_>>())
            .map(|words| (words[0].to_owned(), words[1].trim_start_matches('v').to_owned()))
            .collect();
        let bill = sample(Variant::Plain, Arch::Arm64);
        assert_eq!(crates(&bill), expected);
        assert!(
            expected.len() > 100 && !expected.iter().any(|(name, _)| name.ends_with("-sim")),
            "{expected:?}"
        );
    }

    #[test]
    fn every_component_has_a_licence_and_every_foreign_crate_a_digest() {
        let bill = sample(Variant::Lycke, Arch::Amd64);
        let components = bill["components"].as_array().unwrap();
        assert!(components.iter().any(|component| component["name"] == "cloudberth-lycke"));
        for component in components {
            assert!(component["licenses"][0]["expression"].is_string(), "{component}");
            let ours = component["name"].as_str().unwrap().starts_with("cloudberth")
                // What stands in for a public crate does not pass for it.
                || component["version"].as_str().is_some_and(|version| version.ends_with("+cloudberth"));
            let foreign = component["purl"].as_str().unwrap().starts_with("pkg:cargo/") && !ours;
            assert_eq!(component["hashes"][0]["content"].is_string(), foreign, "{component}");
        }
        let refs: BTreeSet<_> =
            components.iter().map(|component| component["bom-ref"].as_str().unwrap()).collect();
        assert_eq!(refs.len(), components.len(), "a component is there twice");
        for dependency in bill["dependencies"].as_array().unwrap() {
            for used in dependency["dependsOn"].as_array().unwrap() {
                assert!(refs.contains(used.as_str().unwrap()), "{used} is used and not listed");
            }
        }
    }

    #[test]
    fn two_bills_of_the_same_sources_are_the_same_and_name_no_place() {
        let (first, second) = (sample(Variant::Plain, Arch::Amd64), sample(Variant::Plain, Arch::Amd64));
        assert_eq!(first.to_string(), second.to_string());
        let root = Workspace::find().unwrap().path("");
        assert!(!first.to_string().contains(root.to_str().unwrap().trim_end_matches('/')));
    }
}
