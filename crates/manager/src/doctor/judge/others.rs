//! Who leads, and other programs that would do the same work.

use jiff::SignedDuration;

use super::age;
use crate::doctor::{Check, Facts, LeaseFacts, Report, Severity, Workload};

/// A program that hands out load balancers or initialises nodes, by a part of what it is called, and what to do about it.
const OTHERS: [(&str, &str, &str); 7] = [
    (
        "k3s-cloud-controller-manager",
        "the controller manager inside of k3s",
        "Start the servers of k3s with --disable-cloud-controller.",
    ),
    (
        "svclb-",
        "the load balancer inside of k3s",
        "Start the servers of k3s with --disable=servicelb, or give its Services a loadBalancerClass.",
    ),
    (
        "metallb",
        "MetalLB",
        "Start its controller with --lb-class, so that it serves only Services of that class.",
    ),
    (
        "kube-vip",
        "kube-vip",
        "Turn its Services off (svc_enable=false), or give its Services a loadBalancerClass.",
    ),
    (
        "plndr-svcs-lock",
        "kube-vip",
        "Turn its Services off (svc_enable=false), or give its Services a loadBalancerClass.",
    ),
    ("openelb", "OpenELB", "Give its Services a loadBalancerClass, or remove it."),
    ("purelb", "PureLB", "Give its Services a loadBalancerClass, or remove it."),
];

/// How far behind a renewal may be before nobody leads: several times the duration of any Lease that works.
const SILENT: SignedDuration = SignedDuration::from_secs(60);

pub(super) fn judge(facts: &Facts, report: &mut Report) {
    match &facts.leases {
        Err(why) => report.blind(Check::Leases, why, false),
        Ok(leases) => {
            leader(facts, leases, report);
            for lease in leases.iter().filter(|lease| is_fresh(facts, lease)) {
                let found = OTHERS.iter().find(|(part, _, _)| lease.name.contains(part));
                if let Some((_, who, fix)) = found {
                    other(report, who, &format!("Lease {}/{}", lease.namespace, lease.name), fix);
                }
            }
        }
    }
    match &facts.workloads {
        Err(why) => report.blind(Check::Workloads, why, false),
        Ok(workloads) => workloads.iter().for_each(|workload| runs(facts, workload, report)),
    }
}

fn is_fresh(facts: &Facts, lease: &LeaseFacts) -> bool {
    lease.renewed.is_some_and(|renewed| facts.now.duration_since(renewed) < SILENT)
}

fn leader(facts: &Facts, leases: &[LeaseFacts], report: &mut Report) {
    let Some(name) = &facts.leader_lease else { return };
    let fix = "Start a controller manager; if one runs, its log says why it does not take the Lease.";
    match leases.iter().find(|lease| lease.name == *name) {
        None => {
            let what = format!("there is no Lease {name}: no controller manager has led here yet");
            report.add(Severity::Notice, Check::Leader, what, fix);
        }
        Some(lease) if lease.holder.is_empty() => {
            let what = format!("nobody leads: the Lease {name} was given back");
            report.add(Severity::Problem, Check::Leader, what, fix);
        }
        Some(lease) if !is_fresh(facts, lease) => {
            let what =
                format!("nobody leads: {} has been silent {}", lease.holder, age(facts.now, lease.renewed));
            report.add(Severity::Problem, Check::Leader, what, fix);
        }
        Some(lease) => match facts.replaced.iter().find(|old| lease.holder.starts_with(*old)) {
            // A pod's host name is its own, which begins with that of its program.
            Some(old) => {
                let what = format!("the Lease {name} is held by {}, a replica of {old}", lease.holder);
                let fix = "Scale it down to nothing, with the manifest it was installed by: cloudberth leads as soon as it \
                           has let go, and takes over what it has built.";
                report.add(Severity::Warning, Check::Leader, what, fix);
            }
            None => report.seen.push(format!("{} leads", lease.holder)),
        },
    }
}

fn runs(facts: &Facts, workload: &Workload, report: &mut Report) {
    let Workload { kind, namespace, name, runs } = workload;
    let place = format!("{kind} {namespace}/{name}");
    let has = |part: &str| name.contains(part) || runs.iter().any(|text| text.contains(part));
    if has("cloudberth") {
        return;
    }
    if let Some((_, who, fix)) = OTHERS.iter().find(|(part, _, _)| has(part)) {
        other(report, who, &place, fix);
    } else if let Some(old) = facts.replaced.iter().find(|old| has(old)) {
        let fix = "Remove it: cloudberth takes over what it has built.";
        other(report, &format!("{old}, which cloudberth replaces,"), &place, fix);
    } else if has("cloud-controller-manager") {
        let what = format!("another cloud controller manager is installed: {place}");
        let fix = "Nothing, if it serves another cloud and leaves Services without a class alone; otherwise remove it.";
        report.add(Severity::Warning, Check::Others, what, fix);
    }
}

fn other(report: &mut Report, who: &str, place: &str, fix: &str) {
    let what = format!("{who} is at work beside cloudberth: {place}");
    if !report.findings.iter().any(|known| known.check == Check::Others && known.what == what) {
        report.add(Severity::Warning, Check::Others, what, fix);
    }
}
