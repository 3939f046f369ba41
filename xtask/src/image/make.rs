//! From sources to files: builds, writes, reads back what was written, and says what came out.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::build::{self, PACKAGE, Toolchain, said};
use super::oci::{Facts, Image, layout};
use super::provenance::{Source, Statement, statement};
use super::rootfs::{self, Parts};
use super::sbom::{Materials, Part, bill, crates};
use super::variant::Arch;
use super::{Options, helm, inspect, licences};
use crate::Result;
use crate::archive::{Content, Entry, Sha256, Tree, read, unpack, write};
use crate::metadata::{Metadata, checksums, linked};
use crate::workspace::Workspace;

/// The file that says what is in a folder of images.
pub(crate) const SUMMARY: &str = "image.json";
const LAYOUT: &str = "layout";

/// What was made, as [`SUMMARY`] says it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Made {
    pub(crate) version: String,
    pub(crate) variant: String,
    /// The name by which clusters know it, without a tag.
    pub(crate) name: String,
    pub(crate) revision: String,
    pub(crate) images: Vec<MadeImage>,
    /// Processors that there is no image for, and why.
    pub(crate) skipped: BTreeMap<String, String>,
    #[serde(skip)]
    pub(crate) dir: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MadeImage {
    pub(crate) arch: String,
    /// The beginning of the names of its files.
    pub(crate) file: String,
    /// The digest of its manifest, by which a registry knows it.
    pub(crate) digest: String,
    pub(crate) compressed: usize,
    pub(crate) program: usize,
    /// Digests of the files, by name.
    pub(crate) files: BTreeMap<String, Sha256>,
}

impl Made {
    /// For a person.
    pub(crate) fn report(&self) -> String {
        let mut text = String::new();
        for image in &self.images {
            let _ = writeln!(
                text,
                "{} {}: program {}, image {} compressed, {}",
                self.variant,
                image.arch,
                megabytes(image.program),
                megabytes(image.compressed),
                image.digest
            );
        }
        for (arch, why) in &self.skipped {
            let _ = writeln!(text, "skipped {arch}: {why}");
        }
        let _ = writeln!(text, "in {}", self.dir.display());
        text
    }
}

/// Of a million bytes, with one digit after the point.
fn megabytes(bytes: usize) -> String {
    let tenths = bytes.div_ceil(100_000);
    format!("{}.{} MB", tenths / 10, tenths % 10)
}

/// Makes the images. `target_dir` is for whoever builds a second time from nothing.
pub(crate) fn make(workspace: &Workspace, options: &Options, target_dir: Option<&Path>) -> Result<Made> {
    let metadata = Metadata::load(workspace, &["--all-features"])?;
    let usual = PathBuf::from(&metadata.target_directory);
    let dir = options.output.clone().unwrap_or_else(|| usual.join("image").join(options.variant.name()));
    let tools = Toolchain::look(workspace, target_dir.map_or(usual, Path::to_path_buf))?;
    let ours = metadata.packages.iter().find(|package| package.name == PACKAGE && package.source.is_none());
    let version = ours.ok_or("there is no package cloudberth")?.version.clone();
    let source = Source::look(workspace)?;
    let (archs, skipped) = if options.program.is_some() {
        (vec![Arch::of_this_machine()?], BTreeMap::new())
    } else {
        choose(options, &|arch| tools.compiler(arch).map(drop))?
    };
    let job =
        Job { workspace, options, metadata: &metadata, tools: &tools, source: &source, version: &version };
    let (mut images, mut made) = (Vec::new(), Vec::new());
    for arch in archs {
        println!("   {} for {}", options.variant.name(), arch.target());
        let (image, files) = job.image(arch, &dir)?;
        images.push(image);
        made.push(files);
    }
    let written = dir.join(LAYOUT);
    write_tree(&written, &layout(&images)?)?;
    let made = Made {
        version,
        variant: options.variant.name().to_owned(),
        name: options.name.clone(),
        revision: source.revision(),
        images: made,
        skipped,
        dir,
    };
    verify(&made)?;
    let text = serde_json::to_string_pretty(&made).map_err(|why| why.to_string())?;
    write(&made.dir.join(SUMMARY), format!("{text}\n").as_bytes())?;
    Ok(made)
}

