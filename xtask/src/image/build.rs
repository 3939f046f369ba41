//! Building the program for an image: a static one, in which no path of the build machine is left.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

use super::variant::{Arch, Variant};
use crate::Result;
use crate::metadata::{Graph, Key, Metadata};
use crate::workspace::Workspace;

pub(crate) const PACKAGE: &str = "cloudberth";
pub(crate) const PROFILE: &str = "dist";
/// Comes with the toolchain, so that no linker of the machine has a say.
pub(crate) const LINKER: &str = "rust-lld";

/// Variables that would change what is built without a word. `RUSTFLAGS` even replaces the flags of the checkout.
const NOT_FROM_OUTSIDE: [&str; 6] = [
    "RUSTFLAGS",
    "CARGO_ENCODED_RUSTFLAGS",
    "CARGO_BUILD_RUSTFLAGS",
    "RUSTC_WRAPPER",
    "CFLAGS",
    "TARGET_CFLAGS",
];

/// Places of the build machine, of which nothing may get into the program.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    pub(crate) cargo_home: PathBuf,
    pub(crate) sysroot: PathBuf,
    pub(crate) checkout: PathBuf,
    pub(crate) target_dir: PathBuf,
}

impl Places {
    /// Flags for the compiler. Where two of them fit, the later one counts.
    fn flags(&self, rustc_commit: &str) -> Vec<String> {
        let remap = |from: &Path, to: &str| format!("--remap-path-prefix={}={to}", from.display());
        vec![
            remap(&self.cargo_home, "/cargo"),
            remap(&self.sysroot.join("lib/rustlib/src/rust"), &format!("/rustc/{rustc_commit}")),
            remap(&self.checkout, "/src"),
            remap(&self.target_dir, "/target"),
        ]
    }
}

/// What the machine has.
#[derive(Clone, Debug)]
pub(crate) struct Toolchain {
    /// What `rustc -vV` prints.
    pub(crate) rustc: String,
    pub(crate) places: Places,
    /// On Linux, the processor of this machine.
    host: Option<&'static str>,
}

impl Toolchain {
    pub(crate) fn look(workspace: &Workspace, target_dir: PathBuf) -> Result<Self> {
        let home = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let cargo_home = home("CARGO_HOME").or_else(|| home("HOME").map(|home| home.join(".cargo")));
        let rustc = said(Command::new("rustc").arg("-vV").current_dir(workspace.path("")))?;
        let sysroot =
            said(Command::new("rustc").args(["--print", "sysroot"]).current_dir(workspace.path("")))?;
        let places = Places {
            cargo_home: cargo_home.ok_or("no home of cargo: set HOME or CARGO_HOME")?,
            sysroot: PathBuf::from(sysroot.trim()),
            checkout: workspace.path("").components().collect(),
            target_dir,
        };
        let host = cfg!(target_os = "linux").then_some(std::env::consts::ARCH);
        Ok(Self { rustc, places, host })
    }

    /// A fact from `rustc -vV`, such as `release`.
    pub(crate) fn rustc_fact(&self, name: &str) -> &str {
        let prefix = format!("{name}: ");
        self.rustc.lines().find_map(|line| line.strip_prefix(&prefix)).unwrap_or("unknown")
    }

    /// The C compiler for a processor. ring, the cryptography, has C code in it.
    pub(crate) fn compiler(&self, arch: Arch) -> Result<String> {
        let given = std::env::var(variable("CC", arch)).ok().filter(|value| !value.is_empty());
        compiler(arch, self.host == Some(arch.processor()), given, &in_path)
    }
}

fn compiler(arch: Arch, native: bool, given: Option<String>, has: &dyn Fn(&str) -> bool) -> Result<String> {
    let processor = arch.processor();
    let named = [format!("{processor}-linux-musl-gcc"), format!("{processor}-linux-gnu-gcc")];
    let mut candidates: Vec<&str> =
        if native { vec!["gcc"] } else { named.iter().map(String::as_str).collect() };
    candidates.push("clang");
    if let Some(given) = given {
        return Ok(given);
    }
    candidates.iter().find(|name| has(name)).map(|name| (*name).to_owned()).ok_or_else(|| {
        format!(
            "ring has C code, and no C compiler for {processor} is there (looked for {}): install clang, or name one in {}",
            candidates.join(", "),
            variable("CC", arch)
        )
    })
}

/// `CC_x86_64_unknown_linux_musl`.
fn variable(name: &str, arch: Arch) -> String {
    format!("{name}_{}", arch.target().replace('-', "_"))
}

fn in_path(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(name).is_file())
}

/// What a command prints, or why it failed.
pub(crate) fn said(command: &mut Command) -> Result<String> {
    let shown = format!("{command:?}");
    let ran = command.output().map_err(|why| format!("{shown}: {why}"))?;
    if !ran.status.success() {
        return Err(format!("{shown} failed: {}", String::from_utf8_lossy(&ran.stderr).trim()));
    }
    Ok(String::from_utf8_lossy(&ran.stdout).into_owned())
}

