//! The bodies of all writes to a Service.
//!
//! Every one is a strategic merge patch of the `status` subresource, where metadata and status can be written
//! together, so that what belongs together is written together. Nothing is written that is so already (law 4).
//!
//! - The finalizer is added and removed by value. Others' finalizers are never named, so they cannot be erased.
//! - `metadata.uid` makes a patch miss an object that was made anew under the same name.
//! - `metadata.resourceVersion` stands in the two patches that must not be decided from an old version: the one that
//!   records an intent (an intent that we do not see yet may stand for a load balancer on its way), and the one that
//!   lets go of the Service. The others merge with whatever was written meanwhile.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::{
    decide::service::{
        FINALIZER, PROVIDER_ANNOTATION,
        assignments::{Assignment, Assignments},
    },
    error::{Category, Error, Result},
    lb::{INTENT_ANNOTATION, Publish, intent_value},
    view::{Ingress, IngressPort, IpMode, ServiceType, ServiceView},
};

/// A patch being put together.
#[derive(Default)]
struct Draft {
    metadata: Map<String, Value>,
    annotations: Map<String, Value>,
    status: Option<Value>,
}

impl Draft {
    /// Sets an annotation where it differs.
    fn annotate(&mut self, service: &ServiceView, key: &str, value: &str) {
        if service.annotations.get(key).map(String::as_str) != Some(value) {
            self.annotations.insert(key.to_owned(), value.into());
        }
    }

    /// Removes an annotation where it is set.
    fn strike(&mut self, service: &ServiceView, key: &str) {
        if service.annotations.contains_key(key) {
            self.annotations.insert(key.to_owned(), Value::Null);
        }
    }

    /// The patch, unless it would change nothing.
    fn finish(mut self, service: &ServiceView, pin_version: bool) -> Option<Value> {
        if !self.annotations.is_empty() {
            self.metadata.insert("annotations".to_owned(), self.annotations.into());
        }
        if self.metadata.is_empty() && self.status.is_none() {
            return None;
        }
        let version = if pin_version { service.resource_version.as_str() } else { "" };
        for (key, value) in [("uid", service.uid.as_str()), ("resourceVersion", version)] {
            if !value.is_empty() {
                self.metadata.insert(key.to_owned(), value.into());
            }
        }
        let mut patch = Map::new();
        if !self.metadata.is_empty() {
            patch.insert("metadata".to_owned(), self.metadata.into());
        }
        if let Some(status) = self.status {
            patch.insert("status".to_owned(), status);
        }
        Some(patch.into())
    }
}

/// Puts the finalizer on, and with it the provider's record where it is needed and the intent where one is given:
/// its time, and the name of what is about to be created.
///
/// Adding to a list states the order of the whole list, as the programs that we replace do.
#[must_use]
pub fn prepare(
    assignments: &Assignments,
    service: &ServiceView,
    provider: &str,
    intent: Option<(Timestamp, &str)>,
) -> Option<Value> {
    let mut draft = Draft::default();
    if !service.finalizers.iter().any(|name| name == FINALIZER) {
        if !service.finalizers.is_empty() {
            let order: Vec<_> = service.finalizers.iter().map(String::as_str).chain([FINALIZER]).collect();
            draft.metadata.insert("$setElementOrder/finalizers".to_owned(), json!(order));
        }
        draft.metadata.insert("finalizers".to_owned(), json!([FINALIZER]));
    }
    if assignments.needs_record(provider) {
        draft.annotate(service, PROVIDER_ANNOTATION, provider);
    }
    if let Some((time, name)) = intent {
        draft.annotations.insert(INTENT_ANNOTATION.to_owned(), fresh(service, time, name).into());
    }
    draft.finish(service, intent.is_some())
}

/// A value that differs from the one that is there, even if the clock stands still: a new intent is always a write, so
/// that it always insists on the version that it was decided from, and others see that it is a new one.
fn fresh(service: &ServiceView, time: Timestamp, name: &str) -> String {
    let value = intent_value(time, name);
    if service.annotations.get(INTENT_ANNOTATION) != Some(&value) {
        return value;
    }
    let just_after = time.checked_add(Duration::from_nanos(1));
    let other = just_after.or_else(|_| time.checked_sub(Duration::from_nanos(1))).unwrap_or(time);
    intent_value(other, name)
}

