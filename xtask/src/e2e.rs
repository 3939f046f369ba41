//! `cargo xtask e2e`: the scenarios of `testing/e2e`, by hand.

use kube_assets::NEWEST;
use lexopt::prelude::*;

use crate::kube::{guarded, provide};
use crate::stages::cargo;
use crate::workspace::Workspace;
use crate::{Result, Verdict};

#[derive(Debug, Default, PartialEq, Eq)]
struct Asked {
    version: Option<String>,
    /// Passed on unchanged.
    scenarios: Vec<String>,
}

pub(crate) fn command(workspace: &Workspace, mut args: lexopt::Parser) -> Result<Verdict> {
    let asked = asked(&mut args).map_err(|why| why.to_string())?;
    let version = kube_assets::version(asked.version.as_deref().unwrap_or(NEWEST));
    let version = version.map_err(|why| why.to_string())?;
    provide(version)?;
    let mut args = vec!["test", "--quiet", "--package", "cloudberth-e2e", "--test", "scenarios", "--"];
    args.extend(["--kube", version]);
    args.extend(asked.scenarios.iter().map(String::as_str));
    let outcome = guarded(&[], |env| cargo(workspace, &args, env))?;
    for problem in &outcome.problems {
        println!("{problem}");
    }
    Ok(if outcome.problems.is_empty() { Verdict::Good } else { Verdict::Bad })
}

/// What the scenarios would refuse is refused before anything is built.
fn asked(args: &mut lexopt::Parser) -> std::result::Result<Asked, lexopt::Error> {
    let mut asked = Asked::default();
    while let Some(arg) = args.next()? {
        match arg {
            Long("kube") => asked.version = Some(args.value()?.string()?),
            Long("world") => {
                let world = args.value()?.string()?;
                if !matches!(world.as_str(), "real" | "embedded") {
                    return Err(format!("there is no world {world:?}; there are real and embedded").into());
                }
                asked.scenarios.extend(["--world".to_owned(), world]);
            }
            Long("jobs") => {
                let jobs = args.value()?.parse::<usize>()?;
                asked.scenarios.extend(["--jobs".to_owned(), jobs.to_string()]);
            }
            Long("list") => asked.scenarios.push("--list".to_owned()),
            Value(name) => asked.scenarios.push(name.string()?),
            other => return Err(other.unexpected()),
        }
    }
    Ok(asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_handed_on() {
        let table: [(&[&str], Option<&str>, &[&str]); 3] = [
            (&[], None, &[]),
            (&["--kube", "1.34", "election"], Some("1.34"), &["election"]),
            (
                &["--world", "real", "a", "--jobs=2", "--list"],
                None,
                &["--world", "real", "a", "--jobs", "2", "--list"],
            ),
        ];
        for (args, version, scenarios) in table {
            let want = Asked {
                version: version.map(str::to_owned),
                scenarios: scenarios.iter().map(ToString::to_string).collect(),
            };
            assert_eq!(asked(&mut lexopt::Parser::from_args(args)).unwrap(), want, "{args:?}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_at_once() {
        for args in [["--world", "reel"], ["--jobs", "many"]] {
            let why = asked(&mut lexopt::Parser::from_args(args)).unwrap_err().to_string();
            assert!(why.contains(args[1]), "{why}");
        }
    }
}
