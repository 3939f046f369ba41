//! Create, update and patch.

use std::sync::Arc;

use http::StatusCode;
use serde_json::{Value, json};

use super::decode::{self, Decoded, WriteOptions};
use super::job::Job;
use super::kinds::{self, Setting};
use super::meta;
use super::patch::{Patch, PatchKind};
use super::resource::Behaviour;
use super::router::Reply;
use super::status::{Answer, Failure};
use super::value::{self, at, list, set, text, unset};

/// A generated name that is taken is drawn again this often.
const NAME_ATTEMPTS: usize = 8;

impl Job<'_> {
    pub(crate) fn create(&mut self, options: &WriteOptions) -> Answer<Reply> {
        let decoded = self.decode(options)?;
        self.warnings.extend(decoded.warnings);
        if self.resource.custom.as_ref().is_some_and(|custom| custom.terminating) {
            let why = "create not allowed while custom resource definition is terminating";
            let name = value::name(&decoded.object);
            return Err(Failure::forbidden(&self.resource.group, &self.resource.plural, name, why));
        }
        let object = self.create_object(decoded.object, options)?;
        Ok(self.reply(StatusCode::CREATED, &object))
    }

    fn decode(&self, options: &WriteOptions) -> Answer<Decoded> {
        let body = self.body(self.resource.shape.as_deref())?;
        decode::body(&self.state.shapes, &self.state.resources, &self.resource, &body, options.strictness)
    }

    fn create_object(&mut self, mut object: Value, options: &WriteOptions) -> Answer<Arc<Value>> {
        meta::wipe(&mut object);
        meta::settle_namespace(&mut object, &self.namespace)?;
        self.check_namespace(&object)?;
        let generated = value::name(&object).is_empty() && !text(&object, "metadata.generateName").is_empty();
        let attempts = if generated { NAME_ATTEMPTS } else { 1 };
        let mut result = Err(self.not_found());
        for _ in 0..attempts {
            result = self.create_once(object.clone(), options);
            if !matches!(&result, Err(failure) if failure.reason == "AlreadyExists") {
                break;
            }
        }
        result
    }

    fn create_once(&mut self, mut object: Value, options: &WriteOptions) -> Answer<Arc<Value>> {
        meta::fill(&mut object, &mut self.state.world);
        let mut setting =
            Setting { store: &self.state.store, world: &mut self.state.world, ranges: &self.state.ranges };
        let errors = kinds::before_create(&self.resource, &mut object, &mut setting)?;
        let name = value::name(&object).to_owned();
        if !errors.is_empty() {
            return Err(Failure::invalid(&self.resource.group, &self.resource.kind, &name, &errors));
        }
        self.warnings.extend(kinds::warnings(&self.resource, None, &object, None));
        if let Some(existing) = self.stored(&name) {
            return Err(self.taken(&object, &existing));
        }
        if !value::revision(&object).is_empty() {
            return Err(Failure::unexplained("resourceVersion should not be set on objects to be created"));
        }
        if options.dry_run {
            return Ok(Arc::new(object));
        }
        Ok(self.store(&name, object))
    }

    fn taken(&self, object: &Value, existing: &Value) -> Failure {
        let (group, plural, name) = (&self.resource.group, &self.resource.plural, value::name(object));
        let generated = !text(object, "metadata.generateName").is_empty();
        let mut failure = if generated {
            Failure::generated_name_exists(group, plural, name)
        } else {
            Failure::already_exists(group, plural, name)
        };
        if at(existing, "metadata.deletionTimestamp").is_some() {
            failure.message = format!("object is being deleted: {}", failure.message);
        }
        failure
    }

    /// Refuses to create objects in a namespace that does not exist or is being deleted.
    fn check_namespace(&self, object: &Value) -> Answer<()> {
        if !self.resource.namespaced {
            return Ok(());
        }
        let Some(namespace) = self.state.store.get("namespaces", &self.namespace) else {
            return Err(Failure::not_found("", "namespaces", &self.namespace));
        };
        if at(namespace, "metadata.deletionTimestamp").is_none() {
            return Ok(());
        }
        let name = &self.namespace;
        let why = format!("unable to create new content in namespace {name} because it is being terminated");
        let mut failure =
            Failure::forbidden(&self.resource.group, &self.resource.plural, value::name(object), &why);
        if let Some(Value::Object(details)) = &mut failure.details {
            let message = format!("namespace {name} is being terminated");
            let cause =
                json!({"reason": "NamespaceTerminating", "message": message, "field": "metadata.namespace"});
            details.insert("causes".to_owned(), json!([cause]));
        }
        Err(failure)
    }

    pub(crate) fn update(&mut self, options: &WriteOptions) -> Answer<Reply> {
        let decoded = self.decode(options)?;
        self.warnings.extend(decoded.warnings);
        let mut object = decoded.object;
        meta::settle_namespace(&mut object, &self.namespace)?;
        self.check_name(&object)?;
        let Some(existing) = self.stored(&self.name) else {
            let uid = text(&object, "metadata.uid");
            if !kinds::created_by_put(&self.resource) || self.subresource.is_some() {
                return Err(self.not_found());
            }
            if !uid.is_empty() {
                return Err(self.precondition("UID", uid, ""));
            }
            unset(&mut object, "metadata.resourceVersion");
            let created = self.create_object(object, options)?;
            return Ok(self.reply(StatusCode::CREATED, &created));
        };
        let (wanted, found) = (text(&object, "metadata.uid"), text(&existing, "metadata.uid"));
        if !wanted.is_empty() && wanted != found {
            return Err(self.precondition("UID", wanted, found));
        }
        let stored = self.replace(object, &existing, options)?;
        Ok(self.reply(StatusCode::OK, &stored))
    }

    fn check_name(&self, object: &Value) -> Answer<()> {
        let (given, wanted) = (value::name(object), &self.name);
        if given.is_empty() {
            return Err(Failure::bad_request(format!(
                "the name of the object ({wanted} based on URL) was undeterminable: name must be provided"
            )));
        }
        if given != wanted {
            return Err(Failure::bad_request(format!(
                "the name of the object ({given}) does not match the name on the URL ({wanted})"
            )));
        }
        Ok(())
    }

    /// The object is not the one that the client meant.
    pub(crate) fn precondition(&self, what: &str, wanted: &str, found: &str) -> Failure {
        let (group, plural) = (&self.resource.group, &self.resource.plural);
        let folder = match plural.as_str() {
            "services" => "services/specs",
            "endpoints" => "services/endpoints",
            "nodes" => "minions",
            other => other,
        };
        let key = format!("/registry/{folder}/{}", self.key(&self.name));
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: \
             Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}"
        );
        Failure::conflict(group, plural, &self.name, &why)
    }

    pub(crate) fn patch(&mut self, kind: PatchKind, options: &WriteOptions) -> Answer<Reply> {
        let patch = Patch::read(kind, &self.incoming.body)?;
        let existing = self.existing()?;
        let full = self.renderer.full(&existing);
        let patched = patch.apply(&full, &self.state.shapes, self.resource.shape.as_deref())?;
        let decoded =
            decode::patched(&self.state.shapes, &self.resource, &patched, &patch, options.strictness)?;
        self.warnings.extend(decoded.warnings);
        let mut object = decoded.object;
        meta::settle_namespace(&mut object, &self.namespace)?;
        self.check_name(&object)?;
        let stored = self.replace(object, &existing, options)?;
        Ok(self.reply(StatusCode::OK, &stored))
    }

    /// Stores a changed object in place of the old one.
    fn replace(
        &mut self,
        mut object: Value,
        existing: &Arc<Value>,
        options: &WriteOptions,
    ) -> Answer<Arc<Value>> {
        let (group, plural) = (self.resource.group.clone(), self.resource.plural.clone());
        match value::revision(&object) {
            "" | "0" if kinds::unconditional(&self.resource) => {
                set(&mut object, "metadata.resourceVersion", value::revision(existing));
            }
            "" | "0" => {
                let mut errors = super::field::FieldErrors::default();
                errors.invalid("metadata.resourceVersion", 0, "must be specified for an update");
                return Err(Failure::invalid(&group, &plural, &self.name, &errors));
            }
            version if version.parse::<u64>().is_err() => {
                let mut errors = super::field::FieldErrors::default();
                let why = format!("strconv.ParseUint: parsing {version:?}: invalid syntax");
                errors.invalid("metadata.resourceVersion", version, &why);
                return Err(Failure::invalid(&group, &self.resource.kind, &self.name, &errors));
            }
            version if version != value::revision(existing) => {
                return Err(Failure::stale_write(&group, &plural, &self.name));
            }
            _ => {}
        }
        let mut setting =
            Setting { store: &self.state.store, world: &mut self.state.world, ranges: &self.state.ranges };
        let part = self.subresource.as_deref();
        let errors = kinds::before_update(&self.resource, part, &mut object, existing, &mut setting)?;
        if !errors.is_empty() {
            return Err(Failure::invalid(&group, &self.resource.kind, &self.name, &errors));
        }
        self.warnings.extend(kinds::warnings(&self.resource, part, &object, Some(existing)));
        if options.dry_run {
            return Ok(Arc::new(object));
        }
        let held =
            self.resource.behaviour == Behaviour::Namespace && !list(&object, "spec.finalizers").is_empty();
        if meta::gone_after(&object, existing) && !held {
            let (table, key) = (self.table(), self.key(&self.name));
            self.state.remove(&table, &key);
            return Ok(Arc::new(object));
        }
        let name = self.name.clone();
        Ok(self.store(&name, object))
    }
}
