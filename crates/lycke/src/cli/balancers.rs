//! `cloudberth lycke lb`.

use clap::{Args, Subcommand};
use serde_json::Value;

use super::{
    Failure,
    api_options::ApiOptions,
    machines::text,
    output::{print, show},
    table::Table,
};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Lists load balancers.
    List {
        /// Those of this cluster.
        #[arg(long)]
        cluster: Option<String>,
        #[command(flatten)]
        api: ApiOptions,
    },
    /// Shows one, with its ports and backends.
    Show(One),
    /// Prints the addresses of one for a browser, one a line.
    Url(One),
}

#[derive(Debug, Args)]
pub(super) struct One {
    /// `NAMESPACE/SERVICE`, or `CLUSTER/NAMESPACE/SERVICE`.
    service: String,
    #[command(flatten)]
    api: ApiOptions,
}

pub(super) async fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::List { cluster, api } => {
            let query = cluster.map(|cluster| format!("?cluster={cluster}")).unwrap_or_default();
            let answer = api.client()?.get(&format!("/v1/loadbalancers{query}")).await?;
            show(api.output, &answer, || list(items(&answer)))
        }
        Command::Show(one) => {
            let found = find(&one).await?;
            show(one.api.output, &found, || details(&found))
        }
        Command::Url(one) => {
            let urls = urls(&find(&one).await?);
            if urls.is_empty() {
                return Err(Failure::new(format!("{} has no TCP port that is open", one.service)));
            }
            print(&urls.join("\n"))
        }
    }
}

fn items(answer: &Value) -> &[Value] {
    answer.get("items").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

async fn find(one: &One) -> Result<Value, Failure> {
    let all = one.api.client()?.get("/v1/loadbalancers").await?;
    choose(items(&all), &one.service).cloned().map_err(Failure::new)
}

/// The load balancer of a Service, in whichever cluster it is.
fn choose<'a>(all: &'a [Value], service: &str) -> Result<&'a Value, String> {
    let is_it = |one: &&Value| {
        let short = format!("{}/{}", text(one, "namespace"), text(one, "name"));
        service == short || service == format!("{}/{short}", text(one, "cluster"))
    };
    let found: Vec<_> = all.iter().filter(is_it).collect();
    match found.as_slice() {
        [one] => Ok(one),
        [] => Err(format!("there is no load balancer {service}; `cloudberth lycke lb list` shows all")),
        several => {
            let clusters: Vec<_> = several.iter().map(|one| text(one, "cluster")).collect();
            Err(format!(
                "{service} is in several clusters ({}); put the cluster before it",
                clusters.join(", ")
            ))
        }
    }
}

fn array<'a>(object: &'a Value, field: &str) -> &'a [Value] {
    object.get(field).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn health(one: &Value) -> String {
    let backends = array(one, "backends");
    let healthy =
        backends.iter().filter(|backend| backend.get("healthy") == Some(&Value::Bool(true))).count();
    format!("{healthy}/{}", backends.len())
}

fn list(balancers: &[Value]) -> Table {
    let mut table = Table::new(&["CLUSTER", "NAMESPACE", "NAME", "ADDRESS", "PORTS", "STATE", "HEALTHY"]);
    for one in balancers {
        let ports: Vec<_> = array(one, "listeners").iter().map(port).collect();
        let mut row: Vec<_> = ["cluster", "namespace", "name"].map(|field| text(one, field)).into();
        let addresses: Vec<_> = array(one, "addresses").iter().filter_map(Value::as_str).collect();
        row.extend([addresses.join(","), ports.join(","), text(one, "state"), health(one)]);
        table.row(row);
    }
    table
}

fn port(listener: &Value) -> String {
    let name = format!("{}/{}", text(listener, "port"), text(listener, "protocol"));
    match listener.get("error").and_then(Value::as_str) {
        Some(error) => format!("{name}({error})"),
        None => name,
    }
}

