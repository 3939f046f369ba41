//! The programs of Kubernetes for tests, programs of ours on top of client-go, Prometheus, and the proxies that ours is
//! measured beside.
//!
//! They come from `KUBEBUILDER_ASSETS` when that is set, else from a cache outside the checkout, which is
//! filled once by `go build` from the modules that `tools/` pins. The pins are compiled into this crate and
//! laid out in the cache for the build, so the checkout is never written to.
//!
//! Guarantees: a directory that [`ensure`] returns is complete, since one rename puts it in place; two builders of one
//! version never run at once, since the second waits for a lock, which ends with the process that holds it.

mod compile;
mod debian;
mod prometheus;
mod proxies;
mod release;

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

pub use debian::DebianSurroundings;
pub use prometheus::{PrometheusAssets, prometheus, prometheus_in};
pub use proxies::{ProxyAssets, proxies, proxies_in};
use release::{CONTROL_LOOPS, ELECTOR, HELM, INFORMERS, KUBELETS, RELEASES, Release, find};
pub use release::{NEWEST, OLDEST};

/// The programs of a control plane.
const PROGRAMS: [&str; 3] = ["kube-apiserver", "etcd", "kubectl"];

/// Where the programs are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assets {
    /// The Kubernetes API server.
    pub apiserver: PathBuf,
    /// Its store.
    pub etcd: PathBuf,
    /// The command line client.
    pub kubectl: PathBuf,
}

/// Where the programs are that run pods on a control plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodAssets {
    /// Picks a node for every pod.
    pub scheduler: PathBuf,
    /// Makes pods of Deployments, and moves them away from nodes that are gone.
    pub controller_manager: PathBuf,
    /// Pretends to be the kubelet of a node.
    pub kwok: PathBuf,
}

/// The environment that [`ensure`] uses.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// A directory with ready programs (`KUBEBUILDER_ASSETS`).
    pub given: Option<PathBuf>,
    /// The user's cache directory, if one is known.
    pub cache: Option<PathBuf>,
    /// The `go` command.
    pub go: OsString,
}

/// Why there are no programs. Each message says what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// `KUBEBUILDER_ASSETS` lacks programs.
    #[error("KUBEBUILDER_ASSETS={} lacks {}: add them or unset it", dir.display(), missing.join(", "))]
    Incomplete {
        /// The directory.
        dir: PathBuf,
        /// The programs that are not in it.
        missing: Vec<&'static str>,
    },
    /// No pins for this version.
    #[error("Kubernetes {asked} is not pinned under tools/; pinned: {}", known.join(", "))]
    UnknownVersion {
        /// The version asked for.
        asked: String,
        /// The versions that can be had.
        known: Vec<&'static str>,
    },
    /// Neither `XDG_CACHE_HOME` nor `HOME` says where caches go.
    #[error("no place for the built programs: set HOME or XDG_CACHE_HOME")]
    NoCache,
    /// No `go` command.
    #[error(
        "Go is missing ({source}): install Go {major}.{minor} or newer{instead}",
        major = needed.0, minor = needed.1
    )]
    GoMissing {
        /// The oldest release that will do.
        needed: (u32, u32),
        /// What else would do, as the end of a sentence.
        instead: &'static str,
        /// Why it could not be started.
        source: io::Error,
    },
    /// The `go` command is older than the modules allow.
    #[error(
        "Go is too old ({found}): {major}.{minor} or newer is needed{instead}",
        major = needed.0, minor = needed.1
    )]
    GoTooOld {
        /// What the command said about itself.
        found: String,
        /// The oldest release that will do.
        needed: (u32, u32),
        /// What else would do, as the end of a sentence.
        instead: &'static str,
    },
    /// A build failed.
    #[error("go build of {program} failed:\n{output}")]
    Build {
        /// The program.
        program: &'static str,
        /// The last lines that Go printed.
        output: String,
    },
    /// Neither `CLOUDBERTH_PROMETHEUS` nor `PATH` nor a package has Prometheus.
    #[error(
        "no prometheus and promtool ({why}): install prometheus, or set CLOUDBERTH_PROMETHEUS to a directory with both"
    )]
    NoPrometheus {
        /// What was tried last, and how it ended.
        why: String,
    },
    /// Neither `CLOUDBERTH_PROXIES` nor the computer nor packages have the proxies.
    #[error(
        "no HAProxy and no nginx with its stream module ({why}): install haproxy, nginx and libnginx-mod-stream, or set \
         CLOUDBERTH_PROXIES to a directory with all of them"
    )]
    NoProxies {
        /// What was tried last, and how it ended.
        why: String,
    },
    /// The cache could not be read or written.
    #[error("{what} {}: {source}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// On which path.
        path: PathBuf,
        /// How it failed.
        source: io::Error,
    },
}

