//! What is sent down a stream: what changed since the last time, as server-sent events. Pure.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::world::{BalancerCard, Entry, NodeCard, REMEMBERED, Snapshot, Totals};

/// The difference between two snapshots. Applied to the older one it gives the newer one.
#[derive(Debug, Serialize)]
struct Change<'a> {
    /// Whatever is not in it does not exist.
    full: bool,
    seq: u64,
    at_ms: u64,
    provider: &'a str,
    leader: Option<&'a str>,
    fault: Option<&'a str>,
    traffic: bool,
    totals: Totals,
    nodes: Cards<'a, NodeCard>,
    balancers: Cards<'a, BalancerCard>,
}

/// New and changed cards, and the keys of those that went.
#[derive(Debug, Serialize)]
struct Cards<'a, T> {
    set: Vec<&'a T>,
    gone: Vec<&'a str>,
}

impl<'a, T: PartialEq> Cards<'a, T> {
    fn between(before: &'a [T], now: &'a [T], key: impl Fn(&T) -> &str) -> Self {
        let mut old: BTreeMap<&str, &T> = before.iter().map(|card| (key(card), card)).collect();
        let set = now.iter().filter(|card| old.remove(key(card)) != Some(*card)).collect();
        Self { set, gone: old.into_keys().collect() }
    }

    fn is_empty(&self) -> bool {
        self.set.is_empty() && self.gone.is_empty()
    }
}

/// The event `world`: all of it without a snapshot `before`, else what changed; nothing if nothing did but the time.
pub(super) fn world(before: Option<&Snapshot>, now: &Snapshot) -> Option<String> {
    let none = Snapshot::default();
    let old = before.unwrap_or(&none);
    let nodes = Cards::between(&old.nodes, &now.nodes, |card| &card.name);
    let balancers = Cards::between(&old.balancers, &now.balancers, |card| &card.service);
    let head =
        |of: &Snapshot| (of.provider.clone(), of.leader.clone(), of.fault.clone(), of.traffic, of.totals);
    if before.is_some() && nodes.is_empty() && balancers.is_empty() && head(old) == head(now) {
        return None;
    }
    let change = Change {
        full: before.is_none(),
        seq: now.seq,
        at_ms: now.at_ms,
        provider: &now.provider,
        leader: now.leader.as_deref(),
        fault: now.fault.as_deref(),
        traffic: now.traffic,
        totals: now.totals,
        nodes,
        balancers,
    };
    event("world", None, &change)
}

#[derive(Debug, Serialize)]
struct Happened<'a> {
    entries: &'a [Entry],
    /// There may have been more than is remembered.
    gap: bool,
}

/// The event `happened`, with the number to go on from as its id; `after` is where the reader was.
pub(super) fn happened(after: u64, entries: &[Entry]) -> Option<String> {
    let last = entries.last()?;
    let gap = after > 0 && entries.len() >= REMEMBERED;
    event("happened", Some(last.seq), &Happened { entries, gap })
}

/// Between events, so that a connection that is gone is noticed.
pub(super) const HEARTBEAT: &str = ": still here\n\n";
/// How soon a browser tries again.
pub(super) const RETRY: &str = "retry: 1000\n\n";

/// JSON has no line breaks, so one line of data is enough.
fn event(name: &str, id: Option<u64>, data: &impl Serialize) -> Option<String> {
    let data = serde_json::to_string(data).ok()?;
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    Some(format!("{id}event: {name}\ndata: {data}\n\n"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::world::Happening;

    fn node(name: &str, ready: bool) -> NodeCard {
        NodeCard { name: name.to_owned(), ready, ..NodeCard::default() }
    }

    fn snapshot(nodes: &[(&str, bool)]) -> Snapshot {
        let nodes = nodes.iter().map(|(name, ready)| node(name, *ready)).collect();
        Snapshot { provider: "cloudlycke".to_owned(), nodes, ..Snapshot::default() }
    }

    fn data(event: &str) -> Value {
        let line = event.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
        serde_json::from_str(line).unwrap()
    }

    #[test]
    fn only_what_changed_is_sent() {
        let before = snapshot(&[("a", true), ("b", true), ("c", true)]);
        let whole = world(None, &before).unwrap();
        assert!(whole.starts_with("event: world\ndata: {") && whole.ends_with("}\n\n"), "{whole}");
        assert_eq!(data(&whole)["full"], true);
        assert_eq!(data(&whole)["nodes"]["set"].as_array().unwrap().len(), 3);

        let now = snapshot(&[("b", false), ("c", true), ("d", true)]);
        let change = data(&world(Some(&before), &now).unwrap());
        let names = |cards: &Value| {
            cards.as_array().unwrap().iter().map(|card| card["name"].clone()).collect::<Vec<_>>()
        };
        assert_eq!(
            (names(&change["nodes"]["set"]), &change["nodes"]["gone"]),
            (vec![json!("b"), json!("d")], &json!(["a"]))
        );
        assert_eq!(change["full"], false);
    }

    #[test]
    fn time_alone_is_no_news_and_a_new_leader_is() {
        let before = snapshot(&[("a", true)]);
        assert_eq!(world(Some(&before), &Snapshot { at_ms: 9, seq: 4, ..before.clone() }), None);
        let led = Snapshot { leader: Some("one".to_owned()), ..before.clone() };
        assert_eq!(data(&world(Some(&before), &led).unwrap())["leader"], "one");
        assert!(world(None, &before).is_some(), "a new reader gets all of it, whatever it is");
    }

    #[test]
    fn happenings_carry_the_number_to_go_on_from() {
        let deed = |seq| Entry { seq, at_ms: 1, what: Happening::Deed { what: "line\nbreak".to_owned() } };
        assert_eq!(happened(0, &[]), None);
        let two = happened(0, &[deed(3), deed(7)]).unwrap();
        assert!(two.starts_with("id: 7\nevent: happened\ndata: "), "{two}");
        assert_eq!(two.lines().count(), 4, "a line break in a text does not end the line: {two}");
        assert_eq!(data(&two)["entries"][1]["kind"], "Deed");
        assert_eq!(data(&two)["gap"], false);
        let many: Vec<_> = (100..).map(deed).take(REMEMBERED).collect();
        assert_eq!(data(&happened(5, &many).unwrap())["gap"], true, "what was forgotten is admitted");
        assert_eq!(data(&happened(0, &many).unwrap())["gap"], false, "a new reader missed nothing");
    }
}
