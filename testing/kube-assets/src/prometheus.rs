//! Prometheus and promtool: found, or unpacked once from Debian's package, without any rights.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{Error, cache_dir, clear, lock};

/// The programs, all in one package.
const PROGRAMS: [&str; 2] = ["prometheus", "promtool"];
/// The package of Debian that has both.
const PACKAGE: &str = "prometheus";
/// Names a directory that has both.
const GIVEN: &str = "CLOUDBERTH_PROMETHEUS";

/// Where the programs are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrometheusAssets {
    /// The server.
    pub prometheus: PathBuf,
    /// What checks rules, runs their tests and reads pages of metrics.
    pub promtool: PathBuf,
}

impl PrometheusAssets {
    fn within(dir: &Path) -> Self {
        Self { prometheus: dir.join("prometheus"), promtool: dir.join("promtool") }
    }
}

/// The environment that [`prometheus`] uses.
#[derive(Clone, Debug)]
pub struct PrometheusSurroundings {
    /// A directory with both programs (`CLOUDBERTH_PROMETHEUS`).
    pub given: Option<PathBuf>,
    /// Where commands are looked for (`PATH`).
    pub path: OsString,
    /// The user's cache directory, if one is known.
    pub cache: Option<PathBuf>,
    /// The commands that download and unpack a package.
    pub apt_get: OsString,
    /// See above.
    pub dpkg_deb: OsString,
}

impl PrometheusSurroundings {
    /// The environment variables of this process.
    pub fn from_env() -> Self {
        let var = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        Self {
            given: var(GIVEN).map(PathBuf::from),
            path: var("PATH").unwrap_or_default(),
            cache: cache_dir(var("XDG_CACHE_HOME"), var("HOME")),
            apt_get: "apt-get".into(),
            dpkg_deb: "dpkg-deb".into(),
        }
    }
}

/// Prometheus and promtool: those of `CLOUDBERTH_PROMETHEUS`, else of `PATH`, else unpacked once from Debian's package
/// into the cache.
pub fn prometheus(progress: &mut dyn FnMut(&str)) -> Result<PrometheusAssets, Error> {
    prometheus_in(&PrometheusSurroundings::from_env(), progress)
}

/// [`prometheus`] in this environment.
pub fn prometheus_in(
    around: &PrometheusSurroundings,
    progress: &mut dyn FnMut(&str),
) -> Result<PrometheusAssets, Error> {
    let complete = |dir: &Path| PROGRAMS.iter().all(|program| dir.join(program).is_file());
    if let Some(dir) = &around.given {
        return if complete(dir) {
            Ok(PrometheusAssets::within(dir))
        } else {
            Err(Error::NoPrometheus { why: format!("{GIVEN}={} lacks one of them", dir.display()) })
        };
    }
    if let Some(dir) = std::env::split_paths(&around.path).find(|dir| complete(dir)) {
        return Ok(PrometheusAssets::within(&dir));
    }
    let shelf = around.cache.as_ref().ok_or(Error::NoCache)?.join("cloudberth").join("prometheus");
    let place = shelf.join("bin");
    if !place.is_dir() {
        fs::create_dir_all(&shelf).map_err(Error::io("cannot create", &shelf))?;
        let _lock = lock(&shelf.join("lock"), progress)?;
        if !place.is_dir() {
            unpack(around, &shelf, &place, progress)?;
        }
    }
    Ok(PrometheusAssets::within(&place))
}

/// One rename puts the programs in place; what an interrupted run has left is removed first.
fn unpack(
    around: &PrometheusSurroundings,
    shelf: &Path,
    place: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<(), Error> {
    let site = shelf.join("unpacking");
    clear(&site)?;
    fs::create_dir_all(&site).map_err(Error::io("cannot create", &site))?;
    progress(&format!("unpacking Debian's package of Prometheus once, into {}", place.display()));
    let unpacked = download(around, &site).and_then(|package| {
        let root = site.join("root");
        run(&around.dpkg_deb, &site, &[OsStr::new("-x"), package.as_os_str(), root.as_os_str()])?;
        let bin = root.join("usr/bin");
        match PROGRAMS.iter().find(|program| !bin.join(program).is_file()) {
            Some(missing) => Err(Error::NoPrometheus { why: format!("the package has no {missing}") }),
            None => fs::rename(&bin, place).map_err(Error::io("cannot install", place)),
        }
    });
    unpacked.and(clear(&site))
}

/// The package, in `site`. Where the machine's lists of packages lead to nothing, lists of our own are fetched.
fn download(around: &PrometheusSurroundings, site: &Path) -> Result<PathBuf, Error> {
    let get = [OsStr::new("download"), OsStr::new(PACKAGE)];
    if run(&around.apt_get, site, &get).is_err() {
        let state = site.join("state");
        let lists = state.join("lists/partial");
        fs::create_dir_all(&lists).map_err(Error::io("cannot create", &lists))?;
        let option = |name: &str, value: &Path| OsString::from(format!("{name}={}", value.display()));
        let options = [
            option("Dir::State", &state),
            option("Dir::State::status", Path::new("/var/lib/dpkg/status")),
            option("Dir::Cache", &state),
        ];
        let with = |last: &[&OsStr]| {
            let options = options.iter().flat_map(|option| [OsStr::new("-o"), option.as_os_str()]);
            options.chain(last.iter().copied()).map(OsStr::to_owned).collect::<Vec<_>>()
        };
        run(&around.apt_get, site, &with(&[OsStr::new("update")]))?;
        run(&around.apt_get, site, &with(&get))?;
    }
    let entries = fs::read_dir(site).map_err(Error::io("cannot read", site))?;
    let is_package = |file: &PathBuf| file.extension().is_some_and(|end| end == "deb");
    let package = entries.filter_map(Result::ok).map(|entry| entry.path()).find(is_package);
    package.ok_or_else(|| Error::NoPrometheus { why: "apt-get downloaded no package".to_owned() })
}

fn run(command: &OsStr, dir: &Path, args: &[impl AsRef<OsStr>]) -> Result<(), Error> {
    let failed = |why: String| Error::NoPrometheus { why: format!("{}: {why}", command.to_string_lossy()) };
    let ran = Command::new(command).args(args).current_dir(dir).stdin(Stdio::null()).output();
    let output = ran.map_err(|why| failed(why.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(failed(said.lines().last().unwrap_or("it failed").to_owned()))
}
