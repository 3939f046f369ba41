//! A client of the Kubernetes API whose writes are told.

use std::sync::Arc;

use http::{HeaderValue, Method, Request, header::USER_AGENT};
use kube::{Client, client::Body};

use super::{contract::Happening, journal::Journal};

/// What the manager calls itself.
const MANAGER: &str = "cloudberth-controller-manager";

/// The manager's client: the same server, and what it writes is told and counted.
pub(crate) fn told(server: &Client, journal: &Arc<Journal>) -> Client {
    let (server, journal) = (server.clone(), Arc::clone(journal));
    let service = tower::service_fn(move |mut request: Request<Body>| {
        let (server, journal) = (server.clone(), Arc::clone(&journal));
        let write = Write::read(request.method(), request.uri().path());
        request.headers_mut().insert(USER_AGENT, HeaderValue::from_static(MANAGER));
        async move {
            let heard = server.send(request).await;
            if let Some(write) = write {
                write.tell(&journal, heard.as_ref().ok().map(|answer| answer.status().as_u16()));
            }
            heard
        }
    });
    Client::new(service, "default")
}

/// A write, as it is told.
#[derive(Debug, PartialEq, Eq)]
struct Write {
    verb: &'static str,
    /// The resource in the plural.
    resource: String,
    object: String,
}

impl Write {
    /// What a request writes; `None` if it only reads.
    fn read(method: &Method, path: &str) -> Option<Self> {
        let verb = match method.as_str() {
            "POST" => "create",
            "PUT" => "update",
            "PATCH" => "patch",
            "DELETE" => "delete",
            _ => return None,
        };
        let mut parts = path.split('/').filter(|part| !part.is_empty());
        // /api/v1/…, /apis/group/v1/…
        match parts.next()? {
            "api" => parts.nth(0)?,
            _ => parts.nth(1)?,
        };
        let mut rest: Vec<_> = parts.collect();
        let namespace = match rest.as_slice() {
            ["namespaces", namespace, _, ..] => Some(*namespace),
            _ => None,
        };
        if namespace.is_some() {
            rest.drain(..2);
        }
        let resource = (*rest.first()?).to_owned();
        let mut object = vec![resource.as_str()];
        object.extend(namespace);
        object.extend(rest.iter().skip(1));
        Some(Self { verb, object: object.join("/"), resource })
    }

    fn tell(self, journal: &Journal, status: Option<u16>) {
        let lease = self.resource == "leases";
        journal.count(|totals| {
            if lease {
                totals.lease_writes += 1;
            } else {
                totals.kube_writes += 1;
            }
        });
        // An event tells of itself.
        if !lease && self.resource != "events" {
            journal.add(Happening::KubeWrite { verb: self.verb.to_owned(), object: self.object, status });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_is_read_from_its_request() {
        let table = [
            ("PATCH", "/api/v1/nodes/node-1", Some(("patch", "nodes/node-1"))),
            ("PATCH", "/api/v1/nodes/node-1/status", Some(("patch", "nodes/node-1/status"))),
            (
                "PATCH",
                "/api/v1/namespaces/default/services/web/status",
                Some(("patch", "services/default/web/status")),
            ),
            ("POST", "/api/v1/namespaces/default/events", Some(("create", "events/default"))),
            (
                "PUT",
                "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/x",
                Some(("update", "leases/kube-system/x")),
            ),
            ("DELETE", "/api/v1/namespaces/old", Some(("delete", "namespaces/old"))),
            ("GET", "/api/v1/nodes", None),
            ("POST", "/", None),
        ];
        for (method, path, want) in table {
            let write = Write::read(&method.parse().unwrap(), path);
            let have = write.as_ref().map(|write| (write.verb, write.object.as_str()));
            assert_eq!(have, want, "{method} {path}");
        }
    }

    #[tokio::test]
    async fn renewals_and_events_are_counted_and_not_told() {
        let journal = Journal::new(Arc::new(cloudberth_http::surroundings::SystemClock::new()));
        for path in ["/apis/coordination.k8s.io/v1/namespaces/a/leases/b", "/api/v1/namespaces/a/events"] {
            Write::read(&Method::POST, path).unwrap().tell(&journal, Some(201));
        }
        Write::read(&Method::PATCH, "/api/v1/nodes/a").unwrap().tell(&journal, None);
        let totals = journal.newest().1;
        assert_eq!((totals.lease_writes, totals.kube_writes, journal.after(0).len()), (1, 2, 1));
    }
}
