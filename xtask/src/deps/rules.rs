//! The part of `deny.toml` that is honoured here. Anything else in it is an error.

use serde::Deserialize;

use crate::Result;
use crate::metadata::Package;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rules {
    pub(crate) graph: Scope,
    /// For cargo-deny itself, where it has a network.
    #[serde(rename = "advisories")]
    _advisories: Option<toml::Table>,
    pub(crate) licenses: Licences,
    pub(crate) bans: Bans,
    #[serde(rename = "sources")]
    _sources: Sources,
}

/// Which crates count.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Scope {
    pub(crate) all_features: bool,
    pub(crate) targets: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Licences {
    #[serde(rename = "version")]
    _version: u8,
    /// How sure cargo-deny has to be about a text. Here, manifests are taken at their word.
    #[serde(rename = "confidence-threshold")]
    _confidence_threshold: f32,
    pub(crate) allow: Vec<String>,
    #[serde(rename = "unused-allowed-license")]
    _unused_allowed_license: Allow,
    #[serde(rename = "private")]
    _private: Private,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Private {
    #[serde(rename = "ignore")]
    _ignore: No,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Bans {
    #[serde(rename = "multiple-versions")]
    _multiple_versions: Deny,
    #[serde(rename = "multiple-versions-include-dev")]
    _multiple_versions_include_dev: No,
    #[serde(rename = "wildcards")]
    _wildcards: Deny,
    #[serde(rename = "allow-wildcard-paths")]
    _allow_wildcard_paths: Yes,
    pub(crate) skip: Vec<Spec>,
    pub(crate) deny: Vec<Spec>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Sources {
    #[serde(rename = "unknown-registry")]
    _unknown_registry: Deny,
    #[serde(rename = "unknown-git")]
    _unknown_git: Deny,
}

/// A crate, perhaps of one version, and why it is named.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Spec {
    #[serde(rename = "crate")]
    pub(crate) krate: String,
    pub(crate) reason: String,
}

impl Spec {
    pub(crate) fn name(&self) -> &str {
        self.krate.split('@').next().unwrap_or_default()
    }

    /// `a`, or `a@0.2` for 0.2 and all that is 0.2.x.
    pub(crate) fn matches(&self, package: &Package) -> bool {
        let version = self.krate.split_once('@').map(|(_, version)| version);
        let fits = |wanted: &str| {
            package
                .version
                .strip_prefix(wanted)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '+']))
        };
        package.name == self.name() && version.is_none_or(fits)
    }
}

/// Settings of which one value is honoured.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Deny {
    Deny,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Allow {
    Allow,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "bool")]
struct Yes;

#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "bool")]
struct No;

impl TryFrom<bool> for Yes {
    type Error = &'static str;

    fn try_from(value: bool) -> std::result::Result<Self, Self::Error> {
        if value { Ok(Self) } else { Err("only true is honoured here") }
    }
}

impl TryFrom<bool> for No {
    type Error = &'static str;

    fn try_from(value: bool) -> std::result::Result<Self, Self::Error> {
        if value { Err("only false is honoured here") } else { Ok(Self) }
    }
}

impl Rules {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        toml::from_str(text).map_err(|why| format!("deny.toml: {why}"))
    }
}
