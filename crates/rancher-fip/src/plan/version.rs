//! Which version of the floating-IP kinds is used.

use serde_json::Value;

/// A version of the floating-IP kinds. A write through the older one destroys what only the newer one has, so the newest
/// that is served is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// `v1beta2`
    V1Beta2,
    /// `v1beta1`
    V1Beta1,
}

impl Version {
    /// As it is in paths.
    pub const fn name(self) -> &'static str {
        match self {
            Self::V1Beta2 => "v1beta2",
            Self::V1Beta1 => "v1beta1",
        }
    }
}

/// The version to use, given the description of the API group.
pub fn choose(group: &Value) -> Option<Version> {
    let versions = group.get("versions").and_then(Value::as_array);
    let served = |version: Version| {
        let mut all = versions.into_iter().flatten();
        all.any(|entry| entry.get("version").and_then(Value::as_str) == Some(version.name()))
    };
    [Version::V1Beta2, Version::V1Beta1].into_iter().find(|version| served(*version))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_newest_that_is_served_is_used() {
        let group = |names: &[&str]| {
            let versions: Vec<_> = names
                .iter()
                .map(|name| json!({"version": name, "groupVersion": format!("g/{name}")}))
                .collect();
            json!({"kind": "APIGroup", "versions": versions})
        };
        let table = [
            ("RF-22 RF-220", group(&["v1beta1"]), Some(Version::V1Beta1)),
            ("RF-22 RF-220 later both", group(&["v1beta1", "v1beta2"]), Some(Version::V1Beta2)),
            ("RF-23", group(&["v1beta2"]), Some(Version::V1Beta2)),
            ("neither", group(&["v1"]), None),
            ("something else", json!({}), None),
        ];
        for (case, group, want) in table {
            assert_eq!(choose(&group), want, "{case}");
        }
    }
}
