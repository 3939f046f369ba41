//! `cargo xtask picture`: runs the demo and draws what it printed as the terminal picture of the README.
//!
//! The picture is text in an SVG: it is sharp at any size, can be searched, and a change of it can be read in a diff.

use std::{fmt::Write as _, fs, process::Stdio};

use lexopt::prelude::*;

use crate::workspace::Workspace;
use crate::{Result, Verdict};

const FILE: &str = "docs/images/demo.svg";

/// So wide is the terminal; longer lines are cut, as on a terminal.
const COLUMNS: usize = 124;
const LINE_HEIGHT: usize = 18;
const CHARACTER_WIDTH: usize = 8;
const MARGIN: usize = 16;
const TITLE_BAR: usize = 32;

pub(crate) fn command(workspace: &Workspace, mut args: lexopt::Parser) -> Result<Verdict> {
    let mut from = None;
    while let Some(arg) = args.next().map_err(|why| why.to_string())? {
        match arg {
            Long("from") => from = Some(args.value().map_err(|why| why.to_string())?),
            other => return Err(other.unexpected().to_string()),
        }
    }
    let text = match from {
        Some(file) => fs::read_to_string(&file).map_err(|why| format!("{}: {why}", file.display()))?,
        None => demo(workspace)?,
    };
    if !text.contains("All of it happened") {
        return Err(format!("the demo did not come to its end:\n{text}"));
    }
    let path = workspace.path(FILE);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|why| format!("{}: {why}", folder.display()))?;
    }
    fs::write(&path, draw("cloudberth demo", &text)).map_err(|why| format!("{}: {why}", path.display()))?;
    println!("wrote {FILE}");
    Ok(Verdict::Good)
}

/// What a person sees who runs the demo.
fn demo(workspace: &Workspace) -> Result<String> {
    println!("running the demo");
    let mut command =
        workspace.cargo(&["run", "--quiet", "--release", "--package", "cloudberth", "--", "demo"]);
    let ran =
        command.stdin(Stdio::null()).stderr(Stdio::inherit()).output().map_err(|why| why.to_string())?;
    Ok(String::from_utf8_lossy(&ran.stdout).into_owned())
}

/// What a line is, which decides its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Looks {
    Plain,
    /// What somebody does.
    Step,
    /// What was seen.
    Saw,
    Aside,
}

impl Looks {
    fn of(line: &str) -> Self {
        let timed = line.split_once(" s  ").filter(|(seconds, _)| seconds.trim().parse::<f64>().is_ok());
        match timed {
            Some((_, rest)) if rest.starts_with("  saw  ") => Self::Saw,
            Some(_) => Self::Step,
            None if line.starts_with("         ") => Self::Aside,
            None => Self::Plain,
        }
    }

    const fn class(self) -> &'static str {
        match self {
            Self::Plain => "p",
            Self::Step => "b",
            Self::Saw => "s",
            Self::Aside => "d",
        }
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// A terminal window with these lines.
fn draw(title: &str, text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| line.chars().take(COLUMNS).collect()).collect();
    let width = COLUMNS * CHARACTER_WIDTH + 2 * MARGIN;
    let height = TITLE_BAR + (lines.len() + 1) * LINE_HEIGHT + MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"What {title} \
         prints\">\n<style>\ntext {{ font: 13px ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace; white-space: pre; \
         fill: #d7dae0 }}\n.b {{ font-weight: bold; fill: #ffffff }}\n.s {{ fill: #8bd49c }}\n.d {{ fill: #8a919e }}\n.t {{ fill: \
         #8a919e; font-weight: normal }}\n</style>\n<rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"#16181d\"/>\n"
    );
    for (at, colour) in [(20, "#ec6a5e"), (40, "#f4bf4f"), (60, "#61c554")] {
        let _ = writeln!(svg, "<circle cx=\"{at}\" cy=\"16\" r=\"6\" fill=\"{colour}\"/>");
    }
    let _ = writeln!(
        svg,
        "<text x=\"{}\" y=\"21\" class=\"t\" text-anchor=\"middle\">{}</text>",
        width / 2,
        escape(title)
    );
    for (number, line) in lines.iter().enumerate().filter(|(_, line)| !line.is_empty()) {
        let y = TITLE_BAR + (number + 1) * LINE_HEIGHT;
        let looks = Looks::of(line);
        let body = match line.split_once(" s  ") {
            Some((seconds, rest)) if matches!(looks, Looks::Step | Looks::Saw) => {
                format!("<tspan class=\"t\">{seconds} s</tspan>  {}", escape(rest))
            }
            _ => escape(line),
        };
        let _ = writeln!(
            svg,
            "<text x=\"{MARGIN}\" y=\"{y}\" class=\"{}\" xml:space=\"preserve\">{body}</text>",
            looks.class()
        );
    }
    svg.push_str("</svg>\n");
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_looks_like_what_it_is() {
        let table = [
            ("  0.1 s  The manager starts.", Looks::Step),
            ("  0.1 s    saw  node/node-1 <b>", Looks::Saw),
            ("         (An aside.)", Looks::Aside),
            ("All of it happened, in 20.1 s. It took:", Looks::Plain),
            ("  cloud calls           12  reading", Looks::Plain),
        ];
        for (line, want) in table {
            assert_eq!(Looks::of(line), want, "{line}");
        }
    }

    #[test]
    fn the_picture_is_the_text() {
        let long = "x".repeat(COLUMNS + 1);
        let svg = draw("t", &format!("a < b & c\n\n  0.1 s    saw  it\n{long}\n"));
        assert!(svg.contains(">a &lt; b &amp; c</text>"), "{svg}");
        assert!(
            svg.contains(
                "class=\"s\" xml:space=\"preserve\"><tspan class=\"t\">  0.1 s</tspan>    saw  it</text>"
            ),
            "{svg}"
        );
        assert!(svg.contains(&"x".repeat(COLUMNS)) && !svg.contains(&long), "too long a line is cut");
        assert_eq!(svg.matches("<text").count(), 4, "an empty line needs no text, the title does");
    }
}
