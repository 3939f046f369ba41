//! What a person or a test can ask of this cloud beside the API, below `/_sim/`. It needs no token.

use std::{collections::BTreeMap, net::IpAddr};

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use sim_kit::Moment;

use super::{account::Account, route::Kind, settings::DelayOrder, world::World};

/// Servers to be made.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ServerOrder {
    name: String,
    #[serde(default)]
    zone: Option<String>,
}

/// Carries an order out; `None` where there is no such control.
pub(crate) fn carry_out(
    account: &mut Account,
    order: &str,
    body: &[u8],
    at: Moment,
) -> Option<Result<Value, String>> {
    let world = &mut account.world;
    let done = match order {
        "POST delays" => read::<DelayOrder>(body).map(|order| {
            order.apply(&mut world.settings);
            json!({})
        }),
        "POST domains" => read(body).map(|table| set_domains(world, table, at)),
        "POST servers" => read(body).map(|order| add_server(world, &order, at)),
        "POST expire-tokens" => {
            account.access.expire();
            Ok(json!({}))
        }
        _ => return None,
    };
    Some(done)
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, String> {
    serde_json::from_slice(body).map_err(|error| format!("this is no order: {error}"))
}

fn set_domains(world: &mut World, table: BTreeMap<String, Vec<IpAddr>>, at: Moment) -> Value {
    world.resources.domains.extend(table);
    world.resources.domains.retain(|_, addresses| !addresses.is_empty());
    world.advance(at);
    json!(world.resources.domains)
}

fn add_server(world: &mut World, order: &ServerOrder, at: Moment) -> Value {
    let zone = order.zone.clone().unwrap_or_else(|| world.settings.default_zone.clone());
    let server = world.add_server(&order.name, &zone, at);
    json!({"id": server.id})
}

/// All resources, as the API shows them.
pub(crate) fn state(world: &mut World, base: &str, at: Moment) -> Value {
    world.advance(at);
    let view = world.view(base);
    let mut all: serde_json::Map<String, Value> =
        Kind::ALL.into_iter().map(|kind| (kind.plural().to_owned(), Value::Array(view.list(kind)))).collect();
    // They are in their policies.
    all.remove(Kind::Rule.plural());
    all.insert("nodes_changes".to_owned(), json!(world.history));
    Value::Object(all)
}
