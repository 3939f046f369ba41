//! Running a command so that a person sees all of its output and we see the lines that matter.

use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};
use std::process::{Command, Stdio};
use std::thread;

use crate::Result;

/// How a command ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) ok: bool,
    /// Warnings of the compiler or of cargo, which do not change the exit code by themselves.
    pub(crate) warnings: Vec<String>,
}

/// Runs `command` to its end and passes its output through as it comes. Every line of its standard output
/// goes to `on_line` too, without colours.
pub(crate) fn stream(command: &mut Command, on_line: impl FnMut(&str) + Send) -> Result<Ran> {
    if io::stderr().is_terminal() {
        command.env("CARGO_TERM_COLOR", "always");
    }
    let (out, err) = screen();
    stream_to(command, on_line, out, err)
}

/// Like [`stream`], but its standard output is for us alone.
pub(crate) fn listen(command: &mut Command, on_line: impl FnMut(&str) + Send) -> Result<Ran> {
    if io::stderr().is_terminal() {
        command.env("CARGO_TERM_COLOR", "always");
    }
    stream_to(command, on_line, io::sink(), screen().1)
}

/// Like [`stream`], but all of its output is shown at once when it has ended, so that commands can run side by side.
pub(crate) fn stream_as_one(command: &mut Command, on_line: impl FnMut(&str) + Send) -> Result<Ran> {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let ran = stream_to(command, on_line, &mut out, &mut err);
    let mut screen = screen().0;
    // As with a pipe that breaks, the exit code still counts. One piece, so that nobody else's lines come in between.
    let _ = screen.write_all(&[out, err].concat()).and_then(|()| screen.flush());
    ran
}

#[cfg(not(test))]
fn screen() -> (io::Stdout, io::Stderr) {
    (io::stdout(), io::stderr())
}

/// Tests run commands too, whose results must not be mistaken for results of the tests.
#[cfg(test)]
fn screen() -> (io::Sink, io::Sink) {
    (io::sink(), io::sink())
}

fn stream_to(
    command: &mut Command,
    mut on_line: impl FnMut(&str) + Send,
    to_out: impl Write + Send,
    to_err: impl Write,
) -> Result<Ran> {
    let name = format!("{command:?}");
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|why| format!("{name}: {why}"))?;
    let (Some(out), Some(err)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(format!("{name}: its output is not connected"));
    };
    let warnings = thread::scope(|scope| {
        scope.spawn(|| pump(out, to_out, &mut on_line));
        let mut warnings = Vec::new();
        pump(err, to_err, &mut |line| {
            if is_warning(line) {
                warnings.push(line.to_owned());
            }
        });
        warnings
    });
    let status = child.wait().map_err(|why| format!("{name}: {why}"))?;
    Ok(Ran { ok: status.success(), warnings })
}

/// A pipe that breaks ends the copy, not the chore: the exit code still counts.
fn pump(from: impl Read, mut to: impl Write, on_line: &mut dyn FnMut(&str)) {
    let mut from = BufReader::new(from);
    let mut raw = Vec::new();
    while from.read_until(b'\n', &mut raw).is_ok_and(|read| read > 0) {
        let _ = to.write_all(&raw).and_then(|()| to.flush());
        on_line(&plain(String::from_utf8_lossy(&raw).trim_end()));
        raw.clear();
    }
}

fn is_warning(line: &str) -> bool {
    line.starts_with("warning: ") || line.starts_with("warning[")
}

/// The text without terminal colours (`ESC [ … m`).
fn plain(line: &str) -> String {
    let mut parts = line.split('\u{1b}');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push_str(part.split_once('m').map_or("", |(_, rest)| rest));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines seen, and what was passed through on the two sides.
    fn shell(script: &str) -> (Ran, Vec<String>, [String; 2]) {
        let (mut lines, mut out, mut err) = (Vec::new(), Vec::new(), Vec::new());
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let ran = stream_to(&mut command, |line| lines.push(line.to_owned()), &mut out, &mut err).unwrap();
        (ran, lines, [out, err].map(|bytes| String::from_utf8(bytes).unwrap()))
    }

    #[test]
    fn lines_warnings_and_the_exit_code_are_seen() {
        let (ran, lines, [out, err]) =
            shell("echo one; echo 'warning: unused' >&2; echo 'a warning: no' >&2; printf two; exit 3");
        assert_eq!(lines, ["one", "two"]);
        assert_eq!(ran, Ran { ok: false, warnings: vec!["warning: unused".to_owned()] });
        assert_eq!((out.as_str(), err.as_str()), ("one\ntwo", "warning: unused\na warning: no\n"));
    }

    #[test]
    fn a_long_output_on_both_sides_does_not_block() {
        let (ran, lines, _) =
            shell("i=0; while [ $i -lt 3000 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done");
        assert!(ran.ok && lines.len() == 3000);
    }

    #[test]
    fn a_command_that_cannot_start_is_an_error_that_names_it() {
        let why = stream(&mut Command::new("no-such-program-here"), |_| {}).unwrap_err();
        assert!(why.contains("no-such-program-here"), "{why}");
    }

    #[test]
    fn colours_do_not_hide_words() {
        let table = [
            ("plain", "plain"),
            ("\u{1b}[1m\u{1b}[33mwarning\u{1b}[0m: unused", "warning: unused"),
            ("cut \u{1b}[3", "cut "),
        ];
        for (line, want) in table {
            assert_eq!(plain(line), want);
        }
        assert!(is_warning(&plain("\u{1b}[33mwarning\u{1b}[0m: unused")));
        assert!(is_warning("warning[E0001]: odd") && !is_warning("warnings are fine"));
    }
}
