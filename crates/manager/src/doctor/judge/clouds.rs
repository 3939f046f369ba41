//! The clouds: their settings, whether they answer, their clocks and their quotas.

use cloudberth_core::{
    Error,
    error::Category,
    provider::{Quota, Start},
};

use super::{few, skew};
use crate::doctor::{Check, CloudFacts, Facts, Owner, Report, Severity};

pub(super) fn judge(facts: &Facts, report: &mut Report) {
    if facts.clouds.is_empty() {
        let what = "no cloud was asked: --cloud-provider names none";
        let fix = "Give the flags and environment variables of your deployment, --cloud-provider first.";
        report.add(Severity::Notice, Check::Cloud, what, fix);
    }
    for cloud in &facts.clouds {
        for why in &cloud.mistakes {
            let what = format!("the settings of {} are wrong: {}", cloud.name, why.message());
            report.add(Severity::Problem, Check::Cloud, what, "Correct the setting that is named.");
        }
        if !cloud.mistakes.is_empty() {
            continue;
        }
        match &cloud.start {
            Some(Start::Fatal(why)) => refused(&cloud.name, why, report),
            Some(Start::Later(why)) => report.blind(Check::Cloud, &of(&cloud.name, why), true),
            Some(Start::Ready) | None => answers(facts, cloud, report),
        }
        skew(report, &cloud.name, cloud.ahead);
    }
}

fn of(cloud: &str, why: &Error) -> Error {
    why.clone().context(cloud)
}

/// A credential that is refused is not the same as a setting that is.
fn refused(cloud: &str, why: &Error, report: &mut Report) {
    let (check, fix) = match why.category() {
        Category::Unauthorised => (
            Check::Token,
            "Give it a token that this cloud accepts; the reference page of the cloud names the variable.",
        ),
        _ => (Check::Cloud, "Correct the setting that is named."),
    };
    report.add(Severity::Problem, check, format!("{cloud} refuses: {}", why.message()), fix);
}

fn answers(facts: &Facts, cloud: &CloudFacts, report: &mut Report) {
    match &cloud.instances {
        None => {}
        Some(Err(why)) if why.category() == Category::Unauthorised => refused(&cloud.name, why, report),
        Some(Err(why)) => report.blind(Check::Cloud, &of(&cloud.name, why), true),
        Some(Ok(ids)) => {
            report.seen.push(format!("{} instances in {}", ids.len(), cloud.name));
            instances(facts, cloud, ids, report);
        }
    }
    match &cloud.quotas {
        Err(why) => report.blind(Check::Quota, &of(&cloud.name, why), false),
        Ok(quotas) => quotas.iter().for_each(|one| quota(&cloud.name, one, report)),
    }
}

/// Nodes whose instances the account does not show. If it shows none, it is most likely another account.
fn instances(facts: &Facts, cloud: &CloudFacts, ids: &[String], report: &mut Report) {
    let nodes = facts.nodes.as_deref().unwrap_or_default();
    let mine = nodes.iter().filter_map(|node| match &node.owner {
        Owner::Cloud(name, id) if *name == cloud.name => Some((node.name.as_str(), id)),
        _ => None,
    });
    let mine: Vec<_> = mine.collect();
    let gone: Vec<_> = mine.iter().filter(|(_, id)| !ids.contains(id)).map(|(name, _)| *name).collect();
    if gone.is_empty() {
        return;
    }
    if gone.len() == mine.len() {
        let what = format!("{} shows none of the instances of its nodes: {}", cloud.name, few(&gone));
        let fix = "The token is most likely one of another account or project: use the one in which the instances are. Until \
                   then nothing is deleted.";
        report.add(Severity::Problem, Check::Token, what, fix);
    } else {
        let what = format!("{} does not show the instances of these nodes: {}", cloud.name, few(&gone));
        let fix = "If the instances were deleted, the nodes go by themselves once they are not Ready; otherwise look for \
                   them in the cloud.";
        report.add(Severity::Warning, Check::Nodes, what, fix);
    }
}

/// The last tenth is worth a word.
fn quota(cloud: &str, Quota { what, used, limit }: &Quota, report: &mut Report) {
    report.seen.push(format!("{used} of {limit} {what} in {cloud}"));
    let fix =
        "Delete what is not used (cloudberth orphans shows what is left over), or ask the cloud for more.";
    let told = format!("{used} of {limit} {what} of the account at {cloud} are used");
    if used >= limit {
        report.add(Severity::Problem, Check::Quota, told, fix);
    } else if limit - used <= limit / 10 {
        report.add(Severity::Warning, Check::Quota, told, fix);
    }
}
