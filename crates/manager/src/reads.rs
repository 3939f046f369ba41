//! Plain reads of the cluster, for commands that look once and keep nothing.

use std::time::Duration;

use cloudberth_core::{Error, Result};
use cloudberth_runtime::api_error::translate;
use kube::Client;
use serde_json::Value;

/// How long one question may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(15);
/// How many objects are asked for at once.
const PAGE: usize = 500;
/// No cluster has more pages of anything that is looked at here.
const PAGES: usize = 1_000;

/// What is at this path.
pub(crate) async fn get(client: &Client, path: &str) -> Result<Value> {
    let request = http::Request::get(path).body(Vec::new());
    let request = request.map_err(|why| Error::permanent(why.to_string()))?;
    match tokio::time::timeout(PATIENCE, client.request::<Value>(request)).await {
        Err(_) => Err(Error::temporary("the Kubernetes API did not answer in time")),
        Ok(answer) => answer.map_err(|why| translate(&why)),
    }
}

/// All objects below a path, page by page. A listing without items is none.
pub(crate) async fn list(client: &Client, path: &str) -> Result<Vec<Value>> {
    let (mut all, mut next) = (Vec::new(), String::new());
    let with = if path.contains('?') { '&' } else { '?' };
    for _ in 0..PAGES {
        let mut page = get(client, &format!("{path}{with}limit={PAGE}{next}")).await?;
        match page.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => all.extend(items),
            // An empty listing may be null.
            Some(Value::Null) => {}
            _ => return Err(Error::temporary(format!("{path}: the answer is no listing"))),
        }
        match page.pointer("/metadata/continue").and_then(Value::as_str) {
            Some(token) if !token.is_empty() => next = format!("&continue={token}"),
            _ => return Ok(all),
        }
    }
    Err(Error::permanent(format!("{path}: the listing does not end")))
}
