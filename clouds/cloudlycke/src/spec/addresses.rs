//! The addresses that a Service asks for. Whether they can be had is for the service to say; what follows from its word is
//! decided here.

use cloudberth_core::{
    lb::{Notice, Refusal, Severity},
    net::{IpFamily, parse_ip},
    view::IpFamilyPolicy,
};

use super::Spec;
use crate::{action::Unavailable, observed::Observed, reasons::FAMILY_LEFT_OUT};

const POLICY: &str = "spec.ipFamilyPolicy";

impl Spec {
    /// The families of the Service, in its order. One that only prefers both is content with the one that it has, or with
    /// any one that can be had.
    pub(super) fn families(
        &mut self,
        families: &[IpFamily],
        policy: Option<&IpFamilyPolicy>,
        observed: &Observed,
    ) {
        let word = |family: &IpFamily| if *family == IpFamily::V6 { "IPv6" } else { "IPv4" };
        let mut all: Vec<String> = families.iter().map(|family| word(family).to_owned()).collect();
        if all.is_empty() {
            all.push("IPv4".to_owned());
        }
        if let Some(IpFamilyPolicy::Other(text)) = policy {
            let message = format!("{text:?} is not a policy that Cloudlycke knows");
            self.refused.push(Refusal::unsupported(POLICY, message));
        }
        let before = observed.existing.as_ref().map(|existing| &existing.spec.families);
        let one_will_do = policy == Some(&IpFamilyPolicy::PreferDualStack) && all.len() > 1;
        let mut choices = vec![all.clone()];
        if one_will_do {
            choices.extend(all.iter().map(|family| vec![family.clone()]));
            // What it has is not given up for another try.
            let has = before.filter(|has| has.len() == 1 && choices.contains(has)).cloned();
            choices.splice(0..0, has);
        }
        let mode = self.wire.address_mode.clone();
        let why_not = |choice: &Vec<String>| {
            observed.why_not(&Unavailable::Families(choice.clone()), mode.as_deref()).map(str::to_owned)
        };
        let refused = choices.first().and_then(why_not);
        if let Some(choice) = choices.into_iter().find(|choice| why_not(choice).is_none()) {
            if choice.len() < all.len() {
                let message = format!("{POLICY}: the load balancer has an address of one family only");
                self.notices.push(Notice { severity: Severity::Normal, reason: FAMILY_LEFT_OUT, message });
            }
            self.wire.families = choice;
            return;
        }
        let field = if all.len() > 1 { POLICY } else { "spec.ipFamilies" };
        self.not_given(field, refused.unwrap_or_default());
        self.wire.families = before.cloned().unwrap_or(all);
    }

    /// The address that the Service asks for.
    pub(super) fn address(&mut self, wanted: Option<&str>, observed: &Observed) {
        const FIELD: &str = "spec.loadBalancerIP";
        let before = observed.existing.as_ref().map(|existing| existing.spec.requested_address.clone());
        let wanted = wanted.map(str::trim).unwrap_or_default();
        self.wire.requested_address = match parse_ip(wanted) {
            None if wanted.is_empty() => String::new(),
            None => {
                let message = format!("{wanted:?} is not an IP address");
                self.refused.push(Refusal::unsupported(FIELD, message));
                before.unwrap_or_default()
            }
            Some(ip) => {
                let text = ip.to_string();
                let what = Unavailable::Address(text.clone());
                match observed.why_not(&what, self.wire.address_mode.as_deref()) {
                    None => text,
                    Some(why) => {
                        self.not_given(FIELD, why.to_owned());
                        // A wish that was granted once and is not any more is withdrawn: the address itself stays.
                        before.filter(|before| *before != text).unwrap_or_default()
                    }
                }
            }
        };
    }

    fn not_given(&mut self, field: &str, why: String) {
        self.refused.push(Refusal::unsupported(field, why.as_str()));
        self.unavailable.get_or_insert(why);
    }
}