impl Error {
    fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { what, path, source }
    }
}

impl Surroundings {
    /// The environment variables of this process.
    pub fn from_env() -> Self {
        let var = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        Self {
            given: var("KUBEBUILDER_ASSETS").map(PathBuf::from),
            cache: cache_dir(var("XDG_CACHE_HOME"), var("HOME")),
            go: "go".into(),
        }
    }
}

/// A relative `XDG_CACHE_HOME` is invalid and counts as unset, as its specification has it.
fn cache_dir(xdg: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let xdg = xdg.map(PathBuf::from).filter(|dir| dir.is_absolute());
    xdg.or_else(|| home.map(|home| Path::new(&home).join(".cache")))
}

impl Assets {
    fn within(dir: &Path) -> Self {
        Self { apiserver: dir.join("kube-apiserver"), etcd: dir.join("etcd"), kubectl: dir.join("kubectl") }
    }

    /// The directory that holds all three.
    pub fn dir(&self) -> &Path {
        self.apiserver.parent().unwrap_or(&self.apiserver)
    }
}

/// The programs of Kubernetes `version` (`v1.37.1`, or `1.37`), built if they are not in the cache yet.
///
/// `progress` gets one line at a time, for a person who waits; a first build takes minutes.
/// The version is ignored when `KUBEBUILDER_ASSETS` is set: then the user has chosen.
pub fn ensure(version: &str, progress: &mut dyn FnMut(&str)) -> Result<Assets, Error> {
    ensure_in(&Surroundings::from_env(), version, progress)
}

/// [`ensure`] in this environment.
pub fn ensure_in(
    around: &Surroundings,
    version: &str,
    progress: &mut dyn FnMut(&str),
) -> Result<Assets, Error> {
    if let Some(dir) = &around.given {
        return given(dir);
    }
    provide(around, pinned(RELEASES, version)?, progress).map(|place| Assets::within(&place))
}

/// The programs that run pods on Kubernetes `version`, built if they are not in the cache yet.
///
/// As many of them as possible are taken from `KUBEBUILDER_ASSETS`, where they are usually missing.
pub fn pods(version: &str, progress: &mut dyn FnMut(&str)) -> Result<PodAssets, Error> {
    pods_in(&Surroundings::from_env(), version, progress)
}

/// [`pods`] in this environment.
pub fn pods_in(
    around: &Surroundings,
    version: &str,
    progress: &mut dyn FnMut(&str),
) -> Result<PodAssets, Error> {
    let kubernetes = given_or_built(around, pinned(CONTROL_LOOPS, version)?, progress)?;
    let kwok = given_or_built(around, &KUBELETS, progress)?;
    Ok(PodAssets {
        scheduler: kubernetes.join("kube-scheduler"),
        controller_manager: kubernetes.join("kube-controller-manager"),
        kwok: kwok.join("kwok"),
    })
}

/// The directory of a release that `KUBEBUILDER_ASSETS` need not have.
fn given_or_built(
    around: &Surroundings,
    release: &Release,
    progress: &mut dyn FnMut(&str),
) -> Result<PathBuf, Error> {
    match &around.given {
        Some(dir) if release.programs().all(|program| dir.join(program).is_file()) => Ok(dir.clone()),
        _ => provide(around, release, progress),
    }
}

/// helm, which installs charts; built if it is neither in `KUBEBUILDER_ASSETS` nor in the cache yet.
pub fn helm(progress: &mut dyn FnMut(&str)) -> Result<PathBuf, Error> {
    helm_in(&Surroundings::from_env(), progress)
}

/// [`helm`] in this environment.
pub fn helm_in(around: &Surroundings, progress: &mut dyn FnMut(&str)) -> Result<PathBuf, Error> {
    given_or_built(around, &HELM, progress).map(|place| place.join("helm"))
}

