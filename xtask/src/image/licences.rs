//! The licence texts of everything that is in an image, in one file. A text that many crates share is there once.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use crate::Result;
use crate::metadata::{Graph, Metadata, Package};

/// How the names of files with such texts begin.
const NAMES: [&str; 6] = ["licence", "license", "copying", "copyright", "notice", "unlicense"];

/// What the standard library for this kind of target brings along.
const MUSL: &str = "\
musl as a whole is licensed under the following standard MIT license:

Copyright © 2005-2020 Rich Felker, et al.

Permission is hereby granted, free of charge, to any person obtaining
a copy of this software and associated documentation files (the
\"Software\"), to deal in the Software without restriction, including
without limitation the rights to use, copy, modify, merge, publish,
distribute, sublicense, and/or sell copies of the Software, and to
permit persons to whom the Software is furnished to do so, subject to
the following conditions:

The above copyright notice and this permission notice shall be
included in all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED \"AS IS\", WITHOUT WARRANTY OF ANY KIND,
EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF
MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT.
IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY
CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT,
TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE
SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
";

/// Somebody's text, with the name of what it is about.
pub(crate) type Text = (String, String);

/// Texts of all crates of the graph, by crate. `own` is the text of the Apache licence, under which cloudberth is.
pub(crate) fn of_crates(graph: &Graph, metadata: &Metadata, own: &str) -> Result<Vec<Text>> {
    let mut texts = vec![("the Rust standard library".to_owned(), own.to_owned())];
    texts.push(("musl, in the Rust standard library".to_owned(), MUSL.to_owned()));
    let mut without = Vec::new();
    for (name, version) in graph.keys() {
        let Some(package) = metadata.package(name, version) else { continue };
        let title =
            format!("{name} {version} ({})", package.license.as_deref().unwrap_or("no licence named"));
        let found = if package.source.is_some() { beside(package)? } else { Vec::new() };
        if !found.is_empty() {
            texts.extend(found.into_iter().map(|text| (title.clone(), text)));
        } else if package.license.as_deref().is_some_and(apache_will_do) {
            texts.push((title, own.to_owned()));
        } else {
            without.push(title);
        }
    }
    if without.is_empty() {
        Ok(texts)
    } else {
        Err(format!(
            "no licence text comes with {}: add it in xtask/src/image/licences.rs",
            without.join(", ")
        ))
    }
}

/// Whether one may choose the Apache licence.
fn apache_will_do(expression: &str) -> bool {
    expression.split([' ', '/']).any(|word| word == "Apache-2.0") && !expression.contains(" AND ")
}

fn beside(package: &Package) -> Result<Vec<String>> {
    let dir = Path::new(&package.manifest_path).parent().unwrap_or(Path::new(""));
    texts_in(dir)
}

/// The texts in a folder, in order of file name.
pub(crate) fn texts_in(dir: &Path) -> Result<Vec<String>> {
    let failed = |why| format!("{}: {why}", dir.display());
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().to_lowercase();
        let wanted = NAMES.iter().any(|begin| name.starts_with(begin));
        if wanted && entry.file_type().map_err(failed)?.is_file() {
            let text = fs::read(entry.path()).map_err(failed)?;
            found.insert(name, String::from_utf8_lossy(&text).replace("\r\n", "\n"));
        }
    }
    Ok(found.into_values().collect())
}

/// One file of them all.
pub(crate) fn join(texts: &[Text]) -> String {
    let mut users: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (who, text) in texts {
        let list = users.entry(text.trim_end()).or_default();
        if !list.contains(&who.as_str()) {
            list.push(who);
        }
    }
    let mut sections: Vec<(Vec<&str>, &str)> = users.into_iter().map(|(text, who)| (who, text)).collect();
    sections.sort_unstable();
    let mut file = "Licences of cloudberth and of what it is built from.\n".to_owned();
    for (who, text) in sections {
        let _ = write!(file, "\n{}\n\n{}\n{}\n", "=".repeat(80), who.join("\n"), "-".repeat(80));
        let _ = write!(file, "\n{text}\n");
    }
    file
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::variant::{Arch, Variant};
    use crate::metadata::{Key, linked};
    use crate::workspace::{Sample, Workspace};

    #[test]
    fn every_shipped_crate_has_its_text() {
        let workspace = Workspace::find().unwrap();
        let metadata = Metadata::load(&workspace, &["--all-features"]).unwrap();
        let features = Variant::Lycke.features();
        let graph = linked(&workspace, "cloudberth", Arch::Amd64.target(), features).unwrap();
        let own = workspace.read("LICENSE").unwrap();
        let file = join(&of_crates(&graph, &metadata, &own).unwrap());
        for (name, version) in graph.keys() {
            assert!(file.contains(&format!("\n{name} {version} (")), "{name}");
        }
        assert_eq!(file.matches("Rich Felker").count(), 1);
        let apache = file.matches("TERMS AND CONDITIONS FOR USE, REPRODUCTION").count();
        assert!((1..30).contains(&apache), "{apache} copies of the Apache licence");
    }

    #[test]
    fn a_crate_without_any_text_is_named() {
        let sample = Sample::new("licences", &[("a/Cargo.toml", "")]);
        let package = |name: &str, license: &str| Package {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            license: Some(license.to_owned()),
            source: Some("registry".to_owned()),
            manifest_path: sample.workspace.path("a/Cargo.toml").display().to_string(),
            ..Package::default()
        };
        let packages = vec![package("bare", "MIT"), package("apache", "MIT OR Apache-2.0")];
        let keys = packages.iter().map(|package| (package.name.clone(), package.version.clone()));
        let graph: Graph = keys.map(|key: Key| (key, std::collections::BTreeSet::new())).collect();
        let metadata = Metadata { packages, ..Metadata::default() };
        let why = of_crates(&graph, &metadata, "Apache").unwrap_err();
        assert!(why.contains("bare 1.0.0 (MIT)") && !why.contains("apache 1.0.0"), "{why}");
    }

    #[test]
    fn a_shared_text_is_there_once_under_all_names() {
        let text = |who: &str, text: &str| (who.to_owned(), text.to_owned());
        let file = join(&[text("b", "same\n"), text("a", "same"), text("c", "other"), text("a", "same")]);
        assert_eq!(file.matches("same").count(), 1, "{file}");
        assert!(file.contains("\nb\na\n----") && file.find("\nb\na\n") < file.find("\nc\n"), "{file}");
    }
}
