//! The settings: environment variables first, then the file of `--cloud-config`, then defaults.

use std::{fmt, net::IpAddr, path::PathBuf};

use cloudberth_core::{Error, Result, Secret};
use cloudberth_http::{
    Base, Env, TokenSource,
    yaml::{Fields, Value},
};

use crate::wire::Cluster;

/// The variable that holds the token; followed by `_FILE` it names a file that does.
pub const TOKEN: &str = "CLOUDLYCKE_TOKEN";
const URL: &str = "CLOUDLYCKE_API_URL";
const CLUSTER: &str = "CLOUDLYCKE_CLUSTER";
const INVENTORY: &str = "CLOUDLYCKE_INVENTORY";
const STATE_DIR: &str = "CLOUDLYCKE_STATE_DIR";
const DEFAULT_URL: &str = "http://127.0.0.1:7733";
/// Where requests go that never leave the process.
const EMBEDDED_URL: &str = "http://127.0.0.1/v1";

/// Which cluster of the inventory this one is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterChoice {
    /// The one with this key.
    Key(String),
    /// The one that Kubernetes calls so.
    Named(String),
}

impl ClusterChoice {
    /// The key of the cluster among those that are known. The error lists them.
    pub fn choose<'a>(&self, known: &'a [Cluster]) -> Result<&'a str> {
        let fits = |cluster: &&Cluster| match self {
            Self::Key(key) => cluster.key == *key,
            Self::Named(name) => cluster.kubernetes_name == *name,
        };
        if let Some(cluster) = known.iter().find(fits) {
            return Ok(&cluster.key);
        }
        let what = match self {
            Self::Key(key) => format!("{CLUSTER}: the inventory has no cluster with the key {key:?}"),
            Self::Named(name) => format!("--cluster-name: the inventory has no cluster called {name:?}"),
        };
        let known: Vec<_> =
            known.iter().map(|one| format!("{} (key {})", one.kubernetes_name, one.key)).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        Err(Error::user_input(format!(
            "{what}; there are: {known}. Set --cluster-name to one of these names, or {CLUSTER} to a key"
        )))
    }
}

/// Where the service is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Service {
    /// In a process of its own.
    Remote,
    /// In this process, with this inventory file. Where its state is kept; `None` is the usual place.
    Embedded {
        /// The inventory file.
        inventory: PathBuf,
        /// Where its state is kept; `None` is the usual place.
        state: Option<PathBuf>,
    },
}

/// What people have said about how this cloud is worked with.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where requests go; `/v1` is part of it.
    pub base: Base,
    /// The credential; none where nobody asks for one.
    pub token: Option<TokenSource>,
    /// Which cluster this is.
    pub cluster: ClusterChoice,
    /// Where the service is.
    pub service: Service,
}

/// What the file of `--cloud-config` says. Each key may be spelt as its variable, too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileSettings {
    api_url: Option<String>,
    /// The token itself.
    pub token: Option<Secret>,
    inventory: Option<PathBuf>,
    state_dir: Option<PathBuf>,
    cluster: Option<String>,
}

/// The field under one of its two names.
fn either<'a, T>(
    file: &mut Fields<'a>,
    name: &'static str,
    variable: &'static str,
    read: impl Fn(&Value<'a>) -> Option<T>,
) -> Option<T> {
    let plain = read(&file.optional(name));
    let place = file.optional(variable);
    let spelt_out = read(&place);
    if plain.is_some() && spelt_out.is_some() {
        place.wrong(format!("{name} is set too; set one of them only"));
    }
    plain.or(spelt_out)
}

impl FileSettings {
    /// Reads all fields. It never gives up early, so that every mistake is found.
    pub fn read(file: &mut Fields<'_>) -> Option<Self> {
        let path = |value: &Value<'_>| value.text().map(PathBuf::from);
        Some(Self {
            api_url: either(file, "apiUrl", URL, Value::text),
            token: either(file, "token", TOKEN, Value::secret),
            inventory: either(file, "inventory", INVENTORY, path),
            state_dir: either(file, "stateDir", STATE_DIR, path),
            cluster: either(file, "cluster", CLUSTER, Value::text),
        })
    }
}

/// What settings are made from.
#[derive(Debug)]
pub struct Sources<'a> {
    /// The token that [`TOKEN`] or the file gives.
    pub token: Result<Option<TokenSource>>,
    /// The environment.
    pub env: &'a Env,
    /// The file of `--cloud-config`; empty if there is none.
    pub file: FileSettings,
    /// The name of the cluster.
    pub cluster: &'a str,
}

impl Settings {
    /// Reads the settings, and reports every mistake at once.
    pub fn read(sources: Sources<'_>) -> Result<Self, Vec<Error>> {
        let Sources { token, env, file, cluster } = sources;
        let mut wrong = Vec::new();
        let path = |name: &str| env.get(name).map(PathBuf::from);
        let service = match path(INVENTORY).or(file.inventory) {
            Some(inventory) => Service::Embedded { inventory, state: path(STATE_DIR).or(file.state_dir) },
            None => Service::Remote,
        };
        let given = env.get(URL).map(|url| (URL, url.to_owned())).or(file.api_url.map(|url| ("apiUrl", url)));
        let base = match (&service, given) {
            (Service::Embedded { .. }, Some((name, _))) => {
                let text =
                    format!("{name}: {INVENTORY} is set too: the service runs in this process or elsewhere");
                wrong.push(Error::user_input(text));
                None
            }
            (Service::Embedded { .. }, None) => Base::parse(EMBEDDED_URL).map_err(|why| wrong.push(why)).ok(),
            (Service::Remote, given) => {
                let (name, url) = given.unwrap_or((URL, DEFAULT_URL.to_owned()));
                let missing = matches!(token, Ok(None)) && !is_loopback(&url);
                if missing {
                    let text = format!("{TOKEN} is not set; a service on another host wants its token");
                    wrong.push(Error::user_input(text));
                }
                base(&url).map_err(|why| wrong.push(why.context(name))).ok()
            }
        };
        let token = token.map_err(|why| wrong.push(why)).ok();
        let cluster = match env.get(CLUSTER).map(str::to_owned).or(file.cluster) {
            Some(key) => ClusterChoice::Key(key.trim().to_owned()),
            None => ClusterChoice::Named(cluster.to_owned()),
        };
        match (base, token) {
            (Some(base), Some(token)) if wrong.is_empty() => Ok(Self { base, token, cluster, service }),
            _ => Err(wrong),
        }
    }
}

/// With as much of the token as may be shown.
impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.service {
            Service::Remote => write!(f, "Cloudlycke at {}", self.base)?,
            Service::Embedded { inventory, .. } => {
                write!(f, "Cloudlycke in this process, inventory {}", inventory.display())?;
            }
        }
        if let Some(token) = &self.token {
            write!(f, ", token {}", token.masked())?;
        }
        match &self.cluster {
            ClusterChoice::Key(key) => write!(f, ", cluster {key}"),
            ClusterChoice::Named(name) => write!(f, ", cluster called {name}"),
        }
    }
}

/// The base URL with the version of the API, whether it was given with it or without.
fn base(url: &str) -> Result<Base> {
    let url = url.trim();
    let url = url.split(['?', '#']).next().unwrap_or(url).trim_end_matches('/');
    let whole = if url.ends_with("/v1") { url.to_owned() } else { format!("{url}/v1") };
    Base::parse(&whole)
}

fn is_loopback(url: &str) -> bool {
    let rest = url.trim().split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or(rest);
    let host = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((v6, _)) => v6,
        None => authority.rsplit_once(':').map_or(authority, |(host, _)| host),
    };
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests;