/// Writes what the planner published, where it differs. `clear_intent` ends a recorded intent in the same write.
///
/// Addresses that are published are replaced, never withdrawn: a load balancer that is there has one, so an empty list
/// means that the cloud did not tell (law 1). They go with the Service's claim to it, by [`release`].
#[must_use]
pub fn record(service: &ServiceView, publish: &Publish, clear_intent: bool) -> Option<Value> {
    let mut draft = Draft::default();
    for (key, value) in &publish.annotations {
        draft.annotate(service, key, value);
    }
    publish.removed.iter().for_each(|key| draft.strike(service, key));
    if clear_intent {
        draft.strike(service, INTENT_ANNOTATION);
    }
    let ingress = publish.ingress.as_deref().filter(|want| !want.is_empty());
    draft.status = ingress.and_then(|want| status(&service.ingress, want));
    draft.finish(service, false)
}

/// Lets go of the Service: finalizer, the provider and what it `recorded`, intent and the published addresses. These stay
/// where the Service has a class that is not ours: they may be somebody else's by now.
#[must_use]
pub fn release(
    service: &ServiceView,
    assignment: &Assignment<'_>,
    recorded: impl IntoIterator<Item = &'static str>,
) -> Option<Value> {
    let mut draft = Draft::default();
    if service.finalizers.iter().any(|name| name == FINALIZER) {
        draft.metadata.insert("$deleteFromPrimitiveList/finalizers".to_owned(), json!([FINALIZER]));
    }
    draft.strike(service, PROVIDER_ANNOTATION);
    draft.strike(service, INTENT_ANNOTATION);
    recorded.into_iter().for_each(|key| draft.strike(service, key));
    let others = service.service_type == ServiceType::LoadBalancer && assignment.server.is_none();
    draft.status = if others { None } else { status(&service.ingress, &[]) };
    draft.finish(service, true)
}

/// The annotations and finalizers of a Service after a write. The addresses stay: they are the cloud's to say.
#[must_use]
pub fn assume(service: &ServiceView, body: &Value) -> ServiceView {
    let mut after = service.clone();
    let names = |key: &str| {
        let list = body.get("metadata").and_then(|metadata| metadata.get(key)).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
    };
    let gone = names("$deleteFromPrimitiveList/finalizers");
    after.finalizers.retain(|name| !gone.contains(name));
    after.finalizers.extend(names("finalizers"));
    let annotations = body.pointer("/metadata/annotations").and_then(Value::as_object);
    for (key, value) in annotations.into_iter().flatten() {
        match value.as_str() {
            Some(value) => drop(after.annotations.insert(key.clone(), value.to_owned())),
            None => drop(after.annotations.remove(key)),
        }
    }
    after
}

/// What a failed write to the status means: an object that is gone needs none.
pub fn written(result: Result<()>) -> Result<()> {
    match result {
        Err(error) if error.category() == Category::NotFound => Ok(()),
        other => other.map_err(|error: Error| error.context("failed to update load balancer status")),
    }
}

/// The status that turns `now` into `want`; `None` when they are equal. The list is always replaced whole.
fn status(now: &[Ingress], want: &[Ingress]) -> Option<Value> {
    let list = if want.is_empty() { Value::Null } else { want.iter().map(ingress).collect() };
    (now != want).then(|| json!({"loadBalancer": {"ingress": list}}))
}

fn ingress(entry: &Ingress) -> Value {
    let mode = entry.ip_mode.as_ref().map(|mode| match mode {
        IpMode::Vip => "VIP",
        IpMode::Proxy => "Proxy",
        IpMode::Other(text) => text,
    });
    let mut out = Map::new();
    let texts = [("ip", entry.ip.as_deref()), ("hostname", entry.hostname.as_deref()), ("ipMode", mode)];
    for (key, text) in texts {
        if let Some(text) = text {
            out.insert(key.to_owned(), text.into());
        }
    }
    if !entry.ports.is_empty() {
        out.insert("ports".to_owned(), entry.ports.iter().map(ingress_port).collect());
    }
    out.into()
}

