//! The settings: flags first, then environment variables, then the file of `--cloud-config`, then defaults.

mod file;

pub use file::FileSettings;

use std::{fmt, net::IpAddr};

use cloudberth_core::{Error, Result, route::ClusterCidrs};
use cloudberth_http::{Base, Env, GivenFlags, TokenSource};

use crate::{annotations, id::parse_number};

/// The variables that hold the token, the strongest first: that of the seed, that of the program of today, and that of
/// another controller. Each name followed by `_FILE` names a file that holds it.
pub const TOKENS: [&str; 3] = ["BINARYLANE_ACCESS_TOKEN", "BINARYLANE_API_TOKEN", "BL_API_TOKEN"];

const URLS: [&str; 2] = ["BINARYLANE_API_URL", "BINARYLANE_API_ENDPOINT"];
const REGION: &str = "BINARYLANE_REGION";
const VPC: &str = "BINARYLANE_VPC_ID";
const DEFAULT_URL: &str = "https://api.binarylane.com.au/v2";
/// What generated names begin with, here and in the program that is replaced.
pub(crate) const PREFIX: &str = "k8s";

/// What cluster, cloud and user have said about how this cloud is worked with.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where requests go; `/v2` is part of it.
    pub base: Base,
    /// The credential.
    pub token: TokenSource,
    /// Where new load balancers go if the Service does not say; `None` is everywhere.
    pub region: Option<String>,
    /// Only servers in this VPC stand behind load balancers, and its routes are looked after.
    pub vpc: Option<i64>,
    /// What the names of new load balancers begin with.
    pub name_prefix: String,
    /// Where health checks go if the Service does not say.
    pub health_check_path: String,
    /// How servers become instances.
    pub nodes: NodeSettings,
    /// The networks whose routes are looked after; `None` where routes are not.
    pub routes: Option<ClusterCidrs>,
    /// The name of the cluster, which marks the routes that are ours.
    pub cluster: String,
}

/// How servers become instances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeSettings {
    /// Private addresses count even if the server is in no VPC, where they do not work.
    pub include_private_without_vpc: bool,
    /// A server that was cancelled and switched off does not exist.
    pub cancelled_is_gone: bool,
    /// Servers that are listed as running while their nodes are not Ready are asked whether they run.
    pub ask_whether_running: bool,
}

/// What settings are made from.
#[derive(Debug)]
pub struct Sources<'a> {
    /// The token that the variables of [`TOKENS`] or the file give.
    pub token: Result<Option<TokenSource>>,
    /// The environment.
    pub env: &'a Env,
    /// The file of `--cloud-config`; empty if there is none.
    pub file: FileSettings,
    /// The flags that somebody gave.
    pub given: &'a GivenFlags,
    /// The name of the cluster.
    pub cluster: &'a str,
}

impl Settings {
    /// Reads the settings, and reports every mistake at once.
    pub fn read(sources: Sources<'_>) -> Result<Self, Vec<Error>> {
        let Sources { token, env, file, given, cluster } = sources;
        let mut wrong = Vec::new();
        let missing = || {
            let [first, second, _] = TOKENS;
            let text = format!("there is no API token; set {first} or {second}, or one of them with _FILE");
            Error::user_input(text)
        };
        let token = token.and_then(|token| token.ok_or_else(missing)).map_err(|why| wrong.push(why));
        let (name, url) = env.first(&URLS).unwrap_or_else(|| match &file.api_url {
            Some(url) => ("apiUrl", url),
            None => ("apiUrl", DEFAULT_URL),
        });
        let base = base(url, file.allow_insecure_api_url).map_err(|why| wrong.push(why.context(name)));
        let vpc = env.get(VPC).map(|text| vpc(text.trim())).transpose().map_err(|why| wrong.push(why));
        let routes = routes(given, file.routes).map_err(|why| wrong.push(why));
        let region = env.get(REGION).map(str::to_owned).or(file.region);
        match (token, base, vpc, routes) {
            (Ok(token), Ok(base), Ok(vpc), Ok(routes)) => Ok(Self {
                base,
                token,
                region: region.as_deref().and_then(annotations::place),
                vpc: vpc.or(file.vpc),
                name_prefix: file.name_prefix.unwrap_or_else(|| PREFIX.to_owned()),
                health_check_path: file.health_check_path.unwrap_or_else(|| "/".to_owned()),
                nodes: file.nodes,
                routes,
                cluster: cluster.to_owned(),
            }),
            _ => Err(wrong),
        }
    }
}

