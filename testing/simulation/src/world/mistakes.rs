//! Manifests with an id or a name that belongs to somebody else's load balancer.

use std::collections::BTreeSet;

use cloudberth_fake::{BALANCER_ID, BALANCER_NAME};
use serde_json::json;

use super::World;
use crate::{clouds::NamedCloud, people::CLUSTER, schedule::Deed};

/// The name of a load balancer that some Service of another cluster has.
fn other_name(service: u8) -> String {
    format!("other-00000000-0000-4000-8000-{service:012x}")
}

/// The name that somebody gave to a load balancer.
fn given_name(service: u8) -> String {
    format!("prod-{service}")
}

impl World {
    /// Others have built the load balancers that these deeds will mistake for somebody's own. They are there from the
    /// start: one that came to be just when it was asked for could not be told from one that the program built itself.
    pub(crate) fn furnish<'a>(&mut self, deeds: impl Iterator<Item = &'a Deed>) {
        let wanted = deeds.filter_map(|deed| match deed {
            Deed::CreateCopy { service, of: None } => Some((*service, other_name(*service))),
            Deed::CreateNamed { service } => Some((*service, given_name(*service))),
            _ => None,
        });
        for (service, name) in wanted.collect::<BTreeSet<_>>() {
            let NamedCloud { name: cloud_name, cloud } = self.clouds.of(service);
            self.foreign.extend(cloud.inherit_balancer(&name).map(|built| (*cloud_name, built)));
        }
    }

    pub(super) async fn create_copy(&mut self, service: u8, of: Option<u8>) {
        if self.people.uid(service).await.is_some() {
            return;
        }
        let id = match of {
            Some(other) => {
                let Some(uid) = self.people.uid(other).await else { return };
                let name = format!("{CLUSTER}-{uid}");
                let there = self.clouds.of(service).cloud.balancers();
                there.into_iter().find(|balancer| balancer.name == name).map(|balancer| balancer.id)
            }
            None => self.foreign_balancer(&other_name(service)),
        };
        let Some(id) = id else { return };
        let key = BALANCER_ID.name();
        self.people.create_service(service, &[80], &json!({key: id})).await;
        self.mistakes.insert((service, key, id));
    }

    pub(super) async fn create_named(&mut self, service: u8) {
        if self.people.uid(service).await.is_some() || self.swapped.contains(&(service % 2)) {
            return;
        }
        let (key, name) = (BALANCER_NAME.name(), given_name(service));
        self.people.create_service(service, &[80], &json!({key: name})).await;
        self.mistakes.insert((service, key, name));
    }

    /// Whether a Service of this cloud asked for a load balancer by its name.
    pub(super) fn asks_by_name(&self, cloud: u8) -> bool {
        self.mistakes.iter().any(|(service, key, _)| service % 2 == cloud % 2 && *key == BALANCER_NAME.name())
    }

    fn foreign_balancer(&self, name: &str) -> Option<String> {
        self.foreign.iter().find(|(_, built)| built.name == name).map(|(_, built)| built.id.clone())
    }
}
