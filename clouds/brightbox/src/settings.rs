//! The settings, from environment variables.

use std::fmt;

use cloudberth_core::{Error, Result, Secret, error::Context};
use cloudberth_http::{Base, Grant, TokenSource};

use crate::servers::Reporting;

/// The id of the API client, or of an application. Followed by `_FILE` it names a file that holds it.
pub const CLIENT: &str = "BRIGHTBOX_CLIENT";
/// Its secret, in the same two ways.
pub const SECRET: &str = "BRIGHTBOX_CLIENT_SECRET";
const USER: &str = "BRIGHTBOX_USER_NAME";
const PASSWORD: &str = "BRIGHTBOX_PASSWORD";
const ACCOUNT: &str = "BRIGHTBOX_ACCOUNT";
const URL: &str = "BRIGHTBOX_API_URL";
const INTERNAL: &str = "BRIGHTBOX_INTERNAL_ADDRESSES";
const K3S: &str = "BRIGHTBOX_K3S_PROVIDER_IDS";
const SHOW_IPS: &str = "BRIGHTBOX_PUBLISH_ADDRESSES";
const NARROW: &str = "BRIGHTBOX_NARROW_FIREWALL";
const LENIENT: &str = "BRIGHTBOX_LENIENT_SSL_PORTS";
const DEFAULT_URL: &str = "https://api.gb1.brightbox.com/";

/// How ids of applications begin: only these may be used with the password of a user.
const APPLICATION: &str = "app-";

/// What is done differently from the replaced program, where somebody asks for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch by itself")]
pub struct Switches {
    /// How the addresses of nodes are reported.
    pub reporting: Reporting,
    /// Provider ids that k3s wrote are ours.
    pub k3s: bool,
    /// The status shows addresses beside names.
    pub publish_addresses: bool,
    /// Only the Service's own load balancer reaches its node ports, and not all of the private network.
    pub narrow_firewall: bool,
    /// In ssl-ports blanks around a port mean nothing, and `*` is every port.
    pub lenient_ssl_ports: bool,
}

/// How the API is reached.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where requests go: the version of the API is part of it, and so is the account of a user.
    pub api: Base,
    /// Where tokens come from.
    pub tokens: Base,
    /// The id of the client.
    pub client: TokenSource,
    /// The secret of the client.
    pub secret: TokenSource,
    /// What tokens are asked for.
    pub grant: Grant,
    /// Nobody said which account it is, so the API is asked at the start.
    pub ask_account: bool,
    /// What is done differently.
    pub switches: Switches,
}

impl Settings {
    /// Reads the variables; an empty one counts as not set. `client` and `secret` are those that [`CLIENT`] and [`SECRET`]
    /// name. Reports every mistake at once, by the name of the variable.
    pub fn read<'a>(
        client: Result<Option<TokenSource>>,
        secret: Result<Option<TokenSource>>,
        variable: impl Fn(&str) -> Option<&'a str>,
    ) -> Result<Self, Vec<Error>> {
        let mut wrong = Vec::new();
        let client = given(client, CLIENT, "the id of an API client").map_err(|why| wrong.push(why)).ok();
        let secret = given(secret, SECRET, "its secret").map_err(|why| wrong.push(why)).ok();
        let grant = client.as_ref().map(|client| grant(&client.current(), &variable));
        let grant = grant.and_then(|grant| grant.map_err(|mistakes| wrong.extend(mistakes)).ok());
        let url = folder(variable(URL).unwrap_or(DEFAULT_URL));
        let mut base = |path: &str| {
            Base::parse(&format!("{url}{path}")).map_err(|why| wrong.push(why.context(URL))).ok()
        };
        let (api, tokens) = (base("1.0"), if url.is_empty() { None } else { Base::parse(&url).ok() });
        let mut switch =
            |name| is_on(name, variable(name)).map_err(|why| wrong.push(why)).unwrap_or_default();
        let switches = Switches {
            reporting: Reporting { internal: switch(INTERNAL) },
            k3s: switch(K3S),
            publish_addresses: switch(SHOW_IPS),
            narrow_firewall: switch(NARROW),
            lenient_ssl_ports: switch(LENIENT),
        };
        let account = variable(ACCOUNT);
        match (client, secret, grant, api, tokens) {
            (Some(client), Some(secret), Some(grant), Some(api), Some(tokens)) if wrong.is_empty() => {
                let user = matches!(grant, Grant::Password { .. });
                Ok(Self {
                    api: match account {
                        // An API client belongs to one account, so it does not say which.
                        Some(account) if user => api.query("account_id", account),
                        _ => api,
                    },
                    tokens,
                    client,
                    secret,
                    grant,
                    ask_account: account.is_none(),
                    switches,
                })
            }
            _ => Err(wrong),
        }
    }
}

