//! Health checks, and the page that shows them.

use std::{
    collections::BTreeSet,
    fmt::{self, Write as _},
    sync::{Arc, Mutex, PoisonError},
};

use cloudberth_core::Tick;

/// A health check. It looks at what is known already: it never waits and sends nothing.
pub trait Check: Send + Sync {
    /// The name that pages, `exclude` and metrics use.
    fn name(&self) -> &str;
    /// Whether it passes at `now`; if not, why, for the log.
    fn check(&self, now: Tick) -> Result<(), String>;
}

/// A check made of a name and a function.
pub struct CheckFn<F> {
    name: String,
    function: F,
}

impl<F: Fn(Tick) -> Result<(), String> + Send + Sync> CheckFn<F> {
    /// A check by this name.
    pub fn new(name: impl Into<String>, function: F) -> Self {
        Self { name: name.into(), function }
    }
}

impl<F: Fn(Tick) -> Result<(), String> + Send + Sync> Check for CheckFn<F> {
    fn name(&self) -> &str {
        &self.name
    }

    fn check(&self, now: Tick) -> Result<(), String> {
        (self.function)(now)
    }
}

impl<F> fmt::Debug for CheckFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CheckFn").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The checks behind one page. Clones share them, and checks may be added while the page is served.
#[derive(Clone, Default)]
pub struct Checks(Arc<Mutex<Vec<Arc<dyn Check>>>>);

impl Checks {
    /// Adds checks, all at once: no request sees only some of them.
    pub fn add(&self, batch: impl IntoIterator<Item = Arc<dyn Check>>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(batch);
    }

    fn all(&self) -> Vec<Arc<dyn Check>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The result of the check with this name; `None` if there is none.
    pub(crate) fn one(&self, name: &str, now: Tick) -> Option<Result<(), String>> {
        match self.all().iter().find(|check| check.name() == name) {
            Some(check) => Some(check.check(now)),
            None => (name == PING && self.all().is_empty()).then_some(Ok(())),
        }
    }

    /// Runs all checks that are not excluded and renders the page.
    pub(crate) fn report(&self, page: &str, ask: &HealthQuery, now: Tick) -> Report {
        let run = |check: &Arc<dyn Check>| {
            let outcome = (!ask.exclude.contains(check.name())).then(|| check.check(now));
            (check.name().to_owned(), outcome)
        };
        let mut outcomes: Vec<_> = self.all().iter().map(run).collect();
        if outcomes.is_empty() {
            outcomes.push((PING.to_owned(), (!ask.exclude.contains(PING)).then_some(Ok(()))));
        }
        compose(page, ask, outcomes)
    }
}

impl fmt::Debug for Checks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.all().iter().map(|check| check.name().to_owned())).finish()
    }
}

/// The check that is shown if there is no other.
const PING: &str = "ping";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HealthQuery {
    pub(crate) verbose: bool,
    pub(crate) exclude: BTreeSet<String>,
}

/// The results of the checks, and the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Report {
    pub(crate) well: bool,
    pub(crate) text: String,
    /// The name of each check that ran, and why it failed.
    pub(crate) outcomes: Vec<(String, Option<String>)>,
}

