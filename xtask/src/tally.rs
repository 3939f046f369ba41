//! Counting tests from the lines that test binaries print.

use std::fmt;
use std::ops::AddAssign;

/// How many tests passed, failed and were skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
}

impl Tally {
    /// Reads a line such as `test result: ok. 3 passed; 0 failed; 1 ignored; …`; other lines are `None`.
    pub(crate) fn from_line(line: &str) -> Option<Self> {
        let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
        let mut tally = Self::default();
        for part in counts.split(';') {
            let Some((count, word)) = part.trim().split_once(' ') else { continue };
            let slot = match word {
                "passed" => &mut tally.passed,
                "failed" => &mut tally.failed,
                "ignored" => &mut tally.skipped,
                _ => continue,
            };
            *slot = count.parse().ok()?;
        }
        Some(tally)
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, more: Self) {
        self.passed += more.passed;
        self.failed += more.failed;
        self.skipped += more.skipped;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        if self.skipped > 0 {
            write!(f, ", {} skipped", self.skipped)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_result_lines_count() {
        let table = [
            (
                "test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s",
                Some((12, 0, 0)),
            ),
            (
                "test result: FAILED. 2 passed; 3 failed; 4 ignored; 0 measured; 9 filtered out; finished in 1.20s",
                Some((2, 3, 4)),
            ),
            ("test result: ok. many passed; 0 failed", None),
            ("test tests::a ... ok", None),
            ("said: test result: ok. 12 passed; 0 failed", None),
            ("", None),
        ];
        for (line, want) in table {
            let got = Tally::from_line(line).map(|tally| (tally.passed, tally.failed, tally.skipped));
            assert_eq!(got, want, "{line}");
        }
    }

    #[test]
    fn tallies_add_up_and_skipped_tests_show_only_when_there_are_some() {
        let mut sum = Tally { passed: 1, failed: 0, skipped: 0 };
        assert_eq!(sum.to_string(), "1 passed, 0 failed");
        sum += Tally { passed: 10, failed: 2, skipped: 3 };
        assert_eq!(sum.to_string(), "11 passed, 2 failed, 3 skipped");
    }
}
