//! `cargo xtask figures`: runs the measurements and writes them down, with the machine, the day and the commands.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use lexopt::prelude::*;

use crate::docs::book::HOME;
use crate::image::{Source, text};
use crate::workspace::Workspace;
use crate::{Result, Verdict};

const PAGE: &str = "docs/reference/figures.md";

/// What is measured, in this order: the words for `bench`, and what it is about. The first word is what `--only` takes.
const BENCHES: &[(&str, &str)] = &[
    ("manager", "Size and memory of the shipped program"),
    ("nodes --real 5000", "New nodes"),
    ("cloudscale", "Services at cloudscale.ch"),
    ("binarylane", "BinaryLane"),
    ("brightbox", "Brightbox"),
    ("lycke --manager", "The data plane of Cloudlycke"),
    ("rancher", "Memory of the floating-IP cluster manager for Rancher"),
    ("kube", "The embedded Kubernetes API"),
];

/// A measurement that was made.
#[derive(Clone, Debug)]
struct Measured {
    title: &'static str,
    command: String,
    /// How long it took, with what had to be built for it.
    took: Duration,
    printed: String,
}

pub(crate) fn command(workspace: &Workspace, mut args: lexopt::Parser) -> Result<Verdict> {
    let (mut only, mut output) = (None, None);
    while let Some(arg) = args.next().map_err(|why| why.to_string())? {
        match arg {
            Long("only") => only = Some(text(&mut args)?),
            Long("output") => output = Some(PathBuf::from(text(&mut args)?)),
            other => return Err(other.unexpected().to_string()),
        }
    }
    let asked = select(only.as_deref())?;
    let machine = machine(workspace)?;
    let (mut measured, mut failed) = (Vec::new(), Vec::new());
    for (name, title) in asked {
        match measure(workspace, name, title) {
            Ok(part) => measured.push(part),
            // The others took minutes and are worth keeping.
            Err(why) => failed.push(why),
        }
    }
    let page = page(&machine, &measured);
    // A part of the figures is no page: the others would be gone, or from another day.
    let output = output.or_else(|| (only.is_none() && failed.is_empty()).then(|| workspace.path(PAGE)));
    if let Some(output) = &output {
        fs::write(output, page).map_err(|why| format!("{}: {why}", output.display()))?;
        println!("wrote {}", output.display());
        if *output == workspace.path(PAGE) && !workspace.read(HOME)?.contains("(reference/figures.md)") {
            println!("{HOME} does not list it yet: add [figures](reference/figures.md) under Reference");
        }
    } else {
        println!("\n{page}");
    }
    for why in &failed {
        println!("{why}");
    }
    if output.is_none() {
        println!(
            "{PAGE} is as it was: it is written when everything was measured, another file with --output FILE"
        );
    }
    Ok(if failed.is_empty() { Verdict::Good } else { Verdict::Bad })
}

fn select(only: Option<&str>) -> Result<Vec<(&'static str, &'static str)>> {
    let Some(only) = only else { return Ok(BENCHES.to_vec()) };
    let find = |name: &str| {
        let known = || BENCHES.iter().map(|(words, _)| first(words)).collect::<Vec<_>>().join(", ");
        BENCHES
            .iter()
            .find(|(words, _)| first(words) == name)
            .copied()
            .ok_or_else(|| format!("--only={name} is no measurement: {} are", known()))
    };
    only.split(',').map(find).collect()
}

fn first(words: &str) -> &str {
    words.split(' ').next().unwrap_or(words)
}

/// What it says about its progress goes to the person who waits.
fn measure(workspace: &Workspace, words: &str, title: &'static str) -> Result<Measured> {
    let args: Vec<&str> =
        ["run", "--release", "--package", "bench", "--"].into_iter().chain(words.split(' ')).collect();
    let command = format!("cargo {}", args.join(" "));
    println!("   {command}");
    let begin = now();
    let ran = workspace.cargo(&args).stderr(Stdio::inherit()).output();
    let ran = ran.map_err(|why| format!("{command}: {why}"))?;
    if !ran.status.success() {
        return Err(format!("{command} failed"));
    }
    let printed = String::from_utf8_lossy(&ran.stdout).into_owned();
    print!("{printed}");
    let took = Duration::try_from(now().duration_since(begin)).unwrap_or_default();
    Ok(Measured { title, command, took, printed })
}

