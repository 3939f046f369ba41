//! From the command line to options, help, a version or a list of mistakes.

#![allow(missing_docs, reason = "plain data whose names say what it is")]

use std::{ffi::OsString, fmt::Write};

use cloudberth_core::error::Error;
use cloudberth_http::GivenFlags;

use crate::{
    flags::{self, Flags, VersionFlag},
    options::{Known, Made, NO_PROVIDER, Notice, Options, ReadFile},
    program::{self, Build},
};

/// The exit code for every mistake in flags and configuration.
pub const EXIT_MISTAKE: u8 = 1;

/// How the program was called, and in which surroundings.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// The cloud that `--cloud-provider` means when it is not given.
    pub preset: Option<&'a str>,
    /// The name that help and messages show, such as `cloudberth controller-manager`.
    pub program: &'a str,
    pub known: Known<'a>,
    pub build: Build<'a>,
    /// The width of the terminal that help goes to, if there is one.
    pub width: Option<usize>,
    /// Reads a file that a flag names.
    pub read: ReadFile<'a>,
}

impl std::fmt::Debug for Call<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Call")
            .field("preset", &self.preset)
            .field("known", &self.known)
            .finish_non_exhaustive()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Print this to stdout and end with exit code 0.
    Print(String),
    Run,
}

#[derive(Clone, Debug)]
pub struct CommandLine {
    pub request: Request,
    /// The flags as they were given.
    pub flags: Flags,
    /// The options that follow from them. Nothing may be started from them while there are mistakes.
    pub options: Options,
    /// Every mistake, first those of the command line's form.
    pub mistakes: Vec<Error>,
    /// What is worth a line in the log, once.
    pub notices: Vec<Notice>,
    usage: Option<String>,
}

impl CommandLine {
    /// Reads the arguments that follow the program's name (and its subcommand).
    pub fn read(call: &Call<'_>, args: impl IntoIterator<Item = OsString>) -> Self {
        let mut flags = Flags::default();
        if let Some(provider) = call.preset {
            flags.cloud_provider.preset(provider.to_owned());
        }
        let mut mistakes = flags::parse(&mut flags, call.program, args);
        let malformed = !mistakes.is_empty();
        let request = match flags.version.get() {
            _ if *flags.help.get() => Request::Print(flags::help(&flags, call.program, call.width)),
            VersionFlag::Print if !malformed => Request::Print(format!("{}\n", program::version_line())),
            VersionFlag::Raw if !malformed => {
                Request::Print(format!("{}\n", program::raw_version_line(&call.build)))
            }
            _ => Request::Run,
        };
        let Made { options, mistakes: more, notices } = Options::make(&flags, call.known, call.read);
        mistakes.extend(more);
        let usage = malformed.then(|| flags::usage(call.program));
        Self { request, flags, options, mistakes, notices, usage }
    }

    /// What to print to stderr before ending with [`EXIT_MISTAKE`]: all mistakes found here, and `more` that were found
    /// since, one line each. `None` if there are none at all.
    pub fn complaint(&self, more: &[Error]) -> Option<String> {
        let mut lines = String::new();
        for mistake in self.mistakes.iter().chain(more) {
            let _ = writeln!(lines, "Error: {}", mistake.message().replace('\n', " "));
        }
        let usage = self.usage.as_ref().map(|usage| format!("{usage}  --help shows all flags\n\n"));
        (!lines.is_empty()).then(|| format!("{}{lines}", usage.unwrap_or_default()))
    }

    /// The same for a command that has something to do without a cloud.
    #[must_use]
    pub fn without_cloud(mut self) -> Self {
        self.mistakes.retain(|mistake| !mistake.message().starts_with(NO_PROVIDER));
        self
    }

    pub fn version(&self) -> &str {
        match self.flags.version.get() {
            VersionFlag::Report(version) => version,
            _ => program::VERSION,
        }
    }

    /// The flags that somebody gave.
    pub fn given(&self) -> GivenFlags {
        let given = self.flags.all().into_iter().filter(|flag| flag.is_given());
        given.map(|flag| (flag.about().name, flag.text())).collect()
    }

