//! `cargo xtask image`: an image for each processor, byte for byte the same for the same sources and tools, with its
//! bill of materials, its provenance and the licences of what is in it.

mod build;
mod check;
mod helm;
mod inspect;
mod licences;
mod make;
mod oci;
mod provenance;
mod rootfs;
mod sandbox;
mod sbom;
mod servers;
mod variant;

use std::path::PathBuf;

use lexopt::prelude::*;

use crate::workspace::Workspace;
use crate::{Result, Verdict};
#[cfg(test)]
pub(crate) use inspect::{docker, images};
#[cfg(test)]
pub(crate) use make::MadeImage;
pub(crate) use make::{Made, SUMMARY, executable, found, make, read_tree};
pub(crate) use provenance::Source;
pub(crate) use variant::{Arch, Variant};

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    /// None: all for which this machine has what it takes.
    pub(crate) archs: Option<Vec<Arch>>,
    pub(crate) variant: Variant,
    /// None: below the target directory.
    pub(crate) output: Option<PathBuf>,
    /// A program that there is already, for the processor of this machine, in place of one that is built.
    pub(crate) program: Option<PathBuf>,
    /// The name by which clusters will know the image, without a tag.
    pub(crate) name: String,
    /// Start the program of the image in a sandbox.
    pub(crate) start: bool,
    /// Build it a second time before that, from nothing.
    pub(crate) check: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            archs: None,
            variant: Variant::Plain,
            output: None,
            program: None,
            name: "cloudberth".to_owned(),
            start: false,
            check: false,
        }
    }
}

/// `cargo xtask image`.
pub(crate) fn command(workspace: &Workspace, mut args: lexopt::Parser) -> Result<Verdict> {
    let options = options(&mut args)?;
    if options.check || options.start {
        return check::run(workspace, &options);
    }
    let made = make(workspace, &options, None)?;
    print!("{}", made.report());
    Ok(Verdict::Good)
}

/// The text that belongs to an option.
pub(crate) fn text(args: &mut lexopt::Parser) -> Result<String> {
    args.value().and_then(ValueExt::string).map_err(|why| why.to_string())
}

fn options(args: &mut lexopt::Parser) -> Result<Options> {
    let mut options = Options::default();
    while let Some(arg) = args.next().map_err(|why| why.to_string())? {
        match arg {
            Long("arch") => options.archs = Some(Arch::parse_list(&text(args)?)?),
            Long("variant") => options.variant = Variant::parse(&text(args)?)?,
            Long("output") => options.output = Some(PathBuf::from(text(args)?)),
            Long("name") => options.name = text(args)?,
            Long("start") => options.start = true,
            Long("check") => options.check = true,
            other => return Err(other.unexpected().to_string()),
        }
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_mistakes_named() {
        let read = |args: &[&str]| options(&mut lexopt::Parser::from_args(args));
        let expected = Options {
            archs: Some(vec![Arch::Arm64]),
            variant: Variant::Rancher,
            output: Some("out".into()),
            ..Options::default()
        };
        assert_eq!(read(&["--arch=arm64", "--variant", "rancher", "--output=out"]), Ok(expected));
        assert_eq!(read(&[]), Ok(Options::default()));
        assert!(read(&["--arch=arm"]).unwrap_err().contains("--arch=arm is not known"));
        assert!(read(&["--variant"]).unwrap_err().contains("--variant"));
    }
}
