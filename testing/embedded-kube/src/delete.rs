//! Delete: at once, after a grace period, or when the last finalizer is gone.

use std::sync::Arc;

use http::StatusCode;
use serde_json::{Value, json};

use super::canonical;
use super::decode;
use super::field::FieldErrors;
use super::job::Job;
use super::json as reader;
use super::kinds;
use super::meta;
use super::render::{ListMeta, bytes};
use super::resource::Behaviour;
use super::router::Reply;
use super::select::Selection;
use super::status::{Answer, Failure, details};
use super::time;
use super::value::{self, at, int, list, set, text, texts};

impl Job<'_> {
    pub(crate) fn delete(&mut self) -> Answer<Reply> {
        let options = self.delete_options()?;
        let existing = self.existing()?;
        self.check_preconditions(&existing, &options)?;
        if self.resource.behaviour == Behaviour::Namespace
            && let Some(reply) = self.terminate(&existing, &options)?
        {
            return Ok(reply);
        }
        if self.resource.behaviour == Behaviour::Definition
            && at(&existing, "metadata.deletionTimestamp").is_none()
        {
            return Ok(self.terminate_definition(&existing, &options));
        }
        let (object, gone) = self.delete_object(&existing, &options);
        if !gone {
            let accepted = at(&options, "orphanDependents") == Some(&json!(false));
            let status = if accepted { StatusCode::ACCEPTED } else { StatusCode::OK };
            return Ok(self.reply(status, &object));
        }
        if kinds::returns_deleted(&self.resource) {
            return Ok(self.reply(StatusCode::OK, &object));
        }
        let mut about = details(&self.resource.group, &self.resource.plural, &self.name);
        about.insert("uid".to_owned(), json!(text(&object, "metadata.uid")));
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": about,
        });
        Ok(Reply::json(StatusCode::OK, bytes(&status)))
    }

    /// From the body, or else from the query.
    fn delete_options(&self) -> Answer<Value> {
        let options = if self.incoming.body.is_empty() {
            self.options_in_query()?
        } else {
            let body = self.body(Some("meta/v1.DeleteOptions"))?;
            let document = reader::parse(&body).map_err(|e| Failure::bad_request(e.to_string()))?;
            let (kind, version) = (text(&document.value, "kind"), text(&document.value, "apiVersion"));
            if !matches!(kind, "" | "DeleteOptions") {
                return Err(Failure::bad_request(decode::unregistered(kind, version)));
            }
            canonical::read(&self.state.shapes, "meta/v1.DeleteOptions", &document.value)
                .map_err(|error| Failure::bad_request(error.to_string()))?
                .value
        };
        let mut errors = FieldErrors::default();
        let policy = text(&options, "propagationPolicy");
        if at(&options, "orphanDependents").is_some() && !policy.is_empty() {
            let why = "orphanDependents and deletionPropagation cannot be both set";
            errors.invalid("propagationPolicy", policy, why);
        }
        let policies = ["Foreground", "Background", "Orphan", "nil"];
        if !policy.is_empty() && !policies.contains(&policy) {
            errors.not_supported("propagationPolicy", policy, &policies);
        }
        let dry = texts(&options, "dryRun");
        if dry.iter().any(|value| value != "All") {
            errors.not_supported("dryRun", json!(dry), &["All"]);
        }
        if errors.is_empty() {
            Ok(options)
        } else {
            Err(Failure::invalid("meta.k8s.io", "DeleteOptions", "", &errors))
        }
    }

    fn options_in_query(&self) -> Answer<Value> {
        let query = &self.incoming.query;
        let mut options = json!({});
        let dry: Vec<&str> = query.all("dryRun").filter(|value| !value.is_empty()).collect();
        if !dry.is_empty() {
            set(&mut options, "dryRun", json!(dry));
        }
        if let Some(policy) = query.get("propagationPolicy") {
            set(&mut options, "propagationPolicy", policy);
        }
        if let Some(seconds) = query.number("gracePeriodSeconds")? {
            set(&mut options, "gracePeriodSeconds", seconds);
        }
        if query.get("orphanDependents").is_some() {
            set(&mut options, "orphanDependents", query.flag("orphanDependents"));
        }
        Ok(options)
    }

    fn check_preconditions(&self, existing: &Value, options: &Value) -> Answer<()> {
        let namespace = self.resource.behaviour == Behaviour::Namespace;
        let table = [
            ("UID", "uid", "deleted and then recreated"),
            ("ResourceVersion", "resourceVersion", "modified"),
        ];
        for (title, field, fear) in table {
            let (wanted, found) = (
                text(options, &format!("preconditions.{field}")),
                text(existing, &format!("metadata.{field}")),
            );
            if wanted.is_empty() || wanted == found {
                continue;
            }
            if namespace {
                let why = format!(
                    "Precondition failed: {title} in precondition: {wanted}, {title} in object meta: {found}"
                );
                return Err(Failure::conflict("", "namespaces", &self.name, &why));
            }
            let why = format!(
                "the {title} in the precondition ({wanted}) does not match the {title} in record ({found}). \
                 The object might have been {fear}"
            );
            return Err(Failure::conflict(&self.resource.group, &self.resource.kind, &self.name, &why));
        }
        Ok(())
    }

    /// The first deletion of a namespace only marks it: its contents must go first.
    fn terminate(&mut self, existing: &Arc<Value>, options: &Value) -> Answer<Option<Reply>> {
        if matches!(self.name.as_str(), "default" | "kube-system" | "kube-public") {
            let why = "this namespace may not be deleted";
            return Err(Failure::forbidden("", "namespaces", &self.name, why));
        }
        if at(existing, "metadata.deletionTimestamp").is_none() {
            let mut namespace = (**existing).clone();
            set(&mut namespace, "metadata.deletionTimestamp", time::seconds(self.state.world.now()));
            set(&mut namespace, "status.phase", "Terminating");
            let stored = if list(options, "dryRun").is_empty() {
                let (table, key) = (self.table(), self.key(&self.name));
                self.state.put(&table, &key, namespace)
            } else {
                Arc::new(namespace)
            };
            return Ok(Some(self.reply(StatusCode::OK, &stored)));
        }
        if list(existing, "spec.finalizers").is_empty() {
            return Ok(None);
        }
        Ok(Some(self.reply(StatusCode::OK, existing)))
    }

    /// The first deletion of a definition marks it: its objects must go first.
    fn terminate_definition(&mut self, existing: &Value, options: &Value) -> Reply {
        let (mut definition, now) = (existing.clone(), self.state.world.now());
        set(&mut definition, "metadata.deletionTimestamp", time::seconds(now));
        let mut finalizers = texts(&definition, "metadata.finalizers");
        if !finalizers.iter().any(|finalizer| finalizer == kinds::CLEANUP) {
            finalizers.push(kinds::CLEANUP.to_owned());
        }
        set(&mut definition, "metadata.finalizers", json!(finalizers));
        let message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
        kinds::set_condition(&mut definition, "Terminating", true, "InstanceDeletionPending", message, now);
        let stored = if list(options, "dryRun").is_empty() {
            let name = self.name.clone();
            self.store(&name, definition)
        } else {
            Arc::new(definition)
        };
        self.reply(StatusCode::OK, &stored)
    }

    /// Deletes an object or marks it for deletion. The flag says whether it is gone.
    fn delete_object(&mut self, existing: &Arc<Value>, options: &Value) -> (Arc<Value>, bool) {
        let dry = !list(options, "dryRun").is_empty();
        let (table, key) = (self.table(), self.key(value::name(existing)));
        let mut object = (**existing).clone();
        match self.grace_step(&mut object, options) {
            Grace::Pending => return (Arc::clone(existing), false),
            // Watches see both: the mark and the deletion.
            Grace::Immediate if finalizers_left(&object, options) => {
                let stored = if dry { Arc::new(object) } else { self.state.put(&table, &key, object) };
                return (stored, false);
            }
            Grace::Immediate if dry => return (Arc::new(object), true),
            Grace::Immediate => {
                self.state.put(&table, &key, object);
                let last = self.state.remove(&table, &key);
                return (last.unwrap_or_else(|| Arc::clone(existing)), true);
            }
            Grace::Started => {
                let stored = if dry { Arc::new(object) } else { self.state.put(&table, &key, object) };
                return (stored, false);
            }
            Grace::Over => {}
        }
        let finalizers = match self.resource.behaviour {
            Behaviour::Event => texts(&object, "metadata.finalizers"),
            _ => meta::finalizers_for_deletion(&object, options),
        };
        if !finalizers.is_empty() {
            set(&mut object, "metadata.finalizers", json!(finalizers));
            meta::mark_deleting(&mut object, self.state.world.now());
            let stored = if dry { Arc::new(object) } else { self.state.put(&table, &key, object) };
            return (stored, false);
        }
        if dry {
            return (Arc::clone(existing), true);
        }
        let last = self.state.remove(&table, &key);
        (last.unwrap_or_else(|| Arc::clone(existing)), true)
    }

    fn grace_step(&self, object: &mut Value, options: &Value) -> Grace {
        let Some(seconds) = kinds::grace(&self.resource, object, options) else {
            return Grace::Over;
        };
        let now = self.state.world.now();
        let due = |seconds: i64| now.checked_add(jiff::SignedDuration::from_secs(seconds)).unwrap_or(now);
        if at(object, "metadata.deletionTimestamp").is_some() {
            let left = int(object, "metadata.deletionGracePeriodSeconds");
            let asked = at(options, "gracePeriodSeconds").and_then(Value::as_i64);
            return match asked {
                _ if left == 0 => Grace::Over,
                Some(0) => Grace::Over,
                Some(shorter) if shorter < left => {
                    set(object, "metadata.deletionGracePeriodSeconds", shorter);
                    set(object, "metadata.deletionTimestamp", time::seconds(due(shorter)));
                    Grace::Started
                }
                _ => Grace::Pending,
            };
        }
        meta::bump_generation(object);
        set(object, "metadata.deletionTimestamp", time::seconds(due(seconds)));
        set(object, "metadata.deletionGracePeriodSeconds", seconds);
        if seconds == 0 { Grace::Immediate } else { Grace::Started }
    }

    pub(crate) fn delete_all(&mut self) -> Answer<Reply> {
        let options = self.delete_options()?;
        let namespace = (!self.namespace.is_empty()).then_some(self.namespace.as_str());
        let selection = Selection::read(&self.resource, namespace, None, &self.incoming.query)?;
        let table = self.table();
        let chosen: Vec<Arc<Value>> = self
            .state
            .store
            .within(&table, &selection.prefix)
            .filter(|(key, object)| selection.matches(key, object))
            .map(|(_, object)| Arc::clone(object))
            .collect();
        for object in &chosen {
            self.delete_object(object, &options);
        }
        let meta = ListMeta { revision: self.state.store.revision(), ..ListMeta::default() };
        Ok(Reply::json(StatusCode::OK, self.renderer.list(&chosen, &meta)))
    }
}

fn finalizers_left(object: &Value, options: &Value) -> bool {
    !meta::finalizers_for_deletion(object, options).is_empty()
}

enum Grace {
    /// Nothing to wait for.
    Over,
    /// Marked now, without a grace period.
    Immediate,
    /// Marked now; someone else will finish it.
    Started,
    /// Marked before.
    Pending,
}