fn ingress_port(port: &IngressPort) -> Value {
    match &port.error {
        Some(error) => json!({"port": port.port, "protocol": port.protocol.as_str(), "error": error}),
        None => json!({"port": port.port, "protocol": port.protocol.as_str()}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        decide::service::testing::{CLOUD, annotated, apply, assignments, service, typed},
        view::ServiceProtocol,
    };

    const TIME: &str = "2026-03-02T04:05:00Z";
    const INTENT: &str = "2026-03-02T04:05:00Z lb";

    fn now() -> Timestamp {
        TIME.parse().unwrap()
    }

    /// Assignments that have to record their provider.
    fn recording() -> Assignments {
        let cloud =
            crate::decide::service::assignments::Candidate { name: CLOUD.to_owned(), ..Default::default() };
        Assignments::new(vec![cloud], None).unwrap()
    }

    fn mine() -> Assignment<'static> {
        Assignment { server: Some(CLOUD), holder: Some(CLOUD), ..Assignment::default() }
    }

    fn with(finalizers: &[&str]) -> ServiceView {
        let finalizers = finalizers.iter().map(|&f| f.to_owned()).collect();
        ServiceView { finalizers, ..service() }
    }

    fn ip(address: &str) -> Ingress {
        Ingress { ip: Some(address.to_owned()), ..Ingress::default() }
    }

    fn showing(mut view: ServiceView, ingress: Vec<Ingress>) -> ServiceView {
        view.ingress = ingress;
        view
    }

    fn addresses(ingress: Vec<Ingress>) -> Publish {
        Publish { ingress: Some(ingress), ..Publish::default() }
    }

    #[test]
    fn adding_the_finalizer() {
        let anonymous = |finalizers: &[&str]| ServiceView { uid: String::new(), ..with(finalizers) };
        let text =
            |view: &ServiceView| prepare(&assignments(), view, CLOUD, None).map(|patch| patch.to_string());
        let among = format!(
            r#"{{"metadata":{{"$setElementOrder/finalizers":["foo","{FINALIZER}"],"finalizers":["{FINALIZER}"]}}}}"#
        );
        let alone = format!(r#"{{"metadata":{{"finalizers":["{FINALIZER}"]}}}}"#);
        assert_eq!(text(&anonymous(&["foo"])), Some(among), "FW-204");
        assert_eq!(text(&anonymous(&[])), Some(alone), "FW-196");
        assert_eq!(text(&with(&["foo", FINALIZER])), None, "FW-195");
        let known = prepare(&assignments(), &with(&[]), CLOUD, None).unwrap();
        assert_eq!(known, json!({"metadata": {"finalizers": [FINALIZER], "uid": "u-1"}}));
    }

    #[test]
    fn the_intent_goes_with_the_finalizer_and_pins_the_version() {
        let patch = prepare(&recording(), &with(&[]), CLOUD, Some((now(), "lb"))).unwrap();
        let want = json!({"metadata": {
            "finalizers": [FINALIZER], "uid": "u-1", "resourceVersion": "7",
            "annotations": {PROVIDER_ANNOTATION: CLOUD, INTENT_ANNOTATION: INTENT},
        }});
        assert_eq!(patch, want, "L6-102");
        let recorded = annotated(with(&[FINALIZER]), PROVIDER_ANNOTATION, CLOUD);
        let patch = prepare(&recording(), &recorded, CLOUD, Some((now(), "lb"))).unwrap();
        let meta = json!({"uid": "u-1", "resourceVersion": "7", "annotations": {INTENT_ANNOTATION: INTENT}});
        assert_eq!(patch, json!({"metadata": meta}), "L6-103 only the intent is missing");
        assert_eq!(prepare(&recording(), &recorded, CLOUD, None), None);
        let intended = annotated(recorded, INTENT_ANNOTATION, INTENT);
        let patch = prepare(&recording(), &intended, CLOUD, Some((now(), "lb"))).unwrap();
        let value = &patch["metadata"]["annotations"][INTENT_ANNOTATION];
        assert!(
            value.as_str().is_some_and(|value| value.ends_with(" lb")) && value != INTENT,
            "L6-148 a clock that stands still: {value}"
        );
        assert_eq!(
            patch["metadata"]["resourceVersion"], "7",
            "L6-149 a new intent is never decided from an old version"
        );
    }

    #[test]
    fn letting_go_removes_by_value() {
        let full = annotated(annotated(with(&["foo", FINALIZER]), PROVIDER_ANNOTATION, CLOUD), "note", "1");
        let full = annotated(annotated(full, INTENT_ANNOTATION, TIME), "cloud.example/id", "7");
        let full = showing(full, vec![ip("8.8.8.8")]);
        let recorded = ["cloud.example/id", "cloud.example/version"];
        let meta = json!({
            "$deleteFromPrimitiveList/finalizers": [FINALIZER], "uid": "u-1", "resourceVersion": "7",
            "annotations": {PROVIDER_ANNOTATION: null, INTENT_ANNOTATION: null, "cloud.example/id": null},
        });
        let status = json!({"loadBalancer": {"ingress": null}});
        assert_eq!(
            release(&full, &mine(), recorded),
            Some(json!({"metadata": meta.clone(), "status": status})),
            "FW-198"
        );
        assert_eq!(
            release(&full, &Assignment::default(), recorded),
            Some(json!({"metadata": meta})),
            "the status is another's"
        );
        let plain = showing(typed(ServiceType::ClusterIp), vec![ip("8.8.8.8")]);
        assert!(release(&plain, &Assignment::default(), []).is_some(), "FW-148 no class, no addresses");
        assert_eq!(release(&with(&["foo"]), &mine(), recorded), None, "FW-197");
    }

    #[test]
    fn a_finalizer_that_somebody_adds_meanwhile_survives() {
        let patch = release(&with(&[FINALIZER]), &mine(), []).unwrap();
        let mut newer = json!({"metadata": {"finalizers": [FINALIZER, "theirs"]}});
        apply(&mut newer, &patch);
        assert_eq!(newer["metadata"]["finalizers"], json!(["theirs"]), "L3-113");
    }

    #[test]
    fn the_status_is_written_only_when_it_differs() {
        let table = [
            ("FW-199 8.8.8.8 to 8.8.8.8", vec![ip("8.8.8.8")], vec![ip("8.8.8.8")], None),
            ("FW-199 empty to empty", vec![], vec![], None),
            ("FW-200 empty to 8.8.8.8", vec![], vec![ip("8.8.8.8")], Some(json!([{"ip": "8.8.8.8"}]))),
            ("FW-200 L1-426 8.8.8.8 to empty", vec![ip("8.8.8.8")], vec![], None),
        ];
        for (case, old, new, want) in table {
            let body =
                |list| json!({"metadata": {"uid": "u-1"}, "status": {"loadBalancer": {"ingress": list}}});
            let want: Option<Value> = want.map(body);
            assert_eq!(record(&showing(service(), old), &addresses(new), false), want, "{case}");
        }
        let shown = showing(service(), vec![ip("8.8.8.8")]);
        assert_eq!(record(&shown, &Publish::default(), false), None, "nothing said about the addresses");
    }

    #[test]
    fn equality_of_statuses() {
        let mode = |mode| Ingress { ip_mode: Some(mode), ..ip("8.8.8.8") };
        let port = |protocol| Ingress {
            ports: vec![IngressPort { port: 80, protocol, error: None }],
            ..ip("8.8.8.8")
        };
        let (tcp, udp) = (|| port(ServiceProtocol::Tcp), || port(ServiceProtocol::Udp));
        let table = [
            ("FW-205 the same ip", ip("8.8.8.8"), ip("8.8.8.8"), true),
            ("FW-205 the same ipMode", mode(IpMode::Vip), mode(IpMode::Vip), true),
            ("FW-205 the same ports", tcp(), tcp(), true),
            ("FW-206 another ip", ip("8.8.8.8"), ip("8.8.4.4"), false),
            ("FW-206 ipMode on one side only", ip("8.8.8.8"), mode(IpMode::Vip), false),
            ("FW-206 another ipMode", mode(IpMode::Vip), mode(IpMode::Proxy), false),
            ("FW-206 another protocol of a port", tcp(), udp(), false),
            ("FW-206 ports on one side only", tcp(), ip("8.8.8.8"), false),
        ];
        for (case, old, new, equal) in table {
            let patch = record(&showing(service(), vec![old]), &addresses(vec![new]), false);
            assert_eq!(patch.is_none(), equal, "{case}");
        }
        assert_eq!(record(&service(), &addresses(vec![]), false), None, "FW-205 both empty");
    }

    #[test]
    fn what_is_written_is_what_is_read_back() {
        let port = |error: Option<&str>| IngressPort {
            port: 53,
            protocol: ServiceProtocol::Udp,
            error: error.map(str::to_owned),
        };
        let entry = |ip_mode| Ingress { ip_mode: Some(ip_mode), ..ip("192.0.2.1") };
        let want = vec![
            Ingress { ports: vec![port(None), port(Some("x/Down"))], ..entry(IpMode::Vip) },
            entry(IpMode::Proxy),
            entry(IpMode::Other("Odd".to_owned())),
            Ingress { hostname: Some("lb.example.com".to_owned()), ..Ingress::default() },
        ];
        let mut object = json!({"metadata": {"name": "web"}, "status": {"loadBalancer": {"ingress": [{"ip": "1.1.1.1"}]}}});
        apply(&mut object, &record(&service(), &addresses(want.clone()), false).unwrap());
        assert_eq!(ServiceView::from_json(&object).unwrap().ingress, want);
    }

    #[test]
    fn a_patch_from_an_old_version_keeps_what_others_wrote() {
        let publish = Publish {
            ingress: Some(vec![ip("8.8.8.8")]),
            annotations: [("id".to_owned(), "7".to_owned())].into(),
            ..Publish::default()
        };
        let old = annotated(with(&[FINALIZER]), INTENT_ANNOTATION, TIME);
        let patch = record(&old, &publish, true).unwrap();
        let want = json!({
            "metadata": {"uid": "u-1", "annotations": {"id": "7", INTENT_ANNOTATION: null}},
            "status": {"loadBalancer": {"ingress": [{"ip": "8.8.8.8"}]}},
        });
        assert_eq!(patch, want, "L6-104 the id and the end of the intent are one write");
        let mut newer = json!({
            "metadata": {"annotations": {"theirs": "1", INTENT_ANNOTATION: TIME}},
            "spec": {"type": "LoadBalancer", "externalTrafficPolicy": "Local"},
        });
        apply(&mut newer, &patch);
        assert_eq!(newer["metadata"]["annotations"], json!({"theirs": "1", "id": "7"}), "FW-203");
        assert_eq!(
            newer["spec"],
            json!({"type": "LoadBalancer", "externalTrafficPolicy": "Local"}),
            "FW-203"
        );
    }

    #[test]
    fn recording_again_writes_nothing() {
        let publish = Publish {
            ingress: Some(vec![ip("8.8.8.8")]),
            annotations: [("id".to_owned(), "7".to_owned())].into(),
            ..Publish::default()
        };
        let recorded = showing(annotated(with(&[FINALIZER]), "id", "7"), vec![ip("8.8.8.8")]);
        assert_eq!(record(&recorded, &publish, true), None, "L4-106");
        let pending = annotated(recorded, INTENT_ANNOTATION, TIME);
        assert_eq!(record(&pending, &publish, false), None, "L6-105 more is to be created: the intent stays");
        assert!(record(&pending, &publish, true).is_some());
    }

    #[test]
    fn what_is_removed_is_removed_once() {
        let publish = Publish { removed: ["old-id"].into(), ..Publish::default() };
        let marked = annotated(annotated(service(), "old-id", "7"), "id", "7");
        let want = json!({"metadata": {"uid": "u-1", "annotations": {"old-id": null}}});
        assert_eq!(record(&marked, &publish, false), Some(want));
        assert_eq!(record(&service(), &publish, false), None, "L4-140 it is gone already");
    }

    #[test]
    fn a_failed_status_write() {
        let conflict = written(Err(Error::new(Category::Conflict, "409"))).unwrap_err();
        assert_eq!(conflict.message(), "failed to update load balancer status: 409", "FW-158");
        assert_eq!(conflict.category(), Category::Conflict, "FW-158");
        assert_eq!(written(Err(Error::new(Category::NotFound, "404"))), Ok(()), "FW-159");
        assert_eq!(written(Ok(())), Ok(()));
    }
}
