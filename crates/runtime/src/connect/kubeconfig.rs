//! Kubeconfigs: a file that a flag names, or bytes that were found in a cluster.

use std::path::Path;

use cloudberth_core::{Error, Result};
use http::Uri;
use kube::{
    Config,
    config::{AuthInfo, Cluster, KubeConfigOptions, Kubeconfig, KubeconfigError},
};

/// The cluster that a file names.
pub async fn from_file(path: &Path) -> Result<Config> {
    let file = Kubeconfig::read_from(path).map_err(|why| Error::user_input(explain(&why)))?;
    config(file).await
}

/// The cluster that a kubeconfig names which was found in a Secret, say. It has to hold everything itself: nothing in it
/// makes this process run a program or read a file. All mistakes are reported at once, without any secret.
pub async fn from_bytes(bytes: &[u8]) -> Result<Config> {
    let text = std::str::from_utf8(bytes).map_err(|_| Error::user_input("it is not text in UTF-8"))?;
    let file = Kubeconfig::from_yaml(text).map_err(|why| Error::user_input(explain(&why)))?;
    let mistakes = mistakes(&file);
    if mistakes.is_empty() { config(file).await } else { Err(Error::user_input(mistakes.join("; "))) }
}

async fn config(file: Kubeconfig) -> Result<Config> {
    let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await;
    config.map_err(|why| Error::user_input(explain(&why)))
}

/// What is wrong with a kubeconfig. The parser quotes the lines around a mistake, and they may hold a token (law 10): of
/// its errors only the place is given.
pub fn explain(why: &KubeconfigError) -> String {
    let KubeconfigError::Parse(yaml) = why else { return why.to_string() };
    let place = yaml.location().map(|at| format!(" at line {}, column {}", at.line(), at.column()));
    format!("it is not a kubeconfig in YAML; something is wrong{}", place.unwrap_or_default())
}

/// The address of a server, if the text is one with `http` or `https`.
pub fn server(text: &str) -> Option<Uri> {
    let uri: Uri = text.parse().ok()?;
    (matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some()).then_some(uri)
}

/// Every mistake in the parts that the current context uses, by field.
fn mistakes(file: &Kubeconfig) -> Vec<String> {
    let Some(current) = file.current_context.as_ref().filter(|name| !name.is_empty()) else {
        return vec!["current-context is not set".to_owned()];
    };
    let contexts = file.contexts.iter().map(|context| (&context.name, context.context.as_ref()));
    let Some(context) = named(contexts, current) else {
        return vec![format!("current-context: there is no context {current:?}")];
    };
    let clusters = file.clusters.iter().map(|cluster| (&cluster.name, cluster.cluster.as_ref()));
    let mut mistakes = named(clusters, &context.cluster).map_or_else(
        || vec![format!("contexts[{current:?}].context.cluster: there is no cluster {:?}", context.cluster)],
        |cluster| of_cluster(cluster, &context.cluster),
    );
    if let Some(user) = context.user.as_ref().filter(|name| !name.is_empty()) {
        let users = file.auth_infos.iter().map(|entry| (&entry.name, entry.auth_info.as_ref()));
        mistakes.extend(named(users, user).map_or_else(
            || vec![format!("contexts[{current:?}].context.user: there is no user {user:?}")],
            |info| of_user(info, user),
        ));
    }
    mistakes
}

fn named<'a, T>(mut all: impl Iterator<Item = (&'a String, Option<&'a T>)>, name: &str) -> Option<&'a T> {
    all.find(|(other, _)| *other == name).and_then(|(_, entry)| entry)
}

fn of_cluster(cluster: &Cluster, name: &str) -> Vec<String> {
    let at = format!("clusters[{name:?}].cluster");
    let address = match cluster.server.as_deref() {
        None | Some("") => Some(format!("{at}.server is missing")),
        // Without the text, which may hold a password.
        Some(text) if server(text).is_none() => Some(format!("{at}.server is not an http or https address")),
        Some(_) => None,
    };
    let ca = (&cluster.certificate_authority, cluster.certificate_authority_data.is_some());
    address.into_iter().chain(file_field(&at, "certificate-authority", ca)).collect()
}

fn of_user(user: &AuthInfo, name: &str) -> Vec<String> {
    let at = format!("users[{name:?}].user");
    let files = [
        ("client-certificate", (&user.client_certificate, user.client_certificate_data.is_some())),
        ("client-key", (&user.client_key, user.client_key_data.is_some())),
        ("tokenFile", (&user.token_file, false)),
    ];
    let program = user.exec.as_ref().map(|exec| {
        let command = exec.command.as_deref().unwrap_or_default();
        format!("{at}.exec: the program {command:?} is not run; use a token or a client certificate")
    });
    let provider = user.auth_provider.as_ref().map(|provider| {
        let name = &provider.name;
        format!("{at}.auth-provider: {name:?} is not supported; use a token or a client certificate")
    });
    let files = files.into_iter().filter_map(|(field, value)| file_field(&at, field, value));
    files.chain(program).chain(provider).collect()
}

