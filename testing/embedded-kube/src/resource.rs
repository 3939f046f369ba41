//! The resources that are served: a table of data, to which definitions add custom ones while running.

use std::sync::Arc;

use super::definitions::Custom;

/// What a resource does beyond being stored. Everything else about it is data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Behaviour {
    ConfigMap,
    /// A kind that a definition describes.
    Custom,
    /// A definition of a custom kind.
    Definition,
    Deployment,
    Endpoints,
    EndpointSlice,
    /// Both event APIs: one store, two shapes.
    Event,
    Lease,
    Namespace,
    Node,
    Pod,
    Secret,
    Service,
    ServiceAccount,
    /// Answered at once, never stored.
    Review,
}

/// A part of an object with a path and rights of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Subresource {
    /// The last part of the path: `status`.
    pub(crate) name: String,
    /// Verbs allowed on it.
    pub(crate) verbs: Vec<String>,
    /// Group, version and kind, where it is of another kind than the resource.
    pub(crate) kind: Option<(String, String, String)>,
}

/// A field that lists and watches can select by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Selectable {
    /// The name in a field selector.
    pub(crate) label: String,
    /// Where the stored object has it.
    pub(crate) path: String,
    /// The text that an absent field stands for.
    pub(crate) absent: String,
}

/// One served resource.
#[derive(Clone, Debug)]
pub(crate) struct Resource {
    /// API group; empty for the core group.
    pub(crate) group: String,
    /// API version.
    pub(crate) version: String,
    /// Kind of one object.
    pub(crate) kind: String,
    /// Name in paths.
    pub(crate) plural: String,
    /// Name for one, in lower case.
    pub(crate) singular: String,
    /// Whether objects live in a namespace.
    pub(crate) namespaced: bool,
    /// Short names for `kubectl`.
    pub(crate) short_names: Vec<String>,
    /// Groups of resources such as `all`.
    pub(crate) categories: Vec<String>,
    /// Verbs allowed on the resource itself.
    pub(crate) verbs: Vec<String>,
    /// Parts with paths of their own.
    pub(crate) subresources: Vec<Subresource>,
    /// Fields to select by, beside the name and the namespace.
    pub(crate) selectable: Vec<Selectable>,
    /// Resources that share objects name the same table.
    pub(crate) table: String,
    pub(crate) shape: Option<String>,
    pub(crate) behaviour: Behaviour,
    pub(crate) custom: Option<Custom>,
}

