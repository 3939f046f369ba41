//! A watch that never ends, in our words.

use std::{sync::Arc, time::Duration};

use cloudberth_core::{Dice, Error};
use futures_util::{Stream, StreamExt};
use kube::{
    Api, Client,
    runtime::watcher::{self, watcher},
};

use crate::object::{Object, Watched};

/// How long a broken watch rests before it is tried again: from the first, doubling up to the second.
const REST: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));

/// What the watch said.
#[derive(Clone, Debug)]
pub(crate) enum Told<V: Watched> {
    /// A listing begins.
    Begin,
    /// It is there, in this version.
    There(V),
    /// It is there, and this is why it cannot be read.
    Unreadable(V::Key, Error),
    /// It is gone.
    Gone(V::Key),
    /// The listing is complete.
    Complete,
    /// The watch broke; it is taken up again after a rest.
    Broken(String),
}

/// Every object of a kind, as it comes and goes. Never ends by itself.
pub(crate) fn watch<V: Watched>(client: Client, dice: Arc<Dice>) -> impl Stream<Item = Told<V>> + Send {
    let api: Api<Object<V>> = Api::all(client);
    let mut broken = 0_u32;
    let events = watcher(api, watcher::Config::default()).map(move |event| match event {
        Ok(event) => {
            broken = 0;
            (tell(event), None)
        }
        Err(error) => {
            broken = broken.saturating_add(1);
            (Told::Broken(error.to_string()), Some(rest(broken)))
        }
    });
    events.then(move |(told, rest)| {
        let dice = Arc::clone(&dice);
        async move {
            if let Some(rest) = rest {
                tokio::time::sleep(dice.jitter(rest, 1.0)).await;
            }
            told
        }
    })
}

fn rest(broken: u32) -> Duration {
    let factor = 1_u32.checked_shl(broken.saturating_sub(1)).unwrap_or(u32::MAX);
    REST.0.saturating_mul(factor.max(1)).min(REST.1)
}

fn tell<V: Watched>(event: watcher::Event<Object<V>>) -> Told<V> {
    match event {
        watcher::Event::Init => Told::Begin,
        watcher::Event::InitApply(object) | watcher::Event::Apply(object) => {
            let key = object.key();
            object.view.map_or_else(|why| Told::Unreadable(key, why), Told::There)
        }
        watcher::Event::Delete(object) => Told::Gone(object.key()),
        watcher::Event::InitDone => Told::Complete,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_watch_rests_longer_each_time_but_not_for_ever() {
        let rests = [1, 2, 3, 6, 7, 40, u32::MAX].map(|n| rest(n).as_millis());
        assert_eq!(rests, [500, 1_000, 2_000, 16_000, 30_000, 30_000, 30_000], "L12-20");
    }
}
