//! Where the API server is, as the flags say it.

use std::path::PathBuf;

use cloudberth_core::{Error, Result};
use cloudberth_runtime::connect::kubeconfig::{explain, from_file, server};
use http::Uri;
use kube::{Config, config::KubeConfigOptions};

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
        Some(path) => from_file(path).await.map_err(|why| {
            Error::user_input(format!("--kubeconfig {}: {}", path.display(), why.message()))
        })?,
        None if address.master.is_some() => Config::new(Uri::default()),
        None => match Config::incluster() {
            Ok(config) => config,
            Err(inside) => Config::from_kubeconfig(&KubeConfigOptions::default()).await.map_err(|outside| {
                Error::user_input(format!(
                    "no way to a Kubernetes API is known: not inside a cluster ({inside}), and no kubeconfig \
                     ({}); set --kubeconfig",
                    explain(&outside)
                ))
            })?,
        },
    };
    if let Some(master) = &address.master {
        config.cluster_url = uri(master)?;
    }
    Ok(config)
}

fn uri(master: &str) -> Result<Uri> {
    let with_scheme = if master.contains("://") { master.to_owned() } else { format!("http://{master}") };
    server(&with_scheme)
        .ok_or_else(|| Error::user_input(format!("--master: {master:?} is not the address of a server")))
}

#[cfg(test)]
mod tests {
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
