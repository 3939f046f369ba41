//! Somebody who follows a page about installing, command by command.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use cloudberth_e2e::{Cluster, shipped};
use tokio::process::Command;

/// What a page shows as the address of Cloudlycke.
pub(crate) const CLOUDLYCKE: &str = "192.168.56.1:7733";

/// The root of the checkout.
pub(crate) fn root() -> PathBuf {
    fs::canonicalize(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).unwrap()
}

/// The command blocks of a page, in their order.
pub(crate) fn blocks(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut block: Option<(bool, String)> = None;
    for line in page.lines() {
        block = match (line.strip_prefix("```"), block) {
            (Some(language), None) => Some((matches!(language, "sh" | "sh run"), String::new())),
            (Some(_), Some((commands, text))) => {
                found.extend(commands.then_some(text));
                None
            }
            (None, Some((commands, text))) => Some((commands, text + line + "\n")),
            (None, None) => None,
        };
    }
    found
}

/// A person in a folder that looks like a checkout, with `helm`, `kubectl` and `cloudberth`, and with the rights of the
/// administrator.
#[derive(Debug)]
pub(crate) struct Reader {
    pub(crate) dir: PathBuf,
    home: PathBuf,
    kubeconfig: PathBuf,
    /// What stands on the page, and what this person types in its place.
    pub(crate) filled: Vec<(String, String)>,
}

impl Reader {
    pub(crate) fn new(cluster: &Cluster, name: &str) -> Self {
        let dir = cluster.dir().join(name);
        let bin = dir.join("bin");
        fs::create_dir_all(&bin).unwrap();
        for folder in ["charts", "clouds", "deploy"] {
            symlink(root().join(folder), dir.join(folder)).unwrap();
        }
        let helm = kube_assets::helm(&mut |line| eprintln!("{line}")).unwrap();
        let programs = [
            ("helm", helm),
            ("kubectl", cluster.kubectl_command().program),
            ("cloudberth", shipped().unwrap()),
        ];
        for (name, program) in programs {
            symlink(program, bin.join(name)).unwrap();
        }
        Self { dir, home: cluster.dir().to_path_buf(), kubeconfig: cluster.kubeconfig(), filled: Vec::new() }
    }

    pub(crate) fn fill(&mut self, on_the_page: &str, typed: impl Into<String>) {
        self.filled.push((on_the_page.to_owned(), typed.into()));
    }

    /// What the commands print. They must succeed.
    pub(crate) async fn run(&self, commands: &str) -> String {
        self.run_with(commands, &[]).await
    }

    /// The same, with more variables.
    pub(crate) async fn run_with(&self, commands: &str, env: &[(String, String)]) -> String {
        let commands =
            self.filled.iter().fold(commands.to_owned(), |text, (from, to)| text.replace(from, to));
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", self.dir.join("bin").display());
        let mut shell = Command::new("/bin/sh");
        shell.args(["-eu", "-c", &commands]).current_dir(&self.dir).env_clear().env("PATH", path);
        shell.env("HOME", &self.home).env("KUBECONFIG", &self.kubeconfig).envs(env.iter().cloned());
        let output = shell.stdin(Stdio::null()).kill_on_drop(true).output().await.unwrap();
        let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "{commands}\n{}{}", said(&output.stdout), said(&output.stderr));
        said(&output.stdout)
    }
}

/// The program of an image in the folder of a release, unpacked below `dir`; none if no archive has the tag of `image`.
pub(crate) async fn program_of_image(folder: &Path, image: &str, dir: &Path) -> Option<PathBuf> {
    let tag = image.rsplit(':').next().unwrap();
    let run = async |args: &[&str]| {
        let output = Command::new("tar").args(args).output().await.unwrap();
        assert!(output.status.success(), "tar {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    fs::create_dir_all(dir).unwrap();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let archive = path.to_str().unwrap();
        let of_another_processor = cfg!(target_arch = "x86_64") != archive.contains("-amd64");
        if path.extension().is_none_or(|ending| ending != "tar") || of_another_processor {
            continue;
        }
        let manifest: serde_json::Value =
            serde_json::from_slice(&run(&["-xOf", archive, "manifest.json"]).await).unwrap();
        if !manifest[0]["RepoTags"][0].as_str().unwrap().ends_with(&format!(":{tag}")) {
            continue;
        }
        let dir = dir.to_str().unwrap();
        for layer in manifest[0]["Layers"].as_array().unwrap() {
            let layer = layer.as_str().unwrap();
            run(&["-xf", archive, "-C", dir, layer]).await;
            run(&["-xzf", &format!("{dir}/{layer}"), "-C", dir, "bin/cloudberth"]).await;
        }
        return Some(Path::new(dir).join("bin/cloudberth"));
    }
    None
}
