//! The metrics of the port.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use prometheus_client::{
    encoding::{EncodeMetric, MetricEncoder},
    metrics::{
        MetricType, TypedMetric,
        counter::Counter,
        family::Family,
        histogram::{Histogram, exponential_buckets},
    },
    registry::Registry,
};

type Label = [(&'static str, String); 1];
type Histograms = Family<Label, Histogram, fn() -> Histogram>;

/// A counter whose name does not end in `_total`, because dashboards know it without.
#[derive(Debug, Default)]
pub(crate) struct BareCounter(AtomicU64);

impl BareCounter {
    pub(crate) fn inc(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl TypedMetric for BareCounter {
    const TYPE: MetricType = MetricType::Counter;
}

impl EncodeMetric for BareCounter {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> std::fmt::Result {
        encoder.encode_gauge(&i64::try_from(self.0.load(Ordering::Relaxed)).unwrap_or(i64::MAX))
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Review {
    Token,
    Access,
}

/// The metrics of the port; clones share them.
#[derive(Clone, Debug)]
pub struct Metrics {
    token_requests: Family<Label, Counter>,
    token_seconds: Histograms,
    access_requests: Family<Label, Counter>,
    access_seconds: Histograms,
    users: Family<Label, BareCounter>,
    authentications: Family<Label, BareCounter>,
    authentication_seconds: Histograms,
    authorizations: Family<Label, Counter>,
    authorization_seconds: Histograms,
    evictions: Counter,
}

fn review_buckets() -> Histogram {
    Histogram::new([0.25, 0.5, 0.7, 1.0, 1.5, 3.0, 5.0, 10.0])
}

fn attempt_buckets() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 15))
}

impl Metrics {
    /// Adds the metrics to a registry.
    pub fn register(registry: &mut Registry) -> Self {
        let family = |constructor| Histograms::new_with_constructor(constructor);
        let metrics = Self {
            token_requests: Family::default(),
            token_seconds: family(review_buckets),
            access_requests: Family::default(),
            access_seconds: family(review_buckets),
            users: Family::default(),
            authentications: Family::default(),
            authentication_seconds: family(attempt_buckets),
            authorizations: Family::default(),
            authorization_seconds: family(attempt_buckets),
            evictions: Counter::default(),
        };
        let m = metrics.clone();
        let help = "Token reviews asked for, by status code";
        registry.register("apiserver_delegated_authn_request", help, m.token_requests);
        let help = "How long token reviews took, by status code";
        registry.register("apiserver_delegated_authn_request_duration_seconds", help, m.token_seconds);
        let help = "Access reviews asked for, by status code";
        registry.register("apiserver_delegated_authz_request", help, m.access_requests);
        let help = "How long access reviews took, by status code";
        registry.register("apiserver_delegated_authz_request_duration_seconds", help, m.access_seconds);
        registry.register("authenticated_user_requests", "Requests of authenticated users", m.users);
        let help = "Requests, by what their proof came to";
        registry.register("authentication_attempts", help, m.authentications);
        let help = "How long it took to know who asks";
        registry.register("authentication_duration_seconds", help, m.authentication_seconds);
        registry.register("authorization_attempts", "Requests, by what the decision was", m.authorizations);
        let help = "How long it took to know whether they may";
        registry.register("authorization_duration_seconds", help, m.authorization_seconds);
        let help = "Connections to the HTTPS port that were closed to let others in";
        registry.register("cloudberth_port_evicted_connections", help, m.evictions);
        metrics
    }

    pub(crate) fn reviewed(&self, which: Review, code: Option<u16>, took: Duration) {
        let code = [("code", code.map_or_else(|| "<error>".to_owned(), |code| code.to_string()))];
        let (requests, seconds) = match which {
            Review::Token => (&self.token_requests, &self.token_seconds),
            Review::Access => (&self.access_requests, &self.access_seconds),
        };
        requests.get_or_create(&code).inc();
        seconds.get_or_create(&code).observe(took.as_secs_f64());
    }

    /// `user` is set if the caller was authenticated.
    pub(crate) fn authenticated(&self, result: &str, user: Option<&str>, took: Duration) {
        let label = [("result", result.to_owned())];
        self.authentications.get_or_create(&label).inc();
        self.authentication_seconds.get_or_create(&label).observe(took.as_secs_f64());
        if let Some(user) = user {
            self.users.get_or_create(&[("username", shown_user(user).to_owned())]).inc();
        }
    }

    pub(crate) fn authorized(&self, result: &str, took: Duration) {
        let label = [("result", result.to_owned())];
        self.authorizations.get_or_create(&label).inc();
        self.authorization_seconds.get_or_create(&label).observe(took.as_secs_f64());
    }

    pub(crate) fn evicted(&self) {
        self.evictions.inc();
    }
}

/// A label may have few values, so only system users are named.
fn shown_user(name: &str) -> &str {
    match name {
        "admin" | "client" | "kube_proxy" | "kubelet" | "system:serviceaccount:kube-system:default" => name,
        other if other.contains('@') => "email_id",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_the_names_that_dashboards_know() {
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry);
        metrics.reviewed(Review::Token, Some(201), Duration::from_millis(600));
        metrics.reviewed(Review::Access, None, Duration::ZERO);
        metrics.authenticated("success", Some("bob@example.org"), Duration::from_millis(3));
        metrics.authorized("allowed", Duration::ZERO);
        metrics.evicted();
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        for line in [
            "apiserver_delegated_authn_request_total{code=\"201\"} 1",
            "apiserver_delegated_authn_request_duration_seconds_bucket{le=\"0.5\",code=\"201\"} 0",
            "apiserver_delegated_authn_request_duration_seconds_bucket{le=\"0.7\",code=\"201\"} 1",
            "apiserver_delegated_authz_request_total{code=\"<error>\"} 1",
            "# TYPE authenticated_user_requests counter",
            "authenticated_user_requests{username=\"email_id\"} 1",
            "authentication_attempts{result=\"success\"} 1",
            "authentication_duration_seconds_bucket{le=\"0.002\",result=\"success\"} 0",
            "authentication_duration_seconds_bucket{le=\"0.004\",result=\"success\"} 1",
            "authentication_duration_seconds_bucket{le=\"16.384\",result=\"success\"} 1",
            "authorization_attempts_total{result=\"allowed\"} 1",
            "authorization_duration_seconds_count{result=\"allowed\"} 1",
            "cloudberth_port_evicted_connections_total 1",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} in\n{text}");
        }
    }

    #[test]
    fn users_are_few_in_a_label() {
        let shown = ["kubelet", "a@b", "system:serviceaccount:monitoring:prometheus"].map(shown_user);
        assert_eq!(shown, ["kubelet", "email_id", "other"]);
    }
}
