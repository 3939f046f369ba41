//! What the API tells about itself, in the order in which it happens.

use futures_util::{Stream, StreamExt as _, stream::select_all};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject},
    runtime::watcher::{self, watcher},
};
use serde_json::Value;

/// A kind of object that the story looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Node,
    Service,
    Event,
    Lease,
}

impl Kind {
    pub(super) const ALL: [Self; 4] = [Self::Node, Self::Service, Self::Event, Self::Lease];

    pub(super) fn resource(self) -> ApiResource {
        let (group, kind, plural) = match self {
            Self::Node => ("", "Node", "nodes"),
            Self::Service => ("", "Service", "services"),
            Self::Event => ("", "Event", "events"),
            Self::Lease => ("coordination.k8s.io", "Lease", "leases"),
        };
        let api_version = if group.is_empty() { "v1".to_owned() } else { format!("{group}/v1") };
        let (group, version) = (group.to_owned(), "v1".to_owned());
        ApiResource { group, version, api_version, kind: kind.to_owned(), plural: plural.to_owned() }
    }
}

#[derive(Debug)]
pub(super) struct Sighting {
    pub(super) kind: Kind,
    /// It does not exist any more; this is what it was last.
    pub(super) gone: bool,
    pub(super) object: Value,
}

#[derive(Debug)]
pub(super) enum Heard {
    /// From now on, nothing about this kind is missed.
    Listening,
    Saw(Sighting),
    /// The watch broke. In memory that is a bug.
    Broken(String),
}

/// Watches everything that the story looks at.
pub(super) fn watch(client: &Client) -> impl Stream<Item = Heard> + Send + use<> {
    select_all(Kind::ALL.map(|kind| {
        let objects: Api<DynamicObject> = Api::all_with(client.clone(), &kind.resource());
        let events = watcher(objects, watcher::Config::default());
        events.filter_map(move |event| std::future::ready(hear(kind, event))).boxed()
    }))
}

fn hear(kind: Kind, event: watcher::Result<watcher::Event<DynamicObject>>) -> Option<Heard> {
    let (gone, object) = match event {
        Ok(watcher::Event::Init) => return None,
        Ok(watcher::Event::InitDone) => return Some(Heard::Listening),
        Ok(watcher::Event::InitApply(object) | watcher::Event::Apply(object)) => (false, object),
        Ok(watcher::Event::Delete(object)) => (true, object),
        Err(why) => return Some(Heard::Broken(why.to_string())),
    };
    Some(match serde_json::to_value(&object) {
        Ok(object) => Heard::Saw(Sighting { kind, gone, object }),
        Err(why) => Heard::Broken(why.to_string()),
    })
}
