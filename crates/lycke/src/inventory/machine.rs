//! One machine: the same rules for a line of the file and for the body of a request.

use std::{cell::RefCell, collections::BTreeMap, net::IpAddr};

use cloudberth_core::{LabelKey, LabelValue, net::parse_ip};
use cloudberth_http::yaml::{self, Fields, Value};

use super::{Inventory, Machine, MachineState, Place};

/// What is known before machines are read.
pub(super) struct Declared<'a> {
    pub(super) clusters: &'a dyn Fn(&str) -> bool,
    pub(super) types: &'a dyn Fn(&str) -> bool,
    pub(super) defaults: &'a Place,
}

/// What is taken, and on which line: ids, names in a cluster, addresses in a cluster.
#[derive(Default)]
pub(super) struct Taken {
    machines: usize,
    ids: BTreeMap<String, usize>,
    names: BTreeMap<(String, String), usize>,
    /// With the number of the machine.
    addresses: BTreeMap<(String, IpAddr), (usize, usize)>,
}

/// Letters, digits, `-`, `_` and `.`: what can stand in a path, a provider id and the name of a node.
pub(super) fn plain_name(text: &str) -> Result<String, String> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    if !text.is_empty() && text.len() <= 253 && text.bytes().all(plain) && !matches!(text, "." | "..") {
        return Ok(text.to_owned());
    }
    Err(format!("{text:?} must be letters, digits, -, _ and ."))
}

pub(super) fn label_value(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("\"\" is empty".to_owned());
    }
    LabelValue::new(text).map(|_| text.to_owned()).map_err(|why| why.message().to_owned())
}

/// Reads a machine and holds it against those before it. `None` if something is wrong with it, which is noted.
pub(super) fn read(place: &Value<'_>, declared: &Declared<'_>, taken: &mut Taken) -> Option<Machine> {
    place.fields(|fields| Some(read_fields(fields, declared, taken))).flatten()
}

fn read_fields<'a>(fields: &mut Fields<'a>, declared: &Declared<'_>, taken: &mut Taken) -> Option<Machine> {
    let id_value = fields.required("id");
    let id = id_value.parse(plain_name);
    let name_value = fields.required("name");
    let name = name_value.parse(plain_name);
    let cluster = fields.required("cluster").parse(|key| {
        let known = (declared.clusters)(key).then(|| key.to_owned());
        known.ok_or_else(|| format!("{key:?} is not declared under clusters"))
    });
    let machine_type = fields.required("type").parse(|name| {
        let known = (declared.types)(name).then(|| name.to_owned());
        known.ok_or_else(|| format!("{name:?} is not declared under types"))
    });
    let region = fields.optional("region").parse(label_value);
    let zone = fields.optional("zone").parse(label_value);
    let mut addresses = Vec::new();
    let mut list = |given: Value<'a>| {
        given.items(|value| {
            let found = value.parse(address);
            addresses.push((found, value));
            found
        })
    };
    let internal = list(fields.optional("internal"));
    let external = list(fields.optional("external"));
    let state = fields.optional("state").parse(MachineState::parse).unwrap_or(MachineState::Running);
    let labels: BTreeMap<_, _> =
        fields.optional("labels").entries(|key, value| label(key, &value)).into_iter().collect();
    let backend = fields.optional("backend").parse(address);
    let node_provider_id = fields.optional("nodeProviderID").parse(node_provider_id);
    if addresses.is_empty() {
        fields.optional("internal").wrong("it is missing: a machine needs at least one address");
    }

    taken.machines += 1;
    let me = taken.machines;
    let mut good = true;
    if let Some(id) = &id {
        good &= first_of(&mut taken.ids, id.clone(), &id_value, id);
    }
    if let (Some(name), Some(cluster)) = (&name, &cluster) {
        good &= first_of(&mut taken.names, (cluster.clone(), name.clone()), &name_value, name);
    }
    let in_cluster = cluster.clone().unwrap_or_default();
    for (address, value) in &addresses {
        let Some(address) = address else { continue };
        let line = value.line();
        let &mut (owner, first) = taken.addresses.entry((in_cluster.clone(), *address)).or_insert((me, line));
        if owner != me {
            value.wrong(format!("{address} is already on line {first}"));
            good = false;
        }
    }
    for (list, found) in [("internal", &internal), ("external", &external)] {
        let twice =
            found.iter().enumerate().find(|(at, one)| found.iter().take(*at).any(|other| other == *one));
        if let Some((_, address)) = twice {
            fields.optional(list).wrong(format!("{address} is there twice"));
            good = false;
        }
    }
    let backend = backend.or_else(|| internal.first().or(external.first()).copied());
    let place = Place {
        region: region.unwrap_or_else(|| declared.defaults.region.clone()),
        zone: zone.unwrap_or_else(|| declared.defaults.zone.clone()),
    };
    let machine = Machine {
        id: id?,
        name: name?,
        cluster: cluster?,
        machine_type: machine_type?,
        place,
        internal,
        external,
        backend: backend?,
        state,
        labels,
        node_provider_id,
    };
    good.then_some(machine)
}

