//! What is shown, and how: lines that stay, and on a terminal a last one that says what is waited for.

use std::{
    io::{self, Write},
    sync::Arc,
};

use cloudberth_core::{Clock, Tick};

/// Where lines go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// A file or a pipe.
    Plain,
    /// A terminal; with colours, unless somebody does not want them.
    Terminal { colours: bool },
}

/// Writes lines with the seconds since the start.
pub(super) struct Printer<W> {
    out: W,
    clock: Arc<dyn Clock>,
    begun: Tick,
    style: Style,
    /// The last line is to be overwritten.
    waiting: bool,
}

const BOLD: &str = "\x1b[1m";
const DIM: &str = "\x1b[2m";
const GREEN: &str = "\x1b[32m";
const RED: &str = "\x1b[31m";
const PLAIN: &str = "\x1b[0m";
const ERASE: &str = "\r\x1b[2K";
/// As wide as the seconds, for lines that carry on.
const MARGIN: &str = "         ";
/// A line that is overwritten must not wrap.
const WIDTH: usize = 76;

impl<W: Write> Printer<W> {
    pub(super) fn new(out: W, clock: Arc<dyn Clock>, style: Style) -> Self {
        let begun = clock.now();
        Self { out, clock, begun, style, waiting: false }
    }

    pub(super) fn seconds(&self) -> String {
        format!("{:.1} s", self.clock.now().since(self.begun).as_secs_f64())
    }

    fn paint(&self, code: &str, text: &str) -> String {
        if self.style == (Style::Terminal { colours: true }) {
            format!("{code}{text}{PLAIN}")
        } else {
            text.to_owned()
        }
    }

    fn timed(&mut self, text: &str) -> io::Result<()> {
        let seconds = self.paint(DIM, &format!("{:>7}", self.seconds()));
        self.plain(&format!("{seconds}  {text}"))
    }

    pub(super) fn plain(&mut self, text: &str) -> io::Result<()> {
        let erase = if std::mem::take(&mut self.waiting) { ERASE } else { "" };
        writeln!(self.out, "{erase}{text}")?;
        self.out.flush()
    }

    pub(super) fn step(&mut self, text: &str) -> io::Result<()> {
        self.plain("")?;
        self.timed(&self.paint(BOLD, text))
    }

    pub(super) fn aside(&mut self, text: &str) -> io::Result<()> {
        let text = self.paint(DIM, text);
        self.plain(&format!("{MARGIN}{text}"))
    }

    pub(super) fn saw(&mut self, text: &str) -> io::Result<()> {
        let mark = self.paint(GREEN, "saw");
        self.timed(&format!("  {mark}  {text}"))
    }

    pub(super) fn missed(&mut self, text: &str, instead: Option<&str>) -> io::Result<()> {
        let mark = self.paint(RED, "NOT SEEN");
        self.timed(&format!("  {mark}  {text}"))?;
        instead.map_or(Ok(()), |instead| self.plain(&format!("{MARGIN}  instead   {instead}")))
    }

    /// Says on a terminal what is waited for, in a line that the next one replaces.
    pub(super) fn waits(&mut self, text: &str) -> io::Result<()> {
        if self.style == Style::Plain {
            return Ok(());
        }
        let line: String = format!("{:>7}  ...  {text}", self.seconds()).chars().take(WIDTH).collect();
        let line = self.paint(DIM, &line);
        write!(self.out, "{ERASE}{line}")?;
        self.waiting = true;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use cloudberth_http::surroundings::SystemClock;

    use super::*;

    fn printed(style: Style) -> String {
        let mut out = Vec::new();
        let mut printer = Printer::new(&mut out, Arc::new(SystemClock::new()), style);
        printer.waits("a node").unwrap();
        printer.saw("it").unwrap();
        printer.missed("that", Some("this")).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_terminal_gets_what_moves() {
        let want = "  0.0 s    saw  it\n  0.0 s    NOT SEEN  that\n           instead   this\n";
        assert_eq!(printed(Style::Plain), want);
        let live = printed(Style::Terminal { colours: false });
        assert_eq!(live, format!("{ERASE}  0.0 s  ...  a node{ERASE}{want}"));
        assert!(printed(Style::Terminal { colours: true }).contains(GREEN));
    }
}
