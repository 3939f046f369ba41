//! Routes a request to the code that answers it.

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, header, request::Parts};

use super::calls::Call;
use super::decode::WriteOptions;
use super::faults::Subject;
use super::job::Job;
use super::negotiate;
use super::patch::PatchKind;
use super::path::{self, Target};
use super::query::Query;
use super::resource::{Behaviour, Resource};
use super::state::State;
use super::status::{Answer, Failure};
use super::users::{Action, User};
use super::watch::Plan;
use super::{control, discovery, openapi, reviews};
use sim_kit::{Control, Decision, Harm, Outcome};

/// A request with its path and query parsed.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) query: Query,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    target: Option<Target>,
    verb: String,
    /// The one object that a list or a watch is about, by its field selector.
    selected: Option<String>,
    user_agent: String,
}

/// An answer, before it is HTTP.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) content: Bytes,
    pub(crate) content_type: &'static str,
    pub(crate) warnings: Vec<String>,
    pub(crate) retry_after: Option<u64>,
    pub(crate) watch: Option<Box<Plan>>,
}

impl Incoming {
    /// Reads a request; `None` when its path is not below the prefix.
    pub(crate) fn new(parts: Parts, body: Bytes, prefix: &str) -> Option<Self> {
        let query = Query::parse(parts.uri.query());
        let path = match parts.uri.path().strip_prefix(prefix)? {
            "" => "/".to_owned(),
            path if path.starts_with('/') => path.to_owned(),
            _ => return None,
        };
        let target = path::parse(&path);
        let verb = match &target {
            Some(target) => target.verb(&parts.method, query.flag("watch")).to_owned(),
            None => parts.method.as_str().to_lowercase(),
        };
        let user_agent = parts.headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok());
        let user_agent = user_agent.unwrap_or_default().to_owned();
        let many = matches!(verb.as_str(), "list" | "watch" | "deletecollection");
        let selected = query.get("fieldSelector").filter(|_| many).and_then(selected_name).map(str::to_owned);
        let (method, headers) = (parts.method, parts.headers);
        Some(Self { method, path, query, headers, body, target, verb, selected, user_agent })
    }

    fn control(&self) -> Option<Control> {
        Control::of(&self.method, &self.path)
    }

    fn subject(&self) -> Subject<'_> {
        let target = self.target.as_ref();
        let part = |of: fn(&Target) -> Option<&String>| target.and_then(of).map_or("", String::as_str);
        Subject {
            user_agent: &self.user_agent,
            verb: &self.verb,
            resource: target.map_or(self.path.as_str(), |target| target.plural.as_str()),
            subresource: part(|target| target.subresource.as_ref()),
            namespace: part(|target| target.namespace.as_ref()),
            name: self.selected.as_deref().unwrap_or(part(|target| target.name.as_ref())),
        }
    }

    fn action(&self) -> Action {
        let Subject { verb, resource, subresource, namespace, name, .. } = self.subject();
        match &self.target {
            None => Action { verb: verb.to_owned(), path: self.path.clone(), ..Action::default() },
            Some(target) => Action {
                verb: verb.to_owned(),
                group: target.group.clone(),
                resource: resource.to_owned(),
                subresource: subresource.to_owned(),
                namespace: namespace.to_owned(),
                name: name.to_owned(),
                path: self.path.clone(),
            },
        }
    }
}

/// The name that a field selector asks for. Authorization treats such a list or watch as one of that object.
fn selected_name(selector: &str) -> Option<&str> {
    let name = selector.split(',').find_map(|term| term.trim().strip_prefix("metadata.name="))?;
    let name = name.strip_prefix('=').unwrap_or(name);
    (!name.is_empty()).then_some(name)
}

impl State {
    /// What goes wrong with a request. The control port is spared.
    pub(crate) fn decide_fault(&mut self, incoming: &Incoming) -> Decision {
        match incoming.control() {
            Some(_) => Decision::default(),
            None => self.faults.decide(&incoming.subject()),
        }
    }

