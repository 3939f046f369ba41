//! Shows a world: a live view on a terminal, plain lines elsewhere. What is typed is carried out.

use std::{
    io::{self, Write as _},
    thread,
    time::Duration,
};

use cloudberth::world::Watched;
use tokio::sync::{mpsc, watch};

use super::{
    lines::{is_news, line},
    screen::{Size, screen},
    typed::read,
};

/// The view is painted at most so often.
const FRAME: Duration = Duration::from_millis(200);

/// Prints text for people.
pub(super) fn say(text: &str) {
    let mut out = io::stdout();
    // Nobody reads any more; the world goes on until it is told to end.
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// Lines that are typed. They are read on a thread: standard input cannot be waited for otherwise.
fn typed() -> mpsc::UnboundedReceiver<String> {
    let (sender, lines) = mpsc::unbounded_channel();
    thread::spawn(move || {
        let mut text = String::new();
        while io::stdin().read_line(&mut text).is_ok_and(|read| read > 0) {
            if sender.send(std::mem::take(&mut text)).is_err() {
                return;
            }
        }
    });
    lines
}

/// Carries out what was typed, and returns what to say about it.
async fn carry_out(world: &dyn Watched, typed: &str) -> Option<String> {
    match read(typed) {
        Ok(None) => None,
        // What was done is told by the journal.
        Ok(Some(command)) => world.run(command).await.err(),
        Err(why) => Some(why),
    }
}

enum Woken {
    Changed(Result<(), watch::error::RecvError>),
    Typed(Option<String>),
}

/// One line for each thing that happens, for ever.
pub(super) async fn plain(world: &dyn Watched) -> io::Result<()> {
    let (mut changes, mut typed) = (world.changes(), typed());
    let (mut last, mut input) = (0, true);
    loop {
        for entry in world.happenings(last) {
            last = entry.seq;
            if is_news(&entry) {
                writeln!(io::stdout(), "{}", line(&entry))?;
            }
        }
        io::stdout().flush()?;
        let woken = tokio::select! {
            heard = changes.changed() => Woken::Changed(heard),
            line = typed.recv(), if input => Woken::Typed(line),
        };
        match woken {
            Woken::Changed(heard) => heard.map_err(io::Error::other)?,
            Woken::Typed(Some(line)) => {
                if let Some(said) = carry_out(world, &line).await {
                    writeln!(io::stdout(), "{said}")?;
                }
            }
            // The end of the input is not the end of the sandbox.
            Woken::Typed(None) => input = false,
        }
    }
}

/// A view that is painted over and over, for ever. The last row is for what is typed.
pub(super) async fn live(world: &dyn Watched, kubeconfig: &str, hints: &[String]) -> io::Result<()> {
    let (mut changes, mut typed) = (world.changes(), typed());
    let (mut input, mut said) = (true, String::new());
    let _screen = AlternateScreen::enter()?;
    prompt()?;
    loop {
        paint(world, kubeconfig, hints, &said)?;
        let woken = tokio::select! {
            heard = changes.changed() => Woken::Changed(heard),
            line = typed.recv(), if input => Woken::Typed(line),
        };
        match woken {
            Woken::Changed(heard) => {
                heard.map_err(io::Error::other)?;
                tokio::time::sleep(FRAME).await;
            }
            Woken::Typed(Some(line)) => {
                said = carry_out(world, &line).await.unwrap_or_default();
                prompt()?;
            }
            Woken::Typed(None) => input = false,
        }
    }
}

fn size() -> Size {
    let found = rustix::termios::tcgetwinsize(io::stdout()).ok();
    let found = found.filter(|size| size.ws_row > 0 && size.ws_col > 0);
    let (rows, columns) = found.map_or((24, 80), |size| (size.ws_row, size.ws_col));
    Size { columns: usize::from(columns), rows: usize::from(rows) }
}

/// Paints all rows but the last two, and leaves the cursor, and what is being typed, where they are.
fn paint(world: &dyn Watched, kubeconfig: &str, hints: &[String], said: &str) -> io::Result<()> {
    let Size { columns, rows } = size();
    let room = Size { columns, rows: rows.saturating_sub(2) };
    let lines = screen(&world.snapshot(), &world.happenings(0), kubeconfig, hints, room);
    let mut frame = String::from("\x1b7");
    for row in 0..room.rows {
        let text = lines.get(row).map_or("", String::as_str);
        frame.extend([&move_to(row + 1), text]);
    }
    let said: String = said.chars().take(columns).collect();
    frame.extend([&move_to(rows.saturating_sub(1)), said.as_str(), "\x1b8"]);
    let mut out = io::stdout();
    out.write_all(frame.as_bytes())?;
    out.flush()
}

/// To the beginning of a row, which is emptied.
fn move_to(row: usize) -> String {
    format!("\x1b[{row};1H\x1b[2K")
}

fn prompt() -> io::Result<()> {
    write!(io::stdout(), "{}> ", move_to(size().rows))?;
    io::stdout().flush()
}

/// A screen of its own: what was on the terminal before is there again afterwards.
struct AlternateScreen;

impl AlternateScreen {
    fn enter() -> io::Result<Self> {
        write!(io::stdout(), "\x1b[?1049h\x1b[2J")?;
        io::stdout().flush()?;
        Ok(Self)
    }
}

impl Drop for AlternateScreen {
    fn drop(&mut self) {
        let _ = write!(io::stdout(), "\x1b[?1049l").and_then(|()| io::stdout().flush());
    }
}
