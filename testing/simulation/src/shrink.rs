//! Makes a failing schedule smaller: drops whatever is not needed for it to fail in the same way.

use crate::{broken::Broken, run::run, schedule::Schedule};

/// The smallest schedule found that still breaks the law that the whole one breaks: no single deed of it can be left out.
/// One that fails for another reason would explain nothing.
pub fn shrink(schedule: &Schedule, broken: Option<Broken>) -> Schedule {
    let failures = run(schedule, broken).wrong;
    let Some(meant) = meant(&failures) else { return schedule.clone() };
    smaller(schedule, |smaller| run(smaller, broken).wrong.iter().any(|wrong| law(wrong) == meant))
}

/// What a smaller schedule has to fail with: the first law that is broken. If none is, the world did not come to rest.
fn meant(failures: &[String]) -> Option<&str> {
    let laws = failures.iter().map(|wrong| law(wrong));
    laws.clone().find(|law| !law.is_empty()).or_else(|| laws.into_iter().next())
}

/// The law that a failure is about; empty for one that names none.
fn law(wrong: &str) -> &str {
    wrong.split_once(':').map(|(law, _)| law).filter(|law| law.starts_with("law ")).unwrap_or_default()
}

fn smaller(schedule: &Schedule, fails: impl Fn(&Schedule) -> bool) -> Schedule {
    let mut best = schedule.clone();
    let mut size = best.deeds.len().div_ceil(2).max(1);
    loop {
        let mut at = 0;
        while at < best.deeds.len() {
            let end = (at + size).min(best.deeds.len());
            let mut smaller = best.clone();
            smaller.deeds.drain(at..end);
            if fails(&smaller) {
                best = smaller;
            } else {
                at = end;
            }
        }
        if size == 1 {
            return best;
        }
        size = size.div_ceil(2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_law_that_failed_is_kept_to() {
        let table: [(&[&str], Option<&str>); 4] = [
            (&[], None),
            (&["law 2: two nodes", "law 6: a leak"], Some("law 2")),
            (&["node-1 is still there", "law 6: a leak"], Some("law 6")),
            (&["default/web-0 wants ports: 80"], Some("")),
        ];
        for (failures, want) in table {
            let failures: Vec<_> = failures.iter().map(|&text| text.to_owned()).collect();
            assert_eq!(meant(&failures), want, "{failures:?}");
        }
    }

    #[test]
    fn nothing_that_is_needed_is_dropped() {
        let whole = Schedule::draw(3);
        let needed: Vec<_> = whole.deeds.iter().step_by(5).cloned().collect();
        let small = smaller(&whole, |some| needed.iter().all(|deed| some.deeds.contains(deed)));
        assert_eq!(small.deeds, needed);
    }
}
