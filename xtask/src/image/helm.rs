//! helm for the image that has it: built from the module that `tools/helm` pins, with its own parts and licences.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::build::said;
use super::licences::{Text, texts_in};
use super::sbom::Part;
use super::variant::Arch;
use crate::Result;
use crate::workspace::Workspace;

const PACKAGE: &str = "helm.sh/helm/v3/cmd/helm";
const MODULE: &str = "helm.sh/helm/v3";
const VERSION: &str = "helm.sh/helm/v3/internal/version.version";

/// helm, and what is to be said about it.
#[derive(Clone, Debug)]
pub(crate) struct Helm {
    pub(crate) file: PathBuf,
    pub(crate) version: String,
    pub(crate) parts: Vec<Part>,
    pub(crate) licences: Vec<Text>,
}

/// A Go module that is linked in.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Module {
    path: String,
    version: String,
}

/// Builds helm into `dir`.
pub(crate) fn provide(workspace: &Workspace, arch: Arch, dir: &Path) -> Result<Helm> {
    let version = version(&workspace.read("tools/helm/go.mod")?)?;
    let file = dir.join(format!("helm-{version}-linux-{}", arch.name()));
    let go = |args: &[&str]| {
        let mut command = Command::new("go");
        command.args(args).current_dir(workspace.path("tools/helm"));
        command.envs([("CGO_ENABLED", "0"), ("GOWORK", "off"), ("GOOS", "linux"), ("GOARCH", arch.name())]);
        command.env_remove("GOFLAGS");
        command
    };
    println!("   helm {version} for {}", arch.name());
    let flags = format!("-ldflags=-s -w -X {VERSION}={version}");
    let mut build = go(&["build", "-mod=readonly", "-trimpath", "-buildvcs=false", &flags]);
    said(build.arg("-o").arg(&file).arg(PACKAGE)).map_err(|why| format!("helm: {why}"))?;
    let modules = linked(&said(go(&["version", "-m"]).arg(&file))?);
    let places = said(&mut go(&["list", "-m", "-f", "{{.Path}} {{.Version}} {{.Dir}}", "all"]))?;
    let mut licences = Vec::new();
    for module in &modules {
        let title = format!("{} {}, in helm", module.path, module.version);
        let place = place(&places, module).ok_or_else(|| format!("{title}: go does not say where it is"))?;
        let texts = texts_in(Path::new(place))?;
        licences.extend(texts.into_iter().map(|text| (title.clone(), text)));
    }
    let parts = modules.iter().map(part).collect();
    Ok(Helm { file, version, parts, licences })
}

fn version(go_mod: &str) -> Result<String> {
    let words =
        |line: &str| line.trim().trim_start_matches("require ").split(' ').map(str::to_owned).collect();
    let lines =
        go_mod.lines().map(words).find(|words: &Vec<String>| words.first().is_some_and(|w| w == MODULE));
    lines
        .and_then(|words| words.get(1).cloned())
        .ok_or_else(|| format!("tools/helm/go.mod does not pin {MODULE}"))
}

/// What `go version -m` lists: lines such as `dep  PATH  VERSION  SUM`.
fn linked(text: &str) -> Vec<Module> {
    let module = |line: &str| {
        let mut words = line.split_whitespace();
        let (kind, path, version) = (words.next()?, words.next()?, words.next()?);
        matches!(kind, "mod" | "dep").then(|| Module { path: path.to_owned(), version: version.to_owned() })
    };
    // The module that the build was started in is ours and has nothing in it.
    text.lines().filter_map(module).filter(|module| module.version != "(devel)").collect()
}

fn place<'a>(list: &'a str, module: &Module) -> Option<&'a str> {
    let prefix = format!("{} {} ", module.path, module.version);
    list.lines().find_map(|line| line.strip_prefix(&prefix)).filter(|place| !place.is_empty())
}

fn part(module: &Module) -> Part {
    let kind = if module.path == MODULE { "application" } else { "library" };
    Part {
        kind,
        name: module.path.clone(),
        version: Some(module.version.clone()),
        purl: format!("pkg:golang/{}@{}", module.path, module.version.replace('+', "%2B")),
        licence: None,
        about: if kind == "application" { "helm, as a program of its own" } else { "linked into helm" }
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_one_that_is_pinned() {
        let pins = Workspace::find().unwrap().read("tools/helm/go.mod").unwrap();
        assert!(version(&pins).unwrap().starts_with("v3."));
        assert_eq!(version("require helm.sh/helm/v3 v3.1.0"), Ok("v3.1.0".to_owned()));
        assert!(version("module other").unwrap_err().contains("tools/helm/go.mod"));
    }

    #[test]
    fn what_is_linked_into_a_go_program_is_read() {
        let text = "helm: go1.26.8\n\tpath\thelm.sh/helm/v3/cmd/helm\n\tmod\tcloudberth.dev/tools/helm\t(devel)\t\n\
                    \tdep\thelm.sh/helm/v3\tv3.20.0\th1:abc=\n\tdep\tgithub.com/a/b\tv1.0.0+incompatible\th1:d=\n\tbuild\t-trimpath=true\n";
        let modules = linked(text);
        let parts: Vec<_> = modules.iter().map(part).map(|part| (part.kind, part.purl)).collect();
        assert_eq!(
            parts,
            [
                ("application", "pkg:golang/helm.sh/helm/v3@v3.20.0".to_owned()),
                ("library", "pkg:golang/github.com/a/b@v1.0.0%2Bincompatible".to_owned()),
            ]
        );
        let list = "github.com/a/b v1.0.0+incompatible /go/b\nhelm.sh/helm/v3 v3.20.0 \n";
        assert_eq!(place(list, &modules[1]), Some("/go/b"));
        assert_eq!(place(list, &modules[0]), None);
    }
}
