//! What the program is asked to do, checked and typed, made from [`Flags`].
//!
//! Making options never fails: a wrong value is added to the list of mistakes, and the option has its default. So the
//! program can go on to find other mistakes, such as an unreadable kubeconfig or a missing token, and report all of them
//! at once.

#![allow(missing_docs, reason = "plain data whose names say what it is")]

mod checks;
mod clouds;
mod controllers;
mod election;
mod logging;
mod serving;
mod tls;

use std::path::PathBuf;

use cloudberth_core::{decide::selection, error::Error};

pub use checks::Notice;
pub use clouds::Clouds;
pub(crate) use clouds::NO_PROVIDER;
pub use controllers::{Controllers, Workers};
pub use election::{Election, ReadFile};
pub use logging::{LogFormat, Logging};
pub use serving::{Authentication, Authorization, CaLookup, Certificate, RequestHeader, Serving};
pub use tls::{Tls, TlsVersion};

use crate::{
    flags::Flags,
    gates::{Gate, Gates},
};
use checks::{Checks, file, some};

#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Which clouds run, and which Services each of them serves.
    pub clouds: Clouds,
    /// Which controllers run, how often and with how many workers.
    pub controllers: Controllers,
    /// How the leader is found; `None`: this replica always leads.
    pub election: Option<Election>,
    pub kube: Kube,
    /// The HTTPS server; `None`: there is none.
    pub serving: Option<Serving>,
    pub logging: Logging,
    pub gates: Gates,
    pub webhooks: Vec<String>,
    /// Say what would be done and write nothing.
    pub dry_run: bool,
    pub output: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    Text,
    Json,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Kube {
    /// The kubeconfig; `None`: the pod's own account, or what kubectl would use.
    pub kubeconfig: Option<PathBuf>,
    /// The address, instead of the kubeconfig's.
    pub master: Option<String>,
    /// The most requests in a second; `None`: as many as turn out to be right.
    pub qps: Option<f32>,
    /// The most requests beyond that at once; `None`: as many as turn out to be right.
    pub burst: Option<u32>,
    /// Whether each controller has a service account of its own.
    pub own_accounts: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// The providers that `--cloud-provider` may name.
    pub providers: &'a [&'a str],
    /// The webhooks that `--webhooks` may name.
    pub webhooks: &'a [&'a str],
}

/// Options, and what is to be said about the flags that they were made from.
#[derive(Clone, Debug)]
pub struct Made {
    /// The options. Where there are mistakes they hold defaults, and nothing may be started from them.
    pub options: Options,
    /// Every mistake, each naming the flag and the fix.
    pub mistakes: Vec<Error>,
    /// What is worth a line in the log.
    pub notices: Vec<Notice>,
}

impl Options {
    /// Makes options from flags. The one file that flags depend on, of `--leader-migration-config`, is read with
    /// `read`.
    pub fn make(flags: &Flags, known: Known<'_>, read: ReadFile<'_>) -> Made {
        let mut checks = Checks::default();
        checks.without_effect(flags);
        let gates = Gates::new(flags.feature_gates.get().0.clone());
        for gate in gates.without_effect() {
            checks.notice(&flags.feature_gates, format!("names {gate}, which has no effect here"));
        }
        let webhooks = webhooks(flags, &gates, known.webhooks, &mut checks);
        let options = Self {
            clouds: clouds::clouds(flags, known.providers, &mut checks),
            controllers: controllers::controllers(flags, &mut checks),
            election: election::election(flags, read, &mut checks),
            kube: kube(flags),
            serving: serving::serving(flags, &gates, &mut checks),
            logging: logging::logging(flags, &gates, &mut checks),
            webhooks,
            gates,
            dry_run: *flags.dry_run.get(),
            output: output(flags, &mut checks),
        };
        Made { options, mistakes: checks.mistakes, notices: checks.notices }
    }
}

fn output(flags: &Flags, checks: &mut Checks) -> Output {
    let flag = &flags.output;
    if flag.given().is_some() && !flags.dry_run.get() {
        checks.notice(flag, "has no effect without --dry-run");
    }
    match flag.get().as_str() {
        "text" => Output::Text,
        "json" => Output::Json,
        _ => {
            checks.wrong(flag, "it must be text or json");
            Output::Text
        }
    }
}

fn kube(flags: &Flags) -> Kube {
    Kube {
        kubeconfig: file(&flags.kubeconfig),
        master: some(&flags.master),
        qps: flags.kube_api_qps.given().copied().filter(|qps| *qps > 0.0 && qps.is_finite()),
        burst: flags
            .kube_api_burst
            .given()
            .and_then(|burst| u32::try_from(*burst).ok())
            .filter(|burst| *burst > 0),
        own_accounts: *flags.use_service_account_credentials.get(),
    }
}

