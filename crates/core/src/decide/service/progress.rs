//! Does a pass that failed get further than those before it?
//!
//! If it does, the failures before it say nothing about the next try, and the back-off begins anew. A step that was done
//! before is no progress when it is done again: somebody undoes it, or the plan goes in circles.

use std::collections::BTreeSet;

use crate::lb::{Turn, TurnEnd};

/// More steps than these are not remembered, and none beyond them counts as progress.
const MOST: usize = 256;

/// How far a Service has come since it was last well.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// It was found out what there is.
    looked: bool,
    /// The steps that were done, in words.
    done: BTreeSet<String>,
}

impl Progress {
    /// Takes in how a turn ended. Returns whether it got further than all before it.
    pub fn advance(&mut self, turn: &Turn) -> bool {
        if turn.end == TurnEnd::Converged {
            *self = Self::default();
            return true;
        }
        let looks = !turn.done.is_empty() || !matches!(turn.end, TurnEnd::Unknown(_));
        let mut further = looks && !self.looked;
        self.looked |= looks;
        for step in &turn.done {
            further |= self.done.len() < MOST && self.done.insert(step.clone());
        }
        further
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{error::Error, lb::Creation};

    fn turn(end: TurnEnd, done: &[&str]) -> Turn {
        let done = done.iter().map(|&step| step.to_owned()).collect();
        Turn { end, done, denied: false, creation: Creation::Nothing, refused: vec![], notices: vec![] }
    }

    #[test]
    fn what_was_not_done_before_is_progress() {
        let failed = || TurnEnd::Failed(Error::temporary("503"));
        let unknown = || TurnEnd::Unknown(Error::temporary("no answer"));
        let table: [(&str, TurnEnd, &[&str], bool); 11] = [
            ("nothing was seen", unknown(), &[], false),
            ("L12-839 it could look, then a step failed", failed(), &[], true),
            ("no further than that", failed(), &[], false),
            ("it could not even look", unknown(), &[], false),
            ("to look again is no news", failed(), &[], false),
            ("L12-840 a step was done", failed(), &["a"], true),
            ("L12-841 the same step again", failed(), &["a"], false),
            ("two more, the last one lost", unknown(), &["b", "c"], true),
            ("one of old and one of new", failed(), &["a", "d"], true),
            ("all is well", TurnEnd::Converged, &["e"], true),
            ("L12-842 from here it counts anew", failed(), &["a"], true),
        ];
        let mut progress = Progress::default();
        for (case, rest, done, want) in table {
            assert_eq!(progress.advance(&turn(rest, done)), want, "{case}");
        }
    }

    #[test]
    fn a_plan_that_never_ends_does_not_fill_the_memory() {
        let mut progress = Progress::default();
        let failed = || TurnEnd::Failed(Error::temporary("503"));
        let further = |number: usize| {
            let step = format!("step {number}");
            progress.advance(&turn(failed(), &[&step]))
        };
        let steps = (0..1_000).map(further).filter(|further| *further).count();
        assert_eq!(steps, MOST, "L12-843");
    }
}
