//! What is shown, and how.

use std::{
    io::{self, Write},
    sync::Arc,
};

use cloudberth_core::{Clock, Tick};

/// Writes lines with the seconds since the start.
pub(super) struct Printer<W> {
    out: W,
    clock: Arc<dyn Clock>,
    begun: Tick,
    colours: bool,
}

const BOLD: &str = "\x1b[1m";
const DIM: &str = "\x1b[2m";
const GREEN: &str = "\x1b[32m";
const RED: &str = "\x1b[31m";
const PLAIN: &str = "\x1b[0m";
/// As wide as the seconds, for lines that carry on.
const MARGIN: &str = "         ";

impl<W: Write> Printer<W> {
    pub(super) fn new(out: W, clock: Arc<dyn Clock>, colours: bool) -> Self {
        let begun = clock.now();
        Self { out, clock, begun, colours }
    }

    pub(super) fn seconds(&self) -> String {
        format!("{:.1} s", self.clock.now().since(self.begun).as_secs_f64())
    }

    fn paint(&self, code: &str, text: &str) -> String {
        if self.colours { format!("{code}{text}{PLAIN}") } else { text.to_owned() }
    }

    fn timed(&mut self, text: &str) -> io::Result<()> {
        let seconds = self.paint(DIM, &format!("{:>7}", self.seconds()));
        writeln!(self.out, "{seconds}  {text}")?;
        self.out.flush()
    }

    pub(super) fn plain(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.out, "{text}")?;
        self.out.flush()
    }

    pub(super) fn step(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.out)?;
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

    pub(super) fn waits(&mut self, text: &str) -> io::Result<()> {
        let text = self.paint(DIM, &format!("  ...  {text}"));
        self.timed(&text)
    }

    pub(super) fn missed(&mut self, text: &str) -> io::Result<()> {
        let mark = self.paint(RED, "NOT SEEN");
        self.timed(&format!("  {mark}  {text}"))
    }
}
