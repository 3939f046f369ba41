//! From arguments to flags.

use std::ffi::OsString;

use cloudberth_core::{annotation::nearest, error::Error};

use super::{declare::AnyFlag, table::Flags, value::truth};

/// Reads `args` (without the program's own name) into `flags`. `program` is the name that messages show.
///
/// All mistakes are returned at once, each naming the flag; a flag that was given wrongly keeps its value.
pub fn parse(flags: &mut Flags, program: &str, args: impl IntoIterator<Item = OsString>) -> Vec<Error> {
    let mut mistakes = Vec::new();
    let mut reader = Reader { left: Vec::new(), positional: Vec::new(), switch: None };
    for arg in args {
        match arg.into_string() {
            Ok(arg) => reader.left.push(arg),
            Err(arg) => mistakes.push(format!("argument {} is not valid UTF-8", arg.display())),
        }
    }
    reader.left.reverse();
    while let Some(arg) = reader.left.pop() {
        if let Err(mistake) = reader.take(flags, &arg) {
            mistakes.push(mistake);
        }
        if arg == "--" {
            break;
        }
    }
    reader.positional.extend(reader.left.into_iter().rev());
    if reader.positional.iter().any(|arg| !arg.is_empty()) {
        let hint =
            reader.switch.map(|name| format!("; a switch takes its value behind =, as in --{name}=false"));
        mistakes.push(format!(
            "{program:?} does not take any arguments, got {:?}{}",
            reader.positional,
            hint.unwrap_or_default()
        ));
    }
    mistakes.into_iter().map(Error::user_input).collect()
}

/// What is left to read, and what was read that belongs to no flag.
struct Reader {
    left: Vec<String>,
    positional: Vec<String>,
    /// A switch that was followed by a truth value, which somebody may have meant for it.
    switch: Option<&'static str>,
}

impl Reader {
    fn take(&mut self, flags: &mut Flags, arg: &str) -> Result<(), String> {
        match arg.strip_prefix('-') {
            None | Some("") => self.positional.push(arg.to_owned()),
            Some("-") => {}
            Some(rest) => match rest.strip_prefix('-') {
                Some(long) => return self.long(flags, long),
                None => return self.letters(flags, rest),
            },
        }
        Ok(())
    }

    /// `--name`, `--name=value` or `--name value`.
    fn long(&mut self, flags: &mut Flags, arg: &str) -> Result<(), String> {
        let (name, value) = arg.split_once('=').map_or((arg, None), |(name, value)| (name, Some(value)));
        if name.is_empty() || name.starts_with('-') {
            return Err(format!("bad flag syntax: --{arg}"));
        }
        let full = name.replace('_', "-");
        let known = names(flags);
        let Some(flag) = find(flags, |flag| flag.about().name == full) else {
            // What follows most likely was meant as its value: no second mistake about the same slip.
            if value.is_none() && self.next_is_value() {
                self.left.pop();
            }
            return Err(format!("unknown flag: --{name}{}", did_you_mean(&full, &known)));
        };
        match (value, flag.alone()) {
            (Some(value), _) => set(flag, value),
            (None, Some(alone)) => {
                let next = self.left.last().and_then(|next| truth(next));
                self.switch = next.map(|_| flag.about().name).or(self.switch);
                set(flag, alone)
            }
            (None, None) => match self.left.pop() {
                Some(value) => set(flag, &value),
                None => Err(format!("flag needs an argument: --{name}")),
            },
        }
    }