/// With as much of the token as may be shown.
impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let region = self.region.as_deref().unwrap_or("anycast");
        let routes = if self.routes.is_some() { "looked after" } else { "not looked after" };
        write!(f, "BinaryLane at {}, token {}, region {region}", self.base, self.token.masked())?;
        if let Some(vpc) = self.vpc {
            write!(f, ", VPC {vpc}")?;
        }
        write!(f, ", routes {routes}")
    }
}

fn vpc(text: &str) -> Result<i64> {
    let wrong =
        || Error::user_input(format!("{VPC}: {text:?} is not the id of a VPC, which is a positive number"));
    parse_number(text).ok_or_else(wrong)
}

/// The base URL: without slashes at its end, and with the version of the API. What is not encrypted may only go to this
/// host, unless somebody says otherwise: the token can cancel servers.
fn base(url: &str, insecure: bool) -> Result<Base> {
    let url = url.trim();
    let url = url.split(['?', '#']).next().unwrap_or(url).trim_end_matches('/');
    let whole = if url.ends_with("/v2") { url.to_owned() } else { format!("{url}/v2") };
    let base = Base::parse(&whole)?;
    if base.is_encrypted() || insecure || is_loopback(&whole) {
        return Ok(base);
    }
    let text = "the API's URL is not encrypted and leads to another host; use https, or set \
                allowInsecureApiUrl: true in the file of --cloud-config";
    Err(Error::user_input(text))
}