/// A program that was built.
#[derive(Clone, Debug)]
pub(crate) struct Built {
    pub(crate) file: PathBuf,
    pub(crate) compiler: String,
    /// What was compiled for the target, by cargo's own account.
    crates: BTreeSet<Key>,
}

impl Built {
    /// Whether the bill of materials lists what was compiled.
    pub(crate) fn compare(&self, graph: &Graph) -> Result<()> {
        let listed: BTreeSet<_> = graph.keys().cloned().collect();
        if listed == self.crates {
            return Ok(());
        }
        let names =
            |keys: Vec<&Key>| keys.iter().map(|(n, v)| format!("{n} {v}")).collect::<Vec<_>>().join(", ");
        Err(format!(
            "the bill of materials is not what was compiled; compiled only: [{}], listed only: [{}]",
            names(self.crates.difference(&listed).collect()),
            names(listed.difference(&self.crates).collect())
        ))
    }
}

/// What cargo is told.
struct Order {
    env: Vec<(String, String)>,
    args: Vec<String>,
}

fn order(tools: &Toolchain, arch: Arch, variant: Variant, compiler: &str) -> Result<Order> {
    let linker = variable("CARGO_TARGET", arch).to_uppercase() + "_LINKER";
    let env = vec![(variable("CC", arch), compiler.to_owned()), (linker, LINKER.to_owned())];
    let flags = tools.places.flags(tools.rustc_fact("commit-hash"));
    // Flags given in this way are added to those of the checkout. A list of strings is written in TOML as in JSON.
    let flags = serde_json::to_string(&flags).map_err(|why| why.to_string())?;
    let mut args = vec!["--config".to_owned(), format!("build.rustflags={flags}"), "build".to_owned()];
    args.extend(
        ["--locked", "--package", PACKAGE, "--bin", PACKAGE, "--profile", PROFILE].map(str::to_owned),
    );
    args.extend(["--target", arch.target(), "--message-format=json-render-diagnostics"].map(str::to_owned));
    args.extend(variant.features().iter().map(ToString::to_string));
    Ok(Order { env, args })
}

/// Builds it. The standard library for the target is added if it is missing.
pub(crate) fn program(
    workspace: &Workspace,
    tools: &Toolchain,
    metadata: &Metadata,
    arch: Arch,
    variant: Variant,
) -> Result<Built> {
    let compiler = tools.compiler(arch)?;
    add_target(tools, arch)?;
    let Order { env, args } = order(tools, arch, variant, &compiler)?;
    let mut command = workspace.cargo(&args.iter().map(String::as_str).collect::<Vec<_>>());
    for name in NOT_FROM_OUTSIDE {
        command.env_remove(name);
    }
    command.envs(env).env("CARGO_TARGET_DIR", &tools.places.target_dir);
    let failed = |why| format!("cargo build: {why}");
    let child = command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().map_err(failed)?;
    let ran = child.wait_with_output().map_err(failed)?;
    if !ran.status.success() {
        return Err(format!("the program for {} did not build", arch.target()));
    }
    let (file, crates) = artifacts(&String::from_utf8_lossy(&ran.stdout), arch, metadata);
    let file = file.ok_or("cargo built no program")?;
    Ok(Built { file, compiler, crates })
}

fn add_target(tools: &Toolchain, arch: Arch) -> Result<()> {
    if tools.places.sysroot.join("lib/rustlib").join(arch.target()).join("lib").is_dir() {
        return Ok(());
    }
    let added = said(Command::new("rustup").args(["target", "add", arch.target()]));
    added.map(drop).map_err(|why| {
        let target = arch.target();
        format!("no standard library for {target}, and rustup cannot add it: {why}")
    })
}

