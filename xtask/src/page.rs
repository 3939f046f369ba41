//! The sandbox's page in a real browser: the stage of the suite, and the picture of it in the README.

use std::fs;
use std::path::PathBuf;

use lexopt::prelude::*;

use crate::browser;
use crate::kube::guarded;
use crate::stages::Outcome;
use crate::workspace::Workspace;
use crate::{Result, Verdict};

/// The tests that need a browser have this in their names; the unit stage leaves them out.
pub(crate) const IN_A_BROWSER: &str = "in_a_browser";
/// The picture that the tests leave behind, when they have come to the middle of the story.
const PICTURE: &str = "target/tmp/page/sandbox.png";

/// `cargo xtask page`.
pub(crate) fn command(workspace: &Workspace, mut args: lexopt::Parser) -> Result<Verdict> {
    let mut picture = None;
    while let Some(arg) = args.next().map_err(|why| why.to_string())? {
        match arg {
            Long("picture") => {
                picture = Some(PathBuf::from(args.value().map_err(|why| why.to_string())?));
            }
            other => return Err(other.unexpected().to_string()),
        }
    }
    let outcome = stage(workspace)?;
    for problem in &outcome.problems {
        println!("{problem}");
    }
    if !outcome.problems.is_empty() {
        return Ok(Verdict::Bad);
    }
    if let Some(file) = picture {
        let from = workspace.path(PICTURE);
        fs::copy(&from, &file).map_err(|why| format!("{} to {}: {why}", from.display(), file.display()))?;
        println!("the picture is in {}", file.display());
    }
    Ok(Verdict::Good)
}

/// One browser at a time: several of them on a busy machine are slow, and their pictures late.
pub(crate) fn stage(workspace: &Workspace) -> Result<Outcome> {
    let browser = browser::provide()?;
    println!("   with {}", browser.display());
    let tests = workspace.built()?.test("cloudberth", "page")?;
    let browser = browser.to_string_lossy();
    let outcome = guarded(&[("CLOUDBERTH_CHROMIUM", &browser)], |env| tests.run(&["--test-threads=1"], env))?;
    println!("   pictures are in {}", workspace.path("target/tmp/page").display());
    Ok(outcome)
}
