//! Clusters and machines.

use http::StatusCode;
use serde_json::Value;

use super::{
    ApiResponse,
    answer::{self, Deleted, Items},
    body::{finish, parse},
    route::Query,
    view::{ClusterView, MachineView},
};
use crate::{
    control::Control,
    inventory::MachineState,
    refusal::Refusal,
    spec::json::{Faults, Place},
    state::State,
};

pub(super) fn clusters(control: &Control) -> Items<ClusterView> {
    let items = control.with_state(|state, _| {
        let clusters = state.inventory.clusters.iter();
        clusters.map(|(key, cluster)| ClusterView::new(key, cluster)).collect()
    });
    Items { items }
}

/// The cluster that was asked for. An unknown one is an error: an empty list would look as if its machines were gone.
pub(super) fn cluster<'a>(control: &Control, query: &'a Query) -> Result<Option<&'a str>, Refusal> {
    let Some(key) = query.get("cluster") else { return Ok(None) };
    control.heard_of(key);
    control.with_state(|state, _| {
        if state.has_cluster(key) {
            return Ok(Some(key));
        }
        let known: Vec<_> = state.inventory.clusters.keys().map(String::as_str).collect();
        Err(Refusal::no_cluster(key, &known))
    })
}

pub(super) fn list(control: &Control, query: &Query) -> Result<Items<MachineView>, Refusal> {
    let (cluster, name) = (cluster(control, query)?, query.get("name"));
    let all = control.with_state(State::machines);
    let asked_for = all.into_iter().filter(|known| {
        cluster.is_none_or(|key| known.machine.cluster == key)
            && name.is_none_or(|name| known.machine.name == name)
    });
    Ok(Items { items: asked_for.map(MachineView::new).collect() })
}

pub(super) fn get(control: &Control, id: &str) -> Result<MachineView, Refusal> {
    control.machine(id).map(MachineView::new)
}

pub(super) async fn add(control: &Control, body: &[u8]) -> Result<ApiResponse, Refusal> {
    let object: Value = parse(body)?;
    if !object.is_object() {
        return Err(Refusal::invalid("the body must be an object"));
    }
    let control = control.clone();
    let machine = finish(async move { control.add_machine(&object.to_string()).await }).await?;
    Ok(answer::json(StatusCode::CREATED, &MachineView::new(machine)))
}

pub(super) async fn patch(control: &Control, id: &str, body: &[u8]) -> Result<ApiResponse, Refusal> {
    get(control, id)?;
    let state = read_patch(&parse(body)?)?;
    let (control, id) = (control.clone(), id.to_owned());
    let machine = finish(async move { control.set_machine_state(&id, state).await }).await?;
    Ok(answer::json(StatusCode::OK, &MachineView::new(machine)))
}

fn read_patch(body: &Value) -> Result<MachineState, Refusal> {
    let faults = Faults::default();
    let state =
        Place::root(body, &faults).fields(|fields| fields.required("state").parse(MachineState::parse));
    faults.into_result().map_err(Refusal::invalid)?;
    state.flatten().ok_or_else(|| Refusal::invalid("state: it is missing"))
}

pub(super) async fn delete(control: &Control, id: &str) -> Result<ApiResponse, Refusal> {
    let (control, id) = (control.clone(), id.to_owned());
    let deleted = finish(async move { Ok(control.remove_machine(&id).await) }).await?;
    Ok(answer::json(StatusCode::OK, &Deleted { deleted }))
}
