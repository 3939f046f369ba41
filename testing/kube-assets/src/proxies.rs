//! `HAProxy`, and nginx with its stream module: found, or unpacked once from Debian's packages, without any rights.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Error;
use crate::debian::{DebianSurroundings, Wanted};

/// Names a directory that has everything, flat or as the packages have it.
const GIVEN: &str = "CLOUDBERTH_PROXIES";
const HAPROXY: &str = "haproxy";
const NGINX: &str = "nginx";
const STREAM: &str = "ngx_stream_module.so";
/// Where the packages put programs, and often outside of `PATH`.
const SBIN: &str = "usr/sbin";
const MODULES: &str = "usr/lib/nginx/modules";

const WANTED: Wanted = Wanted {
    title: "HAProxy and nginx",
    folder: "proxies",
    packages: &["haproxy", "nginx", "libnginx-mod-stream"],
    // HAProxy needs libraries that few computers have.
    with_dependencies: true,
    keep: "",
    must_have: &["usr/sbin/haproxy", "usr/sbin/nginx", "usr/lib/nginx/modules/ngx_stream_module.so"],
    error: |why| Error::NoProxies { why },
};

/// Where the programs are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyAssets {
    /// `HAProxy`.
    pub haproxy: PathBuf,
    /// nginx.
    pub nginx: PathBuf,
    /// The module with which nginx forwards connections.
    pub stream: PathBuf,
    /// Folders of libraries that the programs need and the computer need not have, for `LD_LIBRARY_PATH`.
    pub libraries: Vec<PathBuf>,
}

impl ProxyAssets {
    fn among(programs: &[PathBuf], modules: &[PathBuf], libraries: Vec<PathBuf>) -> Option<Self> {
        let find = |folders: &[PathBuf], name: &str| {
            folders.iter().map(|folder| folder.join(name)).find(|file| file.is_file())
        };
        Some(Self {
            haproxy: find(programs, HAPROXY)?,
            nginx: find(programs, NGINX)?,
            stream: find(modules, STREAM)?,
            libraries,
        })
    }

    /// All from one directory, flat or as the packages have it.
    fn within(dir: &Path) -> Option<Self> {
        let (programs, modules) = ([dir.to_owned(), dir.join(SBIN)], [dir.to_owned(), dir.join(MODULES)]);
        // One folder for each architecture, such as x86_64-linux-gnu.
        let below = fs::read_dir(dir.join("usr/lib")).into_iter().flatten().filter_map(Result::ok);
        let mut libraries: Vec<_> = below.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
        libraries.retain(|path| !path.ends_with("nginx"));
        libraries.sort();
        Self::among(&programs, &modules, libraries)
    }
}

/// The proxies of `CLOUDBERTH_PROXIES`, else those that are installed, else unpacked once from Debian's packages into the
/// cache.
pub fn proxies(progress: &mut dyn FnMut(&str)) -> Result<ProxyAssets, Error> {
    proxies_in(&DebianSurroundings::from_env(GIVEN), Path::new("/"), progress)
}

/// [`proxies`] in this environment, on a computer whose files are below `root`.
pub fn proxies_in(
    around: &DebianSurroundings,
    root: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<ProxyAssets, Error> {
    if let Some(dir) = &around.given {
        let why = || format!("{GIVEN}={} lacks one of {HAPROXY}, {NGINX} and {STREAM}", dir.display());
        return ProxyAssets::within(dir).ok_or_else(|| Error::NoProxies { why: why() });
    }
    let mut programs: Vec<_> = std::env::split_paths(&around.path).collect();
    programs.push(root.join(SBIN));
    if let Some(installed) = ProxyAssets::among(&programs, &[root.join(MODULES)], Vec::new()) {
        return Ok(installed);
    }
    let place = WANTED.provide(around, progress)?;
    ProxyAssets::within(&place).ok_or_else(|| {
        let why = format!("{} is not whole; remove it to unpack it again", place.display());
        Error::NoProxies { why }
    })
}
