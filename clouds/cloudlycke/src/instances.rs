//! Instances: one listing of the cluster's machines, and look-ups of one.

use cloudberth_core::{
    Call, Category, Error, Instance, Instances, Listing, Lookup, ProviderId, Result, provider::Boxed,
    provider_id::Reading,
};

use crate::{
    id::read_id,
    machines::{self, Known, proves_nothing},
    provider::CloudlyckeProvider,
};

impl Instances for CloudlyckeProvider {
    fn list<'a>(&'a self, call: &'a Call) -> Boxed<'a, Result<Listing<Instance>>> {
        Box::pin(self.listing(call))
    }

    fn get<'a>(&'a self, call: &'a Call, id: &'a ProviderId) -> Boxed<'a, Lookup<Instance>> {
        Box::pin(async move {
            match read_id(&id.to_string()) {
                Reading::Mine(id) => self.machine(call, id.id()).await,
                Reading::Malformed => {
                    Lookup::Unknown(Error::permanent(format!("{id} is not the id of a machine")))
                }
                // Of a node that another program owns.
                Reading::Foreign => match self.listing(call).await {
                    Ok(listing) => listing.find(|instance| instance.id == *id).map(Instance::clone),
                    Err(why) => Lookup::Unknown(proves_nothing(why)),
                },
            }
        })
    }

    /// Asked for is what a listing lacks that is younger than the node. Another one would say the same, so this only tells
    /// it in the words of this cloud.
    fn find<'a>(&'a self, _call: &'a Call, name: &'a str) -> Boxed<'a, Lookup<Instance>> {
        Box::pin(std::future::ready(Lookup::Unknown(self.not_in_inventory(name))))
    }
}

impl CloudlyckeProvider {
    /// The machines of the cluster. Whoever lists them also learns which nodes of other programs they stand under.
    pub(crate) async fn listing(&self, call: &Call) -> Result<Listing<Instance>> {
        let cluster = self.api.cluster(call).await?;
        let listing = machines::instances(self.api.machines(call, &cluster).await?, &cluster);
        if listing.short.is_none() {
            self.others.learn(&listing.items);
        }
        Ok(listing)
    }

    async fn machine(&self, call: &Call, id: &str) -> Lookup<Instance> {
        let asked = async {
            let cluster = self.api.cluster(call).await?;
            let Some(machine) = self.api.machine(call, id).await.known()? else { return Ok(None) };
            machines::read(machine, &cluster).map(|known| Some((known, cluster)))
        };
        match asked.await {
            Ok(Some((Known::Here(instance), _))) => Lookup::Present(*instance),
            Ok(Some((Known::Gone, _)) | None) => Lookup::Absent,
            // It exists, so its node is not deleted because of a wrong setting (law 1).
            Ok(Some((Known::Elsewhere(theirs), ours))) => {
                Lookup::Unknown(machines::elsewhere(id, &theirs, &ours))
            }
            Err(why) => Lookup::Unknown(proves_nothing(why)),
        }
    }

    fn not_in_inventory(&self, name: &str) -> Error {
        let text = format!(
            "node {name:?} is not in the inventory: no machine of cluster {:?} has this name; add it to the file, or \
             start the node's kubelet with --provider-id",
            self.api.cluster_in_words()
        );
        Error::new(Category::NotFound, text)
    }
}
