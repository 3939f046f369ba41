//! `cargo xtask release --dry-run`: everything that a release would have, in one folder, with checksums.

mod chart;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use lexopt::prelude::*;

use crate::archive::{Sha256, read, write};
use crate::image::{Made, Options, SUMMARY, Source, Variant, executable, found, make, text};
use crate::metadata::Metadata;
use crate::workspace::Workspace;
use crate::{Result, Verdict};

const SUMS: &str = "SHA256SUMS";
const CHANGES: &str = "changes.md";
const CHART: &str = "charts/cloudberth";
/// Manifests that are written from the chart.
const DEPLOY: &str = "deploy";

/// What a release is put together from.
#[derive(Clone, Debug, Default)]
struct Inputs {
    images: Vec<Made>,
    /// Name and bytes of the chart's package.
    chart: Option<(String, Vec<u8>)>,
    manifests: BTreeMap<String, Vec<u8>>,
    /// The section of the changelog.
    changes: String,
}

/// What is asked for.
#[derive(Clone, Debug)]
struct Asked {
    variants: Vec<Variant>,
    /// A program that there is already, in place of those that a release builds: to try what the folder is good for.
    program: Option<PathBuf>,
    /// None: below the target directory.
    output: Option<PathBuf>,
}

/// `cargo xtask release`.
pub(crate) fn command(workspace: &Workspace, mut args: lexopt::Parser) -> Result<Verdict> {
    let mut dry_run = false;
    let mut asked = Asked { variants: Variant::ALL.to_vec(), program: None, output: None };
    while let Some(arg) = args.next().map_err(|why| why.to_string())? {
        match arg {
            Long("dry-run") => dry_run = true,
            Long("output") => asked.output = Some(PathBuf::from(text(&mut args)?)),
            Long("program") => asked.program = Some(PathBuf::from(text(&mut args)?)),
            Long("variant") => {
                asked.variants = text(&mut args)?.split(',').map(Variant::parse).collect::<Result<_>>()?;
            }
            other => return Err(other.unexpected().to_string()),
        }
    }
    if !dry_run {
        return Err("nothing is published yet: `--dry-run` puts together what would be".to_owned());
    }
    let (sums, dir) = release(workspace, &asked)?;
    print!("{sums}");
    if let Some(program) = &asked.program {
        println!("with {} in place of a program that was built for it: for trying only", program.display());
    }
    println!("in {}", dir.display());
    Ok(Verdict::Good)
}

/// Makes the folder. Returns its checksums, and where it is.
fn release(workspace: &Workspace, asked: &Asked) -> Result<(String, PathBuf)> {
    let metadata = Metadata::load(workspace, &["--no-deps"])?;
    let target = PathBuf::from(&metadata.target_directory);
    let images = images(workspace, &target, asked)?;
    let version = images.first().map(|made| made.version.clone()).ok_or("a release of no variant at all")?;
    let output = asked.output.clone().unwrap_or_else(|| target.join("releases").join(&version));
    let inputs = Inputs {
        images,
        chart: chart::package(&workspace.path(CHART))?,
        manifests: manifests(workspace)?,
        changes: changes(&workspace.read("CHANGELOG.md")?, &version)?,
    };
    if inputs.chart.is_none() {
        println!("   there is no chart in {CHART}");
    }
    let sums = assemble(&inputs, &output)?;
    if asked.program.is_some() {
        for made in &inputs.images {
            fs::remove_dir_all(&made.dir).map_err(|why| format!("{}: {why}", made.dir.display()))?;
        }
    }
    Ok((sums, output))
}

/// Images of these very sources: those that an earlier `cargo xtask image` left, or new ones.
fn images(workspace: &Workspace, target: &Path, asked: &Asked) -> Result<Vec<Made>> {
    let source = Source::look(workspace)?;
    let mut images = Vec::new();
    for variant in &asked.variants {
        let mut options = Options { variant: *variant, program: asked.program.clone(), ..Options::default() };
        let dir = target.join("image").join(variant.name());
        if asked.program.is_some() {
            // Nobody may take it for an image of these sources later on.
            let name = format!("given-{}-{}", variant.name(), std::process::id());
            options.output = Some(target.join("image").join(name));
        } else if let Some(made) = found(&dir, &source) {
            println!("   {} is there, in {}", variant.name(), dir.display());
            images.push(made);
            continue;
        }
        images.push(make(workspace, &options, None)?);
    }
    Ok(images)
}

