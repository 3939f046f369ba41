//! Chores of the project. `cargo xtask help` lists them.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a chore talks to the person who runs it")]

mod archive;
mod browser;
mod built;
mod cases;
mod chart;
mod cluster;
mod completions;
mod deps;
mod docs;
mod e2e;
mod figures;
mod image;
mod kube;
mod lexer;
mod metadata;
mod monitoring;
mod mutants;
mod page;
mod picture;
mod process;
mod release;
mod sim;
mod site;
mod stages;
mod suite;
mod tally;
mod words;
mod workspace;

use std::ffi::OsString;
use std::fmt::Write;
use std::process::ExitCode;

use workspace::Workspace;

/// What a command that ran to its end found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Good,
    Bad,
}

/// A chore that could not run to its end: one sentence that names the cause and, where there is one, the fix.
pub(crate) type Result<T> = std::result::Result<T, String>;

struct Chore {
    name: &'static str,
    usage: &'static str,
    about: &'static str,
    run: fn(&Workspace, lexopt::Parser) -> Result<Verdict>,
}

const CHORES: &[Chore] = &[
    Chore {
        name: "test",
        usage: "test [--only STAGE[,STAGE]]",
        about: "run every stage of the suite; the last line counts the tests",
        run: suite::command,
    },
    Chore {
        name: "kube",
        usage: "kube [--kube VERSION]",
        about: "provide the programs of Kubernetes, and say where kube-apiserver, etcd and kubectl are",
        run: kube::command,
    },
    Chore {
        name: "cluster",
        usage: "cluster [--kube VERSION]",
        about: "run a real cluster with cloudberth, nodes and pods until Ctrl-C, and say how to look at it",
        run: cluster::command,
    },
    Chore {
        name: "e2e",
        usage: "e2e [--world real|embedded] [--kube VERSION] [--jobs N] [--list] [NAME…]",
        about: "run the scenarios, in both worlds unless one is named; NAME is a part of a scenario's name",
        run: e2e::command,
    },
    Chore {
        name: "page",
        usage: "page [--picture FILE]",
        about: "try the sandbox's page in a real browser, which is fetched if there is none; FILE gets a picture of it",
        run: page::command,
    },
    Chore {
        name: "monitoring",
        usage: "monitoring",
        about: "check and test the alerting rules, the dashboard and the runbooks with promtool, which is unpacked if there is none",
        run: monitoring::command,
    },
    Chore {
        name: "cases",
        usage: "cases [--list PREFIX] [--verbose]",
        about: "compare the numbered cases with the tests that carry their numbers",
        run: cases::command,
    },
    Chore {
        name: "sim",
        usage: "sim [--seeds N] [--first S | --seed S] [--break LAW] [--log]",
        about: "run seeds of the deterministic simulation; a failing one says how to replay it",
        run: sim::command,
    },
    Chore {
        name: "mutants",
        usage: "mutants -p CRATE [-p CRATE] [--sample N | --all] [--seed S] [-j JOBS] [--bar PERCENT] [--rebuild [--quick TESTS]]",
        about: "break the code on purpose and count how often the tests notice; -j 2 tries two at a time, on an idle machine",
        run: mutants::command,
    },
    Chore {
        name: "docs",
        usage: "docs [--check]",
        about: "update the generated parts of the documents",
        run: docs::command,
    },
    Chore {
        name: "site",
        usage: "site [--output DIR]",
        about: "make a site of the documents with mdBook, which is installed if it is missing, and check its links",
        run: site::command,
    },
    Chore {
        name: "chart",
        usage: "chart [--check]",
        about: "write the plain manifests and snapshots from the chart, and check it with helm",
        run: chart::command,
    },
    Chore {
        name: "completions",
        usage: "completions [--into FOLDER]",
        about: "write shell completions and man pages of the program, into target/ unless a folder is named",
        run: completions::command,
    },
    Chore {
        name: "image",
        usage: "image [--arch amd64,arm64] [--variant plain|lycke|rancher] [--name NAME] [--output DIR] [--start] [--check]",
        about: "build the image, with bill of materials and licences; --start starts it in a sandbox, --check builds it twice before that",
        run: image::command,
    },
    Chore {
        name: "release",
        usage: "release --dry-run [--variant plain,lycke,rancher] [--program FILE] [--output DIR]",
        about: "put what a release would have into one folder, with checksums; FILE takes the place of the program, to try the folder at once",
        run: release::command,
    },
    Chore {
        name: "figures",
        usage: "figures [--only NAME,…] [--output FILE]",
        about: "run the measurements and write docs/reference/figures.md",
        run: figures::command,
    },
    Chore {
        name: "picture",
        usage: "picture [--from FILE]",
        about: "run the demo, or take what it printed, and draw the terminal picture of the README",
        run: picture::command,
    },
    Chore {
        name: "words",
        usage: "words",
        about: "find words that were retired, and name the ones in use now",
        run: words::command,
    },
];

/// How a chore is called; none if there is no such chore.
pub(crate) fn usage_of(name: &str) -> Option<&'static str> {
    CHORES.iter().find(|chore| chore.name == name).map(|chore| chore.usage)
}

fn usage() -> String {
    let mut text = String::from("Usage: cargo xtask CHORE\n");
    for chore in CHORES {
        let _ = write!(text, "\n  {}\n      {}\n", chore.usage, chore.about);
    }
    text
}

fn run(args: impl IntoIterator<Item = OsString>) -> Result<Verdict> {
    let mut args = args.into_iter();
    let name = args.next().unwrap_or_default();
    if matches!(name.to_str(), Some("" | "help" | "-h" | "--help")) {
        println!("{}", usage());
        return Ok(Verdict::Good);
    }
    let chore = CHORES
        .iter()
        .find(|chore| name == chore.name)
        .ok_or_else(|| format!("there is no chore {}\n\n{}", name.display(), usage()))?;
    (chore.run)(&Workspace::find()?, lexopt::Parser::from_args(args))
        .map_err(|why| format!("cargo xtask {}: {why}", chore.name))
}

fn main() -> ExitCode {
    match run(std::env::args_os().skip(1)) {
        Ok(Verdict::Good) => ExitCode::SUCCESS,
        Ok(Verdict::Bad) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::from(2)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_chore_is_refused_with_the_list_of_known_ones() {
        let why = run(["tset".into()]).unwrap_err();
        assert!(why.starts_with("there is no chore tset"), "{why}");
        for chore in CHORES {
            assert!(why.contains(chore.usage) && chore.usage.starts_with(chore.name), "{why}");
        }
    }

    #[test]
    fn a_mistyped_option_is_refused_before_any_work() {
        for chore in CHORES {
            let why = run([chore.name.into(), "--no-such-option".into()]).unwrap_err();
            assert!(why.contains(chore.name) && why.contains("--no-such-option"), "{why}");
        }
    }
}
