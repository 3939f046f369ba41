//! One `go build`, with progress.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::Error;
use crate::release::{Module, parse_go};

/// The number of packages or downloads between two lines of progress.
const REPORT_EVERY: usize = 100;
/// How much of a failed build is shown.
const TAIL: usize = 30;

/// Builds the programs of `module` into `bin`, from a copy of its pins in `dir`.
pub(crate) fn module(
    go: &OsStr,
    module: &Module,
    dir: &Path,
    bin: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<(), Error> {
    fs::create_dir_all(dir).map_err(Error::io("cannot create", dir))?;
    for (name, text) in module.files() {
        let path = dir.join(name);
        fs::write(&path, text).map_err(Error::io("cannot write", &path))?;
    }
    check_go(go, dir, module)?;
    for (program, package) in module.programs {
        build(go, module, dir, program, package, bin, progress)?;
    }
    Ok(())
}

/// A `go` command in the module's directory, free of settings that would change what is built.
fn command(go: &OsStr, dir: &Path) -> Command {
    let mut command = Command::new(go);
    command
        .current_dir(dir)
        .env("CGO_ENABLED", "0")
        .env("GOWORK", "off")
        .env_remove("GOFLAGS")
        .stdin(Stdio::null());
    command
}

/// Asked inside the module, so that a `go` that can fetch a newer release of itself has done so.
fn check_go(go: &OsStr, dir: &Path, module: &Module) -> Result<(), Error> {
    let (needed, instead) = (module.needed_go(), module.without_go);
    let output = command(go, dir).args(["env", "GOVERSION"]).output().map_err(|source| Error::GoMissing {
        needed,
        instead,
        source,
    })?;
    let said = String::from_utf8_lossy(&output.stdout);
    match parse_go(&said) {
        Some(found) if output.status.success() && found >= needed => Ok(()),
        _ => {
            let found = format!("{}{}", said, String::from_utf8_lossy(&output.stderr)).trim().to_owned();
            Err(Error::GoTooOld { found, needed, instead })
        }
    }
}

fn build(
    go: &OsStr,
    module: &Module,
    dir: &Path,
    program: &'static str,
    package: &str,
    bin: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<(), Error> {
    progress(&format!("{program}: building {package}"));
    let failed = |output: String| Error::Build { program, output };
    let mut child = command(go, dir)
        .args(["build", "-v"])
        .args(module.flags())
        .arg("-o")
        .arg(bin.join(program))
        .arg(package)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| failed(error.to_string()))?;
    let tail = child.stderr.take().map(|stderr| follow(program, stderr, progress)).unwrap_or_default();
    let status = child.wait().map_err(|error| failed(error.to_string()))?;
    if !status.success() {
        return Err(failed(tail));
    }
    progress(&format!("{program}: done"));
    Ok(())
}

/// Counts what Go reports, and keeps the end of it for an error message.
fn follow(program: &str, stderr: impl Read, progress: &mut dyn FnMut(&str)) -> String {
    let (mut packages, mut downloads) = (0_usize, 0_usize);
    let mut tail = VecDeque::new();
    for line in BufReader::new(stderr).lines().map_while(Result::ok) {
        let (count, what) = if line.starts_with("go: downloading ") {
            (&mut downloads, "modules downloaded")
        } else {
            (&mut packages, "packages compiled")
        };
        *count += 1;
        if count.is_multiple_of(REPORT_EVERY) {
            progress(&format!("{program}: {count} {what}"));
        }
        if tail.len() == TAIL {
            tail.pop_front();
        }
        tail.push_back(line);
    }
    Vec::from(tail).join("\n")
}
