//! A Chromium for the tests of the sandbox's page: found, or got once without any rights.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Result;

/// The package of npm that has the program in it, for Linux on `x86_64`. No script of it is run.
const PACKAGE: &str = "@sparticuz/chromium";
const VERSION: &str = "153.0.0";
/// What it is called where it is installed.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// What is known of the surroundings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Around {
    /// `CLOUDBERTH_CHROMIUM`.
    given: Option<PathBuf>,
    /// One of [`NAMES`] in `PATH`.
    installed: Option<PathBuf>,
    /// Where one from npm belongs; none without a cache directory.
    shelf: Option<PathBuf>,
    /// It is there.
    shelved: bool,
    npm: bool,
}

/// How to come by a browser.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Way {
    Take(PathBuf),
    Fetch(PathBuf),
    None(String),
}

fn way(around: &Around) -> Way {
    if let Some(file) = around.given.as_ref().or(around.installed.as_ref()) {
        return Way::Take(file.clone());
    }
    match &around.shelf {
        Some(shelf) if around.shelved => Way::Take(shelf.join("chromium.sh")),
        Some(shelf) if around.npm => Way::Fetch(shelf.clone()),
        _ => Way::None(format!(
            "the page needs a Chromium: install one (Debian: `apt install chromium`), or npm, with which it is fetched \
             ({PACKAGE} {VERSION}), or name one in CLOUDBERTH_CHROMIUM"
        )),
    }
}

/// The path of the program, which is fetched if there is none.
pub(crate) fn provide() -> Result<PathBuf> {
    match way(&look()) {
        Way::Take(file) => Ok(file),
        Way::Fetch(shelf) => fetch(&shelf),
        Way::None(why) => Err(why),
    }
}

fn look() -> Around {
    let var = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let path = var("PATH").unwrap_or_default();
    let find =
        |name: &str| std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.is_file());
    let cache = var("XDG_CACHE_HOME").map(PathBuf::from).filter(|dir| dir.is_absolute());
    let cache = cache.or_else(|| var("HOME").map(|home| Path::new(&home).join(".cache")));
    let shelf = cache.map(|dir| dir.join("cloudberth").join("browser").join(VERSION));
    Around {
        given: var("CLOUDBERTH_CHROMIUM").map(PathBuf::from),
        installed: NAMES.iter().find_map(|name| find(name)),
        shelved: shelf.as_ref().is_some_and(|shelf| shelf.is_dir()),
        shelf,
        npm: find("npm").is_some() && find("node").is_some(),
    }
}

/// Unpacks a file of the package as it comes.
const UNPACK: &str = "const { createReadStream, createWriteStream } = require('fs'); const [from, to] = process.argv.slice(1); \
    createReadStream(from).pipe(require('zlib').createBrotliDecompress()).pipe(createWriteStream(to, { mode: 0o755 }))";

/// Uses the libraries that come with it: an instance without a desktop lacks some.
const SCRIPT: &str = "#!/bin/sh\nhere=$(dirname \"$0\")\n\
    LD_LIBRARY_PATH=\"$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}\" exec \"$here/chromium\" \"$@\"\n";

/// Complete or not there at all: a rename puts it in place. Two that fetch at once wait for each other.
fn fetch(shelf: &Path) -> Result<PathBuf> {
    let parent = shelf.parent().unwrap_or(shelf);
    fs::create_dir_all(parent).map_err(at(parent))?;
    let lock = parent.join("lock");
    let lock_file = File::create(&lock).map_err(at(&lock))?;
    lock_file.lock().map_err(at(&lock))?;
    let program = shelf.join("chromium.sh");
    if shelf.is_dir() {
        return Ok(program);
    }
    eprintln!("   fetching {PACKAGE} {VERSION} once, into {}", shelf.display());
    let site = parent.join(format!("{VERSION}.fetching"));
    let _ = fs::remove_dir_all(&site);
    fs::create_dir_all(&site).map_err(at(&site))?;
    let package = format!("{PACKAGE}@{VERSION}");
    let quiet = ["--silent", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix"];
    run("npm", &[&["install"][..], &quiet, &[&text(&site), &package]].concat())?;
    let packed = site.join("node_modules").join(PACKAGE).join("bin");
    let bin = site.join("bin");
    fs::create_dir_all(&bin).map_err(at(&bin))?;
    let libraries = site.join("lib.tar");
    for (name, to) in [("chromium.br", &bin.join("chromium")), ("al2023.tar.br", &libraries)] {
        run("node", &["-e", UNPACK, &text(&packed.join(name)), &text(to)])?;
    }
    run("tar", &["-xf", &text(&libraries), "-C", &text(&bin)])?;
    let script = bin.join("chromium.sh");
    fs::write(&script, SCRIPT).map_err(at(&script))?;
    run("chmod", &["+x", &text(&script)])?;
    fs::rename(&bin, shelf).map_err(at(shelf))?;
    fs::remove_dir_all(&site).map_err(at(&site))?;
    Ok(program)
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> String {
    move |why| format!("{}: {why}", path.display())
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn run(program: &str, args: &[&str]) -> Result<()> {
    let args: Vec<OsString> = args.iter().map(OsString::from).collect();
    let ran = Command::new(program).args(&args).output().map_err(|why| format!("{program}: {why}"))?;
    if ran.status.success() {
        return Ok(());
    }
    Err(format!(
        "{program} {}: {}",
        args.join(" ".as_ref()).display(),
        String::from_utf8_lossy(&ran.stderr).trim()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_used_before_anything_is_fetched() {
        let path = |name: &str| Some(PathBuf::from(name));
        let nothing = Around::default();
        let shelf = Around { shelf: path("/c/1"), ..nothing.clone() };
        let table = [
            (Around { given: path("/g"), installed: path("/i"), ..shelf.clone() }, Way::Take("/g".into())),
            (Around { installed: path("/i"), shelved: true, ..shelf.clone() }, Way::Take("/i".into())),
            (Around { shelved: true, npm: true, ..shelf.clone() }, Way::Take("/c/1/chromium.sh".into())),
            (Around { npm: true, ..shelf.clone() }, Way::Fetch("/c/1".into())),
        ];
        for (around, want) in table {
            assert_eq!(way(&around), want, "{around:?}");
        }
        for around in [shelf, Around { npm: true, ..nothing }] {
            let Way::None(why) = way(&around) else { panic!("{around:?}") };
            assert!(why.contains("apt install chromium") && why.contains("CLOUDBERTH_CHROMIUM"), "{why}");
        }
    }
}
