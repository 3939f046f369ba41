//! Is it the cluster's own account that denies a load balancer? (law 1)
//!
//! A token of another project is a good token: it authenticates, its listings are complete, and they lack everything
//! that is ours. From the load balancer alone that cannot be told from one that somebody deleted. The instances tell:
//! the cluster runs on them, so the account that holds none of them is not the cluster's.
//!
//! ```text
//!   denied ──► no node of this cloud ──────────────────────────► believed: nobody can tell
//!          └─► list the instances ──► one of ours is there ─────► look once more, then believed
//!                                └─► none, short, failed ──────► unknown: nothing is let go, nothing is created
//! ```
//!
//! The second look is there because a token may be mended between the first look and the listing.

use crate::{
    decide::{
        lifecycle::{MACHINE_IS_GONE, NodeFacts, shows_none},
        service::FINALIZER,
    },
    error::{Category, Error, Result},
    instance::InstanceListing,
    lb::{Goal, INTENT_ANNOTATION, Intent, LockKey, LockKind, Turn, TurnEnd},
    view::ServiceView,
};

/// Whether a Service is about to be let go of, or to get a second load balancer, only because the cloud shows nothing
/// where there was something.
///
/// Something was there if the Service claims one by its id or shows an address, or may have been if a creation was sent
/// whose end nobody knows; surely, if the turn saw it and it was not there when its removal arrived. What the turn has
/// removed itself was not denied, and while an intent pends nothing is let go or created anyway.
#[must_use]
pub fn is_denied(goal: Goal, turn: &Turn, intent: Intent, service: &ServiceView, keys: &[LockKey]) -> bool {
    let silent = match goal {
        Goal::Gone => turn.end == TurnEnd::Converged,
        Goal::Present => turn.end == TurnEnd::NeedsIntent,
    };
    let missed = turn.done.is_empty() && remembers(service, keys);
    silent && intent == Intent::Free && (turn.denied || missed)
}

/// Whether a Service says of itself that there was a load balancer, or may have been: it claims one by its id, an address
/// is published, or a creation was sent whose end nobody knows.
fn remembers(service: &ServiceView, keys: &[LockKey]) -> bool {
    let named = keys.iter().any(|key| key.kind == LockKind::Id);
    named || service.annotations.contains_key(INTENT_ANNOTATION) || !service.ingress.is_empty()
}