/// The program, and the crates that were compiled for the target; others ran on the build machine only.
fn artifacts(messages: &str, arch: Arch, metadata: &Metadata) -> (Option<PathBuf>, BTreeSet<Key>) {
    #[derive(Deserialize)]
    struct Artifact {
        package_id: String,
        filenames: Vec<PathBuf>,
        executable: Option<PathBuf>,
    }
    let (mut program, mut crates) = (None, BTreeSet::new());
    let target = OsString::from(arch.target());
    for artifact in messages.lines().filter_map(|line| serde_json::from_str::<Artifact>(line).ok()) {
        let for_target = |file: &PathBuf| file.iter().any(|part| part == target);
        if !artifact.filenames.iter().any(for_target) {
            continue;
        }
        if let Some(package) = metadata.packages.iter().find(|package| package.id == artifact.package_id) {
            crates.insert((package.name.clone(), package.version.clone()));
        }
        program = artifact.executable.or(program);
    }
    (program, crates)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Package;

    fn tools() -> Toolchain {
        let places = Places {
            cargo_home: "/home/me/.cargo".into(),
            sysroot: "/rust".into(),
            checkout: "/home/me/cloudberth".into(),
            target_dir: "/home/me/cloudberth/target".into(),
        };
        Toolchain {
            rustc: "rustc 1.95.0\ncommit-hash: 5980\nrelease: 1.95.0\n".to_owned(),
            places,
            host: None,
        }
    }

    #[test]
    fn a_compiler_is_found_given_or_asked_for_by_name() {
        // What it is about, for what, on that processor, the compiler named, those in PATH, and the one that is taken.
        type Row =
            (&'static str, Arch, bool, Option<&'static str>, &'static [&'static str], Option<&'static str>);
        let table: &[Row] = &[
            ("its own", Arch::Amd64, true, None, &["gcc", "clang"], Some("gcc")),
            ("one for all", Arch::Amd64, true, None, &["clang"], Some("clang")),
            ("not gcc for another processor", Arch::Arm64, false, None, &["gcc"], None),
            (
                "a cross compiler",
                Arch::Arm64,
                false,
                None,
                &["clang", "aarch64-linux-gnu-gcc"],
                Some("aarch64-linux-gnu-gcc"),
            ),
            ("clang", Arch::Arm64, false, None, &["gcc", "clang"], Some("clang")),
            ("the one that is named", Arch::Arm64, false, Some("zig cc"), &["clang"], Some("zig cc")),
        ];
        for (name, arch, native, given, has, expected) in table {
            let found = compiler(*arch, *native, given.map(str::to_owned), &|name| has.contains(&name));
            assert_eq!(found.as_deref().ok(), *expected, "{name}: {found:?}");
            if let Err(why) = found {
                assert!(
                    why.contains("install clang") && why.contains("CC_aarch64_unknown_linux_musl"),
                    "{why}"
                );
            }
        }
    }

    #[test]
    fn the_order_adds_flags_and_leaves_no_place_of_this_machine() {
        let Order { env, args } = order(&tools(), Arch::Amd64, Variant::Plain, "gcc").unwrap();
        assert_eq!(
            env,
            [
                ("CC_x86_64_unknown_linux_musl".to_owned(), "gcc".to_owned()),
                ("CARGO_TARGET_X86_64_UNKNOWN_LINUX_MUSL_LINKER".to_owned(), "rust-lld".to_owned()),
            ]
        );
        let flags = args[1].strip_prefix("build.rustflags=").unwrap();
        let flags: Vec<String> = toml::from_str::<toml::Table>(&format!("flags={flags}")).unwrap()["flags"]
            .clone()
            .try_into()
            .unwrap();
        let expected = ["/home/me/.cargo=/cargo", "/rust/lib/rustlib/src/rust=/rustc/5980"];
        let expected =
            expected.into_iter().chain(["/home/me/cloudberth=/src", "/home/me/cloudberth/target=/target"]);
        assert!(
            flags
                .iter()
                .eq(expected.map(|map| format!("--remap-path-prefix={map}")).collect::<Vec<_>>().iter())
        );
        for word in ["--locked", "--no-default-features", "dist", "x86_64-unknown-linux-musl"] {
            assert!(args.contains(&word.to_owned()), "{args:?}");
        }
    }

    #[test]
    fn what_ran_on_the_build_machine_is_not_counted() {
        let package = |name: &str| Package {
            id: format!("registry#{name}@1.0.0"),
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            ..Package::default()
        };
        let metadata = Metadata { packages: vec![package("a"), package("macro")], ..Metadata::default() };
        let messages = concat!(
            r#"{"reason":"compiler-artifact","package_id":"registry#macro@1.0.0","filenames":["/t/dist/deps/libmacro.so"],"executable":null}"#,
            "\n",
            r#"{"reason":"compiler-artifact","package_id":"registry#a@1.0.0","filenames":["/t/x86_64-unknown-linux-musl/dist/a"],"executable":"/t/x86_64-unknown-linux-musl/dist/a"}"#,
            "\n",
            r#"{"reason":"build-finished","success":true}"#,
            "\n"
        );
        let (file, crates) = artifacts(messages, Arch::Amd64, &metadata);
        let key = |name: &str| (name.to_owned(), "1.0.0".to_owned());
        assert_eq!(file, Some("/t/x86_64-unknown-linux-musl/dist/a".into()));
        assert_eq!(crates, BTreeSet::from([key("a")]));

        let built = Built { file: PathBuf::new(), compiler: String::new(), crates };
        assert_eq!(built.compare(&Graph::from([(key("a"), BTreeSet::new())])), Ok(()));
        let why = built.compare(&Graph::from([(key("b"), BTreeSet::new())])).unwrap_err();
        assert!(why.contains("compiled only: [a 1.0.0], listed only: [b 1.0.0]"), "{why}");
    }
}
