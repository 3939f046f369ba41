//! Authentication and authorization of every request, before any page is looked up.

use std::{sync::Arc, time::Duration};

use cloudberth_core::{Clock, Random};
use http::{HeaderMap, request::Parts};
use rustls::pki_types::CertificateDer;

use super::{
    AlwaysAllow, Authentication, Authorization,
    access::{AccessRequest, Ruling, granted, question, refusal},
    headers::bearer,
    identity::{AuthResult, Caller, Identity, combine},
    reviews::Reviewer,
    trust_store::TrustStore,
};
use crate::{
    error::Result,
    limiter::Peer,
    metrics::{Metrics, Review},
    tls::unix_time,
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Denied {
    /// A credential was presented and none was accepted.
    Unauthorized,
    /// The caller is known and not allowed.
    Forbidden(String),
    Failed(String),
}

/// Authenticates and authorizes every request.
#[derive(Debug)]
pub struct Guard {
    trust_store: TrustStore,
    tokens: Option<Reviewer<AuthResult>>,
    token_ttl: Duration,
    access: Option<Reviewer<Ruling>>,
    always_allow: AlwaysAllow,
    allowed_ttl: Duration,
    refused_ttl: Duration,
    clock: Time,
    metrics: Metrics,
}

struct Time(Arc<dyn Clock>);

impl std::fmt::Debug for Time {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Time")
    }
}

impl Guard {
    /// Loads the trusted authorities; fails if they cannot be read and the flags do not tolerate that.
    pub async fn open(
        authentication: &Authentication,
        authorization: &Authorization,
        clock: Arc<dyn Clock>,
        random: Arc<Random>,
        metrics: Metrics,
    ) -> Result<Self> {
        let trust_store = TrustStore::open(authentication, Arc::clone(&random)).await?;
        let tokens = authentication.client.clone().map(|client| {
            Reviewer::new(client, Review::Token, Arc::clone(&clock), Arc::clone(&random), metrics.clone())
        });
        let access = authorization.client.clone().map(|client| {
            Reviewer::new(client, Review::Access, Arc::clone(&clock), Arc::clone(&random), metrics.clone())
        });
        Ok(Self {
            trust_store,
            tokens,
            token_ttl: authentication.token_ttl,
            access,
            always_allow: authorization.always_allow.clone(),
            allowed_ttl: authorization.allowed_ttl,
            refused_ttl: authorization.refused_ttl,
            clock: Time(clock),
            metrics,
        })
    }

    pub(crate) const fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Follows changes of the trusted authorities; files are checked at this interval.
    pub(crate) async fn follow(&self, every: Duration) {
        self.trust_store.follow(every).await;
    }

    /// The caller's identity if the request is allowed, else why it is denied.
    pub(crate) async fn admit(
        &self,
        request: &Parts,
        chain: &[CertificateDer<'_>],
        peer: Peer,
    ) -> Result<Identity, Denied> {
        let began = self.clock.0.now();
        let caller = self.identify(&request.headers, chain, peer).await;
        let took = self.clock.0.now().since(began);
        let identity = match caller {
            Caller::Known(identity) => identity,
            Caller::Anonymous => Identity::anonymous(),
            Caller::Refused(why) => {
                self.metrics.authenticated("error", None, took);
                tracing::info!(path = request.uri.path(), why = why.join("; "), "authentication failed");
                return Err(Denied::Unauthorized);
            }
        };
        self.metrics.authenticated("success", Some(&identity.name), took);
        let began = self.clock.0.now();
        let verb = request.method.as_str().to_ascii_lowercase();
        let request = AccessRequest { verb: &verb, path: request.uri.path() };
        let ruling = self.rule(&identity, request, peer).await;
        let took = self.clock.0.now().since(began);
        let (label, result) = match ruling {
            Ruling::Allowed => ("allowed", Ok(())),
            Ruling::NoOpinion(reason) => {
                ("no-opinion", Err(Denied::Forbidden(refusal(&identity, request, &reason))))
            }
            Ruling::Denied(reason) => {
                ("denied", Err(Denied::Forbidden(refusal(&identity, request, &reason))))
            }
            Ruling::Failed(why) => ("error", Err(Denied::Failed(why))),
        };
        self.metrics.authorized(label, took);
        result.map(|()| identity)
    }

    async fn identify(&self, headers: &HeaderMap, chain: &[CertificateDer<'_>], peer: Peer) -> Caller {
        let trust = self.trust_store.current();
        let now = unix_time(&*self.clock.0);
        let results = [trust.front_proxy(chain, headers, now), trust.certificate(chain, now)];
        // A token is not reviewed if a certificate was accepted already.
        let accepted = results.iter().any(|result| matches!(result, AuthResult::Accepted(_)));
        let token = match (&self.tokens, bearer(headers)) {
            (Some(reviewer), Some(token)) if !accepted => reviewer.whose(peer, &token, self.token_ttl).await,
            _ => AuthResult::NotPresented,
        };
        combine(results.into_iter().chain([token]))
    }

    async fn rule(&self, identity: &Identity, request: AccessRequest<'_>, peer: Peer) -> Ruling {
        if granted(identity, request, &self.always_allow) {
            return Ruling::Allowed;
        }
        match &self.access {
            Some(reviewer) => {
                reviewer.may(peer, question(identity, request), self.allowed_ttl, self.refused_ttl).await
            }
            None => Ruling::NoOpinion(String::new()),
        }
    }
}
