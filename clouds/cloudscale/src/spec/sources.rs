//! Who may connect.

use std::collections::BTreeSet;

use cloudberth_core::{
    ServiceView,
    annotation::Value,
    decide::service::source_ranges::{SOURCE_RANGES_ANNOTATION, source_ranges},
    lb::{Notice, Refusal},
    net::{parse_cidr, parse_ip},
};
use ipnet::IpNet;

use super::{Spec, ports::Sources};
use crate::{annotations::ALLOWED_CIDRS, observed::Observed, reasons::SOURCE_RANGES_IGNORED};

const FIELD: &str = "spec.loadBalancerSourceRanges";

/// The networks that a list of texts means, in no order: equal for lists that admit the same.
pub(crate) fn canonical(texts: &[String]) -> BTreeSet<(Option<IpNet>, String)> {
    let network = |text: &String| parse_cidr(text).or_else(|| parse_ip(text).map(IpNet::from));
    let each = |text: &String| match network(text) {
        Some(network) => (Some(network), String::new()),
        None => (None, text.clone()),
    };
    texts.iter().map(each).collect()
}

impl Spec<'_> {
    /// Who may connect, by the annotation or by the field.
    ///
    /// The program that we replace ignores the field. So it is carried out on load balancers that we created; on one
    /// that was taken over it would cut off clients that can connect now, so a warning says what to do instead.
    pub(super) fn sources(&mut self, service: &ServiceView, observed: &Observed, ours: bool) -> Sources {
        let annotated = match self.annotations.get(&ALLOWED_CIDRS) {
            Value::Set(list) => Some(list.into_iter().map(|source| source.text).collect::<Vec<_>>()),
            Value::Unset => Some(Vec::new()),
            Value::Wrong => None,
        };
        let Some(ranges) = self.ranges(service) else {
            // With the field unreadable, an annotation that is readable still counts.
            return match annotated {
                Some(list) if !list.is_empty() || !ours => Sources::These(list),
                _ => Sources::Running,
            };
        };
        let Some(annotated) = annotated else { return Sources::Running };
        if ranges.is_empty() || canonical(&annotated) == canonical(&ranges) {
            return Sources::These(annotated);
        }
        if !annotated.is_empty() {
            let message = format!("{} says something else and counts; make them equal", ALLOWED_CIDRS.name());
            self.refused.push(Refusal::unsupported(FIELD, message));
            return Sources::These(annotated);
        }
        if ours || observed.existing.is_none() {
            return Sources::These(ranges);
        }
        let message = format!(
            "{FIELD} is not carried out, because this load balancer was there before cloudberth; use {}",
            ALLOWED_CIDRS.name()
        );
        self.notices.push(Notice::warning(SOURCE_RANGES_IGNORED, message));
        Sources::These(annotated)
    }

    /// The ranges of the field, or of the annotation that stands for it; empty where neither is set, `None` where the
    /// value is refused.
    fn ranges(&mut self, service: &ServiceView) -> Option<Vec<String>> {
        let by_field = service.source_ranges.as_ref().is_some_and(|list| !list.is_empty());
        let annotation = service.annotations.get(SOURCE_RANGES_ANNOTATION);
        if !by_field && annotation.is_none_or(|text| text.trim().is_empty()) {
            return Some(Vec::new());
        }
        match source_ranges(service) {
            Ok(ranges) => Some(ranges.iter().map(ToString::to_string).collect()),
            Err(why) => {
                let field = if by_field { FIELD } else { SOURCE_RANGES_ANNOTATION };
                let message = why.message();
                let message = message.strip_prefix(&format!("{field}: ")).unwrap_or(message);
                self.refused.push(Refusal::unsupported(field, message));
                None
            }
        }
    }
}
