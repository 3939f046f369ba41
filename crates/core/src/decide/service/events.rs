//! What people are told about a Service, in the words that alerts already look for.

use crate::{
    error::{Doing, Error, cut},
    lb::{Notice, Refusal, Severity},
    reason::{self, Reason},
};

/// The longest message that Kubernetes takes.
pub const MESSAGE_LIMIT: usize = 1024;

/// More node names than these are only counted.
const NAMES_SHOWN: usize = 20;

fn normal(reason: Reason, message: &str) -> Notice {
    Notice { severity: Severity::Normal, reason, message: message.to_owned() }
}

fn warning(reason: Reason, message: &str) -> Notice {
    Notice { severity: Severity::Warning, reason, message: cut(message, MESSAGE_LIMIT) }
}

/// Work on a load balancer begins.
#[must_use]
pub fn ensuring() -> Notice {
    normal(reason::ENSURING_LOAD_BALANCER, "Ensuring load balancer")
}

/// The load balancer is as the Service says.
#[must_use]
pub fn ensured() -> Notice {
    normal(reason::ENSURED_LOAD_BALANCER, "Ensured load balancer")
}

/// The load balancer has its new nodes.
#[must_use]
pub fn updated() -> Notice {
    normal(reason::UPDATED_LOAD_BALANCER, "Updated load balancer with new hosts")
}

/// The load balancer is being removed.
#[must_use]
pub fn deleting() -> Notice {
    normal(reason::DELETING_LOAD_BALANCER, "Deleting load balancer")
}

/// The load balancer is gone.
#[must_use]
pub fn deleted() -> Notice {
    normal(reason::DELETED_LOAD_BALANCER, "Deleted load balancer")
}

/// No node stands behind the load balancer.
#[must_use]
pub fn no_nodes() -> Notice {
    warning(reason::UNAVAILABLE_LOAD_BALANCER, "There are no available nodes for LoadBalancer")
}

/// Building, changing or removing failed. `None` where we stopped ourselves.
#[must_use]
pub fn sync_failed(error: &Error) -> Option<Notice> {
    let reason = Doing::SyncLoadBalancer.failed(error.category())?;
    Some(warning(reason, &format!("Error syncing load balancer: {error}")))
}

/// The load balancer did not get its new nodes. `None` where we stopped ourselves.
#[must_use]
pub fn update_failed(nodes: &[&str], error: &Error) -> Option<Notice> {
    let reason = Doing::UpdateLoadBalancer.failed(error.category())?;
    let (names, total) = (limited_names(nodes), nodes.len());
    let message = format!(
        "Error updating load balancer with new hosts {names} \
         [node names limited, total number of nodes: {total}], error: {error}"
    );
    Some(warning(reason, &message))
}

/// One warning for everything that is refused, or none.
///
/// The reason is that of the first: a planner puts first what stands in the way of the rest.
#[must_use]
pub fn refused(refusals: &[Refusal]) -> Option<Notice> {
    let first = refusals.first()?;
    let lines: Vec<_> = refusals.iter().map(ToString::to_string).collect();
    Some(warning(first.reason, &lines.join("; ")))
}

/// Nothing holds the Service any more, and its load balancer may still stand.
#[must_use]
pub fn orphan(provider: &str) -> Notice {
    warning(
        reason::ORPHANED_LOAD_BALANCER,
        &format!(
            "The finalizer was taken away before the load balancer was gone; it may still exist at {provider}. \
             It is not deleted automatically: delete it there if nobody needs it"
        ),
    )
}

/// It cannot be told who the Service belongs to.
#[must_use]
pub fn doubtful(error: &Error) -> Notice {
    warning(reason::LOAD_BALANCER_OWNER_UNCLEAR, error.message())
}

