//! What the chore is asked to do.

use lexopt::prelude::*;

/// The score in per cent below which the chore fails, unless `--bar` says otherwise.
const BAR: f64 = 90.0;

#[derive(Debug, PartialEq)]
pub(crate) struct Options {
    pub(crate) packages: Vec<String>,
    /// How many to try; `None` means all.
    pub(crate) sample: Option<usize>,
    pub(crate) seed: u64,
    pub(crate) jobs: usize,
    /// Let `cargo-mutants` build every mutant, instead of all in one build.
    pub(crate) rebuild: bool,
    /// Cargo's arguments for the tests of the first pass. Empty: there is only one pass, with all tests.
    pub(crate) quick: Vec<String>,
    pub(crate) bar: f64,
}

impl Options {
    pub(crate) fn parse(mut args: lexopt::Parser) -> Result<Self, lexopt::Error> {
        let mut options = Self {
            packages: Vec::new(),
            sample: Some(100),
            seed: 1,
            jobs: 1,
            rebuild: false,
            quick: Vec::new(),
            bar: BAR,
        };
        while let Some(arg) = args.next()? {
            match arg {
                Short('p') | Long("package") => options.packages.push(args.value()?.string()?),
                Long("sample") => options.sample = Some(args.value()?.parse()?),
                Long("all") => options.sample = None,
                Long("seed") => options.seed = args.value()?.parse()?,
                Short('j') | Long("jobs") => options.jobs = args.value()?.parse()?,
                Long("rebuild") => options.rebuild = true,
                Long("quick") => options.quick = targets(&args.value()?.string()?)?,
                Long("bar") => options.bar = args.value()?.parse_with(percent)?,
                other => return Err(other.unexpected()),
            }
        }
        if options.packages.is_empty() {
            return Err("name at least one crate with -p".into());
        }
        if !options.rebuild && !options.quick.is_empty() {
            return Err("--quick needs --rebuild: otherwise the quickest tests go first anyway".into());
        }
        Ok(options)
    }
}

/// Cargo's arguments for test targets that are named as their files are; `lib` means the unit tests.
fn targets(names: &str) -> Result<Vec<String>, lexopt::Error> {
    let argument = |name: &str| match name.trim() {
        "" => {
            Err(format!("--quick {names:?}: name test targets with commas between them, such as lib,plan")
                .into())
        }
        "lib" => Ok("--lib".to_owned()),
        test => Ok(format!("--test={test}")),
    };
    names.split(',').map(argument).collect()
}

fn percent(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(percent),
        _ => Err("give per cent, 0 to 100".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Options, String> {
        Options::parse(lexopt::Parser::from_args(args)).map_err(|why| why.to_string())
    }

    #[test]
    fn options_are_read_in_any_order() {
        let want = Options {
            packages: vec!["one".to_owned(), "two".to_owned()],
            sample: Some(300),
            seed: 9,
            jobs: 2,
            rebuild: true,
            quick: vec!["--lib".to_owned(), "--test=plan".to_owned()],
            bar: 85.5,
        };
        let args = [
            "--seed",
            "9",
            "-p",
            "one",
            "--sample=300",
            "--quick",
            "lib, plan",
            "--rebuild",
            "-j2",
            "--bar=85.5",
            "-ptwo",
        ];
        assert_eq!(parse(&args).unwrap(), want);
    }

    #[test]
    fn what_is_not_said_has_a_usual_value() {
        let usual = parse(&["-p", "one"]).unwrap();
        assert_eq!((usual.sample, usual.seed, usual.jobs, usual.bar), (Some(100), 1, 1, 90.0));
        assert_eq!((usual.quick, usual.rebuild), (vec![], false));
        assert_eq!(parse(&["-p", "one", "--all"]).unwrap().sample, None);
    }

    #[test]
    fn mistakes_are_refused() {
        let table: &[(&[&str], &str)] = &[
            (&[], "name at least one crate with -p"),
            (&["-p", "one", "--sample", "few"], "few"),
            (&["-p", "one", "--sede", "1"], "--sede"),
            (&["-p", "one", "--quick", "lib,,plan"], "name test targets"),
            (&["-p", "one", "--quick="], "name test targets"),
            (&["-p", "one", "--quick=lib"], "--quick needs --rebuild"),
            (&["-p", "one", "--bar", "high"], "give per cent, 0 to 100"),
            (&["-p", "one", "--bar", "101"], "give per cent, 0 to 100"),
            (&["-p", "one", "--bar", "NaN"], "give per cent, 0 to 100"),
            (&["one"], "one"),
        ];
        for (args, want) in table {
            let why = parse(args).unwrap_err();
            assert!(why.contains(want), "{why}");
        }
    }
}