/// Notes it if another machine has the same already.
fn first_of<K: Ord>(taken: &mut BTreeMap<K, usize>, key: K, value: &Value<'_>, shown: &str) -> bool {
    let line = value.line();
    match taken.get(&key) {
        Some(first) => {
            value.wrong(format!("{shown:?} is already on line {first}"));
            false
        }
        None => taken.insert(key, line).is_none(),
    }
}

fn address(text: &str) -> Result<IpAddr, String> {
    let address = parse_ip(text).ok_or_else(|| format!("{text:?} is not an IP address"))?;
    if address.is_unspecified() || address.is_multicast() {
        return Err(format!("{text:?} is not the address of one machine"));
    }
    Ok(address)
}

fn node_provider_id(text: &str) -> Result<String, String> {
    match text.split_once("://") {
        Some(("cloudlycke", _)) => {
            Err(format!("{text:?} is an id of this cloud; it belongs to nodes of others"))
        }
        Some((scheme, id)) if !scheme.is_empty() && !id.is_empty() => Ok(text.to_owned()),
        _ => Err(format!("{text:?} is not a provider id, such as kind://docker/kind/kind-worker")),
    }
}

fn label(key: &str, value: &Value<'_>) -> Option<(String, String)> {
    if let Err(why) = LabelKey::new(key) {
        value.wrong(why.message());
        return None;
    }
    let domain = key.split_once('/').map_or("", |(domain, _)| domain);
    let owned = |by: &str| domain == by || domain.ends_with(&format!(".{by}"));
    if owned("kubernetes.io") || owned("k8s.io") {
        value.wrong(format!("{key:?} is in a domain of Kubernetes; use one of your own"));
        return None;
    }
    let text = value.parse(|text| {
        LabelValue::new(text).map(|_| text.to_owned()).map_err(|why| why.message().to_owned())
    })?;
    Some((key.to_owned(), text))
}

/// The machine in the body of a request: the inventory's rules, in JSON. Gives all faults, in one text.
pub(crate) fn read_json(text: &str, inventory: &Inventory) -> Result<Machine, String> {
    let taken = RefCell::new(Taken::default());
    let read = yaml::read(text, |fields| {
        let declared = Declared {
            clusters: &|key| inventory.clusters.contains_key(key),
            types: &|name| inventory.types.contains_key(name),
            defaults: &inventory.defaults,
        };
        Some(read_fields(fields, &declared, &mut taken.borrow_mut()))
    });
    let shown = |mistakes: Vec<yaml::Mistake>| {
        let all = mistakes.into_iter().map(|mistake| format!("{}: {}", mistake.field, mistake.text));
        all.collect::<Vec<_>>().join("; ")
    };
    read.map_err(shown)?.ok_or_else(|| "the machine is not complete".to_owned())
}
