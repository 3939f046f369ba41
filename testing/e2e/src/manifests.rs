//! YAML files with several objects in them.

use serde_json::Value;

use crate::Error;

/// What gives rights to somebody. The rest of a deployment is for clusters that run containers.
const ACCESS: &[&str] =
    &["Namespace", "ServiceAccount", "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"];

/// The objects of a file, in order; empty documents are none.
pub(crate) fn parse(text: &str) -> Result<Vec<Value>, Error> {
    let all: Vec<Value> =
        serde_saphyr::from_multiple(text).map_err(|error| Error::Manifest(error.to_string()))?;
    Ok(all.into_iter().filter(|one| !one.is_null()).collect())
}

/// Those among them that are about access.
pub(crate) fn access(text: &str) -> Result<Vec<Value>, Error> {
    Ok(parse(text)?.into_iter().filter(|one| ACCESS.contains(&kind(one))).collect())
}

/// One file for several. Objects of the same kind and name become one, with the rules of all of them.
pub(crate) fn united(texts: &[String]) -> Result<String, Error> {
    let mut united: Vec<Value> = Vec::new();
    for object in texts.iter().map(|text| parse(text)).collect::<Result<Vec<_>, _>>()?.into_iter().flatten() {
        let same = |other: &&mut Value| {
            let at = |pointer| (other.pointer(pointer), object.pointer(pointer));
            ["/kind", "/metadata/namespace", "/metadata/name"].into_iter().map(at).all(|(a, b)| a == b)
        };
        match united.iter_mut().find(same) {
            None => united.push(object),
            Some(there) => {
                let more = object.get("rules").and_then(Value::as_array).cloned().unwrap_or_default();
                if let Some(rules) = there.get_mut("rules").and_then(Value::as_array_mut) {
                    let new = more.into_iter().filter(|rule| !rules.contains(rule)).collect::<Vec<_>>();
                    rules.extend(new);
                }
            }
        }
    }
    Ok(united.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n---\n"))
}

/// Whether it is about roles, which the embedded API does not store.
pub(crate) fn is_rbac(object: &Value) -> bool {
    kind(object).contains("Role")
}

pub(crate) fn kind(object: &Value) -> &str {
    object.get("kind").and_then(Value::as_str).unwrap_or_default()
}

/// The path under which an object about access is created.
pub(crate) fn collection(object: &Value) -> String {
    let text = |pointer, otherwise| object.pointer(pointer).and_then(Value::as_str).unwrap_or(otherwise);
    let version = text("/apiVersion", "v1");
    let root = if version.contains('/') { format!("/apis/{version}") } else { format!("/api/{version}") };
    let plural = format!("{}s", kind(object).to_lowercase());
    match kind(object) {
        "Namespace" | "ClusterRole" | "ClusterRoleBinding" => format!("{root}/{plural}"),
        _ => format!("{root}/namespaces/{}/{plural}", text("/metadata/namespace", "default")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn everything_about_access_has_a_path() {
        let rbac = "rbac.authorization.k8s.io/v1";
        let table = [
            ("v1", "Namespace", "/api/v1/namespaces"),
            ("v1", "ServiceAccount", "/api/v1/namespaces/team/serviceaccounts"),
            (rbac, "RoleBinding", "/apis/rbac.authorization.k8s.io/v1/namespaces/team/rolebindings"),
            (rbac, "ClusterRole", "/apis/rbac.authorization.k8s.io/v1/clusterroles"),
        ];
        for (version, kind, want) in table {
            let object = json!({"apiVersion": version, "kind": kind, "metadata": {"namespace": "team"}});
            assert_eq!(collection(&object), want);
        }
        assert_eq!(collection(&json!({"kind": "Role"})), "/api/v1/namespaces/default/roles");
    }

    #[test]
    fn several_manifests_grant_what_each_of_them_does() {
        let role = |rules: &str| format!("kind: Role\nmetadata: {{name: a}}\nrules: [{rules}]\n");
        let texts = [role("{verbs: [get]}"), role("{verbs: [get]}, {verbs: [list]}") + "---\nkind: Pod\n"];
        let found = parse(&united(&texts).unwrap()).unwrap();
        let both = json!({ "kind": "Role", "metadata": { "name": "a" },
            "rules": [{ "verbs": ["get"] }, { "verbs": ["list"] }] });
        assert_eq!(found, [both, json!({ "kind": "Pod" })]);
        assert!(united(&["a: [".to_owned()]).is_err());
    }

    #[test]
    fn access_is_picked_out_of_a_deployment() {
        let text = "# first\n---\nkind: ServiceAccount\n---\nkind: DaemonSet\nspec: {a: [1]}\n---\nkind: ClusterRole\n---\n";
        let kinds: Vec<_> = access(text).unwrap().iter().map(|one| kind(one).to_owned()).collect();
        assert_eq!(kinds, ["ServiceAccount", "ClusterRole"]);
        assert_eq!(parse(text).unwrap().len(), 3);
        assert!(parse("a: [").is_err());
    }
}