/// Which processors, and which not. What was asked for by name must be possible.
fn choose(
    options: &Options,
    possible: &dyn Fn(Arch) -> Result<()>,
) -> Result<(Vec<Arch>, BTreeMap<String, String>)> {
    if let Some(asked) = &options.archs {
        for arch in asked {
            possible(*arch)?;
        }
        return Ok((asked.clone(), BTreeMap::new()));
    }
    let (mut archs, mut skipped) = (Vec::new(), BTreeMap::new());
    for arch in Arch::ALL {
        match possible(arch) {
            Ok(()) => archs.push(arch),
            Err(why) => {
                skipped.insert(arch.name().to_owned(), why);
            }
        }
    }
    let reasons = || skipped.values().cloned().collect::<Vec<_>>().join("; ");
    if archs.is_empty() { Err(reasons()) } else { Ok((archs, skipped)) }
}

struct Job<'a> {
    workspace: &'a Workspace,
    options: &'a Options,
    metadata: &'a Metadata,
    tools: &'a Toolchain,
    source: &'a Source,
    version: &'a str,
}

impl Job<'_> {
    fn image(&self, arch: Arch, dir: &Path) -> Result<(Image, MadeImage)> {
        let variant = self.options.variant;
        let graph = linked(self.workspace, PACKAGE, arch.target(), variant.features())?;
        let (program, compiler) = if let Some(file) = &self.options.program {
            (read(file)?, None)
        } else {
            let built = build::program(self.workspace, self.tools, self.metadata, arch, variant)?;
            built.compare(&graph)?;
            (read(&built.file)?, Some(built.compiler))
        };
        let helm = if variant.has_helm() {
            let cache = self.tools.places.target_dir.join("image");
            Some(helm::provide(self.workspace, arch, &cache)?)
        } else {
            None
        };
        let mut texts = licences::of_crates(&graph, self.metadata, &self.workspace.read("LICENSE")?)?;
        texts.extend(helm.iter().flat_map(|helm| helm.licences.clone()));
        let texts = licences::join(&texts);
        let helm_bytes = helm.as_ref().map(|helm| read(&helm.file)).transpose()?;
        let parts = Parts { variant, program: &program, helm: helm_bytes.as_deref(), licences: &texts };
        let facts = self.facts()?;
        let image = Image::new(arch, &rootfs::tree(&parts), &facts)?;
        let archive = image.archive()?;

        let digest = Sha256::of(&program);
        let root =
            graph.keys().find(|(name, _)| name == PACKAGE).ok_or("cargo tree does not list cloudberth")?;
        let mut others = toolchain_parts(self.tools);
        others.extend(helm.iter().flat_map(|helm| helm.parts.clone()));
        let bill = bill(&Materials {
            graph: &graph,
            root,
            metadata: self.metadata,
            checksums: &checksums(&self.workspace.read("Cargo.lock")?)?,
            parts: &others,
            program: &digest,
        })?;
        let compiler = compiler.map(|name| {
            let said = said(Command::new(&name).arg("--version")).unwrap_or_default();
            said.lines().next().map_or(name, str::to_owned)
        });
        let statement = statement(&Statement {
            variant,
            arch,
            version: self.version,
            source: self.source,
            rustc: &self.tools.rustc,
            compiler: compiler.as_deref(),
            lock: &Sha256::of(self.workspace.read("Cargo.lock")?.as_bytes()),
            program: &digest,
            archive: &Sha256::of(&archive),
            image: image.digest(),
            helm: helm.as_ref().map(|helm| helm.version.as_str()),
        });
        let file = variant.file(self.version, arch);
        let mut made = MadeImage {
            arch: arch.name().to_owned(),
            file: file.clone(),
            digest: image.digest().to_owned(),
            compressed: image.compressed,
            program: program.len(),
            files: BTreeMap::new(),
        };
        let contents = [
            (file.clone(), program),
            (format!("{file}.tar"), archive),
            (format!("{file}.cdx.json"), pretty(&bill)?),
            (format!("{file}.provenance.json"), pretty(&statement)?),
            (format!("{file}.licences.txt"), texts.into_bytes()),
        ];
        for (name, bytes) in contents {
            write(&dir.join(&name), &bytes)?;
            made.files.insert(name, Sha256::of(&bytes));
        }
        executable(&dir.join(&file))?;
        Ok((image, made))
    }

    fn facts(&self) -> Result<Facts> {
        let label = |name: &str, value: &str| (format!("org.opencontainers.image.{name}"), value.to_owned());
        let created = self.source.created()?;
        let labels = BTreeMap::from([
            label("created", &created),
            label("description", "The Kubernetes cloud controller manager for several clouds"),
            label("licenses", "Apache-2.0"),
            label("revision", &self.source.revision()),
            label("title", "cloudberth"),
            label("version", self.version),
        ]);
        let tag = self.options.variant.tag(self.version);
        Ok(Facts { name: self.options.name.clone(), tag, created, labels })
    }
}

