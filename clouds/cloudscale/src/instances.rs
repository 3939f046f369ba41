//! Instances: one listing, one lookup by id. The API cannot filter by name, so a listing is all that it says about names.

use cloudberth_core::{
    Call, Error, Instance, Instances, Listing, Lookup, ProviderId, Result, provider::Boxed,
};

use crate::{
    provider::CloudscaleProvider,
    servers,
    uuid::{SCHEME, ServerId, server_id},
};

impl Instances for CloudscaleProvider {
    fn list<'a>(&'a self, call: &'a Call) -> Boxed<'a, Result<Listing<Instance>>> {
        Box::pin(async move {
            let Listing { items, short } = self.api.servers(call).await?;
            let (items, flaw) = servers::instances(items);
            Ok(Listing { items, short: short.or(flaw) })
        })
    }

    fn get<'a>(&'a self, call: &'a Call, id: &'a ProviderId) -> Boxed<'a, Lookup<Instance>> {
        Box::pin(async move {
            let ServerId::Known(id) = server_id(&id.to_string()) else {
                let text = format!("{id} is not the id of a server; it should be {SCHEME}://UUID");
                return Lookup::Unknown(Error::permanent(text));
            };
            let server = self.api.server(call, &id).await.known();
            server.and_then(|server| server.map(servers::instance).transpose()).into()
        })
    }
}