fn compose(page: &str, ask: &HealthQuery, results: Vec<(String, Option<Result<(), String>>)>) -> Report {
    let mut unknown = ask.exclude.clone();
    let (mut lines, mut outcomes) = (String::new(), Vec::new());
    for (name, result) in results {
        // Writing to a string does not fail.
        let _ = match &result {
            None => writeln!(lines, "[+]{name} excluded: ok"),
            Some(Ok(())) => writeln!(lines, "[+]{name} ok"),
            Some(Err(_)) => writeln!(lines, "[-]{name} failed: reason withheld"),
        };
        match result {
            None => {
                unknown.remove(&name);
            }
            Some(result) => outcomes.push((name, result.err())),
        }
    }
    if !unknown.is_empty() {
        let names: Vec<_> = unknown.iter().map(|name| format!("{name:?}")).collect();
        let _ = writeln!(
            lines,
            "warn: some health checks cannot be excluded: no matches for {}",
            names.join(", ")
        );
    }
    let well = outcomes.iter().all(|(_, failure)| failure.is_none());
    let text = match (well, ask.verbose) {
        (true, false) => "ok".to_owned(),
        (true, true) => format!("{lines}{page} check passed\n"),
        (false, _) => format!("{lines}{page} check failed\n"),
    };
    Report { well, text, outcomes }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &'static str, well: bool) -> Arc<dyn Check> {
        Arc::new(CheckFn::new(name, move |_| if well { Ok(()) } else { Err("secret reason".to_owned()) }))
    }

    /// Case, batches, question, whether all is well, page.
    type Row = (&'static str, Vec<Vec<Arc<dyn Check>>>, HealthQuery, bool, &'static str);

    fn ask(verbose: bool, exclude: &[&str]) -> HealthQuery {
        HealthQuery { verbose, exclude: exclude.iter().map(|name| (*name).to_owned()).collect() }
    }

    #[test]
    fn pages_say_what_is_well() {
        let good = || check("good", true);
        let bad = || check("bad", false);
        let failed = "[+]good ok\n[-]bad failed: reason withheld\nhealthz check failed\n";
        let plain = ask(false, &[]);
        let table: [Row; 12] = [
            ("FW-334 no checks", vec![], plain.clone(), true, "ok"),
            ("FW-334 one good check", vec![vec![good()]], plain.clone(), true, "ok"),
            (
                "FW-335 verbose",
                vec![vec![good()]],
                ask(true, &[]),
                true,
                "[+]good ok\nhealthz check passed\n",
            ),
            ("no checks, verbose", vec![], ask(true, &[]), true, "[+]ping ok\nhealthz check passed\n"),
            ("FW-336 good and bad in one batch", vec![vec![good(), bad()]], plain.clone(), false, failed),
            ("FW-336 good and bad in two batches", vec![vec![good()], vec![bad()]], plain, false, failed),
            ("failure is verbose anyway", vec![vec![good(), bad()]], ask(true, &[]), false, failed),
            ("the bad one is excluded", vec![vec![good(), bad()]], ask(false, &["bad"]), true, "ok"),
            (
                "excluded, verbose",
                vec![vec![good(), bad()]],
                ask(true, &["bad"]),
                true,
                "[+]good ok\n[+]bad excluded: ok\nhealthz check passed\n",
            ),
            ("an unknown exclusion is silent", vec![vec![good()]], ask(false, &["x"]), true, "ok"),
            (
                "an unknown exclusion, verbose",
                vec![vec![good()]],
                ask(true, &["y", "x"]),
                true,
                "[+]good ok\nwarn: some health checks cannot be excluded: no matches for \"x\", \"y\"\nhealthz check passed\n",
            ),
            (
                "an unknown exclusion, failed",
                vec![vec![bad()]],
                ask(false, &["x"]),
                false,
                "[-]bad failed: reason withheld\nwarn: some health checks cannot be excluded: no matches for \"x\"\nhealthz check failed\n",
            ),
        ];
        for (case, batches, ask, well, text) in table {
            let checks = Checks::default();
            for batch in batches {
                checks.add(batch);
            }
            let report = checks.report("healthz", &ask, Tick::ZERO);
            assert_eq!((report.well, report.text.as_str()), (well, text), "{case}");
        }
    }

    #[test]
    fn a_check_that_is_added_later_counts() {
        let checks = Checks::default();
        checks.add([check("good", true)]);
        assert!(checks.report("healthz", &HealthQuery::default(), Tick::ZERO).well);
        checks.clone().add([check("bad", false)]);
        assert!(!checks.report("healthz", &HealthQuery::default(), Tick::ZERO).well, "FW-337 the page flips");
    }

    #[test]
    fn one_check_can_be_asked_for() {
        let checks = Checks::default();
        assert_eq!((checks.one("ping", Tick::ZERO), checks.one("x", Tick::ZERO)), (Some(Ok(())), None));
        checks.add([check("bad", false)]);
        assert_eq!(checks.one("bad", Tick::ZERO), Some(Err("secret reason".to_owned())));
        assert_eq!(checks.one("ping", Tick::ZERO), None);
    }

    #[test]
    fn checks_know_the_time() {
        let checks = Checks::default();
        let late = |now: Tick| if now < Tick::from_secs(5) { Ok(()) } else { Err("late".to_owned()) };
        checks.add([Arc::new(CheckFn::new("progress", late)) as Arc<dyn Check>]);
        let well = |at| checks.report("livez", &HealthQuery::default(), Tick::from_secs(at)).well;
        assert_eq!((well(4), well(5)), (true, false));
    }
}
