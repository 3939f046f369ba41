//! What each kind does beyond being stored: defaults, fields that the server sets, validation.

mod custom;
mod data;
mod definition;
mod deployment;
mod event;
mod namespace;
mod node;
mod pod;
mod service;
mod service_addresses;
mod service_allocation;
mod service_validation;
mod service_warnings;
mod slices;

pub(crate) use definition::{CLEANUP, advance, has_condition, set_condition};
pub(crate) use deployment::selector_text;
pub(crate) use event::{from_core as event_from_core, to_core as event_to_core};
pub(crate) use service_allocation::Ranges;

use serde_json::Value;

use super::field::FieldErrors;
use super::meta;
use super::names::NameRule;
use super::resource::{Behaviour, Resource};
use super::status::Answer;
use super::store::Store;
use sim_kit::Surroundings;

/// What a kind may look at while it prepares an object.
pub(crate) struct Setting<'a> {
    pub(crate) store: &'a Store,
    pub(crate) world: &'a mut Surroundings,
    pub(crate) ranges: &'a Ranges,
}

/// Fills in what the client left out, as decoding does.
pub(crate) fn defaults(resource: &Resource, object: &mut Value) {
    match resource.behaviour {
        Behaviour::Service => service::defaults(object),
        Behaviour::Node => node::defaults(object),
        Behaviour::Namespace => namespace::defaults(object),
        Behaviour::Secret => data::secret_defaults(object),
        Behaviour::Pod => pod::defaults(object),
        Behaviour::Definition => definition::defaults(object),
        Behaviour::Deployment => deployment::defaults(object),
        Behaviour::EndpointSlice => slices::slice_defaults(object),
        Behaviour::Endpoints => slices::endpoints_defaults(object),
        _ => {}
    }
}

/// Prepares and checks a new object.
pub(crate) fn before_create(
    resource: &Resource,
    object: &mut Value,
    setting: &mut Setting<'_>,
) -> Answer<FieldErrors> {
    match resource.behaviour {
        Behaviour::Service => service::prepare_create(object, setting)?,
        Behaviour::Node => node::prepare_create(object),
        Behaviour::Namespace => namespace::prepare_create(object),
        Behaviour::Pod => pod::prepare_create(object),
        Behaviour::Definition => definition::prepare_create(object),
        Behaviour::Deployment => deployment::prepare_create(object),
        Behaviour::EndpointSlice => slices::prepare_create(object),
        Behaviour::Custom => custom::prepare_create(resource, object),
        _ => {}
    }
    let mut errors = own_errors(resource, object, None);
    if is_core(resource) {
        meta::qualified_finalizers(object, &mut errors);
    }
    if errors.is_empty() {
        errors = meta::validate(object, resource.namespaced, NameRule::PathSegment);
    }
    if resource.behaviour == Behaviour::Namespace && errors.is_empty() {
        namespace::label(object);
    }
    Ok(errors)
}

/// Prepares and checks a changed object.
pub(crate) fn before_update(
    resource: &Resource,
    subresource: Option<&str>,
    new: &mut Value,
    old: &Value,
    setting: &mut Setting<'_>,
) -> Answer<FieldErrors> {
    use super::value::{at, put};
    if resource.behaviour == Behaviour::Service && subresource.is_none() {
        service::allocate_update(new, old, setting)?;
    }
    put(new, "metadata.generation", at(old, "metadata.generation").cloned());
    match (resource.behaviour, subresource) {
        (Behaviour::Service, None) => service::prepare_update(new, old),
        (Behaviour::Node, None) => node::prepare_update(new, old),
        (Behaviour::Namespace, part) => namespace::prepare_update(part, new, old),
        (Behaviour::Pod, part) => pod::prepare_update(part, new, old),
        (Behaviour::Definition, part) => definition::prepare_update(part, new, old),
        (Behaviour::Deployment, part) => deployment::prepare_update(part, new, old),
        (Behaviour::Secret, None) => data::prepare_secret_update(new, old),
        (Behaviour::EndpointSlice, None) => slices::prepare_update(new, old),
        (Behaviour::Custom, part) => custom::prepare_update(resource, part, new, old),
        (_, Some("status")) => put(new, "spec", at(old, "spec").cloned()),
        _ => {}
    }
    meta::carry_over(new, old);
    let mut errors = meta::validate(new, resource.namespaced, NameRule::PathSegment);
    errors.append(meta::validate_update(new, old));
    errors.append(update_errors(resource, subresource, new, old));
    if resource.behaviour == Behaviour::Namespace && errors.is_empty() {
        namespace::label(new);
    }
    Ok(errors)
}

