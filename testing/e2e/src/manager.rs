//! The shipped program as the manager of a cluster, with the account of its manifests.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use sim_kit::Surroundings;

use crate::control_plane::{PORT_ATTEMPTS, free_port};
use crate::{Account, Client, Container, Credentials, Error, Event, Program, Request, eventually, manifests};

/// How long a start may take on a busy machine.
const STARTED_WITHIN: Duration = Duration::from_mins(2);
/// How much of the log is shown after a failure.
const LINES_SHOWN: usize = 60;

/// `cloudberth controller-manager`, started with a service account's kubeconfig and nothing else.
///
/// It is killed when this is dropped. Its log is printed then, unless it was [stopped](Manager::stop) and ended well: a
/// scenario that fails shows the logs of its managers.
#[derive(Debug)]
pub struct Manager {
    name: String,
    program: Program,
    pages: Client,
    /// What was done to it from outside, which its log cannot show.
    marks: Vec<Event>,
    well: bool,
}

impl Manager {
    /// Starts it, and waits until its own port answers. `name` is for messages; `called` is the program and what
    /// comes before the flags; `env` is all that it sees.
    ///
    /// The kubeconfig of the account goes through the proxy of the cluster.
    pub async fn start(
        account: &Account,
        name: &str,
        called: (PathBuf, Vec<String>),
        flags: &[String],
        env: &[(String, String)],
    ) -> Result<Self, Error> {
        let certificates = account.kubeconfig.with_file_name(format!("serving-{name}"));
        fs::create_dir_all(&certificates).map_err(Error::io("cannot create", &certificates))?;
        let kubeconfig = account.kubeconfig.display();
        let mut attempt = 1;
        loop {
            let port = free_port(&certificates)?;
            let mut args = called.1.clone();
            args.extend([
                format!("--kubeconfig={kubeconfig}"),
                format!("--authentication-kubeconfig={kubeconfig}"),
                format!("--authorization-kubeconfig={kubeconfig}"),
                "--bind-address=127.0.0.1".to_owned(),
                format!("--secure-port={port}"),
                format!("--cert-dir={}", certificates.display()),
            ]);
            args.extend(flags.iter().cloned());
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            let env: Vec<(&str, &str)> =
                env.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
            let mut program = Program::start_other(&called.0, &args, &env)?;
            match answers(&mut program, port, &certificates).await {
                Ok(pages) => {
                    return Ok(Self {
                        name: name.to_owned(),
                        program,
                        pages,
                        marks: Vec::new(),
                        well: false,
                    });
                }
                Err(_) if attempt < PORT_ATTEMPTS && says(&program, "in use") => attempt += 1,
                Err(why) => return Err(why),
            }
        }
    }

    /// Its name in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The program itself, to wait for what it says.
    pub fn program(&mut self) -> &mut Program {
        &mut self.program
    }

    /// A client of its own port, without credentials.
    pub fn pages(&self) -> &Client {
        &self.pages
    }

    /// The lines of all its runs.
    pub fn log(&self) -> Vec<String> {
        self.program.whole_log()
    }

    /// Its identity in the election, once it has led in its current run.
    pub fn identity(&self) -> Option<String> {
        self.program.log().iter().find_map(|line| quoted(line, "became leader identity="))
    }

    /// Waits until it leads in its current run, and returns its identity.
    pub async fn leads(&mut self, within: Duration) -> Result<String, Error> {
        let line = self.program.says("became leader identity=", within).await?;
        self.program.says("this replica leads", within).await?;
        Ok(quoted(&line, "became leader identity=").unwrap_or_default())
    }

    /// Asks it to end, and waits: its exit code.
    pub async fn stop(&mut self, within: Duration) -> Result<i32, Error> {
        self.program.terminate();
        let code = self.program.ends(within).await?;
        self.well = code == 0;
        Ok(code)
    }

    /// Kills it (SIGKILL).
    pub fn kill(&mut self) {
        self.program.kill();
        self.mark("killed");
    }

    /// Suspends it (SIGSTOP).
    pub fn freeze(&mut self) {
        self.mark("frozen");
        self.program.freeze();
    }

    /// Resumes it (SIGCONT).
    pub fn thaw(&mut self) {
        self.program.thaw();
    }

    /// Starts it again with the same flags; kills it first if it runs.
    pub async fn restart(&mut self) -> Result<(), Error> {
        self.well = false;
        self.program.restart()?;
        let mut attempt = 1;
        let (program, pages) = (&mut self.program, &self.pages);
        eventually(STARTED_WITHIN, "the port of the manager answers", async || {
            // Somebody else may have taken the port meanwhile, and may release it again.
            if !program.runs() && attempt < PORT_ATTEMPTS && says(program, "in use") {
                attempt += 1;
                program.restart().map_err(|why| why.to_string())?;
            }
            ask(program, pages).await
        })
        .await
    }