/// What the instances of an account that denies a load balancer say about it. An error is the reason why the denial
/// means nothing.
///
/// Only for clusters whose [nodes can tell](crate::decide::lifecycle::has_witnesses).
pub fn vouch(instances: &Result<InstanceListing>, nodes: &[NodeFacts]) -> Result<()> {
    let doing = "the load balancer is not found, and whether this is the right account is not known";
    let listing = instances.as_ref().map_err(|why| why.clone().context(doing))?;
    let Some(doubt) = shows_none(listing, nodes) else { return Ok(()) };
    if let Some(short) = &listing.short {
        return Err(Error::temporary(format!("{doing}: the listing of instances is incomplete: {short}")));
    }
    // As rarely as with a token that is refused: somebody has to mend it.
    Err(Error::new(
        Category::Unauthorised,
        format!(
            "the load balancer is not found, but neither is any instance of the cluster, so this looks like somebody \
             else's account, and nothing is created or let go: {doubt}. If the token is of another project, put the right one back. \
             If those instances are really gone, delete their nodes, or set the annotation {MACHINE_IS_GONE}: \"true\" \
             on them. To let go of a deleted Service by force, remove its finalizer {FINALIZER}; a load balancer that still \
             exists is then yours to delete"
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        decide::{
            lifecycle::{
                Tie, has_witnesses,
                tests::{self, id},
            },
            service::testing::{MARK, annotated, service},
        },
        instance::Instance,
        lb::Creation,
        lookup::Listing,
        view::Ingress,
    };
    use std::time::Duration;

    const PENDING: Intent = Intent::Pending(Duration::from_secs(30));

    fn turn(end: TurnEnd, done: &[&str]) -> Turn {
        let done = done.iter().map(|&step| step.to_owned()).collect();
        Turn { end, done, denied: false, creation: Creation::Nothing, refused: vec![], notices: vec![] }
    }

    fn shown() -> ServiceView {
        let ingress = Ingress { ip: Some("192.0.2.1".to_owned()), ..Ingress::default() };
        ServiceView { ingress: vec![ingress], ..service() }
    }

    #[test]
    fn a_denial_is_silence_where_something_was() {
        use Goal::{Gone, Present};
        let recorded = || annotated(service(), MARK, "7");
        let found = || turn(TurnEnd::Converged, &[]);
        let missing = || turn(TurnEnd::NeedsIntent, &[]);
        let gone_meanwhile = || Turn { denied: true, ..turn(TurnEnd::Converged, &["delete it"]) };
        let replaced = || Turn { denied: true, ..turn(TurnEnd::NeedsIntent, &["delete it"]) };
        let waiting = || turn(TurnEnd::Wait { on: "deleting".into(), poll: Duration::from_secs(5) }, &[]);
        let unknown = || turn(TurnEnd::Unknown(Error::temporary("503")), &[]);
        let table = [
            ("L1-830 an id is recorded", Gone, found(), Intent::Free, recorded(), true),
            ("L1-831 an address is published", Gone, found(), Intent::Free, shown(), true),
            (
                "L1-832 a creation was sent, and its time is over",
                Gone,
                found(),
                Intent::Free,
                annotated(service(), INTENT_ANNOTATION, "2026-03-02T04:05:00Z"),
                true,
            ),
            ("there never was one: a name is no record", Gone, found(), Intent::Free, service(), false),
            (
                "we deleted it",
                Gone,
                turn(TurnEnd::Converged, &["delete it"]),
                Intent::Free,
                recorded(),
                false,
            ),
            (
                "L1-1011 it was there, and not when we deleted it",
                Gone,
                gone_meanwhile(),
                Intent::Free,
                service(),
                true,
            ),
            (
                "L1-1012 the same, to make room for another",
                Present,
                replaced(),
                Intent::Free,
                service(),
                true,
            ),
            (
                "a part was not there",
                Present,
                Turn { end: TurnEnd::Converged, ..replaced() },
                Intent::Free,
                recorded(),
                false,
            ),
            ("an intent holds that anyway", Gone, gone_meanwhile(), PENDING, recorded(), false),
            ("it is going", Gone, waiting(), Intent::Free, recorded(), false),
            ("it is not known", Gone, unknown(), Intent::Free, recorded(), false),
            ("an intent holds it anyway", Gone, found(), PENDING, recorded(), false),
            ("it is wanted and there", Present, found(), Intent::Free, recorded(), false),
            ("L1-843 it is wanted and not found", Present, missing(), Intent::Free, recorded(), true),
            ("L1-844 its address is published", Present, missing(), Intent::Free, shown(), true),
            ("it is to be built for the first time", Present, missing(), Intent::Free, service(), false),
            ("an intent holds the creation anyway", Present, missing(), PENDING, recorded(), false),
        ];
        for (case, goal, turn, intent, service, want) in table {
            let id = service.annotations.get(MARK).map(|id| LockKey::new(LockKind::Id, id));
            let claims: Vec<_> = [LockKey::new(LockKind::Name, "web")].into_iter().chain(id).collect();
            assert_eq!(is_denied(goal, &turn, intent, &service, &claims), want, "{case}");
        }
    }

    fn node(number: usize) -> NodeFacts {
        NodeFacts { ready: true, ..tests::node(number) }
    }

    #[test]
    fn one_instance_of_ours_vouches_for_the_account() {
        let instances = |numbers: &[usize]| {
            numbers.iter().map(|&n| Instance::new(id(n), &format!("node{n}"))).collect::<Vec<_>>()
        };
        let complete = |numbers: &[usize]| Ok(Listing::complete(instances(numbers)).into());
        let short = |numbers: &[usize]| Ok(Listing::short(instances(numbers), "page 2 is missing").into());
        let three = || vec![node(1), node(2), node(3)];
        let stranger = Some((Category::Unauthorised, "none of the instances whose ids 3 nodes carry"));
        let table = [
            ("all are there", complete(&[1, 2, 3]), three(), None),
            ("one is there", complete(&[3]), three(), None),
            ("one is there, and a page is missing", short(&[3]), three(), None),
            ("L1-833 nothing is there", complete(&[]), three(), stranger),
            ("L1-834 only strangers are there", complete(&[7, 8]), three(), stranger),
            (
                "L1-835 a page is missing",
                short(&[7]),
                three(),
                Some((Category::Temporary, "page 2 is missing")),
            ),
            (
                "L1-836 the listing failed",
                Err(Error::temporary("503")),
                three(),
                Some((Category::Temporary, "503")),
            ),
            (
                "an instance that is declared gone and is there",
                complete(&[1]),
                vec![NodeFacts { declared_gone: true, ..node(1) }, node(2)],
                None,
            ),
        ];
        for (case, instances, nodes, want) in table {
            let said = vouch(&instances, &nodes);
            let said = said.as_ref().err().map(|why| (why.category(), why.message()));
            match want {
                None => assert_eq!(said, None, "{case}"),
                Some((category, words)) => {
                    let (was, message) = said.unwrap_or_else(|| panic!("{case}"));
                    assert_eq!(was, category, "{case}");
                    assert!(message.contains(words), "{case}: {message}");
                }
            }
        }
    }

    #[test]
    fn a_warning_about_a_strange_account_says_the_ways_out_and_fits_an_event() {
        let nodes: Vec<_> = (0..5000).map(node).collect();
        let why = vouch(&Ok(Listing::complete(vec![]).into()), &nodes).unwrap_err();
        for way in ["put the right one back", "delete their nodes", MACHINE_IS_GONE, FINALIZER] {
            assert!(why.message().contains(way), "L1-837 {way}: {why}");
        }
        assert!(why.message().len() < 900, "L1-837 {}", why.message().len());
    }

    #[test]
    fn whose_instance_may_be_gone_is_no_witness() {
        let table = [
            ("of ours", node(1), true),
            ("not Ready", NodeFacts { ready: false, ..node(1) }, true),
            ("L1-838 another cloud's", NodeFacts { tie: Tie::Foreign, ..node(1) }, false),
            ("L1-839 without an id", NodeFacts { tie: Tie::NoId, ..node(1) }, false),
            ("L1-840 being deleted", NodeFacts { deleting: true, ..node(1) }, false),
            ("L1-841 the autoscaler removes it", NodeFacts { autoscaler_removes: true, ..node(1) }, false),
            ("L1-842 a person said so", NodeFacts { declared_gone: true, ..node(1) }, false),
        ];
        for (case, node, want) in table {
            assert_eq!(has_witnesses(&[node]), want, "{case}");
        }
        assert!(!has_witnesses(&[]), "a cluster without nodes");
    }
}
