//! The `ConfigMap` `rancher-fip-config` and the CA: read, checked, and all mistakes reported at once.

use std::collections::BTreeMap;

use cloudberth_core::{Error, lookup::Lookup};
use serde_json::Value;

use crate::plan::data::{self, Hasher};

/// What the configuration says about one chart.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Chart {
    /// The chart's name, which is the release's too.
    pub name: String,
    /// Where it comes from: `oci://…`, `http(s)://…`, a path, or `repo/chart`.
    pub reference: String,
    /// The version; empty for the newest, or a range.
    pub version: String,
    /// The namespace of the release.
    pub namespace: String,
    /// Helm values as YAML, handed on as they are.
    pub values: String,
}

impl Chart {
    fn read(data: &BTreeMap<String, String>, prefix: &str) -> Self {
        let get = |key: &str| data.get(&format!("{prefix}{key}")).cloned().unwrap_or_default();
        Self {
            name: get("ChartName"),
            reference: get("ChartRef"),
            version: get("ChartVersion"),
            namespace: get("Namespace"),
            values: get("Values"),
        }
    }

    /// The parts without which nothing can be installed, and which of them are missing.
    fn missing(&self) -> Vec<&'static str> {
        let parts =
            [("ChartName", &self.name), ("ChartRef", &self.reference), ("Namespace", &self.namespace)];
        parts.into_iter().filter(|(_, value)| value.is_empty()).map(|(name, _)| name).collect()
    }

    /// Whether it can be installed.
    pub fn is_complete(&self) -> bool {
        self.missing().is_empty()
    }

    /// Whether a release of it can be looked for.
    pub const fn can_be_looked_up(&self) -> bool {
        !self.name.is_empty() && !self.namespace.is_empty()
    }

    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Shows neither values nor the reference, which may hold credentials (law 10).
impl std::fmt::Debug for Chart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chart")
            .field("name", &self.name)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

/// The settings, checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// The address of the floating-IP API, without a slash at its end.
    pub api_url: String,
    /// The load-balancer controller. Its namespace is the target namespace.
    pub controller: Chart,
    /// `PureLB`, as far as it is configured.
    pub purelb: Chart,
    /// `MetalLB`, as far as it is configured.
    pub metallb: Chart,
}

impl Config {
    /// A hash of all of it.
    pub fn digest(&self) -> String {
        let mut hasher = Hasher::default();
        hasher.add(&self.api_url);
        for chart in [&self.controller, &self.purelb, &self.metallb] {
            let Chart { name, reference, version, namespace, values } = chart;
            hasher.add(name).add(reference).add(version).add(namespace).add(values);
        }
        hasher.end()
    }
}

/// A configuration and what is odd about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// The configuration.
    pub config: Config,
    /// What a person should know.
    pub warnings: Vec<String>,
}

/// Reads the `data` of the `ConfigMap`. Unknown keys are ignored.
pub fn check(data: &BTreeMap<String, String>) -> Result<Checked, Vec<String>> {
    let (mut mistakes, mut warnings) = (Vec::new(), Vec::new());
    let api_url =
        url(data.get("RancherFipApiServerURL").map_or("", String::as_str), &mut mistakes, &mut warnings);
    let controller = Chart::read(data, "RancherFipLBController");
    let purelb = Chart::read(data, "PureLBController");
    let metallb = Chart::read(data, "MetalLBController");
    for part in controller.missing() {
        mistakes.push(format!("RancherFipLBController{part} is empty"));
    }
    let balancers = [("PureLBController", &purelb), ("MetalLBController", &metallb)];
    if !balancers.iter().any(|(_, chart)| chart.is_complete()) {
        let wants = balancers.map(|(prefix, _)| format!("{prefix}ChartName, …ChartRef and …Namespace"));
        mistakes.push(format!("no load balancer is configured; set {}", wants.join(", or ")));
    }
    for (prefix, chart) in balancers {
        let missing = chart.missing();
        if !chart.is_empty() && !missing.is_empty() {
            warnings.push(format!("{prefix} is not used, because {} is empty", missing.join(" and ")));
        }
    }
    let all = [("RancherFipLBController", &controller), balancers[0], balancers[1]];
    for (prefix, chart) in all {
        if !chart.name.is_empty() && !is_release_name(&chart.name) {
            mistakes.push(format!(
                "{prefix}ChartName: {:?} is no name of a release: at most 53 of a-z, 0-9, '-' and '.', with a letter or \
                 digit at both ends",
                chart.name
            ));
        }
        if !chart.namespace.is_empty() && !is_label(&chart.namespace) {
            mistakes.push(format!("{prefix}Namespace: {:?} is no name of a namespace", chart.namespace));
        }
        if let Err(why) = values(&chart.values) {
            mistakes.push(format!("{prefix}Values: {why}"));
        }
    }
    if mistakes.is_empty() {
        Ok(Checked { config: Config { api_url, controller, purelb, metallb }, warnings })
    } else {
        Err(mistakes)
    }
}

