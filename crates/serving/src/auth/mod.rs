//! Authentication and authorization, both delegated to the cluster.
//!
//! ```text
//!   headers, certificate ──► Trust ──► AuthResult ─┐
//!   bearer token ──► TokenReview ──► AuthResult ───┴► combine ──► Identity
//!   Identity + path ──► granted? ──► SubjectAccessReview ──► Ruling ──► page, 403 or 500
//! ```

pub(crate) mod access;
mod cache;
mod guard;
pub(crate) mod headers;
pub(crate) mod identity;
mod review_queue;
mod reviews;
mod trust;
mod trust_store;

use std::{fmt, path::PathBuf, time::Duration};

use kube::Client;

pub use self::{access::AlwaysAllow, guard::Guard, headers::ProxyHeaders, identity::Identity};
pub(crate) use guard::Denied;

const TTL: Duration = Duration::from_secs(10);

/// How callers are authenticated.
#[derive(Clone)]
pub struct Authentication {
    /// For `TokenReview` and the `ConfigMap`; without it tokens are not looked at.
    pub client: Option<Client>,
    /// `--authentication-skip-lookup`: the `ConfigMap` is not read.
    pub skip_lookup: bool,
    /// `--authentication-tolerate-lookup-failure`: start even if the `ConfigMap` cannot be read.
    pub tolerate_lookup_failure: bool,
    /// `--authentication-token-webhook-cache-ttl`.
    pub token_ttl: Duration,
    /// `--client-ca-file`; filled from the `ConfigMap` if it is not given.
    pub client_ca_file: Option<PathBuf>,
    /// `--requestheader-client-ca-file`; if it is not given, it and `proxy_headers` come from the `ConfigMap`.
    pub proxy_ca_file: Option<PathBuf>,
    /// The other `--requestheader-…` flags.
    pub proxy_headers: ProxyHeaders,
}

impl Default for Authentication {
    fn default() -> Self {
        Self {
            client: None,
            skip_lookup: false,
            tolerate_lookup_failure: false,
            token_ttl: TTL,
            client_ca_file: None,
            proxy_ca_file: None,
            proxy_headers: ProxyHeaders::usual(),
        }
    }
}

impl fmt::Debug for Authentication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authentication").field("client", &self.client.is_some()).finish_non_exhaustive()
    }
}

/// How callers are authorized.
#[derive(Clone)]
pub struct Authorization {
    /// For `SubjectAccessReview`; without it only what is always allowed is.
    pub client: Option<Client>,
    /// `--authorization-always-allow-paths`.
    pub always_allow: AlwaysAllow,
    /// `--authorization-webhook-cache-authorized-ttl`.
    pub allowed_ttl: Duration,
    /// `--authorization-webhook-cache-unauthorized-ttl`.
    pub refused_ttl: Duration,
}

impl Default for Authorization {
    fn default() -> Self {
        Self { client: None, always_allow: AlwaysAllow::usual(), allowed_ttl: TTL, refused_ttl: TTL }
    }
}

impl fmt::Debug for Authorization {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authorization")
            .field("client", &self.client.is_some())
            .field("always_allow", &self.always_allow)
            .finish_non_exhaustive()
    }
}