fn webhooks(flags: &Flags, gates: &Gates, known: &[&str], checks: &mut Checks) -> Vec<String> {
    match selection::webhooks(&flags.webhooks.get().0, known) {
        Ok(on) if gates.enabled(Gate::Webhook) => on.into_iter().map(str::to_owned).collect(),
        Ok(_) => Vec::new(),
        Err(wrong) => {
            checks.mistakes.extend(wrong.into_iter().map(|error| error.context(flags.webhooks.flag())));
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{ffi::OsString, path::Path};

    use super::*;
    use crate::flags::parse;

    pub(super) const KNOWN: Known<'_> =
        Known { providers: &["binarylane", "cloudscale"], webhooks: &["a", "b"] };

    impl Made {
        pub(super) fn texts(&self) -> Vec<String> {
            self.mistakes.iter().map(ToString::to_string).collect()
        }
    }

    pub(super) fn options(args: &[&str]) -> Made {
        options_with_file(args, "", "")
    }

    pub(super) fn options_with_file(args: &[&str], path: &str, text: &str) -> Made {
        let mut flags = Flags::default();
        let mistakes = parse(&mut flags, "ccm", args.iter().map(OsString::from));
        assert_eq!(mistakes, [], "the test's own arguments");
        let read = |asked: &Path| {
            if asked == Path::new(path) { Ok(text.to_owned()) } else { Err("no such file".to_owned()) }
        };
        Options::make(&flags, KNOWN, &read)
    }

    type Limits = (Option<f32>, Option<u32>);

    #[test]
    fn limits_of_the_api_server_are_ceilings_only_if_given() {
        let kube = |args: &[&str]| {
            let kube = options(args).options.kube;
            (kube.qps, kube.burst)
        };
        let table: [(&str, &[&str], Limits); 5] = [
            ("not given", &[], (None, None)),
            ("given", &["--kube-api-qps=7.5", "--kube-api-burst=9"], (Some(7.5), Some(9))),
            (
                "the defaults, but given",
                &["--kube-api-qps=20", "--kube-api-burst=30"],
                (Some(20.0), Some(30)),
            ),
            ("no limit", &["--kube-api-qps=-1", "--kube-api-burst=-1"], (None, None)),
            ("no limit either", &["--kube-api-qps=inf", "--kube-api-burst=0"], (None, None)),
        ];
        for (case, args, want) in table {
            assert_eq!(kube(args), want, "{case}");
        }
    }

    #[test]
    fn flags_without_effect_say_so_once() {
        let made = options(&[
            "--cloud-provider=cloudscale",
            "--allow-untagged-cloud",
            "--allow-untagged-cloud=true",
            "--allocate-node-cidrs=true",
            "--node-sync-period=1s",
            "--address=127.0.0.1",
            "--webhook-bind-address=::",
            "--feature-gates=WatchList=false,AllBeta=true",
        ]);
        assert_eq!(made.texts(), Vec::<String>::new());
        let want = [
            "--allocate-node-cidrs has no effect: cloudberth has no controller that hands out pod networks",
            "--allow-untagged-cloud is deprecated and has no effect: cloudberth needs no cluster id",
            "--node-sync-period is deprecated and has no effect: it does nothing in the programs replaced either",
            "--webhook-bind-address has no effect: no cloud here has a webhook, so none is served",
            "--address is deprecated and has no effect: there is no port without TLS; use --bind-address for the one with \
             TLS",
            "--feature-gates names WatchList, which has no effect here",
        ];
        assert_eq!(made.notices.iter().map(ToString::to_string).collect::<Vec<_>>(), want);
        assert_eq!(options(&["--cloud-provider=cloudscale"]).notices, []);
    }

    #[test]
    fn webhooks_need_their_gate_and_a_known_name() {
        let read = |args: &[&str]| {
            let made = options(&[&["--cloud-provider=cloudscale"], args].concat());
            (made.options.webhooks.clone(), made.texts())
        };
        let gate = "--feature-gates=CloudControllerManagerWebhook=true";
        assert_eq!(read(&[gate, "--webhooks=*,-b"]), (vec!["a".to_owned()], vec![]), "FW-325");
        assert_eq!(read(&["--webhooks=*"]), (vec![], vec![]));
        assert_eq!(read(&[gate]), (vec![], vec![]));
        let says = "--webhooks: \"c\" is not in the list of known webhooks";
        assert_eq!(read(&["--webhooks=c"]).1, [says]);
    }

    #[test]
    fn mistakes_of_all_parts_are_told_at_once() {
        let made = options(&[
            "--controllers=x",
            "--secure-port=99999",
            "--concurrent-node-lifecycle-syncs=0",
            "--logging-format=xml",
            "--leader-elect-retry-period=1m",
            "--kubeconfig=/etc/kubeconfig",
            "--master=https://10.0.0.1:6443",
            "--use-service-account-credentials",
            "--dry-run",
            "--output=yaml",
        ]);
        let flags = [
            "--cloud-provider",
            "--controllers",
            "--concurrent-node-lifecycle-syncs",
            "--leader-elect-lease-duration",
            "--leader-elect-renew-deadline",
            "--secure-port",
            "--logging-format",
            "--output",
        ];
        let texts = made.texts();
        assert_eq!(texts.len(), flags.len(), "{texts:?}");
        for (text, flag) in texts.iter().zip(flags) {
            assert!(text.contains(flag), "{text} does not name {flag}");
        }
        // What is right is there all the same.
        assert_eq!(made.options.kube.kubeconfig, Some("/etc/kubeconfig".into()));
        assert_eq!(made.options.kube.master.as_deref(), Some("https://10.0.0.1:6443"));
        assert!(made.options.kube.own_accounts && made.options.dry_run);
    }
}