/// The machine and the day, one line each.
fn machine(workspace: &Workspace) -> Result<Vec<(&'static str, String)>> {
    let file = |name: &str| fs::read_to_string(name).unwrap_or_default();
    let field = |text: &str, name: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once(':'));
        let found = lines.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim().to_owned());
        found.unwrap_or_else(|| "unknown".to_owned())
    };
    let said = |program: &str, arg: &str| {
        let ran = Command::new(program).arg(arg).output().ok();
        ran.map_or_else(String::new, |ran| String::from_utf8_lossy(&ran.stdout).trim().to_owned())
    };
    let cores =
        std::thread::available_parallelism().map_or_else(|_| "unknown".to_owned(), |cores| cores.to_string());
    Ok(vec![
        ("date", today()),
        ("commit", Source::look(workspace)?.revision()),
        ("processor", field(&file("/proc/cpuinfo"), "model name")),
        ("cores", cores),
        ("memory", field(&file("/proc/meminfo"), "MemTotal")),
        ("system", said("uname", "-sr")),
        ("compiler", said("rustc", "--version")),
        // What is measured beside other work says little.
        ("busy before", load(&file("/proc/loadavg"))),
    ])
}

#[expect(clippy::disallowed_methods, reason = "figures are from a day, and nothing is decided by it")]
fn now() -> jiff::Timestamp {
    jiff::Timestamp::now()
}

fn today() -> String {
    now().to_string().chars().take(10).collect()
}

/// How many programs wanted a processor in the minute before, from `/proc/loadavg`.
fn load(text: &str) -> String {
    let programs = text.split_whitespace().next();
    programs.map_or_else(|| "unknown".to_owned(), |programs| format!("{programs} programs, on average"))
}

fn page(machine: &[(&str, String)], measured: &[Measured]) -> String {
    let mut text = String::from(
        "# Figures\n\nMeasured on one computer on one day; `cargo xtask figures` measures again and writes this page. Seconds depend on \
         what else\nthe computer does, calls and sizes hardly do. A *share* is the figure divided by what it is held against: a goal, or what \
         the program\ndid that cloudberth replaces.\n\n| | |\n|---|---|\n",
    );
    for (name, value) in machine {
        let _ = writeln!(text, "| {name} | {value} |");
    }
    for part in measured {
        let _ = write!(text, "\n## {}\n\n```sh\n{}\n```\n", part.title, part.command);
        let _ = write!(text, "\nIt took {} s, with what had to be built.\n", part.took.as_secs());
        text.push_str(&shown(&part.printed));
    }
    text
}

/// Tables stay tables and get their shares; anything else stands as it was printed.
fn shown(printed: &str) -> String {
    let mut text = String::new();
    let mut lines = printed.lines().peekable();
    while let Some(first) = lines.peek().copied() {
        if first.trim().is_empty() {
            lines.next();
            continue;
        }
        let table = first.starts_with('|');
        let mut block = Vec::new();
        while let Some(line) = lines.next_if(|line| line.starts_with('|') == table && !line.trim().is_empty())
        {
            block.push(line);
        }
        if table {
            let _ = write!(text, "\n{}", with_shares(&block));
        } else {
            let _ = write!(text, "\n```text\n{}\n```\n", block.join("\n"));
        }
    }
    text
}

/// What a figure is held against, by the head of its column.
const AGAINST: [&str; 2] = ["goal", "replaced program"];