fn own_errors(resource: &Resource, object: &Value, old: Option<&Value>) -> FieldErrors {
    let named = |rule| meta::validate(object, resource.namespaced, rule);
    match resource.behaviour {
        Behaviour::Service => {
            let mut errors = named(NameRule::Label);
            errors.append(service_validation::validate(object, old));
            errors
        }
        Behaviour::Node => node::validate(object),
        Behaviour::Namespace => namespace::validate(object),
        Behaviour::ConfigMap => data::validate_config_map(object),
        Behaviour::Secret => data::validate_secret(object),
        Behaviour::Lease => data::validate_lease(object, None),
        Behaviour::Event => event::validate_create(resource, object),
        Behaviour::Pod => pod::validate(object),
        Behaviour::Custom => {
            let mut errors = named(NameRule::Subdomain);
            errors.append(custom::validate(resource, object));
            errors
        }
        Behaviour::Definition => definition::validate(object),
        Behaviour::Deployment => deployment::validate(object),
        Behaviour::EndpointSlice => slices::validate_slice(object),
        Behaviour::Endpoints => slices::validate_endpoints(object),
        Behaviour::ServiceAccount | Behaviour::Review => named(NameRule::Subdomain),
    }
}

fn update_errors(resource: &Resource, subresource: Option<&str>, new: &Value, old: &Value) -> FieldErrors {
    let mut errors = match (resource.behaviour, subresource) {
        (Behaviour::Node, None) => node::validate(new),
        (Behaviour::Namespace, None) => namespace::validate(new),
        _ => FieldErrors::default(),
    };
    if !matches!(resource.behaviour, Behaviour::Event | Behaviour::Lease) {
        errors.append(meta::validate_update(new, old));
    }
    if is_core(resource) {
        meta::qualified_finalizers(new, &mut errors);
    }
    errors.append(match (resource.behaviour, subresource) {
        (Behaviour::Service, None) => service_validation::validate_update(new, old),
        (Behaviour::Service, Some(_)) => service_validation::validate_status(new, old),
        (Behaviour::Node, _) => node::validate_update(new, old),
        (Behaviour::Namespace, part) => namespace::validate_update(part, new),
        (Behaviour::ConfigMap, _) => data::validate_config_map_update(new, old),
        (Behaviour::Secret, _) => data::validate_secret_update(new, old),
        (Behaviour::Lease, _) => data::validate_lease(new, Some(old)),
        (Behaviour::Event, _) => event::validate_update(resource, new, old),
        (Behaviour::EndpointSlice, _) => slices::validate_slice_update(new, old),
        (Behaviour::Endpoints, _) => slices::validate_endpoints(new),
        (Behaviour::Custom, part) => custom::validate_update(resource, part, new, old),
        (Behaviour::Definition, part) => definition::validate_update(part, new, old),
        (Behaviour::Deployment, part) => deployment::validate_update(part, new, old),
        (Behaviour::Pod | Behaviour::ServiceAccount | Behaviour::Review, _) => FieldErrors::default(),
    });
    errors
}

fn is_core(resource: &Resource) -> bool {
    !matches!(
        resource.behaviour,
        Behaviour::Custom | Behaviour::Definition | Behaviour::Lease | Behaviour::Event | Behaviour::Review
    )
}

/// Warnings about an object that is accepted all the same.
pub(crate) fn warnings(
    resource: &Resource,
    subresource: Option<&str>,
    object: &Value,
    old: Option<&Value>,
) -> Vec<String> {
    match (resource.behaviour, subresource) {
        (Behaviour::Service, None) => service_warnings::of_service(object),
        (Behaviour::Service, Some(_)) => service_warnings::of_status(object),
        (Behaviour::Node, None) => node::warnings(object),
        (Behaviour::Endpoints, _) => slices::warnings(object),
        (Behaviour::Custom, None) => custom::warnings(object, old),
        (Behaviour::Definition, None) => definition::warnings(object),
        (Behaviour::EndpointSlice, _) => slices::slice_warnings(object),
        _ => Vec::new(),
    }
}

/// Kinds whose objects a PUT may create.
pub(crate) fn created_by_put(resource: &Resource) -> bool {
    matches!(
        resource.behaviour,
        Behaviour::Service | Behaviour::Endpoints | Behaviour::Event | Behaviour::Lease
    )
}

/// Kinds that a PUT may change without naming the version it saw.
pub(crate) fn unconditional(resource: &Resource) -> bool {
    !matches!(resource.behaviour, Behaviour::Lease | Behaviour::Custom | Behaviour::Definition)
}

/// Kinds whose deletion answers with the object rather than with a `Status`.
pub(crate) fn returns_deleted(resource: &Resource) -> bool {
    matches!(
        resource.behaviour,
        Behaviour::Service | Behaviour::Pod | Behaviour::Namespace | Behaviour::ServiceAccount
    )
}

/// The grace period of a kind, in seconds.
pub(crate) fn grace(resource: &Resource, object: &Value, options: &Value) -> Option<i64> {
    (resource.behaviour == Behaviour::Pod).then(|| pod::grace(object, options))
}
