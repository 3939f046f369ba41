//! Zones: a region is the failure domain, and there is nothing finer.

use cloudberth_core::{
    Call, Category, Error, Instance, Instances, Listing, Lookup, ProviderId, Region, Result, Zone, Zones,
    provider::{Boxed, Place},
};

use crate::{provider::BinaryLaneProvider, wire::Slug};

/// The place of this slug: the same word for both.
fn place(slug: &str) -> Result<Place> {
    Ok(Place { region: Region::new(slug)?, zone: Some(Zone::new(slug)?) })
}

impl Zones for BinaryLaneProvider {
    fn list<'a>(&'a self, call: &'a Call) -> Boxed<'a, Result<Listing<Place>>> {
        Box::pin(async move {
            let Listing { items, short } = self.api.regions(call).await?;
            let places = items.iter().map(|Slug { slug }| place(slug)).collect::<Result<_>>()?;
            Ok(Listing { items: places, short })
        })
    }
}

impl BinaryLaneProvider {
    /// The zone of the program itself: the configured region, else that of the server that is called like its node.
    pub async fn own_zone(&self, call: &Call, node: &str) -> Result<Place> {
        match &self.settings.region {
            Some(region) => place(region),
            None => self.zone_by_name(call, node).await,
        }
    }

    /// The zone of the server with this id. One that is not there is an error of category `NotFound`.
    pub async fn zone_by_id(&self, call: &Call, id: &ProviderId) -> Result<Place> {
        zone_of(self.get(call, id).await, &id.to_string())
    }

    /// The zone of the server that is called like a node.
    pub async fn zone_by_name(&self, call: &Call, node: &str) -> Result<Place> {
        zone_of(self.find(call, node).await, node)
    }
}

fn zone_of(found: Lookup<Instance>, what: &str) -> Result<Place> {
    let instance =
        found.known()?.ok_or_else(|| Error::new(Category::NotFound, format!("there is no server {what}")))?;
    let unknown = || Error::temporary(format!("the region of server {what} is not known"));
    let Instance { region, zone, .. } = instance;
    Ok(Place { region: region.ok_or_else(unknown)?, zone })
}