const CRUD: &[&str] = &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
/// The order in which a real server lists the verbs of custom kinds.
const CUSTOM_CRUD: &[&str] =
    &["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
const CRUD_ONE: &[&str] = &["create", "delete", "get", "list", "patch", "update", "watch"];
const STATUS: (&str, &[&str]) = ("status", &["get", "patch", "update"]);
const EVENT_FIELDS: &[&str] = &[
    "involvedObject.apiVersion",
    "involvedObject.fieldPath",
    "involvedObject.kind",
    "involvedObject.name",
    "involvedObject.namespace",
    "involvedObject.resourceVersion",
    "involvedObject.uid",
    "reason",
    "reportingComponent",
    "source",
    "type",
];

const NEW_EVENT_FIELDS: &[(&str, &str)] = &[
    ("reason", "reason"),
    ("regarding.apiVersion", "involvedObject.apiVersion"),
    ("regarding.fieldPath", "involvedObject.fieldPath"),
    ("regarding.kind", "involvedObject.kind"),
    ("regarding.name", "involvedObject.name"),
    ("regarding.namespace", "involvedObject.namespace"),
    ("regarding.resourceVersion", "involvedObject.resourceVersion"),
    ("regarding.uid", "involvedObject.uid"),
    ("reportingController", "reportingComponent"),
    ("type", "type"),
];

fn strings(list: &[&str]) -> Vec<String> {
    list.iter().map(|&s| s.to_owned()).collect()
}

impl Resource {
    /// A custom resource with all verbs.
    pub(crate) fn new(group: &str, version: &str, kind: &str, plural: &str, namespaced: bool) -> Self {
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
            singular: kind.to_lowercase(),
            namespaced,
            short_names: Vec::new(),
            categories: Vec::new(),
            verbs: strings(CUSTOM_CRUD),
            subresources: Vec::new(),
            selectable: Vec::new(),
            table: super::status::qualified(group, plural),
            shape: None,
            behaviour: Behaviour::Custom,
            custom: None,
        }
    }

    /// Adds the status as a part of its own.
    pub(crate) fn with_status(self) -> Self {
        self.with_subresource(STATUS.0, STATUS.1)
    }

    fn with_subresource(mut self, name: &str, verbs: &[&str]) -> Self {
        self.subresources.push(Subresource { name: name.to_owned(), verbs: strings(verbs), kind: None });
        self
    }

    fn with_token(mut self) -> Self {
        let kind = ("authentication.k8s.io".to_owned(), "v1".to_owned(), "TokenRequest".to_owned());
        self.subresources.push(Subresource {
            name: "token".to_owned(),
            verbs: strings(&["create"]),
            kind: Some(kind),
        });
        self
    }

    fn shaped(mut self, package: &str, behaviour: Behaviour) -> Self {
        self.shape = Some(format!("{package}.{}", self.kind));
        self.behaviour = behaviour;
        self.verbs(CRUD)
    }

    fn short(mut self, names: &[&str]) -> Self {
        self.short_names = strings(names);
        self
    }

    fn in_all(self) -> Self {
        self.in_category("all")
    }

    fn in_category(mut self, category: &str) -> Self {
        self.categories.push(category.to_owned());
        self
    }

    fn select(mut self, labels: &[&str], absent: &str) -> Self {
        for label in labels {
            let path = (*label).to_owned();
            self.selectable.push(Selectable { label: path.clone(), path, absent: absent.to_owned() });
        }
        self
    }

    fn select_as(mut self, pairs: &[(&str, &str)]) -> Self {
        for (label, path) in pairs {
            let (label, path) = ((*label).to_owned(), (*path).to_owned());
            self.selectable.push(Selectable { label, path, absent: String::new() });
        }
        self
    }

    fn verbs(mut self, verbs: &[&str]) -> Self {
        self.verbs = strings(verbs);
        self
    }

    fn stored_as(mut self, table: &str) -> Self {
        table.clone_into(&mut self.table);
        self
    }

    /// `v1` or `coordination.k8s.io/v1`.
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// The kind of a list of these.
    pub(crate) fn list_kind(&self) -> String {
        match &self.custom {
            Some(custom) => custom.list_kind.clone(),
            None => format!("{}List", self.kind),
        }
    }

    pub(crate) fn allows(&self, subresource: Option<&str>, verb: &str) -> bool {
        let verbs = match subresource {
            None => Some(&self.verbs),
            Some(name) => self.subresources.iter().find(|s| s.name == name).map(|s| &s.verbs),
        };
        verbs.is_some_and(|verbs| verbs.iter().any(|v| v == verb))
    }
}