    /// A line for the log about every flag, by name, for verbosity 1 and more.
    pub fn flag_lines(&self) -> Vec<String> {
        let mut lines: Vec<_> = self
            .flags
            .all()
            .into_iter()
            .map(|flag| format!("FLAG: --{}={:?}", flag.about().name, flag.text()))
            .collect();
        lines.sort_unstable();
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_preset(preset: Option<&str>, args: &[&str]) -> CommandLine {
        let call = Call {
            preset,
            program: "cloud-controller-manager",
            known: Known { providers: &["binarylane", "cloudscale"], webhooks: &[] },
            build: Build { commit: "abc", date: "", compiler: "", platform: "" },
            width: None,
            read: &|_| Err("no such file".to_owned()),
        };
        CommandLine::read(&call, args.iter().map(OsString::from))
    }

    fn read(args: &[&str]) -> CommandLine {
        read_preset(None, args)
    }

    #[test]
    fn help_and_version_are_printed_whatever_else_is_missing() {
        let line = format!("Kubernetes {}\n", program::VERSION);
        assert_eq!(read(&["--version"]).request, Request::Print(line));
        assert!(
            matches!(read(&["--version=raw"]).request, Request::Print(text) if text.contains("GitCommit:\"abc\""))
        );
        assert_eq!(read(&["--version=false"]).request, Request::Run);
        assert_eq!(
            read(&["--version", "--nope"]).request,
            Request::Run,
            "a malformed line prints no version"
        );
        for args in [&["--help"][..], &["-h", "--version"], &["--nope", "-h"]] {
            let Request::Print(text) = read(args).request else { panic!("{args:?}") };
            assert!(
                text.contains("\n  cloud-controller-manager [flags]\n") && text.contains("Generic flags:")
            );
        }
    }

    #[test]
    fn a_version_can_be_reported_instead() {
        assert_eq!(read(&[]).version(), program::VERSION);
        let mine = format!("{}-mine", program::VERSION);
        let read = read(&[&format!("--version={mine}")]);
        assert_eq!((read.version(), &read.request), (mine.as_str(), &Request::Run));
    }

    #[test]
    fn all_mistakes_are_one_message_of_one_line_each() {
        let read = read(&["--leader-elect=maybe", "--nope", "--secure-port=99999"]);
        let more = [Error::user_input("--kubeconfig=/k: no such file"), Error::user_input("two\nlines")];
        let want = "\
Usage:
  cloud-controller-manager [flags]
  --help shows all flags

Error: invalid argument \"maybe\" for \"--leader-elect\" flag: it must be true or false
Error: unknown flag: --nope
Error: --cloud-provider cannot be empty; name one or more of binarylane, cloudscale
Error: --secure-port is \"99999\"; it must be from 0 to 65535, where 0 means not to serve
Error: --kubeconfig=/k: no such file
Error: two lines
";
        assert_eq!(read.complaint(&more).as_deref(), Some(want));
    }

    #[test]
    fn usage_is_shown_only_for_a_malformed_line() {
        let wrong = "Error: --cloud-provider cannot be empty; name one or more of binarylane, cloudscale\n";
        assert_eq!(read(&[]).complaint(&[]).as_deref(), Some(wrong), "FW-312");
        let good = read(&["--cloud-provider=cloudscale"]);
        assert_eq!(good.complaint(&[]), None);
        assert_eq!(good.complaint(&[Error::user_input("no token")]).as_deref(), Some("Error: no token\n"));
    }

    #[test]
    fn a_preset_names_the_cloud_and_the_flag_overrides_it() {
        let old = Some("cloudscale");
        assert_eq!(read_preset(old, &[]).options.clouds.providers, ["cloudscale"]);
        assert_eq!(
            read_preset(old, &["--cloud-provider=binarylane"]).options.clouds.providers,
            ["binarylane"]
        );
        let Request::Print(help) = read_preset(old, &["-h"]).request else { panic!("no help") };
        assert!(help.contains("The cloud, or several separated by commas. (default \"cloudscale\")\n"));
        // What the manifest of the program replaced passes.
        let manifest = ["--allow-untagged-cloud", "--v=3", "--concurrent-service-syncs=2"];
        let read = read_preset(old, &manifest);
        assert_eq!(read.complaint(&[]), None);
        assert_eq!(read.notices.len(), 1);
    }

    #[test]
    fn a_default_and_a_preset_are_not_given() {
        let given = read_preset(Some("cloudscale"), &["--configure_cloud_routes", "--cluster-cidr="]).given();
        assert_eq!(given.get("configure-cloud-routes"), Some("true"), "although that is the default");
        assert_eq!(given.get("cluster-cidr"), Some(""));
        assert_eq!((given.get("cloud-provider"), given.get("cluster-name")), (None, None));
    }

    #[test]
    fn every_flag_has_a_line_for_the_log() {
        let read = read(&["--cloud-provider=cloudscale", "--controllers=*,-route"]);
        let lines = read.flag_lines();
        assert_eq!(lines.len(), read.flags.all().len());
        assert!(lines.contains(&"FLAG: --controllers=\"[*,-route]\"".to_owned()));
        assert!(lines.is_sorted());
    }
}
