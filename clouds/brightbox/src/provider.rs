//! Which capabilities the cloud has, and what is asked at the start.

use std::sync::Arc;

use cloudberth_core::{
    Call, Error, Instances, LoadBalancers, Provider, ProviderId, Result,
    provider::{Boxed, Quota, Start},
    provider_id::Reading,
};

use crate::{
    api::{Api, Surroundings},
    ids::{SCHEME, read_id},
    settings::{Settings, Switches},
    shell::Brightboxes,
};

/// One account at Brightbox.
#[derive(Debug)]
pub struct BrightboxProvider {
    pub(crate) api: Api,
    pub(crate) switches: Switches,
    ask_account: bool,
    balancers: Brightboxes,
}

impl BrightboxProvider {
    /// The account that the credential of `settings` belongs to.
    pub fn new(settings: &Settings, around: Surroundings) -> Self {
        let (clock, resolver) = (Arc::clone(&around.clock), Arc::clone(&around.resolver));
        let api = Api::new(settings, around);
        let switches = settings.switches;
        let balancers = Brightboxes::new(api.clone(), clock, resolver, switches);
        Self { api, switches, ask_account: settings.ask_account, balancers }
    }

    /// A token is fetched, and where nobody said which account it is for, the API is asked. So a credential that is refused
    /// is found out before anything is written.
    async fn verify(&self, call: &Call) -> Result<()> {
        self.api.sign_in(call).await?;
        if self.ask_account && self.api.accounts(call).await?.is_empty() {
            let text =
                "the credential of BRIGHTBOX_CLIENT may use no account; give it one in the Brightbox Manager";
            return Err(Error::user_input(text));
        }
        Ok(())
    }
}

impl Provider for BrightboxProvider {
    fn name(&self) -> &str {
        SCHEME
    }

    fn scheme(&self) -> &str {
        SCHEME
    }

    fn owns(&self, id: &ProviderId) -> bool {
        matches!(self.read_id(&id.to_string()), Reading::Mine(_))
    }

    fn read_id(&self, text: &str) -> Reading {
        read_id(text, self.switches.k3s)
    }

    fn start<'a>(&'a self, call: &'a Call) -> Boxed<'a, Start> {
        Box::pin(async move { Start::from(self.verify(call).await) })
    }

    /// Of the one account that the credential may use; of several, which one is meant is not known.
    fn quotas<'a>(&'a self, call: &'a Call) -> Boxed<'a, Result<Vec<Quota>>> {
        Box::pin(async move {
            let accounts = self.api.accounts(call).await?;
            let [one] = accounts.as_slice() else { return Ok(Vec::new()) };
            let quota = |what, used: Option<u64>, limit: Option<u64>| {
                Some(Quota { what, used: used?, limit: limit? })
            };
            let balancers = quota("load balancers", one.load_balancers_used, one.load_balancers_limit);
            let cloud_ips = quota("Cloud IPs", one.cloud_ips_used, one.cloud_ips_limit);
            Ok([balancers, cloud_ips].into_iter().flatten().collect())
        })
    }

    fn instances(&self) -> Option<&dyn Instances> {
        Some(self)
    }

    fn load_balancers(&self) -> Option<&dyn LoadBalancers> {
        Some(&self.balancers)
    }
}