/// The address without its last slashes: the load-balancer controller appends paths to it.
fn url(text: &str, mistakes: &mut Vec<String>, warnings: &mut Vec<String>) -> String {
    let url = text.trim_end_matches('/');
    let parsed = url.parse::<http::Uri>().ok();
    let good = parsed.as_ref().is_some_and(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some_and(|host| !host.is_empty())
    });
    if !good {
        mistakes.push(format!("RancherFipApiServerURL: {url:?} is not an http or https address"));
    } else if !url.ends_with("/v1") {
        warnings.push(format!(
            "RancherFipApiServerURL: {url:?} does not end in /v1; the load-balancer controller appends /auth/token and \
             the like to it, and the API is below /v1"
        ));
    }
    url.to_owned()
}

/// Helm values: a mapping, or nothing. The text itself goes to Helm as it is.
pub fn values(text: &str) -> Result<Value, String> {
    if text.trim().is_empty() {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    // Values may hold credentials, and the parser quotes lines: only the place is told.
    let parsed = serde_saphyr::from_str::<Value>(text).map_err(|why| {
        let place = why.location().map(|at| format!(" at line {}, column {}", at.line(), at.column()));
        format!("it is not YAML; something is wrong{}", place.unwrap_or_default())
    })?;
    match parsed {
        Value::Null => Ok(Value::Object(serde_json::Map::new())),
        Value::Object(_) => Ok(parsed),
        _ => Err("it must be a mapping".to_owned()),
    }
}

/// Helm's rule for names of releases.
fn is_release_name(name: &str) -> bool {
    name.len() <= 53 && name.split('.').all(is_label)
}

/// A DNS label.
fn is_label(text: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty()
        && text.len() <= 63
        && text.bytes().all(inside)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// The CA in the Secret `cacerts`, and what is odd about it. Without the key, or with nothing in it, there is none.
pub fn ca(secret: Option<&Value>) -> (Option<Vec<u8>>, Option<&'static str>) {
    let found = secret.and_then(|secret| data::bytes(secret, crate::names::CA_KEY));
    match found {
        Some(bytes) if bytes.is_empty() => {
            (None, Some("the key ca.crt of the Secret cacerts is empty; there is no CA"))
        }
        found => (found, None),
    }
}

/// What was read of the `ConfigMap` and the CA last, and what is in force.
#[derive(Clone, Debug, Default)]
pub struct Loaded {
    /// The last good configuration and CA; `None` before there was one.
    pub good: Option<Good>,
    /// Why the newest ones are not in force; empty if they are.
    pub trouble: Vec<String>,
    /// What a person should know about what is in force.
    pub warnings: Vec<String>,
}

/// A configuration in force.
#[derive(Clone, PartialEq, Eq)]
pub struct Good {
    /// The settings.
    pub config: Config,
    /// The CA to hand on.
    pub ca: Option<Vec<u8>>,
}

/// Shows nothing of values, which may hold credentials (law 10).
impl std::fmt::Debug for Good {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Good")
            .field("api_url", &self.config.api_url)
            .field("ca", &self.ca.is_some())
            .finish_non_exhaustive()
    }
}

impl Loaded {
    /// What is in force after these answers. An answer that is unknown or wrong keeps the last good one.
    #[must_use]
    pub fn after(&self, map: &Lookup<Value>, secret: &Lookup<Value>) -> Self {
        let (mut trouble, mut warnings) = (Vec::new(), Vec::new());
        let config = match map {
            Lookup::Present(map) => match check(&texts(map)) {
                Ok(checked) => {
                    warnings.extend(checked.warnings);
                    Some(checked.config)
                }
                Err(mistakes) => {
                    trouble.extend(mistakes);
                    None
                }
            },
            Lookup::Absent => {
                trouble.push("the ConfigMap rancher-fip-config does not exist".to_owned());
                None
            }
            Lookup::Unknown(why) => {
                trouble.push(unreadable("the ConfigMap rancher-fip-config", why));
                None
            }
        };
        let authority = match secret {
            Lookup::Present(secret) => {
                let (found, warning) = ca(Some(secret));
                warnings.extend(warning.map(str::to_owned));
                Some(found)
            }
            Lookup::Absent => Some(None),
            Lookup::Unknown(why) => {
                trouble.push(unreadable("the Secret cacerts", why));
                None
            }
        };
        let last = self.good.as_ref();
        let config = config.or_else(|| last.map(|good| good.config.clone()));
        let authority = authority.or_else(|| last.map(|good| good.ca.clone()));
        let good = config.zip(authority).map(|(config, ca)| Good { config, ca });
        Self { good, trouble, warnings }
    }
}

fn unreadable(what: &str, why: &Error) -> String {
    format!("{what} cannot be read: {}", why.message())
}

/// The texts in `data`.
fn texts(map: &Value) -> BTreeMap<String, String> {
    let data = map.get("data").and_then(Value::as_object);
    let texts =
        data.into_iter().flatten().filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())));
    texts.collect()
}

#[cfg(test)]
mod tests;
