//! Feature gates: which are known, and what is on.
//!
//! Manifests carry gates of the API server's library too. All of them are accepted; few of them mean anything here.

#![allow(missing_docs, reason = "plain data whose names say what it is")]

use std::collections::BTreeMap;

use cloudberth_core::annotation::nearest;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Off unless asked for.
    Alpha,
    /// Mostly on.
    Beta,
    Stable,
    Deprecated,
}

/// A gate that `--feature-gates` accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    pub name: &'static str,
    pub stage: Stage,
    /// Whether it is on unless asked otherwise.
    pub default: bool,
    /// Whether it cannot be asked otherwise.
    pub locked: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// Routes follow the watch on nodes instead of the clock.
    WatchBasedRoutes,
    Webhook,
    /// The `--log-…-split-stream` and `--log-…-info-buffer-size` flags may be used.
    LoggingAlphaOptions,
    /// `--logging-format=json` may be used.
    LoggingBetaOptions,
    /// A front proxy may say a user's UID.
    RemoteRequestHeaderUid,
    /// An anonymous or refused caller over HTTP/2 loses its connection.
    UnauthenticatedHttp2DosMitigation,
    /// A client certificate may say a user's UID.
    UserUidFromCertificate,
}

impl Gate {
    /// The name in `--feature-gates`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::WatchBasedRoutes => "CloudControllerManagerWatchBasedRoutesReconciliation",
            Self::Webhook => "CloudControllerManagerWebhook",
            Self::LoggingAlphaOptions => "LoggingAlphaOptions",
            Self::LoggingBetaOptions => "LoggingBetaOptions",
            Self::RemoteRequestHeaderUid => "RemoteRequestHeaderUID",
            Self::UnauthenticatedHttp2DosMitigation => "UnauthenticatedHTTP2DOSMitigation",
            Self::UserUidFromCertificate => "AllowParsingUserUIDFromCertAuth",
        }
    }

    /// What it does, in one line, for the reference page.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Self::WatchBasedRoutes => "Routes follow changes of nodes instead of the clock alone.",
            Self::Webhook => "Webhooks are served, where a cloud has one.",
            Self::LoggingAlphaOptions => "The flags that split or buffer the log may be used.",
            Self::LoggingBetaOptions => "`--logging-format=json` may be used.",
            Self::RemoteRequestHeaderUid => "`--requestheader-uid-headers` may be used.",
            Self::UnauthenticatedHttp2DosMitigation => {
                "An anonymous or refused caller over HTTP/2 loses its connection."
            }
            Self::UserUidFromCertificate => "A client certificate may say a user's UID.",
        }
    }

    /// Whether it is on unless asked otherwise.
    #[must_use]
    pub fn default(self) -> bool {
        known(self.name()).is_some_and(|known| known.default)
    }

    pub const ALL: [Self; 7] = [
        Self::WatchBasedRoutes,
        Self::Webhook,
        Self::LoggingAlphaOptions,
        Self::LoggingBetaOptions,
        Self::RemoteRequestHeaderUid,
        Self::UnauthenticatedHttp2DosMitigation,
        Self::UserUidFromCertificate,
    ];
}

const ALL_ALPHA: &str = "AllAlpha";
const ALL_BETA: &str = "AllBeta";

const fn alpha(name: &'static str) -> Known {
    Known { name, stage: Stage::Alpha, default: false, locked: false }
}

const fn beta(name: &'static str, default: bool) -> Known {
    Known { name, stage: Stage::Beta, default, locked: false }
}

const fn locked(name: &'static str, stage: Stage, default: bool) -> Known {
    Known { name, stage, default, locked: true }
}

/// Every gate that is accepted, by name.
pub const KNOWN: &[Known] = &[
    beta("APIResponseCompression", true),
    beta("APIServerIdentity", true),
    alpha("APIServerWebhookAuthenticationToken"),
    alpha("APIServingWithRoutine"),
    locked("AggregatedDiscoveryRemoveBetaType", Stage::Deprecated, true),
    alpha(ALL_ALPHA),
    beta(ALL_BETA, false),
    beta("AllowParsingUserUIDFromCertAuth", true),
    beta("AllowUnsafeMalformedObjectDeletion", true),
    alpha("CBORServingAndStorage"),
    alpha("CloudControllerManagerWatchBasedRoutesReconciliation"),
    alpha("CloudControllerManagerWebhook"),
    beta("ComponentFlagz", true),
    beta("ComponentStatusz", true),
    beta("ConcurrentWatchObjectDecode", true),
    alpha("ConsistentListFromCacheSkipTimeoutFallback"),
    beta("ConstrainedImpersonation", true),
    beta("ContextualLogging", true),
    alpha("ControllerManagerReleaseLeaderElectionLockOnExit"),
    beta("CoordinatedLeaderElection", false),
    locked("DeclarativeValidation", Stage::Stable, true),
    beta("DeclarativeValidationBeta", true),
    locked("DeclarativeValidationTakeover", Stage::Deprecated, false),
    beta("DetectCacheInconsistency", true),
    beta("EtcdRangeStream", true),
    beta("ExcludeAdmissionWebhookVirtualResources", true),
    Known { name: "KMSv1", stage: Stage::Deprecated, default: false, locked: false },
    beta("ListFromCacheSnapshot", true),
    alpha("LoggingAlphaOptions"),
    beta("LoggingBetaOptions", true),
    beta("ManifestBasedAdmissionControlConfig", true),
    Known { name: "MutatingAdmissionPolicy", stage: Stage::Stable, default: true, locked: false },
    beta("NativeHistograms", true),
    beta("OpenAPIEnums", true),
    beta("RemoteRequestHeaderUID", true),
    locked("SeparateCacheWatchRPC", Stage::Deprecated, false),
    alpha("ShardedListAndWatch"),
    beta("SizeBasedListCostEstimate", true),
    alpha("StorageVersionAPI"),
    beta("StorageVersionHash", true),
    beta("StructuredAuthenticationConfigurationEgressSelector", true),
    beta("StructuredAuthenticationConfigurationJWKSMetrics", true),
    beta("TokenRequestServiceAccountUIDValidation", true),
    beta("UnauthenticatedHTTP2DOSMitigation", true),
    beta("UnknownVersionInteroperabilityProxy", true),
    locked("WatchCacheInitializationPostStartHook", Stage::Stable, true),
    beta("WatchList", true),
    beta("WatchListCompression", true),
    beta("WebhookRoundTripLoadBalancing", true),
];

