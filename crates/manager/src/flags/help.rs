//! What `--help` prints.

use std::fmt::Write;

use super::{
    declare::{AnyFlag, Group, Note},
    table::Flags,
};

/// Where descriptions begin when they stand on lines of their own.
const INDENT: usize = 16;
/// A terminal with less room than this behind the indent gets lines as long as they come.
const NARROW: usize = 24;

/// How the program is called, in the two lines that precede a message about a wrong flag.
pub fn usage(program: &str) -> String {
    format!("Usage:\n  {program} [flags]\n")
}

/// The whole help: groups in order, flags by name. With the `width` of a terminal, descriptions are wrapped below
/// their flags; without one, each flag is one line, as for a pager or a search.
pub fn help(flags: &Flags, program: &str, width: Option<usize>) -> String {
    let mut text = format!(
        "Connects a Kubernetes cluster to the clouds under it: initialises nodes, removes those whose instance is\n\
         gone, gives Services their load balancers and pod networks their routes.\n\n{}",
        usage(program)
    );
    for group in Group::ALL {
        let _ = write!(text, "\n{} flags:\n\n{}", group.title(), section(flags, group, width));
    }
    text
}

fn section(flags: &Flags, group: Group, width: Option<usize>) -> String {
    let shown: Vec<_> = flags
        .all()
        .into_iter()
        .filter(|flag| flag.about().group == group && !matches!(flag.about().note, Note::Deprecated(_)))
        .map(|flag| (left(flag), description(flag)))
        .collect();
    let column = shown.iter().map(|(left, _)| left.len()).max().unwrap_or_default() + 3;
    let mut text = String::new();
    for (left, description) in shown {
        match width.and_then(|width| width.checked_sub(INDENT)).filter(|room| *room >= NARROW) {
            Some(room) => {
                text.push_str(&left);
                for line in wrap(&description, room) {
                    let _ = write!(text, "\n{:INDENT$}{line}", "");
                }
                text.push('\n');
            }
            None => {
                let _ = writeln!(text, "{left:column$}{description}");
            }
        }
    }
    text
}

/// `  -v, --v Level`: the name, its letter and its type.
fn left(flag: &dyn AnyFlag) -> String {
    let about = flag.about();
    let letter = about.letter().map_or_else(|| "    ".to_owned(), |letter| format!("-{letter}, "));
    let kind = match (flag.type_name(), flag.alone()) {
        ("", _) => String::new(),
        (kind, Some(alone)) => format!(" {kind}[={alone}]"),
        (kind, None) => format!(" {kind}"),
    };
    format!("  {letter}--{}{kind}", about.name)
}

fn description(flag: &dyn AnyFlag) -> String {
    let about = flag.about();
    let default = match about.note {
        Note::Ceiling => Some("found by itself; a value given is the most that is used".to_owned()),
        _ => flag.default_shown(),
    };
    let default = default.map(|default| format!(" (default {default})")).unwrap_or_default();
    let effect = match about.note {
        Note::NoEffect(why) => format!(" No effect: {why}."),
        _ => String::new(),
    };
    format!("{}{effect}{default}", about.help)
}

fn wrap(text: &str, room: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_flag_is_one_line_without_a_terminal() {
        let text = help(&Flags::default(), "cloud-controller-manager", None);
        let lines = [
            "  cloud-controller-manager [flags]",
            "Leader-migration flags:",
            "      --profiling              Serve /debug/pprof/ and /debug/flags/ on the secure port. (default true)",
            "      --cluster-name string                      The cluster's name, as it appears in what is made in the \
             cloud. (default \"kubernetes\")",
            "      --route-reconciliation-period duration     How often routes are compared with nodes. (default 10s)",
            "      --concurrent-service-syncs int32   How many Services are worked on at once. (default found by \
             itself; a value given is the most that is used)",
            "  -h, --help                                 Print this and stop.",
            "  -v, --v Level                              How much is logged. Can be changed while running, at \
             /debug/flags/v.",
        ];
        for line in lines {
            assert!(text.lines().any(|shown| shown == line), "{line}\n{text}");
        }
        assert!(text.contains("\n      --version version[=true]  "));
        assert!(text.contains("\n      --vmodule pattern=N,...  "));
        assert!(text.contains(" No effect: volumes are no concern of this program.\n"));
        for hidden in [" --address", "--allow-untagged-cloud", "--node-sync-period"] {
            assert!(!text.contains(hidden), "{hidden}");
        }
    }

    #[test]
    fn groups_come_in_the_known_order_with_flags_by_name() {
        let text = help(&Flags::default(), "ccm", None);
        let headings: Vec<_> = text.lines().filter(|line| line.ends_with(" flags:")).collect();
        let want: Vec<_> = Group::ALL.iter().map(|group| format!("{} flags:", group.title())).collect();
        assert_eq!(headings, want);
        let order: Vec<_> =
            Flags::default().all().iter().map(|flag| (flag.about().group, flag.about().name)).collect();
        let mut sorted = order.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(order, sorted);
    }

    #[test]
    fn a_terminal_gets_wrapped_descriptions() {
        let text = help(&Flags::default(), "ccm", Some(60));
        let want = "\n      --kubeconfig string\n                How to reach and authenticate to the API\n                \
                    server. Empty: the pod's own account.\n      --master string\n";
        assert!(text.contains(want), "{text}");
        let wide =
            text.lines().filter(|line| line.starts_with("                ")).find(|line| line.len() > 60);
        assert_eq!(wide, None);
        assert_eq!(
            help(&Flags::default(), "ccm", Some(20)),
            help(&Flags::default(), "ccm", None),
            "too narrow"
        );
    }
}
