//! What there is for one Service, with as few requests as prove it.

use std::{collections::BTreeSet, net::IpAddr};

use cloudberth_core::{
    Call, Error, Lookup, Result,
    lb::{Desired, Fleet, Goal, LockKey, LockKind, locate},
    provider_id::Reading,
};
use cloudberth_http::{Flawed, Resolver};
use futures_util::future::join_all;

use super::{Survey, survey::Listed};
use crate::{
    annotations::BALANCER,
    api::Api,
    ids::read_id,
    observed::{Observed, trimmed},
    plan::{Choice, addresses, canonical, choose, is_requested, to_resolve},
    settings::Switches,
    spec::{CloudIpRequest, Spec, balancer_name, requested_cloud_ip},
    wire::{BalancerStatus, CloudIp, LoadBalancer, Named},
};

/// One observation.
#[derive(Clone, Copy)]
pub(super) struct Look<'a> {
    pub(super) api: &'a Api,
    pub(super) resolver: &'a dyn Resolver,
    pub(super) call: &'a Call,
    pub(super) fleet: &'a dyn Fleet,
    pub(super) survey: &'a Survey,
    pub(super) want: &'a Desired,
    pub(super) switches: Switches,
}

impl Look<'_> {
    /// Everything of the Service's name, from the shared listings.
    pub(super) async fn ensemble(self) -> Result<Observed> {
        let Look { api, call, survey, want, .. } = self;
        let name = balancer_name(&want.service, &want.cluster);
        let request = requested_cloud_ip(&want.service);
        let balancers = survey.balancers(api, call).await?;
        let is_ours = |identity: &Named| {
            let deleted = identity.status.as_deref() == Some(BalancerStatus::Deleted.as_str());
            !deleted && identity.name.as_deref().is_none_or(|text| trimmed(text) == name)
        };
        all_readable("load balancer", &balancers, is_ours)?;
        let cloud_ips = survey.cloud_ips(api, call).await?;
        all_readable("Cloud IP", &cloud_ips, |identity| {
            let given = matches!(&request, CloudIpRequest::Id(id) if *id == identity.id)
                || matches!(request, CloudIpRequest::Address(_));
            given || is_named(identity, &name)
        })?;
        let groups = survey.groups(api, call).await?;
        all_readable("server group", &groups, |identity| is_named(identity, &name))?;
        let policies = survey.policies(api, call).await?;
        all_readable("firewall policy", &policies, |identity| is_named(identity, &name))?;
        let alive = |status: &BalancerStatus| *status != BalancerStatus::Deleted;
        let mut observed = Observed {
            balancers: pick(&balancers, |one| trimmed(&one.name) == name && alive(&one.status)),
            groups: pick(&groups, |one| one.name == name),
            policies: pick(&policies, |one| one.name == name),
            ..Observed::default()
        };
        let relevant = |one: &CloudIp| {
            let target = one.load_balancer.as_ref();
            one.name == name
                || is_requested(&request, one)
                || target.is_some_and(|to| to.name == name || observed.balancer(&to.id).is_some())
                || observed.balancers.iter().flat_map(|one| &one.cloud_ips).any(|stub| stub.id == one.id)
        };
        observed.cloud_ips = pick(&cloud_ips, relevant);
        // A load balancer that is deleted and was this very Service's: another Service of the name has not recorded its id.
        let recorded = want.service.annotations.get(BALANCER.name());
        let was_ours = |one: &&LoadBalancer| {
            !alive(&one.status) && Some(&one.id) == recorded && trimmed(&one.name) == name
        };
        observed.trace = balancers.whole.iter().find(was_ours).map(|one| (one.id.clone(), name.clone()));
        observed.claimed = self.claimed(&observed.cloud_ips);
        Ok(observed)
    }

    /// The Cloud IPs that other Services ask for.
    fn claimed(self, cloud_ips: &[CloudIp]) -> BTreeSet<String> {
        let asked = |value: String| !self.want.claims.on(&LockKey::new(LockKind::Address, value)).is_empty();
        let claimed = |one: &&CloudIp| {
            asked(one.id.clone()) || addresses(one).iter().any(|ip: &IpAddr| asked(ip.to_string()))
        };
        cloud_ips.iter().filter(claimed).map(|one| one.id.clone()).collect()
    }

    /// The servers of the nodes. One that cannot be described is there all the same, and its id is known.
    pub(super) async fn servers(self, observed: &mut Observed) -> Result<()> {
        let Look { call, fleet, want, switches, .. } = self;
        let read = move |text: &str| read_id(text, switches.k3s);
        let found = locate(fleet, call, &want.backends, read, |_, instance| instance.id.id().to_owned());
        let mut located = found.await?;
        let unknown: BTreeSet<&String> = located.unknown.iter().map(|(node, _)| node).collect();
        for backend in want.backends.iter().filter(|backend| unknown.contains(&backend.node.name)) {
            let id = backend
                .node
                .provider_id
                .as_deref()
                .map_or_else(|| read_id(&backend.node.name, false), |text| read_id(text, switches.k3s));
            if let Reading::Mine(id) = id {
                located.found.push(id.id().to_owned());
            }
        }
        observed.servers = located;
        Ok(())
    }

    /// Looks up the domains that are asked for and that the load balancer does not have yet, all at once.
    pub(super) async fn names(self, observed: &mut Observed) {
        let Look { call, want, resolver, .. } = self;
        let spec = Spec::read(&want.service, &want.cluster, observed.live(), self.switches);
        let names = match choose(&spec.cloud_ip, &spec.name, observed) {
            Choice::Found(cloud_ip) => to_resolve(&spec, cloud_ip, observed),
            Choice::New | Choice::None => Vec::new(),
        };
        let answers = join_all(names.iter().map(|name| resolver.resolve(call, name))).await;
        observed.resolved = names.iter().map(|name| canonical(name)).zip(answers).collect();
    }

    /// Whether the certificate of the load balancer has to be known and the listing does not show it.
    pub(super) fn lacks_certificate(self, observed: &Observed) -> Option<String> {
        let live = observed.live().filter(|live| self.want.goal == Goal::Present && live.acme.is_none())?;
        let spec = Spec::read(&self.want.service, &self.want.cluster, Some(live), self.switches);
        spec.is_https().then(|| live.id.clone())
    }

    /// Reads the load balancer with its certificate.
    pub(super) async fn detail(self, id: &str, observed: &mut Observed) -> Result<()> {
        let detail = match self.api.balancer(self.call, id).await {
            Lookup::Present(detail) => detail,
            Lookup::Absent => {
                return Err(Error::temporary(format!("load balancer {id} is listed and does not exist")));
            }
            Lookup::Unknown(why) => return Err(why),
        };
        observed.balancers.iter_mut().filter(|one| one.id == id).for_each(|one| one.clone_from(&detail));
        Ok(())
    }
}

fn is_named(identity: &Named, name: &str) -> bool {
    identity.name.as_deref().is_none_or(|text| text == name)
}

/// An error if something that may be this Service's is there and cannot be read.
fn all_readable<T>(kind: &str, listed: &Listed<T>, is_ours: impl Fn(&Named) -> bool) -> Result<()> {
    match listed.flawed.iter().find(|flawed| is_ours(&flawed.identity)) {
        None => Ok(()),
        Some(Flawed { identity, why }) => {
            Err(Error::temporary(format!("{kind} {} cannot be read: {why}", identity.id)))
        }
    }
}

fn pick<T: Clone>(listed: &Listed<T>, fits: impl Fn(&T) -> bool) -> Vec<T> {
    listed.whole.iter().filter(|one| fits(one)).cloned().collect()
}