    /// Logs a call, unless it is for the control port.
    pub(crate) fn record(&mut self, incoming: &Incoming, outcome: Outcome) {
        if incoming.control().is_some() {
            return;
        }
        let user = self.users.identify(&incoming.headers).map_or_else(|_| String::new(), |user| user.name);
        let Subject { user_agent, verb, resource, subresource, namespace, name } = incoming.subject();
        let number = self.calls.take_number();
        self.calls.push(Call {
            number,
            at: self.world.now(),
            user,
            user_agent: user_agent.to_owned(),
            verb: verb.to_owned(),
            group: incoming.target.as_ref().map_or_else(String::new, |target| target.group.clone()),
            resource: resource.to_owned(),
            subresource: subresource.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            dry_run: incoming.query.get("dryRun").is_some(),
            outcome,
        });
    }

    /// The remembered calls from a number on.
    pub(crate) fn calls_since(&self, number: u64) -> Vec<Call> {
        self.calls.iter().filter(|call| call.number >= number).cloned().collect()
    }

    /// Carries out a request and logs it, without waiting in between.
    pub(crate) fn handle_and_record(&mut self, incoming: &Incoming, harm: Option<&Harm>) -> Reply {
        let mut reply = self.route(incoming, harm).unwrap_or_else(|failure| Reply::failure(&failure));
        if negotiate::prefers_yaml(&incoming.headers) {
            reply.turn_into_yaml();
        }
        self.record(incoming, Outcome::new(harm, reply.status.as_u16()));
        reply
    }

    fn route(&mut self, incoming: &Incoming, harm: Option<&Harm>) -> Answer<Reply> {
        let user = self.users.identify(&incoming.headers)?;
        if let Some(control) = incoming.control() {
            return control::answer(self, control, incoming, &user);
        }
        self.users.authorize(&user, &incoming.action())?;
        let Some(target) = &incoming.target else {
            return Ok(self.other_paths(incoming));
        };
        let known = self.resource(&target.group, &target.version, &target.plural);
        let Some(resource) = known else {
            let builtin = |r: &std::sync::Arc<Resource>| r.group == target.group && r.custom.is_none();
            let group = target.group.is_empty() || self.resources.iter().any(builtin);
            return if group { Err(Failure::no_such_path()) } else { Ok(self.other_paths(incoming)) };
        };
        if harm == Some(&Harm::Conflict) {
            let name = target.name.as_deref().unwrap_or_default();
            return Err(Failure::stale_write(&resource.group, &resource.plural, name));
        }
        self.on_resource(incoming, target, &resource, &user, harm)
    }

    fn other_paths(&mut self, incoming: &Incoming) -> Reply {
        let found = discovery::answer(self, incoming).or_else(|| openapi::answer(self, incoming));
        found.unwrap_or_else(|| Reply::text(StatusCode::NOT_FOUND, "404 page not found\n"))
    }

    fn on_resource(
        &mut self,
        incoming: &Incoming,
        target: &Target,
        resource: &std::sync::Arc<Resource>,
        user: &User,
        harm: Option<&Harm>,
    ) -> Answer<Reply> {
        let part = target.subresource.as_deref();
        let custom = resource.custom.as_ref();
        if part.is_some_and(|part| resource.subresources.iter().all(|known| known.name != part)) {
            let name = target.name.as_deref().unwrap_or_default();
            return Err(match custom {
                Some(_) => Failure::not_found(&resource.group, &resource.plural, name),
                None => Failure::no_such_path(),
            });
        }
        // A namespaced resource can be listed and watched across namespaces, nothing else.
        let across = resource.namespaced && target.namespace.is_none();
        let misplaced = (!resource.namespaced && target.namespace.is_some())
            || (across
                && (target.name.is_some() || !matches!(incoming.verb.as_str(), "list" | "watch" | "create")));
        if custom.is_some() && (misplaced || (across && incoming.verb == "create")) {
            return Ok(self.other_paths(incoming));
        }
        if misplaced {
            return Err(Failure::no_such_path());
        }
        let named_create = incoming.verb == "create" && target.name.is_some() && part.is_none();
        let nameless = matches!(incoming.verb.as_str(), "update" | "patch") && target.name.is_none();
        // Watching one object is written as a list or a get with `watch`.
        let verb = incoming.verb.as_str();
        if verb.is_empty()
            || named_create
            || nameless
            || !resource.allows(part, verb)
            || (across && verb == "create")
        {
            return Err(Failure::method_not_allowed());
        }
        let tables = resource.behaviour != Behaviour::Review;
        let view = negotiate::view(&incoming.headers, tables, verb == "watch")?;
        let mut job = Job::new(self, incoming, target, resource, view)?;
        job.warnings.extend(custom.and_then(|custom| custom.warning.clone()));
        if resource.behaviour == Behaviour::Endpoints {
            let warning = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice";
            job.warnings.push(warning.to_owned());
        }
        let done = Self::carry_out(&mut job, verb, user, harm);
        let mut reply = done.unwrap_or_else(|failure| Reply::failure(&failure));
        reply.warnings.append(&mut job.warnings);
        Ok(reply)
    }

