//! Instances: one listing, one lookup by id. A node's name is the id of its server, so a lookup by name is one by id.

use cloudberth_core::{
    Call, Error, Instance, Instances, Listing, Lookup, ProviderId, Result, provider::Boxed,
    provider_id::Reading,
};

use crate::{ids::server_id, provider::BrightboxProvider, servers};

impl BrightboxProvider {
    async fn server(&self, call: &Call, id: &ProviderId) -> Lookup<Instance> {
        let server = self.api.server(call, id.id()).await.known();
        let instance = server.and_then(|server| match server {
            Some(server) => servers::instance(server, self.switches.reporting),
            None => Ok(None),
        });
        instance.into()
    }
}

impl Instances for BrightboxProvider {
    fn list<'a>(&'a self, call: &'a Call) -> Boxed<'a, Result<Listing<Instance>>> {
        Box::pin(async move {
            let Listing { items, short } = self.api.servers(call).await?;
            let (items, flaw) = servers::instances(items, self.switches.reporting);
            Ok(Listing { items, short: short.or(flaw) })
        })
    }

    fn get<'a>(&'a self, call: &'a Call, id: &'a ProviderId) -> Boxed<'a, Lookup<Instance>> {
        Box::pin(async move {
            match crate::ids::read_id(&id.to_string(), self.switches.k3s) {
                Reading::Mine(id) => self.server(call, &id).await,
                Reading::Malformed | Reading::Foreign => {
                    let text =
                        format!("{id} is not the id of a Brightbox server, so nothing is asked about it");
                    Lookup::Unknown(Error::permanent(text))
                }
            }
        })
    }

    fn find<'a>(&'a self, call: &'a Call, name: &'a str) -> Boxed<'a, Lookup<Instance>> {
        Box::pin(async move {
            match server_id(name) {
                Some(id) => self.server(call, &id).await,
                None => Lookup::Absent,
            }
        })
    }
}