fn known(name: &str) -> Option<&'static Known> {
    KNOWN.iter().find(|known| known.name == name)
}

/// Refuses a gate that is not known, and a value that a settled gate cannot have.
pub fn check(name: &str, value: bool) -> Result<(), String> {
    match known(name) {
        Some(gate) if gate.locked && gate.default != value => {
            Err(format!("cannot set feature gate {name} to {value}, feature is locked to {}", gate.default))
        }
        Some(_) => Ok(()),
        None => {
            let names: Vec<_> = KNOWN.iter().map(|known| (known.name, known.name)).collect();
            let hint = nearest(name, "", &names).map(|name| format!("; did you mean {name}?"));
            Err(format!("unrecognized feature gate: {name}{}", hint.unwrap_or_default()))
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gates {
    asked: BTreeMap<String, bool>,
}

impl Gates {
    /// The defaults, changed by what was asked for.
    pub const fn new(asked: BTreeMap<String, bool>) -> Self {
        Self { asked }
    }

    /// Whether a gate is on. A gate asked for by name is what was asked; the two bulk gates decide over the others of
    /// their stage, wherever they stand.
    pub fn enabled(&self, gate: Gate) -> bool {
        let name = gate.name();
        let Some(known) = known(name) else { return false };
        let bulk = match known.stage {
            Stage::Alpha => self.asked.get(ALL_ALPHA),
            Stage::Beta => self.asked.get(ALL_BETA),
            Stage::Stable | Stage::Deprecated => None,
        };
        self.asked.get(name).or(bulk).copied().unwrap_or(known.default)
    }

    /// The gates that were asked for by name and mean nothing here.
    pub fn without_effect(&self) -> impl Iterator<Item = &str> {
        let meant = |name: &str| {
            [ALL_ALPHA, ALL_BETA].contains(&name) || Gate::ALL.iter().any(|gate| gate.name() == name)
        };
        self.asked.keys().map(String::as_str).filter(move |name| !meant(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Asked<'a> = &'a [(&'a str, bool)];

    fn gates(asked: Asked<'_>) -> Gates {
        Gates::new(asked.iter().map(|&(name, on)| (name.to_owned(), on)).collect())
    }

    #[test]
    fn a_gate_is_what_was_asked_for_by_name_then_in_bulk_then_by_default() {
        let (routes, uid) = (Gate::WatchBasedRoutes, Gate::RemoteRequestHeaderUid);
        let table: [(&str, Asked<'_>, Gate, bool); 8] = [
            ("alpha by default", &[], routes, false),
            ("beta by default", &[], uid, true),
            ("by name", &[(routes.name(), true)], routes, true),
            ("in bulk", &[(ALL_ALPHA, true)], routes, true),
            ("in bulk, but not this one", &[(ALL_ALPHA, true), (routes.name(), false)], routes, false),
            ("all beta off", &[(ALL_BETA, false)], uid, false),
            ("all beta off, but this one", &[(ALL_BETA, false), (uid.name(), true)], uid, true),
            ("the other stage", &[(ALL_ALPHA, false)], uid, true),
        ];
        for (case, asked, gate, want) in table {
            assert_eq!(gates(asked).enabled(gate), want, "{case}");
        }
    }

    #[test]
    fn unknown_gates_and_locked_ones_are_refused() {
        let table = [
            ("WatchList", true, None),
            ("DeclarativeValidation", true, None),
            (
                "DeclarativeValidation",
                false,
                Some("cannot set feature gate DeclarativeValidation to false, feature is locked to true"),
            ),
            ("WatchLits", true, Some("unrecognized feature gate: WatchLits; did you mean WatchList?")),
            ("Nope", true, Some("unrecognized feature gate: Nope")),
        ];
        for (name, value, want) in table {
            assert_eq!(check(name, value).err().as_deref(), want, "{name}={value}");
        }
    }

    #[test]
    fn the_table_is_complete_and_in_order() {
        for gate in Gate::ALL {
            assert!(known(gate.name()).is_some(), "{gate:?}");
        }
        let lower: Vec<_> = KNOWN.iter().map(|gate| gate.name).collect();
        let mut sorted = lower.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(lower, sorted);
        assert!(KNOWN.iter().all(|gate| gate.stage != Stage::Alpha || !gate.default));
    }

    #[test]
    fn gates_of_other_programs_are_named() {
        let gates = gates(&[("WatchList", false), (ALL_ALPHA, true), (Gate::Webhook.name(), true)]);
        assert_eq!(gates.without_effect().collect::<Vec<_>>(), ["WatchList"]);
    }
}