/// At most twenty names, sorted, and how many more there are: `[a b <3 more>]`.
#[must_use]
pub fn limited_names(names: &[&str]) -> String {
    let mut shown: Vec<_> = names.iter().take(NAMES_SHOWN).map(|&name| name.to_owned()).collect();
    shown.sort_unstable();
    if let Some(more) = names.len().checked_sub(NAMES_SHOWN).filter(|&more| more > 0) {
        shown.push(format!("<{more} more>"));
    }
    format!("[{}]", shown.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_that_alerts_look_for() {
        use Severity::{Normal, Warning};
        let error = Error::temporary("503");
        let table = [
            (ensuring(), Normal, "EnsuringLoadBalancer", "Ensuring load balancer"),
            (ensured(), Normal, "EnsuredLoadBalancer", "Ensured load balancer"),
            (updated(), Normal, "UpdatedLoadBalancer", "Updated load balancer with new hosts"),
            (deleting(), Normal, "DeletingLoadBalancer", "Deleting load balancer"),
            (deleted(), Normal, "DeletedLoadBalancer", "Deleted load balancer"),
            (no_nodes(), Warning, "UnAvailableLoadBalancer", "There are no available nodes for LoadBalancer"),
            (
                sync_failed(&error).unwrap(),
                Warning,
                "SyncLoadBalancerFailed",
                "Error syncing load balancer: 503",
            ),
            (
                update_failed(&["b", "a"], &error).unwrap(),
                Warning,
                "UpdateLoadBalancerFailed",
                "Error updating load balancer with new hosts [a b] [node names limited, total number of nodes: 2], \
                 error: 503",
            ),
        ];
        for (notice, severity, reason, message) in table {
            assert_eq!(notice.reason, reason);
            assert_eq!((notice.severity, notice.message.as_str()), (severity, message));
            assert_eq!(notice.reason.row().severity, severity, "{reason}");
        }
        assert_eq!(doubtful(&error), warning(reason::LOAD_BALANCER_OWNER_UNCLEAR, "503"));
        let orphan = orphan("cloud");
        assert_eq!((orphan.severity, orphan.reason.name()), (Warning, "OrphanedLoadBalancer"));
        assert!(orphan.message.contains("exist at cloud."), "{}", orphan.message);
    }

    #[test]
    fn stopping_ourselves_is_not_news() {
        let stopped = Error::cancelled("shutdown");
        assert_eq!(sync_failed(&stopped), None);
        assert_eq!(update_failed(&[], &stopped), None);
    }

    #[test]
    fn names_are_limited_first_and_sorted_then() {
        let many: Vec<String> = (0..23).rev().map(|n| format!("n{n:02}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let shown: Vec<String> = (3..23).map(|n| format!("n{n:02}")).collect();
        let table = [
            (vec![], "[]".to_owned()),
            (vec!["b", "a"], "[a b]".to_owned()),
            (many[..20].to_vec(), format!("[{}]", shown.join(" "))),
            (many.clone(), format!("[{} <3 more>]", shown.join(" "))),
        ];
        for (names, want) in table {
            assert_eq!(limited_names(&names), want);
        }
    }

    #[test]
    fn one_warning_names_everything_that_is_refused() {
        let refusal = |reason, field: &str| Refusal {
            reason,
            field: field.to_owned(),
            message: "is not supported".to_owned(),
        };
        assert_eq!(refused(&[]), None);
        let (field, address) = (reason::UNSUPPORTED_FIELD, reason::ADDRESS_TAKEN);
        let same = [refusal(field, "spec.a"), refusal(field, "spec.b")];
        let want = warning(field, "spec.a: is not supported; spec.b: is not supported");
        assert_eq!(refused(&same), Some(want), "L8-105");
        let mixed = [refusal(field, "spec.a"), refusal(address, "spec.b")];
        assert_eq!(refused(&mixed).unwrap().reason, field, "the first one's");
        let long = [refusal(field, &"x".repeat(2_000))];
        assert_eq!(refused(&long).unwrap().message.len(), MESSAGE_LIMIT);
    }
}
