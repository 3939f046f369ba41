//! Shell completions and man pages of the shipped program, made from its command line.
//!
//! The commands that take the flags of the controller manager read these with a parser of their own, so the flags are
//! put into the description of the command line here, from the table that the parser reads too.

#![allow(clippy::print_stdout, reason = "it tells the person who asked for them")]

use std::{fs, path::PathBuf};

use clap::{Arg, ArgAction, Command, CommandFactory};
use clap_complete::Shell;
use cloudberth::commands::{Program, Shipped};
use cloudberth_manager::flags::{AnyFlag, Flags, Note};

fn main() -> Result<(), String> {
    let folder = std::env::args_os().nth(1).map(PathBuf::from).ok_or("say which folder they go to")?;
    let written = write(&folder)?;
    println!("{} files in {}/completions and {}/man", written.len(), folder.display(), folder.display());
    Ok(())
}

fn write(folder: &std::path::Path) -> Result<Vec<PathBuf>, String> {
    let made = |name: &str| {
        let path = folder.join(name);
        fs::create_dir_all(&path).map_err(|why| format!("{}: {why}", path.display()))?;
        Ok::<_, String>(path)
    };
    let (completions, man) = (made("completions")?, made("man")?);
    let mut written = Vec::new();
    for shell in [Shell::Bash, Shell::Fish, Shell::Zsh] {
        let file = clap_complete::generate_to(shell, &mut command_line(), "cloudberth", &completions);
        written.push(file.map_err(|why| format!("{}: {why}", completions.display()))?);
    }
    clap_mangen::generate_to(command_line(), &man).map_err(|why| format!("{}: {why}", man.display()))?;
    let pages = fs::read_dir(&man).map_err(|why| format!("{}: {why}", man.display()))?;
    written.extend(pages.filter_map(|page| Some(page.ok()?.path())));
    Ok(written)
}

/// The command line with the flags that another parser reads.
fn command_line() -> Command {
    let mut program = Program::command();
    for name in Shipped::WITH_FLAGS {
        program = program.mut_subcommand(name, |command| {
            let command = command.args(flags());
            if name == "orphans" { command.arg(delete()) } else { command }
        });
    }
    program
}

fn flags() -> Vec<Arg> {
    let flags = Flags::default();
    let shown = flags.all().into_iter().filter(|flag| !matches!(flag.about().note, Note::Deprecated(_)));
    shown.map(flag).collect()
}

fn flag(flag: &dyn AnyFlag) -> Arg {
    let about = flag.about();
    let arg = Arg::new(about.name).long(about.name).help(about.help);
    let arg = about.letter().map_or(arg.clone(), |letter| arg.short(letter));
    if flag.alone().is_some() { arg.action(ArgAction::SetTrue) } else { arg.value_name(flag.type_name()) }
}

fn delete() -> Arg {
    Arg::new("delete").long("delete").num_args(0..).value_name("NAME").help("Delete these; it comes last.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_and_every_command_has_its_file() {
        let folder = std::env::temp_dir().join(format!("cloudberth-completions-{}", std::process::id()));
        let written = write(&folder).unwrap();
        let text = |name: &str| {
            let path = written.iter().find(|path| path.ends_with(name));
            fs::read_to_string(path.unwrap_or_else(|| panic!("{name}: {written:?}"))).unwrap()
        };
        for file in ["cloudberth.bash", "cloudberth.fish", "_cloudberth"] {
            let text = text(file);
            for word in ["lint", "doctor", "orphans", "cloud-provider", "leader-elect"] {
                assert!(text.contains(word), "{file} lacks {word}");
            }
            assert!(!text.contains("allow-untagged-cloud"), "{file} has what --help does not show");
        }
        assert!(text("cloudberth.1").contains("lint"));
        assert!(text("cloudberth-doctor.1").contains("kubeconfig"));
        assert!(text("cloudberth-orphans.1").contains("delete"));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn the_description_is_sound() {
        command_line().debug_assert();
    }
}
