//! Clients of the Kubernetes API.
//!
//! ```text
//!   client ──► counted ──► ceiling ──► address, credentials ──► the claim is asked ──► connect and send
//! ```

mod departure;
mod throttle;
mod wire;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use cloudberth_core::{Clock, Error, Result};
use cloudberth_runtime::{metrics::RestMetrics, rest::RestLayer};
use http::Uri;
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig, KubeconfigError},
};
pub use throttle::{Ceiling, Throttle};

/// Where the API server is, as the flags say it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Address {
    /// `--kubeconfig`.
    pub kubeconfig: Option<PathBuf>,
    /// `--master`, which wins over the server that the file names.
    pub master: Option<String>,
}

/// Finds the API server: by the flags; with neither of them from inside the cluster, and outside of one by the file
/// that kubectl would use.
pub async fn configure(address: &Address) -> Result<Config> {
    let mut config = match &address.kubeconfig {
        Some(path) => from_file(path).await?,
        None if address.master.is_some() => Config::new(Uri::default()),
        None => match Config::incluster() {
            Ok(config) => config,
            Err(inside) => Config::from_kubeconfig(&KubeConfigOptions::default()).await.map_err(|outside| {
                Error::user_input(format!(
                    "no way to a Kubernetes API is known: not inside a cluster ({inside}), and no kubeconfig \
                     ({}); set --kubeconfig",
                    told(&outside)
                ))
            })?,
        },
    };
    if let Some(master) = &address.master {
        config.cluster_url = uri(master)?;
    }
    Ok(config)
}

async fn from_file(path: &Path) -> Result<Config> {
    let explain =
        |why: &KubeconfigError| Error::user_input(format!("--kubeconfig {}: {}", path.display(), told(why)));
    let file = Kubeconfig::read_from(path).map_err(|why| explain(&why))?;
    Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.map_err(|why| explain(&why))
}

/// The parser quotes the lines around a mistake, and in this file they may hold a token (law 10): of its errors only
/// the place is told.
fn told(why: &KubeconfigError) -> String {
    let KubeconfigError::Parse(yaml) = why else { return why.to_string() };
    let place = yaml.location().map(|at| format!(" at line {}, column {}", at.line(), at.column()));
    format!("it is not a kubeconfig in YAML; something is wrong{}", place.unwrap_or_default())
}

fn uri(master: &str) -> Result<Uri> {
    let with_scheme = if master.contains("://") { master.to_owned() } else { format!("http://{master}") };
    let parsed: std::result::Result<Uri, _> = with_scheme.parse();
    parsed
        .ok()
        .filter(|uri| matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some())
        .ok_or_else(|| Error::user_input(format!("--master: {master:?} is not the address of a server")))
}

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
        let host = self.config.cluster_url.authority().map_or("", http::uri::Authority::as_str);
        let counted = RestLayer::new(self.metrics, host, name, Arc::clone(clock))?;
        Ok(wire::builder(self.config)?.with_layer(self.ceiling).with_layer(&counted).build())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use cloudberth_core::call::CLAIM_RESERVE;
    use cloudberth_http::surroundings::SystemClock;
    use cloudberth_runtime::api_error::translate;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[test]
    fn a_master_is_an_address() {
        let table = [
            ("https://10.0.0.1:6443", Some("https://10.0.0.1:6443/")),
            ("10.0.0.1:8080", Some("http://10.0.0.1:8080/")),
            ("", None),
            ("ftp://10.0.0.1", None),
            ("not an address", None),
        ];
        for (text, want) in table {
            assert_eq!(uri(text).ok().map(|uri| uri.to_string()).as_deref(), want, "{text}");
        }
    }

    #[tokio::test]
    async fn a_file_that_cannot_be_used_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let broken = dir.path().join("broken");
        std::fs::write(&broken, "clusters: {").unwrap();
        for path in [dir.path().join("missing"), broken] {
            let address = Address { kubeconfig: Some(path.clone()), master: None };
            let error = configure(&address).await.unwrap_err();
            let want = format!("--kubeconfig {}: ", path.display());
            assert!(error.message().starts_with(&want), "{error}");
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

    #[tokio::test]
    async fn what_a_broken_file_holds_is_not_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config");
        let around = "users:\n- name: u\n  user:\n    token: s3cr3t\n    foo: [\n  bar: x\n";
        let inside = "users:\n- name: u\n  user: {token: {s3cr3t: 1}}\n";
        let instead = "users: s3cr3t\n";
        for text in [around, inside, instead] {
            std::fs::write(&path, text).unwrap();
            let address = Address { kubeconfig: Some(path.clone()), master: None };
            let error = configure(&address).await.unwrap_err();
            assert!(error.message().contains(" at line "), "{error}");
            assert!(!error.message().contains("s3cr3t"), "L10-330 {error}");
        }
    }

    #[tokio::test]
    async fn the_flag_wins_over_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config");
        let text = "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: https://10.0.0.1:6443}}]\n\
                    contexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {token: t}}]\n";
        std::fs::write(&path, text).unwrap();
        let of = async |master: Option<&str>| {
            let address = Address { kubeconfig: Some(path.clone()), master: master.map(str::to_owned) };
            configure(&address).await.unwrap()
        };
        assert_eq!(of(None).await.cluster_url.to_string(), "https://10.0.0.1:6443/");
        assert_eq!(of(Some("https://10.0.0.2")).await.cluster_url.to_string(), "https://10.0.0.2/");
    }
}