    /// `-h`, `-v4`, `-v=4` or `-v 4`.
    fn letters(&mut self, flags: &mut Flags, arg: &str) -> Result<(), String> {
        let body = arg.split('=').next().unwrap_or(arg).replace('_', "-");
        let hint = names(flags).into_iter().find(|(name, _)| *name == body && name.len() > 1);
        let hint = hint.map(|(name, _)| format!("; did you mean --{name}?")).unwrap_or_default();
        let mut rest = arg;
        while let Some(letter) = rest.chars().next() {
            let whole = rest;
            rest = rest.get(letter.len_utf8()..).unwrap_or_default();
            let Some(flag) = find(flags, |flag| flag.about().letter() == Some(letter)) else {
                return Err(format!("unknown shorthand flag: {letter:?} in -{whole}{hint}"));
            };
            let value = match (rest.strip_prefix('='), flag.alone()) {
                (Some(value), _) => value.to_owned(),
                (None, Some(alone)) => {
                    set(flag, alone)?;
                    continue;
                }
                (None, None) if !rest.is_empty() => rest.to_owned(),
                (None, None) => self
                    .left
                    .pop()
                    .ok_or_else(|| format!("flag needs an argument: {letter:?} in -{whole}"))?,
            };
            return set(flag, &value).map_err(|why| format!("{why}{hint}"));
        }
        Ok(())
    }

    fn next_is_value(&self) -> bool {
        self.left.last().is_some_and(|next| !next.starts_with('-'))
    }
}

fn find(flags: &mut Flags, is: impl Fn(&dyn AnyFlag) -> bool) -> Option<&mut dyn AnyFlag> {
    flags.all_mut().into_iter().find(|flag| is(&**flag))
}

fn set(flag: &mut dyn AnyFlag, value: &str) -> Result<(), String> {
    flag.set(value)
        .map_err(|why| format!("invalid argument {value:?} for \"{}\" flag: {why}", flag.about().shown()))
}

/// The names of all flags, beside the name to suggest for each.
fn names(flags: &Flags) -> Vec<(&'static str, &'static str)> {
    flags.all().iter().map(|flag| (flag.about().name, flag.about().name)).collect()
}

