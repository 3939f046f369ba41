//! The programs that are measured, built as they are shipped.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;
use tokio::process::Command;

use super::BenchError;

/// A build of the program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Build {
    /// The name of its copy.
    pub(crate) name: &'static str,
    profile: &'static str,
    features: &'static [&'static str],
    /// A static program, as the image has it.
    is_static: bool,
}

/// What static programs are built for, on this processor.
const STATIC: &str =
    if cfg!(target_arch = "aarch64") { "aarch64-unknown-linux-musl" } else { "x86_64-unknown-linux-musl" };

/// The shipped build, without simulated servers.
pub(crate) const SHIPPED: Build =
    Build { name: "shipped", profile: "dist", features: &["--no-default-features"], is_static: false };
/// The build that people make themselves, with all simulated servers.
pub(crate) const SURROUNDINGS: Build =
    Build { name: "surroundings", profile: "release", features: &[], is_static: false };

/// The shipped build with the local cloud in it.
pub(crate) const LOCAL: Build = Build {
    name: "local",
    profile: "dist",
    features: &["--no-default-features", "--features", "lycke"],
    is_static: false,
};

/// The program of the image, with the allocator of musl.
pub(crate) const IMAGE: Build = Build { name: "musl", is_static: true, ..SHIPPED };
/// The same with another allocator.
pub(crate) const IMAGE_WITH_DLMALLOC: Build = Build {
    name: "musl with dlmalloc",
    features: &["--no-default-features", "--features", "dlmalloc"],
    ..IMAGE
};

impl Build {
    /// Builds it and keeps a copy in `place`, because the next build puts another program under the same name.
    pub(crate) async fn make(&self, place: &Path) -> Result<PathBuf, BenchError> {
        eprintln!("building {} ({}); a dist build takes minutes", self.name, self.command_line());
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        // Build scripts look at these, and what they made for this very program would be made anew, again and again.
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
                command.env_remove(name);
            }
        }
        if self.is_static {
            // It is there most likely; if it is neither there nor to be had, the build says so.
            let _ = Command::new("rustup").args(["target", "add", STATIC]).status().await;
            let name = STATIC.replace('-', "_");
            let compiler = format!("CC_{name}");
            if std::env::var_os(&compiler).is_none() {
                command.env(compiler, "gcc");
            }
            command.env(format!("CARGO_TARGET_{}_LINKER", name.to_uppercase()), "rust-lld");
        }
        let built = command
            .args(self.arguments())
            .arg("--message-format=json-render-diagnostics")
            .stderr(Stdio::inherit())
            .kill_on_drop(true)
            .output()
            .await?;
        if !built.status.success() {
            return Err(BenchError::Build(self.command_line()));
        }
        let told = String::from_utf8_lossy(&built.stdout);
        let program = executable(&told).ok_or_else(|| BenchError::Build(self.command_line()))?;
        let copy = place.join(self.name);
        std::fs::copy(program, &copy)?;
        Ok(copy)
    }

    fn arguments(&self) -> impl Iterator<Item = &'static str> {
        ["build", "--profile", self.profile, "-p", "cloudberth"]
            .into_iter()
            .chain(self.features.iter().copied())
            .chain(self.is_static.then_some(["--target", STATIC]).into_iter().flatten())
    }

    /// The command line, for messages.
    pub(crate) fn command_line(&self) -> String {
        std::iter::once("cargo").chain(self.arguments()).collect::<Vec<_>>().join(" ")
    }
}

/// The path of the program, from the messages of a build.
fn executable(messages: &str) -> Option<PathBuf> {
    let told = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let program = |message: Value| {
        let ours = message.pointer("/target/name")? == "cloudberth";
        ours.then(|| message.get("executable")?.as_str().map(PathBuf::from)).flatten()
    };
    told.filter_map(program).next_back()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_found_among_the_messages() {
        let messages = "not json\n\
            {\"reason\":\"compiler-artifact\",\"target\":{\"name\":\"other\"},\"executable\":\"/t/other\"}\n\
            {\"reason\":\"compiler-artifact\",\"target\":{\"name\":\"cloudberth\"},\"executable\":null}\n\
            {\"reason\":\"compiler-artifact\",\"target\":{\"name\":\"cloudberth\"},\"executable\":\"/t/cloudberth\"}\n\
            {\"reason\":\"build-finished\",\"success\":true}\n";
        assert_eq!(executable(messages), Some(PathBuf::from("/t/cloudberth")));
        assert_eq!(executable("{}"), None);
    }

    #[test]
    fn the_shipped_program_is_named_as_people_build_it() {
        let shipped = "cargo build --profile dist -p cloudberth --no-default-features";
        assert_eq!(SHIPPED.command_line(), shipped);
        assert_eq!(IMAGE.command_line(), format!("{shipped} --target {STATIC}"));
        let other = format!("{shipped} --features dlmalloc --target {STATIC}");
        assert_eq!(IMAGE_WITH_DLMALLOC.command_line(), other);
    }
}
