//! A report in words.

use std::fmt::Write;

use super::{Report, Severity};

impl Report {
    /// For people: the worst first, what could not be looked at, what was seen.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for finding in &self.findings {
            let severity = match finding.severity {
                Severity::Problem => "problem",
                Severity::Warning => "warning",
                Severity::Notice => "notice",
            };
            let what = finding.what.replace('\n', " ");
            let _ = writeln!(text, "{severity} [{}] {what}\n  fix: {}\n", finding.check.name(), finding.fix);
        }
        for unknown in &self.unknown {
            let why = unknown.why.replace('\n', " ");
            let _ =
                writeln!(text, "not looked at [{}] {why}\n  fix: {}\n", unknown.check.name(), unknown.fix);
        }
        if !self.seen.is_empty() {
            let _ = writeln!(text, "Seen: {}.", self.seen.join("; "));
        }
        let count = |severity| self.findings.iter().filter(|finding| finding.severity == severity).count();
        let _ = writeln!(
            text,
            "Problems: {}. Warnings: {}. Notices: {}. Nothing was written.",
            count(Severity::Problem),
            count(Severity::Warning),
            count(Severity::Notice)
        );
        text
    }
}