/// What the toolchain links in.
fn toolchain_parts(tools: &Toolchain) -> Vec<Part> {
    let version = tools.rustc_fact("release").to_owned();
    let std = Part {
        kind: "library",
        name: "std".to_owned(),
        purl: format!("pkg:generic/rust-std@{version}"),
        version: Some(version),
        licence: Some("MIT OR Apache-2.0"),
        about: "the Rust standard library".to_owned(),
    };
    let musl = Part {
        kind: "library",
        name: "musl".to_owned(),
        version: None,
        purl: "pkg:generic/musl".to_owned(),
        licence: Some("MIT"),
        about: "the C library, as the Rust standard library brings it".to_owned(),
    };
    vec![std, musl]
}

fn pretty(value: &Value) -> Result<Vec<u8>> {
    let text = serde_json::to_string_pretty(value).map_err(|why| why.to_string())?;
    Ok(format!("{text}\n").into_bytes())
}

/// Replaces what an earlier run wrote there, and nothing else.
fn write_tree(dir: &Path, tree: &Tree) -> Result<()> {
    if dir.exists() {
        if !dir.join("oci-layout").is_file() {
            return Err(format!("{} is there and is no image layout: remove it", dir.display()));
        }
        fs::remove_dir_all(dir).map_err(|why| format!("{}: {why}", dir.display()))?;
    }
    for (path, entry) in tree {
        if let Content::File(bytes) = &entry.content {
            write(&dir.join(path), bytes)?;
        }
    }
    Ok(())
}

/// The files below a folder.
pub(crate) fn read_tree(dir: &Path) -> Result<Tree> {
    fn walk(dir: &Path, prefix: &str, tree: &mut Tree) -> Result<()> {
        let failed = |why| format!("{}: {why}", dir.display());
        for entry in fs::read_dir(dir).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            if entry.file_type().map_err(failed)?.is_dir() {
                walk(&entry.path(), &format!("{name}/"), tree)?;
            } else {
                tree.insert(name, Entry::file(read(&entry.path())?));
            }
        }
        Ok(())
    }
    let mut tree = Tree::new();
    walk(dir, "", &mut tree)?;
    Ok(tree)
}

/// Reads everything back from the disk: digests, both descriptions, and that the bill was written.
fn verify(made: &Made) -> Result<()> {
    let layout = inspect::images(&read_tree(&made.dir.join(LAYOUT))?)?;
    for image in &made.images {
        let name = made.dir.join(format!("{}.tar", image.file));
        let files = unpack(&read(&name)?).map_err(|why| format!("{}: {why}", name.display()))?;
        let [oci] =
            inspect::images(&files)?.try_into().map_err(|_| format!("{}: not one image", name.display()))?;
        let [(_, _, docker)] =
            inspect::docker(&files)?.try_into().map_err(|_| format!("{}: not one image", name.display()))?;
        let in_layout = layout.iter().find(|found| found.descriptor.digest == image.digest);
        let same = in_layout.is_some_and(|found| found.content == oci.content) && docker == oci.content;
        if !same || oci.descriptor.digest != image.digest {
            return Err(format!("{}: layout and archive do not hold the same image", name.display()));
        }
        let bill = made.dir.join(format!("{}.cdx.json", image.file));
        let bill: Value =
            serde_json::from_slice(&read(&bill)?).map_err(|why| format!("{}: {why}", bill.display()))?;
        if crates(&bill).is_empty() {
            return Err(format!("{}: the bill of materials is empty", image.file));
        }
    }
    Ok(())
}

#[cfg(unix)]
pub(crate) fn executable(file: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mode = fs::Permissions::from_mode(0o755);
    fs::set_permissions(file, mode).map_err(|why| format!("{}: {why}", file.display()))
}

#[cfg(not(unix))]
pub(crate) fn executable(_: &Path) -> Result<()> {
    Ok(())
}