/// With as much of the credential as may be shown: ids are no secret.
impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let who = match &self.grant {
            Grant::ClientCredentials => "API client".to_owned(),
            Grant::Password { user, .. } => format!("user {user} by application"),
        };
        write!(f, "Brightbox at {}, {who} {}", self.api, self.client.current().expose())
    }
}

fn given(token: Result<Option<TokenSource>>, name: &str, what: &str) -> Result<TokenSource> {
    let missing = || Error::user_input(format!("{name} is not set; set it, or {name}_FILE, to {what}"));
    token?.ok_or_else(missing)
}

/// What tokens are asked for. A user's password goes with an application, and an API client with nothing else.
fn grant<'a>(client: &Secret, variable: &impl Fn(&str) -> Option<&'a str>) -> Result<Grant, Vec<Error>> {
    let (user, password) = (variable(USER), variable(PASSWORD));
    if !client.expose().starts_with(APPLICATION) {
        if user.is_some() || password.is_some() {
            let text = format!(
                "{USER} and {PASSWORD} cannot be combined with an API client; remove them, or set {CLIENT} to an \
                 application ({APPLICATION}…)"
            );
            return Err(vec![Error::user_input(text)]);
        }
        return Ok(Grant::ClientCredentials);
    }
    let missing = |name: &str| Error::user_input(format!("{name} is not set; an application needs it"));
    let account = variable(ACCOUNT).ok_or_else(|| missing(ACCOUNT));
    let user = user.ok_or_else(|| missing(USER));
    let password =
        password.ok_or_else(|| missing(PASSWORD)).and_then(|text| Secret::new(text).context(PASSWORD));
    match (account, user, password) {
        (Ok(_), Ok(user), Ok(password)) => Ok(Grant::Password { user: user.to_owned(), password }),
        (account, user, password) => {
            Err([account.err(), user.err(), password.err()].into_iter().flatten().collect())
        }
    }
}

/// The part of a URL that a relative link is added to: all up to the last slash of the path.
fn folder(url: &str) -> String {
    let url = url.trim();
    let url = url.split(['?', '#']).next().unwrap_or(url);
    let start = url.find("://").map_or(0, |at| at + 3);
    match url.get(start..).and_then(|rest| rest.rfind('/')) {
        Some(slash) => url.get(..=start + slash).unwrap_or(url).to_owned(),
        None => format!("{url}/"),
    }
}