/// The manifests of the clouds and of the manager for Rancher, and what is in `deploy/` but for its tests.
fn manifests(workspace: &Workspace) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut manifests = BTreeMap::new();
    for file in [workspace.files("yaml")?, workspace.files("json")?].concat() {
        let parts: Vec<&str> = file.split('/').collect();
        let name = match parts.as_slice() {
            ["clouds" | "crates", whose, "manifest.yaml"] => format!("{whose}.yaml"),
            [DEPLOY, .., "tests", _] => continue,
            [DEPLOY, ..] => file.clone(),
            _ => continue,
        };
        manifests.insert(format!("manifests/{name}"), read(&workspace.path(&file))?);
    }
    Ok(manifests)
}

/// What the changelog says about a version; before it has a section of its own, about what is not released.
fn changes(changelog: &str, version: &str) -> Result<String> {
    let heading = |line: &&str| {
        let words: Vec<&str> = line.strip_prefix("## ").unwrap_or_default().split_whitespace().collect();
        words.first().is_some_and(|word| word.trim_matches(['[', ']']) == version)
    };
    let lines: Vec<&str> = changelog.lines().collect();
    let at = lines.iter().position(heading);
    let at = at.or_else(|| lines.iter().position(|line| line.trim() == "## Unreleased"));
    let at = at.ok_or_else(|| format!("CHANGELOG.md has neither a section {version} nor Unreleased"))?;
    let rest = lines.get(at + 1..).unwrap_or_default();
    let end = rest.iter().position(|line| line.starts_with("## ")).unwrap_or(rest.len());
    let text = rest.get(..end).unwrap_or_default().join("\n");
    if text.trim().is_empty() {
        return Err("CHANGELOG.md says nothing about this version".to_owned());
    }
    Ok(format!("# cloudberth {version}\n\n{}\n", text.trim()))
}

/// Writes the folder anew, and returns its checksums.
fn assemble(inputs: &Inputs, dir: &Path) -> Result<String> {
    let failed = |why| format!("{}: {why}", dir.display());
    if dir.exists() {
        if !dir.join(SUMS).is_file() {
            return Err(format!("{} is there and holds no release: remove it", dir.display()));
        }
        fs::remove_dir_all(dir).map_err(failed)?;
    }
    let mut sums = BTreeMap::new();
    let mut put = |name: &str, bytes: &[u8]| {
        sums.insert(name.to_owned(), Sha256::of(bytes));
        write(&dir.join(name), bytes)
    };
    for made in &inputs.images {
        for image in &made.images {
            for (name, digest) in &image.files {
                let bytes = read(&made.dir.join(name))?;
                if Sha256::of(&bytes) != *digest {
                    return Err(format!(
                        "{name} is not the file that {SUMMARY} names: build the image again"
                    ));
                }
                put(name, &bytes)?;
            }
            executable(&dir.join(&image.file))?;
        }
    }
    if let Some((name, bytes)) = &inputs.chart {
        put(name, bytes)?;
    }
    for (name, bytes) in &inputs.manifests {
        put(name, bytes)?;
    }
    put(CHANGES, inputs.changes.as_bytes())?;
    put("images.txt", references(&inputs.images).as_bytes())?;
    let sums = sums.iter().fold(String::new(), |mut text, (name, digest)| {
        let _ = writeln!(text, "{}  {name}", digest.hex());
        text
    });
    write(&dir.join(SUMS), sums.as_bytes())?;
    Ok(sums)
}

/// The digests by which a registry will know the images.
fn references(images: &[Made]) -> String {
    let mut text = String::new();
    for made in images {
        for image in &made.images {
            let _ = writeln!(text, "{} {} {}", made.variant, image.arch, image.digest);
        }
        for (arch, why) in &made.skipped {
            let _ = writeln!(text, "{} {arch} skipped: {why}", made.variant);
        }
    }
    text
}

#[cfg(test)]
mod tests;
