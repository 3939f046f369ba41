//! Who may connect.

use std::{collections::BTreeSet, net::IpAddr};

use cloudberth_core::{
    ServiceView,
    decide::service::source_ranges::{SOURCE_RANGES_ANNOTATION, source_ranges},
    lb::{Notice, Refusal},
    net::parse_cidr,
};

use super::Spec;
use crate::{observed::Observed, reasons::LOCAL_CLIENTS_LOCKED_OUT};

const FIELD: &str = "spec.loadBalancerSourceRanges";

impl Spec {
    /// The ranges of the field, or of the annotation that stands for it. Whoever connects to a loopback address comes from
    /// one, so ranges without those lock everybody out.
    pub(super) fn sources(&mut self, service: &ServiceView, observed: &Observed) {
        let by_field = service.source_ranges.as_ref().is_some_and(|list| !list.is_empty());
        let annotation = service.annotations.get(SOURCE_RANGES_ANNOTATION);
        if !by_field && annotation.is_none_or(|text| text.trim().is_empty()) {
            return;
        }
        let field = if by_field { FIELD } else { SOURCE_RANGES_ANNOTATION };
        match source_ranges(service) {
            Ok(ranges) => self.wire.source_ranges = ranges.iter().map(ToString::to_string).collect(),
            Err(why) => {
                let message = why.message();
                let message = message.strip_prefix(&format!("{field}: ")).unwrap_or(message);
                self.refused.push(Refusal::unsupported(field, message));
                let before = observed.existing.as_ref().map(|existing| existing.spec.source_ranges.clone());
                self.wire.source_ranges = before.unwrap_or_default();
                return;
            }
        }
        let addresses = observed.existing.as_ref().map(|existing| existing.addresses.as_slice());
        let locked: Vec<_> = addresses.unwrap_or_default().iter().filter(|ip| self.locks_out(ip)).collect();
        if let [first, ..] = locked.as_slice() {
            let text = format!(
                "{field}: clients of {first} come from 127.0.0.0/8, which is left out, so nobody can connect; add \
                 127.0.0.0/8"
            );
            self.notices.push(Notice::warning(LOCAL_CLIENTS_LOCKED_OUT, text));
        }
    }

    /// Whether an address is one of this computer, and the ranges let nobody from there in.
    fn locks_out(&self, address: &IpAddr) -> bool {
        address.is_loopback() && !contains(&self.wire.source_ranges, address)
    }
}

/// Whether a range holds the address itself, from which its own computer connects, or the first loopback address.
fn contains(ranges: &BTreeSet<String>, address: &IpAddr) -> bool {
    let first = IpAddr::from([127, 0, 0, 1]);
    let nets = ranges.iter().filter_map(|text| parse_cidr(text));
    nets.into_iter().any(|net| net.contains(address) || (address.is_ipv4() && net.contains(&first)))
}