fn did_you_mean(name: &str, known: &[(&'static str, &'static str)]) -> String {
    nearest(name, "", known).map(|name| format!("; did you mean --{name}?")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(args: &[&str]) -> (Flags, Vec<String>) {
        let mut flags = Flags::default();
        let mistakes = parse(&mut flags, "ccm", args.iter().map(OsString::from));
        (flags, mistakes.iter().map(ToString::to_string).collect())
    }

    fn value_of(flags: &Flags, name: &str) -> String {
        flags.all().into_iter().find(|flag| flag.about().name == name).unwrap().text()
    }

    #[test]
    fn values_are_given_as_go_programs_take_them() {
        let table: [(&[&str], &str, &str); 22] = [
            (&["--cluster-name=prod"], "cluster-name", "prod"),
            (&["--cluster-name", "prod"], "cluster-name", "prod"),
            (&["--cluster_name=prod"], "cluster-name", "prod"),
            (&["--cluster-name="], "cluster-name", ""),
            (&["--cluster-name=a=b"], "cluster-name", "a=b"),
            (&["--cluster-name=a", "--cluster-name=b"], "cluster-name", "b"),
            (&["--cluster-name", "-5"], "cluster-name", "-5"),
            (&["--cluster-name", "--"], "cluster-name", "--"),
            (&["--leader-elect"], "leader-elect", "true"),
            (&["--leader-elect=F"], "leader-elect", "false"),
            (&["--dry-run", "--leader-elect=false"], "dry-run", "true"),
            (&["--node-monitor-period=90s"], "node-monitor-period", "1m30s"),
            (&["--controllers=*,-route"], "controllers", "[*,-route]"),
            (&["--controllers=*", "--controllers=-route"], "controllers", "[*,-route]"),
            (&["--controllers="], "controllers", "[]"),
            (&["-v", "4"], "v", "4"),
            (&["-v4"], "v", "4"),
            (&["-v=4"], "v", "4"),
            (&["--v=4"], "v", "4"),
            (&["-h"], "help", "true"),
            (&["--version"], "version", "true"),
            (&["--version=raw"], "version", "raw"),
        ];
        for (args, name, want) in table {
            let (flags, mistakes) = read(args);
            assert_eq!(mistakes, Vec::<String>::new(), "{args:?}");
            assert_eq!(value_of(&flags, name), want, "{args:?}");
        }
    }

    #[test]
    fn every_kind_of_mistake_has_its_message() {
        let table: [(&[&str], &str); 19] = [
            (&["--cluster-nmae=x"], "unknown flag: --cluster-nmae; did you mean --cluster-name?"),
            (&["--cluster_nmae", "x"], "unknown flag: --cluster_nmae; did you mean --cluster-name?"),
            (&["--frobnicate"], "unknown flag: --frobnicate"),
            (&["--cluster-name"], "flag needs an argument: --cluster-name"),
            (&["-v"], "flag needs an argument: 'v' in -v"),
            (&["-hv"], "flag needs an argument: 'v' in -v"),
            (&["-x"], "unknown shorthand flag: 'x' in -x"),
            (&["-hx"], "unknown shorthand flag: 'x' in -x"),
            (
                &["-cloud-provider=x"],
                "unknown shorthand flag: 'c' in -cloud-provider=x; did you mean --cloud-provider?",
            ),
            (
                &["-version"],
                "invalid argument \"ersion\" for \"-v, --v\" flag: it must be a whole number from 0 to 2147483647; \
                 did you mean --version?",
            ),
            (&["--=x"], "bad flag syntax: --=x"),
            (&["---x"], "bad flag syntax: ---x"),
            (
                &["--leader-elect=maybe"],
                "invalid argument \"maybe\" for \"--leader-elect\" flag: it must be true or false",
            ),
            (
                &["--node-monitor-period", "5"],
                "invalid argument \"5\" for \"--node-monitor-period\" flag: it must be numbers with units, such as \
                 90s, 5m or 1h30m",
            ),
            (&["serve"], "\"ccm\" does not take any arguments, got [\"serve\"]"),
            (&["--", "--dry-run"], "\"ccm\" does not take any arguments, got [\"--dry-run\"]"),
            (&["-"], "\"ccm\" does not take any arguments, got [\"-\"]"),
            (&["", "x"], "\"ccm\" does not take any arguments, got [\"\", \"x\"]"),
            (
                &["--leader-elect", "false"],
                "\"ccm\" does not take any arguments, got [\"false\"]; a switch takes its value behind =, as in \
                 --leader-elect=false",
            ),
        ];
        for (args, want) in table {
            assert_eq!(read(args).1, [want], "{args:?}");
        }
        assert_eq!(read(&["", "--"]).1, Vec::<String>::new(), "an empty argument asks for nothing");
    }

    #[test]
    fn all_mistakes_are_told_at_once_and_the_rest_is_read() {
        let args = [
            "--kube-api-burst=many",
            "--nope",
            "x",
            "--cluster-name=prod",
            "--v=-1",
            "extra",
            "--secure-port",
        ];
        let (flags, mistakes) = read(&args);
        let names = ["--kube-api-burst", "--nope", "-v, --v", "--secure-port", "extra"];
        assert_eq!(mistakes.len(), names.len(), "{mistakes:?}");
        for (mistake, name) in mistakes.iter().zip(names) {
            assert!(mistake.contains(name), "{mistake} does not name {name}");
        }
        assert_eq!(flags.cluster_name.get(), "prod");
        assert_eq!(flags.kube_api_burst.given(), None, "a wrong value leaves the flag as it was");
    }

    #[cfg(unix)]
    #[test]
    fn an_argument_that_is_no_text_is_a_mistake() {
        use std::os::unix::ffi::OsStringExt;
        let mut flags = Flags::default();
        let mistakes = parse(&mut flags, "ccm", [OsString::from_vec(vec![b'-', b'-', 0xff])]);
        assert_eq!(mistakes.len(), 1);
        assert!(mistakes[0].message().ends_with("is not valid UTF-8"));
    }

    #[test]
    fn a_flag_is_called_like_its_field() {
        for (field, name) in super::super::table::FIELDS {
            assert_eq!(field.replace('_', "-"), *name);
        }
    }
}
