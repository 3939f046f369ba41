//! A lint in words.

use std::fmt::Write;

use super::{Finding, Level, Lint};

impl Lint {
    /// For people; `known` are the clouds that can be named.
    pub fn to_text(&self, known: &[&str]) -> String {
        let mut text = String::new();
        for finding in &self.findings {
            write_finding(&mut text, finding);
        }
        for service in &self.unassigned {
            let known = known.join(", ");
            let _ = writeln!(
                text,
                "{service}: nothing in it names a cloud, so it was not checked\n  fix: Choose one or more of {known} with \
                 --cloud-provider.\n"
            );
        }
        let count = |level| self.findings.iter().filter(|finding| finding.level == level).count();
        let clouds = if self.clouds.is_empty() { "no cloud".to_owned() } else { self.clouds.join(", ") };
        let _ = writeln!(
            text,
            "Services of type LoadBalancer: {}, looked at for {clouds}. Refused: {}. Warnings: {}. Notices: {}.",
            self.services,
            count(Level::Refused),
            count(Level::Warning),
            count(Level::Notice)
        );
        text
    }
}

fn write_finding(text: &mut String, finding: &Finding) {
    let Finding { level, file, document, line, service, cloud, field, value, message, fix, reason } = finding;
    let level = match level {
        Level::Refused => "refused",
        Level::Warning => "warning",
        Level::Notice => "notice",
    };
    let cloud = cloud.as_ref().map(|cloud| format!(" ({cloud})")).unwrap_or_default();
    let reason = reason.as_ref().map(|reason| format!(" [{reason}]")).unwrap_or_default();
    let _ = writeln!(text, "{file}:{line}: document {document}, Service {service}{cloud}: {level}{reason}");
    let value = value.as_ref().map(|value| format!(" = {value}")).unwrap_or_default();
    if !field.is_empty() {
        let _ = writeln!(text, "  field: {field}{value}");
    }
    let _ = writeln!(text, "  why: {message}\n  fix: {fix}\n");
}
