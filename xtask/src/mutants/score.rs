//! What became of mutants, and reading it from what `cargo-mutants` left behind.

use std::fmt;

use crate::Result;

/// What can become of a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Caught,
    Missed,
    TimedOut,
    Unviable,
}

/// The mutants by what became of them, each by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Score {
    pub(crate) caught: Vec<String>,
    pub(crate) missed: Vec<String>,
    /// The tests ran too long, which often is a loop that the mutant made endless. Not part of the score.
    pub(crate) timeout: Vec<String>,
    /// It did not compile, so it says nothing about the tests.
    pub(crate) unviable: Vec<String>,
}

impl Score {
    /// Reads the four lists of names; `read` hands in the text of a file of the output directory. Only the
    /// mutants that were picked count: cargo-mutants 27 tries those that leave out a struct's field whatever
    /// its filters say.
    pub(crate) fn read(picked: &[String], read: impl Fn(&str) -> Result<String>) -> Result<Self> {
        let names = |file| -> Result<Vec<String>> {
            Ok(read(file)?.lines().map(str::to_owned).filter(|name| picked.contains(name)).collect())
        };
        Ok(Self {
            caught: names("caught.txt")?,
            missed: names("missed.txt")?,
            timeout: names("timeout.txt")?,
            unviable: names("unviable.txt")?,
        })
    }

    pub(crate) fn put(&mut self, name: &str, fate: Fate) {
        let names = match fate {
            Fate::Caught => &mut self.caught,
            Fate::Missed => &mut self.missed,
            Fate::TimedOut => &mut self.timeout,
            Fate::Unviable => &mut self.unviable,
        };
        names.push(name.to_owned());
    }

    /// Puts every list in order of name.
    pub(crate) fn sort(&mut self) {
        for names in [&mut self.caught, &mut self.missed, &mut self.timeout, &mut self.unviable] {
            names.sort();
        }
    }

    /// The lists as files: their names and what is in them.
    pub(crate) fn files(&self) -> [(&'static str, String); 4] {
        let text = |names: &[String]| names.iter().flat_map(|name| [name.as_str(), "\n"]).collect();
        [
            ("caught.txt", text(&self.caught)),
            ("missed.txt", text(&self.missed)),
            ("timeout.txt", text(&self.timeout)),
            ("unviable.txt", text(&self.unviable)),
        ]
    }

    pub(crate) fn tried(&self) -> usize {
        self.caught.len() + self.missed.len() + self.timeout.len() + self.unviable.len()
    }

    /// The score of two passes, the second of which tried what survived the first: caught is what either caught,
    /// and survivors are those of both.
    pub(crate) fn followed_by(self, second: Self) -> Self {
        let joined = |mut first: Vec<String>, second: Vec<String>| {
            first.extend(second);
            first.sort();
            first
        };
        Self {
            caught: joined(self.caught, second.caught),
            missed: second.missed,
            timeout: joined(self.timeout, second.timeout),
            unviable: joined(self.unviable, second.unviable),
        }
    }

    /// Whether enough were caught. Nothing judged is nothing missed.
    pub(crate) fn reaches(&self, bar: f64) -> bool {
        self.percent().is_none_or(|percent| percent >= bar)
    }

    /// Caught per cent of those that were judged; `None` when none was.
    pub(crate) fn percent(&self) -> Option<f64> {
        let count = |names: &[String]| u32::try_from(names.len()).map_or(f64::MAX, f64::from);
        let judged = count(&self.caught) + count(&self.missed);
        (judged > 0.0).then(|| 100.0 * count(&self.caught) / judged)
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (title, names) in [("survived", &self.missed), ("timed out", &self.timeout)] {
            if !names.is_empty() {
                writeln!(f, "{title}:")?;
            }
            for name in names {
                writeln!(f, "  {name}")?;
            }
        }
        let (caught, missed) = (self.caught.len(), self.missed.len());
        match self.percent() {
            Some(percent) => write!(f, "score {percent:.1} %: {caught} caught, {missed} survived")?,
            None => write!(f, "no score: nothing was judged")?,
        }
        write!(
            f,
            "; apart from these {} timed out, {} did not compile",
            self.timeout.len(),
            self.unviable.len()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(caught: usize, missed: usize) -> Score {
        let names = |count| (0..count).map(|at| format!("mutant {at}")).collect();
        Score { caught: names(caught), missed: names(missed), ..Score::default() }
    }

    #[test]
    fn the_score_counts_caught_and_survived_only() {
        let table = [
            (score(0, 0), "no score: nothing was judged; apart from these 0 timed out, 0 did not compile"),
            (
                score(9, 0),
                "score 100.0 %: 9 caught, 0 survived; apart from these 0 timed out, 0 did not compile",
            ),
            (
                Score { timeout: vec!["slow".into()], unviable: vec!["odd".into(); 5], ..score(3, 1) },
                "survived:\n  mutant 0\ntimed out:\n  slow\nscore 75.0 %: 3 caught, 1 survived; \
                 apart from these 1 timed out, 5 did not compile",
            ),
        ];
        for (score, want) in table {
            assert_eq!(score.to_string(), want);
        }
        let all = Score { timeout: vec!["slow".into()], unviable: vec!["odd".into(); 5], ..score(3, 1) };
        assert_eq!(all.tried(), 10);
    }

    #[test]
    fn a_second_pass_judges_the_survivors_of_the_first() {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let first = Score {
            caught: names(&["a", "d"]),
            missed: names(&["b", "c", "e", "h"]),
            timeout: names(&["f"]),
            unviable: names(&["g"]),
        };
        let second = Score {
            caught: names(&["b"]),
            missed: names(&["c"]),
            timeout: names(&["e"]),
            unviable: names(&["h"]),
        };
        let tried = first.tried();
        let both = first.followed_by(second);
        assert_eq!(
            both,
            Score {
                caught: names(&["a", "b", "d"]),
                missed: names(&["c"]),
                timeout: names(&["e", "f"]),
                unviable: names(&["g", "h"]),
            }
        );
        assert_eq!(both.tried(), tried);
    }

    #[test]
    fn the_bar_is_reached_from_its_own_height_on() {
        for (score, bar, want) in [
            (score(17, 3), 85.0, true),
            (score(17, 3), 85.1, false),
            (score(0, 3), 0.0, true),
            (score(0, 0), 100.0, true),
        ] {
            assert_eq!(score.reaches(bar), want, "{score} against {bar}");
        }
    }

    #[test]
    fn the_lists_are_read_by_line_and_a_missing_one_is_an_error() {
        let picked = ["a".to_owned(), "b".to_owned()];
        let read = |file: &str| {
            let text = if file == "missed.txt" { "a\nb\nnot picked\n" } else { "" };
            Ok(text.to_owned())
        };
        assert_eq!(
            Score::read(&picked, read).unwrap(),
            Score { missed: picked.to_vec(), ..Score::default() }
        );
        let broken =
            |file: &str| if file == "unviable.txt" { Err("gone".to_owned()) } else { Ok(String::new()) };
        assert_eq!(Score::read(&picked, broken).unwrap_err(), "gone");
    }
}