/// The folder of a variant's images, if an earlier run left them there for these very sources, as a run without any options
/// does: for every processor, and under the usual name.
pub(crate) fn found(dir: &Path, source: &Source) -> Option<Made> {
    let mut made: Made = serde_json::from_slice(&read(&dir.join(SUMMARY)).ok()?).ok()?;
    made.dir = dir.to_path_buf();
    let whole = made
        .images
        .iter()
        .flat_map(|image| &image.files)
        .all(|(name, digest)| Sha256::of_file(&dir.join(name)).is_ok_and(|found| found == *digest));
    let thought_of = |arch: &Arch| {
        made.skipped.contains_key(arch.name()) || made.images.iter().any(|image| image.arch == arch.name())
    };
    let usual = made.name == Options::default().name && Arch::ALL.iter().all(thought_of);
    (whole && usual && !source.dirty && made.revision == source.revision()).then_some(made)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Sample;

    #[test]
    fn what_cannot_be_built_is_skipped_aloud_unless_it_was_asked_for() {
        let no_arm = |arch| if arch == Arch::Arm64 { Err("no compiler".to_owned()) } else { Ok(()) };
        let (archs, skipped) = choose(&Options::default(), &no_arm).unwrap();
        assert_eq!((archs, skipped["arm64"].as_str()), (vec![Arch::Amd64], "no compiler"));
        let asked = Options { archs: Some(Arch::ALL.to_vec()), ..Options::default() };
        assert_eq!(choose(&asked, &no_arm), Err("no compiler".to_owned()));
        assert_eq!(choose(&Options::default(), &|_| Err("no".to_owned())), Err("no; no".to_owned()));
    }

    #[test]
    fn an_earlier_run_is_found_only_whole_and_for_the_same_sources() {
        let sample = Sample::new("image found", &[("cloudberth-1-linux-amd64.tar", "archive")]);
        let dir = sample.workspace.path("");
        let file = "cloudberth-1-linux-amd64".to_owned();
        let made = Made {
            version: "1".to_owned(),
            variant: "plain".to_owned(),
            name: "cloudberth".to_owned(),
            revision: "abc".to_owned(),
            images: vec![MadeImage {
                arch: "amd64".to_owned(),
                files: BTreeMap::from([(format!("{file}.tar"), Sha256::of(b"archive"))]),
                file,
                digest: Sha256::of(b"m").to_string(),
                compressed: 12_340_000,
                program: 99_999,
            }],
            skipped: BTreeMap::from([("arm64".to_owned(), "no compiler".to_owned())]),
            dir: dir.clone(),
        };
        let report = made.report();
        assert!(
            report.contains("plain amd64: program 0.1 MB, image 12.4 MB compressed, sha256:"),
            "{report}"
        );
        assert!(report.contains("skipped arm64: no compiler"), "{report}");

        let source = |commit: &str, dirty| Source { commit: commit.to_owned(), dirty, seconds: 0 };
        assert_eq!(found(&dir, &source("abc", false)), None, "nothing was written");
        write(&dir.join(SUMMARY), serde_json::to_string(&made).unwrap().as_bytes()).unwrap();
        assert_eq!(found(&dir, &source("abc", false)), Some(made.clone()));
        let others = [
            Made { name: "mine".to_owned(), ..made.clone() },
            Made { skipped: BTreeMap::new(), ..made.clone() },
        ];
        for other in others {
            write(&dir.join(SUMMARY), serde_json::to_string(&other).unwrap().as_bytes()).unwrap();
            assert_eq!(found(&dir, &source("abc", false)), None, "{other:?}");
        }
        write(&dir.join(SUMMARY), serde_json::to_string(&made).unwrap().as_bytes()).unwrap();
        assert_eq!(found(&dir, &source("abd", false)), None);
        assert_eq!(found(&dir, &source("abc", true)), None);
        write(&dir.join("cloudberth-1-linux-amd64.tar"), b"another").unwrap();
        assert_eq!(found(&dir, &source("abc", false)), None);
    }

    #[test]
    fn a_folder_that_is_no_layout_is_not_removed() {
        let sample = Sample::new("image layout", &[("mine/file", "mine")]);
        let tree = Tree::from([("oci-layout".to_owned(), Entry::file("{}"))]);
        let why = write_tree(&sample.workspace.path("mine"), &tree).unwrap_err();
        assert!(why.contains("is no image layout") && sample.workspace.path("mine/file").exists(), "{why}");
        write_tree(&sample.workspace.path("new"), &tree).unwrap();
        write_tree(&sample.workspace.path("new"), &tree).unwrap();
        assert_eq!(read_tree(&sample.workspace.path("new")).unwrap(), tree);
    }
}
