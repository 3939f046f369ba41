//! One candidate, told step by step what it hears.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use super::*;
use crate::{
    error::{Category, Error},
    lookup::Lookup,
    time::Tick,
};

mod leading;
mod stopping;
mod taking;

const BASE: u64 = 1_000;

fn tick(secs: u64) -> Tick {
    Tick::from_secs(BASE + secs)
}

/// The end of a claim whose renewal was sent so many seconds after the beginning.
fn claim(sent: u64) -> Tick {
    tick(sent) + Duration::from_millis(14_985)
}

fn wall(secs: u64) -> Timestamp {
    let start: Timestamp = "2026-08-01T10:00:00Z".parse().unwrap();
    start + Duration::from_secs(secs)
}

/// So many seconds after the beginning, with a fraction that makes every pause 3.2 s.
fn at(secs: u64) -> Moment {
    Moment { now: tick(secs), wall: wall(secs), fraction: 0.5 }
}

fn candidate() -> Candidate {
    Candidate::new(Config::with_defaults("me"))
}

fn record(holder: &str, seconds: u32, transitions: u32) -> Record {
    let then = Some(wall(0));
    Record {
        holder: holder.to_owned(),
        duration_seconds: Some(seconds),
        acquired: then,
        renewed: then,
        transitions,
    }
}

fn stored(record: Record, version: &str) -> Lease {
    let mut object = Lease::fresh("kube-system", "cloud-controller-manager", record).object().clone();
    object["metadata"]["resourceVersion"] = json!(version);
    Lease::decode(object).unwrap()
}

fn held_by(holder: &str, seconds: u32) -> Lease {
    stored(record(holder, seconds, 3), "7")
}

fn conflict() -> Error {
    Error::new(Category::Conflict, "409")
}

fn unavailable() -> Error {
    Error::temporary("503")
}

fn ticket(action: &Action) -> Ticket {
    match action {
        Action::Get { ticket, .. } | Action::Create { ticket, .. } | Action::Update { ticket, .. } => *ticket,
        Action::Wait(_) | Action::Stopped { .. } => panic!("not a request: {action:?}"),
    }
}

/// What an update or a creation sends.
fn sent(action: &Action) -> &Lease {
    match action {
        Action::Create { lease, .. } | Action::Update { lease, .. } => lease,
        _ => panic!("not a write: {action:?}"),
    }
}

fn is_get(action: &Action) -> bool {
    matches!(action, Action::Get { .. })
}

fn wake(candidate: &mut Candidate, secs: u64) -> Move {
    candidate.step(Input::Wake, at(secs))
}

fn hear(candidate: &mut Candidate, asked: &Action, answer: Lookup<Lease>, secs: u64) -> Move {
    candidate.step(Input::Read(ticket(asked), answer), at(secs))
}

fn fail(candidate: &mut Candidate, asked: &Action, why: Error, secs: u64) -> Move {
    candidate.step(Input::Wrote(ticket(asked), Err(why)), at(secs))
}

/// The server stores what was sent, under this version.
fn store(candidate: &mut Candidate, asked: &Action, version: &str, secs: u64) -> Move {
    let lease = stored(sent(asked).record.clone(), version);
    candidate.step(Input::Wrote(ticket(asked), Ok(lease)), at(secs))
}

/// A candidate that has taken a free lease at second 0 and renewed it once, and what it does next.
fn leader() -> (Candidate, Move) {
    let mut candidate = candidate();
    let get = wake(&mut candidate, 0).action;
    let create = hear(&mut candidate, &get, Lookup::Absent, 0).action;
    let renewal = store(&mut candidate, &create, "1", 0);
    assert_eq!(renewal.news, Some(News::Leads));
    let rest = store(&mut candidate, &renewal.action, "2", 0);
    assert_eq!(rest, Move { action: Action::Wait(tick(2)), news: None });
    (candidate, rest)
}