/// A file of ours is not read, let alone sent to a server that somebody else chose.
fn file_field(at: &str, field: &str, (path, has_data): (&Option<String>, bool)) -> Option<String> {
    let named = path.as_ref().is_some_and(|path| !path.is_empty());
    (named && !has_data).then(|| format!("{at}.{field} names a file; the kubeconfig has to hold its content"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "token: s3cr3t";

    fn text(cluster: &str, user: &str) -> String {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{{name: k, cluster: {{{cluster}}}}}]\n\
             contexts: [{{name: c, context: {{cluster: k, user: u}}}}]\nusers: [{{name: u, user: {{{user}}}}}, \
             {{name: other, user: {{exec: {{command: aws, apiVersion: v1}}}}}}]\n"
        )
    }

    #[tokio::test]
    async fn what_the_current_context_names_is_used() {
        let prefix = "server: 'https://rancher.example/k8s/clusters/c-1'";
        let config = from_bytes(text(prefix, TOKEN).as_bytes()).await.unwrap();
        assert_eq!(config.cluster_url.to_string(), "https://rancher.example/k8s/clusters/c-1");
        assert!(!format!("{config:?}").contains("s3cr3t"), "law 10");
    }

    #[tokio::test]
    async fn a_mistake_names_its_field_and_quotes_no_secret() {
        let server = "server: 'https://10.0.0.1'";
        let good = text(server, TOKEN);
        let data = "certificate-authority-data: '!s3cr3t'";
        let table = [
            ("nothing", String::new(), "current-context is not set"),
            ("no YAML", format!("users: [{{{TOKEN}}}"), "at line 1"),
            ("another shape", format!("users: {{{TOKEN}}}"), "at line 1"),
            ("no context", good.replace("current-context: c\n", ""), "current-context is not set"),
            (
                "a context that is not there",
                good.replace("current-context: c", "current-context: x"),
                "no context \"x\"",
            ),
            (
                "a cluster that is not there",
                good.replace("cluster: k,", "cluster: x,"),
                "context.cluster: there is no cluster \"x\"",
            ),
            (
                "a user that is not there",
                good.replace("user: u}", "user: x}"),
                "context.user: there is no user \"x\"",
            ),
            ("no server", text("", TOKEN), "clusters[\"k\"].cluster.server is missing"),
            (
                "no address",
                text("server: 'u:s3cr3t@host'", TOKEN),
                "clusters[\"k\"].cluster.server is not an http",
            ),
            ("another scheme", text("server: 'ftp://u:s3cr3t@host'", TOKEN), "cluster.server is not an http"),
            (
                "an authority in a file",
                text(&format!("{server}, certificate-authority: /etc/ca"), TOKEN),
                "certificate-authority names a file",
            ),
            (
                "an authority that cannot be read",
                text(&format!("{server}, {data}"), TOKEN),
                "certificate authority",
            ),
            (
                "a token in a file",
                text(server, "tokenFile: /var/run/secrets/token"),
                "user.tokenFile names a file",
            ),
            (
                "a certificate in a file",
                text(server, "client-certificate: /c, client-key-data: czNjcjN0"),
                "user.client-certificate names a file",
            ),
            (
                "a key in a file",
                text(server, "client-key: /k, client-certificate-data: YQ=="),
                "user.client-key names a file",
            ),
            (
                "a program",
                text(server, "exec: {command: aws, apiVersion: v1, args: [s3cr3t]}"),
                "user.exec: the program \"aws\" is not run",
            ),
            (
                "a provider",
                text(server, "auth-provider: {name: gcp, config: {access-token: s3cr3t}}"),
                "user.auth-provider: \"gcp\" is not supported",
            ),
        ];
        for (case, text, want) in table {
            let error = from_bytes(text.as_bytes()).await.unwrap_err();
            assert!(error.message().contains(want), "{case}: {error}");
            assert!(!error.message().contains("s3cr3t"), "law 10: {case}: {error}");
        }
        let both = from_bytes(text("", "tokenFile: /t").as_bytes()).await.unwrap_err();
        assert!(both.message().contains("server") && both.message().contains("tokenFile"), "law 8: {both}");
        assert!(from_bytes(b"\xff\xfe").await.unwrap_err().message().contains("UTF-8"));
    }
}
