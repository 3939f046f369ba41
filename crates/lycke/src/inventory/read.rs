//! An inventory file, read.

use std::{collections::BTreeMap, path::Path};

use cloudberth_http::yaml::{self, Fields, Value};

use super::{
    Cluster, Fault, Faults, Inventory, MachineType, Place, VagrantSettings,
    machine::{self, Declared, Taken, label_value, plain_name},
    settings,
};

/// Where the machines of the original demonstration are.
const DEFAULT_PLACE: &str = "virtualbox";

/// Reads the text of `file`, whose name stands in every fault; `vagrant.directory` is relative to it.
pub fn read(text: &str, file: &Path) -> Result<Inventory, Faults> {
    let shown = file.display().to_string();
    let pool_is_list = pool_is_list(text);
    let read = yaml::read(text, |fields| Some(read_fields(fields, file, pool_is_list)));
    read.map_err(|mistakes| {
        Faults(mistakes.into_iter().map(|mistake| Fault::from_mistake(&shown, mistake)).collect())
    })
}

/// The reader notes a mistake when it is asked for a list and finds none. So a first reading, whose mistakes nobody sees,
/// finds out what the pool is.
fn pool_is_list(text: &str) -> bool {
    let mut items = 0;
    let _ = yaml::read(text, |fields| {
        fields.optional("loadBalancers").fields(|balancers| {
            balancers.optional("pool").items(|_| {
                items += 1;
                Some(())
            });
            Some(())
        })
    });
    items > 0
}

fn read_fields(fields: &mut Fields<'_>, file: &Path, pool_is_list: bool) -> Inventory {
    fields.required("version").integer(1..=1_u32);
    let defaults = fields.optional("defaults").fields(|place| {
        Some(Place {
            region: place.optional("region").parse(label_value).unwrap_or_else(|| DEFAULT_PLACE.to_owned()),
            zone: place.optional("zone").parse(label_value).unwrap_or_else(|| DEFAULT_PLACE.to_owned()),
        })
    });
    let defaults = defaults
        .unwrap_or_else(|| Place { region: DEFAULT_PLACE.to_owned(), zone: DEFAULT_PLACE.to_owned() });
    let mut declared_clusters = Vec::new();
    let clusters = fields.optional("clusters").entries(|key, value| {
        // A cluster with a fault is declared all the same: one mistake gives one fault.
        declared_clusters.push(key);
        read_cluster(key, &value)
    });
    let mut declared_types = Vec::new();
    let types = fields.optional("types").entries(|name, value| {
        declared_types.push(name);
        read_type(name, &value)
    });
    let machines = fields.optional("machines");
    let vagrant = fields.optional("vagrant").fields(|vagrant| Some(read_vagrant(vagrant, file))).flatten();
    let balancers = fields.optional("loadBalancers").fields(|it| Some(settings::read(it, pool_is_list)));
    let allow_empty = fields.optional("allowEmpty").boolean().unwrap_or(false);

    let declared = Declared {
        clusters: &|key| declared_clusters.contains(&key),
        types: &|name| declared_types.contains(&name),
        defaults: &defaults,
    };
    let mut taken = Taken::default();
    let machines = machines.items(|place| machine::read(&place, &declared, &mut taken));
    Inventory {
        clusters: clusters.into_iter().collect(),
        types: types.into_iter().collect(),
        machines: machines
            .into_iter()
            .map(|machine| (machine.id.clone(), machine))
            .collect::<BTreeMap<_, _>>(),
        defaults,
        vagrant,
        balancers: balancers.unwrap_or_default(),
        allow_empty,
    }
}

fn read_cluster(key: &str, value: &Value<'_>) -> Option<(String, Cluster)> {
    if let Err(why) = plain_name(key) {
        value.wrong(why);
        return None;
    }
    let line = value.line();
    value.fields(|cluster| {
        let kubernetes_name = cluster.optional("kubernetesName").text().unwrap_or_else(|| key.to_owned());
        let managed = cluster.optional("managed").boolean().unwrap_or(true);
        Some((key.to_owned(), Cluster { kubernetes_name, managed, line }))
    })
}

fn read_type(name: &str, value: &Value<'_>) -> Option<(String, MachineType)> {
    if let Err(why) = label_value(name) {
        value.wrong(why);
        return None;
    }
    value.fields(|size| {
        let cpus = size.optional("cpus").integer(1..=1_000_000);
        let memory_mib = size.optional("memoryMiB").integer(1..=u32::MAX);
        Some((name.to_owned(), MachineType { cpus, memory_mib }))
    })
}

fn read_vagrant(fields: &mut Fields<'_>, file: &Path) -> Option<VagrantSettings> {
    let directory = fields.required("directory").text();
    let refresh = fields.optional("refresh").parse(settings::above_zero);
    let refresh = refresh.unwrap_or(std::time::Duration::from_secs(15));
    // The file may be named without a directory: then it is here.
    let here = file.parent().unwrap_or(Path::new(""));
    directory.map(|directory| VagrantSettings { directory: here.join(directory), refresh })
}
