//! What would be refused of the Services in a file, and why, without a cluster and without a cloud.
//!
//! ```text
//!   files ──► documents, Lists opened ──► Services as the API server would keep them ──► each cloud's own screening
//! ```
//!
//! The screening and the tables of annotations are those of the controllers: there is no second opinion here.

mod command;
mod defaults;
mod objects;
mod text;

use std::sync::Arc;

use cloudberth_core::{
    annotation,
    lb::{Claims, Desired, Goal, LoadBalancers, Review, Severity},
    reason::{self, Reason},
    view::{ServiceType, ServiceView},
};
use serde::Serialize;
use serde_json::Value;

pub use command::{LintOptions, run};
pub use objects::{Object, Source, objects};

/// The exit code when nothing is refused.
pub const EXIT_GOOD: u8 = 0;
/// The exit code when something is refused.
pub const EXIT_REFUSED: u8 = 1;
/// The exit code when the call itself is wrong, or does not say which cloud is meant.
pub const EXIT_USAGE: u8 = 2;
/// The exit code when a file or the settings cannot be read.
pub const EXIT_UNREADABLE: u8 = 3;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// With it no load balancer is created; of one that runs, this field stays as it is.
    Refused,
    /// It does nothing, or not what was meant.
    Warning,
    /// Good to know.
    Notice,
}

/// Something about one field of one Service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How much it matters.
    pub level: Level,
    /// The file, as it was named.
    pub file: String,
    /// Which document of the file, from 1.
    pub document: usize,
    /// The line of the field, or of what lacks it, from 1.
    pub line: usize,
    /// The Service: namespace and name.
    pub service: String,
    /// The cloud that would say so; `None` where every one would.
    pub cloud: Option<String>,
    /// The reason of the event that the controller would send; `None` where the API server refuses before that.
    pub reason: Option<String>,
    /// The field, or the annotation by its key.
    pub field: String,
    /// What the field holds.
    pub value: Option<Value>,
    /// What is wrong with it and what would be right.
    pub message: String,
    /// What to do.
    pub fix: String,
}

/// Everything that was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Lint {
    /// The Services of type `LoadBalancer` that were looked at.
    pub services: usize,
    /// The clouds that they were looked at for.
    pub clouds: Vec<String>,
    /// What was found, in the order of the files.
    pub findings: Vec<Finding>,
    /// Services that name no cloud, so that nothing is known about them.
    pub unassigned: Vec<String>,
}

/// A cloud that judges.
#[derive(Clone, Copy)]
pub struct Judge<'a> {
    /// What `--cloud-provider` calls it.
    pub name: &'a str,
    /// Its annotations.
    pub annotations: &'a annotation::Table,
    /// Its load balancers.
    pub balancers: &'a dyn LoadBalancers,
}

impl std::fmt::Debug for Judge<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Judge").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Lint {
    /// 1 where something is refused, 2 where a Service names no cloud and nobody said which, else 0.
    pub fn exit_code(&self) -> u8 {
        if self.findings.iter().any(|finding| finding.level == Level::Refused) {
            EXIT_REFUSED
        } else if !self.unassigned.is_empty() {
            EXIT_USAGE
        } else {
            EXIT_GOOD
        }
    }

    /// For scripts.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }
}

/// Judges Services. With `chosen` each of the judges looks at each Service; otherwise those whose annotations it carries,
/// or, where it carries none, those whose annotations any of the Services carries.
pub fn lint(objects: &[Object], judges: &[Judge<'_>], chosen: bool, cluster: &str) -> Lint {
    let mut found = Lint::default();
    let wanted: Vec<_> =
        objects.iter().filter_map(|object| Some((object, service(object, &mut found)?))).collect();
    let carried = |view: &ServiceView, judge: &Judge<'_>| {
        view.annotations.keys().any(|key| judge.annotations.knows(key))
    };
    let anywhere = |judge: &Judge<'_>| chosen || wanted.iter().any(|(_, view)| carried(view, judge));
    for (object, view) in &wanted {
        found.services += 1;
        let own: Vec<_> = judges.iter().filter(|judge| !chosen && carried(view, judge)).collect();
        let all: Vec<_> =
            if own.is_empty() { judges.iter().filter(|judge| anywhere(judge)).collect() } else { own };
        if all.is_empty() {
            found.unassigned.push(object.name.clone());
        }
        for judge in all {
            if !found.clouds.iter().any(|known| known == judge.name) {
                found.clouds.push(judge.name.to_owned());
            }
            let review = judge.balancers.review(&desired(view, cluster));
            found.findings.extend(told(object, judge.name, review));
        }
    }
    found.clouds.sort_unstable();
    found
        .findings
        .sort_by(|a, b| (&a.file, a.document, a.line, a.level).cmp(&(&b.file, b.document, b.line, b.level)));
    found
}

/// The Service in an object as the API server would keep it, if it wants a load balancer and can be read.
fn service(object: &Object, found: &mut Lint) -> Option<Arc<ServiceView>> {
    found.findings.extend(defaults::refused_by_the_server(object));
    let view = ServiceView::from_json(&object.json).ok()?;
    if view.service_type != ServiceType::LoadBalancer {
        return None;
    }
    if let Some(class) = &view.class {
        let message = format!(
            "{class:?}: only a controller manager that claims this class serves the Service; see --load-balancer-class"
        );
        let fix = "Leave the field out, or make sure that one cloud claims the class.";
        found.findings.push(object.finding(Level::Notice, "spec.loadBalancerClass", message, fix));
    }
    Some(Arc::new(defaults::filled_in(view)))
}

/// What a Service wants of a cloud about which nothing is known.
fn desired(service: &Arc<ServiceView>, cluster: &str) -> Desired {
    Desired {
        service: Arc::clone(service),
        cluster: cluster.to_owned(),
        goal: Goal::Present,
        backends: Vec::new(),
        nodes: Vec::new(),
        rivals: Vec::new(),
        claims: Claims::default(),
    }
}

/// What a cloud says about the fields and annotations of a Service, as findings.
fn told(object: &Object, cloud: &str, review: Review) -> Vec<Finding> {
    let of = |level, reason: Reason, field: &str, message: String| Finding {
        cloud: Some(cloud.to_owned()),
        reason: Some(reason.name().to_owned()),
        ..object.finding(level, field, message, reason.row().advice)
    };
    let refused = review.refused.into_iter();
    let mut out: Vec<_> =
        refused.map(|one| of(Level::Refused, one.reason, &one.field, one.message)).collect();
    for notice in review.notices {
        // The text begins with the field that it is about, where it is about one.
        let (field, message) = match notice.message.split_once(": ") {
            Some((field, rest)) if object.has_annotation(field) || field.starts_with("spec.") => {
                (field, rest)
            }
            _ if is_about_nodes(notice.reason) => continue,
            _ => ("", notice.message.as_str()),
        };
        let level = if notice.severity == Severity::Warning { Level::Warning } else { Level::Notice };
        out.push(of(level, notice.reason, field, message.to_owned()));
    }
    out
}

/// Whether an event of this reason is about nodes, at which nobody looked. Such reasons say so in their names.
fn is_about_nodes(reason: Reason) -> bool {
    reason.name().contains("Node") || reason == reason::UNAVAILABLE_LOAD_BALANCER
}

#[cfg(test)]
mod tests;