fn details(one: &Value) -> Table {
    let mut table = Table::new(&["WHAT", "WHICH", "HOW"]);
    let key = ["cluster", "namespace", "name"].map(|field| text(one, field)).join("/");
    table.row(vec!["load balancer".into(), key, text(one, "state")]);
    for address in array(one, "addresses").iter().filter_map(Value::as_str) {
        table.row(vec!["address".into(), address.to_owned(), String::new()]);
    }
    for listener in array(one, "listeners") {
        let how = match (text(listener, "bound"), text(listener, "message")) {
            (bound, message) if message.is_empty() => bound,
            (bound, message) => format!("{bound} {message}").trim().to_owned(),
        };
        table.row(vec!["port".into(), port(listener), how]);
    }
    for backend in array(one, "backends") {
        let how = match backend.get("healthy") {
            Some(Value::Bool(true)) => "healthy".to_owned(),
            Some(Value::Bool(false)) => format!("down: {}", text(backend, "reason")),
            _ => "not checked yet".to_owned(),
        };
        table.row(vec!["backend".into(), text(backend, "machine"), how]);
    }
    table
}

/// An address for a browser for each TCP port that is open.
fn urls(one: &Value) -> Vec<String> {
    let open = array(one, "listeners").iter().filter(|listener| text(listener, "protocol") == "TCP");
    let open =
        open.filter_map(|listener| Some((listener.get("port")?.as_u64()?, listener.get("bound")?.as_str()?)));
    open.map(|(port, bound)| {
        let scheme = if matches!(port, 443 | 8443) { "https" } else { "http" };
        let default = if scheme == "https" { ":443" } else { ":80" };
        format!("{scheme}://{}/", bound.strip_suffix(default).unwrap_or(bound))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn balancers() -> Vec<Value> {
        let one = |cluster: &str, name: &str| {
            json!({
                "cluster": cluster, "namespace": "default", "name": name, "address": "127.77.0.9",
                "addresses": ["127.77.0.9"], "state": "active",
                "listeners": [
                    {"protocol": "TCP", "port": 80, "bound": "127.77.0.9:10080", "error": "Shifted", "message": "needs a privilege"},
                    {"protocol": "TCP", "port": 443, "bound": "127.77.0.9:443"},
                    {"protocol": "TCP", "port": 8080, "bound": null, "error": "AddressInUse", "message": "taken"},
                    {"protocol": "UDP", "port": 53, "bound": "127.77.0.9:53"},
                ],
                "backends": [
                    {"machine": "n-c2-1", "healthy": true}, {"machine": "n-c2-2", "healthy": false, "reason": "refused"},
                ],
            })
        };
        vec![one("c1", "web"), one("c2", "web"), one("c2", "dns")]
    }

    #[test]
    fn a_service_is_found_in_its_cluster() {
        let all = balancers();
        assert_eq!(text(choose(&all, "default/dns").unwrap(), "cluster"), "c2");
        assert_eq!(text(choose(&all, "c1/default/web").unwrap(), "cluster"), "c1");
        assert!(choose(&all, "default/web").unwrap_err().contains("c1, c2"));
        assert!(choose(&all, "default/nope").is_err());
    }

    #[test]
    fn people_see_where_to_go_and_what_is_wrong() {
        let all = balancers();
        assert_eq!(urls(&all[0]), ["http://127.77.0.9:10080/", "https://127.77.0.9/"]);
        let listed = list(&all).to_string();
        assert!(listed.contains("80/TCP(Shifted),443/TCP,8080/TCP(AddressInUse),53/UDP"), "{listed}");
        assert!(listed.lines().nth(1).unwrap().ends_with("1/2"), "{listed}");
        let shown = details(&all[0]).to_string();
        assert!(
            shown.contains("down: refused") && shown.contains("127.77.0.9:10080 needs a privilege"),
            "{shown}"
        );
    }
}
