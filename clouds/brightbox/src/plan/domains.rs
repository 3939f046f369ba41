//! The domains of the certificate: which are asked for, and which of them lead to the Cloud IP.

use cloudberth_core::{Category, Lookup, lb::Notice};

use super::cloud_ip::addresses;
use crate::{
    observed::Observed,
    reasons::DOMAIN_LEADS_ELSEWHERE,
    spec::Spec,
    wire::{AcmeDomain, CloudIp},
};

/// The domains of a certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Domains {
    /// Those that lead to the Cloud IP, or are on the load balancer already, sorted.
    pub(crate) wanted: Vec<String>,
    /// The others, each with the reason.
    pub(crate) missing: Vec<(String, String)>,
    /// Those of the others that were looked up: people can do something about them.
    known: Vec<(String, String)>,
    /// None of the Cloud IP's own names can be used yet, so there would be no certificate at all.
    pub(crate) none_of_its_own: bool,
}

/// How a name is compared: case and a dot at the end mean nothing.
pub(crate) fn canonical(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

fn own_names(cloud_ip: &CloudIp) -> Vec<String> {
    [&cloud_ip.fqdn, &cloud_ip.reverse_dns].into_iter().flatten().cloned().collect()
}

/// All domains that a certificate is asked for, sorted, each once.
fn asked(spec: &Spec, cloud_ip: &CloudIp) -> Vec<String> {
    let mut names: Vec<String> = spec.domains.iter().cloned().chain(own_names(cloud_ip)).collect();
    names.sort();
    names.dedup_by(|a, b| canonical(a) == canonical(b));
    names
}

/// What the load balancer has of a domain.
fn running<'a>(observed: &'a Observed, name: &str) -> Option<&'a AcmeDomain> {
    let acme = observed.live()?.acme.as_ref()?;
    acme.domains.iter().find(|domain| canonical(&domain.identifier) == canonical(name))
}

/// The domains that have to be looked up: those that the load balancer does not have yet.
pub(crate) fn to_resolve(spec: &Spec, cloud_ip: &CloudIp, observed: &Observed) -> Vec<String> {
    if !spec.is_https() {
        return Vec::new();
    }
    asked(spec, cloud_ip).into_iter().filter(|name| running(observed, name).is_none()).collect()
}

/// Which domains the certificate is for, by what was found when they were looked up. One that the load balancer has already
/// stays: a name server that is away for a moment must not end a certificate.
pub(crate) fn domains(spec: &Spec, cloud_ip: &CloudIp, observed: &Observed) -> Domains {
    let mut domains = Domains::default();
    if !spec.is_https() {
        return domains;
    }
    for name in asked(spec, cloud_ip) {
        match leads_here(&name, cloud_ip, observed) {
            Ok(()) => domains.wanted.push(name),
            Err(_) if running(observed, &name).is_some() => domains.wanted.push(name),
            Err(why) => {
                if observed.resolved.contains_key(&canonical(&name)) {
                    domains.known.push((name.clone(), why.clone()));
                }
                domains.missing.push((name, why));
            }
        }
    }
    let own = own_names(cloud_ip);
    domains.none_of_its_own = !own.is_empty() && !own.iter().any(|name| domains.wanted.contains(name));
    domains
}

fn leads_here(name: &str, cloud_ip: &CloudIp, observed: &Observed) -> Result<(), String> {
    let own = addresses(cloud_ip);
    if own.is_empty() {
        return Err(format!("Cloud IP {} shows no address", cloud_ip.id));
    }
    match observed.resolved.get(&canonical(name)) {
        Some(Lookup::Present(found)) if found.iter().any(|ip| own.contains(ip)) => Ok(()),
        // Look-ups are switched off.
        Some(Lookup::Unknown(why)) if why.category() == Category::Permanent => Ok(()),
        Some(Lookup::Present(_)) => Err("it leads elsewhere".to_owned()),
        Some(Lookup::Absent) => Err("there is no such name".to_owned()),
        Some(Lookup::Unknown(why)) => Err(why.message().to_owned()),
        None => Err("it was not looked up yet".to_owned()),
    }
}

impl Domains {
    /// Says which domains are left out, and where to point them.
    pub(super) fn notices(&self, cloud_ip: &CloudIp) -> Vec<Notice> {
        let own: Vec<_> = addresses(cloud_ip).iter().map(ToString::to_string).collect();
        let own = own.join(" and ");
        let notice = |(name, why): &(String, String)| {
            let text = format!(
                "domain {name} does not lead to Cloud IP {} ({own}), so it has no certificate yet: {why}; point it at one \
                 of these addresses",
                cloud_ip.id
            );
            Notice::warning(DOMAIN_LEADS_ELSEWHERE, text)
        };
        self.known.iter().map(notice).collect()
    }
}