fn is_loopback(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or(rest);
    let host = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((v6, _)) => v6,
        None => authority.rsplit_once(':').map_or(authority, |(host, _)| host),
    };
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// The networks whose routes are looked after. The default of `--configure-cloud-routes` does not count: manifests of the
/// replaced program pass a cluster CIDR and never had routes.
fn routes(given: &GivenFlags, file: Option<bool>) -> Result<Option<ClusterCidrs>> {
    let enabled = match given.get("configure-cloud-routes") {
        Some(flag) => flag == "true",
        None => file.unwrap_or(false),
    };
    match given.get("cluster-cidr").filter(|cidr| enabled && !cidr.trim().is_empty()) {
        Some(cidr) => ClusterCidrs::parse(cidr).map(Some),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use cloudberth_core::Secret;
    use cloudberth_http::yaml;

    use super::*;

    type Pairs<'a> = &'a [(&'a str, &'a str)];
    type Flags<'a> = &'a [(&'static str, &'a str)];

    fn token(text: &str) -> Result<Option<TokenSource>> {
        Secret::new(text).map(|secret| Some(TokenSource::fixed(secret)))
    }

    fn read(
        variables: Pairs<'_>,
        file: &str,
        flags: &[(&'static str, &str)],
    ) -> Result<Settings, Vec<String>> {
        let env = variables.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        let file = yaml::read(file, FileSettings::read).unwrap();
        let given = flags.iter().map(|&(name, value)| (name, value.to_owned())).collect();
        let sources = Sources { token: token("t0k3n"), env: &env, file, given: &given, cluster: "prod" };
        Settings::read(sources).map_err(|wrong| wrong.iter().map(|why| why.message().to_owned()).collect())
    }

    #[test]
    fn a_token_alone_suffices() {
        let settings = read(&[], "", &[]).unwrap();
        assert_eq!(settings.base.to_string(), "https://api.binarylane.com.au/v2");
        assert_eq!((settings.region, settings.vpc), (None, None), "BL-7");
        assert_eq!(settings.nodes, NodeSettings::default());
        let (prefix, path) = (settings.name_prefix.as_str(), settings.health_check_path.as_str());
        assert_eq!((prefix, path, settings.routes), ("k8s", "/", None), "BL-116 BL-153");
    }

    #[test]
    fn the_base_has_the_version_and_no_slash_at_its_end() {
        let table = [
            ("https://h", "https://h/v2"),
            ("https://h/", "https://h/v2"),
            ("https://h/v2", "https://h/v2"),
            ("https://h/v2//", "https://h/v2"),
            ("https://h/sub/", "https://h/sub/v2"),
            (" https://h/?q=1#f ", "https://h/v2"),
            ("http://127.0.0.1:8080/", "http://127.0.0.1:8080/v2"),
            ("http://localhost:8080", "http://localhost:8080/v2"),
            ("http://[::1]:8080", "http://[::1]:8080/v2"),
        ];
        for (text, want) in table {
            for name in URLS {
                let base = read(&[(name, text)], "apiUrl: https://other", &[]).unwrap().base;
                assert_eq!(base.to_string(), want, "BL-8 {name} {text}");
            }
        }
        assert_eq!(read(&[], "apiUrl: https://other", &[]).unwrap().base.to_string(), "https://other/v2");
    }

    #[test]
    fn a_token_goes_unencrypted_to_this_host_only() {
        for url in ["http://api.example.org", "http://10.0.0.1:80/v2", "http://localhost.example.org"] {
            let wrong = read(&[("BINARYLANE_API_URL", url)], "", &[]).unwrap_err();
            assert!(wrong[0].starts_with("BINARYLANE_API_URL: ") && wrong[0].contains("https"), "{wrong:?}");
            assert!(read(&[("BINARYLANE_API_URL", url)], "allowInsecureApiUrl: true", &[]).is_ok(), "{url}");
        }
    }

    #[test]
    fn variables_come_before_the_file() {
        let file = "region: mel\nvpcId: 7\nloadBalancer: {namePrefix: lb, defaultHealthCheckPath: /up}\n\
                    nodes: {includePrivateWithoutVpc: true, cancelledIsGone: true, askWhetherRunning: true}\n";
        let settings = read(&[], file, &[]).unwrap();
        assert_eq!((settings.region.as_deref(), settings.vpc), (Some("mel"), Some(7)));
        let (prefix, path) = (settings.name_prefix.as_str(), settings.health_check_path.as_str());
        assert_eq!((prefix, path), ("lb", "/up"));
        let all = NodeSettings {
            include_private_without_vpc: true,
            cancelled_is_gone: true,
            ask_whether_running: true,
        };
        assert_eq!(settings.nodes, all);
        let settings = read(&[(REGION, "syd"), (VPC, " 4021\n")], file, &[]).unwrap();
        assert_eq!((settings.region.as_deref(), settings.vpc), (Some("syd"), Some(4021)));
        assert_eq!(read(&[(REGION, "anycast")], file, &[]).unwrap().region, None);
    }

    #[test]
    fn a_vpc_is_a_positive_number() {
        for text in ["abc", "0", "-1", "1.5", "9223372036854775808"] {
            let wrong = read(&[(VPC, text)], "", &[]).unwrap_err();
            assert!(wrong[0].contains(VPC) && wrong[0].contains(text), "BL-6 {wrong:?}");
        }
    }

    #[test]
    fn routes_are_turned_on_by_somebody_and_not_by_a_default() {
        let cidr = ("cluster-cidr", "10.244.0.0/16");
        let (on, off) = (("configure-cloud-routes", "true"), ("configure-cloud-routes", "false"));
        let table: [(&str, Flags<'_>, &str, bool); 8] = [
            ("BL-144 neither", &[], "", false),
            ("BL-144 only a CIDR", &[cidr], "", false),
            ("BL-144 the flag", &[cidr, on], "", true),
            ("BL-116 the flag without a CIDR", &[on], "", false),
            ("BL-116 an empty CIDR", &[("cluster-cidr", " "), on], "", false),
            ("the file", &[cidr], "routes: {enabled: true}", true),
            ("the flag against the file", &[cidr, off], "routes: {enabled: true}", false),
            ("the file says no", &[cidr], "routes: {enabled: false}", false),
        ];
        for (case, flags, file, want) in table {
            assert_eq!(read(&[], file, flags).unwrap().routes.is_some(), want, "{case}");
        }
        let wrong = read(&[], "", &[("cluster-cidr", "x"), on]).unwrap_err();
        assert!(wrong[0].starts_with("--cluster-cidr"), "{wrong:?}");
    }

    #[test]
    fn all_mistakes_are_reported_at_once_and_no_token_is_shown() {
        let env = [("BINARYLANE_API_URL", "s3cr3t"), (VPC, "many")];
        let env = env.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        let (file, given) = (FileSettings::default(), GivenFlags::default());
        let sources = Sources { token: Ok(None), env: &env, file, given: &given, cluster: "prod" };
        let wrong = Settings::read(sources).unwrap_err();
        let starts = ["there is no API token", "BINARYLANE_API_URL", VPC];
        assert_eq!(wrong.len(), 3, "{wrong:?}");
        for (said, start) in wrong.iter().zip(starts) {
            let text = said.message();
            assert!(text.starts_with(start) && !text.contains("s3cr3t"), "BL-4 L10-1600 {text}");
        }
        assert!(TOKENS[..2].iter().all(|name| wrong[0].message().contains(name)), "BL-4 {}", wrong[0]);
        let settings = read(&[], "", &[]).unwrap();
        assert!(!settings.to_string().contains("t0k3n"), "BL-132 {settings}");
        assert!(!format!("{settings:?}").contains("t0k3n"), "BL-132");
    }
}
