//! The connections to the API server, which notice when the other side is gone.
//!
//! This is the client's own stack with another connector, because the one that it makes has no way to ask for keep-alives,
//! and with a layer next to the wire. It would also send some requests again, and every write is ours to judge: one that
//! is sent behind our back may leave after the claim has ended. The
//! client speaks HTTP/1.1, one connection for each request that is under way. That is kept: with one HTTP/2 connection
//! for all, a connection that died silently would take the renewals of the Lease with it until a ping is missed, while a
//! request over HTTP/1.1 that is given up takes its connection along, and the next one has another.

use std::time::Duration;

use cloudberth_core::{Error, Result, call::CONNECT_LIMIT};
use cloudberth_http::in_time;
use http::Request;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use kube::{
    Config,
    client::{Body, ClientBuilder, ConfigExt},
};
use tower::{BoxError, ServiceBuilder, ServiceExt as _, util::BoxCloneService};

use super::departure::DepartureLayer;

#[derive(Clone, Copy, Debug)]
struct Signs {
    /// After so long without a word the kernel asks whether the other side is still there, …
    idle: Duration,
    /// … and again after so long, …
    interval: Duration,
    /// … so many times in all.
    probes: u32,
    /// What was sent must have arrived within this time.
    unacknowledged: Duration,
}

const SIGNS: Signs = Signs {
    idle: Duration::from_secs(15),
    interval: Duration::from_secs(10),
    probes: 3,
    unacknowledged: Duration::from_secs(30),
};

type Wire = BoxCloneService<Request<Body>, http::Response<hyper::body::Incoming>, BoxError>;

/// The way to the server that `config` names.
pub(super) fn builder(config: &Config) -> Result<ClientBuilder<Wire>> {
    if let Some(proxy) = &config.proxy_url {
        // Without the rest of it, which may hold a password.
        let host = proxy.host().unwrap_or_default();
        return Err(Error::user_input(format!(
            "the kubeconfig names a proxy ({host}); proxies to the Kubernetes API are not supported"
        )));
    }
    let refused = |why: kube::Error| Error::user_input(why.to_string());
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(CONNECT_LIMIT));
    SIGNS.ask_for(&mut tcp);
    let tls = config.rustls_https_connector_with_connector(tcp).map_err(refused)?;
    let tls = tls.map_future(|connecting| Box::pin(in_time(connecting)));
    let http = Client::builder(TokioExecutor::new()).build::<_, Body>(tls);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer().map_err(refused)?)
        .layer(config.extra_headers_layer().map_err(refused)?)
        .layer(DepartureLayer)
        .map_err(BoxError::from)
        .service(http);
    Ok(ClientBuilder::new(service.map_err(BoxError::from).boxed_clone(), config.default_namespace.clone()))
}

impl Signs {
    fn ask_for(self, tcp: &mut HttpConnector) {
        tcp.set_keepalive(Some(self.idle));
        tcp.set_keepalive_interval(Some(self.interval));
        tcp.set_keepalive_retries(Some(self.probes));
        #[cfg(any(target_os = "linux", target_os = "android", target_os = "fuchsia"))]
        tcp.set_tcp_user_timeout(Some(self.unacknowledged));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use embedded_kube as kube;
    use jiff::Timestamp;
    use sim_kit::Surroundings;

    use crate::connect::kubeconfig::from_bytes;

    #[test]
    fn a_dead_peer_is_noticed_within_45_seconds() {
        let limit = Duration::from_secs(45);
        assert!(SIGNS.idle + SIGNS.interval * SIGNS.probes <= limit, "L12-608 while nothing is sent");
        assert!(SIGNS.unacknowledged <= limit, "L12-608 while something is on its way");
    }

    #[tokio::test]
    async fn the_kernel_watches_over_a_connection_that_is_quiet() {
        let api = kube::KubeApi::new(Surroundings::new(1, || Timestamp::UNIX_EPOCH));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let tls = kube::Tls::for_loopback().unwrap();
        let served = kube::serve(&api, listener, Some(tls), Some("t0ken".to_owned())).unwrap();
        let config = from_bytes(served.kubeconfig().as_bytes()).await.unwrap();
        let client = builder(&config).unwrap().build();
        let version = Request::get("/version").body(Vec::new()).unwrap();
        let said: serde_json::Value = client.request(version).await.unwrap();
        assert!(said["gitVersion"].is_string(), "with TLS and a token: {said}");
        // The second field from the left is ours, then theirs, the state, the queues and the timer: 02 is a keep-alive.
        let Ok(table) = std::fs::read_to_string("/proc/self/net/tcp") else { return };
        let theirs = format!("0100007F:{port:04X}");
        let ours: Vec<_> = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).collect();
        let timers: Vec<_> =
            ours.iter().filter(|line| line.get(2) == Some(&theirs.as_str())).map(|line| line[5]).collect();
        assert!(
            !timers.is_empty() && timers.iter().all(|timer| timer.starts_with("02:")),
            "L12-609 {timers:?}"
        );
    }

    #[test]
    fn a_proxy_is_refused_without_its_password() {
        let mut config = Config::new("https://10.0.0.1".parse().unwrap());
        config.proxy_url = Some("http://u:s3cr3t@proxy.example:3128".parse().unwrap());
        let why = builder(&config).map(|_| ()).unwrap_err();
        assert!(
            why.message().contains("proxy.example") && !why.message().contains("s3cr3t"),
            "L10-600 {why}"
        );
    }
}
