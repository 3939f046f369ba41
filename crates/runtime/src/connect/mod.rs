//! Clients of the Kubernetes API.
//!
//! ```text
//!   client ──► counted ──► ceiling ──► address, credentials ──► the claim is asked ──► connect and send
//! ```

mod departure;
pub mod kubeconfig;
mod throttle;
mod wire;

use std::sync::Arc;

use cloudberth_core::{Clock, Result};
use http::Uri;
use kube::{Client, Config};

use crate::{metrics::RestMetrics, rest::RestLayer};
pub use throttle::{Ceiling, Throttle};

/// Makes clients that share a ceiling and are counted together.
#[derive(Clone, Debug)]
pub struct Dialler<'a> {
    /// Where the server is, and who we are there.
    pub config: &'a Config,
    /// How much may be asked.
    pub ceiling: &'a Throttle,
    /// Where it is counted.
    pub metrics: &'a RestMetrics,
}

impl Dialler<'_> {
    /// A client with this user agent.
    pub fn client(&self, name: &str, clock: &Arc<dyn Clock>) -> Result<Client> {
        let counted = RestLayer::new(self.metrics, host(&self.config.cluster_url), name, Arc::clone(clock))?;
        Ok(wire::builder(self.config)?.with_layer(self.ceiling).with_layer(&counted).build())
    }
}

/// Host and port, for metrics. The rest may hold a password (law 10).
fn host(server: &Uri) -> &str {
    let authority = server.authority().map_or("", http::uri::Authority::as_str);
    authority.rsplit_once('@').map_or(authority, |(_, host)| host)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use cloudberth_core::call::CLAIM_RESERVE;
    use cloudberth_http::surroundings::SystemClock;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::api_error::translate;

    #[test]
    fn a_server_is_counted_by_host_and_port_only() {
        for (server, want) in [
            ("https://10.0.0.1:6443/k8s/clusters/c-1", "10.0.0.1:6443"),
            ("https://u:s3cr3t@rancher.example", "rancher.example"),
        ] {
            assert_eq!(host(&server.parse().unwrap()), want, "law 10");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_accepts_and_says_nothing_is_given_up_before_the_reserve_is_used_up() {
        let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let config = Config::new(format!("https://{}", silent.local_addr().unwrap()).parse().unwrap());
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let dialler =
            Dialler { config: &config, ceiling: &Throttle::none(), metrics: &RestMetrics::default() };
        let client = dialler.client("test", &clock).unwrap();
        let request = http::Request::get("/version").body(Vec::new()).unwrap();
        let error = client.request::<serde_json::Value>(request).await.unwrap_err();
        assert!(clock.now().0 < CLAIM_RESERVE, "L9-528: {:?}", clock.now());
        assert!(translate(&error).message().contains("no connection within 2.5s"), "{error:?}");
    }

    /// Answers every request, and tells how many there were.
    async fn failing_server() -> (Uri, Arc<AtomicUsize>) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, seen) = (listener.local_addr().unwrap(), Arc::<AtomicUsize>::default());
        let log = Arc::clone(&seen);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut head = [0; 4_096];
                while stream.read(&mut head).await.is_ok_and(|read| read > 0) {
                    log.fetch_add(1, Ordering::Relaxed);
                    let answer = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n";
                    stream.write_all(answer.as_bytes()).await.unwrap();
                }
            }
        });
        (format!("http://{address}").parse().unwrap(), seen)
    }

    #[tokio::test]
    async fn nothing_is_sent_again_behind_our_back() {
        let (address, seen) = failing_server().await;
        let config = Config::new(address);
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let dialler =
            Dialler { config: &config, ceiling: &Throttle::none(), metrics: &RestMetrics::default() };
        let client = dialler.client("test", &clock).unwrap();
        let request = http::Request::get("/version").body(Vec::new()).unwrap();
        assert!(client.request::<serde_json::Value>(request).await.is_err());
        assert_eq!(seen.load(Ordering::Relaxed), 1, "L9-30");
    }
}
