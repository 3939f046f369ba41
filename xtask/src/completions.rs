//! `cargo xtask completions`: shell completions and man pages. `examples/completions` writes them, from the command line of
//! the program.

use std::path::PathBuf;
use std::process::Command;

use lexopt::prelude::*;

use crate::process::stream;
use crate::workspace::Workspace;
use crate::{Result, Verdict, built};

/// Writes to `target/completions` and `target/man`, or below the folder that is named.
pub(crate) fn command(workspace: &Workspace, mut args: lexopt::Parser) -> Result<Verdict> {
    let mut folder = workspace.path("target");
    while let Some(arg) = args.next().map_err(|why| why.to_string())? {
        match arg {
            Long("into") => folder = PathBuf::from(args.value().map_err(|why| why.to_string())?),
            other => return Err(other.unexpected().to_string()),
        }
    }
    let writer = built::example(workspace, "completions")?;
    let ran = stream(Command::new(writer).arg(folder), |_| ())?;
    Ok(if ran.ok { Verdict::Good } else { Verdict::Bad })
}