    fn carry_out(job: &mut Job<'_>, verb: &str, user: &User, harm: Option<&Harm>) -> Answer<Reply> {
        let (incoming, resource) = (job.incoming, std::sync::Arc::clone(&job.resource));
        match verb {
            "get" => job.get(),
            "list" => job.list(),
            "watch" => job.watch(harm.cloned()),
            "create" if job.subresource.is_some() => reviews::token_request(job),
            "create" if resource.behaviour == Behaviour::Review => reviews::answer(job, user),
            "create" => {
                let options = WriteOptions::read(&incoming.query, "CreateOptions")?;
                job.create(&options)
            }
            "update" => {
                let options = WriteOptions::read(&incoming.query, "UpdateOptions")?;
                job.update(&options)
            }
            "patch" => {
                let given = incoming.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
                let kind = PatchKind::of(given.unwrap_or_default(), resource.shape.is_some())?;
                let options = WriteOptions::read(&incoming.query, "PatchOptions")?;
                job.patch(kind, &options)
            }
            "delete" => job.delete(),
            "deletecollection" => job.delete_all(),
            _ => Err(Failure::method_not_allowed()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_below_the_prefix_are_answered() {
        let table = [
            ("", "/api", Some("/api")),
            ("/k8s/c-1", "/k8s/c-1/api/v1/nodes", Some("/api/v1/nodes")),
            ("/k8s/c-1", "/k8s/c-1", Some("/")),
            ("/k8s/c-1", "/k8s/c-12/api", None),
            ("/k8s/c-1", "/api", None),
        ];
        for (prefix, uri, want) in table {
            let (parts, ()) = http::Request::get(uri).body(()).unwrap().into_parts();
            let incoming = Incoming::new(parts, Bytes::new(), prefix);
            assert_eq!(incoming.as_ref().map(|incoming| incoming.path.as_str()), want, "{prefix} {uri}");
        }
    }

    #[test]
    fn a_selected_name_counts_where_many_are_asked_for() {
        let lease = "/apis/coordination.k8s.io/v1/namespaces/k/leases";
        let table = [
            (format!("{lease}?watch=1&fieldSelector=metadata.name%3Dlead"), "lead"),
            (format!("{lease}?fieldSelector=metadata.namespace%3Dk,metadata.name%3D%3Dlead"), "lead"),
            (format!("{lease}?fieldSelector=metadata.name%21%3Dlead"), ""),
            (format!("{lease}?fieldSelector=metadata.name%3D"), ""),
            (format!("{lease}/other?fieldSelector=metadata.name%3Dlead"), "other"),
            (lease.to_owned(), ""),
        ];
        for (uri, want) in table {
            let (parts, ()) = http::Request::get(&uri).body(()).unwrap().into_parts();
            let incoming = Incoming::new(parts, Bytes::new(), "").unwrap();
            assert_eq!((incoming.action().name.as_str(), incoming.subject().name), (want, want), "{uri}");
        }
    }
}
