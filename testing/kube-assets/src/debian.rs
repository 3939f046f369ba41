//! Programs from Debian's packages, unpacked once, without any rights.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{Error, cache_dir, clear, lock};

/// The environment in which programs of Debian's packages are looked for.
#[derive(Clone, Debug)]
pub struct DebianSurroundings {
    /// A directory that has the programs, if somebody named one.
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

impl DebianSurroundings {
    /// The environment variables of this process; the one called `given` names a directory.
    pub(crate) fn from_env(given: &str) -> Self {
        let var = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        Self {
            given: var(given).map(PathBuf::from),
            path: var("PATH").unwrap_or_default(),
            cache: cache_dir(var("XDG_CACHE_HOME"), var("HOME")),
            apt_get: "apt-get".into(),
            dpkg_deb: "dpkg-deb".into(),
        }
    }
}

/// Programs that come as packages.
pub(crate) struct Wanted {
    /// What people call them.
    pub(crate) title: &'static str,
    /// The name of their folder in the cache.
    pub(crate) folder: &'static str,
    /// The packages.
    pub(crate) packages: &'static [&'static str],
    /// Whether what these packages need and the computer lacks is unpacked as well.
    pub(crate) with_dependencies: bool,
    /// The part of the packages that is kept, below their root.
    pub(crate) keep: &'static str,
    /// Files that this part must have.
    pub(crate) must_have: &'static [&'static str],
    /// The error, from what was tried last and how it ended.
    pub(crate) error: fn(String) -> Error,
}

impl Wanted {
    /// The folder with what is kept of the packages, filled by the first call.
    pub(crate) fn provide(
        &self,
        around: &DebianSurroundings,
        progress: &mut dyn FnMut(&str),
    ) -> Result<PathBuf, Error> {
        let folder = around.cache.as_ref().ok_or(Error::NoCache)?.join("cloudberth").join(self.folder);
        let place = folder.join("bin");
        if !place.is_dir() {
            fs::create_dir_all(&folder).map_err(Error::io("cannot create", &folder))?;
            let _lock = lock(&folder.join("lock"), progress)?;
            if !place.is_dir() {
                self.unpack(around, &folder, &place, progress)?;
            }
        }
        Ok(place)
    }

    /// One rename puts the programs in place; what an interrupted run has left is removed first.
    fn unpack(
        &self,
        around: &DebianSurroundings,
        folder: &Path,
        place: &Path,
        progress: &mut dyn FnMut(&str),
    ) -> Result<(), Error> {
        let site = folder.join("unpacking");
        clear(&site)?;
        fs::create_dir_all(&site).map_err(Error::io("cannot create", &site))?;
        progress(&format!("unpacking Debian's package of {} once, into {}", self.title, place.display()));
        let unpacked = self.download(around, &site).and_then(|packages| {
            let root = site.join("root");
            for package in &packages {
                self.run(
                    &around.dpkg_deb,
                    &site,
                    &[OsStr::new("-x"), package.as_os_str(), root.as_os_str()],
                )?;
            }
            let kept = root.join(self.keep);
            match self.must_have.iter().find(|file| !kept.join(file).is_file()) {
                Some(missing) => Err((self.error)(format!("the package has no {missing}"))),
                None => fs::rename(&kept, place).map_err(Error::io("cannot install", place)),
            }
        });
        unpacked.and(clear(&site))
    }

    /// The packages, in `site`. Where the machine's lists of packages lead to nothing, lists of our own are fetched.
    fn download(&self, around: &DebianSurroundings, site: &Path) -> Result<Vec<PathBuf>, Error> {
        if self.fetch(around, site, &[]).is_err() {
            let state = site.join("state");
            let lists = state.join("lists/partial");
            fs::create_dir_all(&lists).map_err(Error::io("cannot create", &lists))?;
            let option = |name: &str, value: &Path| OsString::from(format!("{name}={}", value.display()));
            let options = [
                option("Dir::State", &state),
                option("Dir::State::status", Path::new("/var/lib/dpkg/status")),
                option("Dir::Cache", &state),
            ];
            let options: Vec<OsString> =
                options.into_iter().flat_map(|option| [OsString::from("-o"), option]).collect();
            let update: Vec<OsString> = options.iter().cloned().chain(["update".into()]).collect();
            self.run(&around.apt_get, site, &update)?;
            self.fetch(around, site, &options)?;
        }
        let entries = fs::read_dir(site).map_err(Error::io("cannot read", site))?;
        let is_package = |file: &PathBuf| file.extension().is_some_and(|end| end == "deb");
        let packages: Vec<_> =
            entries.filter_map(Result::ok).map(|entry| entry.path()).filter(is_package).collect();
        if packages.is_empty() {
            return Err((self.error)("apt-get downloaded no package".to_owned()));
        }
        Ok(packages)
    }

    fn fetch(&self, around: &DebianSurroundings, site: &Path, options: &[OsString]) -> Result<(), Error> {
        let with = |words: &[&str]| -> Vec<OsString> {
            options.iter().cloned().chain(words.iter().map(OsString::from)).collect()
        };
        let mut packages: Vec<String> = self.packages.iter().map(|name| (*name).to_owned()).collect();
        if self.with_dependencies {
            let simulate = ["install", "--simulate", "--no-install-recommends"];
            let told = self.run(&around.apt_get, site, &with(&[&simulate[..], self.packages].concat()))?;
            for package in installed_by(&told) {
                if !packages.iter().any(|known| known == package) {
                    packages.push(package.to_owned());
                }
            }
        }
        let names = packages.iter().map(String::as_str);
        let download: Vec<&str> = std::iter::once("download").chain(names).collect();
        self.run(&around.apt_get, site, &with(&download)).map(drop)
    }

    /// What a command says, if it succeeds.
    fn run(&self, command: &OsStr, dir: &Path, args: &[impl AsRef<OsStr>]) -> Result<String, Error> {
        let failed = |why: String| (self.error)(format!("{}: {why}", command.to_string_lossy()));
        let ran = Command::new(command).args(args).current_dir(dir).stdin(Stdio::null()).output();
        let output = ran.map_err(|why| failed(why.to_string()))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(failed(said.lines().last().unwrap_or("it failed").to_owned()))
    }
}

/// The packages that `apt-get install --simulate` would install. Of those that are installed it says nothing.
fn installed_by(told: &str) -> impl Iterator<Item = &str> {
    told.lines().filter_map(|line| line.strip_prefix("Inst ")?.split(' ').next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_packages_are_told_apart() {
        let told = "Reading package lists...\nInst liblua5.3-0 (5.3.6-2 Debian:12/stable [amd64])\n\
                    Inst haproxy (2.6 Debian:12 [amd64]) []\nConf haproxy (2.6 Debian:12 [amd64])\n";
        assert_eq!(installed_by(told).collect::<Vec<_>>(), ["liblua5.3-0", "haproxy"]);
        assert_eq!(installed_by("haproxy is already the newest version\n").count(), 0);
    }
}
