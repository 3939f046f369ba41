//! Waiting for what happens.

use std::time::Duration;

use http::StatusCode;
use serde::Serialize;

use super::{ApiResponse, answer, route::Query};
use crate::{control::Control, events::Event, refusal::Refusal};

const WAIT: u64 = 30;
const LONGEST_WAIT: u64 = 60;

#[derive(Debug, Serialize)]
struct Events {
    next: u64,
    items: Vec<Event>,
}

pub(super) async fn answer(control: &Control, query: &Query) -> Result<ApiResponse, Refusal> {
    let log = control.events();
    let since = query.number("since")?.unwrap_or_else(|| log.latest());
    let wait = query.number("timeout")?.unwrap_or(WAIT).min(LONGEST_WAIT);
    tokio::select! {
        biased;
        () = log.wait(since) => {}
        () = control.closing() => {}
        () = tokio::time::sleep(Duration::from_secs(wait)) => {}
    }
    let (items, next) = log.after(since);
    Ok(answer::json(StatusCode::OK, &Events { next, items }))
}
