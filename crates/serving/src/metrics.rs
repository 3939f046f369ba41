//! The metrics of the port.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use cloudberth_core::metric::Metric;
use jiff::Timestamp;
use prometheus_client::{
    encoding::{EncodeMetric, MetricEncoder},
    metrics::{
        MetricType, TypedMetric,
        family::Family,
        histogram::{Histogram, exponential_buckets},
    },
    registry::{self, Registry},
};

cloudberth_core::metrics! {
    /// Every metric of the port.
    pub TABLE;

    TOKEN_REVIEWS = Unmarked Counter "apiserver_delegated_authn_request_total" ["code"],
        "Token reviews asked for, by status code";
    TOKEN_REVIEW_SECONDS = Unmarked Histogram "apiserver_delegated_authn_request_duration_seconds" ["code"],
        "How long token reviews took, by status code";
    ACCESS_REVIEWS = Unmarked Counter "apiserver_delegated_authz_request_total" ["code"],
        "Access reviews asked for, by status code";
    ACCESS_REVIEW_SECONDS = Unmarked Histogram "apiserver_delegated_authz_request_duration_seconds" ["code"],
        "How long access reviews took, by status code";
    USER_REQUESTS = Unmarked Counter "authenticated_user_requests" ["username"],
        "Requests of authenticated users";
    AUTHENTICATIONS = Unmarked Counter "authentication_attempts" ["result"],
        "Requests, by what their proof came to";
    AUTHENTICATION_SECONDS = Unmarked Histogram "authentication_duration_seconds" ["result"],
        "How long it took to know who asks";
    AUTHORIZATIONS = Unmarked Counter "authorization_attempts_total" ["result"],
        "Requests, by what the decision was";
    AUTHORIZATION_SECONDS = Unmarked Histogram "authorization_duration_seconds" ["result"],
        "How long it took to know whether they may";
    EVICTIONS = Unmarked Counter "cloudberth_port_evicted_connections_total" [],
        "Connections to the HTTPS port that were closed to let others in";
    CERTIFICATE_ENDS = Unmarked Gauge "cloudberth_serving_certificate_expiry_timestamp_seconds" [],
        "When the first of the certificates of the HTTPS port ends, in seconds since 1970";
}

/// Registers the series of a metric.
pub(crate) fn publish(registry: &mut Registry, metric: &Metric, series: impl registry::Metric) {
    registry.register(metric.name, metric.help(), series);
}

type Label = [(&'static str, String); 1];
type Histograms = Family<Label, Histogram, fn() -> Histogram>;

/// A counter whose samples are called what its `# TYPE` line says, with or without `_total`: in the plain text format the
/// two must be the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct BareCounter(Arc<AtomicU64>);

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

/// A moment, in seconds since 1970. It is not printed before it is known.
#[derive(Clone, Debug, Default)]
struct Moment(Arc<AtomicI64>);

impl EncodeMetric for Moment {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> std::fmt::Result {
        encoder.encode_gauge(&self.0.load(Ordering::Relaxed))
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Gauge
    }

    fn is_empty(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
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
    token_requests: Family<Label, BareCounter>,
    token_seconds: Histograms,
    access_requests: Family<Label, BareCounter>,
    access_seconds: Histograms,
    users: Family<Label, BareCounter>,
    authentications: Family<Label, BareCounter>,
    authentication_seconds: Histograms,
    authorizations: Family<Label, BareCounter>,
    authorization_seconds: Histograms,
    evictions: BareCounter,
    certificate_ends: Moment,
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
            evictions: BareCounter::default(),
            certificate_ends: Moment::default(),
        };
        let m = metrics.clone();
        publish(registry, &TOKEN_REVIEWS, m.token_requests);
        publish(registry, &TOKEN_REVIEW_SECONDS, m.token_seconds);
        publish(registry, &ACCESS_REVIEWS, m.access_requests);
        publish(registry, &ACCESS_REVIEW_SECONDS, m.access_seconds);
        publish(registry, &USER_REQUESTS, m.users);
        publish(registry, &AUTHENTICATIONS, m.authentications);
        publish(registry, &AUTHENTICATION_SECONDS, m.authentication_seconds);
        publish(registry, &AUTHORIZATIONS, m.authorizations);
        publish(registry, &AUTHORIZATION_SECONDS, m.authorization_seconds);
        publish(registry, &EVICTIONS, m.evictions);
        publish(registry, &CERTIFICATE_ENDS, m.certificate_ends);
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

    /// When the first certificate ends, if any of them says so.
    pub(crate) fn certificate_ends(&self, when: Option<Timestamp>) {
        self.certificate_ends.0.store(when.map_or(0, Timestamp::as_second), Ordering::Relaxed);
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
        assert!(!text.contains(CERTIFICATE_ENDS.name), "not known yet:\n{text}");
        metrics.certificate_ends(Timestamp::from_second(1_900_000_000).ok());
        text.clear();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        for line in [
            "# TYPE apiserver_delegated_authn_request_total counter",
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
            "cloudberth_serving_certificate_expiry_timestamp_seconds 1900000000",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} in\n{text}");
        }
        for metric in TABLE {
            assert!(text.lines().any(|line| line.starts_with(metric.name)), "{} in\n{text}", metric.name);
        }
    }

    #[test]
    fn users_are_few_in_a_label() {
        let shown = ["kubelet", "a@b", "system:serviceaccount:monitoring:prometheus"].map(shown_user);
        assert_eq!(shown, ["kubelet", "email_id", "other"]);
    }
}
