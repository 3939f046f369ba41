//! What the configuration says about one chart, and where it comes from.

use std::{fmt, path::Path};

use cloudberth_core::{Error, Result, Secret};
use percent_encoding::percent_decode_str;

use super::values;

/// One chart of the configuration. The release has the chart's name.
///
/// `Debug` shows neither the values nor the password of a repository (law 10).
#[derive(Clone, PartialEq, Eq)]
pub struct ChartRef {
    /// The name of the release, and of the chart in a repository.
    pub release: String,
    /// Where the release lives.
    pub namespace: String,
    /// A chart's name in `repo`, or a complete reference: `oci://…`, a path, or `repository/chart`.
    pub chart: String,
    /// The address of the repository, perhaps with a user and a password in it.
    pub repo: Option<String>,
    /// An exact version, a range, or nothing for the newest.
    pub version: String,
    /// The values as YAML text; may be empty.
    pub values: String,
}

/// Where a chart comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source<'a> {
    /// A complete reference into a registry.
    Registry(&'a str),
    /// A repository that needs no password.
    Repository(&'a str),
    /// A repository with a password, which goes into a private file.
    PrivateRepository {
        /// The address without user and password.
        url: String,
        /// The user; may be empty.
        user: String,
        /// The password, if there is one.
        password: Option<Secret>,
    },
    /// An archive or a directory, relative to the working directory of this program.
    Path(&'a str),
    /// A chart of a repository that an operator's repositories file names.
    Registered {
        /// The repository's name in that file.
        repository: &'a str,
        /// The whole reference.
        reference: &'a str,
    },
}

impl ChartRef {
    /// A chart as the configuration names it: `reference` is an `oci://` reference, the address of a repository, a path,
    /// or `repository/chart`. The tests for these are case-sensitive.
    pub fn new(name: &str, reference: &str, version: &str, namespace: &str, values: &str) -> Self {
        let in_repository = reference.starts_with("http://") || reference.starts_with("https://");
        Self {
            release: name.to_owned(),
            namespace: namespace.to_owned(),
            chart: if in_repository { name } else { reference }.to_owned(),
            repo: in_repository.then(|| reference.to_owned()),
            version: version.to_owned(),
            values: values.to_owned(),
        }
    }

    /// Where it comes from. A reference that cannot be used is an error that does not quote a password.
    pub fn source(&self) -> Result<Source<'_>> {
        if let Some(url) = &self.repo {
            return repository(url);
        }
        let reference = self.chart.as_str();
        if reference.is_empty() {
            return Err(Error::user_input(format!("the chart {} has no reference", self.release)));
        }
        if reference.starts_with("oci://") {
            return Ok(Source::Registry(reference));
        }
        let archive = Path::new(reference).extension().is_some_and(|end| end.eq_ignore_ascii_case("tgz"));
        let looks_like_a_path =
            archive || reference.starts_with(['/', '.', '~', '-']) || reference.ends_with('/');
        match reference.split_once('/') {
            Some((repository, chart)) if !looks_like_a_path && !chart.contains('/') => {
                Ok(Source::Registered { repository, reference })
            }
            _ => Ok(Source::Path(reference)),
        }
    }

    /// Whether Helm takes the version from the chart itself, whatever it is told: it does for files.
    pub(super) fn brings_its_version(&self) -> bool {
        matches!(self.source(), Ok(Source::Path(_)))
    }

    /// A fingerprint of the values, recorded in the release; `None` for empty ones, which change nothing.
    pub fn values_hash(&self) -> Option<String> {
        (!values::is_blank(&self.values)).then(|| values::hash(&self.values))
    }
}

/// User and password never go to the command line: such an address becomes one without them, and a private file.
fn repository(url: &str) -> Result<Source<'_>> {
    let Some((scheme, rest)) = url.split_once("://") else {
        return Err(Error::user_input("the address of a chart repository has no scheme"));
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let Some((user_info, host)) = authority.rsplit_once('@') else {
        return Ok(Source::Repository(url));
    };
    let (user, password) = user_info.split_once(':').unwrap_or((user_info, ""));
    let plain = |text: &str| {
        percent_decode_str(text).decode_utf8().map(std::borrow::Cow::into_owned).map_err(|_| {
            Error::user_input("user or password in the address of a chart repository is not UTF-8")
        })
    };
    let password = match plain(password)?.as_str() {
        "" => None,
        text => Some(Secret::new(text)?),
    };
    Ok(Source::PrivateRepository { url: format!("{scheme}://{host}{path}"), user: plain(user)?, password })
}

impl fmt::Debug for ChartRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChartRef")
            .field("release", &self.release)
            .field("namespace", &self.namespace)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(reference: &str) -> ChartRef {
        ChartRef::new("lb", reference, "0.2.0", "fip", "")
    }

    #[test]
    fn a_reference_says_where_the_chart_is() {
        let table = [
            ("RF-54 a registry", "oci://r.example/p/lb", Source::Registry("oci://r.example/p/lb")),
            ("RF-55 a repository", "https://r.example/c", Source::Repository("https://r.example/c")),
            ("RF-55 without TLS", "http://r.example/c", Source::Repository("http://r.example/c")),
            ("RF-56 an archive", "./charts/lb.tgz", Source::Path("./charts/lb.tgz")),
            ("RF-56 an absolute path", "/charts/lb", Source::Path("/charts/lb")),
            ("RF-56 deeper than a repository's chart", "a/b/lb", Source::Path("a/b/lb")),
            ("RF-56 an archive beside us", "charts/lb.tgz", Source::Path("charts/lb.tgz")),
            (
                "RF-56 of a registered repository",
                "metallb/metallb",
                Source::Registered { repository: "metallb", reference: "metallb/metallb" },
            ),
            ("the tests are case-sensitive", "OCI://r/lb", Source::Path("OCI://r/lb")),
        ];
        for (case, reference, want) in table {
            assert_eq!(at(reference).source().unwrap(), want, "{case}");
        }
        assert!(at("").source().is_err(), "RF-56 nothing to go by");
        assert_eq!((at("https://r/c").chart, at("https://r/c").release), ("lb".to_owned(), "lb".to_owned()));
    }

    #[test]
    fn a_password_leaves_the_address() {
        let table = [
            ("https://u:p%40ss@r.example:8443/c?x=1", "https://r.example:8443/c?x=1", "u", Some("p@ss")),
            ("http://u@r.example", "http://r.example", "u", None),
            ("https://a@b:pw@r.example/", "https://r.example/", "a@b", Some("pw")),
        ];
        for (address, url, user, password) in table {
            let chart = at(address);
            let Source::PrivateRepository { url: u, user: n, password: p } = chart.source().unwrap() else {
                panic!("RF-206 {address} is private");
            };
            let shown = p.as_ref().map(Secret::expose);
            assert_eq!((u.as_str(), n.as_str(), shown), (url, user, password), "RF-206 {address}");
        }
        let chart = ChartRef { values: "token: s3cr3t".to_owned(), ..at("https://u:s3cr3t@r/c") };
        let shown = format!("{chart:?} {:?}", chart.source());
        assert!(!shown.contains("s3cr3t"), "RF-152 {shown}");
        let mistake = at("https://u:%ff%fe@r/c").source().unwrap_err();
        assert!(!mistake.message().contains("%ff"), "RF-152 {mistake:?}");
    }
}
