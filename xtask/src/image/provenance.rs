//! Where an image comes from: sources, tools and settings, as an in-toto statement. It is not signed.

use serde_json::{Value, json};

use super::build::{LINKER, PROFILE, said};
use super::variant::{Arch, Variant};
use crate::Result;
use crate::archive::Sha256;
use crate::workspace::Workspace;

/// What git says about the checkout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) commit: String,
    /// Something differs from the commit.
    pub(crate) dirty: bool,
    /// Seconds since 1970 at which the commit was made, or what `SOURCE_DATE_EPOCH` says.
    pub(crate) seconds: i64,
}

impl Source {
    pub(crate) fn look(workspace: &Workspace) -> Result<Self> {
        let git = |args: &[&str]| {
            let mut command = std::process::Command::new("git");
            said(command.args(args).current_dir(workspace.path("")))
        };
        let text = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        // An archive of the sources has no history: its image is from 1970 and says so.
        let Ok(commit) = git(&["log", "-1", "--format=%H %ct"]) else {
            return source("unknown 0", true, text("SOURCE_DATE_EPOCH").as_deref());
        };
        let dirty = !git(&["status", "--porcelain"])?.trim().is_empty();
        source(&commit, dirty, text("SOURCE_DATE_EPOCH").as_deref())
    }

    /// The commit, marked if the checkout has more than that.
    pub(crate) fn revision(&self) -> String {
        format!("{}{}", self.commit, if self.dirty { "-dirty" } else { "" })
    }

    pub(crate) fn created(&self) -> Result<String> {
        let time = jiff::Timestamp::from_second(self.seconds);
        time.map(|time| time.to_string()).map_err(|why| format!("{} is no time: {why}", self.seconds))
    }
}

fn source(line: &str, dirty: bool, epoch: Option<&str>) -> Result<Source> {
    let (commit, time) = line.trim().split_once(' ').ok_or_else(|| format!("git log printed {line}"))?;
    let seconds = epoch.unwrap_or(time).parse();
    let seconds = seconds.map_err(|_| format!("SOURCE_DATE_EPOCH={} is no number", epoch.unwrap_or(time)))?;
    Ok(Source { commit: commit.to_owned(), dirty, seconds })
}

/// What is stated.
#[derive(Clone, Debug)]
pub(crate) struct Statement<'a> {
    pub(crate) variant: Variant,
    pub(crate) arch: Arch,
    pub(crate) version: &'a str,
    pub(crate) source: &'a Source,
    /// What `rustc -vV` prints.
    pub(crate) rustc: &'a str,
    /// The first line that the C compiler says of itself; none for a program that was not built here.
    pub(crate) compiler: Option<&'a str>,
    pub(crate) lock: &'a Sha256,
    pub(crate) program: &'a Sha256,
    pub(crate) archive: &'a Sha256,
    /// Of the manifest, with `sha256:` before it.
    pub(crate) image: &'a str,
    pub(crate) helm: Option<&'a str>,
}

pub(crate) fn statement(facts: &Statement<'_>) -> Value {
    let file = facts.variant.file(facts.version, facts.arch);
    let subject = |name: String, digest: &str| json!({"name": name, "digest": {"sha256": digest}});
    let rustc: serde_json::Map<String, Value> = facts
        .rustc
        .lines()
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_owned(), json!(value)))
        .collect();
    let sources = json!({
        "name": "sources", "digest": {"gitCommit": facts.source.commit}, "annotations": {"dirty": facts.source.dirty},
    });
    let lock = json!({"name": "Cargo.lock", "digest": {"sha256": facts.lock.hex()}});
    let (tools, used) = match facts.compiler {
        Some(compiler) => {
            let tools = json!({
                "target": facts.arch.target(),
                "profile": PROFILE,
                "features": facts.variant.features(),
                "rustc": rustc,
                "linker": LINKER,
                "cCompiler": compiler,
                "helm": facts.helm,
            });
            (tools, vec![sources, lock])
        }
        // Nothing is known of where it comes from.
        None => (json!({"program": "given, not built", "helm": facts.helm}), Vec::new()),
    };
    json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [
            subject(file.clone(), facts.program.hex()),
            subject(format!("{file}.tar"), facts.archive.hex()),
            subject("image manifest".to_owned(), facts.image.trim_start_matches("sha256:")),
        ],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": "urn:cloudberth:cargo-xtask-image:1",
                "externalParameters": {"arch": facts.arch.name(), "variant": facts.variant.name()},
                "internalParameters": tools,
                "resolvedDependencies": used,
            },
            "runDetails": {"builder": {"id": "urn:cloudberth:by-hand"}},
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_the_commits_unless_it_is_given() {
        let of = |epoch| source("abc 86400\n", false, epoch);
        assert_eq!(of(None).unwrap().created(), Ok("1970-01-02T00:00:00Z".to_owned()));
        assert_eq!(of(Some("0")).unwrap().created(), Ok("1970-01-01T00:00:00Z".to_owned()));
        assert_eq!(of(Some("now")), Err("SOURCE_DATE_EPOCH=now is no number".to_owned()));
        assert_eq!(source("abc 1", true, None).unwrap().revision(), "abc-dirty");
    }

    #[test]
    fn the_statement_names_sources_tools_and_results() {
        let source = Source { commit: "abc".to_owned(), dirty: false, seconds: 0 };
        let digest = Sha256::of(b"x");
        let mut facts = Statement {
            variant: Variant::Plain,
            arch: Arch::Amd64,
            version: "0.1.0",
            source: &source,
            rustc: "rustc 1.95.0 (x)\nrelease: 1.95.0\nhost: here\n",
            compiler: Some("gcc 12"),
            lock: &digest,
            program: &digest,
            archive: &digest,
            image: &digest.to_string(),
            helm: None,
        };
        let value = statement(&facts);
        let at = |path: &str| value.pointer(path).cloned().unwrap_or_default();
        assert_eq!(at("/subject/0/name"), "cloudberth-0.1.0-linux-amd64");
        assert_eq!(at("/subject/2/digest/sha256"), digest.hex());
        let inner = "/predicate/buildDefinition/internalParameters";
        assert_eq!(at(&format!("{inner}/rustc/release")), "1.95.0");
        assert_eq!(at(&format!("{inner}/target")), "x86_64-unknown-linux-musl");
        let sources = "/predicate/buildDefinition/resolvedDependencies";
        assert_eq!(at(&format!("{sources}/0/digest/gitCommit")), "abc");
        assert_eq!(at(&format!("{sources}/1/digest/sha256")), digest.hex());

        facts.compiler = None;
        let value = statement(&facts);
        let at = |path: &str| value.pointer(path).cloned().unwrap_or_default();
        assert_eq!(at(&format!("{inner}/program")), "given, not built");
        assert_eq!((at(&format!("{inner}/rustc")), at(sources)), (Value::Null, json!([])));
    }
}