    /// When it led, from its log and from what was done to it, in the form of [`crate::Elector::history`]. Its log says
    /// nothing about transitions.
    pub fn history(&self) -> Vec<Event> {
        let of_line = |line: &String| {
            let at = line.split_whitespace().next()?.parse().ok()?;
            let told = [("started", "became leader identity="), ("stopped", "stopped leading identity=")];
            let found = told.into_iter().find_map(|(event, words)| Some((event, quoted(line, words)?)));
            let (event, leader) = found?;
            Some(Event { event: event.to_owned(), leader, transitions: 0, at })
        };
        let mut history: Vec<Event> = self.log().iter().filter_map(of_line).collect();
        history.extend(self.marks.iter().cloned());
        history.sort_by_key(|event| event.at);
        history
    }

    fn mark(&mut self, event: &str) {
        let leader = self.identity().unwrap_or_default();
        self.marks.push(Event { event: event.to_owned(), leader, transitions: 0, at: now() });
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        if self.well {
            return;
        }
        let log = self.log();
        let shown = log.get(log.len().saturating_sub(LINES_SHOWN)..).unwrap_or_default();
        #[expect(clippy::print_stderr, reason = "whoever reads of a failure needs it")]
        {
            eprintln!("the end of the log of manager {}:\n  {}", self.name, shown.join("\n  "));
        }
    }
}

fn now() -> Timestamp {
    Surroundings::of_this_machine().now()
}

fn says(program: &Program, part: &str) -> bool {
    program.log().iter().any(|line| line.contains(part))
}

/// The quoted text after `words`.
fn quoted(line: &str, words: &str) -> Option<String> {
    let (_, rest) = line.split_once(words)?;
    rest.split('"').nth(1).map(str::to_owned)
}

/// Waits for the port. The program makes its own certificate, and writes it before it opens the port.
async fn answers(program: &mut Program, port: u16, certificates: &Path) -> Result<Client, Error> {
    let file = certificates.join("cloud-controller-manager.crt");
    eventually(STARTED_WITHIN, "the port of the manager answers", async || {
        let authority = fs::read_to_string(&file).map_err(|why| format!("{}: {why}", file.display()));
        let pages = authority.and_then(|authority| {
            let base = format!("https://127.0.0.1:{port}");
            Client::new(base, &authority, &Credentials::Anonymous).map_err(|why| why.to_string())
        });
        // A program that has ended will not answer any more.
        if !program.runs() {
            return Ok(Err(Error::Ended { program: "cloudberth".into(), log: program.log().join("\n") }));
        }
        let pages = pages?;
        ask(program, &pages).await?;
        Ok(Ok(pages))
    })
    .await?
}

async fn ask(program: &Program, pages: &Client) -> Result<(), String> {
    let answer = pages.send(&Request::get("/healthz")).await;
    answer.map(|_| ()).map_err(|why| format!("{why}; it says {:?}", program.log().last()))
}

/// The manifest that people install for a cloud; for several clouds, one with the rights of all of them.
pub fn manifests_of(clouds: &[&str]) -> Result<String, Error> {
    let texts = clouds.iter().map(|cloud| manifest_of(cloud)).collect::<Result<Vec<_>, _>>()?;
    manifests::united(&texts)
}

/// What the container in the manifest of a cloud runs with.
pub fn container_of(cloud: &str) -> Result<Container, Error> {
    let container = Container::read(&manifest_of(cloud)?)?;
    container.ok_or_else(|| Error::Manifest(format!("the manifest of {cloud} runs nothing")))
}

/// The manifest of a cloud, or of `rancher-fip`, as the chart makes it.
pub fn manifest_of(cloud: &str) -> Result<String, Error> {
    let path =
        PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy")).join(cloud).join("manifest.yaml");
    fs::read_to_string(&path).map_err(Error::io("cannot read", &path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_value_is_found_after_its_label() {
        let line = r#"2026-01-02T03:04:05Z  INFO election: became leader identity="vm_1" lease="ccm""#;
        let table = [
            ("became leader identity=", Some("vm_1")),
            ("lease=", Some("ccm")),
            ("stopped leading identity=", None),
        ];
        for (words, want) in table {
            assert_eq!(quoted(line, words).as_deref(), want, "{words}");
        }
    }

    #[test]
    fn the_manifests_that_people_install_are_found() {
        assert!(manifests_of(&["cloudscale"]).unwrap().contains("ClusterRole"));
        assert!(manifests_of(&["cloudscale", "nowhere"]).is_err());
        let args = container_of("brightbox").unwrap().args;
        assert_eq!(args[..2], ["controller-manager", "--cloud-provider=brightbox"]);
        assert!(container_of("nowhere").is_err());
    }
}
