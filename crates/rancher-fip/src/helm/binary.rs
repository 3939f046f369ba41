//! The `helm` program behind [`Helm`].

use std::{
    ffi::OsString,
    fmt, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use cloudberth_core::{Secret, provider::Boxed, time::Tick};
use serde::Deserialize;
use tokio::process::Command;

use super::{
    ChartRef, Helm, HelmAction, HelmError, HelmFailure, Leash, Source,
    child::{Outcome, see_through},
    command::{Common, Located, OperatorFiles, Variables, arguments, environment, resolve},
    leash::Life,
    repository,
    scratch::{Place, Scratch},
    values,
};

/// How Helm is run.
#[derive(Clone)]
pub struct HelmSettings {
    /// The program: a path, or a name that is looked for in `PATH`.
    pub program: PathBuf,
    /// How long Helm waits for what it installs. It is Helm's own `--timeout`.
    pub timeout: Duration,
    /// How much longer a child may take than its time-out, because hooks have timers of their own.
    pub margin: Duration,
    /// How long a child has to end by itself when it is told to.
    pub grace: Duration,
    /// How long asking a chart's source for a version may take.
    pub fetch_timeout: Duration,
    /// How many revisions are kept.
    pub history: u32,
    /// Where private directories are made.
    pub scratch: PathBuf,
    /// What relative paths of charts are relative to: the working directory of this program.
    pub directory: PathBuf,
    /// The environment of this program.
    pub environment: Variables,
}

impl HelmSettings {
    /// The usual settings, in this environment.
    pub fn new(scratch: PathBuf, directory: PathBuf, environment: Variables) -> Self {
        Self {
            program: PathBuf::from("helm"),
            timeout: Duration::from_secs(600),
            margin: Duration::from_secs(120),
            grace: Duration::from_secs(20),
            fetch_timeout: Duration::from_secs(60),
            history: 10,
            scratch,
            directory,
            environment,
        }
    }
}

/// The environment is not shown: there may be passwords in it.
impl fmt::Debug for HelmSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HelmSettings")
            .field("program", &self.program)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// Runs the `helm` program, each time in a private directory and with nothing secret on its command line.
#[derive(Debug)]
pub struct BinaryHelm {
    settings: HelmSettings,
    /// Made when it is first needed, so that a full disk is an error of a run and not of the start.
    scratch: Mutex<Option<Arc<Scratch>>>,
}

impl BinaryHelm {
    /// Runs Helm with these settings. Nothing is started or written yet.
    pub const fn new(settings: HelmSettings) -> Self {
        Self { settings, scratch: Mutex::new(None) }
    }

    fn scratch(&self) -> io::Result<Arc<Scratch>> {
        let mut slot = self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(scratch) = &*slot {
            return Ok(Arc::clone(scratch));
        }
        let scratch = Arc::new(Scratch::open(&self.settings.scratch)?);
        *slot = Some(Arc::clone(&scratch));
        Ok(scratch)
    }

    /// Finds the chart, fetches an index where that is needed first, and makes the place for the run.
    async fn prepare(&self, chart: &ChartRef, leash: &Leash) -> Result<Run<'_>, HelmError> {
        let source = chart.source().map_err(|why| HelmError::new(HelmFailure::Rejected, why.message()))?;
        let mut run = self.begin()?;
        let directory = &self.settings.directory;
        run.located = match source {
            Source::Registry(reference) => located(reference, None, None),
            Source::Repository(url) => located(&chart.chart, Some(url), None),
            Source::Path(path) => located(directory.join(path), None, None),
            Source::Registered { repository, reference } => located(reference, None, Some(repository)),
            Source::PrivateRepository { url, user, password } => {
                let content = repository::file(&chart.release, &url, &user, password.as_ref());
                run.files.repositories = Some(run.write("repositories.yaml", &content)?);
                run.password = password;
                located(format!("{0}/{0}", chart.release), None, Some(&chart.release))
            }
        };
        if let Some(repository) = &run.located.update {
            let args = ["repo".into(), "update".into(), repository.into()];
            run.reads(&args, leash).await?;
        }
        Ok(run)
    }

    /// A place for a run that needs no chart.
    fn begin(&self) -> Result<Run<'_>, HelmError> {
        let scratch = self.scratch().map_err(|why| self.no_files(&why))?;
        let place = scratch.place().map_err(|why| self.no_files(&why))?;
        let files = OperatorFiles::find(&self.settings.environment, &self.settings.directory, Path::exists);
        let located = Located::default();
        Ok(Run { helm: self, place, _scratch: scratch, located, files, password: None })
    }

    fn no_files(&self, why: &io::Error) -> HelmError {
        let dir = self.settings.scratch.display();
        HelmError::new(
            HelmFailure::Local,
            format!("private files for helm cannot be written in {dir}: {why}"),
        )
    }

    fn cannot_start(&self, why: &io::Error) -> HelmError {
        let program = self.settings.program.display();
        let hint = "install Helm 3, or name its path with --helm";
        HelmError::new(HelmFailure::Missing, format!("{program} cannot be started ({why}): {hint}"))
    }
}

fn located(chart: impl Into<OsString>, repo: Option<&str>, update: Option<&str>) -> Located {
    Located { chart: chart.into(), repo: repo.map(str::to_owned), update: update.map(str::to_owned) }
}

