//! At the door: every request passes here before any page is looked for.

use std::{sync::Arc, time::Duration};

use cloudberth_core::{Clock, Random};
use http::{HeaderMap, request::Parts};
use rustls::pki_types::CertificateDer;

use super::{
    AlwaysAllow, Authentication, Authorization,
    access::{AccessRequest, Ruling, granted, question, refusal},
    headers::bearer,
    identity::{Identity, Proof, Who, unite},
    keeper::Keeper,
    reviews::Reviewer,
};
use crate::{
    error::Result,
    metrics::{Metrics, Review},
    room::Peer,
    tls::unix_time,
};

/// Why somebody is not let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Denied {
    /// Something was presented that proves nothing.
    Unauthorized,
    /// Known, but not allowed.
    Forbidden(String),
    /// It could not be found out.
    Failed(String),
}

/// Knows who asks, and whether they may.
#[derive(Debug)]
pub struct Guard {
    keeper: Keeper,
    tokens: Option<Reviewer<Proof>>,
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
    /// Reads what is needed to begin; fails where the flags say that it must.
    pub async fn open(
        authentication: &Authentication,
        authorization: &Authorization,
        clock: Arc<dyn Clock>,
        random: Arc<Random>,
        metrics: Metrics,
    ) -> Result<Self> {
        let keeper = Keeper::open(authentication, Arc::clone(&random)).await?;
        let tokens = authentication.client.clone().map(|client| {
            Reviewer::new(client, Review::Token, Arc::clone(&clock), Arc::clone(&random), metrics.clone())
        });
        let access = authorization.client.clone().map(|client| {
            Reviewer::new(client, Review::Access, Arc::clone(&clock), Arc::clone(&random), metrics.clone())
        });
        Ok(Self {
            keeper,
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

    /// Follows changes of the trusted authorities; files are looked at every so often. Never ends where there is
    /// something to follow.
    pub(crate) async fn keep(&self, every: Duration) {
        self.keeper.keep(every).await;
    }

    /// Lets a request in, or says why not.
    pub(crate) async fn admit(
        &self,
        request: &Parts,
        chain: &[CertificateDer<'_>],
        peer: Peer,
    ) -> Result<Identity, Denied> {
        let began = self.clock.0.now();
        let who = self.identify(&request.headers, chain, peer).await;
        let took = self.clock.0.now().since(began);
        let identity = match who {
            Who::Known(identity) => identity,
            Who::Anonymous => Identity::anonymous(),
            Who::Refused(why) => {
                self.metrics.authenticated("error", None, took);
                tracing::info!(path = request.uri.path(), why = why.join("; "), "a request proves nothing");
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

    async fn identify(&self, headers: &HeaderMap, chain: &[CertificateDer<'_>], peer: Peer) -> Who {
        let trust = self.keeper.current();
        let now = unix_time(&*self.clock.0);
        let proofs = [trust.front_proxy(chain, headers, now), trust.certificate(chain, now)];
        // Nobody is asked about a token that is not needed.
        let settled = proofs.iter().any(|proof| matches!(proof, Proof::Holds(_)));
        let token = match (&self.tokens, bearer(headers)) {
            (Some(reviewer), Some(token)) if !settled => reviewer.whose(peer, &token, self.token_ttl).await,
            _ => Proof::Nothing,
        };
        unite(proofs.into_iter().chain([token]))
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
