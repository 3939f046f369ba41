//! The reference page, made from the table.

use std::fmt::Write;

use super::{
    declare::{AnyFlag, Group, Note},
    table::Flags,
};
use crate::gates::Gate;

const HEAD: &str = "\
# Flags

The flags of the controller manager, as `--help` groups them. Names, types, defaults and meanings are those of the
programs that cloudberth replaces; what differs is said beside the flag.

A value follows its flag behind `=` or as the next argument; a switch (type bool) takes one behind `=` only. `_` in a
name is `-`. Durations are written as in Go: `90s`, `5m`, `1h30m`. Lists are separated by commas, and a flag given again
adds to its list. All mistakes are told at once, and the program ends with exit code 1.

*Automatic* means that cloudberth finds the right value by itself; a value that is given is the most that it uses.

What the programs replaced do otherwise:

- They stop at the first flag that they cannot read, and at election times that do not fit together they crash.
- They take a worker count of 0 for `--concurrent-node-syncs` and `--concurrent-service-syncs`, and then do nothing; they
  take periods of 0s and less, and then do nothing else. cloudberth refuses both.
- They offer TLS 1.0, TLS 1.1 and weak cipher suites if told to. cloudberth accepts the names and says that it does not.
- They know one cloud each.
";

const GATES: &str = "
## Feature gates

The gates of `--feature-gates` that mean something here. Those of the API server's library are accepted too and have no
effect; others are refused. `AllAlpha` and `AllBeta` switch all gates of their stage that are not named themselves.

| gate | default | on, it means |
|---|---|---|
";

/// The page, ready to be written to a file.
pub fn markdown() -> String {
    let flags = Flags::default();
    let mut text = HEAD.to_owned();
    for group in Group::ALL {
        let _ = write!(
            text,
            "\n## {}\n\n| flag | type | default | meaning |\n|---|---|---|---|\n",
            group.title()
        );
        for flag in flags.all().into_iter().filter(|flag| flag.about().group == group) {
            text.push_str(&row(flag));
        }
    }
    text.push_str(GATES);
    for gate in Gate::ALL {
        let _ = writeln!(text, "| `{}` | `{}` | {} |", gate.name(), gate.default(), gate.about());
    }
    text
}

fn row(flag: &dyn AnyFlag) -> String {
    let about = flag.about();
    let letter = about.letter().map(|letter| format!("`-{letter}`, ")).unwrap_or_default();
    let kind = if flag.type_name().is_empty() { "bool" } else { flag.type_name() };
    let default = match (about.note, flag.default_text().as_str()) {
        (Note::Ceiling, before) => format!("automatic (was {before})"),
        (_, "" | "[]") => String::new(),
        (_, text) => format!("`{text}`"),
    };
    let note = match about.note {
        Note::Works | Note::Ceiling => String::new(),
        Note::NoEffect(why) => format!(" **No effect**: {why}."),
        Note::Deprecated(why) => format!(" **Deprecated, no effect**: {why}."),
    };
    format!(
        "| {letter}`--{}` | {kind} | {default} | {}{note} |\n",
        about.name,
        about.help.replace('|', "\\|")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flag_has_its_row_in_its_group() {
        let text = markdown();
        let rows = [
            "| `--profiling` | bool | `true` | Serve /debug/pprof/ and /debug/flags/ on the secure port. |",
            "| `--kubeconfig` | string |  | How to reach and authenticate to the API server. Empty: the pod's own account. |",
            "| `--kube-api-burst` | int32 | automatic (was 30) | How many requests to the API server may go out at once \
             beyond --kube-api-qps. |",
            "| `-v`, `--v` | Level | `0` | How much is logged. Can be changed while running, at /debug/flags/v. |",
            "| `--allow-untagged-cloud` | bool | `false` | Run with a cloud that knows no cluster id. \
             **Deprecated, no effect**: cloudberth needs no cluster id. |",
        ];
        for row in rows {
            assert!(text.lines().any(|line| line == row), "{row}");
        }
        let flags = text.lines().filter(|line| line.starts_with("| `-")).count();
        assert_eq!(flags, Flags::default().all().len());
        let groups: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        let want: Vec<_> = Group::ALL.map(Group::title).into_iter().chain(["Feature gates"]).collect();
        assert_eq!(groups, want);
        assert!(text.ends_with(
            "| `AllowParsingUserUIDFromCertAuth` | `true` | A client certificate may say a user's UID. |\n"
        ));
    }
}