/// The full version that `1.34` stands for.
pub fn version(asked: &str) -> Result<&'static str, Error> {
    pinned(RELEASES, asked).map(|release| release.version)
}

fn pinned(table: &'static [Release], asked: &str) -> Result<&'static Release, Error> {
    find(table, asked).ok_or_else(|| Error::UnknownVersion {
        asked: asked.into(),
        known: table.iter().map(|r| r.version).collect(),
    })
}

/// A program of ours that runs client-go informers against the server of a kubeconfig; built like the others.
pub fn informers(progress: &mut dyn FnMut(&str)) -> Result<PathBuf, Error> {
    informers_in(&Surroundings::from_env(), progress)
}

/// [`informers`] in this environment. `KUBEBUILDER_ASSETS` does not apply to it.
pub fn informers_in(around: &Surroundings, progress: &mut dyn FnMut(&str)) -> Result<PathBuf, Error> {
    provide(around, &INFORMERS, progress).map(|place| place.join("informers"))
}

/// A program of ours that is a candidate for a Lease with client-go's leader election; built like the others.
pub fn elector(progress: &mut dyn FnMut(&str)) -> Result<PathBuf, Error> {
    elector_in(&Surroundings::from_env(), progress)
}

/// [`elector`] in this environment. `KUBEBUILDER_ASSETS` does not apply to it.
pub fn elector_in(around: &Surroundings, progress: &mut dyn FnMut(&str)) -> Result<PathBuf, Error> {
    provide(around, &ELECTOR, progress).map(|place| place.join("elector"))
}

/// The directory with the programs of `release`.
fn provide(
    around: &Surroundings,
    release: &Release,
    progress: &mut dyn FnMut(&str),
) -> Result<PathBuf, Error> {
    let shelf = around.cache.as_ref().ok_or(Error::NoCache)?.join("cloudberth").join("kube");
    let place = shelf.join(release.key());
    if place.is_dir() {
        return Ok(place);
    }
    fs::create_dir_all(&shelf).map_err(Error::io("cannot create", &shelf))?;
    let _lock = lock(&shelf.join(format!("{}.lock", release.key())), progress)?;
    if !place.is_dir() {
        install(around, release, &shelf, &place, progress)?;
    }
    Ok(place)
}

fn given(dir: &Path) -> Result<Assets, Error> {
    let missing: Vec<_> = PROGRAMS.into_iter().filter(|program| !dir.join(program).is_file()).collect();
    if missing.is_empty() {
        Ok(Assets::within(dir))
    } else {
        Err(Error::Incomplete { dir: dir.into(), missing })
    }
}

/// The kernel holds the lock, so a builder that was killed leaves none behind.
fn lock(path: &Path, progress: &mut dyn FnMut(&str)) -> Result<File, Error> {
    let file = File::create(path).map_err(Error::io("cannot create", path))?;
    if file.try_lock().is_err() {
        progress("another build of the same programs is under way; waiting for it");
        file.lock().map_err(Error::io("cannot lock", path))?;
    }
    Ok(file)
}

fn install(
    around: &Surroundings,
    release: &Release,
    shelf: &Path,
    place: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<(), Error> {
    let site = shelf.join(format!("{}.building", release.key()));
    clear(&site)?;
    let bin = site.join("bin");
    fs::create_dir_all(&bin).map_err(Error::io("cannot create", &bin))?;
    progress(&format!("building {} {} once, into {}", release.title, release.version, place.display()));
    let built = release
        .modules
        .iter()
        .try_for_each(|module| compile::module(&around.go, module, &site.join(module.name), &bin, progress));
    let installed = built.and_then(|()| fs::rename(&bin, place).map_err(Error::io("cannot install", place)));
    installed.and(clear(&site))
}

/// Removes what an interrupted build may have left.
fn clear(site: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(site) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::io("cannot remove", site)(error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_where_the_user_says() {
        let os = |text: &str| Some(OsString::from(text));
        let table = [
            (os("/x"), os("/home/a"), Some("/x")),
            (None, os("/home/a"), Some("/home/a/.cache")),
            (os("relative"), os("/home/a"), Some("/home/a/.cache")),
            (None, None, None),
        ];
        for (xdg, home, want) in table {
            assert_eq!(cache_dir(xdg.clone(), home.clone()), want.map(PathBuf::from), "{xdg:?} {home:?}");
        }
    }
}