/// Everything served from the start.
pub(crate) fn builtin() -> Vec<Arc<Resource>> {
    let core = |kind: &str, plural: &str, namespaced, behaviour| {
        Resource::new("", "v1", kind, plural, namespaced).shaped("core/v1", behaviour)
    };
    let review = |group: &str, package: &str, kind: &str, plural: &str, namespaced| {
        Resource::new(group, "v1", kind, plural, namespaced)
            .shaped(package, Behaviour::Review)
            .verbs(&["create"])
    };
    let (authentication, authorization) = ("authentication.k8s.io", "authorization.k8s.io");
    let resources = [
        core("ConfigMap", "configmaps", true, Behaviour::ConfigMap).short(&["cm"]),
        core("Endpoints", "endpoints", true, Behaviour::Endpoints).short(&["ep"]),
        core("Event", "events", true, Behaviour::Event).short(&["ev"]).select(EVENT_FIELDS, ""),
        core("Namespace", "namespaces", false, Behaviour::Namespace)
            .short(&["ns"])
            .verbs(CRUD_ONE)
            .with_subresource("finalize", &["update"])
            .with_status()
            .select(&["status.phase"], "")
            .select_as(&[("name", "metadata.name")]),
        core("Node", "nodes", false, Behaviour::Node)
            .short(&["no"])
            .with_status()
            .select(&["spec.unschedulable"], "false"),
        core("Pod", "pods", true, Behaviour::Pod)
            .short(&["po"])
            .in_all()
            .with_status()
            .select(
                &[
                    "spec.nodeName",
                    "spec.restartPolicy",
                    "spec.schedulerName",
                    "spec.serviceAccountName",
                    "status.phase",
                    "status.podIP",
                    "status.podIPs",
                    "status.nominatedNodeName",
                ],
                "",
            )
            .select(&["spec.hostNetwork"], "false"),
        core("Secret", "secrets", true, Behaviour::Secret).select(&["type"], ""),
        core("ServiceAccount", "serviceaccounts", true, Behaviour::ServiceAccount)
            .short(&["sa"])
            .with_token(),
        core("Service", "services", true, Behaviour::Service)
            .short(&["svc"])
            .in_all()
            .with_status()
            .select(&["spec.clusterIP", "spec.type"], ""),
        Resource::new(
            "apiextensions.k8s.io",
            "v1",
            "CustomResourceDefinition",
            "customresourcedefinitions",
            false,
        )
        .shaped("apiextensions/v1", Behaviour::Definition)
        .short(&["crd", "crds"])
        .in_category("api-extensions")
        .with_status(),
        Resource::new("apps", "v1", "Deployment", "deployments", true)
            .shaped("apps/v1", Behaviour::Deployment)
            .short(&["deploy"])
            .in_all()
            .with_status(),
        review(authentication, "authentication/v1", "SelfSubjectReview", "selfsubjectreviews", false),
        review(authentication, "authentication/v1", "TokenReview", "tokenreviews", false),
        review(
            authorization,
            "authorization/v1",
            "LocalSubjectAccessReview",
            "localsubjectaccessreviews",
            true,
        ),
        review(
            authorization,
            "authorization/v1",
            "SelfSubjectAccessReview",
            "selfsubjectaccessreviews",
            false,
        ),
        review(authorization, "authorization/v1", "SelfSubjectRulesReview", "selfsubjectrulesreviews", false),
        review(authorization, "authorization/v1", "SubjectAccessReview", "subjectaccessreviews", false),
        Resource::new("coordination.k8s.io", "v1", "Lease", "leases", true)
            .shaped("coordination/v1", Behaviour::Lease),
        Resource::new("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", true)
            .shaped("discovery/v1", Behaviour::EndpointSlice),
        Resource::new("events.k8s.io", "v1", "Event", "events", true)
            .shaped("events/v1", Behaviour::Event)
            .short(&["ev"])
            .stored_as("events")
            .select_as(NEW_EVENT_FIELDS),
    ];
    resources.into_iter().map(Arc::new).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_builtin_has_its_shape() {
        let shapes = super::super::shape::Shapes::kubernetes();
        for resource in builtin() {
            let name = resource.shape.as_ref().unwrap();
            assert!(shapes.get(name).is_some(), "{name}");
        }
    }

    #[test]
    fn verbs_are_per_part() {
        let all = builtin();
        let find = |plural: &str| all.iter().find(|r| r.plural == plural).unwrap().clone();
        assert!(find("services").allows(Some("status"), "patch"));
        assert!(!find("services").allows(Some("status"), "delete"));
        assert!(!find("services").allows(Some("scale"), "get"));
        assert!(!find("namespaces").allows(None, "deletecollection"));
        assert!(!find("tokenreviews").allows(None, "get"));
    }
}