/// What one run needs, and what goes when it ends.
struct Run<'a> {
    helm: &'a BinaryHelm,
    place: Place,
    _scratch: Arc<Scratch>,
    located: Located,
    files: OperatorFiles,
    password: Option<Secret>,
}

impl Run<'_> {
    /// Runs Helm for something that writes nothing anywhere.
    async fn reads(&self, args: &[OsString], leash: &Leash) -> Result<Outcome, HelmError> {
        let HelmSettings { fetch_timeout, grace, .. } = self.helm.settings;
        let life = Life::new(Tick(Duration::MAX), leash.now() + fetch_timeout, grace, Duration::ZERO);
        self.start(args, life, leash, false).await
    }

    /// Runs Helm for something that writes to the downstream cluster, if there is a claim to begin it under.
    async fn writes(&self, args: &[OsString], leash: &Leash) -> Result<Outcome, HelmError> {
        let HelmSettings { timeout, margin, grace, .. } = self.helm.settings;
        let Some(claim) = leash.may_begin() else {
            return Err(HelmError::new(
                HelmFailure::Stopped,
                "this replica does not lead, or is about to stop",
            ));
        };
        let life = Life::new(claim, leash.now() + timeout + margin, grace, leash.spare());
        self.start(args, life, leash, true).await
    }

    async fn start(
        &self,
        args: &[OsString],
        life: Life,
        leash: &Leash,
        guarded: bool,
    ) -> Result<Outcome, HelmError> {
        let doing = args.first().and_then(|word| word.to_str()).unwrap_or_default();
        let mut command = Command::new(&self.helm.settings.program);
        let environment = environment(&self.helm.settings.environment, &self.place.home(), &self.files);
        command.args(args).env_clear().envs(environment).current_dir(self.place.work());
        let outcome =
            see_through(command, life, leash, guarded).await.map_err(|why| self.helm.cannot_start(&why))?;
        if outcome.success {
            return Ok(outcome);
        }
        let stderr = self.redact(&String::from_utf8_lossy(&outcome.stderr));
        let said = HelmError::said(doing, &stderr);
        Err(outcome.ended.map_or(said, |why| why.failure(doing)))
    }

    /// Writes a private file of this run.
    fn write(&self, name: &str, content: &[u8]) -> Result<PathBuf, HelmError> {
        self.place.write(name, content).map_err(|why| self.helm.no_files(&why))
    }

    fn redact(&self, text: &str) -> String {
        self.password.as_ref().map_or_else(|| text.to_owned(), |password| password.redact(text))
    }
}

/// What `helm show chart` prints, as far as it is used.
#[derive(Deserialize)]
struct Shown {
    version: String,
}

impl Helm for BinaryHelm {
    fn resolve<'a>(&'a self, chart: &'a ChartRef, leash: &'a Leash) -> Boxed<'a, Result<String, HelmError>> {
        Box::pin(async move {
            let run = self.prepare(chart, leash).await?;
            let outcome = run.reads(&resolve(chart, &run.located), leash).await?;
            let text = String::from_utf8_lossy(&outcome.stdout);
            let shown: Result<Shown, _> = serde_saphyr::from_str(&text);
            shown.map(|shown| shown.version).map_err(|_| {
                HelmError::new(HelmFailure::Fetch, "helm show chart printed something without a version")
            })
        })
    }

    fn run<'a>(
        &'a self,
        kubeconfig: &'a [u8],
        chart: &'a ChartRef,
        action: &'a HelmAction,
        leash: &'a Leash,
    ) -> Boxed<'a, Result<(), HelmError>> {
        Box::pin(async move {
            let run = match action {
                HelmAction::Install | HelmAction::Upgrade | HelmAction::InstallReplace => {
                    self.prepare(chart, leash).await?
                }
                HelmAction::Rollback { .. } | HelmAction::Uninstall => self.begin()?,
            };
            let common = Common {
                timeout: self.settings.timeout,
                history: self.settings.history,
                kubeconfig: run.write("kubeconfig", kubeconfig)?,
                values: if values::is_blank(&chart.values) {
                    None
                } else {
                    Some(run.write("values.yaml", chart.values.as_bytes())?)
                },
            };
            let args = arguments(chart, &run.located, *action, &common);
            match run.writes(&args, leash).await {
                // What was to be removed is gone.
                Err(why)
                    if *action == HelmAction::Uninstall && why.message.contains("release: not found") =>
                {
                    Ok(())
                }
                outcome => outcome.map(|_| ()),
            }
        })
    }

    fn check(&self) -> Boxed<'_, Result<String, HelmError>> {
        Box::pin(async move {
            let mut command = Command::new(&self.settings.program);
            // It reads and writes no files for this.
            let theirs =
                environment(&self.settings.environment, &self.settings.scratch, &OperatorFiles::default());
            command.args(["version", "--template={{.Version}}"]).env_clear().envs(theirs).kill_on_drop(true);
            let asked = tokio::time::timeout(self.settings.fetch_timeout, command.output()).await;
            let output = match asked {
                Ok(Ok(output)) => output,
                Ok(Err(why)) => return Err(self.cannot_start(&why)),
                Err(_) => return Err(self.cannot_start(&io::ErrorKind::TimedOut.into())),
            };
            let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            if output.status.success() && !version.is_empty() {
                return Ok(version);
            }
            Err(self.cannot_start(&io::Error::other("it did not tell its version")))
        })
    }
}

#[cfg(test)]
mod tests;
