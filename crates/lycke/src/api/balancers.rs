//! Load balancers.

use http::StatusCode;

use super::{
    ApiResponse,
    answer::{self, Deleted, Items},
    body::{finish, parse},
    machines,
    route::Query,
    view::{BalancerView, StatsView},
};
use crate::{control::Control, plane::BalancerKey, refusal::Refusal, state::Put};

fn not_found(key: &BalancerKey) -> Refusal {
    Refusal::new(404, "load_balancer_not_found", format!("there is no load balancer {key}"))
}

pub(super) fn list(control: &Control, query: &Query) -> Result<Items<BalancerView>, Refusal> {
    let cluster = machines::cluster(control, query)?;
    Ok(Items { items: control.balancers(cluster).iter().map(BalancerView::new).collect() })
}

pub(super) fn get(control: &Control, key: &BalancerKey) -> Result<BalancerView, Refusal> {
    control.balancer(key).map(|status| BalancerView::new(&status)).ok_or_else(|| not_found(key))
}

pub(super) async fn put(control: &Control, key: BalancerKey, body: &[u8]) -> Result<ApiResponse, Refusal> {
    let body = parse(body)?;
    let control = control.clone();
    let (put, status) = finish(async move { control.put(&key, &body).await }).await?;
    let code = if put == Put::Created { StatusCode::CREATED } else { StatusCode::OK };
    Ok(answer::json(code, &BalancerView::new(&status)))
}

pub(super) async fn delete(
    control: &Control,
    key: BalancerKey,
    query: &Query,
) -> Result<ApiResponse, Refusal> {
    let uid = query.get("uid").map(str::to_owned);
    let control = control.clone();
    let deleted = finish(async move { control.delete(&key, uid.as_deref()).await }).await?;
    Ok(answer::json(StatusCode::OK, &Deleted { deleted }))
}

pub(super) fn stats(control: &Control, key: &BalancerKey) -> Result<ApiResponse, Refusal> {
    let (uid, counters) = control.counters(key).ok_or_else(|| not_found(key))?;
    let report = control.plane().report(key);
    Ok(answer::json(StatusCode::OK, &StatsView::new(uid, counters, report.as_ref())))
}