fn is_on(name: &str, text: Option<&str>) -> Result<bool> {
    match text {
        None | Some("off" | "false") => Ok(false),
        Some("auto" | "on" | "true") => Ok(true),
        Some(_) => Err(Error::user_input(format!("{name}: it is neither on nor off"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const API_CLIENT: [(&str, &str); 2] = [(CLIENT, "cli-xxxxx"), (SECRET, "s3cr3t")];
    const APP: [(&str, &str); 3] = [(CLIENT, "app-xxxxx"), (SECRET, "s3cr3t"), (ACCOUNT, "acc-9t4wz")];

    fn read(variables: &[(&str, &str)]) -> Result<Settings, Vec<String>> {
        let get = |name: &str| {
            variables.iter().find(|(key, value)| *key == name && !value.is_empty()).map(|(_, value)| *value)
        };
        let token = |name| get(name).map(|text| Secret::new(text).map(TokenSource::fixed)).transpose();
        Settings::read(token(CLIENT), token(SECRET), get)
            .map_err(|wrong| wrong.iter().map(|why| why.message().to_owned()).collect())
    }

    fn with(
        before: &[(&'static str, &'static str)],
        more: &[(&'static str, &'static str)],
    ) -> Vec<(&'static str, &'static str)> {
        [before, more].concat()
    }

    #[test]
    fn mistakes_name_their_variables() {
        let (user, password) = ((USER, "me@example.org"), (PASSWORD, "pa55"));
        let table = [
            ("BB-1 BB-8 nothing is set", vec![], vec![CLIENT, SECRET]),
            ("BB-2 an API client with a user", with(&API_CLIENT, &[user]), vec![USER]),
            ("BB-3 and a password", with(&API_CLIENT, &[user, password]), vec![USER]),
            ("BB-4 a password alone", with(&API_CLIENT, &[password]), vec![USER]),
            ("BB-5 an empty password", with(&APP, &[user, (PASSWORD, "")]), vec![PASSWORD]),
            ("BB-11 an empty client", vec![(CLIENT, ""), (SECRET, "s3cr3t")], vec![CLIENT]),
            ("an application without an account", with(&APP[..2], &[user, password]), vec![ACCOUNT]),
            ("an application alone", with(&APP[..2], &[]), vec![ACCOUNT, USER, PASSWORD]),
            ("no scheme", with(&API_CLIENT, &[(URL, "api.gb1.brightbox.com")]), vec![URL]),
            ("two at once", with(&API_CLIENT, &[user, (URL, "ftp://h/")]), vec![USER, URL]),
            ("a switch", with(&API_CLIENT, &[(K3S, "maybe")]), vec![K3S]),
            (
                "three",
                with(&API_CLIENT, &[(NARROW, "1"), (LENIENT, "yes"), (INTERNAL, "?")]),
                vec![INTERNAL, NARROW, LENIENT],
            ),
        ];
        for (case, variables, names) in table {
            let wrong = read(&variables).unwrap_err();
            assert_eq!(wrong.len(), names.len(), "{case}: {wrong:?}");
            for (said, name) in wrong.iter().zip(names) {
                assert!(said.starts_with(name), "{case}: {said}");
                assert!(!said.contains("s3cr3t") && !said.contains("pa55"), "L10-1601 {case}: {said}");
            }
        }
    }

    #[test]
    fn an_api_client_says_no_account_and_a_user_does() {
        let settings = read(&API_CLIENT).unwrap();
        assert!(matches!(settings.grant, Grant::ClientCredentials) && settings.ask_account, "BB-10");
        let settings = read(&with(&API_CLIENT, &[(ACCOUNT, "acc-9t4wz")])).unwrap();
        assert!(!settings.ask_account, "BB-9");
        assert!(!format!("{:?}", settings.api).contains("acc-9t4wz"), "BB-13 an API client has one account");
        let settings = read(&with(&APP, &[(USER, "me@example.org"), (PASSWORD, "pa55")])).unwrap();
        let Grant::Password { user, .. } = &settings.grant else { panic!("BB-6 {:?}", settings.grant) };
        assert_eq!(user, "me@example.org", "BB-6");
        assert!(format!("{:?}", settings.api).contains("acc-9t4wz"), "BB-13");
        assert!(!format!("{:?}", settings.tokens).contains("acc-9t4wz"), "BB-13 not for tokens");
        let shown = format!("{settings} {settings:?}");
        assert!(!shown.contains("s3cr3t") && !shown.contains("pa55"), "L10-1602 {shown}");
    }

    type Turn = fn(&mut Switches);

    #[test]
    fn switches_are_off_until_somebody_turns_them_on() {
        let off = read(&API_CLIENT).unwrap().switches;
        assert_eq!(off, Switches::default());
        let internal = |switches: &mut Switches| switches.reporting.internal = true;
        let table: [(&str, &str, Turn); 8] = [
            (INTERNAL, "auto", internal),
            (INTERNAL, "on", internal),
            (INTERNAL, "off", |_| {}),
            (K3S, "on", |switches| switches.k3s = true),
            (SHOW_IPS, "true", |switches| switches.publish_addresses = true),
            (NARROW, "on", |switches| switches.narrow_firewall = true),
            (NARROW, "false", |_| {}),
            (LENIENT, "on", |switches| switches.lenient_ssl_ports = true),
        ];
        for (name, value, turn) in table {
            let mut want = off;
            turn(&mut want);
            assert_eq!(read(&with(&API_CLIENT, &[(name, value)])).unwrap().switches, want, "{name} {value}");
        }
    }

    #[test]
    fn the_url_is_resolved_like_a_link() {
        let table = [
            ("BB-158 the default", None, "https://api.gb1.brightbox.com"),
            ("without a slash", Some("https://api.gb1.brightbox.com"), "https://api.gb1.brightbox.com"),
            ("BB-12 a folder", Some("https://h/p/"), "https://h/p"),
            ("a file is replaced", Some("https://h/p"), "https://h"),
            ("a query is dropped", Some("https://h/p/?account_id=x"), "https://h/p"),
            ("blanks", Some(" http://127.0.0.1:8080/ "), "http://127.0.0.1:8080"),
        ];
        for (case, url, want) in table {
            let more: Vec<_> = url.map(|url| (URL, url)).into_iter().collect();
            let settings = read(&with(&API_CLIENT, &more)).unwrap();
            let shown = (settings.api.to_string(), settings.tokens.to_string());
            assert_eq!(shown, (format!("{want}/1.0"), want.to_owned()), "{case}");
        }
    }
}