/// A share for each column that a figure is held against: the one that is called so, else the one before it.
fn with_shares(table: &[&str]) -> String {
    let cells = |line: &str| -> Vec<String> {
        line.trim().trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let head = table.first().map(|line| cells(line)).unwrap_or_default();
    let called = head.iter().position(|cell| cell == "figure");
    let against: Vec<(String, usize, usize)> = head
        .iter()
        .enumerate()
        .filter(|(_, name)| AGAINST.contains(&name.as_str()))
        .filter_map(|(at, name)| {
            let figure = called.or_else(|| at.checked_sub(1))?;
            let of = if called.is_some() { String::new() } else { format!("{}: ", head.get(figure)?) };
            Some((format!("{of}share of {name}"), figure, at))
        })
        .collect();
    let mut text = String::new();
    for (number, line) in table.iter().enumerate() {
        let _ = write!(text, "{}", line.trim_end());
        for (name, figure, at) in &against {
            let cell = match number {
                0 => format!(" {name} |"),
                1 => "---|".to_owned(),
                _ => {
                    let row = cells(line);
                    let pair = row.get(*figure).zip(row.get(*at));
                    format!(
                        " {} |",
                        pair.and_then(|(figure, other)| share(figure, other)).unwrap_or("-".to_owned())
                    )
                }
            };
            text.push_str(&cell);
        }
        text.push('\n');
    }
    text
}

/// `12.2 MB` of `15 MB` is 81 %. Figures of different units have none.
fn share(figure: &str, other: &str) -> Option<String> {
    let ((figure, unit), (other, other_unit)) = (quantity(figure)?, quantity(other)?);
    let same = unit == other_unit && other > 0.0;
    same.then(|| format!("{:.0} %", 100.0 * figure / other))
}

fn quantity(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    Some((number.parse().ok()?, unit.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "| what | figure | peak | goal | holds |\n|---|---|---|---|---|\n\
                           | size | 12.0 MB | - | 15 MB | yes |\n| calls | 6 calls | - | 5 MB | no |\n\nmeasured: `x`\nand so on\n";

    #[test]
    fn a_page_has_the_machine_the_commands_and_the_shares() {
        let measured = Measured {
            title: "Size",
            command: "cargo run --release --package bench -- manager".to_owned(),
            took: Duration::from_millis(61_500),
            printed: PRINTED.to_owned(),
        };
        let page = page(&[("date", "2026-01-02".to_owned()), ("cores", "2".to_owned())], &[measured]);
        let tail = "| | |\n|---|---|\n| date | 2026-01-02 |\n| cores | 2 |\n\n## Size\n\n```sh\n\
                    cargo run --release --package bench -- manager\n```\n\nIt took 61 s, with what had to be built.\n\n\
                    | what | figure | peak | goal | holds | share of goal |\n|---|---|---|---|---|---|\n\
                    | size | 12.0 MB | - | 15 MB | yes | 80 % |\n| calls | 6 calls | - | 5 MB | no | - |\n\n\
                    ```text\nmeasured: `x`\nand so on\n```\n";
        assert!(page.ends_with(tail), "{page}");
    }

    #[test]
    fn a_table_without_figures_stays_as_it_is() {
        let table = "| nodes | seconds |\n|---|---|\n| 1000 | 2 |\n";
        assert_eq!(shown(table), format!("\n{table}"));
    }

    #[test]
    fn without_a_column_of_figures_each_goal_is_held_against_the_column_before_it() {
        let table = "| nodes | CPU | goal | after | goal |\n|---|---|---|---|---|\n| 1000 | 0.50 ms | 1 ms | 9.0 s | - |\n";
        let want = "\n| nodes | CPU | goal | after | goal | CPU: share of goal | after: share of goal |\n\
                    |---|---|---|---|---|---|---|\n| 1000 | 0.50 ms | 1 ms | 9.0 s | - | 50 % | - |\n";
        assert_eq!(shown(table), want);
        assert_eq!(load("0.42 0.5 0.6 1/200 99\n"), "0.42 programs, on average");
        assert_eq!(load(""), "unknown");
    }

    #[test]
    fn a_share_needs_two_quantities_of_one_unit() {
        let table = [
            ("1.37 s", "1.5 s", Some("91 %")),
            ("20 calls", "21 calls", Some("95 %")),
            ("3", "2", Some("150 %")),
            ("3 s", "3 calls", None),
            ("3 s", "0 s", None),
            ("-", "3 s", None),
            ("3 s", "", None),
        ];
        for (figure, other, expected) in table {
            assert_eq!(share(figure, other).as_deref(), expected, "{figure} {other}");
        }
    }

    #[test]
    fn measurements_are_picked_by_name_and_all_are_known_to_bench() {
        assert_eq!(select(Some("kube,nodes")).unwrap().len(), 2);
        assert!(select(Some("speed")).unwrap_err().contains("manager, nodes"));
        let workspace = Workspace::find().unwrap();
        let main = workspace.read("testing/bench/src/main.rs").unwrap().to_lowercase();
        let files =
            workspace.files("rs").unwrap().into_iter().filter(|file| file.starts_with("testing/bench/"));
        let all: String = files.map(|file| workspace.read(&file).unwrap()).collect();
        for (words, _) in BENCHES {
            assert!(main.contains(&format!("show(\"bench {}\"", first(words))), "{words}");
            for option in words.split(' ').filter_map(|word| word.strip_prefix("--")) {
                let field = format!("    {}: ", option.replace('-', "_"));
                assert!(all.contains(&field), "{words}: no measurement takes --{option}");
            }
        }
    }
}
