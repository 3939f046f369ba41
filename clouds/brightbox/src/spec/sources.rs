//! Who may connect: everybody. A Service that says otherwise is told so.

use cloudberth_core::{
    ServiceView,
    decide::service::source_ranges::{SOURCE_RANGES_ANNOTATION, source_ranges},
    lb::{Notice, Refusal},
};

use crate::reasons::SOURCE_RANGES_IGNORED;

/// Refuses a limit on who may connect, which this cloud cannot carry out. The replaced program ignores it, so where a load
/// balancer is there already it is a warning: a refusal would change nothing for its clients.
pub(super) fn check(
    service: &ServiceView,
    exists: bool,
    refused: &mut Vec<Refusal>,
    notices: &mut Vec<Notice>,
) {
    let by_field = service.source_ranges.as_ref().is_some_and(|list| !list.is_empty());
    let field = if by_field { "spec.loadBalancerSourceRanges" } else { SOURCE_RANGES_ANNOTATION };
    let open = source_ranges(service).is_ok_and(|ranges| ranges.iter().any(|range| range.prefix_len() == 0));
    if open {
        return;
    }
    let message = "Brightbox load balancers cannot limit who connects";
    if exists {
        let text = format!("{field} is not carried out: {message}, so everybody can");
        notices.push(Notice::warning(SOURCE_RANGES_IGNORED, text));
    } else {
        refused.push(Refusal::unsupported(field, format!("{message}; remove it")));
    }
}
